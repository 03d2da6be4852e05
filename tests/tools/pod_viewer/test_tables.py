"""The tables of the pod viewer for pods whose times are given: three unlike cores in three unlike steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import WHOLE, PodCore
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.pod.process_groups import ProcessGroup
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.pod_viewer.tables import (
    _groups_text,
    collectives_table,
    cores_table,
    host_name,
    measures,
    parts_table,
    process_groups_table,
    steps_table,
    stragglers_table,
    total_title,
)
from tb_tpuprof.tools.pod_viewer.view import TOOL, _scalars
from tests.analysis.pod.test_numbers import collective
from tests.payload_columns import cells
from tests.tools.pod_viewer.test_sentences import MS, pod_of, straggler

UNPLACED = "no place is known"
COMPUTE_MS = np.array([[10, 40, 20], [30, 20, 25], [5, 10, 90]])
INPUT_MS = np.array([[1, 2, 4], [8, 16, 32], [3, 9, 27]])


def unlike(kind: str = "TPU", n_hosts: int = 2) -> Pod:
    """Two cores on the first host, one on the second."""
    pod = pod_of([{}, {}, {}], n_hosts, ("7", "8", "9"), kind)
    part_ps = pod.part_ps.copy()
    part_ps[:, :, Part.COMPUTE], part_ps[:, :, Part.INPUT] = COMPUTE_MS * MS, INPUT_MS * MS
    return replace(pod, part_ps=part_ps, total_ps=part_ps.sum(axis=2))


def whole() -> Pod:
    """A run without steps."""
    pod = unlike()
    part_ps = pod.part_ps[:, :1]
    return replace(pod, step_names=(WHOLE,), part_ps=part_ps, total_ps=part_ps.sum(axis=2))


def ranked(pod: Pod) -> Pod:
    """The same cores, each the process of a rank."""
    cores = tuple(PodCore(core.name, core.ordinal, core.chip, rank=5 - i) for i, core in enumerate(pod.cores))
    return replace(pod, cores=cores)


def column(found: Table, name: str) -> list[object]:
    return next(cells(column) for column in found.columns if column.name == name)


def title_of(found: Table, name: str) -> str:
    return next(column.title for column in found.columns if column.name == name)


def test_a_step_names_the_core_that_takes_longest_in_it() -> None:
    total = (COMPUTE_MS + INPUT_MS) * MS
    found = steps_table(unlike())
    assert column(found, "step") == ["7", "8", "9"]
    assert column(found, "slowest") == ["h0 TPU:1", "h0 TPU:0", "h1 TPU:2"]
    assert column(found, "step_ps") == pytest.approx((total.sum(axis=0) / 3).tolist())
    assert column(found, "max_ps") == column(found, "max_own_ps") == [38 * MS, 42 * MS, 117 * MS]
    assert column(found, "compute_ps") == pytest.approx((COMPUTE_MS.sum(axis=0) * MS / 3).tolist())
    assert found.note == "mean over 3 cores"


@pytest.mark.parametrize("step", [-1, 0, 1, 2])
def test_cores_in_one_step_and_in_all(step: int) -> None:
    found = cores_table(unlike(), UNPLACED, step)
    chosen = slice(None) if step < 0 else slice(step, step + 1)
    compute, total = COMPUTE_MS[:, chosen] * MS, (COMPUTE_MS + INPUT_MS)[:, chosen] * MS
    assert column(found, "core") == ["h0 TPU:0", "h0 TPU:1", "h1 TPU:2"]
    assert column(found, "total_ps") == pytest.approx(total.mean(axis=1).tolist())
    assert column(found, "own_ps") == pytest.approx(total.mean(axis=1).tolist())
    assert column(found, "compute_ps") == pytest.approx(compute.mean(axis=1).tolist())
    of_step = "" if step < 0 else f" in step {7 + step}"
    assert (found.title, found.note) == (f"Cores{of_step}", "mean of all steps" if step < 0 else "")
    assert title_of(found, "total_ps") == "Step time"


def test_a_run_without_steps_is_one_capture() -> None:
    found = cores_table(whole(), UNPLACED, -1)
    assert (found.title, found.note) == ("Cores", "whole capture")
    assert (
        title_of(found, "total_ps") == total_title(whole()) == measures(whole())["total"] == "Whole capture"
    )
    assert total_title(unlike()) == measures(unlike())["total"] == "Step time"
    assert parts_table(whole()).title == "Parts of the capture"
    assert parts_table(unlike()).title == "Parts of the steps"


@pytest.mark.parametrize(
    ("pod", "title", "device"),
    [
        (unlike(), "Core", "Device of program"),
        (unlike("GPU"), "GPU", "Device of program"),
        (unlike("CPU"), "Core", "Device of program"),
        (ranked(unlike("GPU")), "Rank", "Rank"),
    ],
)
def test_what_is_compared_has_a_title(pod: Pod, title: str, device: str) -> None:
    found = cores_table(pod, UNPLACED, -1)
    assert (title_of(found, "core"), title_of(found, "device")) == (title, device)
    assert found.title == f"{title}s"


def test_parts_are_shares_of_the_mean_step() -> None:
    found = parts_table(unlike())
    compute, inputs = float(COMPUTE_MS.mean()), float(INPUT_MS.mean())
    shares = dict(zip(column(found, "column"), column(found, "fraction"), strict=True))
    assert shares == {
        "compute_ps": pytest.approx(compute / (compute + inputs)),
        "input_ps": pytest.approx(inputs / (compute + inputs)),
    }
    empty = replace(unlike(), total_ps=np.zeros((3, 3), np.int64))
    assert np.isfinite(np.array(column(parts_table(empty), "fraction"), np.float64)).all()


def test_a_host_with_one_rank_has_the_rank_as_its_name() -> None:
    pod = unlike("GPU")
    assert [host_name(pod, host) for host in pod.hosts] == ["h0", "h1"]
    assert [host_name(ranked(pod), host) for host in pod.hosts] == ["h0", "rank 3"]


def test_a_straggler_that_is_a_host_is_no_row_of_the_cores() -> None:
    found = stragglers_table(unlike(), [straggler(core=2, host="h1"), straggler(core=-1), straggler(core=0)])
    assert column(found, "straggler") == ["h1 TPU:2", "h0", "h0 TPU:0"]
    assert str(column(found, "core_row")) == "[2.0, nan, 0.0]"


def test_a_remark_of_all_collectives_is_said_once_above_them() -> None:
    half = collective(n_seen=1, wait_ps=0.0)
    assert half.remark != collective().remark
    same = collectives_table(replace(unlike(), collectives=(half, half)))
    mixed = collectives_table(replace(unlike(), collectives=(half, collective())))
    reading = "mean over cores and steps; the fastest participant's time is transfer, the rest is waiting"
    assert same.note == f"{reading}; {half.remark}"
    assert mixed.note == reading


def test_groups_of_devices_are_cut_off_beyond_a_length() -> None:
    groups = ((0, 1), (2, 3), (4, 5))
    assert _groups_text(groups) == "{0,1} {2,3} {4,5}"
    assert _groups_text(groups, most=12) == "{0,1} {2,3} …"
    assert _groups_text(groups, most=18) == "{0,1} {2,3} {4,5}"
    assert _groups_text(()) == "all"


def test_a_group_of_unknown_size_has_no_number_of_ranks() -> None:
    groups = [
        ProcessGroup("a", size=8),
        ProcessGroup("b"),
        ProcessGroup("c", size=0),
        ProcessGroup("d", size=1),
    ]
    assert str(column(process_groups_table(groups), "n_ranks")) == "[8.0, nan, nan, 1.0]"


@pytest.mark.parametrize("step", [-1, 0, 2])
def test_numbers_are_those_of_the_step(step: int) -> None:
    """Nothing runs on the hosts for 3, 6 and 30 of their steps' 30, 60 and 90 ms."""
    pod = replace(
        unlike("GPU"),
        all_idle_ps=np.array([3.0, 6.0, 30.0]) * MS,
        host_step_ps=np.array([30.0, 60.0, 90.0]) * MS,
    )
    shown = _scalars(pod, step)
    total = (COMPUTE_MS + INPUT_MS)[:, slice(None) if step < 0 else slice(step, step + 1)] * MS
    assert shown["step_ps"].value == pytest.approx(total.mean())
    assert shown["all_idle_fraction"].value == pytest.approx({-1: 39 / 180, 0: 3 / 30, 2: 30 / 90}[step])
    base = "mean of all steps" if step < 0 else f"step {7 + step}"
    assert shown["job_step_ps"].note == f"{base}, slowest GPU"
    assert shown["n_cores"].note == "ran something in these steps"


def test_numbers_of_a_capture_without_steps() -> None:
    shown = _scalars(replace(whole(), kind="GPU"), -1)
    assert (shown["n_steps"].value, shown["n_steps"].note) == (0, "none are marked")
    assert shown["job_step_ps"].note == "from the first operation to the last of any GPU"
    assert shown["n_cores"].note == "ran something in the capture"
    assert "step_ps" not in shown
    alone = pod_of([{Part.COMPUTE: 5}], steps=(WHOLE,))
    assert _scalars(alone, -1)["job_step_ps"].note == "from the first operation to the last"
    two = pod_of([{Part.COMPUTE: 5}] * 2, steps=(WHOLE,))
    assert _scalars(two, -1)["job_step_ps"].note == "from the first operation to the last of any core"


def test_one_core_and_no_steps_are_no_tiles() -> None:
    least = {tile.name: tile.least for tile in TOOL.tiles or () if tile.least}
    assert least == {"n_cores": 2, "n_steps": 1}
