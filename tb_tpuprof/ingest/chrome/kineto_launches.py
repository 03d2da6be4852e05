"""The operator that launched each device activity: kernel → launch → the innermost operator around the
launch.

    thread   ├ aten::linear ──────────────┤
               ├ aten::addmm ──┤
                 ▪ cudaLaunchKernel, "correlation" 9
    stream                   ▪▪▪ kernel, "correlation" 9        launched by aten::addmm

Older readers use the "External id", which is the operator's id in some versions and the launch's own
correlation in others. It is used here only if the file has no launch of a kernel, and if it agrees with the
launches that the file does have. Source of the rule: Kineto's own plugin, HTA and TraceLens match kernels the
same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.kineto_graphs import creators
from tb_tpuprof.ingest.chrome.slices import Slices
from tb_tpuprof.native import nest
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.distinct_rows import distinct_rows

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
COLLECTIVE = b"record_param_comms"
_GRAPH_LAUNCH = re.compile(rb"(cuda|hip|cu)GraphLaunch\w*")
# Ids alone are trusted if they agree with this share of the launches that are known both ways.
_AGREES = 0.95
_MOST_AROUND = 4096


@dataclass(frozen=True)
class Roles:
    """Slices by role: operators and launches on threads, kernels and copies on devices."""

    operator: Bools
    launch: Bools
    on_device: Bools


def operator_names(raw: RawEvents, slices: Slices, operator: Bools) -> Int64s:
    """Name (a text) of each slice that is an operator, else -1. A collective gets the name of what it does,
    if the file has it.
    """
    name: Int64s = np.where(operator, raw["name"][slices.raw].astype(np.int64), -1)
    comms = raw.texts.find(COLLECTIVE.decode())
    rows = np.flatnonzero((name == comms) & (comms >= 0))
    if len(rows):
        event, kind, value = raw.argument("Collective name")
        collective_name = np.full(len(raw), -1, np.int64)
        collective_name[event[kind == schema.TEXT]] = value[kind == schema.TEXT]
        for text in np.unique(collective_name[slices.raw[rows]]).tolist():
            if text >= 0 and raw.texts.get(text):
                rows_of_text = rows[collective_name[slices.raw[rows]] == text]
                name[rows_of_text] = raw.texts.add(f"{raw.texts.get(text)} ({COLLECTIVE.decode()})")
    return name


@dataclass(frozen=True)
class Operations:
    """Of each slice the name (a text) of its operation, and of each slice on a device the slice of the
    operator that launched it; -1 for none.
    """

    name: Int64s
    operator: Int64s


def operations(
    raw: RawEvents, slices: Slices, line: Array, roles: Roles, ids: tuple[Int64s, Int64s, Int64s, Int64s]
) -> Operations:
    """Operations of slices: of operators themselves, and of what their launches run on devices.

    `ids`: external id, correlation, graph and node of each slice, 0 or less for none. Kernels of a CUDA or
    HIP graph belong to its launch: they are named `cudaGraphLaunch`, with the operator around it if there is
    one; or after the operator that put them into the graph, if the file shows it. No call of that operator
    launched them.
    """
    external, correlation, graph_id, node_id = ids
    name = operator_names(raw, slices, roles.operator)
    launches = np.flatnonzero(roles.launch & (correlation > 0))
    around = _innermost(slices, line, np.flatnonzero(roles.operator), launches)
    devices = np.flatnonzero(roles.on_device)
    launch_index = _launch_of(
        correlation[launches], slices.start_ps[launches], correlation[devices], slices.start_ps[devices]
    )
    by_id = _operators_by_id(external, np.flatnonzero(roles.operator & (external > 0)), external[devices])
    has_launch = launch_index >= 0
    by_launch = (
        np.where(has_launch, around[launch_index], -1)
        if len(launches)
        else np.full(len(devices), -1, np.int64)
    )
    trusts_ids = _is_operators_id(by_launch, by_id, external[devices], correlation[devices], has_launch)
    operator = np.where(has_launch | (not trusts_ids), by_launch, by_id)
    result: Int64s = name.copy()
    result[devices] = np.where(operator >= 0, name[operator], -1)
    graph = _graph_launches(raw, slices, launches)
    of_graph = (
        np.flatnonzero(has_launch & (graph[launch_index] >= 0)) if len(launches) else np.empty(0, np.intp)
    )
    result[devices[of_graph]] = _graph_names(raw, graph[launch_index[of_graph]], result[devices[of_graph]])
    launched_by = np.full(len(name), -1, np.int64)
    launched_by[devices] = operator
    kernels = devices[of_graph]
    creator = creators((graph_id[kernels], node_id[kernels]), (graph_id[launches], node_id[launches]), around)
    created = kernels[creator >= 0]
    result[created], launched_by[created] = name[creator[creator >= 0]], -1
    return Operations(result, launched_by)


def _innermost(slices: Slices, line: Array, operators: Array, launches: Array) -> Int64s:
    """The slice of the innermost operator that contains each launch's start on its thread, -1 for none."""
    if not len(operators) or not len(launches):
        return np.full(len(launches), -1, np.int64)
    start, end = slices.start_ps[operators], slices.start_ps[operators] + slices.duration_ps[operators]
    launch_line, time = line[launches], slices.start_ps[launches]
    n = len(operators)
    order = np.lexsort(
        (
            np.append(np.zeros(n), np.ones(len(launches))),
            np.append(start, time),
            np.append(line[operators], launch_line),
        )
    )
    n_started = np.empty(len(order), np.int64)
    n_started[order] = np.cumsum(order < n)
    candidate = n_started[n:] - 1
    bounds = np.searchsorted(line[operators], np.arange(int(line.max()) + 2))
    parent = np.asarray(nest(start, end, bounds)[0], np.int64)
    candidate[(candidate >= 0) & (line[operators[candidate]] != launch_line)] = -1
    # Leave operators that ended before the launch, or at its start (in files of whole microseconds).
    for _ in range(_MOST_AROUND):
        has_ended = np.flatnonzero((candidate >= 0) & (end[candidate] <= time) & (start[candidate] < time))
        if not len(has_ended):
            break
        candidate[has_ended] = parent[candidate[has_ended]]
    innermost: Int64s = np.where(candidate >= 0, operators[candidate], -1)
    return innermost


def _launch_of(launch_ids: Int64s, launch_ps: Int64s, kernel_ids: Int64s, kernel_ps: Int64s) -> Int64s:
    """Index of the launch of each kernel, by correlation; of several launches the last one before the kernel,
    else the first. -1 for none.
    """
    if not len(launch_ids):
        return np.full(len(kernel_ids), -1, np.int64)
    order = np.lexsort((launch_ps, launch_ids))
    distinct, first, count = np.unique(launch_ids[order], return_index=True, return_counts=True)
    index = np.minimum(np.searchsorted(distinct, kernel_ids), len(distinct) - 1)
    is_known = (distinct[index] == kernel_ids) & (kernel_ids > 0)
    launch = first[index]
    ambiguous = np.flatnonzero(is_known & (count[index] > 1))
    if len(ambiguous):
        key, time = np.append(launch_ids, kernel_ids[ambiguous]), np.append(launch_ps, kernel_ps[ambiguous])
        by_time = np.lexsort((np.append(np.zeros(len(launch_ids)), np.ones(len(ambiguous))), time, key))
        last_before = np.empty(len(by_time), np.int64)
        last_before[by_time] = np.cumsum(by_time < len(launch_ids)) - 1
        launch[ambiguous] = np.maximum(last_before[len(launch_ids) :], launch[ambiguous])
    return np.where(is_known, order[launch], -1)


def _operators_by_id(external: Int64s, operators: Array, sought: Int64s) -> Int64s:
    """The slice of the operator with each external id (the first of several), -1 for none."""
    if not len(operators):
        return np.full(len(sought), -1, np.int64)
    distinct, first = np.unique(external[operators], return_index=True)
    index = np.minimum(np.searchsorted(distinct, sought), len(distinct) - 1)
    return np.where((distinct[index] == sought) & (sought > 0), operators[first[index]], -1)


def _is_operators_id(
    by_launch: Int64s, by_id: Int64s, external: Int64s, correlation: Int64s, has_launch: Bools
) -> bool:
    """Whether external ids identify operators: they are not correlations, and they agree with the launches of
    kernels that have both.
    """
    has_id = external > 0
    if not has_id.any() or bool((external[has_id] == correlation[has_id]).all()):
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
    """A text for each pair of a graph's launch and the operator around it (-1: none): `cudaGraphLaunch in
    my::operator`.
    """
    pairs, inverse = distinct_rows(launch, operator)
    texts = [
        raw.texts.get(a) if b < 0 else f"{raw.texts.get(a)} in {raw.texts.get(b)}" for a, b in pairs.tolist()
    ]
    return np.array([raw.texts.add(text) for text in texts], np.int64)[inverse]
