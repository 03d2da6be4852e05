"""The pod viewer's answers: savings and their base, waiting for copies, single and equal cores, counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.join import join
from tb_tpuprof.analysis.pod.parts import Part, part_of_op
from tb_tpuprof.analysis.pod.stragglers import stragglers
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.payload_columns import table
from tests.pod_drawing import N_STEPS, drawn_pod
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run
from tests.synthetic_pod import Pod, analysed
from tests.tools.drawn_session import session_of

US = 1_000_000
OPS = {
    "fusion.1": "loop fusion",
    "dot.2": "convolution fusion",
    "copy-start.3": "copy-start",
    "copy-done.3": "copy-done",
}
OPS |= {"slice-done.7": "async-done", "all-reduce.4": "all-reduce"}
COPYING = "fusion.1:0-100 copy-start.3:100-101 dot.2:101-201 copy-done.3:201-801 slice-done.7:801-901"


def shown(folder: Path, hosts: dict[str, bytes]) -> Payload:
    return TOOL.run(Session(str(write_run(folder / "run", hosts)), cache=False), None, {})


def test_waiting_for_copies_is_a_part_of_its_own_and_no_compute(tmp_path: Path) -> None:
    """Three unlike cores: one waits for copies for 700 of 1,000 µs, one for 300, one never."""
    cores = [COPYING, "dot.2:0-500 copy-done.3:500-800", "fusion.1:0-900"]
    payload = shown(tmp_path, drawn_pod([cores], OPS))
    core_rows = table(payload, "cores")
    assert core_rows["copy_wait_ps"] == [700 * US, 300 * US, 0]
    assert core_rows["low_flops_ps"] == [101 * US, 0, 900 * US]
    assert core_rows["high_flops_ps"] == [100 * US, 500 * US, 0]
    assert core_rows["bottleneck"] == ["Waiting for copies", "High-FLOPS compute", "Low-FLOPS compute"]
    assert payload.scalars["copy_wait_fraction"].value == pytest.approx((0.7 + 0.3) / 3)


def test_what_an_asynchronous_operation_wraps_tells_its_part() -> None:
    assert part_of_op("async-done", "reduce-scatter-done.3") is Part.COLLECTIVE
    assert part_of_op("async-done", "slice-done.3") is Part.COPY_WAIT
    assert part_of_op("copy-start", "copy-start.3") is Part.LOW_FLOPS
    assert (part_of_op("host recv-done"), part_of_op("send-done"), part_of_op("all-gather-done")) == (
        Part.INPUT,
        Part.SEND,
        Part.COLLECTIVE,
    )


def test_equal_cores_are_answered_in_one_sentence_without_an_excuse(tmp_path: Path) -> None:
    payload = shown(tmp_path, drawn_pod([[COPYING] * 4], OPS, has_steps=False))
    assert payload.verdict
    # Six runs of 901 µs, one every 1,000 µs: 5,901 µs from the first operation to the last, in 4,200 of which
    # copies are awaited.
    assert (
        payload.verdict.text
        == "All 4 cores do the same work: of the 5.90 ms from the first to the last operation of any core, "
        "71.2% is waiting for copies on each."
    )
    assert payload.verdict.level == "warn"
    assert "straggler" not in payload.verdict.text


def test_without_steps_nothing_is_called_a_step(tmp_path: Path) -> None:
    payload = shown(tmp_path, drawn_pod([[COPYING, "dot.2:0-500", "fusion.1:0-900"]], OPS, has_steps=False))
    assert payload.scalars["job_step_ps"].title == "Whole capture"
    assert payload.scalars["job_step_ps"].value == 5901 * US
    assert (payload.scalars["n_steps"].value, payload.scalars["n_steps"].note) == (0, "none are marked")
    assert "steps" not in payload.tables
    titles = [column.title for name in payload.tables for column in payload.tables[name].columns]
    assert not [
        title
        for title in titles
        if "tep" in title and "tragglers" not in title and title not in _STEPS_OF_STRAGGLERS
    ]
    assert payload.verdict
    assert "from the first to the last operation of any core" in payload.verdict.details[0]


_STEPS_OF_STRAGGLERS = ("Since step", "Job's step", "Saved per step")  # of a table that then has no rows


def test_a_single_core_is_said_to_be_one(tmp_path: Path) -> None:
    payload = shown(tmp_path, drawn_pod([["dot.2:0-800"]], OPS))
    assert payload.verdict
    assert (
        payload.verdict.text
        == "Of 1.00 ms per step, 80.0% is high-FLOPS compute. Only one core was profiled, so there is"
        " nothing "
        "to compare."
    )
    assert "step_ps" not in payload.scalars


def test_unlike_cores_in_one_capture_are_told_apart(tmp_path: Path) -> None:
    hosts = [
        ["dot.2:0-500 all-reduce.4:500-900"],
        ["dot.2:0-600 all-reduce.4:600-900"],
        ["dot.2:0-800 all-reduce.4:800-900"],
    ]
    payload = shown(tmp_path, drawn_pod(hosts, OPS, has_steps=False))
    assert payload.verdict
    assert payload.verdict.text.startswith("`h2 TPU:0` takes longest in the whole capture: ")
    assert payload.verdict.text.endswith("Detecting a straggler takes at least 5 steps.")


def test_the_job_s_step_is_its_slowest_host_s_and_a_saving_is_told_with_it(tmp_path: Path) -> None:
    """Three independent hosts of 900, 950 and 1,200 µs: at the others' median of 925 the job would take 950,
    as the next slowest.
    """
    files = {}
    for length in (900, 950, 1200):
        (files[f"h{length}"],) = drawn_pod([[f"dot.2:0-{length}"]], OPS, step_us=length).values()
    payload = shown(tmp_path, files)
    rows = table(payload, "stragglers")
    assert (rows["straggler"], rows["own_ps"], rows["usual_ps"]) == (["h1200"], [1200 * US], [925 * US])
    assert (rows["job_ps"], rows["gain_ps"], rows["gain_fraction"]) == (
        [1200 * US],
        [250 * US],
        [pytest.approx(250 / 1200)],
    )
    assert payload.scalars["job_step_ps"].value == 1200 * US
    assert payload.verdict
    assert (
        "takes 275 µs longer per step than the others (1.20 ms; their median is 925 µs)"
        in payload.verdict.text
    )
    assert payload.verdict.text.endswith("the job would save 250 µs of 1.20 ms per step (20.8%).")
    assert "independent" in " ".join(payload.verdict.details)
    assert "max_own_ps" not in payload.scalars


def test_a_saving_is_smaller_than_what_it_is_saved_from() -> None:
    """On generated pods with hosts that are up to ten times as slow from some step on."""
    n_found = 0
    for trial in range(60):
        rng = np.random.default_rng(trial)
        slow = tuple(
            (int(host), int(rng.integers(0, 12)), float(rng.integers(100, 9000)), "infeed")
            for host in rng.choice(6, 2, replace=False)
        )
        pod = join(analysed(Pod(n_hosts=6, n_chips=1, n_steps=20, noise=0.02, seed=trial, slow=slow), True))
        for straggler in stragglers(pod):
            n_found += 1
            assert 0 <= straggler.gain_ps < straggler.job_ps
            assert straggler.gain_ps <= straggler.slow.excess_ps * (1 + 1e-9)
            assert straggler.job_ps == pytest.approx(
                pod.total_ps[:, straggler.slow.since :].max(axis=0).mean()
            )
    assert n_found >= 60


def test_the_two_workers_save_no_more_than_their_step() -> None:
    payload = TOOL.run(Session(str(demo_runs()["tf_two_workers"]), cache=False), None, {})
    rows = table(payload, "stragglers")
    job, gain_ps = payload.scalars["job_step_ps"].value, rows["gain_ps"][0]
    assert rows["job_ps"] == [pytest.approx(job)]
    assert isinstance(gain_ps, float)
    assert gain_ps < float(job or 0)
    assert table(payload, "cores")["total_ps"][1] == pytest.approx(job)
    assert rows["gain_fraction"] == [pytest.approx(gain_ps / float(job or 1))]


def test_gpus_that_are_there_and_gpus_that_work_are_counted_apart_and_idling_has_a_base(
    tmp_path: Path,
) -> None:
    job = GpuJob(Parts(0.5, 0.1, 0.05, 0.2), n_gpus=3)
    payload = shown(tmp_path, {"gpu": gpu_xspace(job)})
    assert (payload.scalars["n_chips"].title, payload.scalars["n_cores"].title) == (
        "GPUs present",
        "GPUs active",
    )
    assert (payload.scalars["n_chips"].value, payload.scalars["n_cores"].value) == (3, 3)
    idle, union = (float(payload.scalars[name].value or 0) for name in ("idle_fraction", "all_idle_fraction"))
    assert 0 <= union <= idle
    assert payload.scalars["idle_fraction"].note == "mean per GPU; traced waits are separate parts"


def test_time_in_which_all_idle_is_less_than_the_mean_of_the_cores(tmp_path: Path) -> None:
    cores = ["dot.2:0-300", "dot.2:200-600", "fusion.1:900-950"]
    payload = shown(tmp_path, drawn_pod([cores], OPS))
    assert payload.scalars["idle_fraction"].value == pytest.approx(1 - (300 + 400 + 50) / 3000)
    assert payload.scalars["all_idle_fraction"].value == pytest.approx(0.35)  # 600 to 900 and 950 to 1,000
    assert len(table(payload, "steps")["step"]) == N_STEPS


def test_without_steps_or_accelerators_it_says_what_is_missing() -> None:
    assert "no accelerator" in TOOL.available(session_of(drawing("main [work ]"))).reason
