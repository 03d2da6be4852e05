"""One function from both sides: who calls it, what it calls, its time in each step, its longest calls.

    main > train > load > decode        callers of `load`: train > main        callees of `load`: decode, get
    main > eval  > load > get                              eval > main

A recursive call belongs to the outermost one: no time counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import nearest
from tb_tpuprof.analysis.flame.frames import Frames
from tb_tpuprof.analysis.flame.nodes import Node, in_order, outermost_of
from tb_tpuprof.analysis.flame.stacks import Stacks, Windows, contexts_of_line
from tb_tpuprof.native import contexts, stretches
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
N_CALLS, MAX_LEVELS, MAX_SIDE = 20, 40, 400


@dataclass(frozen=True)
class Calls:
    """Single calls: rows of events, starts and durations in ps on the host's clock."""

    event: Int64s
    start_ps: Int64s
    duration_ps: Int64s


@dataclass(frozen=True)
class FunctionSides:
    """`callers`, `callees`: trees whose roots are the function itself. A caller has the times and calls of
    the function's calls that it leads to, a callee those that it takes below the function. `own_ps`,
    `total_ps`: of the function; `step_own_ps`, `step_total_ps`: in each step.
    """

    family: int
    own_ps: int
    total_ps: int
    n_calls: int
    callers: list[Node]
    callees: list[Node]
    step_own_ps: Int64s
    step_total_ps: Int64s
    longest: Calls


def function_sides(
    trace: Trace, tree: Stacks, found: Frames, name: str, windows: tuple[Windows, Windows]
) -> FunctionSides | None:
    """The function with an event's name, in the first set of windows of the tree; None if it has no node.
    `windows`: those of the tree, and those of all steps.
    """
    nodes = np.flatnonzero(tree.name == _string_id(trace, tree, name))
    is_device = found.is_device[nodes]
    nodes = nodes[is_device] if is_device.any() else nodes  # a kernel, not its launch on the host
    if not len(nodes):
        return None
    outer = nodes[outermost_of(tree, nodes)]
    step_own_ps, step_total_ps = _by_step(trace, tree, nodes, windows[1])
    largest = int(nodes[np.argmax(tree.total_ps[0, nodes])])
    return FunctionSides(
        int(found.family[largest]),
        int(tree.own_ps[0, nodes].sum()),
        int(tree.total_ps[0, outer].sum()),
        int(tree.calls[0, nodes].sum()),
        _callers(trace, tree, found, outer),
        _callees(trace, tree, found, outer),
        step_own_ps,
        step_total_ps,
        _longest(trace, tree, nodes, windows[0]),
    )


def _string_id(trace: Trace, tree: Stacks, name: str) -> int:
    return next((i for i in np.unique(tree.name).tolist() if trace.strings.get(i) == name), -1)


def _callers(trace: Trace, tree: Stacks, found: Frames, outer: npt.NDArray[np.intp]) -> list[Node]:
    """The inverted tree: level by level, nodes of the same names on the way from the function are one."""
    result = [_node(-1, _name(trace, tree, int(outer[0])), int(found.family[outer[0]]), tree, outer)]
    place, at, start = np.zeros(len(outer), np.int64), tree.above[outer].astype(np.int64), outer
    for _ in range(MAX_LEVELS):
        place, at, start = place[at >= 0], at[at >= 0], start[at >= 0]
        if not len(at) or len(result) > MAX_SIDE:
            break
        key = (place << 32) | tree.name[at].astype(np.int64)
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        n_before = len(result)
        for k, i in enumerate(first.tolist()):
            family = int(found.family[at[i]])
            result.append(
                _node(int(place[i]), _name(trace, tree, int(at[i])), family, tree, start[which == k])
            )
        place, at = which + n_before, tree.above[at].astype(np.int64)
    return in_order(_largest(result))


def _callees(trace: Trace, tree: Stacks, found: Frames, outer: npt.NDArray[np.intp]) -> list[Node]:
    """The trees below the function as one."""
    is_outer = np.zeros(len(tree), np.bool_)
    is_outer[outer] = True
    rows = np.flatnonzero(nearest(tree.above, is_outer) >= 0)
    above = np.searchsorted(rows, tree.above[rows]).astype(np.int32)
    above[is_outer[rows]] = -1
    merged, first = contexts(above, tree.name[rows])
    own, total, calls = (
        np.bincount(merged, weights=column[0, rows], minlength=len(first)).astype(np.int64)
        for column in (tree.own_ps, tree.total_ps, tree.calls)
    )
    parents = above[first]
    result = [
        Node(
            0, int(merged[parents[k]]) if parents[k] >= 0 else -1, _name(trace, tree, int(rows[i])),
            int(found.family[rows[i]]), [int(own[k])], [int(total[k])], [int(calls[k])],
        )
        for k, i in enumerate(first.tolist()[: 50 * MAX_SIDE])
    ]  # fmt: skip
    return in_order(_largest(result))


def _node(parent: int, name: str, family: int, tree: Stacks, outer: npt.NDArray[np.intp]) -> Node:
    own, total, calls = (int(column[0, outer].sum()) for column in (tree.own_ps, tree.total_ps, tree.calls))
    return Node(0, parent, name, family, [own], [total], [calls])


def _largest(nodes: list[Node]) -> list[Node]:
    """The largest nodes whose parents are among them."""
    limit = sorted((node.total_ps[0] for node in nodes), reverse=True)[:MAX_SIDE][-1]
    place: dict[int, int] = {-1: -1}
    result: list[Node] = []
    for i, node in enumerate(nodes):
        if node.parent in place and node.total_ps[0] >= max(limit, 1) and len(result) < MAX_SIDE:
            place[i] = len(result)
            node.parent = place[node.parent]
            result.append(node)
    return result


def _name(trace: Trace, tree: Stacks, node: int) -> str:
    return trace.strings.get(int(tree.name[node]))


def _by_step(
    trace: Trace, tree: Stacks, nodes: npt.NDArray[np.intp], steps: Windows
) -> tuple[Int64s, Int64s]:
    is_function = np.zeros(len(tree), np.bool_)
    is_function[nodes] = True
    is_inside = nearest(tree.above, is_function) >= 0
    sums = np.zeros((2, len(steps[0])), np.int64)
    for line, node_of in zip(tree.lines, tree.node_of, strict=True):
        for row, chosen in enumerate((is_function, is_inside)):
            code = np.where(chosen[node_of], 0, -1).astype(np.int32)
            if not (code == 0).any():
                continue
            part = contexts_of_line(trace, line)
            begin, end, window, _, _ = stretches(
                part.start, part.duration, part.parent, (part.context, code), steps
            )
            np.add.at(sums[row], window, end - begin)
    return sums[0], sums[1]


def _longest(trace: Trace, tree: Stacks, nodes: npt.NDArray[np.intp], windows: Windows) -> Calls:
    """The longest calls that overlap the windows, whole."""
    is_function = np.zeros(len(tree), np.bool_)
    is_function[nodes] = True
    parts: list[tuple[Int64s, Int64s, Int64s]] = []
    for line, node_of in zip(tree.lines, tree.node_of, strict=True):
        is_chosen = is_function[node_of]
        if not is_chosen.any():
            continue
        part = contexts_of_line(trace, line)
        rows = np.flatnonzero(is_chosen[part.context])
        start, duration = part.start[rows], part.duration[rows]
        window = np.searchsorted(windows[1], start, side="right")
        is_in = window < len(windows[0])
        is_in[is_in] = windows[0][window[is_in]] < start[is_in] + np.maximum(duration[is_in], 1)
        rows = rows[is_in]
        rows = rows[np.argsort(-part.duration[rows], kind="stable")[:N_CALLS]]
        parts.append((rows + part.rows.start, part.start[rows], part.duration[rows]))
    if not parts:
        empty = np.empty(0, np.int64)
        return Calls(empty, empty, empty)
    event, start, duration = (np.concatenate([part[i] for part in parts]) for i in range(3))
    top = np.argsort(-duration, kind="stable")[:N_CALLS]
    return Calls(event[top], start[top], duration[top])
