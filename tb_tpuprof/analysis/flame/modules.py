"""PyTorch's modules → a tree of layers, with the time of the kernels that each launches, by phase.

    forward     ResNet_0 > Conv2d_3     kernels launched inside the module's call
    backward    ResNet_0 > Conv2d_3     kernels launched by the backward operations that the profiler ties to
                                        the module's (arrows `fwdbwd`)
    optimizer                           kernels launched inside `Optimizer.step`

Without kernels, or where none has a launch, times are the host's own, of the forward calls only. Kernels
belong to the step in which they are launched. `module_memory` adds the bytes that modules allocate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import nearest
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.flame.frames import Family
from tb_tpuprof.analysis.flame.module_memory import Bytes, memory_by_key
from tb_tpuprof.analysis.flame.nodes import Branch, Node, nodes_of_branches
from tb_tpuprof.analysis.flame.stacks import Windows
from tb_tpuprof.analysis.memory.events import has_memory_events
from tb_tpuprof.analysis.pytorch.ties import backward_ties
from tb_tpuprof.analysis.steps.launches import kernel_launches
from tb_tpuprof.native import contexts
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
PHASES = ("forward", "backward", "optimizer")
MODULE, OPTIMIZER, BACKWARD = "nn.Module: ", "Optimizer.step#", "autograd::engine::evaluate_function"
OUTSIDE = "(outside of modules)"
MAX_LAYERS = 100


@dataclass(frozen=True)
class Modules:
    """`path_of`: for each event, the number of the path of modules around it, -1 for none; `parent`, `name`:
    of each path, the path without its last module (a lower number, -1 for none) and that module's string.
    """

    path_of: Int32s
    parent: Int32s
    name: Int32s


def has_modules(trace: Trace) -> bool:
    """Whether the trace has calls of modules."""
    return any(name.startswith(MODULE) for name in metadata_names(trace))


@once
def modules(trace: Trace) -> Modules:
    """The paths of modules of all events."""
    is_module = _named(trace, MODULE)
    parent = parents(trace)
    around = nearest(parent, is_module)
    rows = np.flatnonzero(is_module)
    above = parent[rows]
    outer = np.where(above >= 0, around[np.maximum(above, 0)], -1)
    within = np.where(outer >= 0, np.searchsorted(rows, outer), -1).astype(np.int32)
    name = trace.event_names[trace.events["metadata"][rows]]
    path, first = contexts(within, name)
    path_of = np.where(
        around >= 0, path[np.minimum(np.searchsorted(rows, around), max(len(rows) - 1, 0))], -1
    )
    of_parent = within[first]
    return Modules(
        path_of.astype(np.int32),
        np.where(of_parent >= 0, path[np.maximum(of_parent, 0)], -1).astype(np.int32),
        name[first],
    )


def _named(trace: Trace, start: str) -> Bools:
    """Whether each event's name begins so."""
    has = np.array([name.startswith(start) for name in metadata_names(trace)], np.bool_)
    result: Bools = has[trace.events["metadata"]]
    return result


def module_nodes(trace: Trace, windows: Sequence[Windows]) -> list[Node]:
    """The tree in each set of windows, as nodes of group 0."""
    found, parent = modules(trace), parents(trace)
    pairs = kernel_launches(trace)
    if len(pairs.kernel):
        event, time_ps = pairs.launch, trace.events["duration_ps"][pairs.kernel]
        phase, path = phases_of(trace, found, event)
    else:
        event = np.flatnonzero(found.path_of >= 0)
        time_ps = trace.events["duration_ps"].astype(np.int64)
        inside = np.flatnonzero(parent >= 0)
        np.subtract.at(time_ps, parent[inside], trace.events["duration_ps"][inside])
        time_ps = np.maximum(time_ps[event], 0)
        phase, path = np.zeros(len(event), np.int64), found.path_of[event].astype(np.int64)
    n_paths = len(found.parent) + 1
    memory = _memory(trace, found, windows[0])
    keys, which = np.unique(
        np.concatenate([phase * n_paths + path + 1, np.array(sorted(memory), np.int64)]), return_inverse=True
    )
    which = which[: len(event)]
    sums = np.zeros((2, len(windows), len(keys)), np.int64)
    start = trace.events["start_ps"][event]
    for k, window in enumerate(windows):
        is_in = _are_in(window, start)
        np.add.at(sums[0, k], which[is_in], time_ps[is_in])
        np.add.at(sums[1, k], which[is_in], 1)
    branches = [
        Branch(
            (PHASES[one // n_paths], *layers_of(trace, found, one % n_paths - 1)),
            Family.OPERATION,
            sums[0, :, i].tolist(),
            sums[1, :, i].tolist(),
            PHASES[one // n_paths],
            None,
            memory.get(one),
        )
        for i, one in enumerate(keys.tolist())
        if sums[0, :, i].any() or one in memory
    ]
    return nodes_of_branches(branches, len(windows))


def _are_in(window: Windows, times: Int64s) -> Bools:
    """Whether times are in one of some windows."""
    opens, closes = window
    place = np.searchsorted(closes, times, side="right")
    is_in: Bools = place < len(opens)
    is_in[is_in] = opens[place[is_in]] <= times[is_in]
    return is_in


def _memory(trace: Trace, found: Modules, window: Windows) -> dict[int, Bytes]:
    """Bytes by key (phase · number of paths + path + 1); none if allocations were not recorded."""
    if not has_memory_events(trace):
        return {}

    def key_of(events: Int64s) -> Int64s:
        phase, path = phases_of(trace, found, events)
        keys: Int64s = phase * (len(found.parent) + 1) + path + 1
        return keys

    calls = np.flatnonzero(_named(trace, MODULE))
    return memory_by_key(trace, calls, key_of, lambda times: _are_in(window, times))


def layers_of(trace: Trace, layers: Modules, path: int) -> tuple[str, ...]:
    """The modules of a path, outermost first, at most the MAX_LAYERS innermost; one name that stands for none
    if it is −1.
    """
    names: list[str] = []
    while path >= 0 and len(names) < MAX_LAYERS:
        names.append(trace.strings.get(int(layers.name[path])))
        path = int(layers.parent[path])
    return tuple(names[::-1]) or (OUTSIDE,)


def phases_of(trace: Trace, layers: Modules, launch: Int64s) -> tuple[Int64s, Int64s]:
    """(index in PHASES, path of modules) of each launch or other event. Backward work belongs to the module
    of the forward operation that it is tied to, work that is done again in the backward pass to the module
    that does it.
    """
    parent = parents(trace)
    in_optimizer = nearest(parent, _named(trace, OPTIMIZER))[launch] >= 0
    tied, source = backward_ties(trace)
    target = nearest(parent, tied)[launch]
    is_backward = (nearest(parent, _named(trace, BACKWARD))[launch] >= 0) | (target >= 0)
    path = layers.path_of[launch].astype(np.int64)
    by_tie = is_backward & (path < 0) & (target >= 0)
    path[by_tie] = layers.path_of[source[target[by_tie]]]
    path[in_optimizer] = -1
    return np.where(in_optimizer, 2, np.where(is_backward, 1, 0)).astype(np.int64), path
