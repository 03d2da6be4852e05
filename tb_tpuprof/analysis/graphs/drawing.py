"""A graph's scopes, some of them open -> the items to draw: boxes of closed scopes, operations of open ones,
and the edges between them.

    open: (graph), train          drawn:            ┌ train ────────────┐
    train/dense/… train/Relu               [init] ─►│ [dense] ─► Relu   │
                                                    └───────────────────┘

An edge from any operation of `init` to one of `train/dense` is drawn from box to box.
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
    """A row per item, frames before their contents. `kind`: row of KINDS; `frame`: the open scope that
    contains the item, -1 at the top.

    `scope` is the row of Scopes, `node` that of the graph, -1 for other items; a `rest` item stands for all
    children beyond the limit. `counts` [n, statuses] of the operations. `edges` (from, to, number of the
    operations' edges) between items, `calls` the same from callers to functions. `n_cut` edges are left out.
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
    checked: Compatibility,
    tree: Scopes,
    toggled: Iterable[int] = (),
    forced: Mapping[int, bool] | None = None,
) -> Drawing:
    """Draw the graph with the scopes open that lead to incompatible operations; `toggled` scopes are
    inverted, and `forced` gives the state of others.

    An open scope shows at most MAX_CHILDREN children separately, incompatible ones and large ones first; once
    MAX_ITEMS are drawn, no further scope opens.
    """
    layout = _Layout(checked, tree, set(toggled), forced or {})
    layout.fill()
    return layout.drawn()


class _Layout:
    """Items in the order of placement, scope by scope from the top."""

    def __init__(
        self, checked: Compatibility, tree: Scopes, toggled: set[int], forced: Mapping[int, bool]
    ) -> None:
        self.checked, self.tree, self.toggled, self.forced = checked, tree, toggled, forced
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
        self.of_scope = np.full(n, -1, np.int64)  # the item that shows a closed scope, or one in a `rest`
        self.of_node = np.full(len(checked.graph), -1, np.int64)  # the item that shows a node, or its `rest`

    def children(self, scope: int) -> tuple[Ints, Ints]:
        """Rows of the scopes directly below, and of the operations directly in it."""
        scopes = self.child_rows[self.child_end[scope] : self.child_end[scope + 1]]
        return scopes, self.node_rows[self.node_end[scope] : self.node_end[scope + 1]]

    def n_children(self, scope: int) -> int:
        """Number of items that opening a scope adds."""
        scopes, nodes = self.children(scope)
        return min(len(scopes) + len(nodes), MAX_CHILDREN + 1)

    def fill(self) -> None:
        """Place items level by level, so that scopes near the top get theirs first."""
        open_scopes = [(0, -1)]
        while open_scopes:
            next_level: list[tuple[int, int]] = []
            for scope, frame in open_scopes:
                next_level += self._place(scope, frame)
            open_scopes = [(self.scope[item], item) for item in self._opened(next_level)]

    def _opened(self, candidates: list[tuple[int, int]]) -> list[int]:
        """The newly placed scopes that open: by default while items are few, or as toggled or forced, while
        there is room.
        """
        opened = []
        n_items = len(self.kind)
        for scope, item in candidates:
            n = self.n_children(scope)
            by_default = bool(self.tree.counts[scope, INVALID]) and n_items + n <= _OPEN_BY_ITSELF
            if self.forced.get(scope, by_default != (scope in self.toggled)) and n_items + n <= MAX_ITEMS:
                n_items += n
                self.is_open[item] = True
                opened.append(item)
        return opened

    def _place(self, scope: int, frame: int) -> list[tuple[int, int]]:
        """Place the items of one open scope; returns those of its scopes."""
        scopes, nodes = self.children(scope)
        status = self.checked.status[nodes]
        invalid = np.concatenate([self.tree.counts[scopes, INVALID], (status == INVALID).astype(np.int64)])
        size = np.concatenate([self.tree.counts[scopes].sum(1), np.ones(len(nodes), np.int64)])
        order = np.lexsort((np.arange(len(size)), -size, -invalid))
        placed = []
        for child in np.sort(order[:MAX_CHILDREN]).tolist():
            if child < len(scopes):
                row = int(scopes[child])
                self.of_scope[row] = self._add(SCOPE, frame, row, -1, self.tree.counts[row])
                placed.append((row, int(self.of_scope[row])))
            else:
                node = int(nodes[child - len(scopes)])
                counts = np.bincount([self.checked.status[node]], minlength=len(STATUSES)).astype(np.int64)
                self.of_node[node] = self._add(OPERATION, frame, scope, node, counts)
        beyond = order[MAX_CHILDREN:]
        if len(beyond):
            rest_scopes, rest_nodes = (
                scopes[beyond[beyond < len(scopes)]],
                nodes[beyond[beyond >= len(scopes)] - len(scopes)],
            )
            counts = self.tree.counts[rest_scopes].sum(0) + np.bincount(
                self.checked.status[rest_nodes], minlength=len(STATUSES)
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
        item_of_node = self._item_of_node()
        graph = self.checked.graph
        index = {
            name: row
            for row, (name, path) in enumerate(zip(self.tree.function, self.tree.path, strict=True))
            if name and name == path
        }
        of_function = np.array(
            [self._box_of_function(index.get(name, -1)) for name in graph.functions], np.int64
        )
        edges, n_cut = self._merged_edges(item_of_node[graph.edges[:, 0]], item_of_node[graph.edges[:, 1]])
        callee = of_function[graph.calls[:, 1]] if len(of_function) else np.empty(0, np.int64)
        calls, n_more = self._merged_edges(item_of_node[graph.calls[:, 0]], callee)
        counts = np.array(self.counts, np.int64).reshape(len(self.kind), len(STATUSES))
        kind, frame, scope, node = (
            np.array(values, np.int64) for values in (self.kind, self.frame, self.scope, self.node)
        )
        return Drawing(
            kind, frame, scope, node, np.array(self.is_open, np.bool_), counts, edges, calls, n_cut + n_more
        )

    def _item_of_node(self) -> Ints:
        """The item that shows each node of the graph."""
        item_of_scope = self.of_scope.copy()
        is_open = np.array([*self.is_open, False], np.bool_)
        for row in range(1, len(item_of_scope)):
            parent = int(item_of_scope[self.tree.parent[row]])
            if item_of_scope[row] < 0 or (parent >= 0 and not is_open[parent]):
                item_of_scope[row] = parent
        closed = item_of_scope[self.tree.of_node]
        return np.where(self.of_node >= 0, self.of_node, closed)

    def _box_of_function(self, row: int) -> int:
        """The closed box that contains a function; -1 if it is open or not drawn."""
        while row > 0:
            item = int(self.of_scope[row])
            if item >= 0:
                return -1 if self.is_open[item] else item
            row = int(self.tree.parent[row])
        return -1

    def _merged_edges(self, start: Ints, end: Ints) -> tuple[Ints, int]:
        """Distinct pairs of different items with their number of edges, the thickest first; and the number of
        pairs left out.
        """
        drawn = (start >= 0) & (end >= 0) & (start != end)
        n = max(len(self.kind), 1)
        pairs, counts = np.unique(start[drawn] * n + end[drawn], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MAX_EDGES]
        selected = pairs[order]
        return np.stack([selected // n, selected % n, counts[order].astype(np.int64)], 1), len(pairs) - len(
            selected
        )
