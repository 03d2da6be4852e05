"""Each rule alone on handmade evidence: its time, its gain, its culprit, and where its threshold lies.

Steps take 100, 200 and 300 µs, so 20 µs per step is a tenth.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import (
    Gap,
    HostEvidence,
    Part,
    Period,
    Pools,
    Warming,
)
from tb_tpuprof.analysis.diagnosis.step_calls import COMPILE, EAGER, LAUNCH, PROGRAM
from tb_tpuprof.analysis.events.frameworks import TENSORFLOW
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import NOBODY, calls, columns, evidence, function, part
from tests.analysis.diagnosis.rule_findings import HEALTHY, US, findings, of, only, sync, thread


def launches(n: int, *parts: Part, **given: object) -> HostEvidence:
    return evidence(*parts, kind="GPU", calls=calls(LAUNCH, cudaLaunchKernel=[n, n, n]), **given)  # type: ignore[arg-type]


def dispatch_part(*times_us: float, **given: object) -> Part:
    return part(Cause.DISPATCH, *times_us, klass=TimeClass.HOST_PREPARE, **given)  # type: ignore[arg-type]


def test_many_launches_cost_their_time_and_few_are_something_else() -> None:
    mine = function("many_small")
    parts = (
        dispatch_part(20, 40, 60, caller=mine, call="aten::mul", span=(7, 8)),
        dispatch_part(10, 10, 10, call="aten::add"),
        part(Cause.COMPUTE, 6, 6, 6, klass=TimeClass.DEVICE_COMPUTE_16),
    )
    many = only("launching", launches(8, *parts))
    assert of(many) == (50.0, (30.0, 50.0), ("function", "many_small"))
    assert "launches 8 kernels one by one in `many_small`" in many.sentence
    assert "Each launch costs the host 6.25 µs" in many.reason
    assert "6.00 µs" in many.reason
    assert many.evidence[-1].text == "Most of it: `aten::mul`."
    few = only("launching", launches(7, *parts))
    assert of(few)[1] == (0.0, 50.0)
    assert "is in `aten::mul` in `many_small`" in few.sentence
    assert few.snippet == ""
    grouped = launches(8, *parts, device=replace(HEALTHY, n_kernels=17))
    assert "issues 8 launches in" in only("launching", grouped).sentence
    as_many = launches(8, *parts, device=replace(HEALTHY, n_kernels=16))
    assert "8 kernels one by one" in only("launching", as_many).sentence
    assert findings("launching", replace(launches(8, *parts), kind="CPU")) == []
    assert findings("launching", launches(8)) == []


def test_a_graph_that_launches_one_by_one_is_not_told_to_become_a_graph() -> None:
    by_graph = dispatch_part(30, 30, 30, call="ExecutorState::Process")
    eager = dispatch_part(20, 20, 20, call="EagerExecute")
    more = dispatch_part(40, 40, 40, call="EagerExecute")
    graph = only("launching", launches(8, by_graph, eager, framework=TENSORFLOW))
    assert graph.fix.startswith("The step already runs as a graph. Compile it with XLA (`jit_compile=True`")
    assert "jit_compile=True" in graph.snippet
    mostly_eager = only("launching", launches(8, by_graph, more, framework=TENSORFLOW))
    assert mostly_eager.fix.startswith("Put the step into a `tf.function`")


def test_kernels_stand_for_launches_that_were_not_recorded() -> None:
    parts = (dispatch_part(20, 40, 60),)
    device = replace(HEALTHY, n_kernels=9.0)
    one = only("launching", evidence(*parts, kind="GPU", device=device, has_python=False))
    assert "launches 9 kernels" in one.sentence
    assert (one.culprit, one.capture_option) == (Culprit(), "python_tracer_level=1")
    assert "prepares its work" in only("launching", evidence(*parts, kind="GPU")).sentence


@pytest.mark.parametrize(
    ("calls_us", "text"),
    [
        ({"a": 30, "b": 10, "c": 19}, "`a`"),
        ({"a": 20, "b": 15, "c": 10}, "`a`, `b` and other calls"),
        ({"a": 20, "b": 20}, "`a` and `b`"),
    ],
)
def test_the_calls_that_take_most_are_named(calls_us: dict[str, int], text: str) -> None:
    parts = [dispatch_part(time, time, time, call=name) for name, time in calls_us.items()]
    one = only("launching", launches(1, *parts))
    assert f"is in {text}." in one.sentence
    assert one.culprit == (Culprit("call", "a") if text == "`a`" else Culprit())


def test_a_runtime_call_of_more_than_half_the_time_is_named_instead() -> None:
    parts = (dispatch_part(40, 40, 40, call="PjitFunction(f)"),)
    half = replace(HEALTHY, runtime_calls=(("cuGraphExecUpdate", 20 * US),))
    assert "`PjitFunction(f)`" in only("launching", launches(1, *parts, device=half)).sentence
    more = replace(HEALTHY, runtime_calls=(("cuGraphExecUpdate", 20.1 * US), ("cudaMalloc", 1.0)))
    one = only("launching", launches(1, *parts, device=more))
    assert one.culprit == Culprit("call", "cuGraphExecUpdate")
    updates = (dispatch_part(40, 40, 40, call="command_buffer::update"),)
    assert "donate_argnums" in only("launching", launches(1, *updates)).fix


def test_a_wait_in_each_step_prevents_launching_ahead() -> None:
    parts = (
        dispatch_part(20, 40, 60, call="aten::mul"),
        part(Cause.COMPUTE, 90, 90, 90, klass=TimeClass.DEVICE_COMPUTE_16),
    )
    waits = sync("aten::item", (1, 1, 1), (40, 40, 40))
    one = only("launching", launches(1, *parts, syncs=(waits,)))
    assert of(one)[1] == (24.0, 40.0)
    assert "`aten::item` waits for the GPU in each step" in one.reason
    assert "90.0 µs" in one.reason
    for other in (sync("aten::item", (1, 1, 0), (40, 40, 40)), sync("aten::item", (1, 1, 1), (40, 40, 39))):
        assert of(only("launching", launches(1, *parts, syncs=(other,))))[1] == (0.0, 40.0)


@pytest.mark.parametrize(
    ("kind", "gain", "word"),
    [
        (PROGRAM, (16.5, 30.0), "compiled programs"),
        (EAGER, (18.0, 33.0), "eager operations"),
        (LAUNCH, (16.5, 30.0), "kernels one by one"),
    ],
)
def test_many_calls_on_a_cpu(kind: str, gain: tuple[float, float], word: str) -> None:
    mine, other = function("train_step"), function("log", line=3)
    parts = (
        dispatch_part(10, 20, 30, caller=mine, span=(4, 6)),
        dispatch_part(2, 2, 2, culprit=other),
        dispatch_part(8, 8, 8, culprit=Culprit("operation", "mul")),
    )
    given = evidence(*parts, calls=calls(kind, mul=[4, 8, 12], add=[1, 1, 1], sub=[0, 1, 2], div=[1, 1, 1]))
    one = only("dispatch", given)
    assert of(one) == (30.0, gain, ("function", "train_step"))
    assert f"dispatching 11 {word} in `train_step`" in one.sentence
    assert one.evidence[-1].text == "Most frequent calls: `mul`, `add`, `sub`"
    assert "2.73 µs on top" in one.reason
    tiny = replace(given, tiny_ps=3.0 * US)
    assert "3.00 µs (1.50%) that their programs compute" in only("dispatch", tiny).reason
    assert "on top" in only("dispatch", replace(given, tiny_ps=2.9 * US)).reason
    assert findings("dispatch", replace(given, kind="GPU")) == []
    seven = evidence(*parts, calls=calls(kind, mul=[7, 7, 7]))
    assert findings("dispatch", seven) == []
    assert only("dispatch", evidence(parts[2], calls=calls(kind, mul=[8, 8, 8]))).culprit == Culprit(
        "program", "mul"
    )


def test_keras_run_eagerly_gains_more_than_its_time() -> None:
    parts = (dispatch_part(10, 20, 30, caller=function("train_step", "trainer.py", 51)),)
    given = evidence(*parts, framework=TENSORFLOW, calls=calls(EAGER, mul=[10, 10, 10]))
    one = only("dispatch", given)
    assert of(one)[1] == (17.0, 32.0)
    assert "in Keras's training step" in one.sentence
    assert "in Keras" not in only("dispatch", replace(given, calls=calls(PROGRAM, f=[10, 10, 10]))).sentence


def test_a_busy_thread_holds_the_gil_or_takes_processors() -> None:
    parts = (part(Cause.PYTHON, 10, 10, 10), part(Cause.DISPATCH, 6, 6, 6), part(Cause.UNRECORDED, 4, 4, 4))
    given = evidence(
        *parts, part(Cause.CONTENTION, 20, 20, 20), other_threads=(thread(0.3),), pools=Pools(4, 3.0)
    )
    one = only("contention", given)
    assert of(one) == (20.0, (0.0, 20.0), ("function", "poll"))
    assert "up to 20.0 µs (10.0%)" in one.sentence
    slowed = only("contention", replace(given, parts=(*parts, part(Cause.CONTENTION, 21, 21, 21))))
    assert of(slowed)[:2] == (21.0, (12.6, 37.8))
    assert "4 threads" in slowed.reason
    assert slowed.snippet == ""
    for quiet in (thread(0.29), thread(0.5, hands_over=True), thread(0.5, culprit=NOBODY)):
        assert findings("contention", replace(given, other_threads=(quiet,))) == []


def test_copies_count_for_their_program_or_their_function() -> None:
    mine, other = function("send"), function("fetch", line=9)
    copies = (
        part(Cause.TRANSFERS, 10, 20, 30, call="step", caller=mine),
        part(Cause.TRANSFERS, 1, 1, 1, call="step", caller=other),
        part(Cause.TRANSFERS, 5, 5, 5, culprit=other, call="device_put"),
        part(Cause.TRANSFERS, 2, 4, 6, call="BufferFromHostBuffer"),
        part(Cause.PYTHON, 50, 50, 50),
    )
    given = evidence(*copies, calls=calls(PROGRAM, step=[1, 1, 1]), has_python=False)
    by_program, by_function, unnamed = findings("transfers", given)
    assert of(by_program) == (21.0, (18.9, 29.4), ("program", "step"))
    assert "arguments of `step`, which `send` (mine.py:40) calls" in by_program.sentence
    assert of(by_function) == (5.0, (4.5, 7.0), ("function", "fetch"))
    assert by_function.capture_option == ""
    assert of(unnamed) == (4.0, (3.6, 5.6), ("", ""))
    assert "most of it in `BufferFromHostBuffer`" in unnamed.sentence
    assert unnamed.capture_option == "python_tracer_level=1"
    assert "Nothing computes" in unnamed.reason
    busy = replace(given, pools=Pools(2, 2.0), copies=0.5)
    assert "50.0% of the compute time" in findings("transfers", busy)[0].reason


@pytest.mark.parametrize(
    ("copies", "slows"),
    [(0.0618, False), (0.062, True)],
    ids=["2.998% of the computing", "3.007% of the computing"],
)
def test_copies_slow_computing_from_three_percent_on(copies: float, slows: bool) -> None:
    given = evidence(part(Cause.TRANSFERS, 5, 5, 5), pools=Pools(2, 2.0), copies=copies)
    assert ("take processors" in only("transfers", given).reason.replace("\n", " ")) == slows


def test_a_long_first_step_has_no_share_of_the_others() -> None:
    warming = Warming("train 0", round(900 * US), round(200 * US), Cause.COMPILATION, round(650 * US), 11)
    (one,) = findings("warm_up", evidence(warming=warming))
    assert (one.time_ps, one.share, one.gain_ps) == (0.0, 0.0, None)
    assert "The first step (train 0) took 900 µs, 4.50 times the median: it compiles." in one.sentence
    assert one.reason == "650 µs of the 700 µs excess is compilation."
    assert (one.evidence[0].start_ps, one.evidence[0].end_ps) == (11, 11 + round(900 * US))
    (before,) = findings("warm_up", evidence(warming=replace(warming, name="")))
    assert "compiled for 900 µs, as long as 4.50 steps" in before.sentence
    assert (before.evidence[0].start_ps, before.evidence[0].end_ps) == (11, 11 + round(900 * US))
    (less,) = findings("warm_up", evidence(warming=replace(warming, cause=Cause.DISPATCH, cause_ps=-3)))
    assert "median. All" in less.sentence
    assert less.reason.startswith("0 ")
    assert findings("warm_up", evidence()) == []


def gap(*times_us: float) -> Gap:
    return Gap("PjitFunction(f)", "", columns(*times_us), 21, 22)


def test_unrecorded_time_says_where_it_is_and_what_would_show_it() -> None:
    parts = (part(Cause.UNRECORDED, 20, 40, 60),)
    given = evidence(*parts, gaps=(gap(21, 20, 21),), has_python=False)
    (one,) = findings("not_recorded", given)
    assert one.time_ps == pytest.approx(40 * US)
    assert one.share == pytest.approx(0.2)
    assert "most of it between `PjitFunction(f)` and the end of the step" in one.sentence
    assert one.capture_option == "python_tracer_level=1"
    assert "`python_tracer_level=1`" in one.fix
    assert (one.evidence[0].start_ps, one.evidence[0].end_ps) == (21, 22)
    assert one.confidence == "low"
    (spread,) = findings("not_recorded", replace(given, gaps=(gap(20, 20, 20),)))
    assert "most of it" not in spread.sentence
    (known,) = findings("not_recorded", evidence(*parts))
    assert "Annotate" in known.fix
    assert (known.capture_option, known.evidence) == ("", ())
    (gpu,) = findings("not_recorded", replace(given, kind="GPU"))
    assert gpu.sentence.startswith("The GPU is idle for 40.0 µs (20.0%)")
    assert findings("not_recorded", evidence()) == []


def test_callbacks_belong_to_the_function_that_takes_most() -> None:
    one_function, other = function("decode"), function("check", line=9)
    callbacks = (
        part(Cause.CALLBACKS, 10, 10, 10, culprit=one_function),
        part(Cause.CALLBACKS, 4, 8, 12, culprit=other),
        part(Cause.CALLBACKS, 4, 4, 4, culprit=other),
        part(Cause.CALLBACKS, 2, 2, 2, culprit=Culprit("operation", "pure_callback.1")),
        part(Cause.CALLBACKS, 1, 1, 1, culprit=Culprit("operation", "pure_callback.2")),
        part(Cause.CALLBACKS, 1, 1, 1, culprit=Culprit("operation", "pure_callback.3")),
    )
    one = only("callbacks", evidence(*callbacks))
    assert of(one) == (26.0, (20.8, 33.8), ("function", "check"))
    assert "(operation `pure_callback.1`, `pure_callback.2`)" in one.sentence
    unnamed = only("callbacks", evidence(*callbacks[3:], has_python=False))
    assert of(unnamed) == (4.0, (3.2, 5.2), ("operation", "pure_callback.1"))
    assert unnamed.capture_option == "python_tracer_level=1"
    assert "a Python callback" in only("callbacks", evidence(part(Cause.CALLBACKS, 3, 3, 3))).sentence
    assert findings("callbacks", evidence(part(Cause.PYTHON, 3, 3, 3))) == []


def test_each_program_that_compiles_has_its_own_finding() -> None:
    mine = function("train")
    grow, shrink = Culprit("program", "grow"), Culprit("program", "<lambda>")
    parts = (
        part(Cause.COMPILATION, 10, 0, 50, culprit=grow, caller=mine, span=(3, 8)),
        part(Cause.COMPILATION, 1, 1, 1, culprit=grow),
        part(Cause.COMPILATION, 6, 0, 0, culprit=shrink, caller=function("lose", line=7)),
        part(Cause.COMPILATION, 3, 3, 3),
        part(Cause.PYTHON, 50, 50, 50),
    )
    given = evidence(*parts, calls=calls(COMPILE, grow=[1, 0, 2]))
    first, second, third = findings("compilation", given)
    assert of(first) == (21.0, (18.9, 36.75), ("program", "grow"))
    assert (
        "`grow`, called by `train` (mine.py:40), takes 21.0 µs (10.5%) of each step; it compiles in 2 of 3"
        " steps" in first.sentence
    )
    assert [(one.start_ps, one.end_ps) for one in first.evidence] == [(3, 8), (-1, -1)]
    assert "a lambda in `lose` (mine.py:7)" in second.sentence
    assert (second.culprit.file, second.culprit.line) == ("mine.py", 7)
    assert of(third) == (3.0, (2.7, 5.25), ("", ""))
    assert "Compiling a program takes" in third.sentence
    tensorflow = findings(
        "compilation", replace(given, software=replace(given.software, framework=TENSORFLOW))
    )
    assert of(tensorflow[0])[1] == (18.9, 45.15)
    assert "retraces" in tensorflow[0].reason


def test_waiting_for_data_names_the_thread_that_prepares_it() -> None:
    get = function("get", "queue.py", 154)
    waits = (
        part(Cause.INPUT, 20, 40, 60, culprit=get, klass=TimeClass.HOST_WAIT, span=(5, 6)),
        part(Cause.INPUT, 5, 5, 5, culprit=function("batches"), klass=TimeClass.HOST_PYTHON),
    )
    feeding = thread(0.019, hands_over=True, waiting=0.0011, culprit=function("fill"))
    given = evidence(*waits, other_threads=(thread(0.9), feeding))
    one = only("input", given)
    assert of(one) == (45.0, (38.25, 67.5), ("function", "fill"))
    assert [shown.text for shown in one.evidence] == [
        "The longest wait",
        "Another thread runs `fill` (mine.py:40) for 1.90% of the time and hands over its results.",
    ]
    idle = replace(feeding, waiting=0.001)
    assert only("input", replace(given, other_threads=(idle,))).culprit == get
    assert of(only("input", replace(given, kind="GPU")))[1] == (38.25, 56.25)


def test_waiting_for_tf_data_names_its_stage() -> None:
    waits = (
        part(
            Cause.INPUT,
            20,
            40,
            60,
            culprit=Culprit("call", "IteratorGetNext"),
            klass=TimeClass.HOST_WAIT_INPUT,
        ),
        part(Cause.INPUT, 5, 5, 5, culprit=function("batches"), klass=TimeClass.HOST_PYTHON),
    )
    given = evidence(*waits, framework=TENSORFLOW, stage="Map", has_python=False)
    assert of(only("input", given)) == (45.0, (38.25, 67.5), ("stage", "Map"))
    assert "most of it for the tf.data stage `Map`" in only("input", given).sentence
    assert only("input", given).capture_option == "tpuprof capture --python_tracer_level 1"
    in_function = replace(given, parts=waits[1:])
    assert only("input", in_function).culprit == function("batches")
    assert only("input", replace(given, stage="")).culprit == Culprit("stage", "IteratorGetNext")


def test_a_loader_that_takes_processors_is_the_culprit() -> None:
    feeding = thread(0.5, hands_over=True, culprit=function("fill"))
    slowed = part(Cause.INPUT, 23, 23, 23, klass=TimeClass.HOST_COMPUTE)
    given = evidence(
        slowed, part(Cause.INPUT, 20, 20, 20, culprit=function("batches")), other_threads=(feeding,)
    )
    one = only("input", given)
    assert "loses 43.0 µs (21.5%) to `fill`" in one.sentence
    assert "takes processors" in one.reason
    half = replace(given, parts=(replace(slowed, time_ps=columns(20, 20, 20)), given.parts[1]))
    assert "waits" in only("input", half).sentence


def test_stages_that_run_ahead_may_slow_computing() -> None:
    waits = part(Cause.INPUT, 20, 20, 20, klass=TimeClass.HOST_WAIT_INPUT)
    computes = part(Cause.COMPUTE, 90, 90, 90, klass=TimeClass.HOST_COMPUTE)
    given = evidence(waits, computes, pools=Pools(2, 2.0), stages=1.0)
    assert of(only("input", given))[1] == (17.0, 60.0)  # 1.5 times 20 µs, and a third of 90 µs
    long = replace(given, parts=(replace(waits, time_ps=columns(190, 190, 190)), computes))
    assert of(only("input", long))[1] == (161.5, 198.0)  # at most 190 µs and 0.8 of the remaining 10 µs


def period(name: str, every: int, excess_us: float, mean_us: float, **given: object) -> Period:
    culprit = function(name) if name else NOBODY
    made = Period(culprit, "", Cause.PYTHON, every, 5, excess_us * US, mean_us * US, -1, -1)
    return replace(made, **given)  # type: ignore[arg-type]


def test_periodic_work_of_the_same_steps_is_one_finding() -> None:
    periods = (
        period("save", 10, 40, 5, first_ps=6, last_ps=7, call="np.savez"),
        period("evaluate", 10, 20, 3, programs=("evaluate_step",)),
        period("", 3, 9, 3, programs=("log_step", "sum_step"), n=2),
        period("", 2, 4, 2),
    )
    tenth, third, second = findings("periodic", evidence(periods=periods))
    assert of(tenth) == (8.0, (4.5, 8.7), ("function", "save"))
    assert (
        "Every 10th step takes 60.0 µs longer because of `save` (mine.py:40), which calls `np.savez`,"
        " together with the program `evaluate_step`: 8.00 µs (4.00%)" in tenth.sentence
    )
    assert (tenth.evidence[0].start_ps, tenth.evidence[0].end_ps) == (6, 7)
    assert of(third) == (3.0, (2.25, 4.35), ("program", "log_step"))
    assert "Every 3rd step" in third.sentence
    assert "together with the program `sum_step`" in third.sentence
    assert third.reason.startswith("2 of 3 steps")
    assert (
        "Every 2nd step takes 4.00 µs longer because of work that the trace does not name" in second.sentence
    )
    assert (second.culprit, second.evidence) == (Culprit(), ())


@pytest.mark.parametrize(
    ("every", "ordinal"),
    [
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (22, "22nd"),
        (23, "23rd"),
        (24, "24th"),
        (111, "111th"),
        (101, "101st"),
    ],
)
def test_ordinals(every: int, ordinal: str) -> None:
    one = only("periodic", evidence(periods=(period("save", every, 40, 5),)))
    assert f"Every {ordinal} step" in one.sentence


def test_a_step_that_does_what_only_some_do() -> None:
    parts = (
        part(Cause.PERIODIC, 20, 40, 60, culprit=function("save"), span=(2, 3)),
        part(Cause.PERIODIC, 2, 2, 2),
    )
    (one,) = findings("periodic", evidence(*parts))
    assert one.time_ps == pytest.approx(42 * US)
    assert (one.gain_ps, one.culprit.name) == (None, "save")
    assert "42.0 µs (21.0%) on `save`" in one.sentence
    assert findings("periodic", evidence()) == []


def test_python_that_runs_or_waits() -> None:
    mine, slow = function("update"), function("poll", line=9)
    parts = (
        part(Cause.PYTHON, 10, 20, 30, culprit=mine, call="np.sort"),
        part(Cause.PYTHON, 9, 9, 9, culprit=mine, call="json.dumps"),
        part(Cause.PYTHON, 7, 7, 7, culprit=slow, klass=TimeClass.HOST_WAIT, call="time.sleep"),
        part(Cause.PYTHON, 6, 6, 6, culprit=slow),
        part(Cause.PYTHON, 4, 4, 4, culprit=Culprit("annotation", "load")),
        part(Cause.PYTHON, 2, 2, 2),
    )
    given = evidence(*parts)
    running, waiting, annotated, unnamed = findings("python", given)
    assert of(running) == (29.0, (21.75, 44.95), ("function", "update"))
    assert "in Python, in `update` (mine.py:40), most of it in `np.sort`" in running.sentence
    assert of(waiting) == (13.0, (11.7, 14.95), ("function", "poll"))
    assert "waits 13.0 µs (6.50%) in `poll` (mine.py:9), most of it in `time.sleep`" in waiting.sentence
    assert "in the annotation `load`" in annotated.sentence
    assert of(unnamed) == (2.0, (1.5, 3.1), ("", ""))
    assert of(findings("python", replace(given, kind="GPU"))[0])[1] == (21.75, 33.35)
    half = (replace(parts[2], time_ps=columns(6, 6, 6)), parts[3])
    (as_long,) = findings("python", evidence(*half))
    assert as_long.sentence.startswith("Each step spends")


def test_python_that_takes_a_processor_from_the_computation() -> None:
    mine = function("update")
    given = evidence(part(Cause.PYTHON, 20, 20, 20, culprit=mine), ahead=thread(0.4, culprit=mine))
    one = only("python", given)
    assert "40.0% of the compute time" in one.reason
    assert one.snippet == ""
    other = only("python", replace(given, ahead=thread(0.4)))
    assert "Nothing computes meanwhile" in other.reason


def wait(*times_us: float, **given: object) -> Part:
    return part(Cause.SYNCHRONIZATION, *times_us, **{"culprit": function("log"), "call": "float", **given})  # type: ignore[arg-type]


def test_work_after_a_wait_could_overlap() -> None:
    given = evidence(
        wait(10, 20, 30, caller=function("report", line=3)),
        wait(4, 4, 4),
        syncs=(sync("float", (1, 2, 3), culprit=function("log")),),
    )
    one = only("synchronization", given)
    assert of(one) == (24.0, (20.4, 33.6), ("function", "log"))
    assert (
        "`float` in `log` (mine.py:40) waits for the device in each step: 24.0 µs (12.0%) of host work after"
        " it, in `report` (mine.py:3), could" in one.sentence
    )
    assert "is called 2 times per step" in one.evidence[0].text
    assert findings("synchronization", replace(given, kind="GPU")) == []


def test_waits_while_nothing_computes_count_if_they_are_usual() -> None:
    idle = wait(4, 4, 50, klass=TimeClass.HOST_COMPUTE)
    one = only("synchronization", evidence(idle))
    assert "in `float` in `log` (mine.py:40) while nothing computes" in one.sentence
    rare = wait(3.9, 3.9, 90, klass=TimeClass.HOST_COMPUTE)
    assert findings("synchronization", evidence(rare)) == []
    turns = replace(evidence(rare), turns_ps=columns(0, 0, 1))
    assert "The devices take turns: `float`" in only("synchronization", turns).sentence
    assert len(findings("synchronization", replace(turns, kind="GPU"))) == 1
