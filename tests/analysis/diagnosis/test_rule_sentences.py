"""Whole sentences, evidence and fixes of rules about the host, in each of their branches.

Steps take 100, 200 and 300 µs, so 20 µs per step is a tenth.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence
from tb_tpuprof.analysis.diagnosis.records import Gap, HostEvidence, Part, Period, Pools
from tb_tpuprof.analysis.diagnosis.rules import contention, dispatch, python, synchronization
from tb_tpuprof.analysis.diagnosis.step_calls import COMPILE, EAGER, PROGRAM
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import NOBODY, calls, columns, evidence, function, part
from tests.analysis.diagnosis.rule_findings import US, findings, of, only, sync, thread

PYTHON_OPTION = "python_tracer_level=1"
UPDATE, REPORT = function("update"), function("report", "shop.py", 7)
GROW = Culprit("program", "grow")


def compiles(*parts: Part, steps_us: tuple[float, ...] = (100, 200, 300), **per_step: list[int]) -> str:
    """The sentence about the only program that compiles."""
    return only("compilation", evidence(*parts, steps_us=steps_us, calls=calls(COMPILE, **per_step))).sentence


def test_a_compilation_names_its_caller_and_its_steps_if_they_are_known() -> None:
    nobody = part(Cause.COMPILATION, 10, 10, 10, culprit=GROW)
    assert compiles(nobody) == "Compiling `grow` takes 10.0 µs (5.00%) of each step."
    assert compiles(nobody, shrink=[1, 1, 1]) == compiles(nobody)  # another program is counted
    assert compiles(nobody, grow=[0, 0, 0]) == compiles(nobody)
    assert only("compilation", evidence(nobody)).evidence == (Evidence("The longest compilation"),)
    called = replace(nobody, caller=UPDATE)
    two_steps = (replace(called, time_ps=columns(10, 10)),)
    assert (
        compiles(*two_steps, steps_us=(150, 250), grow=[0, 2])
        == "Compiling `grow`, called by `update` (mine.py:40), takes 10.0 µs (5.00%) of each step; "
        "it compiles in 1 of 2 steps."
    )


def test_callbacks_name_function_and_operation_if_both_are_known() -> None:
    of_function = part(Cause.CALLBACKS, 20, 20, 20, culprit=UPDATE)
    of_operation = part(Cause.CALLBACKS, 2, 2, 2, culprit=Culprit("operation", "pure_callback.1"))
    for parts, where, option in (
        ((of_function,), "the callback `update` (mine.py:40)", ""),
        ((of_operation,), "the callback `pure_callback.1`", PYTHON_OPTION),
        ((of_function, of_operation), "the callback `update` (mine.py:40) (operation `pure_callback.1`)", ""),
        ((part(Cause.CALLBACKS, 20, 20, 20),), "a Python callback", PYTHON_OPTION),
    ):
        given = evidence(*parts, has_python=False)
        one = only("callbacks", given)
        assert one.sentence.partition(" in ")[2] == f"{where}."
        assert one.capture_option == option


def test_of_two_callbacks_of_equal_time_the_first_is_named() -> None:
    """The times of a function's parts are summed exactly: to a picosecond."""
    once = part(Cause.CALLBACKS, 8, 8, 8, culprit=UPDATE)
    halves = [part(Cause.CALLBACKS, 4, 4, 4, culprit=REPORT)] * 2
    assert only("callbacks", evidence(once, *halves)).culprit == UPDATE
    longer = replace(halves[0], time_ps=halves[0].time_ps + 1)
    assert only("callbacks", evidence(once, halves[0], longer)).culprit == REPORT


def dispatched(*parts: Part, **given: object) -> HostEvidence:
    return evidence(*parts, calls=calls(PROGRAM, grow=[10, 10, 10]), **given)  # type: ignore[arg-type]


def dispatching(*times_us: float, culprit: Culprit = NOBODY, caller: Culprit = NOBODY) -> Part:
    return part(Cause.DISPATCH, *times_us, culprit=culprit, caller=caller)


def test_dispatch_is_of_the_calling_function_else_of_the_function_itself() -> None:
    own, called = dispatching(8, 8, 8, culprit=REPORT), dispatching(6, 6, 6, culprit=GROW, caller=UPDATE)
    one = only("dispatch", dispatched(own, called))
    assert one.culprit == REPORT
    assert (
        one.sentence
        == "Each step spends 14.0 µs (7.00%) dispatching 10 compiled programs in `report` (shop.py:7)."
    )
    unnamed = only("dispatch", dispatched(dispatching(14, 14, 14, culprit=GROW)))
    assert unnamed.culprit == GROW
    assert unnamed.sentence == "Each step spends 14.0 µs (7.00%) dispatching 10 compiled programs."
    assert unnamed.evidence == (
        Evidence("The longest call"),
        Evidence("Most frequent calls: `grow`"),
    )


def test_of_two_dispatching_functions_of_equal_time_the_first_is_named() -> None:
    once, halves = dispatching(8, 8, 8, caller=UPDATE), [dispatching(4, 4, 4, caller=REPORT)] * 2
    assert only("dispatch", dispatched(once, *halves)).culprit == UPDATE
    longer = replace(halves[0], time_ps=halves[0].time_ps + 1)
    assert only("dispatch", dispatched(once, halves[0], longer)).culprit == REPORT


def test_the_kind_of_call_that_is_most_frequent_is_counted() -> None:
    own = dispatching(20, 20, 20, culprit=UPDATE)
    given = evidence(own, calls=calls(EAGER, mul=[9, 9, 9]))
    more = calls(PROGRAM, grow=[10, 10, 10])
    both = replace(given, calls=replace(more, all=(*more.all, *given.calls.all)))
    assert "dispatching 9 eager operations" in only("dispatch", given).sentence
    assert "dispatching 10 compiled programs" in only("dispatch", both).sentence
    assert only("dispatch", both).fix == dispatch.FIXES[JAX].text


@pytest.mark.parametrize(
    ("slowed_us", "fix"),
    [(19, contention.FIXES[""]), (20, contention.FIXES[""]), (21, contention._CHEAPER)],
)
def test_what_a_busy_thread_costs_more_of_decides_the_fix(slowed_us: int, fix: contention.Fix) -> None:
    """20 µs need the GIL."""
    parts = (part(Cause.DISPATCH, 20, 20, 20), part(Cause.CONTENTION, *[slowed_us] * 3))
    one = only("contention", evidence(*parts, other_threads=(thread(0.4),), pools=Pools(4, 3.0)))
    assert (one.fix, one.snippet) == (fix.text, fix.snippet)
    holds = slowed_us <= 20
    assert ("the step's thread waits for the GIL" in one.sentence) == holds
    assert ("takes processor time" in one.sentence) != holds
    assert one.reason.startswith("Only one Python thread" if holds else "The compute pool has 4 threads")
    assert one.evidence == (
        Evidence("`poll` (mine.py:40) runs on another thread for 40.0% of the step time."),
    )


def test_python_has_the_sentence_of_its_kind() -> None:
    annotation, call = Culprit("annotation", "load"), Culprit("call", "json.dumps")
    for one_part, sentence in (
        (
            part(Cause.PYTHON, 20, 20, 20, culprit=annotation),
            (
                "20.0 µs (10.0%) of each step is in the annotation `load`, where no operation was traced: "
                "Python, other host work, or waiting."
            ),
        ),
        (
            part(Cause.PYTHON, 20, 20, 20, culprit=UPDATE),
            "Each step spends 20.0 µs (10.0%) in Python, in `update` (mine.py:40).",
        ),
        (
            part(Cause.PYTHON, 20, 20, 20, culprit=call, call="json.dumps"),
            "Each step spends 20.0 µs (10.0%) in Python, in `json.dumps`.",
        ),
        (
            part(Cause.PYTHON, 20, 20, 20, call="np.sort"),
            "Each step spends 20.0 µs (10.0%) in Python, most of it in `np.sort`.",
        ),
        (
            part(Cause.PYTHON, 20, 20, 20, klass=TimeClass.HOST_WAIT),
            "Each step waits 20.0 µs (10.0%) in Python.",
        ),
    ):
        assert only("python", evidence(one_part)).sentence == sentence


def test_an_annotation_asks_for_what_would_show_its_parts() -> None:
    given = evidence(part(Cause.PYTHON, 20, 20, 20, culprit=Culprit("annotation", "load")))
    parts = only("python", given)
    assert (parts.fix, parts.snippet, parts.capture_option) == (
        "Annotate its parts, then move what the step does not need out of it.",
        "",
        "",
    )
    captured = only("python", replace(given, software=replace(given.software, has_python=False)))
    assert (
        captured.fix
        == "Capture with `python_tracer_level=1` to see which functions run there, then move what the step "
        "does not need out of it."
    )
    assert captured.capture_option == PYTHON_OPTION


def test_a_function_that_runs_ahead_has_a_fix_of_its_own() -> None:
    given = evidence(part(Cause.PYTHON, 20, 20, 20, culprit=UPDATE), has_python=False)
    assert (only("python", given).fix, only("python", given).capture_option) == (python.FIXES[JAX].text, "")
    ahead = only("python", replace(given, ahead=thread(0.4, culprit=UPDATE)))
    assert ahead.fix == python._CHEAPER.text
    unnamed = only("python", evidence(part(Cause.PYTHON, 20, 20, 20), has_python=False))
    assert unnamed.capture_option == PYTHON_OPTION


def waiting(*times_us: float, **given: object) -> Part:
    return part(Cause.SYNCHRONIZATION, *times_us, **given)  # type: ignore[arg-type]


def test_a_wait_has_the_sentence_of_what_is_known_about_it() -> None:
    value = {"culprit": UPDATE, "call": "float"}
    for one_part, given, sentence in (
        (
            waiting(20, 20, 20, **value),
            {},
            (
                "`float` in `update` (mine.py:40) waits for the device in each step: 20.0 µs (10.0%) of host "
                "work after it could run while the device computes."
            ),
        ),
        (
            waiting(20, 20, 20, culprit=Culprit("call", "float"), call="float", caller=REPORT),
            {},
            (
                "`float` waits for the device in each step: 20.0 µs (10.0%) of host work after it, in"
                " `report` (shop.py:7), could run while the device computes."
            ),
        ),
        (
            waiting(20, 20, 20),
            {},
            (
                "The host waits for the device in each step: 20.0 µs (10.0%) of host work after it could run "
                "while the device computes."
            ),
        ),
        (
            waiting(20, 20, 20),
            {"syncs": (sync("item", (1, 1, 1), culprit=REPORT),)},
            (
                "`item` waits for the device in each step: 20.0 µs (10.0%) of host work after it could run"
                " while the device computes."
            ),
        ),
        (
            waiting(20, 20, 20, klass=TimeClass.HOST_COMPUTE),
            {},
            "Each step spends 20.0 µs (10.0%) waiting for results while nothing computes.",
        ),
        (
            waiting(20, 20, 20, klass=TimeClass.HOST_COMPUTE),
            {"turns_ps": columns(0, 1, 0)},
            "The devices take turns. 20.0 µs (10.0%) of each step could run on several devices at once.",
        ),
        (
            waiting(20, 20, 20, klass=TimeClass.HOST_COMPUTE, **value),
            {"turns_ps": columns(0, 1, 0)},
            (
                "The devices take turns: `float` in `update` (mine.py:40) waits for one before the next"
                " starts. 20.0 µs (10.0%) of each step could run on several devices at once."
            ),
        ),
    ):
        assert only("synchronization", evidence(one_part, **given)).sentence == sentence  # type: ignore[arg-type]


def test_the_evidence_of_a_wait_is_that_of_its_own_function_else_of_the_first() -> None:
    syncs = (sync("item", (2, 2, 2), culprit=REPORT), sync("float", (3, 3, 3), culprit=UPDATE))
    own = only("synchronization", evidence(waiting(20, 20, 20, culprit=UPDATE), syncs=syncs))
    assert own.evidence == (Evidence("`float` in `update` (mine.py:40) is called 3 times per step."),)
    other = waiting(20, 20, 20, culprit=function("third"))
    first = only("synchronization", evidence(other, syncs=syncs))
    assert first.evidence == (Evidence("`item` in `third` (mine.py:40) is called 2 times per step."),)
    assert only("synchronization", evidence(other)).evidence == ()
    by_caller = waiting(20, 20, 20, caller=UPDATE)
    assert only("synchronization", evidence(by_caller)).culprit == UPDATE


def test_the_option_for_python_frames_is_for_waits_that_no_function_is_known_for() -> None:
    for culprit, option in ((UPDATE, ""), (Culprit("call", "item"), PYTHON_OPTION)):
        given = evidence(waiting(20, 20, 20, culprit=culprit, call="item"), has_python=False)
        one = only("synchronization", given)
        assert (one.capture_option, one.fix) == (option, synchronization.FIXES[JAX].text)


@pytest.mark.parametrize(("last_us", "n"), [(3.999, 0), (4, 1)])
def test_a_wait_is_usual_if_the_median_step_spends_a_fiftieth_in_it(last_us: float, n: int) -> None:
    """A fiftieth of the mean step is 4 µs; two parts of one step add up to it."""
    parts = [waiting(0, last_us / 2, 60, klass=TimeClass.HOST_COMPUTE)] * 2
    assert len(findings("synchronization", evidence(*parts))) == n


def copied(*times_us: float, **given: object) -> Part:
    return part(Cause.TRANSFERS, *times_us, **given)  # type: ignore[arg-type]


def test_copies_have_the_sentence_of_what_is_known_about_them() -> None:
    amount = "Each step spends 20.0 µs (10.0%) on copies between host and device"
    call = Culprit("call", "DevicePut")
    for one_part, where in (
        (copied(20, 20, 20, culprit=UPDATE), " in `update` (mine.py:40)."),
        (copied(20, 20, 20, culprit=call), " (`DevicePut`)."),
        (copied(20, 20, 20, call="memcpy"), " (most of it in `memcpy`)."),
        (copied(20, 20, 20), "."),
        (copied(20, 20, 20, call="step"), " for the arguments of `step`."),
        (copied(20, 20, 20, call="step", culprit=call), " for the arguments of `step`."),
        (
            copied(20, 20, 20, call="step", culprit=UPDATE),
            " for the arguments of `step`, which `update` (mine.py:40) calls.",
        ),
    ):
        given = evidence(one_part, calls=calls(PROGRAM, step=[1, 1, 1]))
        assert only("transfers", given).sentence == f"{amount}{where}"


def test_copies_overlap_with_at_most_all_of_the_compute_time() -> None:
    given = evidence(copied(20, 20, 20), pools=Pools(2, 2.0), copies=1.4)
    assert "overlap with 100% of the compute time" in only("transfers", given).reason


def test_programs_whose_arguments_are_copied_are_in_alphabetical_order() -> None:
    parts = [copied(9, 9, 9, call=name) for name in ("step", "eval", "log")]
    given = evidence(*parts, calls=calls(PROGRAM, step=[1, 1, 1], eval=[1, 1, 1], log=[1, 1, 1]))
    assert [one.culprit.name for one in findings("transfers", given)] == ["eval", "log", "step"]


def test_gains_are_of_the_whole_time_of_all_parts() -> None:
    parts = [
        copied(10, 20, 30, culprit=UPDATE),
        copied(5, 5, 5, culprit=UPDATE),
        copied(1, 1, 1, culprit=UPDATE),
    ]
    assert of(only("transfers", evidence(*parts))) == (26.0, (23.4, 36.4), ("function", "update"))
    assert only("transfers", evidence(*parts)).time_ps == 26 * US


def waited_for(*times_us: float, **given: object) -> Part:
    return part(Cause.INPUT, *times_us, **given)  # type: ignore[arg-type]


def test_waiting_for_data_has_the_sentence_of_what_is_known_about_it() -> None:
    amount = "Each step waits 20.0 µs (10.0%) for data"
    fetch, stage = Culprit("call", "IteratorGetNext"), TimeClass.HOST_WAIT_INPUT
    for one_part, given, where, culprit in (
        (waited_for(20, 20, 20), {}, ".", Culprit()),
        (waited_for(20, 20, 20, culprit=UPDATE), {}, " in `update` (mine.py:40).", UPDATE),
        (waited_for(20, 20, 20, culprit=fetch), {}, ".", Culprit("stage", "IteratorGetNext")),
        (
            waited_for(20, 20, 20, culprit=fetch),
            {"stage": "Map"},
            ", most of it for the tf.data stage `Map`.",
            Culprit("stage", "Map"),
        ),
        (
            waited_for(20, 20, 20, culprit=UPDATE, klass=stage),
            {"stage": "Map"},
            ", most of it for the tf.data stage `Map`.",
            Culprit("stage", "Map"),
        ),
        (
            waited_for(20, 20, 20, culprit=Culprit("annotation", "load")),
            {},
            " in `load`.",
            Culprit("annotation", "load"),
        ),
    ):
        one = only("input", evidence(one_part, has_python=False, **given))  # type: ignore[arg-type]
        assert (one.sentence, one.culprit) == (f"{amount}{where}", culprit)
        assert one.capture_option == ("" if culprit == UPDATE else PYTHON_OPTION)


def test_the_longest_wait_decides_whether_a_stage_is_waited_for() -> None:
    in_function = waited_for(20, 20, 20, culprit=UPDATE)
    for stage_us, is_stage in ((19, False), (21, True)):
        in_stage = waited_for(*[stage_us] * 3, culprit=UPDATE, klass=TimeClass.HOST_WAIT_INPUT)
        one = only("input", evidence(in_function, in_stage, stage="Map"))
        assert one.culprit == (Culprit("stage", "Map") if is_stage else UPDATE)


@pytest.mark.parametrize(
    ("iterator", "fix"),
    [
        ("_SingleProcessDataLoaderIter", "Load batches in worker processes, ahead of the step."),
        (
            "_MultiProcessingDataLoaderIter",
            "Use more worker processes, or make loading cheaper (decoding, transforms, storage).",
        ),
    ],
)
def test_a_data_loader_with_workers_needs_more_of_them(iterator: str, fix: str) -> None:
    fetch = Culprit("annotation", f"enumerate(DataLoader)#{iterator}.__next__")
    given = evidence(waited_for(20, 20, 20, culprit=fetch), framework=PYTORCH)
    assert only("input", given).fix == fix


def test_two_threads_that_hand_over_results_are_evidence() -> None:
    threads = [thread(0.4, hands_over=True, culprit=function(name)) for name in ("fill", "sort", "pad")]
    quiet = thread(0.9, hands_over=True, culprit=Culprit())
    one = only("input", evidence(waited_for(20, 20, 20, span=(3, 5)), other_threads=(quiet, *threads)))
    assert one.evidence == (
        Evidence("The longest wait", "worker-0", 3, 5),
        Evidence("Another thread runs `fill` (mine.py:40) for 40.0% of the time and hands over its results."),
        Evidence("Another thread runs `sort` (mine.py:40) for 40.0% of the time and hands over its results."),
    )


def gap(*times_us: float) -> Gap:
    return Gap("a", "b", columns(*times_us), 21, 22)


def test_unrecorded_time_has_the_sentence_of_its_kind_of_host() -> None:
    given = evidence(part(Cause.UNRECORDED, 20, 20, 20))
    option = "Capture with `python_tracer_level=1` to see which functions run there."
    own_work = "The host did other work, or waited outside Python: no operation ran and no call was traced."
    python_work = (
        "Python ran, or the thread waited, perhaps for data: no operation ran and no call was traced."
    )
    idle = (
        "The thread that runs the steps has no events there: it ran Python, waited, or made calls that the "
        "profiler does not record."
    )
    for kind, has_python, sentence, reason in (
        ("CPU", True, "20.0 µs (10.0%) of each step was not recorded.", own_work),
        ("CPU", False, "20.0 µs (10.0%) of each step was not recorded.", python_work),
        (
            "TPU",
            False,
            (
                "The TPU is idle for 20.0 µs (10.0%) of each step: it waits for host work that was not"
                " recorded, possibly for data."
            ),
            idle,
        ),
    ):
        software = replace(given.software, has_python=has_python)
        one = only("not_recorded", replace(given, kind=kind, software=software))
        assert (one.sentence, one.reason) == (sentence, reason)
        assert (one.fix == option, one.evidence) == (not has_python, ())


def test_a_gap_is_named_if_its_mean_is_more_than_half_of_the_time() -> None:
    for times_us, named in (((10, 10, 40), False), ((10, 10, 41), True)):
        given = evidence(part(Cause.UNRECORDED, 20, 40, 60), gaps=(gap(*times_us), gap(39, 39, 39)))
        assert ("most of it between `a` and `b`" in only("not_recorded", given).sentence) == named


def period(culprit: Culprit, every: int, mean_us: float, **given: object) -> Period:
    made = Period(culprit, "", Cause.PYTHON, every, 5, mean_us * every * US, mean_us * US, -1, -1)
    return replace(made, **given)  # type: ignore[arg-type]


def test_a_period_has_the_sentence_of_what_is_known_about_it() -> None:
    amount = ": 8.00 µs (4.00%) per step on average."
    because = "Every 4th step takes 32.0 µs longer because of"
    programs = ("grow", "shrink", "count", "log")
    for one, what in (
        (period(UPDATE, 4, 8), "`update` (mine.py:40)"),
        (period(UPDATE, 4, 8, call="update"), "`update` (mine.py:40)"),
        (period(UPDATE, 4, 8, call="write"), "`update` (mine.py:40), which calls `write`"),
        (
            period(UPDATE, 4, 8, programs=programs[:1]),
            "`update` (mine.py:40), together with the program `grow`",
        ),
        (
            period(UPDATE, 4, 8, programs=programs[:2]),
            "`update` (mine.py:40), together with the programs `grow` and `shrink`",
        ),
        (
            period(UPDATE, 4, 8, programs=programs[:3]),
            "`update` (mine.py:40), together with the programs `grow` and `shrink`",
        ),
        (period(Culprit(), 4, 8, programs=programs[:1]), "`grow`"),
        (
            period(Culprit(), 4, 8, programs=programs, call="write"),
            "`grow`, together with the programs `shrink` and `count`",
        ),
        (period(Culprit(), 4, 8, call="write"), "work that the trace does not name"),
        (period(Culprit(), 4, 8, was=Cause.COMPUTE), "operations that run longer or more often"),
    ):
        assert only("periodic", evidence(periods=(one,))).sentence == f"{because} {what}{amount}"


def test_a_period_shows_its_longest_occurrence_if_it_has_a_place() -> None:
    for first_ps, last_ps, shown in (
        (-1, -1, ()),
        (0, 7, (Evidence("The longest occurrence", "worker-0", 0, 7),)),
    ):
        periods = (period(UPDATE, 4, 8, first_ps=first_ps, last_ps=last_ps), period(REPORT, 4, 7, last_ps=9))
        assert only("periodic", evidence(periods=periods)).evidence == shown


def test_the_option_for_python_frames_is_for_periods_that_no_function_is_known_for() -> None:
    for culprit, option in ((UPDATE, ""), (Culprit("annotation", "save"), PYTHON_OPTION)):
        one = only("periodic", evidence(periods=(period(culprit, 4, 8),), has_python=False))
        assert one.capture_option == option


@pytest.mark.parametrize(
    ("every", "ordinal"), [(1, "1st"), (52, "52nd"), (61, "61st"), (63, "63rd"), (113, "113th")]
)
def test_ordinals_of_long_periods(every: int, ordinal: str) -> None:
    one = only("periodic", evidence(periods=(period(UPDATE, every, 8),)))
    assert one.sentence.startswith(f"Every {ordinal} step takes")


def test_waits_of_several_parts_make_a_function_wait() -> None:
    """Of 20 µs, it waits 12: more than half, though no part is."""
    waits = [part(Cause.PYTHON, 6, 6, 6, culprit=UPDATE, klass=TimeClass.HOST_WAIT)] * 2
    one = only("python", evidence(*waits, part(Cause.PYTHON, 8, 8, 8, culprit=UPDATE)))
    assert one.sentence == "Each step waits 20.0 µs (10.0%) in `update` (mine.py:40)."
    assert of(one)[1] == (18.0, 23.0)
