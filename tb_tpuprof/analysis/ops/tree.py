"""Compiled operations → a tree of where the time goes: by program, by category, or along the framework's
names.

    program      program → category → duplicates → operation
    category     category → duplicates → operation
    provenance   program → the parts of the framework's name → category → duplicates → operation

Self times are summed, so that a node's time is that of its children; what an operation does that only runs
others counts where it is done.
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
_NAMES = ("all", IDLE)  # of nodes that are no level's
_IDLE_NAME = _NAMES.index(IDLE)
_PRUNED = (_DUPLICATES, _OP)
MAX_SCOPES = 100
MAX_NODES = 20_000


@dataclass(frozen=True)
class OpTree:
    """Nodes, parents before their children, siblings by time. `parent`: row, -1 of the root; `op`: row of the
    operations, -1 for others.

    Times and work are of all operations below. `n_children`: before children beyond the limit were left out.
    `kind`: row of KINDS. `work_ps`: the time that rates are of: self time; below the level of programs at
    least the time that asynchronous operations among them took from start to end, as their own self time is
    only what was left to wait for.
    """

    name: Words
    kind: Int64s
    parent: Int64s
    op: Int64s
    n_children: Int64s
    self_ps: Int64s
    n_occurrences: Int64s
    work_ps: Int64s
    work: Work

    def __len__(self) -> int:
        return len(self.name)


@dataclass
class _Level:
    """One level of the tree: of each operation the label that it has there, -1 where it has none."""

    kind: int
    labels: Int64s
    names: tuple[str, ...]


def op_tree(ops: HloOps, grouping: str, with_idle: bool, limit: int) -> OpTree:
    """The tree of all operations but SparseCores'. Of duplicates and operations at most `limit` children of a
    node are kept.
    """
    own = np.flatnonzero(~ops.is_sparse)
    ops = ops.taken(own)
    tree = _grown(_levels(ops, grouping), ops)
    tree = replace(tree, op=np.where(tree.op >= 0, own[tree.op], -1))
    if with_idle and ops.idle_ps and ops.kind != "CPU":
        tree = _with_idle(tree, ops.idle_ps)
    return _pruned(tree, limit)


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
    """The parts of the framework's names, cut at `/`, the last one at `:`."""
    cut = [
        [part for part in text.rpartition(":")[0].split("/") if part] if ":" in text else _parts(text)
        for text in ops.provenance.strings
    ]
    cut = [parts[:MAX_SCOPES] for parts in cut]
    levels = []
    for depth in range(max(map(len, cut), default=0)):
        words = words_of([parts[depth] if depth < len(parts) else "" for parts in cut])
        missing = np.array([depth >= len(parts) for parts in cut], np.bool_)
        labels = np.where(missing, -1, words.codes)[ops.provenance.codes]
        levels.append(_Level(_SCOPE, labels, words.strings))
    return levels


def _parts(text: str) -> list[str]:
    return [part for part in text.split("/") if part]


def _duplicates(ops: HloOps) -> _Level:
    """Operations of one program that the compiler calls duplicates of one another, where there
    are several.
    """
    if not any(ops.twin.strings):
        return _Level(_DUPLICATES, np.full(len(ops), -1), ())
    names = words_of([*ops.twin.strings, *ops.name.strings])
    twin, own = names.codes[: len(ops.twin.strings)], names.codes[len(ops.twin.strings) :]
    key = (
        np.where(ops.twin.is_in(("",)), own[ops.name.codes], twin[ops.twin.codes])
        if len(ops)
        else np.empty(0, np.int64)
    )
    program = np.unique(ops.program, return_inverse=True)[1].reshape(-1)
    _, group, count = np.unique(program * len(names.strings) + key, return_inverse=True, return_counts=True)
    several = count[group.reshape(-1)] > 1
    return _Level(
        _DUPLICATES, np.where(several, key, -1), tuple(f"{name} and its duplicates" for name in names.strings)
    )


def _grown(levels: list[_Level], ops: HloOps) -> OpTree:
    """All nodes, level by level; the root is row 0."""
    at = np.zeros(len(ops), np.int64)  # the node that each operation is in so far
    strings, codes, kinds = list(_NAMES), [np.array([0], np.int64)], [np.array([_ALL], np.int64)]
    parents, rows = [np.array([-1], np.int64)], [np.array([-1], np.int64)]
    everything = np.zeros(len(ops), np.int64)
    sums = [_sums(ops, everything, np.arange(len(ops)), 1)]
    n = 1
    for level in levels:
        mine = np.flatnonzero(level.labels >= 0)
        if not len(mine):
            continue
        key = at[mine] * (int(level.labels.max()) + 1) + level.labels[mine]
        _, first, node = np.unique(key, return_index=True, return_inverse=True)
        node = node.reshape(-1)
        labels = level.labels[mine[first]]
        is_op = level.kind == _OP
        codes.append((ops.name.codes[labels] if is_op else labels) + len(strings))
        strings += ops.name.strings if is_op else level.names
        kinds.append(np.full(len(first), level.kind))
        parents.append(at[mine[first]])
        rows.append(labels if is_op else np.full(len(first), -1))
        sums.append(_sums(ops, node, mine, len(first)))
        at[mine] = node + n
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
        work=join_work([part[3] for part in sums]),
    )


def _sums(
    ops: HloOps, node: Int64s, mine: npt.NDArray[np.intp], n: int
) -> tuple[Int64s, Int64s, Int64s, Work]:
    """Self time, occurrences, time of asynchronous operations and work of the operations `mine` by node."""
    elapsed = np.where(ops.work_ps != ops.time_ps, ops.work_ps, 0)
    time, count, elapsed = (
        sum_by(node, values[mine], n) for values in (ops.self_ps, ops.n_occurrences, elapsed)
    )
    return time, count, elapsed, summed_work(ops.work.taken(mine), node, n, ~ops.is_container[mine])


def _with_idle(tree: OpTree, idle_ps: int) -> OpTree:
    def more(values: npt.NDArray[Any], value: int | bool) -> npt.NDArray[Any]:
        return np.append(values, np.array([value], values.dtype))

    self_ps, n_children = tree.self_ps.copy(), tree.n_children.copy()
    self_ps[0] += idle_ps
    n_children[0] += 1
    nothing: dict[str, Any] = {key: more(getattr(tree, key), 0) for key in ("parent", "n_occurrences")}
    name = Words(more(tree.name.codes, _IDLE_NAME), tree.name.strings)
    work_ps = more(tree.work_ps, idle_ps)
    work_ps[0] += idle_ps
    return replace(
        tree,
        name=name,
        kind=more(tree.kind, _IDLE),
        op=more(tree.op, -1),
        n_children=more(n_children, 0),
        self_ps=more(self_ps, idle_ps),
        work_ps=work_ps,
        work=join_work([tree.work, no_work(1)]),
        **nothing,
    )


def _pruned(tree: OpTree, limit: int) -> OpTree:
    """Without the shortest children beyond the limit, and without the shortest nodes of a tree that is too
    large.
    """
    depth = _depths(tree.parent)
    rank = _rank(tree, depth)
    order = np.lexsort((rank, -tree.self_ps, tree.parent))
    first = np.append(True, tree.parent[order][1:] != tree.parent[order][:-1])
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - start
    kept = (place < limit) | ~np.isin(tree.kind, _PRUNED)
    if kept.sum() > MAX_NODES:
        longest = np.lexsort((depth, -tree.self_ps))[:MAX_NODES]
        mask = np.zeros(len(kept), np.bool_)
        mask[longest] = True
        kept &= mask
    for level in range(1, int(depth.max()) + 1):
        mine = np.flatnonzero(depth == level)
        kept[mine] &= kept[tree.parent[mine]]
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((rank[rows], -tree.self_ps[rows], depth[rows]))]
    new = np.full(len(tree), -1, np.int64)
    new[rows] = np.arange(len(rows))
    parent = np.where(tree.parent[rows] >= 0, new[tree.parent[rows]], -1)
    return OpTree(
        tree.name.taken(rows),
        tree.kind[rows],
        parent,
        tree.op[rows],
        tree.n_children[rows],
        tree.self_ps[rows],
        tree.n_occurrences[rows],
        tree.work_ps[rows],
        tree.work.taken(rows),
    )


def _rank(tree: OpTree, depth: Int64s) -> Int64s:
    """A place by name for nodes of one level and time, which are rare: sorting all names would take longer
    than all else.
    """
    order = np.lexsort((-tree.self_ps, depth))
    same = (tree.self_ps[order][1:] == tree.self_ps[order][:-1]) & (depth[order][1:] == depth[order][:-1])
    tied = order[np.append(same, False) | np.append(False, same)]
    rank = np.zeros(len(tree), np.int64)
    rank[np.array(sorted(tied.tolist(), key=tree.name.__getitem__), np.int64)] = np.arange(len(tied))
    return rank


def _depths(parent: Int64s) -> Int64s:
    """How many nodes are above each."""
    depth = np.zeros(len(parent), np.int64)
    at = parent.copy()
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, parent[at], -1)
    return depth
