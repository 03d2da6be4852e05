"""`tpuprof capture`: what it saves and prints, its exit codes, its progress, and Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tb_tpuprof.capture import tpu_names
from tb_tpuprof.capture.job import TargetProgress
from tb_tpuprof.capture.messages import PROFILE
from tb_tpuprof.capture.tpu_names import Login
from tb_tpuprof.cli import main
from tb_tpuprof.cli.progress import Progress
from tb_tpuprof.session import Session
from tests.capture.double import reply
from tests.capture.monitor_double import Profiler, Refusal, listening
from tests.capture.tpu_api import PROJECT, TOKEN, ZONE, TpuApi, node, serving
from tests.ingest.xspaces import small_xspace

NOBODY = "127.0.0.1:1"


@pytest.fixture
def server() -> Iterator[Profiler]:
    with listening(Profiler()) as profiler:
        profiler.profile = lambda request: reply(small_xspace())
        yield profiler


def run_dirs(logdir: Path) -> list[Path]:
    """What lies in the folder of runs, hidden and partly written files too."""
    folder = logdir / "plugins" / "profile"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_one_target(server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "capture",
                "--service_addr",
                f"grpc://{server.address}",
                "--logdir",
                str(tmp_path),
                "--duration_ms",
                "5",
            ]
        )
        == 0
    )
    (run,) = run_dirs(tmp_path)
    captured = capsys.readouterr()
    assert captured.out.startswith("Saved 1 profile, ")
    assert f"tpuprof show overview_page {run}\n" in captured.out
    assert f"tensorboard --logdir {tmp_path}\n" in captured.out
    assert "profiling for 0.005 s" in captured.err
    assert "\x1b" not in captured.err
    session = Session(str(run), cache=False)
    assert session.trace(session.hosts[0]).n_events == 80
    assert main(["show", "overview_page", str(run)]) == 0


def test_every_option_reaches_the_server(server: Profiler, tmp_path: Path) -> None:
    options = [
        "--duration_ms=7",
        "--host_tracer_level=3",
        "--device_tracer_level=0",
        "--python_tracer_level=1",
        "--no-include_dataset_ops",
    ]
    more = ["--num_tracing_attempts=1", "--delay_ms=50", "--run_name=mine"]
    assert (
        main(["capture", "--service_addr", server.address, "--logdir", str(tmp_path), *options, *more]) == 0
    )
    ((method, request),) = server.requests
    opts = request.opts
    assert method == PROFILE
    assert (request.duration_ms, opts.duration_ms, opts.host_tracer_level, opts.device_tracer_level) == (
        7,
        7,
        3,
        0,
    )
    assert (opts.python_tracer_level, opts.include_dataset_ops) == (1, False)
    assert opts.start_timestamp_ns > 0
    assert [run.name for run in run_dirs(tmp_path)] == ["mine"]


def test_a_failing_target_loses_no_other(
    server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--service_addr", f"{server.address},{NOBODY}", "--num_tracing_attempts", "1"]
    assert main(["capture", *both, "--logdir", str(tmp_path)]) == 8
    out = capsys.readouterr().out
    assert out.startswith("Saved 1 of 2 profiles")
    assert f"  {NOBODY} refused the connection." in out
    (run,) = run_dirs(tmp_path)
    assert len(Session(str(run), cache=False).hosts) == 1


def test_nothing_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["capture", "--service_addr", NOBODY, "--logdir", str(tmp_path), "--num_tracing_attempts", "1"])
        == 6
    )
    out = capsys.readouterr().out
    assert out.startswith("Nothing was saved.")
    assert "start_server" in out
    assert "tensorboard" not in out
    assert not run_dirs(tmp_path)


def test_hostile_words_of_a_server_do_not_steer_the_terminal(
    server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_request: Any) -> bytes:
        raise Refusal(grpc.StatusCode.PERMISSION_DENIED, "no\x1b[2J way")

    server.profile = refuse
    assert main(["capture", "--service_addr", server.address, "--logdir", str(tmp_path)]) == 6
    captured = capsys.readouterr()
    assert "way" in captured.out
    assert "\x1b" not in captured.out + captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--service_addr", "nonsense"], 2, "host:port"),
        (["--service_addr", NOBODY, "--duration_ms", "0"], 2, "duration_ms"),
        (["--service_addr", NOBODY, "--host_tracer_level", "9"], 2, "host_tracer_level"),
        (["--service_addr", NOBODY, "--run_name", "../x"], 2, "run_name"),
        (["--tpu", "no/such"], 2, "tpu"),
        (["--tpu", "x", "--tpu_api", "http://elsewhere.example.com"], 2, "tpu_api"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main(["capture", *arguments, "--logdir", str(tmp_path)]) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert not captured.out
    assert not run_dirs(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [["--logdir", "x"], ["--service_addr", "a:1"], ["--service_addr", "a:1", "--tpu", "b", "--logdir", "x"]],
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["capture", *arguments])
    assert caught.value.code == 2


def test_a_logdir_that_cannot_be_written_is_said_before_the_job_is_profiled(
    server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["capture", "--service_addr", server.address, "--logdir", str(tmp_path / "file")]) == 4
    assert "file" in capsys.readouterr().err
    assert not server.requests


def test_names_of_tpus(
    server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_names, "default_login", lambda: Login(TOKEN, PROJECT))
    port = server.address.rpartition(":")[2]
    with serving(TpuApi()) as api:
        api.nodes["v2"]["my-tpu"] = node("my-tpu") | {
            "networkEndpoints": [{"ipAddress": "127.0.0.1", "port": 8470}]
        }
        where = ["--tpu_zone", ZONE, "--tpu_api", api.url, "--logdir", str(tmp_path)]
        assert main(["capture", "--tpu", f"my-tpu:{port}", *where]) == 0
        assert f"my-tpu:{port}: 1 worker (127.0.0.1:{port})" in capsys.readouterr().err
        assert main(["capture", "--tpu", "other", *where]) == 6
        assert "There is no TPU other" in capsys.readouterr().err
    assert len(run_dirs(tmp_path)) == 1


def test_ctrl_c_leaves_nothing(server: Profiler, tmp_path: Path) -> None:
    server.profile = lambda request: str(server.stopped.wait(30)).encode()
    command = [
        sys.executable,
        "-m",
        "tb_tpuprof.cli",
        "capture",
        "--service_addr",
        f"{server.address},{NOBODY}",
        "--logdir",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.requests
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begun < 1
    assert process.returncode == 130
    assert "cancelled" in err
    assert "Traceback" not in err
    assert not out
    assert not run_dirs(tmp_path)


def test_a_terminal_gets_bars(server: Profiler, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs a Unix terminal")
    server.profile = lambda request: (time.sleep(0.5), reply(small_xspace()))[1]
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "tb_tpuprof.cli",
        "capture",
        "--service_addr",
        server.address,
        "--logdir",
        str(tmp_path),
    ]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        [*command, "--duration_ms=400"], stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=30)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(ours)
    text = shown.decode()
    assert process.returncode == 0
    assert b"Saved 1 profile" in out
    assert "━" in text
    assert "s left" in text
    assert text.rstrip().rpartition("\x1b[2K")[2].split()[:2] == [server.address, "saved"]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def progress_of(target: str, state: str, **facts: Any) -> TargetProgress:
    return TargetProgress(target, "h", state, since_s=time.monotonic(), **facts)


def test_many_targets_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "10")
    stream, names = Terminal(), [f"10.0.0.{i}:8466" for i in range(100)]
    with Progress(stream, names) as progress:
        for i, name in enumerate(names[:95]):
            progress.show(i, progress_of(name, "saved", received_bytes=1000))
        progress.show(
            95, progress_of(names[95], "retrying", message=f"{names[95]} refused " + "x" * 200, n_attempts=3)
        )
    lines = [line.partition("\x1b[2K")[2] for line in stream.getvalue().split("\n") if "\x1b[2K" in line][-9:]
    assert all(len(line) < 60 for line in lines)
    assert [line.split()[0] for line in lines[3:8]] == names[95:]
    assert "refused xxx" in lines[3]
    assert lines[8] == "… 92 more targets; 95 of 100 are done"


def test_a_plain_stream_gets_a_line_for_each_state() -> None:
    stream = io.StringIO()
    with Progress(stream, ["h:1"]) as progress:
        for n in range(3):
            progress.show(0, progress_of("h:1", "receiving", received_bytes=n << 20))
        progress.show(0, progress_of("h:1", "failed", message="h:1 broke off.", attempt=2, n_attempts=3))
    assert stream.getvalue() == "h:1: receiving\nh:1: failed: broke off (attempt 2 of 3)\n"


def test_other_commands_do_not_wait_for_grpc() -> None:
    code = (
        "import sys; from tb_tpuprof.cli import main; main(['runs', 'nothing']); print('grpc' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
