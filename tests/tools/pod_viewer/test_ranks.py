"""The pod viewer on three unlike ranks of PyTorch: collectives by kind, group and size, waiting, bandwidths,
names of ranks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import PodHost, pod_host
from tb_tpuprof.analysis.pod.parts import Part, parts_of_classes
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.kineto_ranks import GENERIC, SEND_RECV, STEP_US, Comm, rank_file, stated
from tests.payload_columns import table

US = 1_000_000
N_STEPS = 3
ALL_TO_ALL = (3_000_000, 6_000_000, 1_500_000)  # elements that the ranks put in: the split is uneven


def shown(folder: Path, files: dict[str, Any], hosts: list[str] | None = None, **params: object) -> Payload:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    for name, content in files.items():
        (run / f"{name}.pt.trace.json").write_text(json.dumps(content))
    return TOOL.run(Session(str(run), cache=False), hosts, params)


def job(with_sizes: bool = True, late_us: tuple[float, float, float] = (0, 200, 60)) -> dict[str, Any]:
    """Rank r arrives `late_us[r]` later at an all-to-all of 100 µs among all; then ranks 0 and 2 reduce, 50
    and 80 µs.
    """
    files = {}
    for rank, late in enumerate(late_us):
        n = ALL_TO_ALL[rank]
        sizes = stated("all_to_allv", n, 3_500_000, about="ep") if with_sizes else {}
        around = ("nccl:all_to_all", {"Input Dims": [[n]], "Input type": ["c10::BFloat16"]})
        step: list[Comm | tuple[float, float]] = [
            (100, 100 + late),
            Comm(200 + late, 100 + max(late_us) - late, SEND_RECV, sizes, None if with_sizes else {}, around),
        ]
        if rank != 1:
            reduce = stated("allreduce", 2_000_000, 2_000_000, "Float", "7", "[0, 2]") if with_sizes else {}
            length = 50.0 if rank == 0 else 80.0
            step.append(Comm(900 - length, length, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", reduce))
        files[f"worker{rank}"] = rank_file(rank, [step] * N_STEPS)
    return files


def test_collectives_have_kind_group_bytes_waiting_and_bandwidth(tmp_path: Path) -> None:
    rows = table(shown(tmp_path, job()), "collectives")
    assert rows["op"] == ["all-to-all #1", "all-reduce #1"]
    assert rows["process_group"] == ["ep", "7"]
    assert rows["groups"] == ["{0,1,2}", "{0,2}"]
    assert (rows["group_size"], rows["n_per_step"]) == ([3, 2], [1, 1])
    assert rows["dtype"] == ["BFloat16", "Float"]
    # Rank 1 comes last and takes 100 µs; the others wait for 200 and 140 µs. Of the reducing ones the faster
    # takes 50 µs.
    assert rows["transfer_ps"] == [100 * US, 50 * US]
    assert rows["wait_ps"] == [pytest.approx((200 + 0 + 140) / 3 * US), pytest.approx(15 * US)]
    size = 6_000_000 * 2, 2_000_000 * 4
    assert rows["size_bytes"] == list(size)
    algorithm = size[0] / 100e-6, size[1] / 50e-6
    assert rows["bytes_per_s"] == [pytest.approx(rate) for rate in algorithm]
    assert rows["bus_bytes_per_s"] == [
        pytest.approx(algorithm[0] * 2 / 3),
        pytest.approx(algorithm[1]),
    ]  # 2 (n - 1) / n of two is 1
    assert rows["remark"] == [None, None]
    assert set(rows["groups_from"]) == {"the file's process groups"}


def test_ranks_are_called_by_their_numbers_and_waiting_is_told_from_transferring(tmp_path: Path) -> None:
    payload = shown(tmp_path, job())
    cores = table(payload, "cores")
    assert cores["core"] == ["rank 0", "rank 1", "rank 2"]
    assert cores["host"] == ["worker0", "worker1", "worker2"]
    assert cores["device"] == [0, 1, 2]
    assert cores["collective_wait_ps"] == [
        200 * US,
        0,
        170 * US,
    ]  # as 140 in the all-to-all and 30 in the all-reduce
    assert cores["collective_ps"] == [150 * US, 100 * US, 150 * US]
    assert payload.scalars["n_cores"].value == 3
    assert payload.scalars["n_chips"].title == "GPUs present"
    assert payload.verdict
    assert "`rank 1` takes longest" in payload.verdict.text


def test_sizes_and_groups_that_no_file_states_are_unknown_with_the_reason(tmp_path: Path) -> None:
    payload = shown(tmp_path, job(with_sizes=False))
    rows = table(payload, "collectives")
    assert rows["kind"] == ["all-to-all", "all-reduce"]
    assert str(rows["size_bytes"]) == "[12000000.0, nan]"
    assert rows["groups_from"] == ["nothing: all cores count as one group"] * 2
    assert str(rows["bus_bytes_per_s"]) == "[nan, nan]"
    assert rows["remark"] == [
        "bus bandwidth unknown: the trace does not state the group",
        "bandwidth unknown: the trace does not state the size",
    ]
    assert "PyTorch 2.3" in payload.diagnostics[-1].remedy


def test_one_rank_alone_cannot_tell_waiting_and_its_bandwidth_is_a_lower_bound(tmp_path: Path) -> None:
    payload = shown(tmp_path, job(), ["worker0"])
    rows = table(payload, "collectives")
    assert str(rows["wait_ps"]) == "[nan, nan]"
    assert rows["remark"] == [
        f"waiting unknown, bandwidth is a lower bound: 1 of {n} participants captured" for n in (3, 2)
    ]
    assert payload.scalars["wait_fraction"].value is None
    assert "collective_wait_ps" not in table(payload, "cores")
    assert table(payload, "parts")["category"][1] == "Collectives"
    assert payload.verdict
    assert payload.verdict.text.endswith("Only one rank was profiled, so there is nothing to compare.")
    assert "includes waiting for the others" in " ".join(payload.verdict.details)


def test_two_of_three_ranks_bound_the_bandwidth(tmp_path: Path) -> None:
    rows = table(shown(tmp_path, job(), ["worker0", "worker2"]), "collectives")
    row = rows["kind"].index("all-to-all")
    assert rows["remark"][row] == "bandwidth is a lower bound: 2 of 3 participants captured"
    assert rows["wait_ps"][row] == pytest.approx(60 / 2 * US)


def test_alike_collectives_of_a_step_are_one_row_told_by_their_places(tmp_path: Path) -> None:
    files = {}
    for rank, length in enumerate((30.0, 40.0, 70.0)):
        gather = stated("_allgather_base", 1000, 3000, "Float", about="fsdp")
        fsdp = stated("_allgather_base", 2000, 6000, "Float", about="fsdp")
        comms: list[Comm | tuple[float, float]] = [
            Comm(100 * i, length, GENERIC, fsdp if i == 2 else gather) for i in range(1, 8)
        ]
        files[f"worker{rank}"] = rank_file(rank, [comms] * N_STEPS)
    rows = table(shown(tmp_path, files), "collectives")
    assert rows["op"] == ["all-gather #1, #3, #4, #5 and 2 more", "all-gather #2"]
    assert rows["n_per_step"] == [6, 1]
    assert rows["transfer_ps"] == [6 * 30 * US, 30 * US]
    assert rows["wait_ps"] == [
        pytest.approx(6 * (0 + 10 + 40) / 3 * US),
        pytest.approx((0 + 10 + 40) / 3 * US),
    ]
    assert rows["size_bytes"] == [12_000, 24_000]  # what each rank gets out
    assert rows["bytes_per_s"] == [pytest.approx(12_000 / 30e-6), pytest.approx(24_000 / 30e-6)]


def test_sends_that_name_no_receiver_are_listed_without_waiting(tmp_path: Path) -> None:
    files = {f"worker{rank}": rank_file(rank, [[Comm(100, 50 + 30 * rank)]] * N_STEPS) for rank in range(3)}
    payload = shown(tmp_path, files)
    rows = table(payload, "collectives")
    assert (rows["kind"], rows["groups_from"]) == (
        ["send-receive"],
        ["unknown: sends do not name their receivers"],
    )
    assert str(rows["wait_ps"]) == "[nan]"
    assert table(payload, "cores")["collective_ps"] == [50 * US, 80 * US, 110 * US]


def test_without_steps_the_whole_capture_is_shown(tmp_path: Path) -> None:
    files = job()
    for content in files.values():
        content["traceEvents"] = [
            event for event in content["traceEvents"] if not event["name"].startswith("ProfilerStep")
        ]
    payload = shown(tmp_path, files)
    assert payload.scalars["job_step_ps"].title == "Whole capture"
    assert payload.scalars["job_step_ps"].value == pytest.approx((N_STEPS * STEP_US - 3) * US)
    assert payload.scalars["n_steps"].value == 0
    assert "steps" not in payload.tables
    rows = table(payload, "collectives")
    assert (rows["kind"], rows["n_per_step"]) == (["all-to-all", "all-reduce"], [N_STEPS, N_STEPS])
    assert rows["transfer_ps"] == [N_STEPS * 100 * US, N_STEPS * 50 * US]


def test_captures_at_other_times_are_left_out_not_averaged(tmp_path: Path) -> None:
    """Two captures of 148 days apart, and a third an hour later: only those that overlap are one pod."""
    day_us = 86_400e6
    files = job()
    files["worker0_later"] = rank_file(0, [[(100, 500)]] * N_STEPS, start_us=148 * day_us)
    files["worker1_later"] = rank_file(1, [[(100, 700)]] * N_STEPS, start_us=3600e6)
    payload = shown(tmp_path, files)
    assert table(payload, "cores")["host"] == ["worker0", "worker1", "worker2"]
    (message,) = (one.message for one in payload.diagnostics if "another time" in one.message)
    assert message.startswith("2 of 5 hosts were captured at another time and left out: ")
    assert "worker0_later (148 days later)" in message
    assert "worker1_later (60.0 min later)" in message
    assert message.endswith("Captures that do not overlap in time are neither aligned nor averaged.")


def test_a_host_whose_peers_were_captured_at_other_times_is_shown_alone(tmp_path: Path) -> None:
    """Steps of equal numbers, half a year apart, are no reason to move clocks or to average."""
    day_us = 86_400e6
    files = {
        f"worker{i}": rank_file(i, [[(100, 300 + 100 * i)]] * 5, start_us=148 * i * day_us) for i in range(3)
    }
    payload = shown(tmp_path, files)
    assert table(payload, "cores")["host"] == ["worker0"]
    assert payload.scalars["job_step_ps"].value == STEP_US * US
    assert "n_steps" not in payload.scalars
    assert payload.scalars["n_shown_steps"].value == 5
    assert [one.message.split(":")[0] for one in payload.diagnostics] == [
        "2 of 3 hosts were captured at another time and left out"
    ]
    assert payload.verdict
    assert payload.verdict.text.endswith(
        "`rank 0` is shown alone, because no other host was captured at the same time."
    )


def test_a_rank_s_parts_are_the_overview_s_with_its_data_loader_and_what_runs_late(tmp_path: Path) -> None:
    """Three unlike ranks: one waits for its loader, one computes beyond the step that launched it, one does
    neither.
    """
    files = {
        f"worker{rank}": rank_file(
            rank,
            [[(100, 300 + 50 * rank)], [(200, 100)], [(500, 450 + (200 if rank == 1 else 0))], [(300, 100)]],
        )
        for rank in range(3)
    }
    where = {"pid": 100, "tid": 7}
    fetch = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        **where,
    }
    files["worker0"]["traceEvents"] += [
        {**fetch, "ts": STEP_US * step + 500, "dur": 90 + 10 * step} for step in range(4)
    ]
    shown(tmp_path, files)
    session = Session(str(tmp_path / "run"), cache=False)
    inputs = []
    for host in session.hosts:
        host_steps, parts = session.get(steps, host), session.get(pod_host, host)
        np.testing.assert_array_equal(parts.part_ps[0], parts_of_classes(host_steps.class_ps))
        np.testing.assert_array_equal(parts.total_ps[0], host_steps.duration_ps)
        np.testing.assert_array_equal(
            parts.all_idle_ps, parts.total_ps[0] - parts.part_ps[0, :, Part.COMPUTE] - _fetched(parts)
        )
        inputs.append(parts.part_ps[0, :, Part.INPUT].tolist())
    assert inputs == [
        [90 * US, 100 * US, 0, 120 * US],
        [0] * 4,
        [0] * 4,
    ]  # in the third step the loader works behind a kernel


def _fetched(parts: PodHost) -> Any:
    return parts.part_ps[0, :, Part.INPUT]
