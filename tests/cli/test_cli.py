"""The command line: what it prints, and the exit code of each kind of failure."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof import __version__
from tb_tpuprof.cli import main
from tb_tpuprof.native import IS_COMPILED
from tests.ingest.xspaces import small_xspace


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "plugins" / "profile" / "r"
    folder.mkdir(parents=True)
    (folder / "h.xplane.pb").write_bytes(small_xspace())
    return folder


def test_version() -> None:
    result = subprocess.run([sys.executable, "-m", "tb_tpuprof.cli", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith(f"tpuprof {__version__}")
    assert ("without the compiled decoder" in result.stdout) is not IS_COMPILED


def test_runs(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(run_dir.parents[2])]) == 0
    assert "r  " in capsys.readouterr().out
    assert main(["runs", str(run_dir.parents[2]), "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["hosts"] == ["h"]
    assert run["path"] == str(run_dir)
    assert main(["runs", str(run_dir / "nothing")]) == 0
    assert "No profile runs" in capsys.readouterr().out


def test_tools(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", str(run_dir)]) == 0
    out = capsys.readouterr().out
    assert "overview_page" in out
    assert "hosts: h" in out


def test_show_in_each_format(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "framework_op_stats", str(run_dir)]) == 0
    assert "MatMul" in capsys.readouterr().out
    assert main(["show", "framework_op_stats", str(run_dir), "--format", "csv", "--no-cache"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    matmul = next(row for row in rows if row["operation"] == "MatMul")
    assert (matmul["n_occurrences"], matmul["total_time_ps"]) == ("40", "20000")
    assert main(["show", "trace_viewer", str(run_dir), "--param", "width_px=10", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scalars"]["n_events_in_window"]["value"] == 80


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "nonsense", "{run}"], 4, "no tool"),
        (["show", "overview_page", "{run}/none"], 4, "not a folder"),
        (["show", "overview_page", "{run}", "--host", "x"], 4, "no host"),
        (["show", "trace_viewer", "{run}", "--param", "width_px=x"], 2, "width_px"),
        (["show", "trace_viewer", "{run}", "--param", "width_px"], 2, "name=value"),
        (["show", "overview_page", "{logs}"], 5, "nothing to show"),
    ],
)
def test_failures_say_why_and_have_their_exit_code(
    run_dir: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    filled = [text.format(run=run_dir, logs=run_dir.parent) for text in arguments]
    assert main(filled) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert not captured.out


def test_a_damaged_trace_is_exit_code_3(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "h.xplane.pb").write_bytes(small_xspace()[:-9])
    assert main(["show", "overview_page", str(run_dir)]) == 3
    assert "h.xplane.pb" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["show"])
    assert caught.value.code == 2
