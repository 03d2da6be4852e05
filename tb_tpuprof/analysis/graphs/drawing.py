"""A graph's scopes, some of them open -> what is drawn: boxes of closed scopes, operations of open ones, and
the edges between them.

open: (graph), train          drawn:   [init]   ┌ train ────────────┐      an edge from any operation of
`init` to one of train/dense/… train/Relu               [init] ─►│ [dense] ─► Relu   │      `train/dense` is
drawn from box to box
                                                └───────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.graphs.scopes import Scopes
from tb_tpuprof.analysis.graphs.tpu_compatibility import INVALID, STATUSES, Compatibility

Ints = npt.NDArray[np.int64]
SCOPE, OPERATION, REST = 0, 1, 2
KINDS = ("scope", "operation", "rest")
MAX_CHILDREN, MAX_ITEMS, MAX_EDGES = 40, 240, 800
_OPEN_BY_ITSELF = 40


@dataclass(frozen=True)
class Drawing:
    """A row per item, frames before what is in them. `kind`: row of KINDS; `frame`: the open scope that it is
    in, -1 at the top.

    `scope` is the row of Scopes, `node` that of the graph, -1 for others; `rest` are the children beyond the
    limit together. `counts` [n, statuses] of the operations. `edges` (from, to, operations' edges in it)
    between items, `calls` the same from who calls a function. `n_cut` edges are left out.
    """

    kind: Ints
    frame: Ints
    scope: Ints
    node: Ints
    is_open: npt.NDArray[np.bool_]
    counts: Ints
    edges: Ints
    calls: Ints
    n_cut: int

    def __len__(self) -> int:
        return len(self.kind)


def drawing(
    found: Compatibility, tree: Scopes, toggled: Iterable[int] = (), told: Mapping[int, bool] | None = None
) -> Drawing:
    """The drawing with scopes open that lead to incompatible operations; `toggled` ones are the other way
    round, `told` ones as told.

    Of an open scope at most MAX_CHILDREN are drawn one by one, incompatible ones and large ones first; where
    MAX_ITEMS are drawn no further scope opens.
    """
    layout = _Layout(found, tree, set(toggled), told or {})
    layout.fill()
    return layout.drawn()


class _Layout:
    """Items as they are placed, scope by scope from the top."""

    def __init__(
        self, found: Compatibility, tree: Scopes, toggled: set[int], told: Mapping[int, bool]
    ) -> None:
        self.found, self.tree, self.toggled, self.told = found, tree, toggled, told
        n = len(tree.name)
        by_parent = np.argsort(tree.parent, kind="stable")
        self.child_rows, self.child_end = by_parent, np.searchsorted(tree.parent[by_parent], np.arange(n + 1))
        by_scope = np.argsort(tree.of_node, kind="stable")
        self.node_rows, self.node_end = by_scope, np.searchsorted(tree.of_node[by_scope], np.arange(n + 1))
        self.kind: list[int] = []
        self.frame: list[int] = []
        self.scope: list[int] = []
        self.node: list[int] = []
        self.is_open: list[bool] = []
        self.counts: list[Ints] = []
        self.of_scope = np.full(
            n, -1, np.int64
        )  # the item that stands for a closed scope, or for one left out
        self.of_node = np.full(
            len(found.graph), -1, np.int64
        )  # the item of a node that is drawn, or left out with others

    def children(self, scope: int) -> tuple[Ints, Ints]:
        """Rows of the scopes right below, and of the operations right in it."""
        scopes = self.child_rows[self.child_end[scope] : self.child_end[scope + 1]]
        return scopes, self.node_rows[self.node_end[scope] : self.node_end[scope + 1]]

    def n_children(self, scope: int) -> int:
        """How many items it takes to open a scope."""
        scopes, nodes = self.children(scope)
        return min(len(scopes) + len(nodes), MAX_CHILDREN + 1)

    def fill(self) -> None:
        """Level by level, so that what is near the top gets its place first."""
        waiting = [(0, -1)]
        while waiting:
            next_level: list[tuple[int, int]] = []
            for scope, frame in waiting:
                next_level += self._place(scope, frame)
            waiting = [(self.scope[item], item) for item in self._opened(next_level)]

    def _opened(self, candidates: list[tuple[int, int]]) -> list[int]:
        """Of scopes just placed those that open: by themselves while items are few, or as toggled or told,
        while there is room.
        """
        opened = []
        n_items = len(self.kind)
        for scope, item in candidates:
            n = self.n_children(scope)
            by_itself = bool(self.tree.counts[scope, INVALID]) and n_items + n <= _OPEN_BY_ITSELF
            if self.told.get(scope, by_itself != (scope in self.toggled)) and n_items + n <= MAX_ITEMS:
                n_items += n
                self.is_open[item] = True
                opened.append(item)
        return opened

    def _place(self, scope: int, frame: int) -> list[tuple[int, int]]:
        """Items of one open scope; those of its scopes are returned."""
        scopes, nodes = self.children(scope)
        status = self.found.status[nodes]
        invalid = np.concatenate([self.tree.counts[scopes, INVALID], (status == INVALID).astype(np.int64)])
        size = np.concatenate([self.tree.counts[scopes].sum(1), np.ones(len(nodes), np.int64)])
        order = np.lexsort((np.arange(len(size)), -size, -invalid))
        placed = []
        for at in np.sort(order[:MAX_CHILDREN]).tolist():
            if at < len(scopes):
                row = int(scopes[at])
                self.of_scope[row] = self._add(SCOPE, frame, row, -1, self.tree.counts[row])
                placed.append((row, int(self.of_scope[row])))
            else:
                node = int(nodes[at - len(scopes)])
                counts = np.bincount([self.found.status[node]], minlength=len(STATUSES)).astype(np.int64)
                self.of_node[node] = self._add(OPERATION, frame, scope, node, counts)
        left = order[MAX_CHILDREN:]
        if len(left):
            rest_scopes, rest_nodes = (
                scopes[left[left < len(scopes)]],
                nodes[left[left >= len(scopes)] - len(scopes)],
            )
            counts = self.tree.counts[rest_scopes].sum(0) + np.bincount(
                self.found.status[rest_nodes], minlength=len(STATUSES)
            )
            item = self._add(REST, frame, scope, -1, counts)
            self.of_scope[rest_scopes] = item
            self.of_node[rest_nodes] = item
        return placed

    def _add(self, kind: int, frame: int, scope: int, node: int, counts: Ints) -> int:
        self.kind.append(kind)
        self.frame.append(frame)
        self.scope.append(scope)
        self.node.append(node)
        self.is_open.append(False)
        self.counts.append(counts)
        return len(self.kind) - 1

    def drawn(self) -> Drawing:
        """All items with the edges between them."""
        stands = self._stands()
        graph = self.found.graph
        index = {
            name: row
            for row, (name, path) in enumerate(zip(self.tree.function, self.tree.path, strict=True))
            if name and name == path
        }
        of_function = np.array([self._of_whole(index.get(name, -1)) for name in graph.functions], np.int64)
        edges, n_cut = self._joined(stands[graph.edges[:, 0]], stands[graph.edges[:, 1]])
        callee = of_function[graph.calls[:, 1]] if len(of_function) else np.empty(0, np.int64)
        calls, n_more = self._joined(stands[graph.calls[:, 0]], callee)
        counts = np.array(self.counts, np.int64).reshape(len(self.kind), len(STATUSES))
        kind, frame, scope, node = (
            np.array(values, np.int64) for values in (self.kind, self.frame, self.scope, self.node)
        )
        return Drawing(
            kind, frame, scope, node, np.array(self.is_open, np.bool_), counts, edges, calls, n_cut + n_more
        )

    def _stands(self) -> Ints:
        """The item that stands for each node of the graph."""
        above = self.of_scope.copy()
        is_open = np.array([*self.is_open, False], np.bool_)
        for row in range(1, len(above)):
            parent = int(above[self.tree.parent[row]])
            if above[row] < 0 or (parent >= 0 and not is_open[parent]):
                above[row] = parent
        closed = above[self.tree.of_node]
        return np.where(self.of_node >= 0, self.of_node, closed)

    def _of_whole(self, row: int) -> int:
        """The closed box that a function is in; -1 where it is open or not drawn."""
        while row > 0:
            item = int(self.of_scope[row])
            if item >= 0:
                return -1 if self.is_open[item] else item
            row = int(self.tree.parent[row])
        return -1

    def _joined(self, start: Ints, end: Ints) -> tuple[Ints, int]:
        """Distinct pairs of different items with how many edges each stands for, the thickest first; and how
        many pairs are left out.
        """
        drawn = (start >= 0) & (end >= 0) & (start != end)
        n = max(len(self.kind), 1)
        pairs, counts = np.unique(start[drawn] * n + end[drawn], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MAX_EDGES]
        kept = pairs[order]
        return np.stack([kept // n, kept % n, counts[order].astype(np.int64)], 1), len(pairs) - len(kept)
