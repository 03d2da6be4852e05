"""Clocks of hosts: planted offsets are found by collectives and by steps, and none is claimed where nothing
tells.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.clocks import (
    ClockMarks,
    ClockOffset,
    Moments,
    apart_sentences,
    clock_marks,
    clock_offsets,
    clock_sentences,
)
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_xspace, write_run

MS_NS, PS_PER_NS = 1_000_000, 1000
NONE = Moments(np.empty(0, np.int64), np.empty(0, np.int64))
GPU = GpuJob(Parts(compute=0.6, collective=0.2), n_steps=10, start_ns=10**18)


def gpu_run(folder: Path, *ahead_ns: int) -> Session:
    """Hosts of one job that begin together; the clock of each is that much ahead."""
    hosts = {
        f"h{i}": gpu_xspace(replace(GPU, start_ns=GPU.start_ns + ahead)) for i, ahead in enumerate(ahead_ns)
    }
    return Session(str(write_run(folder, hosts)), cache=False)


def moments(start: int, n: int, period_ps: int, jitter_ps: float = 0, seed: int = 0) -> Moments:
    noise = np.random.default_rng(seed).normal(0, jitter_ps, n) if jitter_ps else np.zeros(n)
    return Moments(np.arange(start, start + n), (np.arange(n) * period_ps + noise).astype(np.int64))


def test_the_last_collective_of_each_annotated_step_is_its_moment(tmp_path: Path) -> None:
    session = gpu_run(tmp_path / "run", 0)
    found = session.get(clock_marks, "h0")
    assert found.steps.number.tolist() == found.collectives.number.tolist() == list(range(10))
    assert found.steps.end_ps.tolist() == [(i + 1) * GPU.step_ps for i in range(10)]
    assert found.collectives.end_ps.tolist() == [i * GPU.step_ps + GPU.step_ps * 8 // 10 for i in range(10)]
    none = clock_marks(drawing("main [x]"))
    assert len(none.steps.number) == len(none.collectives.number) == 0


def test_planted_offsets_are_found_by_collectives(tmp_path: Path) -> None:
    session = gpu_run(tmp_path / "run", 0, 7 * MS_NS, -3 * MS_NS)
    found = clock_offsets(session.map(clock_marks, session.hosts))
    assert [one.by for one in found] == ["collectives"] * 3
    assert [one.offset_ps for one in found] == pytest.approx(
        [0, 7 * MS_NS * PS_PER_NS, -3 * MS_NS * PS_PER_NS], abs=2_000_000
    )
    assert [one.correction_ns for one in found] == pytest.approx([0, -7 * MS_NS, 3 * MS_NS], abs=2_000)
    assert found[1].n_moments == GPU.n_steps


def told(payload: Payload) -> list[str]:
    return [one.message for one in payload.diagnostics if "clock" in one.message]


@pytest.mark.parametrize("hours", [0, 20])
def test_the_timeline_and_the_steps_are_laid_together_again(tmp_path: Path, hours: int) -> None:
    """Steps last a millisecond, so 7 ms put step 7 of one host beside step 0 of the other; 20 hours put none
    beside any.
    """
    session = gpu_run(tmp_path / "run", 0, 7 * MS_NS + hours * 3600 * 10**9)
    viewer = get_tool("trace_viewer").run(session, None, {})
    offset = next(column for column in viewer.tables["hosts"].columns if column.name == "offset_ps").values
    aligned = next(column for column in viewer.tables["hosts"].columns if column.name == "is_aligned").values
    assert abs(int(offset[1]) - int(offset[0])) < 1_000_000
    assert aligned.all()
    (sentence,) = told(viewer)
    assert "h1" in sentence
    assert "ahead of the others (from collectives in 10 steps)" in sentence
    payload = get_tool("overview_page").run(session, None, {})
    assert told(payload) == [sentence]
    agreed = get_tool("overview_page").run(gpu_run(tmp_path / "agreed", 0, 0), None, {})
    assert payload.scalars["n_steps"].value == agreed.scalars["n_steps"].value
    assert told(agreed) == []
    assert told(get_tool("input_pipeline_analyzer").run(session, None, {})) == [sentence]
    pod = get_tool("pod_viewer").run(session, None, {})
    assert told(pod) == [sentence]
    assert pod.scalars["n_hosts"].value == 2
    assert pod.scalars["n_steps"].value == GPU.n_steps - 2, "all but those at both ends"


def test_tpus_are_laid_together_by_their_collectives(tmp_path: Path) -> None:
    """The host's annotated steps launch the programs, whose collectives end together; 40 ms put none of 10
    steps of 1 ms beside another.
    """
    job = TpuJob(Parts(compute=0.6, collective=0.2), n_steps=10, annotates=True)
    clocks = {"a": 10**18, "b": 10**18 + 40 * MS_NS}
    hosts = {host: tpu_xspace(replace(job, start_ns=start), host) for host, start in clocks.items()}
    session = Session(str(write_run(tmp_path / "run", hosts)), cache=False)
    pod, roofline = (get_tool(name).run(session, None, {}) for name in ("pod_viewer", "roofline_model"))
    (sentence,) = told(pod)
    assert (
        "The clock of b is 40.0 ms ± 1.00 µs ahead of the others (from collectives in 10 steps)" in sentence
    )
    assert told(roofline) == [sentence]
    assert (pod.scalars["n_hosts"].value, pod.scalars["n_steps"].value) == (2, 10)
    assert roofline.tables["programs"].n_rows == 2 + 10, "in all, the mean, and each step"


def test_one_host_has_no_offset(tmp_path: Path) -> None:
    assert told(get_tool("trace_viewer").run(gpu_run(tmp_path / "run", 0, 9 * MS_NS), ["h1"], {})) == []


def test_steps_alone_tell_of_clocks_that_are_further_apart_than_captures_are_long() -> None:
    period = 100 * MS_NS * PS_PER_NS
    hosts = [
        ClockMarks(ahead, 20 * period, moments(5, 20, period, 1e9, seed), NONE)
        for seed, ahead in enumerate((0, 1500 * MS_NS, 50_000 * MS_NS))
    ]
    found = clock_offsets(hosts)
    assert {one.by for one in found} == {"steps"}
    assert [one.counts for one in found] == [False, False, True]
    assert found[2].offset_ps == pytest.approx((50_000 - 1500) * MS_NS * PS_PER_NS, rel=0.01)
    assert found[2].uncertainty_ps == pytest.approx(10 * period)


@pytest.mark.parametrize(
    ("apart_s", "words"),
    [
        (148 * 86_400, "148 days after"),
        (-3 * 86_400, "3 days before"),
        (7 * 3600, "7 hours after"),
        (300, "5 minutes after"),
    ],
)
def test_equal_step_numbers_do_not_make_two_captures_one(apart_s: int, words: str) -> None:
    """Any two captures of a script number their steps alike: beyond what clocks are off by, that is no
    clock's fault.
    """
    period = 100 * MS_NS * PS_PER_NS
    hosts = [
        ClockMarks(10**18 + at * 10**9, 20 * period, moments(5, 20, period, 1e9, seed), NONE)
        for seed, at in enumerate((0, 0, apart_s))
    ]  # fmt: skip
    found = clock_offsets(hosts)
    assert [one.is_apart for one in found] == [False, False, True]
    assert found[2].correction_ns == 0
    assert clock_sentences(["a", "b", "c"], found) == []
    (sentence,) = apart_sentences(["a", "b", "c"], found)
    assert sentence.startswith(f"c was captured {words} the others")


def test_the_uncertainty_is_the_spread_that_was_planted() -> None:
    hosts = [ClockMarks(0, 0, NONE, moments(0, 400, 10**10, 5e7, seed)) for seed in range(9)]
    for one in clock_offsets(hosts):
        assert one.uncertainty_ps == pytest.approx(
            5e7, rel=0.35
        )  # lags are against the middle, which each host is at times
        assert not one.counts


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [ClockMarks(0, 10**11, moments(0, 9, 10**10), NONE)],
        [ClockMarks(0, 10**11, moments(0, 9, 10**10), NONE), ClockMarks(10**12, 10**11, NONE, NONE)],
        [
            ClockMarks(0, 10**11, moments(0, 9, 10**10), NONE),
            ClockMarks(10**12, 10**11, moments(50, 9, 10**10), NONE),
        ],
        [
            ClockMarks(0, 10**11, moments(0, 2, 10**10), NONE),
            ClockMarks(10**12, 10**11, moments(0, 2, 10**10), NONE),
        ],
    ],
)
def test_where_nothing_is_shared_nothing_is_claimed(hosts: list[ClockMarks]) -> None:
    assert clock_offsets(hosts) == (ClockOffset(),) * len(hosts)
    assert clock_sentences([str(i) for i in range(len(hosts))], clock_offsets(hosts)) == []


def test_hosts_without_moments_stay_where_they_are() -> None:
    far = 10**12
    hosts = [
        ClockMarks(0, 10**11, NONE, moments(0, 9, 10**10)),
        ClockMarks(far, 10**11, NONE, NONE),
        ClockMarks(far, 10**11, NONE, moments(0, 9, 10**10)),
    ]
    found = clock_offsets(hosts)
    assert [one.correction_ns for one in found] == [0, 0, -far]


def test_workers_that_do_not_wait_for_one_another_share_no_moments() -> None:
    slow, quick = moments(0, 20, 37 * 10**9), moments(0, 20, 11 * 10**9)
    found = clock_offsets([ClockMarks(0, 10**9, NONE, slow), ClockMarks(10**12, 10**9, NONE, quick)])
    assert found == (ClockOffset(), ClockOffset())


def test_real_workers_on_one_machine_agree() -> None:
    """They number steps alike, but run at paces of their own."""
    session = Session(str(demo_runs()["tf_two_workers"]), cache=False)
    assert not any(one.counts for one in clock_offsets(session.map(clock_marks, session.hosts)))
