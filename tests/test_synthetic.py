"""Synthetic jobs have three unlike parts of everything, and pages say of them what a count by hand says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.input_pipeline_analyzer import view as input_pipeline_analyzer
from tb_tpuprof.tools.kernel_stats import view as kernel_stats
from tb_tpuprof.tools.memory_profile import view as memory_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tests.conformance.live_devices import table
from tests.synthetic import PS_PER_US, step_spans, write_run
from tests.synthetic_devices import KERNELS
from tests.synthetic_pod import busy_us, times_us
from tests.synthetic_unlike import (
    DEVICE_SCALE,
    GPU,
    HOST_SCALE,
    PARTS,
    POD,
    STEP_SCALE,
    TPU,
    gpu_run,
    kernels_run,
    memory_run,
    tpu_run,
)

MS = 1e9
KIB = 1024


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Session]:
    runs = {"tpu": tpu_run, "gpu": gpu_run, "kernels": kernels_run, "memory": memory_run}
    sessions: dict[str, Session] = {}

    def session(name: str) -> Session:
        if name not in sessions:
            sessions[name] = Session(
                str(write_run(tmp_path_factory.mktemp("synthetic") / name, runs[name]())), cache=False
            )
        return sessions[name]

    return session


def spaces(run: dict[str, bytes]) -> list[Any]:
    found = []
    for data in run.values():
        space = xspace_class()()
        space.ParseFromString(data)
        found.append(space)
    return found


def busy(plane: Any) -> int:
    return sum(event.duration_ps for line in plane.lines for event in line.events)


def unlike(values: list[Any], n: int = 3) -> bool:
    return len(values) >= n and len(set(values)) == len(values)


@pytest.mark.parametrize("run", [tpu_run, gpu_run, kernels_run], ids=lambda run: run.__name__)
def test_hosts_devices_steps_and_threads_are_three_and_unlike(run: Callable[[], dict[str, bytes]]) -> None:
    hosts = spaces(run())
    assert unlike([sum(busy(plane) for plane in space.planes) for space in hosts])
    for space in hosts:
        devices = [plane for plane in space.planes if plane.name.startswith(b"/device:")]
        assert unlike([busy(plane) for plane in devices])
        if run is kernels_run:
            continue
        (cpu,) = [plane for plane in space.planes if plane.name == b"/host:CPU"]
        assert unlike([sum(event.duration_ps for event in line.events) for line in cpu.lines])
        names = {entry.key: entry.value.name for entry in cpu.event_metadata}
        marks = [
            event.duration_ps
            for line in cpu.lines
            for event in line.events
            if names[event.metadata_id] == b"train"
        ]
        assert unlike(marks, 4)
        assert len({frozenset(event.metadata_id for event in line.events) for line in cpu.lines}) == 3


def test_memories_and_streams_are_three_and_unlike() -> None:
    for space in spaces(gpu_run()):
        for plane in space.planes:
            if plane.name.startswith(b"/device:"):
                assert unlike([sum(event.duration_ps for event in line.events) for line in plane.lines])
    peaks = []
    for space in spaces(memory_run()):
        (plane,) = space.planes
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        of_memory: dict[bytes, int] = {}
        for line in plane.lines:
            for event in line.events:
                stats = {names[stat.metadata_id]: stat for stat in event.stats}
                if b"allocator_name" in stats:
                    name = stats[b"allocator_name"].str_value
                    of_memory[name] = max(of_memory.get(name, 0), stats[b"bytes_allocated"].int64_value)
        assert unlike(list(of_memory.values()))
        peaks += of_memory.values()
    assert len(set(peaks)) >= 7


def test_parts_of_a_pod_are_three_and_unlike() -> None:
    per_host = POD.n_cores // POD.n_hosts
    stall, infeed, compute = busy_us(POD)
    spent = stall + infeed + compute
    assert unlike([spent[host * per_host : (host + 1) * per_host].sum() for host in range(POD.n_hosts)])
    assert len(np.unique(spent.sum(axis=1))) >= POD.n_cores - 2
    assert unlike(times_us(POD).length.tolist())
    assert len(POD.groups) == 3


def test_step_times_and_parts_of_unlike_tpus_are_those_by_hand(opened: Callable[[str], Session]) -> None:
    payload = overview_page.TOOL.run(opened("tpu"), None, {})
    host = sum(HOST_SCALE) / 3  # 1.3333
    steps = table(payload.tables["steps"])
    assert [step["step_time_ps"] for step in steps] == pytest.approx(
        [host * scale * MS for scale in STEP_SCALE]
    )
    assert payload.scalars["step_time_avg_ps"].value == pytest.approx(host * 1.1 * MS)
    for step, scale in zip(steps, STEP_SCALE, strict=True):
        length = host * scale * MS
        assert step["input_ps"] == pytest.approx(
            0.14 * length
        )  # of the core that waits longest: the others wait for it
        assert step["device_compute_ps"] == pytest.approx(0.6 * (1.0 + 0.8 + 0.5) / 3 * length)
        assert step["device_collectives_ps"] == pytest.approx(PARTS.collective * length)
        assert step["output_ps"] == pytest.approx(PARTS.outfeed * length)
        assert step["other_ps"] == pytest.approx((1 - 0.14 - 0.46 - 0.05 - 0.03) * length)
    fraction = input_pipeline_analyzer.TOOL.run(opened("tpu"), None, {}).scalars["input_fraction"].value
    assert fraction == pytest.approx(0.14)


def test_operations_of_unlike_tpus_are_summed_by_hand(opened: Callable[[str], Session]) -> None:
    rows = {
        row["op"].partition(".")[0]: row
        for row in table(hlo_stats.TOOL.run(opened("tpu"), None, {}).tables["ops"])
    }
    unit = sum(HOST_SCALE) * sum(STEP_SCALE) * MS  # 4.0 hosts' ms of 4.4 steps
    shares = {
        "fusion": 0.6 * sum(DEVICE_SCALE),
        "infeed": 0.10 + 0.12 + 0.14,
        "all-reduce": 0.05 * 3,
        "outfeed": 0.03 * 3,
    }
    for name, share in shares.items():
        assert rows[name]["n_occurrences"] == 3 * 3 * 4
        assert rows[name]["total_time_ps"] == pytest.approx(share * unit)
    seconds = rows["fusion"]["total_time_ps"] / 1e12
    assert rows["fusion"]["flop_rate_flops_per_s"] == pytest.approx(TPU.flops * 36 / seconds)
    assert rows["fusion"]["hbm_bytes_per_s"] == pytest.approx(TPU.n_bytes * 36 / seconds)


@pytest.mark.parametrize("name", ["tpu", "gpu"])
def test_threads_of_unlike_hosts_are_summed_by_hand(opened: Callable[[str], Session], name: str) -> None:
    listed = table(framework_op_stats.TOOL.run(opened(name), None, {"idle": True}).tables["ops"])
    rows = {row["operation"]: row for row in listed if row["host_or_device"] == "Host"}
    unit = sum(HOST_SCALE) * sum(STEP_SCALE) * MS
    for i in range(2):
        assert rows[f"work_{i}"]["n_occurrences"] == 3 * 4
        assert rows[f"work_{i}"]["total_time_ps"] == pytest.approx(0.25 / (i + 3) * unit)


def test_kernels_of_unlike_gpus_are_summed_by_hand(opened: Callable[[str], Session]) -> None:
    rows = {
        (row["kernel"], row["op"]): row
        for row in table(kernel_stats.TOOL.run(opened("kernels"), None, {}).tables["kernels"])
    }
    assert len(rows) == len(KERNELS)
    factors = [host * gpu for host in (1, 3, 5) for gpu in (1, 2, 4)]  # 63 in all
    for kernel in KERNELS:
        row = next(
            row
            for (name, op), row in rows.items()
            if name == kernel.name and op.startswith(kernel.op.partition(":")[0])
        )
        of_one = kernel.duration_us * sum(range(1, kernel.n + 1))
        assert row["n_occurrences"] == 9 * kernel.n
        assert row["total_ps"] == of_one * sum(factors) * PS_PER_US
        assert row["min_ps"] == kernel.duration_us * PS_PER_US
        assert row["max_ps"] == kernel.duration_us * kernel.n * 20 * PS_PER_US


def test_kernels_of_unlike_steps_and_streams_are_summed_by_hand(opened: Callable[[str], Session]) -> None:
    rows = {
        row["kernel"]: row for row in table(kernel_stats.TOOL.run(opened("gpu"), None, {}).tables["kernels"])
    }
    unit = sum(HOST_SCALE) * sum(STEP_SCALE) * MS
    assert rows["sm90_gemm_f32"]["total_ps"] == pytest.approx(0.5 * sum(DEVICE_SCALE) * unit, rel=1e-6)
    assert rows["side_kernel_0"]["total_ps"] == pytest.approx(3 * 0.3 * unit, rel=1e-6)
    assert rows["side_kernel_1"]["total_ps"] == pytest.approx(3 * 0.25 * unit, rel=1e-6)
    assert rows["sm90_gemm_f32"]["max_ps"] == pytest.approx(0.5 * 1.0 * 1.7 * 1.5 * MS, rel=1e-6)


@pytest.mark.parametrize(
    ("host", "memory", "scale"),
    [(host, memory, scale) for host in range(3) for memory, scale in enumerate((1, 2, 5))],
)
def test_peaks_of_unlike_memories_are_those_by_hand(
    opened: Callable[[str], Session], host: int, memory: int, scale: int
) -> None:
    payload = memory_profile.TOOL.run(
        opened("memory"), [f"synthetic-memory-{host}"], {"memory": f"GPU_{memory}_bfc"}
    )
    assert payload.scalars["peak_bytes"].value == (4096 + (3 + host) * 256 * scale) * KIB


def test_steps_lie_behind_one_another() -> None:
    for job in (TPU, GPU):
        spans = step_spans(job)
        assert [start for start, _ in spans[1:]] == [sum(span) for span in spans[:-1]]
        assert [length for _, length in spans] == [round(scale * job.step_ps) for scale in STEP_SCALE]
