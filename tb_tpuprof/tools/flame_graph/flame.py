"""Hosts, threads and steps of a request → the trees to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.parts import own_lines
from tb_tpuprof.analysis.flame.calls import calls_in_order
from tb_tpuprof.analysis.flame.frames import Family, Frames, frames, user_times
from tb_tpuprof.analysis.flame.modules import has_modules, module_nodes
from tb_tpuprof.analysis.flame.nodes import (
    Function,
    Node,
    covered_ps,
    functions,
    merged_functions,
    merged_nodes,
    shown_nodes,
)
from tb_tpuprof.analysis.flame.scopes import has_scopes, scope_nodes
from tb_tpuprof.analysis.flame.selection import ALL, MEDIAN, SLOWEST, TRACE, Selection, selection
from tb_tpuprof.analysis.flame.stacks import Stacks, stacks
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.steps import steps as trace_steps
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.flame_graph.threads import Group, groups_of
from tb_tpuprof.tools.trace_hosts import MAX_APART_NS, MAX_HOSTS, HostView, View, open_view
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
STACKS, SCOPES, MODULES = "stacks", "scopes", "modules"
# Of each kind of tree: its nodes, whether a trace has any, and why not.
_TREES: dict[str, tuple[Callable[..., list[Node]], Callable[[Trace], bool], str, str]] = {
    SCOPES: (
        scope_nodes,
        has_scopes,
        "no compiled operation has a name of the framework.",
        "Capture while a program compiled by XLA runs (jax.jit, tf.function(jit_compile=True)).",
    ),
    MODULES: (
        module_nodes,
        has_modules,
        "the trace has no calls of PyTorch's modules.",
        "Profile with torch.profiler.profile(with_stack=True, with_modules=True).",
    ),
}
_MAX_DIGITS = 18
MAX_SHOWN, MAX_SHOWN_OPERATIONS = 6, 4
_USERS = 0.01  # of the steps' time: threads that run less of the user's code are not shown unasked


@dataclass(frozen=True)
class HostTree:
    """One host: its tree of all groups, whose code that is, and the steps: those shown, and those to compare
    with.
    """

    view: HostView
    tree: Stacks
    found: Frames
    chosen: tuple[Selection, ...]

    @property
    def trace(self) -> Trace:
        """The host's trace."""
        return self.view.trace


@dataclass(frozen=True)
class Flame:
    """All that an answer needs. `shown`: positions in `groups`. `is_in_order`: nodes are single calls.

    `tree_group`, `tree`: instead of threads, the group and the nodes of scopes or modules.
    `own_groups`: groups of the threads that steps run on. `n_windows`: of each set of steps, over all hosts.
    `apart`: hosts that are left out because they were captured at another time.
    """

    view: View
    hosts: tuple[HostTree, ...]
    groups: tuple[Group, ...]
    shown: tuple[int, ...]
    own_groups: frozenset[int]
    n_windows: tuple[int, ...]
    durations_ps: tuple[int, ...]
    is_in_order: bool
    n_left_out: int = 0
    tree_group: int = -1
    tree: tuple[Node, ...] = ()
    apart: tuple[str, ...] = ()

    @property
    def n_summed(self) -> tuple[int, ...]:
        """How many windows the times of nodes and threads sum up, of each set of steps. In time order a node
        is one call, and each thread one of a single host.
        """
        return (1,) if self.is_in_order else self.n_windows

    @property
    def is_of_modules(self) -> bool:
        """Whether the tree is of PyTorch's modules."""
        return self.tree_group >= 0 and self.groups[self.tree_group].kind == MODULES

    @property
    def has_steps(self) -> bool:
        """Whether the shown times are of steps and not of the whole trace."""
        return any(len(host.chosen[0].rows) for host in self.hosts)

    def nodes(self) -> list[Node]:
        """The nodes of the shown groups; `group` is the position in `groups`."""
        if self.tree_group >= 0:
            return list(self.tree)
        parts = []
        for place, host in enumerate(self.hosts):
            groups = [group for group in self.shown if place in self.groups[group].lines]
            if not groups or (self.is_in_order and not len(host.chosen[0].opens)):
                continue  # a host without these threads, or without the step
            if self.is_in_order:
                windows = host.chosen[0]
                window = int(windows.opens[0]), int(windows.closes[-1])
                found = calls_in_order(host.trace, host.tree, host.found, tuple(groups), window)
            else:
                found = shown_nodes(host.tree, host.found, host.trace.strings, groups)
            for node in found:
                node.group = groups[node.group]
            parts.append(found)
        return merged_nodes(parts) if not self.is_in_order else _joined(parts)

    def functions(self) -> list[Function]:
        """The functions of the shown groups."""
        parts = []
        for place, host in enumerate(self.hosts):
            groups = [group for group in self.shown if place in self.groups[group].lines]
            found = functions(host.tree, host.found, host.trace.strings, groups)
            for one in found:
                one.by_group = {groups[place]: time for place, time in one.by_group.items()}
            parts.append(found)
        return merged_functions(parts)

    def covered_ps(self) -> Int64s:
        """Time that each group covers in the shown steps, of all hosts."""
        covered = sum_of([covered_ps(host.tree, len(self.groups))[0] for host in self.hosts])
        if self.tree_group >= 0:
            covered[self.tree_group] = sum(node.own_ps[0] for node in self.tree)
        return covered

    def shown_ps(self) -> int:
        """Time that the shown threads cover in the shown steps, of all hosts."""
        covered = sum_of([covered_ps(host.tree, len(self.groups))[0] for host in self.hosts])
        return int(covered[list(self.shown)].sum())

    def window_ps(self) -> Floats:
        """Time of the shown steps on each group's threads, of all hosts; NaN for scopes and modules."""
        window = np.full(len(self.groups), np.nan)
        for row, group in enumerate(self.groups):
            if row != self.tree_group:
                window[row] = sum(
                    len(lines) * self.hosts[place].chosen[0].duration_ps
                    for place, lines in group.lines.items()
                )
        return window


def sum_of(columns: Sequence[Int64s]) -> Int64s:
    """The sum of columns of equal length."""
    total: Int64s = np.sum(np.array(columns, np.int64), axis=0)
    return total


def _joined(parts: Sequence[list[Node]]) -> list[Node]:
    result: list[Node] = []
    for nodes in parts:
        first = len(result)
        for node in nodes:
            node.parent += first if node.parent >= 0 else 0
        result += nodes
    return result


def open_flame(session: Session, hosts: tuple[str, ...], params: Params) -> Flame:
    """The trees of the chosen hosts, threads and steps. Raises BadParameter for a step or thread that does
    not exist, and what `open_view` raises.
    """
    together, apart = _of_one_capture(session, hosts)
    opened = open_view(session, together)
    mode = str(params.get("mode", STACKS))
    is_in_order = params.get("order") == "time" and mode == STACKS
    texts = [str(params["steps"])]
    if is_in_order and texts[0] == ALL:
        texts = [MEDIAN]
    elif params.get("against") and not is_in_order:
        texts.append(str(params["against"]))
    groups, n_left_out = groups_of(opened.hosts, is_in_order)
    chosen = _chosen(opened, texts)
    trees = []
    for place, (host, selections) in enumerate(zip(opened.hosts, chosen, strict=True)):
        tree = stacks(
            host.trace, [group.lines.get(place, []) for group in groups], [one.windows for one in selections]
        )
        trees.append(HostTree(host, tree, frames(host.trace, tree), selections))
    own = _own_groups(opened, groups)
    windows = tuple(sum(len(one[k].opens) for one in chosen) for k in range(len(texts)))
    durations = tuple(sum(one[k].duration_ps for one in chosen) for k in range(len(texts)))
    shown = _asked(groups, str(params.get("threads", "")))
    if shown is None:
        shown = _default(trees, groups, own, durations[0] / max(len(trees), 1))
    flame = Flame(
        opened,
        tuple(trees),
        tuple(groups),
        shown,
        own,
        windows,
        durations,
        is_in_order,
        n_left_out,
        apart=apart,
    )
    return flame if mode == STACKS else _with_tree(flame, mode)


def _of_one_capture(session: Session, hosts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hosts that were captured at the same time, and the others: the largest such group, or the first of
    equally large ones. A mean over captures that do not overlap would be of no step that ran.
    """
    shown = hosts[:MAX_HOSTS]
    if len(shown) < 2:
        return tuple(hosts), ()
    marks = session.map(clock_marks, shown)
    start_ns = [
        one.start_ns + add for one, add in zip(marks, clocks_of(session, shown).correction_ns, strict=True)
    ]
    near = [[abs(other - one) < MAX_APART_NS // 2 for other in start_ns] for one in start_ns]
    is_near = max(near, key=sum)
    apart = {host for host, is_kept in zip(shown, is_near, strict=True) if not is_kept}
    return tuple(host for host in hosts if host not in apart), tuple(host for host in shown if host in apart)


def _with_tree(flame: Flame, mode: str) -> Flame:
    """The same with the tree of scopes or modules. Raises ToolUnavailable if there are none."""
    nodes, exists, reason, remedy = _TREES[mode]
    if not any(exists(host.trace) for host in flame.hosts):
        raise ToolUnavailable("flame_graph", reason, remedy)
    tree = merged_nodes([nodes(host.trace, [one.windows for one in host.chosen]) for host in flame.hosts])
    for node in tree:
        node.group = len(flame.groups)
    title = "Operations by scope" if mode == SCOPES else "Modules"
    group = Group("Summed over devices", title, mode, names=[title])
    return replace(flame, groups=(*flame.groups, group), tree_group=len(flame.groups), tree=tuple(tree))


def _chosen(opened: View, texts: Sequence[str]) -> list[tuple[Selection, ...]]:
    """The steps of each host. A host without the step has none of its time shown."""
    result: list[list[Selection]] = [[] for _ in opened.hosts]
    none = np.empty(0, np.int64)
    for name, text in zip(("steps", "against"), texts, strict=False):
        found = [selection(host.trace, text) for host in opened.hosts]
        if all(one is None for one in found):
            names = [step for host in opened.hosts for step in trace_steps(host.trace).name]
            which = f", or one of {len(names):,} steps such as {names[0]}" if names else ""
            raise BadParameter(name, text, f"{ALL}, {MEDIAN}, {SLOWEST}, {TRACE}{which}")
        for place, one in enumerate(found):
            result[place].append(one or Selection(none, none, none))
    return [tuple(one) for one in result]


def _own_groups(opened: View, groups: Sequence[Group]) -> frozenset[int]:
    """The groups of the threads that steps run on."""
    result = set()
    for place, host in enumerate(opened.hosts):
        steps, pieces = step_pieces(host.trace)
        lines = set(own_lines(host.trace, pieces).tolist()) if pieces is not None and len(steps) else set()
        result |= {i for i, group in enumerate(groups) if lines & set(group.lines.get(place, ()))}
    return frozenset(result)


def _asked(groups: Sequence[Group], text: str) -> tuple[int, ...] | None:
    """The groups with the tracks of the parameter `threads`; None if it is empty. Raises BadParameter."""
    if not text:
        return None
    allowed = "ids from the column `tracks` of the table `threads`, separated by commas"
    words = [word for word in text.split(",") if word]
    if not words or not all(word.isascii() and word.isdigit() and len(word) < _MAX_DIGITS for word in words):
        raise BadParameter("threads", text[:100], allowed)
    ids = {int(word) for word in words}
    shown = tuple(i for i, group in enumerate(groups) if ids & set(group.track_ids))
    if not shown:
        raise BadParameter("threads", text[:100], allowed)
    return shown


def _default(
    trees: Sequence[HostTree], groups: Sequence[Group], own: frozenset[int], step_ps: float
) -> tuple[int, ...]:
    """The threads that run the user's code, those of the steps first; without any, the busiest lines."""
    users = sum_of([user_times(host.tree, host.found, len(groups)) for host in trees])
    order = sorted(range(len(groups)), key=lambda i: (i not in own, -int(users[i]), i))
    shown = [i for i in order if users[i] >= max(_USERS * step_ps, 1)][:MAX_SHOWN]
    if not shown:
        is_device = np.array([group.is_device for group in groups], np.bool_)
        works = [
            np.where(
                (host.found.family == Family.WAITING) & ~is_device[host.tree.group], 0, host.tree.own_ps[0]
            ).astype(np.int64)
            for host in trees
        ]
        busy = sum_of(
            [
                np.bincount(host.tree.group, weights=work, minlength=len(groups)).astype(np.int64)
                for host, work in zip(trees, works, strict=True)
            ]
        )
        order = sorted(range(len(groups)), key=lambda i: (not is_device[i], -int(busy[i]), i))
        device = groups[order[0]].section if order and is_device[order[0]] else ""
        shown = [i for i in order if busy[i] > 0 and (not is_device[i] or groups[i].section == device)]
        shown = shown[:MAX_SHOWN_OPERATIONS] or order[:1]
    return tuple(shown)
