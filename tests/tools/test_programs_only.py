"""Runs that hold the HLO of programs and no trace: two tools work, the others say why they cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.ingest.storage.run_info import MEMORY
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.program_choice import program_values
from tests.ingest.hlo_protos import small_proto
from tests.tools.test_hlo_stats import cells


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    folder.mkdir(parents=True)
    (folder / "jit_f(7).hlo_proto.pb").write_bytes(small_proto())
    (folder / "jit_g(8).hlo_proto.pb").write_bytes(small_proto())
    (folder / "NO_MODULE.hlo_proto.pb").write_bytes(b"")
    return folder


def test_the_run_is_listed(run: Path) -> None:
    (info,) = find_runs(str(run.parents[2]))
    assert (info.state, info.name) == ("hlo", "2026_01_01_00_00_00")
    assert info.files[0].size_bytes == 2 * len(small_proto())
    assert "memory viewer" in info.message


def test_markers_alone_are_no_programs(run: Path) -> None:
    for file in run.glob("jit_*"):
        file.unlink()
    (run / "jit_h(9).hlo_proto.pb").write_bytes(b"")
    assert [found.state for found in find_runs(str(run.parents[2]))] == ["unsupported"]


@pytest.mark.parametrize("cache", [False, True])
def test_programs_have_their_memory_and_their_graph(
    run: Path, cache: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        session = Session(str(run), cache=cache)
        memory = get_tool("memory_viewer").run(session, None, {"program": "jit_g(8)"})
        assert memory.scalars["peak_bytes"].value == 512 + 128  # the result shares the memory of the dot
        assert [d.severity for d in memory.diagnostics if "no trace" in d.message] == ["info"]
        graph = get_tool("graph_viewer").run(session, None, {"program": "jit_f(7)", "op": "dot.3"})
        assert {"dot.3", "fusion.4"} <= set(cells(graph, "nodes")["name"])
        assert graph.scalars["op_time_ps"].value is None
        assert sorted(cells(graph, "programs")["program"]) == ["jit_f(7)", "jit_g(8)"]  # type: ignore[type-var]


def test_other_tools_say_why_they_cannot(run: Path) -> None:
    session = Session(str(run), cache=False)
    working = {tool.name for tool in all_tools() if tool.availability(session)}
    assert working == {"memory_viewer", "graph_viewer"}
    for tool in all_tools():
        if tool.name not in working and (tool.needs_trace or tool.only_for == MEMORY):
            with pytest.raises(ToolUnavailable, match=r"needs a trace|contains no memory snapshot"):
                tool.run(session, None, {})


def test_a_trace_that_arrives_is_opened(run: Path) -> None:
    (run / "worker-0.xplane.pb").write_bytes(b"\x22\x00")
    (info,) = find_runs(str(run.parents[2]))
    assert (info.state, [file.host for file in info.files]) == ("ok", ["worker-0"])


def test_ids_of_programs_are_unsigned() -> None:
    """The file's integers are signed; what people and XLA's dumps show is not."""
    programs: Any = [SimpleNamespace(title=f"f{i}", program_id=i, size_bytes=7) for i in (-1, 0, 2**63 - 1)]
    assert program_values(programs)["program_id"] == [str(2**64 - 1), "0", str(2**63 - 1)]
