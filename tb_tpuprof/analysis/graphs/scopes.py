"""Statuses of a graph's operations -> a tree of its name scopes and functions, each with how many of its
operations have which status.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.graphs.tpu_compatibility import INVALID, STATUSES, Compatibility

MAX_SCOPES = 20_000
MAX_DEPTH = 40
GRAPH, FUNCTIONS = "(graph)", "(functions)"
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scopes:
    """A row per scope, parents before their children; `counts` [n, statuses] include what lies below. Row 0
    is the whole graph.

    `of_node` is the row of the scope that each node of the graph counts in. `function` is the function's name
    that a scope lies in, empty in the graph itself. `n_merged` scopes were too many or too deep: their
    operations count in the nearest scope that is there.
    """

    name: tuple[str, ...]
    path: tuple[str, ...]
    function: tuple[str, ...]
    parent: Ints
    counts: Ints
    of_node: Ints
    n_merged: int


@dataclass
class _Tree:
    name: list[str]
    path: list[str]
    function: list[str]
    parent: list[int]
    children: list[dict[str, int]]

    def child(self, row: int, name: str, function: str, path: str) -> int:
        """The child of that name, made where there is none; -1 where there are too many."""
        known = self.children[row].get(name, -1)
        if known >= 0 or len(self.name) >= MAX_SCOPES:
            return known
        self.name.append(name)
        self.path.append(path)
        self.function.append(function)
        self.parent.append(row)
        self.children.append({})
        self.children[row][name] = len(self.name) - 1
        return len(self.name) - 1


def scopes(found: Compatibility) -> Scopes:
    """The tree. Of siblings those with the most incompatible operations come first, then by size."""
    graph = found.graph
    n_scopes = max(len(graph.scope.strings), 1)
    keys, which = np.unique(
        (graph.function.astype(np.int64) + 1) * n_scopes + graph.scope.codes, return_inverse=True
    )
    own = np.bincount(
        which.reshape(-1) * len(STATUSES) + found.status, minlength=len(keys) * len(STATUSES)
    ).reshape(len(keys), len(STATUSES))
    tree = _Tree([GRAPH], [GRAPH], [""], [-1], [{}])
    rows, n_merged = np.zeros(len(keys), np.int64), 0
    # What matters most gets its place first.
    order = np.lexsort((np.arange(len(keys)), -own.sum(1), -own[:, INVALID]))
    for at in order.tolist():
        function, scope = divmod(int(keys[at]), n_scopes)
        rows[at], is_whole = _row(
            tree, graph.functions[function - 1] if function else "", graph.scope.strings[scope]
        )
        n_merged += not is_whole
    counts = np.zeros((len(tree.name), len(STATUSES)), np.int64)
    np.add.at(counts, rows, own)
    for row in range(len(tree.name) - 1, 0, -1):
        counts[tree.parent[row]] += counts[row]
    return _sorted(tree, counts, rows[which.reshape(-1)], n_merged)


def _row(tree: _Tree, function: str, scope: str) -> tuple[int, bool]:
    """The row of a scope, or of the nearest above it that there is room for; whether it is the
    scope itself.
    """
    row = 0
    if function:
        for name, path in ((FUNCTIONS, FUNCTIONS), (function, function)):
            below = tree.child(row, name, function if name == function else "", path)
            if below < 0:
                return row, False
            row = below
    parts = scope.split("/", MAX_DEPTH) if scope else []
    for depth, part in enumerate(parts[:MAX_DEPTH]):
        below = tree.child(row, part, function, "/".join(parts[: depth + 1]))
        if below < 0:
            return row, False
        row = below
    return row, len(parts) <= MAX_DEPTH


def _sorted(tree: _Tree, counts: Ints, of_node: Ints, n_merged: int) -> Scopes:
    """Depth first, so that rows read as a tree."""
    sizes, invalid = counts.sum(1).tolist(), counts[:, INVALID].tolist()
    order: list[int] = []
    waiting, place = [0], dict[int, int]()
    while waiting:
        row = waiting.pop()
        place[row] = len(order)
        order.append(row)
        below = sorted(
            tree.children[row].values(), key=lambda child: (-invalid[child], -sizes[child], tree.name[child])
        )
        waiting += reversed(below)
    parent = np.array([place.get(tree.parent[row], -1) for row in order], np.int64)
    name, path, function = (
        tuple(column[row] for row in order) for column in (tree.name, tree.path, tree.function)
    )
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return Scopes(name, path, function, parent, counts[order], places[of_node], n_merged)
