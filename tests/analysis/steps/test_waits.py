"""What a step's own thread waits for: frames of the Python tracer, annotations, loops that wait between their
annotations.
"""

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.events.program_runs import run_ends
from tb_tpuprof.analysis.events.python_frames import Frame, Kind, frame_of, is_compilation, kind_of
from tb_tpuprof.analysis.input.advice import input_advice
from tb_tpuprof.analysis.input.pipeline import input_part, input_pipeline
from tb_tpuprof.analysis.ops.recommend import Finding, finding, input_finding, on_worst_host
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.classes import CATEGORIES, TimeClass
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.windows import Windows, clipped, step_windows
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing


def with_parts(input_us: int, other_us: int) -> Steps:
    """Steps of 100 µs on a device that wait for input and idle for so long, and compute for the rest."""
    found = steps(loop(GENERATOR))
    class_ps = np.zeros_like(found.class_ps)
    class_ps[:, TimeClass.HOST_WAIT_LOADER] = input_us * PS
    class_ps[:, TimeClass.UNKNOWN] = other_us * PS
    class_ps[:, TimeClass.DEVICE_COMPUTE_32] = (100 - input_us - other_us) * PS
    return replace(found, class_ps=class_ps, duration_ps=class_ps.sum(axis=1), waits=())


def parts(found: Steps) -> dict[str, list[float]]:
    """Times of the categories that occur, in columns of the drawing."""
    times = {category: (found.category_ps(category) / PS).tolist() for category in CATEGORIES}
    return {category: values for category, values in times.items() if any(values)}


def said(trace: Trace) -> tuple[str, str]:
    """What the overview and the input's page say."""
    found = steps(trace)
    return finding(found, op_stats(trace), "CPU").text, input_finding(found, "CPU").text


def numbered(*numbers: int) -> list[dict[str, int]]:
    return [{"_r": 1, "step_num": number} for number in numbers]


def loop(
    body: list[tuple[str, int, int]], n: int = 3, period: int = 100, step: tuple[int, int] = (0, 100)
) -> Trace:
    """Steps of one thread with the same events (name, start, duration) in each, and a frame around the whole
    loop.
    """
    events = [DrawnEvent("$train.py:90 main", 0, n * period * PS)]
    for i in range(n):
        at = i * period
        marker = DrawnEvent("train", (at + step[0]) * PS, step[1] * PS, {"_r": 1, "step_num": i})
        events += [marker, *(DrawnEvent(name, (at + start) * PS, time * PS) for name, start, time in body)]
    events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    return build([DrawnPlane("/host:CPU", {"python": events})])


GENERATOR = [
    ("$train.py:40 step", 2, 96),
    ("$builtins next", 4, 61),
    ("$gen.py:15 plain", 5, 60),
    ("$time sleep", 6, 58),
    ("dot:Dot", 66, 30),
]


def test_a_generator_that_sleeps_is_waiting_for_data_and_is_named() -> None:
    trace = loop(GENERATOR)
    found = steps(trace)
    assert parts(found) == {
        "input": [61, 61, 61],
        "host_compute": [30, 30, 30],
        "host_python": [5, 5, 5],
        "other": [4, 4, 4],
    }
    (first, *_) = found.waits
    assert (first.kind, first.title, (first.time_ps / PS).tolist()) == (
        TimeClass.HOST_WAIT_LOADER,
        "`plain` (gen.py:15)",
        [60, 60, 60],
    )
    text = "Highly input-bound: each step waits 61.0 µs (61.0%) for data in `plain` (gen.py:15)."
    assert said(trace) == (text, text)


def test_a_sleep_that_nothing_says_is_for_data_is_waiting() -> None:
    trace = loop(
        [
            ("$train.py:40 step", 1, 98),
            ("$train.py:70 settle", 10, 50),
            ("$time sleep", 12, 47),
            ("dot:Dot", 60, 38),
        ]
    )
    found = steps(trace)
    assert parts(found)["host_wait"] == [47, 47, 47]
    overview, of_input = said(trace)
    assert overview.startswith(
        "Each step waits 47.0 µs (47.0%) in `settle` (train.py:70); the trace does not show what for"
    )
    assert of_input.startswith(
        "Possibly input-bound: no waiting for data was traced, but each step waits 47.0 µs (47.0%) in "
        "`settle`"
    )


def test_python_s_own_work_is_told_by_its_function() -> None:
    trace = loop(
        [
            ("$train.py:40 step", 0, 100),
            ("$text.py:7 hashed", 10, 50),
            ("$builtins len", 20, 10),
            ("dot:Dot", 60, 40),
        ]
    )
    assert parts(steps(trace))["host_python"] == [60, 60, 60]
    overview, of_input = said(trace)
    assert overview.startswith(
        "Highly Python-bound: each step spends 60.0 µs (60.0%) in Python, most of it in `hashed`"
    )
    assert of_input == "Not input-bound: no step waits for data."


@pytest.mark.parametrize("tracer", [False, True])
def test_a_step_that_computes_is_compute_bound_however_it_is_traced(tracer: bool) -> None:
    frames = [("$train.py:40 step", 0, 100), ("$api.py:3 call", 1, 99)] if tracer else []
    trace = loop([*frames, ("PjitFunction(update)", 2, 98), *([("$pxla.py:9 run", 5, 80)] if tracer else [])])
    overview, of_input = said(trace)
    assert overview.startswith("Compute-bound: 98.0%")
    assert of_input.startswith("Not input-bound")


def test_waiting_while_other_threads_compute_for_the_steps_is_computing() -> None:
    trace = drawing(
        """
        main    [train                   ]     [train                   ]
        main     [send][$time sleep     ]       [send][$time sleep     ]
        worker      [dot:Dot     ]                 [dot:Dot     ]
        """,
        {
            "train": numbered(1, 2),
            "send": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "dot:Dot": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}],
        },
    )
    found = steps(trace)
    assert parts(found)["host_compute"] == [17, 17]
    assert parts(found)["host_wait"] == [7, 7]
    assert (found.waits[0].time_ps / PS).tolist() == [7, 7]


def test_time_in_an_annotation_is_reported_under_its_name() -> None:
    """4 parts of sleep in `load`, 3 of operations: 57% input."""
    trace = loop([("load", 0, 57), ("dot:Dot", 57, 43)])
    assert parts(steps(trace)) == {"input": [57, 57, 57], "host_compute": [43, 43, 43]}
    assert said(trace)[0] == "Highly input-bound: each step waits 57.0 µs (57.0%) for data in `load`."
    other = loop([("anneal", 0, 57), ("dot:Dot", 57, 43)])
    assert parts(steps(other)) == {"host_python": [57, 57, 57], "host_compute": [43, 43, 43]}
    assert (
        said(other)[0]
        == "57.0 µs (57.0%) of each step is in `anneal`, where no operation was traced: Python, other "
        "host work, or waiting."
    )


def test_operations_inside_an_annotation_compute() -> None:
    trace = loop([("forward", 0, 90), ("dot:Dot", 5, 80)])
    found = steps(trace)
    assert parts(found) == {"host_python": [10, 10, 10], "host_compute": [80, 80, 80], "other": [10, 10, 10]}
    assert [(wait.name, (wait.time_ps / PS).tolist()) for wait in found.waits] == [("forward", [10] * 3)]


def test_calls_of_tf_functions_are_no_annotations() -> None:
    trace = loop([("one_step", 0, 95), ("TFE_Py_ExecuteCancelable", 5, 85)])
    assert parts(steps(trace))["host_compute"] == [95, 95, 95]


def test_what_lies_between_annotated_steps_belongs_to_them() -> None:
    """The loop fetches before it annotates: a step lasts from its start to the next one's."""
    body = [
        ("$builtins next", 32, 66),
        ("$gen.py:15 plain", 33, 64),
        ("$time sleep", 34, 62),
        ("dot:Dot", 1, 28),
    ]
    found = steps(loop(body, n=4, step=(0, 30)))
    assert found.how == "loop"
    assert (found.duration_ps / PS).tolist() == [100, 100, 100]
    assert found.n_trimmed == 1
    assert parts(found)["input"] == [66, 66, 66]


def test_steps_that_only_dispatch_last_until_their_work_is_done() -> None:
    trace = drawing(
        """
        main    [train][train][train]
        main     [a]    [b]    [c]
        worker     [dot:Dot      ][dot:Dot    ][dot:Dot        ]
        """,
        {
            "train": numbered(1, 2, 3),
            "a": {"_pt": 1, "_p": 1},
            "b": {"_pt": 1, "_p": 2},
            "c": {"_pt": 1, "_p": 3},
            "dot:Dot": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}, {"_ct": 1, "_c": 3}],
        },
    )
    found = steps(trace)
    assert (found.how, found.is_ahead) == ("dispatched", True)
    assert (found.duration_ps / PS).tolist() == [18, 13, 17]
    assert parts(found)["host_compute"] == [17, 13, 17]


def test_runs_on_one_device_belong_to_calls_in_their_order() -> None:
    """No tie, no number in common: the third run is the third step's. A run from before the capture comes
    first.
    """

    def event(name: str, start: int, time: int, **stats: int) -> DrawnEvent:
        return DrawnEvent(name, start * PS, time * PS, stats)

    call = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    steps_ = [event("train", 10 * i, 9, _r=1, step_num=i) for i in range(3)]
    # As in real traces: the pool's tasks are chained, so that all runs seem to come from the first call.
    calls = [event(call, 10 * i + 1, 2, **({} if i else {"_pt": 1, "_p": 1})) for i in range(3)]
    runs = [
        event("dot", at, time, run_id=70 + i, _ct=1, _c=1)
        for i, (at, time) in enumerate([(0, 4), (5, 20), (25, 15), (40, 30)])
    ]
    main = sorted(steps_ + calls, key=lambda one: one.start_ps)
    numbered_runs = build([DrawnPlane("/host:CPU", {"main": main, "pool": runs})])
    assert (run_ends(numbered_runs)[1] / PS).tolist() == [25, 40, 70]
    found = steps(numbered_runs)
    assert found.how == "dispatched"
    assert (found.duration_ps / PS).tolist() == [25, 15, 30]


def test_runs_of_two_programs_are_told_apart_by_time_not_by_number() -> None:
    """Each program numbers its runs from a base of its own: the second one's are lower here, so by number
    they would all come first.
    """

    def event(name: str, start: int, time: int, **stats: int) -> DrawnEvent:
        return DrawnEvent(name, start * PS, time * PS, stats)

    call = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    main, pool = [], []
    for i in range(6):
        at = 100 * i
        main += [event("train", at, 95, _r=1, step_num=i), event(call, at + 1, 2), event(call, at + 10, 2)]
        pool += [event("dot", at + 3, 60, run_id=700 + i), event("sum", at + 65, 20, run_id=7 + i)]
    trace = build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})])
    assert (run_ends(trace)[1] / PS).tolist() == [
        end for i in range(6) for end in (100 * i + 63, 100 * i + 85)
    ]
    found = steps(trace)
    assert (found.how, (found.duration_ps / PS).tolist()) == ("annotated", [95] * 4)


def test_windows_of_several_names_are_as_annotated() -> None:
    group, start, end = np.arange(4), np.array([0, 100, 200, 300]), np.array([30, 130, 230, 330])
    assert step_windows(group, start, end, end, are_alike=False).how == "annotated"
    found = step_windows(group, start, end, end, are_alike=True)
    assert (found.how, found.n_open, found.end.tolist()) == ("loop", 1, [100, 200, 300])
    close = step_windows(group, start, start + 99, start + 99, are_alike=True)
    assert (close.how, close.n_open) == ("annotated", 0)


def test_a_long_first_step_that_waits_is_told_of() -> None:
    text = (
        f"main   [train{' ' * 44}]{'[train    ]' * 7}\nmain   [IteratorGetNext{' ' * 25}][w:W    "
        f"]{'   [w:W]   ' * 7}"
    )
    found = steps(drawing(text, {"train": numbered(*range(8))}))
    assert found.first is not None
    assert (found.first.name, found.first.input_ps / PS) == ("train 0", 42)
    assert found.n_trimmed == 2
    trace = drawing(text, {"train": numbered(*range(8))})
    assert (
        "The first step (train 0) waited 42.0 µs of 51.0 µs for data"
        in finding(found, op_stats(trace), "CPU").details[-1]
    )


def test_untraced_time_of_steps_whose_fetch_is_traced_is_no_waiting_for_data() -> None:
    trace = loop([("IteratorGetNext", 0, 1), ("dot:Dot", 1, 60)])
    bare = build(
        [
            DrawnPlane(
                "/host:CPU", {"python": [event for event in drawn(trace) if not event.name.startswith("$")]}
            )
        ]
    )
    found = input_finding(steps(bare), "CPU")
    assert (found.level, found.text) == (
        "good",
        "Not input-bound: each step waits 1.00 µs (1.00%) for data.",
    )
    assert found.costs[0].startswith(
        "39.0 µs (39.0%) of each step is Python or other work between operations"
    )


def test_what_several_hosts_wait_for_is_their_mean() -> None:
    sleepy = [
        ("$train.py:40 step", 2, 96),
        ("$builtins next", 4, 31),
        ("$gen.py:15 plain", 5, 30),
        ("$time sleep", 6, 28),
        ("dot:Dot", 36, 60),
    ]
    mine, theirs = steps(loop(GENERATOR)), steps(loop(sleepy))
    (wait, *_) = common_steps([mine, theirs], [0, 0]).steps.waits
    assert (wait.title, (wait.time_ps / PS).tolist()) == ("`plain` (gen.py:15)", [45, 45, 45])
    told = on_worst_host(Finding("good", "input", "fine"), "worker-1", mine)
    assert told.text.startswith(
        "Highly input-bound on worker-1: each of its steps waits 61.0 µs (61.0%) for data in `plain` "
        "(gen.py:15)"
    )

    # A host that is moderately held up is no headline where all of them lose more to something else.
    worse = Finding("bad", "other", "GPU idle", ("and more",))
    slightly = with_parts(input_us=10, other_us=5)
    assert on_worst_host(worse, "worker-1", mine).category == "input"
    told = on_worst_host(worse, "worker-1", slightly)
    assert (told.text, told.category, told.details) == ("GPU idle", "other", ("and more",))
    assert told.costs[0].startswith("Moderately input-bound on worker-1")


@pytest.mark.parametrize(
    ("explained", "text"),
    [
        (0, "The GPU is idle for 60.0 µs (60.0%) of each step: it waits for host work that was not"),
        (20, "The GPU is idle for 40.0 µs (40.0%) of each step, besides waits for data: it waits"),
    ],
)
def test_idle_time_beyond_what_is_explained_is_not_called_all_of_it(explained: int, text: str) -> None:
    told = finding(with_parts(explained, 60 - explained), op_stats(loop(GENERATOR)), "GPU")
    assert any(one.startswith(text) for one in (told.text, *told.costs, *told.details)), told


def test_advice_names_the_loader_and_not_the_tracer_that_found_it() -> None:
    found = input_pipeline([input_part(loop(GENERATOR))])
    texts = [advice.text for advice in input_advice(found, "bad")]
    assert texts[0].startswith("`plain` (gen.py:15) blocks the thread that runs the steps")
    assert not any("python_tracer_level" in text for text in texts)


def drawn(trace: Trace) -> list[DrawnEvent]:
    """The events of a trace of one line, as drawn."""
    names = [trace.strings[trace.metadata["name"][i]] for i in trace.events["metadata"].tolist()]
    steps_of = trace.event_stats.ints("step_num")
    numbers = dict(zip(steps_of.owner.tolist(), steps_of.value.tolist(), strict=True))
    times = zip(names, trace.events["start_ps"].tolist(), trace.events["duration_ps"].tolist(), strict=True)
    return [
        DrawnEvent(name, start, time, {"_r": 1, "step_num": numbers[i]} if i in numbers else {})
        for i, (name, start, time) in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("$time sleep", Kind.WAIT),
        ("$threading.py:295 wait", Kind.WAIT),
        ("$<unknown> acquire", Kind.WAIT),
        ("$queue.py:154 get", Kind.WAIT),
        ("MakeBatch", Kind.LOADER),
        ("Prefetch", Kind.LOADER),
        ("PrefetchConsume", Kind.NONE),
        ("$iterator_ops.py:824 __next__", Kind.LOADER),
        ("$mine.py:5 load_batch", Kind.LOADER),
        ("$mine.py:5 train_on_batch", Kind.PYTHON),
        ("$builtins next", Kind.NEXT),
        ("$mine.py:5 f", Kind.PYTHON),
        ("load", Kind.LOADER),
        ("NextBatch", Kind.LOADER),
        ("forward", Kind.ANNOTATION),
        ("PjitFunction(f)", Kind.NONE),
        ("a/MatMul:MatMul", Kind.NONE),
        ("DevicePut", Kind.NONE),
        ("torch/utils/data/dataloader.py(633): __next__", Kind.LOADER),
        ("<built-in method sleep of module object at 0x7f>", Kind.WAIT),
        ("$resource_variable_ops.py:815 _read_variable_op", Kind.PYTHON),
        ("$distribute_lib.py:3621 batch_all_reduce", Kind.PYTHON),
        ("$iterator_ops.py:878 get_next", Kind.LOADER),
        ("$py_dataset_adapter.py:60 load_batch", Kind.LOADER),
    ],
)
def test_kinds_of_names(name: str, kind: Kind) -> None:
    assert kind_of(name) == kind


def test_frames_have_a_function_a_file_and_a_line() -> None:
    assert frame_of("$gen.py:15 plain") == Frame("plain", "gen.py", 15)
    assert frame_of("$time sleep") == Frame("sleep", module="time")
    assert frame_of("torch/nn/module.py(12): forward") == Frame("forward", "module.py", 12)
    assert frame_of("MatMul:MatMul") is None
    assert is_compilation("backend_compile")
    assert is_compilation("CpuCompiler::Compile")
    assert not is_compilation("model/compile_loss/sub:Sub")


def test_steps_of_three_threads_that_begin_together_have_their_own_waits() -> None:
    """Of unlike length, on threads of their own: none has the time of another's thread."""
    lines = {}
    for number, (length, waits) in enumerate(((100, 60), (80, 30), (50, 10))):
        step = DrawnEvent("train", 0, length * PS, {"_r": 1, "step_num": number})
        loader = DrawnEvent("$gen.py:15 batches", 0, waits * PS)
        lines[f"thread {number}"] = [step, loader, DrawnEvent("dot:Dot", waits * PS, (length - waits) * PS)]
    found = steps(build([DrawnPlane("/host:CPU", lines)]))
    assert (found.duration_ps / PS).tolist() == [100, 80, 50]
    assert parts(found) == {"input": [60, 30, 10], "host_compute": [40, 50, 40]}


def test_intervals_have_a_piece_in_each_window_that_they_overlap() -> None:
    windows = Windows(np.arange(3), np.array([0, 10, 60]), np.array([100, 20, 90]), "annotated")
    which, at, start, end = clipped(np.array([5, 15, 70, 95]), np.array([12, 18, 200, 97]), windows)
    found = sorted(zip(which.tolist(), at.tolist(), start.tolist(), end.tolist(), strict=True))
    assert found == [
        (0, 0, 5, 12),
        (0, 1, 10, 12),
        (1, 0, 15, 18),
        (1, 1, 15, 18),
        (2, 0, 70, 100),
        (2, 2, 70, 90),
        (3, 0, 95, 97),
    ]
