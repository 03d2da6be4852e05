"""Compiled operations → a tree of their time: by program, by category, or by the framework's names.

    program      program → category → duplicates → operation
    category     category → duplicates → operation
    provenance   program → the parts of the framework's name → category → duplicates → operation

Self times are summed, so that a node's time is that of its children; the time of an operation that only runs
others counts for these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.work import Work, join_work, no_work, summed_work
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, words_of
from tb_tpuprof.analysis.ops.metrics import IDLE, sum_by

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
GROUPINGS = ("program", "category", "provenance")
KINDS = ("all", "program", "category", "scope", "duplicates", "op", "idle")
_ALL, _PROGRAM, _CATEGORY, _SCOPE, _DUPLICATES, _OP, _IDLE = range(len(KINDS))
_NAMES = ("all", IDLE)  # of nodes that belong to no level
_IDLE_NAME = _NAMES.index(IDLE)
_PRUNED = (_DUPLICATES, _OP)
MAX_SCOPES = 100
MAX_NODES = 20_000


@dataclass(frozen=True)
class OpTree:
    """Nodes, parents before their children, siblings by time. `parent`: row, -1 for the root; `op`: row of
    the operations, -1 for other nodes.

    Times (ps) and work are sums over all operations below. `n_children`: the number before children beyond
    the limit were left out. `kind`: row of KINDS. `work_ps`: the denominator of rates: self time; below the
    level of programs at least the time from start to end of the asynchronous operations below, since their
    own self time is only the remaining wait. `wasted_ps`: the sum of the known wasted times below, NaN if
    none is known; all idle time is wasted.
    """

    name: Words
    kind: Int64s
    parent: Int64s
    op: Int64s
    n_children: Int64s
    self_ps: Int64s
    n_occurrences: Int64s
    work_ps: Int64s
    wasted_ps: Floats
    work: Work

    def __len__(self) -> int:
        return len(self.name)


@dataclass
class _Level:
    """One level of the tree: the label of each operation on it, -1 for none."""

    kind: int
    labels: Int64s
    names: tuple[str, ...]


def op_tree(
    ops: HloOps, grouping: str, with_idle: bool, limit: int, wasted_ps: Floats | None = None
) -> OpTree:
    """The tree of all operations except those of SparseCores. A node keeps at most `limit` children of the
    kinds duplicates and operations. `wasted_ps`: of each operation, NaN where unknown; None: all unknown.
    """
    op_rows = np.flatnonzero(~ops.is_sparse)
    wasted = np.full(len(op_rows), np.nan) if wasted_ps is None else wasted_ps[op_rows]
    ops = ops.taken(op_rows)
    tree = _grow(_levels(ops, grouping), ops, wasted)
    tree = replace(tree, op=np.where(tree.op >= 0, op_rows[tree.op], -1))
    if with_idle and ops.idle_ps and ops.kind != "CPU":
        tree = _with_idle(tree, ops.idle_ps)
    return _prune(tree, limit)


def _levels(ops: HloOps, grouping: str) -> list[_Level]:
    levels = []
    if grouping != "category":
        numbers, codes = np.unique(ops.program, return_inverse=True)
        titles = words_of([ops.programs[number] for number in numbers.tolist()])
        levels.append(_Level(_PROGRAM, titles.codes[codes.reshape(-1)], titles.strings))
    if grouping == "provenance":
        levels += _scopes(ops)
    levels.append(_Level(_CATEGORY, ops.category.codes, ops.category.strings))
    levels.append(_duplicates(ops))
    levels.append(_Level(_OP, np.arange(len(ops)), ()))
    return levels


def _scopes(ops: HloOps) -> list[_Level]:
    """The parts of the framework's names, split at `/`, the last one without its type after `:`."""
    split_names = [scope_parts(text)[:MAX_SCOPES] for text in ops.provenance.strings]
    levels = []
    for depth in range(max(map(len, split_names), default=0)):
        words = words_of([parts[depth] if depth < len(parts) else "" for parts in split_names])
        missing = np.array([depth >= len(parts) for parts in split_names], np.bool_)
        labels = np.where(missing, -1, words.codes)[ops.provenance.codes]
        levels.append(_Level(_SCOPE, labels, words.strings))
    return levels


def scope_parts(provenance: str) -> list[str]:
    """The parts of a framework's name, the last one without its type after `:`."""
    name = provenance.rpartition(":")[0] if ":" in provenance else provenance
    return [part for part in name.split("/") if part]


def _duplicates(ops: HloOps) -> _Level:
    """Operations of one program that the compiler calls duplicates of one another, if there are several."""
    if not any(ops.twin.strings):
        return _Level(_DUPLICATES, np.full(len(ops), -1), ())
    names = words_of([*ops.twin.strings, *ops.name.strings])
    twin, own_name = names.codes[: len(ops.twin.strings)], names.codes[len(ops.twin.strings) :]
    key = (
        np.where(ops.twin.is_in(("",)), own_name[ops.name.codes], twin[ops.twin.codes])
        if len(ops)
        else np.empty(0, np.int64)
    )
    program = np.unique(ops.program, return_inverse=True)[1].reshape(-1)
    _, group, count = np.unique(program * len(names.strings) + key, return_inverse=True, return_counts=True)
    several = count[group.reshape(-1)] > 1
    return _Level(
        _DUPLICATES, np.where(several, key, -1), tuple(f"{name} and its duplicates" for name in names.strings)
    )


def _grow(levels: list[_Level], ops: HloOps, wasted_ps: Floats) -> OpTree:
    """Build all nodes, level by level; the root is row 0."""
    node_of_op = np.zeros(len(ops), np.int64)  # the deepest node so far that contains each operation
    strings, codes, kinds = list(_NAMES), [np.array([0], np.int64)], [np.array([_ALL], np.int64)]
    parents, rows = [np.array([-1], np.int64)], [np.array([-1], np.int64)]
    everything = np.zeros(len(ops), np.int64)
    sums = [_sums(ops, everything, np.arange(len(ops)), 1)]
    wasted = [_known_sum(everything, wasted_ps, 1)]
    n = 1
    for level in levels:
        labeled = np.flatnonzero(level.labels >= 0)
        if not len(labeled):
            continue
        key = node_of_op[labeled] * (int(level.labels.max()) + 1) + level.labels[labeled]
        _, first, node = np.unique(key, return_index=True, return_inverse=True)
        node = node.reshape(-1)
        labels = level.labels[labeled[first]]
        is_op = level.kind == _OP
        codes.append((ops.name.codes[labels] if is_op else labels) + len(strings))
        strings += ops.name.strings if is_op else level.names
        kinds.append(np.full(len(first), level.kind))
        parents.append(node_of_op[labeled[first]])
        rows.append(labels if is_op else np.full(len(first), -1))
        sums.append(_sums(ops, node, labeled, len(first)))
        wasted.append(_known_sum(node, wasted_ps[labeled], len(first)))
        node_of_op[labeled] = node + n
        n += len(first)
    parent = np.concatenate(parents)
    self_ps, n_occurrences, elapsed_ps = (
        np.concatenate(column) for column in zip(*(part[:3] for part in sums), strict=True)
    )
    kind = np.concatenate(kinds).astype(np.int64)
    return OpTree(
        name=Words(np.concatenate(codes), tuple(strings)),
        kind=kind,
        parent=parent,
        op=np.concatenate(rows),
        n_children=np.bincount(parent[1:], minlength=n).astype(np.int64),
        self_ps=self_ps,
        n_occurrences=n_occurrences,
        work_ps=np.where(np.isin(kind, (_ALL, _PROGRAM)), self_ps, np.maximum(self_ps, elapsed_ps)),
        wasted_ps=np.concatenate(wasted),
        work=join_work([part[3] for part in sums]),
    )


def _sums(
    ops: HloOps, node: Int64s, op_rows: npt.NDArray[np.intp], n: int
) -> tuple[Int64s, Int64s, Int64s, Work]:
    """Self time, occurrences, time of asynchronous operations and work of the given operations, by node."""
    elapsed = np.where(ops.work_ps != ops.time_ps, ops.work_ps, 0)
    time, count, elapsed = (
        sum_by(node, values[op_rows], n) for values in (ops.self_ps, ops.n_occurrences, elapsed)
    )
    return time, count, elapsed, summed_work(ops.work.taken(op_rows), node, n, ~ops.is_container[op_rows])


def _known_sum(node: Int64s, values: Floats, n: int) -> Floats:
    """The sum of the known values by node, NaN if none is known."""
    is_known = ~np.isnan(values)
    total = np.bincount(node, np.where(is_known, values, 0), n)
    return np.where(np.bincount(node, is_known, n) > 0, total, np.nan)


def _with_idle(tree: OpTree, idle_ps: int) -> OpTree:
    def appended(values: npt.NDArray[Any], value: int | bool) -> npt.NDArray[Any]:
        return np.append(values, np.array([value], values.dtype))

    self_ps, n_children = tree.self_ps.copy(), tree.n_children.copy()
    self_ps[0] += idle_ps
    n_children[0] += 1
    nothing: dict[str, Any] = {key: appended(getattr(tree, key), 0) for key in ("parent", "n_occurrences")}
    name = Words(appended(tree.name.codes, _IDLE_NAME), tree.name.strings)
    work_ps = appended(tree.work_ps, idle_ps)
    work_ps[0] += idle_ps
    wasted_ps = np.append(tree.wasted_ps, np.nan if np.isnan(tree.wasted_ps[0]) else idle_ps)
    wasted_ps[0] += idle_ps
    return replace(
        tree,
        name=name,
        kind=appended(tree.kind, _IDLE),
        op=appended(tree.op, -1),
        n_children=appended(n_children, 0),
        self_ps=appended(self_ps, idle_ps),
        work_ps=work_ps,
        wasted_ps=wasted_ps,
        work=join_work([tree.work, no_work(1)]),
        **nothing,
    )


def _prune(tree: OpTree, limit: int) -> OpTree:
    """Drop the shortest children beyond the limit, and the shortest nodes of a tree that is too large."""
    depth = _depths(tree.parent)
    rank = _rank(tree, depth)
    order = np.lexsort((rank, -tree.self_ps, tree.parent))
    first = np.append(True, tree.parent[order][1:] != tree.parent[order][:-1])
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - start
    keep = (position < limit) | ~np.isin(tree.kind, _PRUNED)
    if keep.sum() > MAX_NODES:
        longest = np.lexsort((depth, -tree.self_ps))[:MAX_NODES]
        mask = np.zeros(len(keep), np.bool_)
        mask[longest] = True
        keep &= mask
    for level in range(1, int(depth.max()) + 1):
        nodes = np.flatnonzero(depth == level)
        keep[nodes] &= keep[tree.parent[nodes]]
    rows = np.flatnonzero(keep)
    rows = rows[np.lexsort((rank[rows], -tree.self_ps[rows], depth[rows]))]
    new_row = np.full(len(tree), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    parent = np.where(tree.parent[rows] >= 0, new_row[tree.parent[rows]], -1)
    return OpTree(
        tree.name.taken(rows),
        tree.kind[rows],
        parent,
        tree.op[rows],
        tree.n_children[rows],
        tree.self_ps[rows],
        tree.n_occurrences[rows],
        tree.work_ps[rows],
        tree.wasted_ps[rows],
        tree.work.taken(rows),
    )


def _rank(tree: OpTree, depth: Int64s) -> Int64s:
    """Rank by name among nodes of equal level and time. These are rare, and sorting all names would take
    longer than everything else.
    """
    order = np.lexsort((-tree.self_ps, depth))
    same = (tree.self_ps[order][1:] == tree.self_ps[order][:-1]) & (depth[order][1:] == depth[order][:-1])
    tied = order[np.append(same, False) | np.append(False, same)]
    rank = np.zeros(len(tree), np.int64)
    rank[np.array(sorted(tied.tolist(), key=tree.name.__getitem__), np.int64)] = np.arange(len(tied))
    return rank


def _depths(parent: Int64s) -> Int64s:
    """Number of nodes above each node."""
    depth = np.zeros(len(parent), np.int64)
    ancestor = parent.copy()
    while (ancestor >= 0).any():
        depth += ancestor >= 0
        ancestor = np.where(ancestor >= 0, parent[ancestor], -1)
    return depth
