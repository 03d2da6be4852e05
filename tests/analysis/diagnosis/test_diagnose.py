"""The diagnosis of hosts: ranks, shares, several hosts, and invariants of any trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose, without_waits_for_others
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Diagnosis, shares
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Period, ThreadActivity, Warming
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import calls, columns, evidence, function, part, trace_of, us
from tests.analysis.diagnosis.random_traces import traces
from tests.analysis.diagnosis.test_findings import period
from tests.builders import PS

UPDATE, REPORT = function("update"), function("report", "shop.py", 7)


def host(name: str, *parts_us: tuple[Cause, Culprit, float], step_us: float = 200) -> HostEvidence:
    """A host with so much of each cause per step, and computing for the rest of three unlike steps."""
    steps = (0.5 * step_us, step_us, 1.5 * step_us)
    made = [part(cause, 0.5 * time, time, 1.5 * time, culprit=culprit) for cause, culprit, time in parts_us]
    rest = columns(*steps) - np.sum([one.time_ps for one in made] or [columns(0, 0, 0)], axis=0)
    return evidence(*made, replace(part(Cause.COMPUTE, 0, 0, 0), time_ps=rest), steps_us=steps, host=name)


def causes(found: Diagnosis) -> dict[Cause, float]:
    return {one.cause: one.time_ps / PS for one in found.causes}


def check(found: Diagnosis) -> None:
    """Invariants of any diagnosis of one host."""
    assert sum(one.time_ps for one in found.causes) == pytest.approx(found.step_time_ps)
    assert all(
        one.time_ps > 0 and one.share == pytest.approx(one.time_ps / found.step_time_ps)
        for one in found.causes
    )
    assert [one.time_ps for one in found.causes] == sorted(
        (one.time_ps for one in found.causes), reverse=True
    )
    ranks = [one.rank for one in found.findings]
    assert ranks == sorted(ranks, reverse=True)
    for one in found.findings:
        assert 0 <= one.time_ps <= found.step_time_ps * 1.000001
        assert not one.gain_ps or 0 <= one.gain_ps[0] <= one.gain_ps[1] <= found.step_time_ps * 1.000001
        assert all(place.start_ps <= place.end_ps for place in one.evidence)
        assert one.sentence
        assert one.culprit.name or one.culprit == Culprit()
    assert found.text


# One host


def test_a_host_that_waits_for_anothers_periodic_work_has_none_of_its_own() -> None:
    """`slow` saves in every fifth step; `fast` computes longer in them, in a collective. Its own program, and
    another period, stay.
    """

    def of(name: str, *periods: Period) -> HostEvidence:
        return evidence(host=name, periods=periods)

    saves = Period(UPDATE, "", Cause.PYTHON, 5, 3, 90.0 * PS, 18.0 * PS, 0, 1)
    waits = Period(Culprit(), "", Cause.COMPUTE, 5, 3, 88.0 * PS, 17.0 * PS, 0, 1)
    evaluates = replace(waits, programs=("score",))
    other = replace(waits, every=3)
    slow, fast = without_waits_for_others([of("slow", saves), of("fast", waits, evaluates, other)])
    assert (slow.periods, fast.periods) == ((saves,), (evaluates, other))
    assert without_waits_for_others([of("fast", waits)])[0].periods == (waits,)
    # What is no period is computing again, and no finding.
    computed = part(Cause.PERIODIC, 0, 0, 90, klass=TimeClass.HOST_COMPUTE)
    _slow, fast = without_waits_for_others(
        [of("slow", saves), evidence(computed, host="fast", periods=(waits,))]
    )
    assert [(one.cause, us(one.time_ps)) for one in fast.parts] == [(Cause.COMPUTE, [0, 0, 90])]
    (one,) = diagnose([of("slow", saves), evidence(computed, host="fast", periods=(waits,))]).findings
    assert (one.cause, one.host, one.culprit) == (Cause.PERIODIC, "slow", UPDATE)


def test_findings_are_ranked_by_what_they_would_gain() -> None:
    """Python 40 of 200 µs (gain 28 to 40), input 36 (28.8 to 36), transfers 5 of which are too little to
    tell.
    """
    diagnosis = diagnose(
        [host("w", (Cause.PYTHON, UPDATE, 40), (Cause.INPUT, REPORT, 36), (Cause.TRANSFERS, UPDATE, 5))]
    )
    assert [(one.cause, one.culprit) for one in diagnosis.findings] == [
        (Cause.PYTHON, UPDATE),
        (Cause.INPUT, REPORT),
    ]
    assert diagnosis.top == diagnosis.findings[0]
    assert (diagnosis.level, diagnosis.step_time_ps, diagnosis.n_steps, diagnosis.category) == (
        "bad",
        200 * PS,
        3,
        "host_python",
    )
    assert "`update` (mine.py:40)" in diagnosis.text
    assert causes(diagnosis) == {Cause.COMPUTE: 119, Cause.PYTHON: 40, Cause.INPUT: 36, Cause.TRANSFERS: 5}
    check(diagnosis)


@pytest.mark.parametrize(
    ("time_us", "level", "n"),
    [
        (5.9, "good", 0),
        (6.1, "good", 1),
        (9.9, "good", 1),
        (10.1, "warn", 1),
        (39, "warn", 1),
        (40, "bad", 1),
    ],
)
def test_how_bad_it_is(time_us: float, level: str, n: int) -> None:
    diagnosis = diagnose([host("w", (Cause.PYTHON, UPDATE, time_us))])
    assert (diagnosis.level, len(diagnosis.findings)) == (level, n)
    assert (diagnosis.top is None) == (level == "good")


def test_unrecorded_time_is_no_answer_while_the_step_is_known_to_compute() -> None:
    """Of steps of 200 µs in the mean, 8%, 8% and 25% were not recorded; the second computes little."""
    for unrecorded, compute, expected in (
        (
            16.0,
            150.0,
            "Compute-bound: each step takes 200 µs, 75.0% of it computing on the host; 16.0 µs (8.00%) ",
        ),
        (16.0, 100.0, "16.0 µs (8.00%) of each step was not recorded"),
        (50.0, 140.0, "50.0 µs (25.0%) of each step was not recorded"),
    ):
        parts = (
            part(Cause.UNRECORDED, *[unrecorded] * 3),
            part(Cause.COMPUTE, *[compute] * 3, klass=TimeClass.HOST_COMPUTE),
        )
        diagnosis = diagnose([evidence(*parts)])
        assert diagnosis.text.startswith(expected)
        assert diagnosis.top is not None
        assert diagnosis.top.cause == Cause.UNRECORDED
        assert diagnosis.level == ("bad" if unrecorded == 50 else "warn")


def test_a_healthy_run_computes() -> None:
    diagnosis = diagnose([host("w")])
    assert (diagnosis.level, diagnosis.findings, diagnosis.top, diagnosis.category) == (
        "good",
        (),
        None,
        "host_compute",
    )
    assert "100%" in diagnosis.text
    assert "200 µs" in diagnosis.text


def test_many_small_causes_are_no_compute_bound_run() -> None:
    small = [(Cause.PYTHON, function(f"f{i}"), 5.0) for i in range(20)]
    diagnosis = diagnose([host("w", *small)])
    assert (diagnosis.level, diagnosis.findings) == ("good", ())
    assert "Compute-bound" not in diagnosis.text
    assert "50.0%" in diagnosis.text


def test_a_first_step_is_never_the_verdict() -> None:
    first = Warming("train 0", 900 * PS, 200 * PS, Cause.COMPILATION, 650 * PS, 17)
    alone = diagnose([replace(host("w"), warming=first)])
    assert ([one.cause for one in alone.findings], alone.top, alone.level) == ([Cause.WARM_UP], None, "good")
    both = diagnose([replace(host("w", (Cause.PYTHON, UPDATE, 40)), warming=first)])
    assert [one.cause for one in both.findings] == [Cause.PYTHON, Cause.WARM_UP]


@pytest.mark.parametrize("hosts", [[], [evidence(steps_us=())]])
def test_without_steps_nothing_is_known(hosts: list[HostEvidence]) -> None:
    diagnosis = diagnose(hosts)
    assert (diagnosis.level, diagnosis.n_steps, diagnosis.findings, diagnosis.causes, diagnosis.top) == (
        "unknown",
        0,
        (),
        (),
        None,
    )
    assert (diagnosis.step_time_ps, diagnosis.is_detailed, diagnosis.note) == (0, False, "")


# Several hosts


def test_causes_of_hosts_are_means_and_hosts_without_steps_count_for_nothing() -> None:
    hosts = [
        host("a", (Cause.PYTHON, UPDATE, 20)),
        host("b", (Cause.INPUT, REPORT, 50), step_us=260),
        evidence(steps_us=(), host="c"),
    ]
    diagnosis = diagnose(hosts)
    assert diagnosis.step_time_ps == 230 * PS
    assert causes(diagnosis) == {Cause.COMPUTE: 195, Cause.PYTHON: 10, Cause.INPUT: 25}


def test_a_finding_of_one_host_names_it() -> None:
    diagnosis = diagnose(
        [host("a", (Cause.PYTHON, UPDATE, 60)), host("b"), host("c", (Cause.PYTHON, UPDATE, 2))]
    )
    (one,) = diagnosis.findings
    assert one.host == "a"
    assert "`a`" in one.sentence
    assert "a" in one.base.split("'")[0].split()


def test_a_finding_of_all_hosts_names_the_host_of_its_numbers_if_they_differ() -> None:
    """40 and 60 µs of steps of 200 µs are 50 on average: 60 is the slower host's alone. 52 and 56 are
    everyone's.
    """
    unlike = diagnose([host("a", (Cause.INPUT, UPDATE, 40)), host("b", (Cause.INPUT, UPDATE, 60))])
    assert unlike.findings[0].sentence.startswith("On `b`, each step waits 60.0 µs")
    assert unlike.text.startswith("Highly input-bound: on `b`, each step waits 60.0 µs")
    assert unlike.findings[0].host == ""
    alike = diagnose([host("a", (Cause.INPUT, UPDATE, 52)), host("b", (Cause.INPUT, UPDATE, 56))])
    assert alike.findings[0].sentence.startswith("Each step waits 56.0 µs")


def test_a_finding_of_all_hosts_names_none() -> None:
    diagnosis = diagnose(
        [host(name, (Cause.PYTHON, UPDATE, time)) for name, time in (("a", 60), ("b", 50), ("c", 55))]
    )
    (one,) = diagnosis.findings
    assert one.host == ""
    assert not one.sentence.startswith("On ")


def test_hosts_that_wait_for_different_things_have_a_finding_each() -> None:
    diagnosis = diagnose([host("a", (Cause.PYTHON, UPDATE, 60)), host("b", (Cause.PYTHON, REPORT, 50))])
    assert [(one.host, one.culprit) for one in diagnosis.findings] == [("a", UPDATE), ("b", REPORT)]


def test_two_findings_of_one_host_are_not_all_hosts() -> None:
    """Two periods of one function on the first host, none on the second: as many findings as hosts, all of
    one host.
    """
    twice = replace(host("a"), periods=(period(UPDATE, 30, every=3), period(UPDATE, 24, every=4)))
    diagnosis = diagnose([twice, host("b")])
    assert [(one.host, one.time_ps) for one in diagnosis.findings] == [("a", 30 * PS), ("a", 24 * PS)]


def test_two_findings_of_one_culprit_on_all_hosts_are_two_of_none() -> None:
    """The second is too small next to the first to be merged; neither is lost, and no host is named
    for it.
    """
    hosts = [
        replace(host(name), periods=(period(UPDATE, 60, every=3), period(UPDATE, 8, every=4)))
        for name in "ab"
    ]
    assert [(one.host, one.time_ps) for one in diagnose(hosts).findings] == [("", 60 * PS), ("", 8 * PS)]


def test_no_finding_of_all_hosts_gains_more_than_its_step() -> None:
    """Both lose 90% of their steps, of 300 and of 20 µs: a gain of 270 is impossible in the mean step of 160
    µs, but not in that of `a`.
    """
    diagnosis = diagnose(
        [
            host("a", (Cause.PYTHON, UPDATE, 270), step_us=300),
            host("b", (Cause.PYTHON, UPDATE, 18), step_us=20),
        ]
    )
    (one,) = diagnosis.findings
    assert one.time_ps == 270 * PS
    assert one.base == "of a's mean step"


# Traces


UNLIKE = """
main   [train                         ][train               ][train                ]
main    [u                           ]  [u                 ]  [v        ] [u      ]
main     [g              ]  [d   ]       [g    ] [s     ]      [n     ]    [k   ]
main       [c       ]                             [d  ]          [b ]       [v]
other  [w                    ]
"""


def test_a_drawn_trace() -> None:
    """Steps of 32, 22 and 23 µs."""
    diagnosis = diagnose([host_evidence(trace_of(UNLIKE, {"w": "$spinning.py:3 spin"}))])
    check(diagnosis)
    assert diagnosis.step_time_ps == pytest.approx(77 / 3 * PS)
    assert {cause: round(time * 3) for cause, time in causes(diagnosis).items()} == {
        Cause.PYTHON: 21,
        Cause.COMPILATION: 17,
        Cause.COMPUTE: 11,
        Cause.INPUT: 8,
        Cause.DISPATCH: 7,
        Cause.UNRECORDED: 7,
        Cause.CALLBACKS: 6,
    }
    assert {(one.cause, one.culprit.name) for one in diagnosis.findings} == {
        (Cause.COMPILATION, "grow"),
        (Cause.PYTHON, "update"),
        (Cause.PYTHON, "report"),
        (Cause.UNRECORDED, ""),
        (Cause.CALLBACKS, "report"),
        (Cause.INPUT, "report"),
    }
    assert diagnosis.is_detailed


def test_each_step_alone() -> None:
    whole = host_evidence(trace_of(UNLIKE, {"w": "$spinning.py:3 spin"}))
    first, second, third = (diagnose([whole.of_step(number)]) for number in range(3))
    for one, step_us in ((first, 32), (second, 22), (third, 23)):
        check(one)
        assert (one.step_time_ps, one.n_steps) == (step_us * PS, 1)
    assert causes(first) == {Cause.COMPILATION: 17, Cause.PYTHON: 7, Cause.COMPUTE: 6, Cause.UNRECORDED: 2}
    assert causes(second) == {Cause.PYTHON: 8, Cause.DISPATCH: 7, Cause.COMPUTE: 5, Cause.UNRECORDED: 2}
    assert causes(third) == {Cause.INPUT: 8, Cause.CALLBACKS: 6, Cause.PYTHON: 6, Cause.UNRECORDED: 3}
    assert first.top is not None
    assert first.top.culprit == Culprit("program", "grow")
    assert whole.of_step(1).names == ("train 1",)
    assert us(whole.of_step(2).start_ps) == [61]


def test_periodic_work_of_a_trace_is_a_finding_and_of_its_steps_alone() -> None:
    """Twelve steps of 20 or 21 µs; every fourth saves for 20 more. The first and the last are not shown."""
    steps, user, inner = "", "", ""
    for i in range(12):
        more = 20 * (i % 4 == 3)
        steps += "[train" + " " * (13 + i % 2 + more) + "]"
        user += "[u" + " " * (17 + i % 2 + more) + "]"
        inner += " [d    ]   " + ("[v" + " " * (more - 3) + "]" if more else "").ljust(9 + i % 2 + more)
    host_of_trace = host_evidence(trace_of(f"main  {steps}\nmain  {user}\nmain  {inner}"))
    (one,) = host_of_trace.periods
    assert (one.culprit, one.every, one.excess_ps) == (REPORT, 4, 20 * PS)
    whole = diagnose([host_of_trace])
    check(whole)
    assert Cause.PERIODIC in [one.cause for one in whole.findings]
    at = host_of_trace.names.index("train 3")
    alone = diagnose([host_of_trace.of_step(at)])
    check(alone)
    assert causes(alone)[Cause.PERIODIC] == 20
    assert alone.findings[0].culprit == REPORT
    assert Cause.PERIODIC not in causes(diagnose([host_of_trace.of_step(at + 1)]))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(traces())
def test_a_diagnosis_of_any_trace_adds_up(trace: Trace) -> None:
    whole = host_evidence(trace)
    if not whole.n_steps:
        assert diagnose([whole]).level == "unknown"
        return
    assert np.sum([one.time_ps for one in whole.parts], axis=0).tolist() == whole.duration_ps.tolist()
    assert all((one.time_ps >= 0).all() for one in whole.parts)
    check(diagnose([whole]))
    for number in range(whole.n_steps):
        check(diagnose([whole.of_step(number)]))
    two = diagnose([whole, replace(whole, host="other")])
    assert sum(one.time_ps for one in two.causes) == pytest.approx(two.step_time_ps)
    assert all(one.host == "" for one in two.findings)


def test_contention_is_a_finding_but_no_cause_of_time() -> None:
    busy = ThreadActivity("worker", function("spin", "work.py", 3), 0.9, 0, False)
    given_ = replace(
        host("w", (Cause.PYTHON, UPDATE, 60), (Cause.DISPATCH, REPORT, 20)),
        other_threads=(busy,),
        calls=calls(PROGRAM, grow=[9, 9, 9]),
    )
    diagnosis = diagnose([given_])
    check(diagnosis)
    assert Cause.CONTENTION in [one.cause for one in diagnosis.findings]
    assert Cause.CONTENTION not in causes(diagnosis)


def test_shares_leave_out_nothing_but_nothing() -> None:
    cause_times = shares([(Cause.INPUT, 10.0), (Cause.PYTHON, 0.0), (Cause.COMPUTE, 30.0)], 40.0)
    assert [(one.cause, one.time_ps, one.share) for one in cause_times] == [
        (Cause.COMPUTE, 30, 0.75),
        (Cause.INPUT, 10, 0.25),
    ]
    assert shares([(Cause.INPUT, 10.0)], 0.0)[0].share == 0
    assert [one.share for one in shares([(Cause.INPUT, 1.0)], 4.0)] == [0.25]  # a picosecond
