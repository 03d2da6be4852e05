"""Values that begin with a dash on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof.cli import main
from tests.ingest.xspaces import small_xspace

HOSTS = ("-name", "--name", "-hello", "-output", "--formatted", "-1")


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "plugins" / "profile" / "-run"
    folder.mkdir(parents=True)
    for host in (*HOSTS, "h"):
        (folder / f"{host}.xplane.pb").write_bytes(small_xspace())
    return folder


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and what was written to stderr."""
    try:
        code = main(arguments)
    except SystemExit as ending:
        code = int(ending.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("command", [["show", "framework_op_stats"], ["why"]], ids=" ".join)
def test_hosts_that_begin_with_a_dash(
    host: str, command: list[str], run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--host", host], [f"--host={host}"], ["--host", "h", "--host", host]):
        assert main([*command, str(run_dir), *arguments]) == 0
        assert main([*command, *arguments, str(run_dir)]) == 0
    capsys.readouterr()
    code, errors = ended([*command, str(run_dir), "--host", f"{host}-none"], capsys)
    assert code == 4
    assert f"no host {host}-none" in errors.replace("'", "")


def test_arguments_of_the_process_itself(run_dir: Path) -> None:
    command = [sys.executable, "-m", "tb_tpuprof", "show", "framework_op_stats", str(run_dir)]
    result = subprocess.run([*command, "--host", "-name"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert "MatMul" in result.stdout


def test_a_name_of_an_option_is_no_value(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise a forgotten value would take the next option."""
    code, errors = ended(["show", "overview_page", str(run_dir), "--host", "--format", "json"], capsys)
    assert code == 2
    assert "argument --host: expected one argument" in errors
    assert "--host=-value" in errors
    code, errors = ended(["show", "overview_page", str(run_dir), "-o", "--format=json"], capsys)
    assert code == 2
    assert "--output=-value" in errors


def test_files_and_other_names(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", "overview_page", str(run_dir), "--host", "h", "-o", "-out.txt"]) == 0
    assert (tmp_path / "-out.txt").read_text()
    capture = ["capture", "--service_addr", "localhost:1", "--logdir", "-logs", "--run_name", "-run"]
    code, errors = ended(capture, capsys)
    assert code == 2
    assert "run_name" in errors
    assert "starting with a letter" in errors
    code, errors = ended(["show", "overview_page", str(run_dir), "--param", "-x"], capsys)
    assert code == 2
    assert "name=value" in errors


def test_a_folder_that_begins_with_a_dash(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run_dir.parent)
    code, errors = ended(["show", "framework_op_stats", "-run", "--host", "h"], capsys)
    assert code == 2
    assert "./-run" in errors
    assert main(["show", "framework_op_stats", "./-run", "--host", "h"]) == 0
    assert main(["show", "framework_op_stats", "--host", "h", "--", "-run"]) == 0
