"""Statuses of a graph's operations -> a tree of its name scopes and functions, each with the number of its
operations by status.
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
    """A row per scope, parents before their children; `counts` [n, statuses] include the scopes below. Row 0
    is the whole graph.

    `of_node` is the row of the scope that counts each node of the graph. `function` is the name of the
    function that contains a scope, empty in the graph itself. `n_merged` scopes were too many or too deep:
    their operations count in the nearest scope above.
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
        """The child with that name, created if necessary; -1 if there are too many scopes."""
        existing = self.children[row].get(name, -1)
        if existing >= 0 or len(self.name) >= MAX_SCOPES:
            return existing
        self.name.append(name)
        self.path.append(path)
        self.function.append(function)
        self.parent.append(row)
        self.children.append({})
        self.children[row][name] = len(self.name) - 1
        return len(self.name) - 1


def scopes(checked: Compatibility) -> Scopes:
    """The tree. Siblings are sorted by their number of incompatible operations, then by size."""
    graph = checked.graph
    n_scopes = max(len(graph.scope.strings), 1)
    keys, key_of_node = np.unique(
        (graph.function.astype(np.int64) + 1) * n_scopes + graph.scope.codes, return_inverse=True
    )
    counts_of_scope = np.bincount(
        key_of_node.reshape(-1) * len(STATUSES) + checked.status, minlength=len(keys) * len(STATUSES)
    ).reshape(len(keys), len(STATUSES))
    tree = _Tree([GRAPH], [GRAPH], [""], [-1], [{}])
    rows, n_merged = np.zeros(len(keys), np.int64), 0
    # The most important scopes get their rows first.
    order = np.lexsort((np.arange(len(keys)), -counts_of_scope.sum(1), -counts_of_scope[:, INVALID]))
    for key in order.tolist():
        function, scope = divmod(int(keys[key]), n_scopes)
        rows[key], is_whole = _row(
            tree, graph.functions[function - 1] if function else "", graph.scope.strings[scope]
        )
        n_merged += not is_whole
    counts = np.zeros((len(tree.name), len(STATUSES)), np.int64)
    np.add.at(counts, rows, counts_of_scope)
    for row in range(len(tree.name) - 1, 0, -1):
        counts[tree.parent[row]] += counts[row]
    return _sorted(tree, counts, rows[key_of_node.reshape(-1)], n_merged)


def _row(tree: _Tree, function: str, scope: str) -> tuple[int, bool]:
    """The row of a scope, or of the nearest scope above that has one; and whether it is the scope itself."""
    row = 0
    if function:
        for name, path in ((FUNCTIONS, FUNCTIONS), (function, function)):
            child = tree.child(row, name, function if name == function else "", path)
            if child < 0:
                return row, False
            row = child
    parts = scope.split("/", MAX_DEPTH) if scope else []
    for depth, part in enumerate(parts[:MAX_DEPTH]):
        child = tree.child(row, part, function, "/".join(parts[: depth + 1]))
        if child < 0:
            return row, False
        row = child
    return row, len(parts) <= MAX_DEPTH


def _sorted(tree: _Tree, counts: Ints, of_node: Ints, n_merged: int) -> Scopes:
    """Sort depth first, so that rows read as a tree."""
    sizes, invalid = counts.sum(1).tolist(), counts[:, INVALID].tolist()
    order: list[int] = []
    stack, row_of = [0], dict[int, int]()
    while stack:
        row = stack.pop()
        row_of[row] = len(order)
        order.append(row)
        children = sorted(
            tree.children[row].values(), key=lambda child: (-invalid[child], -sizes[child], tree.name[child])
        )
        stack += reversed(children)
    parent = np.array([row_of.get(tree.parent[row], -1) for row in order], np.int64)
    name, path, function = (
        tuple(column[row] for row in order) for column in (tree.name, tree.path, tree.function)
    )
    new_row = np.empty(len(order), np.int64)
    new_row[order] = np.arange(len(order))
    return Scopes(name, path, function, parent, counts[order], new_row[of_node], n_merged)
