"""Numbers planted in synthetic traces come back out: shares of steps, duty cycle, utilisation,
peaks, hosts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.device import peaks
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.ops.utilization import Utilization, sum_utilization, utilization
from tb_tpuprof.analysis.overview.hosts import host_steps, slowest_host
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.settings import PEAKS_VARIABLE
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.ingest.xspaces import native, plain
from tests.synthetic import (
    HBM,
    READ,
    WRITE,
    GpuJob,
    Parts,
    TpuJob,
    field,
    gpu_xspace,
    memory_accesses,
    tpu_hosts,
    tpu_xspace,
)

MIXED = Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05)
OP = {"program_id": 1, "symbol_id": 1, "hlo_category": "fusion"}


def tpu(job: TpuJob) -> Trace:
    return native(tpu_xspace(job))


@settings(max_examples=25, deadline=None)
@given(
    shares=st.lists(st.integers(0, 24), min_size=4, max_size=4),
    n_cores=st.integers(1, 4),
    n_steps=st.integers(1, 8),
    chip=st.integers(1, 2),
)
def test_planted_shares_of_a_tpu_come_back_out(
    shares: list[int], n_cores: int, n_steps: int, chip: int
) -> None:
    parts = Parts(*(share / 100 for share in shares))
    trace = tpu(TpuJob(parts=parts, n_cores=n_cores, n_steps=n_steps, cores_per_chip=chip))
    found = steps(trace)
    assert len(found) == n_steps
    planted = {
        "device_compute": parts.compute,
        "input": parts.infeed,
        "output": parts.outfeed,
        "device_collectives": parts.collective,
        "other": parts.idle,
    }
    assert {name: found.fraction(name) for name in planted} == pytest.approx(planted, abs=1e-9)
    duty = utilization(trace).duty_cycle
    assert duty == pytest.approx(parts.compute + parts.collective, abs=1e-9)


def test_planted_work_of_a_tpu_comes_back_out() -> None:
    job = TpuJob(parts=MIXED, flops=50_000_000_000, n_bytes=400_000_000)
    use = utilization(tpu(job))
    step_s = job.step_ps / 1e12
    assert use.flops_fraction == pytest.approx(job.flops / step_s / 197e12)
    assert use.bandwidth_fraction == pytest.approx(job.n_bytes / step_s / 819e9)
    assert use.roofline_fraction == pytest.approx(max(job.flops / 197e12, job.n_bytes / 819e9) / step_s)
    # The same by the textbook: the FLOP rate over min(peak, FLOPs per byte x peak bandwidth).
    best = min(197e12, job.flops / job.n_bytes * 819e9)
    assert use.roofline_fraction == pytest.approx(job.flops / step_s / best)
    assert use.bound_by == "memory"
    assert utilization(tpu(replace(job, flops=100_000_000_000))).bound_by == "compute"


def test_both_decoders_tell_the_same() -> None:
    data = tpu_xspace(TpuJob(parts=MIXED, n_cores=4, cores_per_chip=2, n_sparse_cores=1))
    assert utilization(native(data)) == utilization(plain(data))
    assert hardware(native(data)) == hardware(plain(data))


def test_sparse_cores_keep_their_chip_on_duty() -> None:
    parts = Parts(compute=0.4, infeed=0.1)
    assert utilization(tpu(TpuJob(parts=parts, n_sparse_cores=1))).duty_cycle == pytest.approx(0.5)
    assert utilization(
        tpu(TpuJob(parts=parts, n_cores=4, cores_per_chip=2, n_sparse_cores=2))
    ).duty_cycle == pytest.approx(0.5)


def test_cores_of_a_chip_are_busy_together() -> None:
    # Core 0 works in the first third, core 1 in the last: the chip is on duty for two thirds of its time.
    planes = [
        DrawnPlane(
            f"/device:TPU:{core}",
            {"XLA Ops": [DrawnEvent("a", core * 20 * PS, 10 * PS)]},
            {"core_details": field(2, core)},
            {"a": OP},
        )
        for core in range(2)
    ]
    assert utilization(build(planes)).duty_cycle == pytest.approx(20 / 30)
    apart = [replace(plane, stats={}) for plane in planes]
    assert utilization(build(apart)).duty_cycle == 1


def test_operations_that_contain_others_are_not_counted_twice() -> None:
    ops = [DrawnEvent("while", 0, 10 * PS), DrawnEvent("dot", 0, 10 * PS)]
    stats = {
        "while": {
            "program_id": 1,
            "symbol_id": 1,
            "hlo_category": "while",
            "flops": 100,
            "bytes_accessed": 10,
        },
        "dot": {
            "program_id": 1,
            "symbol_id": 2,
            "hlo_category": "convolution",
            "flops": 100,
            "bytes_accessed": 10,
        },
    }
    use = utilization(build([DrawnPlane("/device:TPU:0", {"XLA Ops": ops}, {}, stats)]))
    assert (use.flops, use.hbm_bytes) == (100, 10)
    assert (use.flops_fraction, use.bandwidth_fraction, use.roofline_fraction, use.bound_by) == (
        None,
        None,
        None,
        "",
    )


def test_only_hbm_counts_as_memory_bandwidth() -> None:
    breakdown = memory_accesses((READ, HBM, 30), (WRITE, HBM, 10), (READ, 3, 500))
    plane = DrawnPlane(
        "/device:TPU:0",
        {"XLA Ops": [DrawnEvent("a", 0, PS)]},
        {},
        {"a": {**OP, "memory_access_breakdown": breakdown}},
    )
    assert utilization(build([plane])).hbm_bytes == 40
    broken = replace(
        plane, metadata_stats={"a": {**OP, "memory_access_breakdown": breakdown[:-3] + b"\xff\xff"}}
    )
    assert utilization(build([broken])).hbm_bytes >= 0


def test_other_devices_have_no_duty_cycle() -> None:
    assert utilization(drawing("main  [Add:Add  ]")) == Utilization()
    assert utilization(native(gpu_xspace(GpuJob(parts=MIXED)))).duty_cycle is None
    assert utilization(tpu(TpuJob(n_steps=0))).duty_cycle is None
    assert sum_utilization([]) == Utilization()


def test_hosts_add_up_by_their_time() -> None:
    one, two = (
        utilization(tpu(TpuJob(parts=Parts(compute=share), n_steps=4, flops=10**10))) for share in (0.2, 0.6)
    )
    assert sum_utilization([one, two]).duty_cycle == pytest.approx(0.4)
    assert sum_utilization([one, two]).flops_fraction == pytest.approx(one.flops_fraction)


def test_hosts_without_a_known_device_have_the_peaks_of_the_others() -> None:
    """The work of three hosts, of which the second does not name its device, over the peak of all of them."""
    parts = [
        Utilization(device_ps=10, flops=30.0, hbm_bytes=5.0, max_flops=100.0, max_bytes=50.0),
        Utilization(device_ps=20, flops=70.0, hbm_bytes=1.0),
        Utilization(device_ps=40, flops=11.0, hbm_bytes=2.0, max_flops=400.0, max_bytes=200.0),
        Utilization(),
    ]
    total = sum_utilization(parts)
    assert (total.max_flops, total.max_bytes) == (700.0, 350.0)
    assert total.flops_fraction == pytest.approx(111 / 700)
    assert total.bandwidth_fraction == pytest.approx(8 / 350)
    assert sum_utilization([parts[1], parts[1]]).flops_fraction is None


def test_planted_shares_of_a_gpu_come_back_out() -> None:
    found = steps(native(gpu_xspace(GpuJob(parts=MIXED, n_gpus=2))))
    planted = {"device_compute": 0.6, "input": 0.2, "output": 0.03, "device_collectives": 0.05}
    assert {name: found.fraction(name) for name in planted} == pytest.approx(planted)
    assert (
        found.duration_ps == GpuJob().step_ps
    ).all()  # idle time is part of a step, not only what lies between kernels
    assert hardware(native(gpu_xspace(GpuJob()))).peak_flops_per_s == pytest.approx(989.4e12, rel=1e-3)


@pytest.mark.parametrize(
    ("device", "tera_flops", "giga_bytes"),
    [
        ("TPU v2", 23, 350),
        ("TPU v3", 61.5, 450),
        ("TPU v4", 275, 1200),
        ("TPU v5 lite", 197, 819),
        ("TPU v5e", 197, 819),
        ("TPU v5p", 459, 2765),
        ("TPU v5", 459, 2765),
        ("TPU v6 Lite", 918, 1638),
        ("TPU v6e", 918, 1638),
        ("TPU7x", 1153.5, 3690),
        ("TPU v7x", 1153.5, 3690),
        ("NVIDIA B200", 2250, 7700),
        ("NVIDIA H100 80GB HBM3", 989.5, 3350),
        ("NVIDIA GeForce RTX 5090", 419, 1792),
        ("AMD Instinct MI355X", 2516.6, 8000),
        ("Tesla T4", 65, 320),
    ],
)
def test_data_sheets(device: str, tera_flops: float, giga_bytes: float) -> None:
    found = peaks.data_sheet(device)
    assert found is not None
    assert (found.flops_per_s, found.hbm_bytes_per_s) == pytest.approx((tera_flops * 1e12, giga_bytes * 1e9))


def test_every_entry_of_the_table_has_a_source_and_a_place() -> None:
    for entry in peaks.DEVICES:
        assert entry.source
        assert 10e12 < entry.flops_per_s < 5e15
        assert 100e9 < entry.hbm_bytes_per_s < 20e12
    assert peaks.data_sheet("Some other thing") is None


def test_multiprocessors_and_clock_give_what_the_data_sheets_say() -> None:
    for capability, n, clock_khz, tera in (
        ((7, 0), 80, 1_530_000, 125),
        ((8, 0), 108, 1_410_000, 312),
        ((8, 9), 142, 2_490_000, 362),
        ((9, 0), 132, 1_830_000, 989.5),
        ((10, 0), 148, 1_855_000, 2250),
        ((12, 0), 170, 2_407_000, 419),
    ):
        job = GpuJob(capability=capability, n_multiprocessors=n, clock_khz=clock_khz)
        assert hardware(native(gpu_xspace(job))).peak_flops_per_s == pytest.approx(tera * 1e12, rel=0.01), (
            capability
        )


def test_the_user_wins_over_the_trace_which_wins_over_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = TpuJob(peak_flops_per_s=0, peak_bytes_per_s=0)
    from_table = hardware(tpu(silent))
    assert (from_table.peak_flops_per_s, from_table.peak_hbm_bytes_per_s) == (197e12, 819e9)
    assert from_table.peak_source.startswith("data sheet https://cloud.google.com/")
    own = tmp_path / "peaks.json"
    own.write_text(json.dumps({"tpu v5 lite": {"flops_per_s": 150e12}}))
    monkeypatch.setenv(PEAKS_VARIABLE, str(own))
    from_user = hardware(tpu(silent))
    assert (from_user.peak_flops_per_s, from_user.peak_hbm_bytes_per_s) == (150e12, 819e9)
    assert from_user.peak_source.startswith(f"compute: {own}; memory: data sheet https://")
    over_trace = hardware(tpu(TpuJob(peak_flops_per_s=160e12)))
    assert (over_trace.peak_flops_per_s, over_trace.peak_sources) == (150e12, (str(own), "the trace"))
    monkeypatch.delenv(PEAKS_VARIABLE)
    stated = hardware(tpu(TpuJob(peak_flops_per_s=160e12)))
    assert (stated.peak_flops_per_s, stated.peak_source) == (160e12, "the trace")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"x": 1}',
        '{"x": {"flops": 1}}',
        '{"x": {"flops_per_s": "fast"}}',
        '{"x": {"flops_per_s": -1}}',
    ],
)
def test_a_bad_file_of_peaks_is_told_of_and_not_used(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "peaks.json"
    own.write_text(text)
    monkeypatch.setenv(PEAKS_VARIABLE, str(own))
    assert peaks.user_peaks("x") is None
    notices = summary(tpu(TpuJob())).notices
    assert [notice.severity for notice in notices] == ["warning"]
    assert str(own) in notices[0].message
    monkeypatch.setenv(PEAKS_VARIABLE, str(tmp_path / "missing.json"))
    assert "missing.json" in peaks.problem()


def test_the_slowest_host_is_named_with_its_own_times() -> None:
    parts = [summary(native(data)) for data in tpu_hosts(TpuJob(parts=MIXED), (1.0, 1.5, 1.2)).values()]
    named = [replace(part, facts=replace(part.facts, host=f"worker-{i}")) for i, part in enumerate(parts)]
    found = host_steps(
        named, common_steps([part.steps for part in parts], [part.facts.start_ns for part in parts])
    )
    assert [host.host for host in found] == ["worker-1", "worker-2", "worker-0"]
    assert [host.step_ps / TpuJob().step_ps for host in found] == pytest.approx([1.5, 1.2, 1.0])
    assert all(
        host.input_fraction == pytest.approx(0.2) and host.idle_fraction == pytest.approx(0.12)
        for host in found
    )
    assert slowest_host(found).startswith(
        "`worker-1` is the slowest of 3 hosts: its steps take 1.50 ms on average, 50.0% longer"
    )
    assert slowest_host(found[:1]) == ""


def test_a_coordinator_without_accelerators_does_not_count() -> None:
    worker = steps(tpu(TpuJob(parts=MIXED)))
    coordinator = steps(
        drawing("main  [train     ] [train     ]\nmain   [x] [y]      [z]", {"train": [{"_r": 1}, {"_r": 1}]})
    )
    assert len(coordinator)
    found = common_steps([coordinator, worker], [0, 0])
    assert found.steps.duration_ps.tolist() == worker.duration_ps.tolist()
    assert found.n_without == 0
    assert [rows.stop - rows.start for rows in found.rows] == [0, len(worker)]
