"""The sentence of a diagnosis, and of findings that several hosts have: which hosts and shares they name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose, without_waits_for_others
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Diagnosis, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Period
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import evidence, function, part
from tests.builders import PS

UPDATE, REPORT = function("update"), function("report", "shop.py", 7)


def host(name: str, cause: Cause, time_us: float, step_us: float = 200, **given: object) -> HostEvidence:
    """A host whose two steps spend so much time on a cause, and compute for the rest."""
    fields = {"culprit": UPDATE, **given}
    parts = (
        part(cause, time_us, time_us, **fields),  # type: ignore[arg-type]
        part(Cause.COMPUTE, step_us - time_us, step_us - time_us),
    )
    return evidence(*parts, host=name, steps_us=(step_us, step_us))


@pytest.mark.parametrize(
    ("kind", "compute_us", "text"),
    [
        (
            "CPU",
            120,
            (
                "Compute-bound: each step takes 200 µs, 60.0% of it computing on the host; no other cost is "
                "significant."
            ),
        ),
        (
            "GPU",
            150,
            (
                "Compute-bound: each step takes 200 µs, 75.0% of it computing on the GPU; no other cost is "
                "significant."
            ),
        ),
        ("TPU", 119, "No single cause dominates the step of 200 µs: 59.5% of it is computing."),
    ],
)
def test_a_healthy_run_computes_for_most_of_the_step(kind: str, compute_us: int, text: str) -> None:
    given = evidence(part(Cause.COMPUTE, compute_us, compute_us), kind=kind, steps_us=(200, 200))
    assert diagnose([given]).text == text


def test_the_host_of_the_longest_step_is_that_of_a_healthy_run() -> None:
    hosts = [host(name, Cause.PYTHON, 1, step_us) for name, step_us in (("a", 200), ("b", 500), ("c", 300))]
    assert diagnose(hosts).text.startswith("Compute-bound: each step takes 500 µs, 99.8% of it")
    assert diagnose(hosts).step_time_ps == pytest.approx(1000 / 3 * PS)


@pytest.mark.parametrize(
    ("time_us", "level", "is_listed"),
    [
        (5.9, "good", False),
        (6, "good", True),
        (9.9, "good", True),
        (10, "warn", True),
        (39.9, "warn", True),
        (40, "bad", True),
    ],
)
def test_shares_that_are_listed_and_that_set_the_level(time_us: float, level: str, is_listed: bool) -> None:
    """3%, 5% and 20% of the step."""
    diagnosis = diagnose([host("a", Cause.UNRECORDED, time_us)])
    assert (diagnosis.level, bool(diagnosis.findings)) == (level, is_listed)
    assert (diagnosis.top is not None) == (level in ("warn", "bad"))


def test_the_verdict_is_introduced_by_its_bound() -> None:
    annotation = Culprit("annotation", "load")
    for one, text in (
        (host("a", Cause.INPUT, 50), "Highly input-bound: each step waits 50.0 µs (25.0%) for data in"),
        (host("a", Cause.INPUT, 30), "Moderately input-bound: each step waits 30.0 µs (15.0%) for data in"),
        (host("a", Cause.PYTHON, 30), "Moderately Python-bound: each step spends 30.0 µs (15.0%) in Python"),
        (
            host("a", Cause.PYTHON, 30, culprit=annotation),
            "30.0 µs (15.0%) of each step is in the annotation",
        ),
        (
            host("a", Cause.INPUT, 30, culprit=annotation),
            "Moderately input-bound: each step waits 30.0 µs (15.0%) for data in `load`",
        ),
        (
            host("a", Cause.UNRECORDED, 30),
            (
                "Compute-bound: each step takes 200 µs, 85.0% of it computing on the host; 30.0 µs (15.0%)"
                " was not recorded."
            ),
        ),
        (host("a", Cause.COMPILATION, 50), "Highly compilation-bound: compiling `update` takes 50.0 µs"),
        (host("a", Cause.CALLBACKS, 50), "Highly callback-bound: each step spends 50.0 µs"),
        (host("a", Cause.TRANSFERS, 50), "Highly transfer-bound: each step spends 50.0 µs"),
        (host("a", Cause.COMMUNICATION, 50), "Highly communication-bound: each step spends 50.0 µs"),
    ):
        assert diagnose([one]).text.startswith(text)


def merged(*times_us: float) -> Finding:
    """The only finding of hosts a, b, … that wait so long for data."""
    hosts = [host(name, Cause.INPUT, time) for name, time in zip("abcd", times_us, strict=False)]
    (one,) = diagnose(hosts).findings
    return one


def test_a_finding_is_one_hosts_from_twice_the_least_share_and_3_percent_on() -> None:
    """Of 200 µs: 20 are 10%, so from 46 on."""
    assert [merged(20, time).host for time in (45.9, 46)] == ["", "b"]
    assert [merged(20, 21, time).host for time in (45.9, 46)] == ["", "c"]
    assert merged(46, 20, 21).base == "of a's mean step"


def test_a_finding_that_a_host_lacks_is_of_the_others() -> None:
    """However short: from 3% on."""
    hosts = [host("a", Cause.INPUT, 8), host("b", Cause.PYTHON, 1)]
    (one,) = diagnose(hosts).findings
    assert (one.host, one.sentence[:24]) == ("a", "On `a`, each step waits ")


def test_numbers_that_exceed_the_mean_by_a_tenth_are_of_a_named_host() -> None:
    """50 and 61 µs are 55.5 on average, 1.1 times of which are 61.05; 50 and 62 are 56, and 61.6."""
    assert merged(50, 61).sentence.startswith("Each step waits 61.0 µs")
    assert merged(50, 62).sentence.startswith("On `b`, each step waits 62.0 µs")
    assert merged(62, 50).sentence.startswith("On `a`, each step waits 62.0 µs")
    assert merged(50, 62).host == ""


def test_a_run_has_the_steps_of_its_first_host_with_any() -> None:
    three = evidence(part(Cause.INPUT, 90, 90, 90), steps_us=(100, 100, 100), host="b")
    empty, two = evidence(steps_us=(), host="a"), host("c", Cause.INPUT, 90, 100)
    assert diagnose([empty, three, two]).n_steps == 3
    assert diagnose([empty, two, three]).n_steps == 2


def test_a_single_host_is_not_named() -> None:
    (one,) = diagnose([host("a", Cause.INPUT, 50)]).findings
    assert (one.host, one.base) == ("", "of the mean step")
    assert one.sentence.startswith("Each step waits 50.0 µs")


def detailed(diagnosis: Diagnosis) -> bool:
    return diagnosis.is_detailed


def test_a_diagnosis_is_detailed_if_all_hosts_are_or_its_first_finding_has_a_culprit() -> None:
    def coarse(name: str, culprit: Culprit, time_us: float = 50) -> HostEvidence:
        return replace(host(name, Cause.INPUT, time_us, culprit=culprit), is_detailed=False)

    unnamed = Culprit()
    assert detailed(diagnose([host("a", Cause.INPUT, 50, culprit=unnamed)]))
    assert not detailed(diagnose([coarse("a", unnamed)]))
    assert not detailed(diagnose([coarse("a", unnamed), host("b", Cause.INPUT, 50, culprit=unnamed)]))
    assert detailed(diagnose([coarse("a", UPDATE)]))
    assert not detailed(diagnose([coarse("a", UPDATE, 1)]))  # nothing is found


def test_hosts_are_compared_over_the_rows_of_hosts_with_steps() -> None:
    """The second host has no steps, so that the third one's rows are the third ones. Its first two steps are
    long, and only the others are common.
    """
    fast, slow = (part(Cause.COMPUTE, *times) for times in ([100] * 40, [900] * 2 + [100] * 38))
    hosts = [
        evidence(fast, steps_us=[100] * 40, host="a"),
        evidence(steps_us=(), host="b"),
        evidence(slow, steps_us=[900] * 2 + [100] * 38, host="c"),
        evidence(fast, steps_us=[100] * 40, host="d"),
    ]
    common = [slice(2, 40), slice(0, 0), slice(2, 40), slice(2, 40)]
    assert diagnose(hosts, common).findings == ()
    steady = part(Cause.COMPUTE, *[180] * 40)
    hosts[2] = evidence(steady, steps_us=[180] * 40, host="c")
    assert [one.host for one in diagnose(hosts, common).findings] == ["c"]
    assert diagnose(hosts).findings == ()


def period(was: Cause, every: int, **given: object) -> Period:
    made = Period(Culprit(), "", was, every, 3, 90.0 * PS, 18.0 * PS, 0, 1)
    return replace(made, **given)  # type: ignore[arg-type]


def test_periods_and_computing_of_hosts_that_wait_for_others() -> None:
    """`slow` saves in every fifth step. Others that compute longer in these wait for it, unless it is a
    program of their own; a host does not wait for itself.
    """
    computing = part(Cause.PERIODIC, 0, 0, 90, klass=TimeClass.DEVICE_COMPUTE_16)
    waiting = part(Cause.PERIODIC, 0, 0, 30, klass=TimeClass.HOST_WAIT)
    python = part(Cause.PYTHON, 0, 0, 30, klass=TimeClass.HOST_COMPUTE)
    saves, waits = period(Cause.PYTHON, 5), period(Cause.COMPUTE, 5)
    slow = evidence(computing, host="slow", periods=(saves, waits))
    fast = evidence(computing, waiting, python, host="fast", periods=(waits,))
    other = evidence(computing, host="other", periods=(waits, period(Cause.COMPUTE, 3)))
    own = evidence(computing, host="own", periods=(waits, period(Cause.COMPUTE, 5, programs=("eval",))))
    saving = evidence(computing, host="saving", periods=(waits, period(Cause.PYTHON, 7)))
    alone = evidence(computing, host="alone", periods=(period(Cause.PYTHON, 7),))
    results = without_waits_for_others([slow, fast, other, own, saving, alone])
    assert [len(one.periods) for one in results] == [2, 0, 1, 1, 1, 1]
    assert [[one_part.cause for one_part in one.parts] for one in results] == [
        [Cause.PERIODIC],
        [Cause.COMPUTE, Cause.PERIODIC, Cause.PYTHON],
        [Cause.PERIODIC],
        [Cause.PERIODIC],
        [Cause.COMPUTE],
        [Cause.PERIODIC],
    ]
