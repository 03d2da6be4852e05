"""No command prints a traceback: not at its end, not with a full output, not when it is cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tb_tpuprof.cli.failing import INTERNAL, exit_code_of
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.tools import TOOLS
from tests.synthetic import TpuJob, tpu_hosts, write_run

COMMANDS = [
    ["runs", "{logdir}"],
    ["tools", "{run}"],
    ["why", "{run}"],
    ["query", "{run}", "dur>1us", "--group", "name"],
    ["schema"],
    *(["show", tool.name, "{run}"] for tool in TOOLS),
]
TIMES = 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One host whose columns are worth caching (over 4 MiB)."""
    logdir = tmp_path_factory.mktemp("logs")
    folder = logdir / "plugins" / "profile" / "large"
    job = TpuJob(n_steps=30_000)
    write_run(folder, tpu_hosts(job, (1.0,)))
    (file,) = folder.iterdir()
    assert file.stat().st_size > column_cache.MIN_TRACE_BYTES
    return folder


def started(command: list[str], run: Path, cache: Path, **options: object) -> subprocess.Popen[str]:
    filled = [part.format(run=run, logdir=run.parents[2]) for part in command]
    environment = {**os.environ, "TPUPROF_CACHE_DIR": str(cache)}
    arguments = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(
        [sys.executable, "-m", "tb_tpuprof", *filled],
        env=environment,
        text=True,
        **arguments,  # type: ignore[call-overload]
    )


def check(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors, errors
    assert "Exception" not in errors, errors
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_traceback_while_it_caches(command: list[str], run: Path, tmp_path: Path) -> None:
    """Twenty times with an empty cache, so that each run ends while its columns are being written."""
    for number in range(TIMES):
        check(started(command, run, tmp_path / str(number)))


@pytest.mark.skipif(not IS_COMPILED, reason="only decoded columns are cached")
def test_columns_are_cached_although_the_command_ends(run: Path, tmp_path: Path) -> None:
    """The write finishes, and the next command maps the columns."""
    for _ in range(2):
        check(started(["show", "framework_op_stats", "{run}"], run, tmp_path))
    (file,) = (tmp_path / "columns").iterdir()
    assert file.suffix == ".tpc"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [["runs", "{logdir}"], ["why", "{run}"], ["schema"]], ids=" ".join)
def test_a_full_output_is_one_line(command: list[str], run: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = started(command, run, tmp_path, stdout=full)
        errors = check(process)
    assert process.returncode == 4
    assert errors == "tpuprof: cannot write the output: No space left on device.\n"


def test_ctrl_c_at_any_time_ends_quietly(run: Path, tmp_path: Path) -> None:
    """During imports, decoding and printing."""
    for delay_s in (0.05, 0.12, 0.2, 0.3, 0.45, 0.7):
        process = started(["show", "overview_page", "{run}"], run, tmp_path, start_new_session=True)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if delay_s > 0.1:  # before that, Python itself may still be starting
            assert "Traceback" not in errors, (delay_s, errors)


def test_an_internal_error_is_one_line_unless_details_are_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> int:
        raise ValueError("odd\x1b[31m")

    assert exit_code_of("tpuprof", command) == INTERNAL
    errors = capsys.readouterr().err
    assert errors.startswith("tpuprof: internal error: ValueError: odd")
    assert "\x1b" not in errors
    assert "TPUPROF_DEBUG=1" in errors
    monkeypatch.setenv("TPUPROF_DEBUG", "1")
    with pytest.raises(ValueError, match="odd"):
        exit_code_of("tpuprof", command)
