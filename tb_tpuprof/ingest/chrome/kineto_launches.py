"""Which operator launched what ran on a device: kernel → launch → the innermost operator around the launch.

    thread   ├ aten::linear ──────────────┤
               ├ aten::addmm ──┤
                 ▪ cudaLaunchKernel, "correlation" 9
    stream                   ▪▪▪ kernel, "correlation" 9        launched by aten::addmm

The id that older readers go by ("External id") is the operator's in some versions and the launch's own
correlation in others. It is used only where the file holds no launch of a kernel, and where it agrees with
the launches that the file does hold. Source of the rule: Kineto's own plugin, HTA and TraceLens tie kernels
the same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.slices import Slices
from tb_tpuprof.native import nest
from tb_tpuprof.trace import schema

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
COLLECTIVE = b"record_param_comms"
_GRAPH_LAUNCH = re.compile(rb"(cuda|hip|cu)GraphLaunch\w*")
# Share of launches that are known both ways and must name one operator before ids alone are believed
_AGREES = 0.95
_MOST_AROUND = 4096


@dataclass(frozen=True)
class Roles:
    """Slices by role: operators and launches on threads, kernels and copies on devices."""

    operator: Bools
    launch: Bools
    on_device: Bools


def operator_names(raw: RawEvents, slices: Slices, operator: Bools) -> Int64s:
    """Name (a text) of each slice that is an operator, else -1. A collective is called by what the file says
    it does.
    """
    name: Int64s = np.where(operator, raw["name"][slices.raw].astype(np.int64), -1)
    comms = raw.texts.find(COLLECTIVE.decode())
    rows = np.flatnonzero((name == comms) & (comms >= 0))
    if len(rows):
        event, kind, value = raw.argument("Collective name")
        told = np.full(len(raw), -1, np.int64)
        told[event[kind == schema.TEXT]] = value[kind == schema.TEXT]
        for text in np.unique(told[slices.raw[rows]]).tolist():
            if text >= 0 and raw.texts.get(text):
                mine = rows[told[slices.raw[rows]] == text]
                name[mine] = raw.texts.add(f"{raw.texts.get(text)} ({COLLECTIVE.decode()})")
    return name


def operations(
    raw: RawEvents, slices: Slices, line: Array, roles: Roles, ids: tuple[Int64s, Int64s]
) -> Int64s:
    """Name (a text) of the operation of each slice: of an operator and of a launch's kernels; -1 where there
    is none.

    `ids`: external id and correlation of each slice, 0 or less for none. Kernels of a CUDA or HIP graph
    belong to its launch: `cudaGraphLaunch`, with the operator around it where there is one.
    """
    external, correlation = ids
    name = operator_names(raw, slices, roles.operator)
    launches = np.flatnonzero(roles.launch & (correlation > 0))
    around = _innermost(slices, line, np.flatnonzero(roles.operator), launches)
    devices = np.flatnonzero(roles.on_device)
    at = _launch_of(
        correlation[launches], slices.start_ps[launches], correlation[devices], slices.start_ps[devices]
    )
    by_id = _looked_up(external, np.flatnonzero(roles.operator & (external > 0)), external[devices])
    has_launch = at >= 0
    by_launch = np.where(has_launch, around[at], -1) if len(launches) else np.full(len(devices), -1, np.int64)
    believed = _is_operators_id(by_launch, by_id, external[devices], correlation[devices], has_launch)
    chosen = np.where(has_launch | (not believed), by_launch, by_id)
    result: Int64s = name.copy()
    result[devices] = np.where(chosen >= 0, name[chosen], -1)
    graph = _graph_launches(raw, slices, launches)
    of_graph = np.flatnonzero(has_launch & (graph[at] >= 0)) if len(launches) else np.empty(0, np.intp)
    result[devices[of_graph]] = _graph_names(raw, graph[at[of_graph]], result[devices[of_graph]])
    return result


def _innermost(slices: Slices, line: Array, operators: Array, launches: Array) -> Int64s:
    """The slice of the innermost operator that holds each launch's start on its thread, -1 for none."""
    if not len(operators) or not len(launches):
        return np.full(len(launches), -1, np.int64)
    start, end = slices.start_ps[operators], slices.start_ps[operators] + slices.duration_ps[operators]
    here, time = line[launches], slices.start_ps[launches]
    n = len(operators)
    order = np.lexsort(
        (
            np.append(np.zeros(n), np.ones(len(launches))),
            np.append(start, time),
            np.append(line[operators], here),
        )
    )
    seen = np.empty(len(order), np.int64)
    seen[order] = np.cumsum(order < n)
    at = seen[n:] - 1
    bounds = np.searchsorted(line[operators], np.arange(int(line.max()) + 2))
    parent = np.asarray(nest(start, end, bounds)[0], np.int64)
    at[(at >= 0) & (line[operators[at]] != here)] = -1
    # An operator that ended before the launch, and one whose end is the launch's start in a file of whole
    # microseconds, is left.
    for _ in range(_MOST_AROUND):
        over = np.flatnonzero((at >= 0) & (end[at] <= time) & (start[at] < time))
        if not len(over):
            break
        at[over] = parent[at[over]]
    found: Int64s = np.where(at >= 0, operators[at], -1)
    return found


def _launch_of(made: Int64s, made_ps: Int64s, used: Int64s, used_ps: Int64s) -> Int64s:
    """Which launch made each kernel: that of its correlation; of several the last before the kernel, else the
    first. -1 for none.
    """
    if not len(made):
        return np.full(len(used), -1, np.int64)
    order = np.lexsort((made_ps, made))
    known, first, count = np.unique(made[order], return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(known, used), len(known) - 1)
    found = (known[at] == used) & (used > 0)
    chosen = first[at]
    several = np.flatnonzero(found & (count[at] > 1))
    if len(several):
        key, when = np.append(made, used[several]), np.append(made_ps, used_ps[several])
        by_time = np.lexsort((np.append(np.zeros(len(made)), np.ones(len(several))), when, key))
        before = np.empty(len(by_time), np.int64)
        before[by_time] = np.cumsum(by_time < len(made)) - 1
        chosen[several] = np.maximum(before[len(made) :], chosen[several])
    return np.where(found, order[chosen], -1)


def _looked_up(external: Int64s, operators: Array, wanted: Int64s) -> Int64s:
    """The slice of the operator with each external id (the first of equals), -1 for none."""
    if not len(operators):
        return np.full(len(wanted), -1, np.int64)
    known, first = np.unique(external[operators], return_index=True)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where((known[at] == wanted) & (wanted > 0), operators[first[at]], -1)


def _is_operators_id(
    by_launch: Int64s, by_id: Int64s, external: Int64s, correlation: Int64s, has_launch: Bools
) -> bool:
    """Whether external ids name operators: they are no correlations, and agree with the launches wherever a
    kernel has both.
    """
    told = external > 0
    if not told.any() or bool((external[told] == correlation[told]).all()):
        return False
    both = has_launch & (by_id >= 0)
    return not both.any() or float((by_launch[both] == by_id[both]).mean()) >= _AGREES


def _graph_launches(raw: RawEvents, slices: Slices, launches: Array) -> Int64s:
    """Name (a text) of each launch that starts a whole graph, else -1."""
    name = raw["name"][slices.raw[launches]].astype(np.int64)
    distinct, inverse = np.unique(name, return_inverse=True)
    is_graph = np.array(
        [i >= 0 and _GRAPH_LAUNCH.fullmatch(raw.texts.items[i]) is not None for i in distinct.tolist()],
        np.bool_,
    )
    return np.where(is_graph[inverse.reshape(-1)], name, -1) if len(distinct) else name


def _graph_names(raw: RawEvents, launch: Int64s, operator: Int64s) -> Int64s:
    """A text for each pair of a graph's launch and the operator around it (-1 none): `cudaGraphLaunch in
    my::operator`.
    """
    pairs, inverse = np.unique(np.column_stack((launch, operator)), axis=0, return_inverse=True)
    texts = [
        raw.texts.get(a) if b < 0 else f"{raw.texts.get(a)} in {raw.texts.get(b)}" for a, b in pairs.tolist()
    ]
    return (
        np.array([raw.texts.add(text) for text in texts], np.int64)[inverse.reshape(-1)]
        if len(texts)
        else launch
    )
