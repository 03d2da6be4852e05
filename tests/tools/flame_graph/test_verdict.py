"""What the flame graph says first, and its files, on functions and stacks whose times are given."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.analysis.flame.frames import Family
from tb_tpuprof.analysis.flame.nodes import Function, Node
from tb_tpuprof.tools.flame_graph import verdict as verdicts
from tb_tpuprof.tools.flame_graph.files import _evented, _Frames, _lines, _sampled
from tb_tpuprof.tools.flame_graph.verdict import short, verdict_of
from tb_tpuprof.tools.payload import Verdict

MS = 10**9
LOAD, CROP, GET = "$train.py:9 load", "$augment.py:7 crop", "$queue.py:171 get"


@pytest.fixture(autouse=True)
def framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "software", lambda trace: trace)
    monkeypatch.setattr(verdicts, "sum_software", lambda _: SimpleNamespace(framework="JAX"))


def flame(has_steps: bool = True) -> Any:
    """Two windows of 200 ms in total; the steps' own thread is group 0."""
    groups = [SimpleNamespace(title=title, is_device=False) for title in ("main", "loader", "pool")]
    return SimpleNamespace(
        durations_ps=[200 * MS],
        n_windows=[2],
        own_groups={0},
        groups=groups,
        has_steps=has_steps,
        hosts=[SimpleNamespace(trace=None)],
        shown=(0, 1, 2),
    )


def function(
    name: str,
    ms: float,
    by_group: Mapping[int, float] | None = None,
    waiting: float = 0,
    caller: str = "",
    family: int = Family.YOURS,
    own_ms: float = 0.0,
) -> Function:
    """A function of the user if `ms` is given."""
    times = {group: round(part * MS) for group, part in (by_group or {0: ms}).items()}
    return Function(
        name,
        family,
        family == Family.YOURS,
        [round((own_ms or ms) * MS)],
        [round(ms * MS)],
        [round(waiting * MS)],
        [round(ms * MS)],
        [1],
        caller,
        by_group=times,
    )


def said(*functions: Function, has_steps: bool = True) -> Verdict:
    shown = verdict_of(flame(has_steps), functions)
    assert shown is not None
    return shown


def test_nothing_ran() -> None:
    assert verdict_of(flame(), []) is None
    assert verdict_of(flame(), [function(LOAD, 0)]) is None


def test_the_function_with_the_most_self_time_on_the_steps_thread() -> None:
    shown = said(function(CROP, 60, {1: 60}), function(LOAD, 40, caller=GET), function("$a.py:1 main", 20))
    assert shown.text == "Most self time in your code: `load` (train.py:9) takes 20.0 ms (20.0%) per step."
    assert shown.details == (
        "It is called by `get` (queue.py:171).",
        "On other threads, `crop` (augment.py:7) takes the most: 30.0 ms (30.0%) per step, on thread loader.",
    )
    assert shown.category == "python"
    assert [(one.tool, dict(one.params)) for one in shown.next] == [("flame_graph", {"function": LOAD})]


def test_without_functions_on_the_steps_thread_any_thread_counts() -> None:
    shown = said(function(LOAD, 20, {1: 20}), function(CROP, 50, {1: 20, 2: 30}), has_steps=False)
    assert shown.text == "Most self time in your code: `crop` (augment.py:7) takes 25.0 ms (25.0%)."
    assert shown.details == ()
    assert said(function(CROP, 50, caller=CROP)).details == ()


def test_time_on_the_steps_thread_counts_alone() -> None:
    """90 ms, but 10 ms of it on the steps' thread, against 20 ms."""
    shown = said(function(CROP, 90, {0: 10, 1: 80}), function(LOAD, 20))
    assert "`load` (train.py:9) takes 10.0 ms (10.0%)" in shown.text
    assert shown.details == (
        "On other threads, `crop` (augment.py:7) takes the most: 45.0 ms (45.0%) per step, on thread loader.",
    )


@pytest.mark.parametrize(("waiting", "waits"), [(20, False), (20.1, True), (40, True)])
def test_a_function_that_waits_most_of_its_time(waiting: float, waits: bool) -> None:
    shown = said(function(GET, 40, waiting=waiting), function(CROP, 8, waiting=4), function(LOAD, 6))
    assert (", " in shown.text) is waits
    assert shown.category == ("wait" if waits else "python")
    assert shown.details == (
        (
            (
                "Of the functions that do not wait, `crop` (augment.py:7) takes the most: 4.00 ms (4.00%) per"
                " step."
            ),
        )
        if waits
        else ()
    )


def test_only_functions_that_matter_are_named() -> None:
    """More than 1% of 200 ms."""
    waiting = function(GET, 40, waiting=40)
    assert said(waiting, function(CROP, 2)).details == ()
    assert len(said(waiting, function(CROP, 2.1)).details) == 1
    operation = function("dot.1", 0, {}, family=Family.OPERATION, own_ms=30)
    assert said(function(LOAD, 2), operation).text.startswith("The largest operation is `dot.1`")
    assert said(function(LOAD, 2.1), operation).text.startswith("Most self time in your code")


def test_without_functions_the_largest_operation() -> None:
    library = function("$numpy.py:1 sum", 0, {}, family=Family.LIBRARY, own_ms=90)
    operation = function("dot.1", 0, {}, family=Family.OPERATION, own_ms=30)
    data = function("Iterator::Map", 0, {}, family=Family.OPERATION, own_ms=50)
    shown = said(library, data, operation)
    assert (
        shown.text
        == "The largest operation is `dot.1`: 15.0 ms (15.0%) per step. The trace has no Python calls on"
        " these "
        "threads, so none of your functions can be named."
    )
    assert len(shown.details) == 1
    assert "record Python calls" in shown.details[0]
    assert shown.category == "compute"
    assert [dict(one.params) for one in shown.next] == [{"function": "dot.1"}]
    assert "`Iterator::Map`" in said(library, data).text
    assert said(library).text.startswith("The largest call is ")
    small = function("dot.2", 0, {}, family=Family.OPERATION, own_ms=1.9)
    assert said(library, small).text.startswith("The largest call is ")
    exact = function("dot.2", 0, {}, family=Family.OPERATION, own_ms=2)
    assert said(library, exact).text.startswith("The largest operation is `dot.2`")
    waiting = function("wait", 0, {}, family=Family.WAITING, own_ms=31)
    assert said(operation, waiting).text.startswith(
        "The largest operation is `wait`, which only waits: 15.5 ms (15.5%) per step. "
    )


def test_functions_below_one_percent_are_no_reason_to_record_them() -> None:
    operation = function("dot.1", 0, {}, family=Family.OPERATION, own_ms=30)
    shown = said(operation, function(LOAD, 1))
    assert shown.text.endswith("No function of your code takes 1% or more.")
    assert shown.details == ()


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("a" * 60, "a" * 60),
        ("a" * 30 + "b" * 31, "a" * 30 + "…" + "b" * 30),
        ("gemm<" + "x" * 55 + ">", "gemm<…>"),
        ("gemm<" + "x" * 54 + ">", "gemm<" + "x" * 54 + ">"),
        ("a" * 40 + "b" * 40 + "<int>", "a" * 30 + "…" + "b" * 27 + "<…>"),
    ],
)
def test_long_names_are_cut(name: str, cut: str) -> None:
    assert short(name) == cut


def node(group: int, parent: int, name: str, own_ns: float, total_ns: float = 0, start_ns: float = 0) -> Node:
    ps = [round(part * 1000) for part in (own_ns, total_ns, start_ns)]
    made = Node(group, parent, name, Family.YOURS, [ps[0]], [ps[1]], [1])
    made.start_ps = ps[2]
    return made


def test_sampled_stacks() -> None:
    frames = _Frames()
    nodes = [node(0, -1, "main", 5), node(0, 0, LOAD, 0), node(0, 1, "main", 2.5), node(0, 0, "end", 1)]
    profile = _sampled("thread", list(enumerate(nodes)), frames)
    assert [frame["name"] for frame in frames.all] == ["main", "load", "end"]
    assert (frames.all[1]["line"], "file" in frames.all[0]) == (9, False)
    assert profile["samples"] == [[0], [0, 1, 0], [0, 2]]
    assert profile["weights"] == [5, 2.5, 1]
    assert (profile["startValue"], profile["endValue"]) == (0, 8.5)


def test_calls_in_order_close_with_their_caller() -> None:
    """b begins before its neighbor a ends; c would end after its caller."""
    nodes = [
        node(0, -1, "main", 0, 100, 10),
        node(0, 0, "a", 0, 30, 20),
        node(0, 0, "b", 0, 10, 40),
        node(0, 0, "c", 0, 90, 70),
        node(0, -1, "next", 0, 5, 200),
    ]
    frames = _Frames()
    profile: Any = _evented("thread", list(enumerate(nodes)), frames)
    names = [frame["name"] for frame in frames.all]
    assert [(one["type"], names[one["frame"]], one["at"]) for one in profile["events"]] == [
        ("O", "main", 10),
        ("O", "a", 20),
        ("C", "a", 50),
        ("O", "b", 50),
        ("C", "b", 50),
        ("O", "c", 70),
        ("C", "c", 110),
        ("C", "main", 110),
        ("O", "next", 200),
        ("C", "next", 205),
    ]
    assert (profile["startValue"], profile["endValue"]) == (0, 205)


def test_the_first_call_is_closed_at_the_end() -> None:
    profile: Any = _evented(
        "thread", [(0, node(0, -1, "main", 0, 100, 10)), (1, node(0, 0, "a", 0, 30, 20))], _Frames()
    )
    assert [(one["type"], one["at"]) for one in profile["events"]] == [
        ("O", 10),
        ("O", 20),
        ("C", 50),
        ("C", 110),
    ]
    assert profile["endValue"] == 110


def test_collapsed_stacks_are_paths_with_whole_nanoseconds() -> None:
    groups = [SimpleNamespace(title="pool;1"), SimpleNamespace(title=" ")]
    nodes = [node(0, -1, "a;b", 2.9), node(0, 0, LOAD, 0.9), node(0, 1, "c\nd", 7), node(1, -1, "e", 1)]
    lines = list(_lines(SimpleNamespace(nodes=lambda: nodes, groups=groups)))  # type: ignore[arg-type]
    file = "train.py:9"
    assert lines == [
        b"pool,1;a,b 2\n",
        f"pool,1;a,b;load ({file});c d 7\n".encode(),
        b"(no name);e 1\n",
    ]
