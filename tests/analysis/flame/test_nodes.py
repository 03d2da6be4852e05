"""Trees from branches, merged trees and functions, and selections of steps, on numbers written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.flame import nodes as nodes_module
from tb_tpuprof.analysis.flame import selection as selection_module
from tb_tpuprof.analysis.flame.frames import Family, Label, frames, label_of
from tb_tpuprof.analysis.flame.nodes import (
    MAX_FUNCTIONS,
    Branch,
    Function,
    Node,
    in_order,
    merged_functions,
    merged_nodes,
    nodes_of_branches,
    shown_nodes,
)
from tb_tpuprof.analysis.flame.scopes import phase_of, scope_nodes
from tb_tpuprof.analysis.flame.selection import selection
from tb_tpuprof.analysis.flame.stacks import stacks
from tb_tpuprof.analysis.steps.record import Steps
from tests.analysis.ops.test_hlo_columns import trace_of
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build, drawing


def node(name: str, parent: int, *total: int, **more: int) -> Node:
    return Node(more.pop("group", 0), parent, name, 0, list(total), list(total), list(total), **more)  # type: ignore[arg-type]


def shape(nodes: list[Node]) -> list[tuple[str, int]]:
    """(name, parent) of each node."""
    return [(one.name, one.parent) for one in nodes]


def test_nodes_are_depth_first_and_siblings_by_time() -> None:
    """The largest of all sets counts; sums of smaller nodes are last; equal times are by name; groups come
    first.
    """
    nodes = [
        node("b", -1, 5, 1),
        node("a", -1, 5, 3),
        node("a.x", 1, 1, 1),
        node("c", -1, 2, 9),
        node("a.y", 1, 2, 2),
        node("rest", 1, 8, 8, n_smaller=3),
        node("first", -1, 1, 1, group=1),
        node("b.z", 0, 4, 4),
    ]
    assert shape(in_order(nodes)) == [
        ("c", -1),
        ("a", -1),
        ("a.y", 1),
        ("a.x", 1),
        ("rest", 1),
        ("b", -1),
        ("b.z", 5),
        ("first", -1),
    ]


def test_calls_in_time_order_stay_in_it() -> None:
    nodes = [
        node("late", -1, 9, start_ps=5),
        node("early", -1, 1, start_ps=0),
        node("middle", -1, 2, start_ps=3, n_smaller=2),
    ]
    assert [one.name for one in in_order(nodes)] == ["early", "middle", "late"]


BRANCHES = [
    Branch(("p", "a", "x"), Family.OPERATION, [3, 1], [1, 1], "forward", 10.0),
    Branch(("p", "a", "y"), Family.WAITING, [5, 0], [2, 0], "backward", None),
    Branch(("p", "b"), Family.OPERATION, [1, 20], [1, 4], "forward", 0.5),
    Branch(("q", "x"), Family.OPERATION, [4, 4], [1, 1], "forward", 1.0),
    Branch(("p", "a", "x"), Family.OPERATION, [2, 2], [1, 3], "forward", 7.0),
]


def test_branches_make_a_tree_whose_times_add_up() -> None:
    nodes = nodes_of_branches(BRANCHES, 2)
    found = {
        (one.name, nodes[one.parent].name if one.parent >= 0 else ""): (
            one.own_ps,
            one.total_ps,
            one.calls,
            one.phase,
            one.flops,
            one.family,
            one.n_smaller,
        )
        for one in nodes
    }
    op, waits = Family.OPERATION, Family.WAITING
    assert found == {
        ("p", ""): ([0, 0], [11, 23], [5, 8], "", 17.5, op, 0),
        ("b", "p"): ([1, 20], [1, 20], [1, 4], "forward", 0.5, op, 0),
        ("a", "p"): ([0, 0], [10, 3], [4, 4], "", 17.0, op, 0),
        ("y", "a"): ([5, 0], [5, 0], [2, 0], "backward", None, waits, 0),
        ("x", "a"): ([5, 3], [5, 3], [2, 4], "forward", 17.0, op, 0),
        ("q", ""): ([0, 0], [4, 4], [1, 1], "forward", 1.0, op, 0),
        ("x", "q"): ([4, 4], [4, 4], [1, 1], "forward", 1.0, op, 0),
    }
    assert [one.name for one in nodes] == ["p", "b", "a", "x", "y", "q", "x"]


def test_branches_that_do_not_fit_are_summed_up_below_the_last_node_that_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodes_module, "MAX_NODES", 4)
    nodes = nodes_of_branches(BRANCHES, 2)
    # The largest branches come first: p/b of 20, p/a/y of 5, then p/a's other one, and q below the root.
    assert [(one.name, one.parent, one.total_ps, one.n_smaller) for one in nodes] == [
        ("p", -1, [11, 23], 0),
        ("b", 0, [1, 20], 0),
        ("a", 0, [10, 3], 0),
        ("y", 2, [5, 0], 0),
        ("", 2, [5, 3], 2),
        ("", -1, [4, 4], 1),
    ]
    assert sum(one.own_ps[1] for one in nodes) == 27


def test_trees_of_three_hosts_as_one() -> None:
    """Nodes of the same group and names are one; the same names below unlike parents are not."""
    first = [node("p", -1, 10), node("x", 0, 4), node("rest", 0, 1, n_smaller=2)]
    second = [node("q", -1, 7), node("x", 0, 6), node("p", -1, 3), node("rest", 2, 2, n_smaller=3)]
    third = [node("p", -1, 5, group=1), node("x", 0, 2, group=1)]
    for nodes, flops in ((first, 1.0), (second, 2.5)):
        nodes[1].flops = flops
    first[0].phase = "forward"
    merged = merged_nodes([first, second, third])
    assert [(one.group, one.name, one.parent, one.total_ps, one.n_smaller, one.flops) for one in merged] == [
        (0, "p", -1, [13], 0, None),
        (0, "x", 0, [4], 0, 1.0),
        (0, "rest", 0, [3], 5, None),
        (0, "q", -1, [7], 0, None),
        (0, "x", 3, [6], 0, 2.5),
        (1, "p", -1, [5], 0, None),
        (1, "x", 5, [2], 0, None),
    ]
    assert merged[0].own_ps == merged[0].calls == [13]
    assert merged[0].phase == "forward"
    assert first[0].total_ps == [10]
    alone = [node("p", -1, 1)]
    assert merged_nodes([alone]) == alone


def function(name: str, own: int, with_calls: int, **by_group: int) -> Function:
    shares = {int(group.removeprefix("g")): time for group, time in by_group.items()}
    return Function(
        name, 0, True, [own, own], [with_calls, 0], [1, 2], [own + 9, 3], [4, 5], "caller", by_group=shares
    )


def test_functions_of_three_hosts_by_name() -> None:
    parts = [
        [function("a", 5, 6, g0=6), function("b", 1, 30, g1=30)],
        [function("a", 7, 9, g0=4, g2=5)],
        [function("c", 20, 0), function("a", 1, 2, g2=2)],
    ]
    merged = merged_functions(parts)
    assert [one.name for one in merged] == ["b", "c", "a"]
    a = merged[2]
    assert (a.own_ps, a.with_calls_ps, a.waiting_ps, a.total_ps, a.calls) == (
        [13, 13],
        [17, 0],
        [3, 6],
        [40, 9],
        [12, 15],
    )
    assert a.by_group == {0: 10, 2: 7}
    many = [function(f"f{i}", i, 0) for i in range(MAX_FUNCTIONS + 5)]
    kept = merged_functions([many])
    assert (len(kept), kept[0].name, kept[-1].name) == (MAX_FUNCTIONS, "f304", "f5")


@pytest.mark.parametrize(
    ("name", "label", "title"),
    [
        ("$a/train.py:7 f", Label("f", "a/train.py", 7), "`f` (a/train.py:7)"),
        ("$time sleep", Label("time.sleep"), "`time.sleep`"),
        ("$builtins next", Label("next"), "`next`"),
        ("nn.Module: Linear_0", Label("Linear_0"), "`Linear_0`"),
        ("PjitFunction(f)", Label("PjitFunction(f)"), "`PjitFunction(f)`"),
    ],
)
def test_labels(name: str, label: Label, title: str) -> None:
    found = label_of(name)
    assert replace(found, package="") == label
    assert found.title == title


def test_families_in_words() -> None:
    assert [family.word for family in Family] == ["yours", "library", "runtime", "operation", "waiting"]
    assert [int(family) for family in Family] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("provenance", "phase"),
    [
        ("transpose(jvp(f))/x", "backward"),
        ("a/transposed(x)", ""),
        ("gradients/x", "backward"),
        ("a/gradients/x", "backward"),
        ("a/my_gradients/x", ""),
        ("a/jvp(f)/adam", "optimizer"),
        ("a/AdamW/x", "optimizer"),
        ("a/apply_gradients/x", "optimizer"),
        ("transpose(jvp(f))/sgd/x", "optimizer"),
        ("a/adams/x", ""),
        ("jvp(f)", "forward"),
    ],
)
def test_phases(provenance: str, phase: str) -> None:
    assert phase_of(provenance) == phase


WORK = drawing("main    [train]")


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("all", [7, 12, 9, 20]),
        ("slowest", [20]),
        ("median", [9]),
        ("4", [12]),
        ("6", [20]),
        ("7", None),
        ("", None),
    ],
)
def test_choices_of_steps(text: str, lengths: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    start, length = np.array([8, 18, 31, 42]) * PS, np.array([7, 12, 9, 20]) * PS
    names = ("train 3", "train 4", "5", "train 6")
    steps = Steps(np.arange(3, 7), names, start, length, np.zeros((4, 15), np.int64))
    monkeypatch.setattr(selection_module, "trace_steps", lambda _: steps)
    found = selection(WORK, text)
    if lengths is None:
        assert found is None
    else:
        assert found is not None
        assert ((found.closes - found.opens) // PS).tolist() == lengths
        assert found.duration_ps == sum(lengths) * PS
        assert found.windows == (found.opens, found.closes)
        assert start[found.rows].tolist() == found.opens.tolist()


def test_a_trace_without_steps_has_only_itself() -> None:
    for text in ("all", "median", "slowest", "trace"):
        found = selection(WORK, text)
        assert found is not None
        assert (found.opens.tolist(), found.closes.tolist(), len(found.rows)) == ([0], [15 * PS], 0)
    assert selection(WORK, "train") is None


def test_operations_by_scope() -> None:
    """Two cores run three and one additions of 6 ps and 5 FLOPs; the window holds all but the last one of the
    first.
    """
    trace = trace_of(3, 1)
    nodes = scope_nodes(
        trace, [(np.array([0]), np.array([140])), (np.array([0, 1000]), np.array([500, 2000]))]
    )
    paths: list[str] = []
    for one in nodes:
        paths.append(f"{paths[one.parent]} > {one.name}" if one.parent >= 0 else one.name)
    found = {
        path: (one.own_ps, one.calls, one.flops)
        for path, one in zip(paths, nodes, strict=True)
        if any(one.own_ps)
    }
    assert found == {
        "7 > loop > while.1": ([40, 80], [1, 2], 10_000),
        "7 > s > dot > dot.2": ([60, 120], [2, 4], 200),
        "8 > add.3": ([12, 24], [2, 4], 10),  # without the SparseCore's
        "8 > custom-call.4": ([0, 60], [0, 2], 0),
    }
    assert scope_nodes(build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, 1)]})]), []) == []


def test_nodes_of_a_two_thousandth_of_the_widest_group_are_shown() -> None:
    """Of 10,000 ps that two nested calls take; a group that is not shown does not count."""
    one = [
        DrawnEvent("f", 0, 10_000),
        DrawnEvent("g", 0, 10_000),
        DrawnEvent("h", 10, 5),
        DrawnEvent("i", 20, 4),
    ]
    trace = build([DrawnPlane("/host:CPU", {"one": one, "two": [DrawnEvent("j", 0, 90_000)]})])
    window = np.array([0]), np.array([100_000])
    tree = stacks(trace, [[0], [1]], [window])
    nodes = shown_nodes(tree, frames(trace, tree), trace.strings, [0])
    assert [(node.name, node.total_ps[0], node.n_smaller) for node in nodes] == [
        ("f", 10_000, 0),
        ("g", 10_000, 0),
        ("h", 5, 0),
        ("", 4, 1),
    ]


def test_scopes_are_60_deep_at_most_and_unknown_work_is_none() -> None:
    names = "/".join(f"s{i}" for i in range(61))
    stats: dict[str, Stats] = {"x": {"program_id": 7, "symbol_id": 1, "tf_op": names}}
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": [DrawnEvent("x", 0, 9)]}, metadata_stats=stats)])
    nodes = scope_nodes(trace, [(np.array([0]), np.array([10]))])
    assert [one.name for one in nodes] == ["7", *(f"s{i}" for i in range(60)), "x"]
    assert {one.flops for one in nodes} == {None}
