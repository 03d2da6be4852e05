"""Threads → one tree of their calls, with the time of each call path within windows.

    thread    ├ train ────────────────────────┤├ train ───────┤       train         own 3, total 17
                ├ load ──┤ ├ load ──┤             ├ load ─┤             load        own 10, total 14
                  ├ get ┤                           ├ get ┤               get       own 4

Calls with the same names on the way to their root are one node. A line's contexts are these nodes already
(`events/line_contexts.py`), so that the time is summed in one compiled walk over its events, and the trees of
several lines are merged by merging their contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import LineContexts, line_contexts
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.native import contexts, own_times, summed_up
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Windows = tuple[Int64s, Int64s]


@dataclass(frozen=True)
class ContextsOfLine:
    """The contexts of one line, computed once per trace."""

    line: int

    def __call__(self, trace: Trace) -> LineContexts:
        """The contexts."""
        return line_contexts(trace, self.line)


@dataclass(frozen=True)
class Stacks:
    """A tree of calls: nodes by number, parents before their children.

    By node: `group`, the group of lines that it belongs to; `above`, its parent (-1 for a root); `name`, the
    string of its name; `metadata`, a metadata row of its events. `own_ps`, `total_ps`, `calls`:
    int64[k, nodes] for k sets of windows: time without and with the calls below, and number of events.
    `lines`: the lines; `line_group`: for each of them its group, `node_of`: the node of each of its contexts.
    """

    group: npt.NDArray[np.uint16]
    above: Int32s
    name: Int32s
    metadata: Int64s
    own_ps: Int64s
    total_ps: Int64s
    calls: Int64s
    lines: tuple[int, ...]
    line_group: tuple[int, ...]
    node_of: tuple[Int32s, ...]

    def __len__(self) -> int:
        return len(self.above)


def contexts_of_line(trace: Trace, line: int) -> LineContexts:
    """The contexts of one line, kept with the trace."""
    return trace.memo.get(ContextsOfLine(line), trace)


def stacks(trace: Trace, groups: Sequence[Sequence[int]], windows: Sequence[Windows]) -> Stacks:
    """The tree of some groups of lines; lines of one group are merged. `windows`: one or more sets, each
    ascending and disjoint, in ps.
    """
    lines = [(number, line) for number, group in enumerate(groups) for line in group]
    parts = [contexts_of_line(trace, line) for _, line in lines]
    sizes = np.cumsum([0, *(len(part) for part in parts)])
    n = int(sizes[-1])
    above, group = np.full(n, -1, np.int32), np.zeros(n, np.uint16)
    metadata, sums = np.zeros(n, np.int64), np.zeros((2, len(windows), n), np.int64)
    for (number, _), part, first in zip(lines, parts, sizes.tolist(), strict=False):
        span = slice(first, first + len(part))
        above[span] = np.where(part.above >= 0, part.above + np.int32(first), np.int32(-1))
        group[span], metadata[span] = number, part.metadata
        for k, window in enumerate(windows):
            sums[:, k, span] = own_times(
                part.start, part.duration, part.parent, part.context, window, len(part)
            )
    name = trace.event_names[metadata]
    node, first_of = _merged(above, name, group, metadata)
    if len(first_of) == n:
        merged = sums
    else:
        merged = np.zeros((2, len(windows), len(first_of)), np.int64)
        for kind in range(2):
            for k in range(len(windows)):
                np.add.at(merged[kind, k], node, sums[kind, k])
    parent = above[first_of]
    parents = np.where(parent >= 0, node[np.maximum(parent, 0)], np.int32(-1)).astype(np.int32)
    return Stacks(
        group[first_of],
        parents,
        name[first_of],
        metadata[first_of],
        merged[0],
        summed_up(parents, merged[0]),
        merged[1],
        tuple(line for _, line in lines),
        tuple(number for number, _ in lines),
        tuple(node[a:b] for a, b in zip(sizes[:-1].tolist(), sizes[1:].tolist(), strict=True)),
    )


def _merged(
    above: Int32s, name: Int32s, group: npt.NDArray[np.uint16], metadata: Int64s
) -> tuple[Int32s, Int32s]:
    """(node of each context, first context of each node): contexts of one group with the same names on the
    way to their roots are one node. Groups are contiguous.

    Contexts of a line are different already. So they stay what they are in a group whose roots have different
    names, where each name has one row of metadata: that is what saves a trace of millions of paths the
    merging.
    """
    n_groups = int(group[-1]) + 1 if len(group) else 0
    bounds = np.searchsorted(group, np.arange(n_groups + 1))
    nodes, firsts, n_nodes = [], [], 0
    for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        span = slice(first, end)
        if _are_different(above[span], name[span], metadata[span]):
            node = first_of = np.arange(end - first, dtype=np.int32)
        else:
            node, first_of = contexts(np.maximum(above[span] - np.int32(first), np.int32(-1)), name[span])
        nodes.append(node + np.int32(n_nodes))
        firsts.append(first_of + np.int32(first))
        n_nodes += len(first_of)
    nothing = np.empty(0, np.int32)
    return np.concatenate([nothing, *nodes]), np.concatenate([nothing, *firsts])


def _are_different(above: Int32s, name: Int32s, metadata: Int64s) -> bool:
    """Whether all contexts of a group have different paths of names."""
    roots = name[above < 0]
    if len(np.unique(roots)) < len(roots):
        return False
    rows = np.flatnonzero(marked(metadata, int(metadata.max(initial=0)) + 1))
    name_of = np.empty(int(metadata.max(initial=0)) + 1, np.int32)
    name_of[metadata] = name
    return len(np.unique(name_of[rows])) == len(rows)
