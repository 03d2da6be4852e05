"""Steps of a host's threads: functions, pools, several threads, hundreds of names; each time added up by
hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import CATEGORIES, TimeClass
from tb_tpuprof.analysis.steps.program import main_calls, main_function_calls
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import step_pieces, steps
from tb_tpuprof.analysis.steps.waits import has_user_events, name_kinds
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build

MS = 1000  # columns of a microsecond


def event(name: str, start: float, length: float, **stats: Any) -> DrawnEvent:
    return DrawnEvent(name, round(start * PS), round(length * PS), stats)


def trace_of(**lines: list[DrawnEvent]) -> Trace:
    ordered = {
        name: sorted(events, key=lambda one: (one.start_ps, -one.duration_ps))
        for name, events in lines.items()
    }
    return build([DrawnPlane("/host:CPU", ordered)])


def times(found: Steps, category: str) -> list[float]:
    return (found.category_ps(category) / PS).tolist()


def function_loop(calls: list[tuple[str, float]], without_run: tuple[int, ...] = ()) -> Trace:
    """Calls (function, start in ms) of TensorFlow functions of 0.5 ms, each around a run of it that
    computes.
    """
    main = []
    for i, (name, at) in enumerate(calls):
        main += [
            event(f"EagerLocalExecute: __inference_{name}_{10 + i}", at * MS, 500),
            event("MatMul:MatMul", at * MS + 20, 300 + i),
        ]
        main += [event("FunctionRun", at * MS + 10, 400, _r=1)] if i not in without_run else []
    return trace_of(main=main)


def test_of_several_functions_the_main_one_makes_the_steps() -> None:
    """`train` is called four times, with a new number each time; `eval` after every second call."""
    trace = function_loop([("train", 0), ("train", 2), ("eval", 3), ("train", 5), ("train", 8), ("eval", 9)])
    assert (trace.events["start_ps"][main_function_calls(trace)] // (MS * PS)).tolist() == [0, 2, 5, 8]
    found = steps(trace)
    assert (found.source, (found.start_ps / PS).tolist()) == ("function", [10, 2010, 5010, 8010])
    assert (found.duration_ps / PS).tolist() == [2000, 3000, 3000, 8410 - 8010]


@pytest.mark.parametrize(("without_run", "starts"), [((), [0, 2, 5]), ((1,), [0, 3, 5])])
def test_two_runs_of_the_main_function_are_too_few_to_leave_out_the_others(
    without_run: tuple[int, ...], starts: list[int]
) -> None:
    trace = function_loop([("train", 0), ("train", 2), ("eval", 3), ("train", 5)], without_run)
    assert (steps(trace).start_ps / PS).tolist() == [start * MS + 10 for start in starts]


def test_steps_of_two_threads_overlap_and_their_pools_work_for_their_own() -> None:
    """Thread a marks steps 0 and 1, thread b step 2 in the middle of both; each sends work to a pool."""
    lines: dict[str, list[DrawnEvent]] = {"a": [], "b": [], "pool": [], "second": []}
    for line, start, length, number in (("a", 0, 100, 0), ("b", 50, 100, 2), ("a", 110, 90, 1)):
        lines[line] += [
            event("train", start, length, _r=1, step_num=number),
            event("own:Own", start + 5, 10 + number),
            event("send", start + 20, 1, _pt=1, _p=number),
        ]
    lines["pool"] += [event("work:Work", 30, 60, _ct=1, _c=0), event("work:Work", 135, 30, _ct=1, _c=1)]
    lines["second"] += [event("work:Work", 75, 40, _ct=1, _c=2), event("late:Late", 116, 100)]
    found, pieces = step_pieces(trace_of(**lines))
    order = np.argsort(found.start_ps)
    assert [found.name[i] for i in order] == ["train 0", "train 2", "train 1"]
    assert ((found.start_ps / PS)[order].tolist(), (found.duration_ps / PS)[order].tolist()) == (
        [0, 50, 110],
        [100, 100, 90],
    )
    assert [times(found, "host_compute")[i] for i in order] == [10 + 1 + 60, 12 + 1 + 40, 11 + 1 + 30]
    assert pieces is not None


def test_a_region_ends_with_its_last_operation() -> None:
    """The pool's thread leaves its region 50 after dot has ended; that is no work of the next step."""
    main = [
        one
        for i in range(3)
        for one in (
            event("train", 100 * i, 100, _r=1, step_num=i),
            event("call:Call", 100 * i + 5, 10),
            event("ThreadpoolListener::Record", 100 * i + 6, 0, _pt=15, _p=i),
        )
    ]
    pool = [
        one
        for i, (first, length, left) in enumerate(((20, 30, 60), (20, 60, 85), (20, 40, 140)))
        for one in (
            event("ThreadpoolListener::StartRegion", 100 * i + first, 0, _ct=15, _c=i),
            event("dot", 100 * i + first + 2, length, hlo_op="dot", run_id=i),
            event("ThreadpoolListener::StopRegion", 100 * i + left, 0),
        )
    ]
    found = steps(trace_of(main=main, pool=pool))
    assert (found.duration_ps / PS).tolist() == [100, 100, 100]
    assert times(found, "host_compute") == [10 + 32, 10 + 62, 10 + 42]


@pytest.mark.parametrize("has_regions", [True, False])
def test_steps_that_wait_for_their_operations_are_not_dispatched(has_regions: bool) -> None:
    """Each step waits for its operation. On a busy machine the pool's threads are suspended before they leave
    the executor, or within the callback that lets the step go on: that is no work of later steps.
    """
    lines: dict[str, list[DrawnEvent]] = {"main": [], "pool": [], "second": []}
    for i, late in enumerate((0, 130, 120, 0, 110, 150)):
        at = 100 * i
        lines["main"] += [
            event("train", at, 95, _r=1, step_num=i),
            event("FunctionRun", at + 10, 80, _r=1, _pt=2, _p=i),
            event("ThreadpoolListener::Record", at + 11, 0, _pt=15, _p=i),
        ]
        in_callback = i % 2 == 1
        pool = lines["second" if in_callback else "pool"]
        pool += [
            event("ExecutorState::Process", at + 21, 50 if in_callback else 50 + late, _ct=2, _c=i),
            event("MatMul:MatMul", at + 22, 40 + i),
            event("MemoryAllocation", at + 23, 0),
        ]
        if in_callback:
            pool.append(event("ExecutorDoneCallback", at + 72, late, _ct=2, _c=i))
        if has_regions:
            pool += [
                event("ThreadpoolListener::StartRegion", at + 20, 0, _ct=15, _c=i),
                event("ThreadpoolListener::StopRegion", at + 73 + late, 0),
            ]
    found = steps(trace_of(**lines))
    assert (found.how, found.name) == ("annotated", ("train 1", "train 2", "train 3", "train 4"))
    assert (found.duration_ps / PS).tolist() == [95] * 4
    assert found.n_incomplete == 0


def test_hundreds_of_functions_each_have_their_own_time() -> None:
    """450 functions of 1 to 9 columns in each of two steps, of which every third works beside an operation
    for 1.
    """
    lengths = [1 + i % 9 for i in range(450)]
    main, other = [], []
    for step in range(2):
        at = 4000 * step
        main.append(event("train", at, 4000, _r=1, step_num=step))
        for i, length in enumerate(lengths):
            main.append(event(f"$file.py:{i + 1} function{i}", at, length))
            if i % 3 == 0:
                other.append(event("op:Op", at, 1, _ct=1, _c=step))
            at += length
        main.append(event("end:End", at, 5, _pt=1, _p=step))
    found = steps(trace_of(main=main, other=other))
    expected = {f"function{i}": length - (i % 3 == 0) for i, length in enumerate(lengths)}
    assert {wait.name: (wait.time_ps / PS).tolist() for wait in found.waits} == {
        name: [time, time] for name, time in expected.items() if time
    }
    assert [wait.total_ps for wait in found.waits] == sorted(
        (wait.total_ps for wait in found.waits), reverse=True
    )
    assert times(found, "host_python") == [sum(expected.values())] * 2
    assert times(found, "host_compute") == [5 + 150] * 2
    assert times(found, "other") == [4000 - sum(expected.values()) - 155] * 2


Body = list[tuple[str, float, float]]


def in_a_step(*body: tuple[str, float, float], **stats: dict[str, Any]) -> Steps:
    """Three steps of 100 with the same events (name, start, length) and an operation at the end."""
    main = [event("$train.py:1 main", 0, 300)]
    for i in range(3):
        main.append(event("train", 100 * i, 100, _r=1, step_num=i))
        main += [
            event(name, 100 * i + start, length, **stats.get(name.partition(" ")[0].strip("$"), {}))
            for name, start, length in (*body, ("op:Op", 95, 5))
        ]
    return steps(trace_of(main=main))


def parts(found: Steps) -> dict[str, float]:
    return {category: times(found, category)[0] for category in CATEGORIES if any(times(found, category))}


def waits(found: Steps) -> dict[str, float]:
    """Times by title, and by class where not Python."""
    kinds = {TimeClass.HOST_PYTHON: "", TimeClass.HOST_WAIT: " waits", TimeClass.HOST_WAIT_LOADER: " loads"}
    return {wait.title + kinds[wait.kind]: float(wait.time_ps[0] / PS) for wait in found.waits}


@pytest.mark.parametrize(
    ("body", "expected", "named"),
    [
        ([("$a.py:3 work", 10, 30)], {"host_python": 30, "other": 65}, {"`work` (a.py:3)": 30}),
        (
            [("$a.py:3 work", 10, 30), ("$time sleep", 15, 20)],
            {"host_python": 10, "host_wait": 20, "other": 65},
            {"`work` (a.py:3)": 10, "`work` (a.py:3) waits": 20},
        ),
        (
            [("$a.py:3 load_batch", 10, 30), ("x:X", 15, 10)],
            {"input": 20, "host_compute": 15, "other": 65},
            {"`load_batch` (a.py:3) loads": 20},
        ),
        (
            [("$builtins next", 10, 30), ("$gen.py:7 numbers", 12, 25)],
            {"input": 30, "other": 65},
            {"`numbers` (gen.py:7) loads": 25, "`next` loads": 5},
        ),
        (
            [
                ("$contextlib.py:9 __enter__", 10, 30),
                ("$builtins next", 12, 25),
                ("$gen.py:7 numbers", 13, 20),
            ],
            {"host_python": 30, "other": 65},
            {"`__enter__` (contextlib.py:9)": 5, "`next`": 5, "`numbers` (gen.py:7)": 20},
        ),
        ([("reading", 10, 30)], {"input": 30, "other": 65}, {"`reading` loads": 30}),
        (
            [("cooking", 10, 30), ("x:X", 15, 10)],
            {"host_python": 20, "host_compute": 15, "other": 65},
            {"`cooking`": 20},
        ),
        ([("PjitFunction(f)", 10, 30), ("cooking", 15, 10)], {"host_compute": 35, "other": 65}, {}),
        (
            [("PjitFunction(f)", 10, 30), ("backend_compile", 15, 10), ("PjitFunction(g)", 50, 9)],
            {"compilation": 30, "host_compute": 14, "other": 56},
            {},
        ),
        ([("IteratorGetNext", 10, 30), ("x:X", 15, 10)], {"input": 30, "host_compute": 5, "other": 65}, {}),
        (
            [("$a.py:3 work", 10, 30), ("cooking", 15, 10), ("$b.py:4 inner", 17, 5)],
            {"host_python": 30, "other": 65},
            {"`work` (a.py:3)": 20, "`cooking`": 10},
        ),
        (
            [("$a.py:3 work", 10, 30), ("$b.py:4 inner", 17, 5)],
            {"host_python": 30, "other": 65},
            {"`work` (a.py:3)": 25, "`inner` (b.py:4)": 5},
        ),
        (
            [("$contextlib.py:9 __exit__", 10, 20), ("$time sleep", 12, 5), ("$builtins next", 50, 10)],
            {"host_python": 15, "host_wait": 5, "input": 10, "other": 65},
            {"`__exit__` (contextlib.py:9)": 15, "`sleep` waits": 5, "`next` loads": 10},
        ),
        (
            [("$a.py:3 work", 10, 30), ("$queue.py:5 get", 17, 5), ("$threading.py:5 wait", 18, 3)],
            {"host_python": 25, "host_wait": 5, "other": 65},
            {"`work` (a.py:3)": 25, "`work` (a.py:3) waits": 5},
        ),
    ],
)
def test_the_time_of_a_step_s_own_thread(
    body: Body, expected: dict[str, float], named: dict[str, float]
) -> None:
    found = in_a_step(*body)
    expected = {"host_compute": 5, **expected}
    assert waits(found) == named
    assert parts(found) == expected


def test_an_annotation_with_the_runtime_s_stats_is_a_call() -> None:
    plain, tied = in_a_step(("cooking", 10, 30)), in_a_step(("cooking", 10, 30), cooking={"_p": 3, "_pt": 1})
    assert parts(plain) == {"host_compute": 5, "host_python": 30, "other": 65}
    assert parts(tied) == {"host_compute": 35, "other": 65}
    frame = in_a_step(("$a.py:3 work", 10, 30), **{"a.py:3": {"_p": 3}})
    assert parts(frame) == parts(plain)


def test_which_lines_have_events_of_the_user() -> None:
    lines = {
        "a": [event("train", 0, 9, _r=1)],
        "b": [event("cooking", 0, 9)],
        "c": [event("x:X", 0, 9)],
        "d": [event("$a.py:3 work", 0, 9)],
    }
    trace = trace_of(**lines)
    markers = np.array([0])
    assert [has_user_events(trace, np.array([line]), markers) for line in range(4)] == [
        False,
        True,
        False,
        True,
    ]
    assert has_user_events(trace, np.array([0, 2, 3]), markers)
    assert not has_user_events(trace, np.array([0, 2]), markers)
    assert name_kinds(trace).astype(bool).tolist() == [True, True, False, True]
    calls = trace_of(
        main=[
            event("step", 0, 50),
            event("$eager.py:7 run", 5, 40),
            event("TFE_Py_ExecuteCancelable", 10, 30),
        ]
    )
    kinds = dict(zip(("step", "frame", "call"), name_kinds(calls).tolist(), strict=True))
    assert (kinds["step"], kinds["call"]) == (0, 0)
    assert kinds["frame"] > 0


def test_calls_of_a_main_program_last_until_the_next_or_their_work_ends() -> None:
    """Programs of 2, 3 and 2 ms one behind the other: the last has no next call, as in a loop."""
    main = [
        event("PjitFunction(step)", at, length)
        for at, length in ((0, 1900), (2000, 2800), (5000, 1500), (7100, 1700))
    ]
    found = steps(trace_of(main=main))
    assert (found.source, found.how, found.n_trimmed) == ("program", "loop", 1)
    assert ((found.start_ps / PS).tolist(), (found.duration_ps / PS).tolist()) == (
        [0, 2000, 5000],
        [2000, 3000, 2100],
    )
    assert times(found, "host_compute") == [1900, 2800, 1500]
    assert found.name == ("0", "1", "2")


def test_steps_without_computing_are_left_out_of_annotated_loops() -> None:
    main = [event("train", 100 * i, 100, _r=1, step_num=i) for i in range(4)]
    work = [
        event("a:A", 10, 30),
        event("IteratorGetNext", 110, 30),
        event("b:B", 220, 50),
        event("$x.py:2 f", 310, 20),
    ]
    found = steps(trace_of(main=[*main, *work]))
    assert (found.name, found.n_incomplete) == (("train 0", "train 2", "train 3"), 1)
    assert times(found, "host_python") == [0, 0, 20]
    nothing = steps(trace_of(main=main))
    assert (len(nothing), nothing.n_incomplete, nothing.source) == (0, 4, "")


def test_an_annotation_without_length_marks_no_step() -> None:
    main = [
        event("train", 0, 0, _r=1, step_num=0),
        event("train", 10, 50, _r=1, step_num=1),
        event("a:A", 12, 20),
        event("train", 60, 40, _r=1, step_num=2),
        event("b:B", 62, 20),
    ]
    found = steps(trace_of(main=main))
    assert found.name == ("train 1", "train 2")
    assert times(found, "host_compute") == [20, 20]
    assert found.class_ps[0, TimeClass.UNKNOWN] == 30 * PS


def test_a_loader_between_the_annotations_of_a_loop() -> None:
    """It is the first event of its thread, and not inside of any other."""
    main = [
        one
        for i in range(4)
        for one in (
            event("$gen.py:7 load_batch", 100 * i, 40),
            event("train", 100 * i + 40, 60, _r=1, step_num=i),
            event("a:A", 100 * i + 50, 10 + i),
        )
    ]
    found = steps(trace_of(main=main))
    assert (found.how, (found.start_ps / PS).tolist()) == ("loop", [40, 140, 240])
    assert times(found, "input") == [40, 40, 40]
    assert times(found, "host_compute") == [10, 11, 12]
    assert [wait.title for wait in found.waits] == ["`load_batch` (gen.py:7)"]


def test_a_compilation_between_the_annotations_of_a_loop() -> None:
    main = [
        one
        for i in range(4)
        for one in (
            event("backend_compile", 100 * i, 30 + i),
            event("train", 100 * i + 40, 60, _r=1, step_num=i),
            event("a:A", 100 * i + 50, 10),
        )
    ]
    found = steps(trace_of(main=main))
    assert (found.how, times(found, "compilation"), times(found, "host_compute")) == (
        "loop",
        [31, 32, 33],
        [10, 10, 10],
    )


def test_units_of_a_loop_whose_frame_ends_with_its_last_call() -> None:
    """`main` calls `fit`, which calls `update` three times, each with two operations; nothing follows the
    last one.
    """
    main = [event("$job.py:1 main", 0, 12 * MS), event("$loop.py:3 fit", MS, 9 * MS)]
    for at in (1, 4, 7):
        main += [
            event("$loop.py:9 update", at * MS, 3 * MS),
            *(event("EagerLocalExecute: MatMul", (at + start) * MS, MS) for start in (0, 2)),
        ]
    trace = trace_of(main=main)
    assert (trace.events["start_ps"][main_calls(trace)] / (MS * PS)).tolist() == [1, 4, 7]
