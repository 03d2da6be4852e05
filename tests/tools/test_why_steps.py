"""One step compared with the others, and which of many hosts are read, on evidence that is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.tools import findings_tables, verdicts, why
from tb_tpuprof.tools.verdicts import _is_quick
from tests.golden_files import demo_runs

MS = 10**9


def evidence(steps_ms: Sequence[float], *parts: tuple[Cause, Sequence[float]]) -> Any:
    """A host whose steps take these ms, and parts of it."""
    return SimpleNamespace(
        duration_ps=np.array(steps_ms) * MS,
        n_steps=len(steps_ms),
        parts=[SimpleNamespace(cause=cause, time_ps=np.array(times) * MS) for cause, times in parts],
    )


def test_the_difference_is_of_the_cause_that_grew_most() -> None:
    host = evidence(
        [10, 10, 30, 11],
        (Cause.INPUT, [1, 2, 9, 1]),
        (Cause.INPUT, [1, 1, 8, 1]),
        (Cause.DISPATCH, [8, 7, 10, 8]),
    )
    said = why._length([(host, 2)], None)
    assert said == "took 30.0 ms, 2.9 times the median of 10.5 ms; 14.5 ms of the difference is input"
    assert why._length([(host, 2)], Cause.INPUT) == "took 30.0 ms, 2.9 times the median of 10.5 ms"
    assert why._length([(host, 2)], Cause.DISPATCH) == said
    assert why._length([(host, 1)], None) == "took 10.0 ms, about as long as the median of 10.5 ms"


def test_time_above_the_usual_adds_up_parts_of_a_cause() -> None:
    host = evidence([1] * 3, (Cause.INPUT, [1, 5, 2]), (Cause.INPUT, [4, 2, 2]), (Cause.PYTHON, [9, 9, 9]))
    assert [why._above_usual(host, row, Cause.INPUT) / MS for row in range(3)] == [0, 2, -1]
    assert why._above_usual(host, 1, Cause.PYTHON) == 0
    assert why._above_usual(host, 1, Cause.COMPILATION) == 0


@pytest.mark.parametrize(
    ("length_ms", "is_named"), [(110.9, True), (110.1, True), (109.9, False), (90, False)]
)
def test_differences_from_ten_percent_on_are_explained(length_ms: float, is_named: bool) -> None:
    host = evidence([100, 100, length_ms], (Cause.PYTHON, [0, 0, length_ms - 100]))
    assert ("of the difference is Python" in why._length([(host, 2)], None)) is is_named


@pytest.mark.parametrize(("grown_ms", "is_named"), [(9.9, False), (10, True), (40, True)])
def test_a_cause_explains_at_least_half_of_the_difference_and_at_most_all(
    grown_ms: float, is_named: bool
) -> None:
    host = evidence([100, 100, 120], (Cause.PYTHON, [1, 1, 1 + grown_ms]))
    said = why._length([(host, 2)], None)
    shown = f"; {min(grown_ms, 20):.1f} ms of the difference is Python"
    assert said == "took 120 ms, 20.0% longer than the median of 100 ms" + (shown if is_named else "")


def test_hosts_are_averaged() -> None:
    one = evidence([10, 10, 20], (Cause.INPUT, [1, 1, 11]))
    two = evidence([10, 10, 40], (Cause.INPUT, [1, 1, 31]))
    assert why._length([(one, 2), (two, 2)], None) == (
        "took 30.0 ms, 3 times the median of 10.0 ms; 20.0 ms of the difference is input"
    )


@pytest.mark.parametrize(("n", "is_only"), [(1, True), (2, False)])
def test_the_only_step(n: int, is_only: bool) -> None:
    said = why._length([(evidence([5]), 0), (evidence([5] * n), 0)], None)
    assert said == (
        "took 5.00 ms and is the only step"
        if is_only
        else "took 5.00 ms, about as long as the median of 5.00 ms"
    )


def summaries(own_ms: Mapping[int, float], n: int) -> list[Any]:
    """Hosts whose steps take 1 ms, or as given, without collectives."""

    class Steps(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.duration_ps)

    collective = np.zeros((2, len(why.TimeClass)))
    collective[:, why.TimeClass.DEVICE_COLLECTIVES] = MS
    return [
        SimpleNamespace(
            steps=Steps(duration_ps=np.full(2, (own_ms.get(i, 1.0) + 1) * MS), class_ps=collective)
        )
        for i in range(n)
    ]


def test_of_many_hosts_the_four_slowest_and_evenly_spaced_ones() -> None:
    n = 10 * POLICY.max_hosts_in_memory + 1
    hosts = [f"h{i}" for i in range(n)]
    slow = {7: 9.0, 13: 5.0, 24: 7.0, 37: 6.0, 52: 4.0}
    chosen = why.chosen_hosts(hosts, summaries(slow, n))
    assert {f"h{i}" for i in (7, 13, 24, 37)} <= set(chosen)
    assert "h52" not in chosen
    assert chosen[0] == "h0"
    assert chosen[-1] == hosts[-1]
    assert chosen == sorted(chosen, key=hosts.index)
    assert len(chosen) == POLICY.max_hosts_in_memory
    spread = [hosts.index(host) for host in chosen if host not in ("h7", "h13", "h24", "h37")]
    gaps = np.diff(spread)
    assert gaps.max() - gaps.min() <= 1
    few = hosts[: POLICY.max_hosts_in_memory]
    assert why.chosen_hosts(few, summaries({}, len(few))) == few


def test_a_host_without_steps_is_not_slow() -> None:
    (idle,) = summaries({}, 1)
    idle.steps.duration_ps, idle.steps.class_ps = np.empty(0), np.empty((0, len(why.TimeClass)))
    assert why._own_ps(idle.steps) == 0
    assert why._own_ps(summaries({0: 3.5}, 1)[0].steps) == 3.5 * MS


def session_of(*files: tuple[str, int]) -> Any:
    return SimpleNamespace(file=lambda host: SimpleNamespace(path=files[host][0], size_bytes=files[host][1]))


def test_small_files_are_quick_and_compressed_ones_are_larger_than_they_look() -> None:
    most = verdicts.QUICK_BYTES
    assert _is_quick(session_of(("a.pb", most)), [0])  # type: ignore[list-item]
    assert not _is_quick(session_of(("a.pb", most + 1)), [0])  # type: ignore[list-item]
    assert not _is_quick(session_of(("a.pb", most), ("b.pb", 1)), [0, 1])  # type: ignore[list-item]
    packed = most // verdicts._COMPRESSED
    assert _is_quick(session_of(("a.json.gz", packed)), [0])  # type: ignore[list-item]
    assert not _is_quick(session_of(("a.json.gz", packed + 1)), [0])  # type: ignore[list-item]
    many: Any = [0] * (POLICY.max_hosts_in_memory + 1)
    assert not _is_quick(session_of(("a.pb", 1)), many)
    assert _is_quick(session_of(("a.pb", 1)), many[1:])


def test_pages_of_the_demo_logs_need_no_second_answer() -> None:
    for run in demo_runs().values():
        session = Session(str(run), cache=False)
        assert _is_quick(session, session.hosts)


@pytest.mark.parametrize(
    ("n_steps", "n_hosts", "base"),
    [
        (1, 1, "of one step"),
        (1, 3, "of one step"),
        (2, 1, "mean over 2 steps"),
        (2, 2, "mean over all steps of 2 hosts"),
        (7, 3, "mean over all steps of 3 hosts"),
    ],
)
def test_the_base_of_times_per_step(n_steps: int, n_hosts: int, base: str) -> None:
    diagnosis: Any = SimpleNamespace(n_steps=n_steps)
    assert findings_tables._base(diagnosis, n_hosts) == base
