"""A tree of calls → the nodes that a screen can show, and the functions with most time.

Nodes too small to be seen are summed up below their parent, so that a tree of a million paths makes a bounded
answer whose times still add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import nearest
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.flame.frames import OWN_FAMILIES, Family, Frames
from tb_tpuprof.analysis.flame.module_memory import Bytes
from tb_tpuprof.analysis.flame.stacks import Stacks
from tb_tpuprof.native import repeats
from tb_tpuprof.trace.strings import Strings

Int64s = npt.NDArray[np.int64]
MAX_NODES, MAX_DEPTH, MAX_FUNCTIONS = 4_000, 200, 300
LEAST_SHARE = 0.0005  # of the widest group: a quarter of a pixel


@dataclass
class Node:
    """A node with its times in ps, one of each for every set of windows. `parent`: its position, -1 for a
    root; `n_smaller`: nodes that it sums up, 0 for a node of its own; `start_ps`: since the window's start,
    where calls are in time order, else -1.
    """

    group: int
    parent: int
    name: str
    family: int
    own_ps: list[int]
    total_ps: list[int]
    calls: list[int]
    n_smaller: int = 0
    start_ps: int = -1
    phase: str = ""
    flops: float | None = None
    allocated_bytes: float | None = None
    net_bytes: float | None = None
    peak_bytes: float | None = None


@dataclass(frozen=True)
class Branch:
    """One leaf of a tree: the names on the way to it, and its time (ps) and number of calls in each set of
    windows. `phase`: forward, backward, optimizer or empty; `flops`, `memory`: of its calls in the first set.
    """

    path: tuple[str, ...]
    family: int
    time_ps: list[int]
    calls: list[int]
    phase: str = ""
    flops: float | None = None
    memory: Bytes | None = None


@dataclass
class Function:
    """A function's time in ps for every set of windows. `own_ps`: its own code. `with_calls_ps`: also the
    library functions and waits that it calls, 0 if it is not the user's; `waiting_ps`: the part of it that
    waits. `total_ps`: with everything that it calls. `by_group`: `with_calls_ps` by group. `is_device`:
    whether devices ran it.
    """

    name: str
    family: int
    is_users: bool
    own_ps: list[int]
    with_calls_ps: list[int]
    waiting_ps: list[int]
    total_ps: list[int]
    calls: list[int]
    caller: str = ""
    is_device: bool = False
    by_group: dict[int, int] = field(default_factory=dict)


def shown_nodes(
    tree: Stacks, found: Frames, strings: Strings, groups: Sequence[int], max_nodes: int = MAX_NODES
) -> list[Node]:
    """The nodes of some groups, parents before children, siblings by time; their `group` is the position in
    `groups`.
    """
    position = np.full(int(tree.group.max(initial=0)) + 1, -1)
    position[list(groups)] = np.arange(len(groups))
    is_shown = position[tree.group] >= 0
    is_kept = is_shown & _kept(tree, is_shown, max_nodes)
    rows = np.flatnonzero(is_kept)
    number = np.full(len(tree) + 1, -1)
    number[rows] = np.arange(len(rows))
    nodes = [
        Node(
            int(position[tree.group[row]]), int(number[tree.above[row]]), strings.get(int(tree.name[row])),
            int(found.family[row]), tree.own_ps[:, row].tolist(), tree.total_ps[:, row].tolist(),
            tree.calls[:, row].tolist(),
        )
        for row in rows.tolist()
    ]  # fmt: skip
    return in_order(nodes + _smaller(tree, is_shown, is_kept, number, position))


def _kept(tree: Stacks, is_shown: npt.NDArray[np.bool_], max_nodes: int) -> npt.NDArray[np.bool_]:
    """The largest nodes, at most MAX_DEPTH deep. No node is larger than the one above it."""
    size = np.where(is_shown, tree.total_ps.max(axis=0), -1)
    roots = np.flatnonzero(is_shown & (tree.above < 0))
    widest = np.bincount(tree.group[roots], weights=size[roots]).max() if len(roots) else 0.0
    rows = np.flatnonzero(size >= max(LEAST_SHARE * widest, 1))
    rows = np.sort(rows[np.argsort(-size[rows], kind="stable")][:max_nodes])
    result = np.zeros(len(tree), np.bool_)
    depth: dict[int, int] = {-1: 0}
    for row, above in zip(rows.tolist(), tree.above[rows].tolist(), strict=True):
        if above in depth and depth[above] < MAX_DEPTH:
            depth[row] = depth[above] + 1
            result[row] = True
    return result


def _smaller(
    tree: Stacks,
    is_shown: npt.NDArray[np.bool_],
    is_kept: npt.NDArray[np.bool_],
    number: npt.NDArray[np.integer],
    position: npt.NDArray[np.integer],
) -> list[Node]:
    """One node for all that is left out below each parent, and one for each group's roots."""
    left_out = np.flatnonzero(is_shown & ~is_kept & (tree.total_ps.max(axis=0) > 0))
    if not len(left_out):
        return []
    # A place for each kept node, and behind them one for the roots of each group.
    kept = np.flatnonzero(is_kept)
    parent = nearest(tree.above, is_kept)[left_out]
    place = np.where(parent >= 0, number[parent], len(kept) + tree.group[left_out].astype(np.int64))
    n_places = len(kept) + len(position)
    own, calls = (_by_code(place, column[:, left_out], n_places) for column in (tree.own_ps, tree.calls))
    counts = np.bincount(place, minlength=n_places)
    used = np.flatnonzero(counts)
    is_root = used >= len(kept)
    group = np.where(
        is_root, used - len(kept), tree.group[kept[np.where(is_root, 0, used)]] if len(kept) else 0
    )
    return [
        Node(
            int(position[group[k]]), -1 if is_root[k] else one, "", Family.RUNTIME, own[:, one].tolist(),
            own[:, one].tolist(), calls[:, one].tolist(), int(counts[one]),
        )
        for k, one in enumerate(used.tolist())
    ]  # fmt: skip


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes depth first, siblings by time, those that are summed up last; by group."""
    children: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(i)

    def ordered(parent: int) -> list[int]:
        return sorted(
            children.get(parent, ()),
            key=lambda i: (
                nodes[i].group,
                nodes[i].start_ps,
                nodes[i].n_smaller > 0,
                -max(nodes[i].total_ps),
                nodes[i].name,
            ),
        )

    result: list[Node] = []
    place: dict[int, int] = {-1: -1}
    waiting = ordered(-1)[::-1]
    while waiting:
        i = waiting.pop()
        place[i] = len(result)
        nodes[i].parent = place[nodes[i].parent]
        result.append(nodes[i])
        waiting += ordered(i)[::-1]
    return result


def nodes_of_branches(branches: Sequence[Branch], n_sets: int) -> list[Node]:
    """The tree of some leaves, largest first, at most MAX_NODES nodes; what does not fit is summed up below
    the last node that does.
    """
    nodes: list[Node] = []
    place: dict[tuple[str, ...], int] = {}
    for branch in sorted(branches, key=lambda one: -max(one.time_ps)):
        at = -1
        for depth in range(1, len(branch.path) + 1):
            is_rest = len(nodes) >= MAX_NODES and branch.path[:depth] not in place
            key = (*branch.path[: depth - 1], "") if is_rest else branch.path[:depth]
            if key not in place:
                place[key] = len(nodes)
                zeros = [0] * n_sets
                family = branch.family if depth == len(branch.path) else Family.OPERATION
                nodes.append(Node(0, at, key[-1], family, zeros, zeros.copy(), zeros.copy()))
                nodes[-1].phase = branch.phase
            at = place[key]
            node = nodes[at]
            node.phase = branch.phase if node.phase == branch.phase else ""
            node.total_ps = _added(node.total_ps, branch.time_ps)
            node.calls = _added(node.calls, branch.calls)
            _add_work(node, branch)
            node.n_smaller += is_rest
            if is_rest:
                break
        nodes[at].own_ps = _added(nodes[at].own_ps, branch.time_ps)
        if branch.memory and branch.memory.peak is not None and not nodes[at].n_smaller:
            nodes[at].peak_bytes = max(nodes[at].peak_bytes or 0.0, branch.memory.peak)
    return in_order(nodes)


def _add_work(node: Node, part: Branch) -> None:
    """Add FLOPs and bytes of a part, if known."""
    if part.flops is not None:
        node.flops = (node.flops or 0.0) + part.flops
    if part.memory is not None:
        node.allocated_bytes = (node.allocated_bytes or 0.0) + part.memory.allocated
        node.net_bytes = (node.net_bytes or 0.0) + part.memory.net


def _added(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]


def merged_nodes(parts: Sequence[Sequence[Node]]) -> list[Node]:
    """Trees of several hosts as one: nodes of the same group and names are one with their sum."""
    if len(parts) == 1:
        return list(parts[0])
    result: list[Node] = []
    by_key: dict[tuple[int, int, str], int] = {}
    for nodes in parts:
        place = {-1: -1}
        for i, node in enumerate(nodes):
            key = node.group, place[node.parent], node.name
            if key not in by_key:
                by_key[key] = len(result)
                zeros = [0] * len(node.own_ps)
                result.append(
                    Node(node.group, key[1], node.name, node.family, zeros, zeros.copy(), zeros.copy())
                )
                result[-1].phase = node.phase
            total = result[by_key[key]]
            place[i] = by_key[key]
            total.n_smaller += node.n_smaller
            for name in ("flops", "allocated_bytes", "net_bytes"):
                if getattr(node, name) is not None:
                    setattr(total, name, (getattr(total, name) or 0.0) + getattr(node, name))
            if node.peak_bytes is not None:
                total.peak_bytes = max(total.peak_bytes or 0.0, node.peak_bytes)
            for k in range(len(node.own_ps)):
                total.own_ps[k] += node.own_ps[k]
                total.total_ps[k] += node.total_ps[k]
                total.calls[k] += node.calls[k]
    return in_order(result)


def functions(tree: Stacks, found: Frames, strings: Strings, groups: Sequence[int]) -> list[Function]:
    """The functions of some groups with most time, the user's by time with the library calls that they make,
    others by their own.

    A kernel and its launch on the host may have one name: they are two functions, whose times do not add up.
    """
    is_shown = _are_in(tree, groups)
    names = marked(tree.name, len(strings))
    number = np.zeros(len(strings), np.int64)
    number[names] = np.arange(len(names))
    distinct = np.repeat(names, 2)
    code = 2 * number[tree.name] + found.is_device
    own = _by_code(code, tree.own_ps * is_shown, len(distinct))
    users = np.where(is_shown & np.isin(found.family, OWN_FAMILIES), found.user, -1)
    charged = np.flatnonzero(users >= 0)
    user_code = code[users[charged]]
    with_calls = _by_code(user_code, tree.own_ps[:, charged], len(distinct))
    waits = (found.family[charged] == Family.WAITING).astype(np.int64)
    waiting = _by_code(user_code, tree.own_ps[:, charged] * waits, len(distinct))
    rank = np.maximum(own, with_calls).max(axis=0)
    is_outer = is_shown & ~repeats(tree.above, code.astype(np.int32), len(distinct))
    total = _by_code(code[is_outer], tree.total_ps[:, is_outer], len(distinct))
    top = np.argsort(-rank, kind="stable")[:MAX_FUNCTIONS]
    top = top[rank[top] > 0]
    calls = _by_code(code, tree.calls * is_shown, len(distinct))
    is_user = np.zeros(len(distinct), np.bool_)
    is_user[code[np.unique(found.user[found.user >= 0])]] = True
    largest = _largest(tree, code, np.flatnonzero(is_shown), top)
    by_group = _by_group(tree, charged, user_code, top, groups)
    return [
        Function(
            strings.get(int(distinct[k])), int(found.family[node]), bool(is_user[k]), own[:, k].tolist(),
            with_calls[:, k].tolist(), waiting[:, k].tolist(), total[:, k].tolist(), calls[:, k].tolist(),
            _caller(tree, found, strings, node), bool(found.is_device[node]), shares,
        )
        for k, node, shares in zip(top.tolist(), largest, by_group, strict=True)
    ]  # fmt: skip


def _largest(
    tree: Stacks, code: npt.NDArray[np.integer], rows: npt.NDArray[np.intp], top: npt.NDArray[np.intp]
) -> list[int]:
    """The largest node of each of the `top` names, the first among equals."""
    size = tree.total_ps.max(axis=0)
    largest = np.full(int(code.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(largest, code[rows], size[rows])
    rows = rows[size[rows] == largest[code[rows]]]
    names, first = np.unique(code[rows], return_index=True)
    found: list[int] = rows[first[np.searchsorted(names, top)]].tolist()
    return found


def _are_in(tree: Stacks, groups: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Whether each node is in one of the groups."""
    is_one = np.zeros(int(max(tree.group.max(initial=0), *groups, 0)) + 1, np.bool_)
    is_one[list(groups)] = True
    result: npt.NDArray[np.bool_] = is_one[tree.group]
    return result


def _by_group(
    tree: Stacks,
    charged: npt.NDArray[np.intp],
    user_code: npt.NDArray[np.integer],
    top: npt.NDArray[np.intp],
    groups: Sequence[int],
) -> list[dict[int, int]]:
    """Time that is charged to each of the `top` names, by position of its group."""
    place = np.full(int(max(user_code.max(initial=0), top.max(initial=0))) + 1, -1)
    place[top] = np.arange(len(top))
    sums = np.zeros((len(top), int(tree.group.max(initial=0)) + 1), np.int64)
    is_top = place[user_code] >= 0
    np.add.at(sums, (place[user_code[is_top]], tree.group[charged[is_top]]), tree.own_ps[0, charged[is_top]])
    return [
        {
            position: int(row[group])
            for position, group in enumerate(groups)
            if group < len(row) and row[group]
        }
        for row in sums
    ]


def _caller(tree: Stacks, found: Frames, strings: Strings, node: int) -> str:
    """The name of the user's function that calls a node; empty for none."""
    above = int(tree.above[node])
    user = int(found.user[above]) if above >= 0 else -1
    return strings.get(int(tree.name[user])) if user >= 0 else ""


def outermost_of(tree: Stacks, nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Which of some nodes are inside none of the others: recursive calls do not count twice."""
    is_one = np.zeros(len(tree), np.bool_)
    is_one[nodes] = True
    above = tree.above[nodes]
    result: npt.NDArray[np.bool_] = (above < 0) | (nearest(tree.above, is_one)[above] < 0)
    return result


def merged_functions(parts: Sequence[Sequence[Function]]) -> list[Function]:
    """The functions of several hosts by name; kernels and their launches apart."""
    by_name: dict[tuple[str, bool], Function] = {}
    for one in (one for part in parts for one in part):
        total = by_name.setdefault((one.name, one.is_device), one)
        if total is one:
            continue
        for name in ("own_ps", "with_calls_ps", "waiting_ps", "total_ps", "calls"):
            column = getattr(total, name)
            column[:] = [a + b for a, b in zip(column, getattr(one, name), strict=True)]
        for group, time_ps in one.by_group.items():
            total.by_group[group] = total.by_group.get(group, 0) + time_ps
    return sorted(by_name.values(), key=lambda one: -max(*one.with_calls_ps, *one.own_ps))[:MAX_FUNCTIONS]


def _by_code(code: npt.NDArray[np.integer], values: Int64s, n: int) -> Int64s:
    sums = np.zeros((len(values), n), np.int64)
    for row, column in zip(sums, values, strict=True):
        np.add.at(row, code, column)
    return sums


def covered_ps(tree: Stacks, n_groups: int) -> Int64s:
    """Time that the events of each group cover, int64[k, groups]."""
    return _by_code(tree.group, tree.own_ps, n_groups)
