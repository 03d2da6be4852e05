"""Where nothing is compiled, every payload and the command line say so, and what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof import native
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.payload import Payload
from tests.golden_files import demo_runs
from tests.ingest.hlo_protos import small_proto
from tests.ingest.xspaces import small_xspace

ROOT = Path(__file__).resolve().parents[2]
WORDS = "The decoder is not compiled"


def warnings(payload: Payload) -> list[str]:
    """What the payload says of the decoder."""
    return [f"{one.message} {one.remedy}" for one in payload.diagnostics if WORDS in one.message]


def payloads() -> list[Payload]:
    """Of every tool that has something to show of a demo run."""
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    return [tool.run(session, None, {}) for tool in all_tools() if tool.availability(session)]


def test_every_payload_says_that_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPUPROF_PLAIN", raising=False)
    monkeypatch.setattr(native, "IS_COMPILED", False)
    all_payloads = payloads()
    assert len(all_payloads) > 5
    for payload in all_payloads:
        (text,) = warnings(payload)
        assert "pip install --force-reinstall" in text
        assert payload.diagnostics[0].severity == "warning"


def test_a_run_of_programs_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jit_f(7).hlo_proto.pb").write_bytes(small_proto())
    monkeypatch.setattr(native, "IS_COMPILED", False)
    assert len(warnings(get_tool("memory_viewer").run(Session(str(tmp_path), cache=False), None, {}))) == 1


def test_nothing_is_said_where_the_decoder_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "IS_COMPILED", True)
    assert [text for payload in payloads() for text in warnings(payload)] == []


def command(run: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`tpuprof`, reading with the plain decoder."""
    environment = {**os.environ, "TPUPROF_PLAIN": "1", "TPUPROF_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "tb_tpuprof.cli", *arguments, str(run)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_the_command_line_says_so_on_one_line(tmp_path: Path) -> None:
    run = tmp_path / "logs" / "plugins" / "profile" / "r"
    run.mkdir(parents=True)
    (run / "h.xplane.pb").write_bytes(small_xspace())
    shown = command(run, tmp_path / "cache", "show", "framework_op_stats", "--format", "json")
    (line,) = shown.stderr.splitlines()
    assert line.startswith(f"tpuprof: {WORDS}")
    assert "Unset the environment variable TPUPROF_PLAIN" in line
    (diagnostic,) = [one for one in json.loads(shown.stdout)["diagnostics"] if WORDS in one["message"]]
    assert (diagnostic["severity"], diagnostic["remedy"]) == ("warning", line.partition("suffer most. ")[2])
    for name in ("tools", "why"):
        assert command(run, tmp_path / "cache", name).stderr.splitlines() == [line]
    assert command(tmp_path / "logs", tmp_path / "cache", "runs").stderr == ""
