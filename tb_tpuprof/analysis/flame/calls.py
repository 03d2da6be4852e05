"""The calls of one window in time order, as nodes.

    thread    ├ train ─────────────────┤        train
              │ ├ load ──┤ ▪▪▪ ├ f ──┤ │          load, (3 smaller), f

Calls too short to be seen are summed up between their longer neighbors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.flame.frames import Family, Frames
from tb_tpuprof.analysis.flame.nodes import LEAST_SHARE, MAX_DEPTH, MAX_NODES, Node, in_order
from tb_tpuprof.analysis.flame.stacks import Stacks, contexts_of_line
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Calls:
    """Events of a line that run in a window, in order: clipped start and duration in ps, position of the
    parent among them (-1 for none), and node of the tree.
    """

    start: Int64s
    duration: Int64s
    parent: Int64s
    node: npt.NDArray[np.int32]


def calls_in_order(
    trace: Trace, tree: Stacks, found: Frames, groups: tuple[int, ...], window: tuple[int, int]
) -> list[Node]:
    """The calls of some groups in a window (ps); a node's `start_ps` counts from the window's start. Each
    group is one line of this host.
    """
    nodes: list[Node] = []
    for place, group in enumerate(groups):
        calls = _calls_of(trace, tree, tree.line_group.index(group), window)
        first = len(nodes)
        for node in _nodes_of(trace, tree, found, calls, (window, MAX_NODES // len(groups))):
            node.group = place
            node.parent += first if node.parent >= 0 else 0
            nodes.append(node)
    return in_order(nodes)


def _calls_of(trace: Trace, tree: Stacks, number: int, window: tuple[int, int]) -> _Calls:
    """`number`: index of the line in the tree."""
    line = contexts_of_line(trace, tree.lines[number])
    before = int(np.searchsorted(line.start, window[1]))
    start, end = line.start[:before], line.start[:before] + line.duration[:before]
    rows = np.flatnonzero((end > window[0]) & (end > start))
    begin = np.maximum(start[rows], window[0]) - window[0]
    above = line.parent[rows].astype(np.int64)
    position = np.minimum(np.searchsorted(rows, above), max(len(rows) - 1, 0))
    is_inside = (above >= 0) & (rows[position] == above) if len(rows) else np.zeros(0, np.bool_)
    parent = np.where(is_inside, position, -1)
    duration = _ends(begin, np.minimum(end[rows], window[1]) - window[0], parent) - begin
    return _Calls(begin, duration, parent, tree.node_of[number][line.context[rows]])


def _ends(begin: Int64s, end: Int64s, parent: Int64s) -> Int64s:
    """The ends of calls that overlap the next one of the same caller: when that one begins."""
    order = np.argsort(parent, kind="stable")
    is_next = parent[order][1:] == parent[order][:-1]
    result = end.copy()
    result[order[:-1][is_next]] = np.minimum(end[order[:-1][is_next]], begin[order[1:][is_next]])
    for _ in range(MAX_DEPTH):
        cut = np.where(parent >= 0, np.minimum(result, result[parent]), result)
        if np.array_equal(cut, result):
            break
        result = cut
    trimmed: Int64s = np.maximum(result, begin)
    return trimmed


def _nodes_of(
    trace: Trace, tree: Stacks, found: Frames, calls: _Calls, limits: tuple[tuple[int, int], int]
) -> list[Node]:
    window, max_nodes = limits
    inside = calls.parent >= 0
    within = np.bincount(
        calls.parent[inside], weights=calls.duration[inside], minlength=len(calls.parent)
    ).astype(np.int64)
    own = np.maximum(calls.duration - within, 0)
    is_kept = _kept(calls, LEAST_SHARE * (window[1] - window[0]), max_nodes)
    rows = np.flatnonzero(is_kept)
    number = np.full(len(calls.parent) + 1, -1)
    number[rows] = np.arange(len(rows))
    nodes = [
        Node(
            0, int(number[calls.parent[row]]), trace.strings.get(int(tree.name[calls.node[row]])),
            int(found.family[calls.node[row]]), [int(own[row])], [int(calls.duration[row])], [1], 0,
            int(calls.start[row]),
        )
        for row in rows.tolist()
    ]  # fmt: skip
    return nodes + _short_ones(calls, is_kept, number)


def _kept(calls: _Calls, least_ps: float, max_nodes: int) -> Bools:
    """The longest calls whose parents are kept, too."""
    rows = np.flatnonzero(calls.duration >= max(least_ps, 1))
    rows = np.sort(rows[np.argsort(-calls.duration[rows], kind="stable")][:max_nodes])
    result = np.zeros(len(calls.parent), np.bool_)
    depth: dict[int, int] = {-1: 0}
    for row, parent in zip(rows.tolist(), calls.parent[rows].tolist(), strict=True):
        if parent in depth and depth[parent] < MAX_DEPTH:
            depth[row] = depth[parent] + 1
            result[row] = True
    return result


def _short_ones(calls: _Calls, is_kept: Bools, number: npt.NDArray[np.integer]) -> list[Node]:
    """One node for each run of short siblings between longer ones."""
    is_sibling = (calls.parent < 0) | is_kept[calls.parent]
    rows = np.flatnonzero(is_sibling)
    rows = rows[np.argsort(calls.parent[rows], kind="stable")]
    is_short = ~is_kept[rows]
    follows = np.append(False, (calls.parent[rows][1:] == calls.parent[rows][:-1]) & is_short[:-1])
    short = np.flatnonzero(is_short)
    run = np.cumsum(~follows[: len(rows)])[short]
    _, first, which = np.unique(run, return_index=True, return_inverse=True)
    total = np.bincount(which, weights=calls.duration[rows[short]]).astype(np.int64).tolist()
    counts = np.bincount(which).tolist()
    return [
        Node(
            0, int(number[calls.parent[rows[short[i]]]]), "", Family.RUNTIME, [total[k]], [total[k]],
            [counts[k]], counts[k], int(calls.start[rows[short[i]]]),
        )
        for k, i in enumerate(first.tolist())
    ]  # fmt: skip
