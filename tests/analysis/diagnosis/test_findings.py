"""The findings of each rule: cause, culprit, share, gain and fix. Steps of 100, 200 and 300 µs, so
that 20 µs are 10%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import (
    Gap,
    HostEvidence,
    Period,
    Pools,
    Sync,
    ThreadActivity,
    Warming,
)
from tb_tpuprof.analysis.diagnosis.rules import rules
from tb_tpuprof.analysis.diagnosis.rules.periodic import _ordinal
from tb_tpuprof.analysis.diagnosis.step_calls import COMPILE, EAGER, LAUNCH, PROGRAM
from tb_tpuprof.analysis.events.frameworks import PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import calls, columns, evidence, function, part
from tests.builders import PS

UPDATE, REPORT, BATCHES = (
    function("update"),
    function("report", "shop.py", 7),
    function("batches", "gen.py", 15),
)


def found(cause: Cause, given: HostEvidence) -> list[Finding]:
    """The findings of a cause's rules."""
    return [one for rule in rules() if rule.cause == cause for one in rule.find(given)]


def check(one: Finding, culprit: Culprit, time_us: float, gain_us: tuple[float, float] | None) -> None:
    """Check the facts of a finding; its sentence has the share and names the culprit."""
    assert one.culprit == culprit
    assert (one.time_ps, one.share) == (pytest.approx(time_us * PS), pytest.approx(time_us / 200))
    assert one.gain_ps == (None if gain_us is None else pytest.approx(tuple(gain * PS for gain in gain_us)))
    assert f"({time_us / 2:.3g}" in one.sentence.replace(".0%", " %").replace(".00%", " %")
    assert not culprit.name or culprit.name in one.sentence
    assert one.sentence.endswith(".")
    assert one.sentence[0] in "`0123456789" or one.sentence[0].isupper()
    assert one.fix


def test_python_is_of_a_function_and_what_it_calls() -> None:
    given = evidence(
        part(Cause.PYTHON, 10, 20, 30, culprit=UPDATE),
        part(Cause.PYTHON, 0, 30, 60, culprit=UPDATE, call="dumps", span=(7, 9)),
        part(Cause.PYTHON, 3, 6, 3, culprit=REPORT),
        part(Cause.COMPUTE, 80, 90, 100),
    )
    first, second = found(Cause.PYTHON, given)
    check(first, UPDATE, 50, (37.5, 77.5))
    assert "`dumps`" in first.sentence
    assert (first.evidence[0].host, first.evidence[0].start_ps, first.evidence[0].end_ps) == (
        "worker-0",
        7,
        9,
    )
    assert first.capture_option == ""
    check(second, REPORT, 4, (3, 6.2))


def test_python_that_waits_is_waiting_and_an_annotation_may_be_anything() -> None:
    waits = found(
        Cause.PYTHON, evidence(part(Cause.PYTHON, 10, 20, 30, culprit=UPDATE, klass=TimeClass.HOST_WAIT))
    )[0]
    check(waits, UPDATE, 20, (18, 23))
    assert "wait" in waits.sentence
    given = evidence(
        part(Cause.PYTHON, 10, 20, 30, culprit=Culprit("annotation", "anneal")), has_python=False
    )
    annotated = found(Cause.PYTHON, given)[0]
    check(annotated, Culprit("annotation", "anneal"), 20, (15, 31))
    assert annotated.capture_option == "python_tracer_level=1"


def test_input_is_of_what_makes_the_data() -> None:
    given = evidence(
        part(Cause.INPUT, 30, 30, 60, culprit=BATCHES, klass=TimeClass.HOST_WAIT_LOADER, span=(3, 5)),
        part(Cause.INPUT, 0, 0, 30, culprit=REPORT, klass=TimeClass.HOST_WAIT_LOADER),
    )
    (one,) = found(Cause.INPUT, given)
    check(one, BATCHES, 50, (42.5, 75))
    assert one.evidence[0].start_ps == 3


def test_a_thread_that_makes_the_data_is_whom_the_queue_waits_for() -> None:
    fill = function("fill", "feeder.py", 9)
    waited = part(Cause.INPUT, 30, 30, 60, culprit=Culprit("function", "get", "queue.py", 154))
    producer = ThreadActivity("feeder", fill, 0.6, 0.1, True)
    idle, other = (
        replace(producer, running=0.01, waiting=0.0, culprit=REPORT),
        ThreadActivity("other", UPDATE, 0.9, 0, False),
    )
    (one,) = found(Cause.INPUT, evidence(waited, other_threads=(other, idle, producer)))
    check(one, fill, 40, (34, 60))
    assert "60.0%" in one.evidence[-1].text
    (named,) = found(Cause.INPUT, evidence(replace(waited, culprit=BATCHES), other_threads=(producer,)))
    check(named, BATCHES, 40, (34, 60))


def test_a_fetch_is_a_stage() -> None:
    fetch = part(
        Cause.INPUT,
        20,
        20,
        20,
        culprit=Culprit("operation", "IteratorGetNext"),
        klass=TimeClass.HOST_WAIT_INPUT,
    )
    (one,) = found(Cause.INPUT, evidence(fetch, framework=TENSORFLOW, has_python=False))
    assert one.culprit == Culprit("stage", "IteratorGetNext")
    assert one.capture_option
    assert "tf.data" in one.snippet


def test_waiting_for_tf_data_is_of_the_stage_that_its_page_names() -> None:
    parts = [part(Cause.INPUT, 20, 40, 60, culprit=Culprit("call", "IteratorGetNextOp::DoCompute"))]
    (one,) = found(Cause.INPUT, evidence(*parts, stage="Map"))
    check(one, Culprit("stage", "Map"), 40, (34, 60))
    (of_function,) = found(Cause.INPUT, evidence(part(Cause.INPUT, 20, 40, 60, culprit=BATCHES), stage="Map"))
    assert of_function.culprit == BATCHES
    # Who iterates is not who is slow.
    loop = part(
        Cause.INPUT, 20, 40, 60, culprit=UPDATE, call="iterator_get_next", klass=TimeClass.HOST_WAIT_INPUT
    )
    (of_stage,) = found(Cause.INPUT, evidence(loop, stage="Map"))
    assert of_stage.culprit == Culprit("stage", "Map")


def test_compilation_is_of_each_program_with_how_many_steps_compile_it() -> None:
    given = evidence(
        part(Cause.COMPILATION, 0, 60, 60, culprit=Culprit("program", "grow"), caller=UPDATE),
        part(Cause.COMPILATION, 30, 0, 0, culprit=Culprit("program", "shrink"), caller=REPORT),
        part(Cause.COMPILATION, 0, 30, 0, culprit=Culprit("program", "grow"), caller=REPORT),
        calls=calls(COMPILE, grow=[0, 3, 1], shrink=[1, 0, 0]),
    )
    grow, shrink = found(Cause.COMPILATION, given)
    check(grow, Culprit("program", "grow"), 50, (45, 87.5))
    assert "2 of 3 steps" in grow.sentence
    assert "update" in grow.sentence
    check(shrink, Culprit("program", "shrink"), 10, (9, 17.5))
    assert "1 of 3 steps" in shrink.sentence


def test_a_single_step_has_no_number_of_steps_that_compile() -> None:
    program = Culprit("program", "grow")
    counts = calls(COMPILE, grow=[2])
    given = evidence(part(Cause.COMPILATION, 40, culprit=program), steps_us=[200], calls=counts)
    assert found(Cause.COMPILATION, given)[0].sentence.endswith("of each step.")


def test_a_lambda_is_where_its_caller_is() -> None:
    given = evidence(
        part(Cause.COMPILATION, 0, 60, 60, culprit=Culprit("program", "<lambda>"), caller=UPDATE)
    )
    (one,) = found(Cause.COMPILATION, given)
    assert one.culprit == Culprit("program", "<lambda>", "mine.py", 40)
    assert "`update` (mine.py:40)" in one.sentence


@pytest.mark.parametrize(("kind", "n"), [(PROGRAM, 12), (EAGER, 8), (LAUNCH, 300)])
def test_dispatching_many_calls_is_of_the_function_that_makes_them(kind: str, n: int) -> None:
    given = evidence(
        part(Cause.DISPATCH, 10, 10, 40, caller=UPDATE, culprit=Culprit("program", "grow")),
        part(Cause.DISPATCH, 10, 10, 40, culprit=UPDATE),
        part(Cause.DISPATCH, 30, 30, 30, culprit=REPORT),
        calls=calls(kind, grow=[n] * 3, shrink=[0, 1, 2]),
    )
    (one,) = found(Cause.DISPATCH, given)
    check(one, UPDATE, 70, (42, 77) if kind == EAGER else (38.5, 70))
    assert f" {n + 1} " in one.sentence
    assert f"{70 / (n + 1):.3g} µs" in one.reason
    assert "`grow`, `shrink`" in one.evidence[-1].text


def test_dispatching_few_calls_is_no_finding() -> None:
    given = evidence(part(Cause.DISPATCH, 50, 50, 50, culprit=UPDATE), calls=calls(PROGRAM, grow=[8, 8, 7]))
    assert found(Cause.DISPATCH, given) == []
    named = evidence(part(Cause.DISPATCH, 50, 50, 50), calls=calls(PROGRAM, grow=[9, 9, 9]))
    assert found(Cause.DISPATCH, named)[0].culprit == Culprit("program", "grow")


def test_callbacks_are_of_the_function_that_takes_most() -> None:
    given = evidence(
        part(Cause.CALLBACKS, 10, 10, 10, culprit=REPORT, span=(1, 2)),
        part(Cause.CALLBACKS, 10, 20, 30, culprit=Culprit("operation", "pure_callback")),
        part(Cause.CALLBACKS, 0, 10, 5, culprit=UPDATE),
    )
    (one,) = found(Cause.CALLBACKS, given)
    check(one, REPORT, 35, (28, 45.5))
    assert "`pure_callback`" in one.sentence
    assert one.capture_option == ""


def test_callbacks_without_frames_are_of_the_operation() -> None:
    given = evidence(
        part(Cause.CALLBACKS, 10, 20, 30, culprit=Culprit("operation", "pure_callback")), has_python=False
    )
    (one,) = found(Cause.CALLBACKS, given)
    check(one, Culprit("operation", "pure_callback"), 20, (16, 26))
    assert one.capture_option == "python_tracer_level=1"


def test_synchronization_behind_a_wait_names_the_call_its_caller_and_the_work() -> None:
    sync = Sync(
        "__float__", UPDATE, np.array([1, 2, 3]), columns(9, 9, 9), columns(9, 9, 9), columns(9, 9, 9), 0, 1
    )
    given = evidence(
        part(Cause.SYNCHRONIZATION, 10, 20, 60, culprit=UPDATE, caller=REPORT, call="__float__"),
        syncs=(sync,),
    )
    (one,) = found(Cause.SYNCHRONIZATION, given)
    check(one, UPDATE, 30, (25.5, 42))
    assert "`__float__`" in one.sentence
    assert "`report` (shop.py:7)" in one.sentence
    assert "2 times per step" in one.evidence[0].text
    assert one.confidence == "medium"


def test_synchronization_while_nothing_computes_is_another_finding() -> None:
    behind = part(Cause.SYNCHRONIZATION, 10, 20, 60, culprit=UPDATE, call="__float__")
    idle = part(Cause.SYNCHRONIZATION, 6, 6, 6, culprit=REPORT, call="asarray", klass=TimeClass.HOST_COMPUTE)
    first, second = found(Cause.SYNCHRONIZATION, evidence(behind, idle))
    check(first, UPDATE, 30, (25.5, 42))
    check(second, REPORT, 6, (5.1, 8.4))
    assert "`asarray`" in second.sentence
    (turns,) = found(Cause.SYNCHRONIZATION, evidence(idle, turns_ps=columns(6, 6, 6)))
    check(turns, REPORT, 6, (5.1, 8.4))
    assert "turns" in turns.sentence


def test_synchronization_in_one_step_alone_is_the_schedulers() -> None:
    late = part(
        Cause.SYNCHRONIZATION, 0, 0, 60, klass=TimeClass.HOST_COMPUTE, culprit=UPDATE, call="__float__"
    )
    assert found(Cause.SYNCHRONIZATION, evidence(late)) == []
    usual = replace(late, time_ps=columns(0, 12, 48))
    assert len(found(Cause.SYNCHRONIZATION, evidence(usual))) == 1


def test_transfers_are_of_each_function() -> None:
    given = evidence(
        part(Cause.TRANSFERS, 10, 20, 60, culprit=Culprit("call", "DevicePut"), caller=UPDATE),
        part(Cause.TRANSFERS, 20, 20, 20, culprit=Culprit("operation", "MemcpyH2D")),
        part(Cause.TRANSFERS, 6, 0, 0, klass=TimeClass.DEVICE_TO_HOST),
    )
    first, second, third = found(Cause.TRANSFERS, given)
    check(first, UPDATE, 30, (27, 42))
    check(second, Culprit("call", "MemcpyH2D"), 20, (18, 28))
    check(third, Culprit(), 2, (1.8, 2.8))
    assert first.reason == "Nothing computes during these copies."


def test_copies_slow_compute_down_where_all_processors_are_busy() -> None:
    copied = part(Cause.TRANSFERS, 10, 20, 60, culprit=Culprit("call", "DevicePut"), caller=UPDATE)
    (one,) = found(Cause.TRANSFERS, evidence(copied, copies=0.8, pools=Pools(2, 2.0)))
    assert "80.0% of the compute time" in one.reason
    (free,) = found(Cause.TRANSFERS, evidence(copied, copies=0.8, pools=Pools(4, 2.0)))
    assert free.reason == first_reason(Cause.TRANSFERS, evidence(copied))


def test_python_ahead_of_the_device_takes_a_processor_from_it() -> None:
    given = evidence(
        part(Cause.PYTHON, 30, 50, 70, culprit=UPDATE), ahead=ThreadActivity("main", UPDATE, 0.55, 0, False)
    )
    (one,) = found(Cause.PYTHON, given)
    assert "55.0% of the compute time" in one.reason
    assert "thread" not in one.fix
    assert "dispatched only after" in first_reason(
        Cause.PYTHON, replace(given, ahead=ThreadActivity("main", REPORT, 0.55, 0, False))
    )


def test_data_prepared_during_compute_names_its_producer() -> None:
    producer = ThreadActivity("feeder", BATCHES, 0.7, 0.1, True)
    waited = part(
        Cause.INPUT, 1, 2, 3, culprit=Culprit("function", "get", "queue.py", 154), klass=TimeClass.HOST_WAIT
    )
    slowed = part(Cause.INPUT, 20, 30, 40, culprit=BATCHES, klass=TimeClass.HOST_COMPUTE)
    (one,) = found(Cause.INPUT, evidence(waited, slowed, other_threads=(producer,)))
    check(one, BATCHES, 32, (27.2, 48))
    assert "on another thread" in one.sentence
    assert "takes processors" in one.reason


def test_the_gain_includes_processors_taken_by_stages_of_tf_data() -> None:
    waited = part(Cause.INPUT, 30, 30, 60, culprit=BATCHES)
    given = evidence(
        waited, part(Cause.COMPUTE, 60, 100, 140), framework=TENSORFLOW, stages=1.0, pools=Pools(2, 2.0)
    )
    (one,) = found(Cause.INPUT, given)
    check(one, BATCHES, 40, (34, 60 + 100 / 3))


def test_what_tiny_programs_compute_is_said_where_it_counts_as_dispatch() -> None:
    part_of = part(Cause.DISPATCH, 30, 60, 120, caller=UPDATE)
    given = evidence(part_of, calls=calls(PROGRAM, grow=[500, 500, 500]))
    assert "on top of the operation" in first_reason(Cause.DISPATCH, given)
    (one,) = found(Cause.DISPATCH, replace(given, tiny_ps=20 * PS))
    assert "the 20.0 µs (10.0%) that their programs compute" in one.reason


def first_reason(cause: Cause, given: HostEvidence) -> str:
    """Why the first finding costs time."""
    return found(cause, given)[0].reason


def test_communication_may_be_needed() -> None:
    given = evidence(
        part(Cause.COMMUNICATION, 10, 20, 60, klass=TimeClass.DEVICE_COLLECTIVES),
        part(
            Cause.COMMUNICATION,
            3,
            3,
            3,
            culprit=Culprit("operation", "all_reduce"),
            klass=TimeClass.DEVICE_COLLECTIVES,
        ),
        framework=PYTORCH,
    )
    (one,) = found(Cause.COMMUNICATION, given)
    check(one, Culprit("operation", "all_reduce"), 33, (0, 33))


def test_a_thread_that_holds_the_interpreter_is_blamed_for_no_more_than_what_needs_it() -> None:
    spin = function("spin", "work.py", 3)
    busy, feeder = (
        ThreadActivity("worker", spin, 0.45, 0.1, False),
        ThreadActivity("feeder", BATCHES, 0.9, 0, True),
    )
    parts = [
        part(Cause.PYTHON, 10, 20, 30),
        part(Cause.DISPATCH, 5, 10, 15),
        part(Cause.UNRECORDED, 1, 2, 3),
        part(Cause.COMPUTE, 84, 168, 252),
    ]
    (one,) = found(Cause.CONTENTION, evidence(*parts, other_threads=(feeder, busy)))
    check(one, spin, 32, (0, 32))
    assert "45.0%" in one.sentence
    assert (
        found(Cause.CONTENTION, evidence(*parts, other_threads=(feeder, replace(busy, running=0.29)))) == []
    )
    # If compute loses more to it than the GIL costs, that loss is its cost.
    (slows,) = found(
        Cause.CONTENTION,
        evidence(
            *parts,
            part(Cause.CONTENTION, 20, 40, 60, culprit=spin),
            other_threads=(busy,),
            pools=Pools(8, 9.5),
        ),
    )
    check(slows, spin, 40, (24, 72))
    assert "takes processor time" in slows.sentence
    assert "cheaper" in slows.fix
    assert "8 threads" in slows.reason


def period(
    culprit: Culprit, mean_us: float, every: int = 4, programs: Sequence[str] = (), **given: object
) -> Period:
    made = Period(
        culprit, "", Cause.PYTHON, every, 3, mean_us * every * PS, mean_us * PS, 5, 8, tuple(programs)
    )
    return replace(made, **given)  # type: ignore[arg-type]


def test_what_happens_in_the_same_steps_is_one_period() -> None:
    periods = (
        period(UPDATE, 10, call="write"),
        period(Culprit(), 20, programs=["evaluate", "count"]),
        period(REPORT, 3, every=7),
    )
    first, second = found(Cause.PERIODIC, evidence(steps_us=[200] * 12, periods=periods))
    check(first, UPDATE, 30, (22.5, 43.5))
    assert "4th" in first.sentence
    assert "120 µs" in first.sentence
    assert "`write`" in first.sentence
    assert "`evaluate`" in first.sentence
    assert "3 of 12" in first.reason
    check(second, REPORT, 3, (2.25, 4.35))
    assert "7th" in second.sentence
    (unnamed,) = found(Cause.PERIODIC, evidence(steps_us=[200] * 12, periods=(periods[1],), has_python=False))
    check(unnamed, Culprit("program", "evaluate"), 20, (15, 29))
    assert unnamed.capture_option


def test_a_single_step_of_a_period_says_what_only_some_steps_do() -> None:
    given = evidence(part(Cause.PERIODIC, 40, culprit=UPDATE), part(Cause.PYTHON, 60), steps_us=[200])
    (one,) = found(Cause.PERIODIC, given)
    check(one, UPDATE, 40, None)


@pytest.mark.parametrize(
    ("n", "word"),
    [
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (111, "111th"),
        (122, "122nd"),
    ],
)
def test_ordinals(n: int, word: str) -> None:
    assert _ordinal(n) == word


def test_unrecorded_time_says_where_it_is_and_how_to_see_more() -> None:
    long, short = Gap("a", "b", columns(10, 20, 30), 4, 9), Gap("b", "", columns(1, 1, 1), 0, 2)
    given = evidence(part(Cause.UNRECORDED, 12, 24, 36), gaps=(long, short), has_python=False)
    (one,) = found(Cause.UNRECORDED, given)
    check(one, Culprit(), 24, None)
    assert "most of it between `a` and `b`" in one.sentence
    assert (one.evidence[0].start_ps, one.evidence[0].end_ps, one.confidence) == (4, 9, "low")
    assert one.capture_option == "python_tracer_level=1"
    assert one.capture_option in one.fix
    (other,) = found(
        Cause.UNRECORDED, replace(given, gaps=(short,), software=replace(given.software, has_python=True))
    )
    assert "`b`" not in other.sentence
    assert other.capture_option == ""


def test_a_long_first_step_is_a_finding_without_a_share() -> None:
    first = Warming("train 0", 900 * PS, 200 * PS, Cause.COMPILATION, 650 * PS, 17)
    (one,) = found(Cause.WARM_UP, evidence(warming=first))
    assert (one.time_ps, one.share, one.gain_ps) == (0, 0, None)
    for words in ("train 0", "900 µs", "4.50"):
        assert words in one.sentence
    assert "650 µs of the 700 µs" in one.reason
    assert (one.evidence[0].start_ps, one.evidence[0].end_ps) == (17, 17 + 900 * PS)
    (before,) = found(Cause.WARM_UP, evidence(warming=replace(first, name="")))
    assert "900 µs" in before.sentence
    assert "train 0" not in before.sentence


def test_computing_is_no_fault() -> None:
    assert found(Cause.COMPUTE, evidence(part(Cause.COMPUTE, 100, 200, 300))) == []


def test_calls_of_an_idle_gpu_are_listed() -> None:
    idle = [part(Cause.DISPATCH, n, n, n, culprit=UPDATE, call=call) for n, call in ((6, "a"), (5, "b"))]
    more = [*idle, part(Cause.DISPATCH, 4, 4, 4, culprit=UPDATE, call="c")]
    assert "`a` in `update`" in found(Cause.DISPATCH, evidence(idle[0], kind="GPU"))[0].sentence
    for parts, words in ((idle, "`a` in"), (more, "`a`, `b` and other calls in `update` (mine.py:40)")):
        assert words in found(Cause.DISPATCH, evidence(*parts, kind="GPU"))[0].sentence
