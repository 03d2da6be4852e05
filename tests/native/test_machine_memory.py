"""The memory that a process may use: the least of its machine's and its control groups'."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.opening import trace_of_bytes
from tb_tpuprof.native import IS_COMPILED, machine_memory
from tests.ingest.xspaces import small_xspace

GIB = 2**30


def limits(tmp_path: Path, groups: str, files: dict[str, str]) -> list[int]:
    (tmp_path / "cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return machine_memory._group_limits(tmp_path / "cgroup", tmp_path / "fs")


def test_version_2_counts_the_groups_above_too(tmp_path: Path) -> None:
    files = {
        "memory.max": "max\n",
        "pods/memory.max": f"{4 * GIB}\n",
        "pods/job/memory.max": "max\n",
        "pods/job/inner/memory.max": f"{6 * GIB}\n",
        "other/memory.max": "1\n",
    }
    assert sorted(limits(tmp_path, "0::/pods/job/inner\n", files)) == [4 * GIB, 6 * GIB]


def test_version_1_has_a_hierarchy_for_memory(tmp_path: Path) -> None:
    groups = "7:cpu,cpuacct:/a\n5:memory:/docker/x\n"
    files = {"memory/docker/x/memory.limit_in_bytes": f"{3 * GIB}", "a/memory.max": "1"}
    assert limits(tmp_path, groups, files) == [3 * GIB]


@pytest.mark.parametrize("groups", ["", "nonsense", "0::/not/there\n", "::::\n"])
def test_without_limits_there_are_none(tmp_path: Path, groups: str) -> None:
    assert limits(tmp_path, groups, {}) == []


def test_files_that_are_no_numbers_are_no_limits(tmp_path: Path) -> None:
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs" / "memory.max").write_bytes(b"\xff\xfe")
    assert limits(tmp_path, "0::/\n", {}) == []


def test_the_machine_has_some_memory() -> None:
    assert 2**28 < machine_memory.machine_memory() < 2**50


@pytest.mark.parametrize(
    ("memory", "given", "budget"),
    [
        (64 * GIB, "", 16 * GIB),
        (16 * GIB, "", 4 * GIB),
        (GIB // 2, "", GIB // 4),
        (64 * GIB, "100", 100 * 2**20),
        (16 * GIB, "much", 4 * GIB),
    ],
)
def test_the_budget_is_the_users_or_a_quarter(
    monkeypatch: pytest.MonkeyPatch, memory: int, given: str, budget: int
) -> None:
    monkeypatch.setattr(machine_memory, "machine_memory", lambda: memory)
    monkeypatch.setenv("TPUPROF_MEMORY_MB", given)
    assert machine_memory.memory_budget() == budget


@pytest.mark.skipif(not IS_COMPILED, reason="the plain decoder is not for large files")
def test_more_events_than_fit_are_refused_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    n_events = trace_of_bytes(small_xspace(), "h").n_events
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.decoder.max_events", lambda: n_events - 1)
    with pytest.raises(
        TraceFormatError, match=f"{n_events} events, more than fit into this machine's memory"
    ):
        trace_of_bytes(small_xspace(), "h")
