"""`tpuprof monitor` and the old `capture_tpu_profile`: flags, lines, exit codes."""

from __future__ import annotations

import importlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.cli import capture_tpu_profile, main
from tb_tpuprof.cli.absl_flags import Flag, UsageError, parse_flags
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import measure
from tests.capture.double import reply
from tests.capture.monitor_double import LEVEL_1, LEVEL_2, Profiler, listening, monitor_reply
from tests.ingest.xspaces import small_xspace
from tests.synthetic import Parts, TpuJob, tpu_xspace

JOB = tpu_xspace(TpuJob(parts=Parts(compute=0.6, infeed=0.2), n_cores=4))


@pytest.fixture
def server() -> Iterator[Profiler]:
    with listening(Profiler()) as profiler:
        yield profiler


def monitor(server: Profiler, *arguments: str) -> int:
    return main(
        ["monitor", "--service_addr", server.address, "--duration_ms", "10", "--num_queries", "2", *arguments]
    )


def test_lines_for_people(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2)
    assert monitor(server) == 0
    first, second = capsys.readouterr().out.splitlines()
    words = (
        "TPU v3 ×8  matrix units 10.7%  idle 36.9%  step 90.8 ms (89.8 ms – 92.2 ms)  input 1.50% (0% "
        "– 3.00%)"
    )
    assert first.partition(server.address)[2] == second.partition(server.address)[2] == f"  {words}"


def test_lines_for_programs(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.profile = lambda request: reply(JOB)
    assert monitor(server, "--format", "json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["n"] for row in rows] == [0, 1]
    told = vars(measure(JOB))
    assert {name: rows[0][name] for name in told} == told
    assert rows[0]["source"] == "profile"


def test_level_1(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_1)
    assert monitor(server, "--monitoring_level", "1") == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("  TPU v2  matrix units 10.7%")


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--service_addr", "127.0.0.1:1"]) == 6
    captured = capsys.readouterr()
    assert "refused the connection" in captured.err
    assert "refused the connection" in captured.out


def test_some_there(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_1)
    assert monitor(server, "--service_addr", server.address, "127.0.0.1:1") == 8
    out = capsys.readouterr().out
    assert "matrix units 10.7%" in out
    assert "127.0.0.1:1  127.0.0.1:1 refused" in out


def test_an_address_without_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--service_addr", "localhost"]) == 2
    assert "--service_addr cannot be 'localhost'" in capsys.readouterr().err


def test_ctrl_c_ends_it(server: Profiler) -> None:
    server.monitor = lambda request: (
        monitor_reply(LEVEL_2) if len(server.requests) < 2 or server.stopped.wait(30) else b""
    )
    command = [
        sys.executable,
        "-m",
        "tb_tpuprof.cli",
        "monitor",
        "--service_addr",
        server.address,
        "--duration_ms",
        "10",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while len(server.requests) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begun < 1
    assert process.returncode == 130
    assert len(out.splitlines()) == 1
    assert "Traceback" not in err


def old(*arguments: str) -> int:
    return capture_tpu_profile.main(arguments)


def test_an_old_script_captures(server: Profiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.profile = lambda request: reply(small_xspace())
    assert (
        old(
            f"--service_addr={server.address}",
            "--logdir",
            str(tmp_path),
            "--noinclude_dataset_ops",
            "-duration_ms=3",
        )
        == 0
    )
    ((_, request),) = server.requests
    assert (request.duration_ms, request.opts.include_dataset_ops) == (3, False)
    assert "Saved 1 profile" in capsys.readouterr().out
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))


def test_defaults_are_the_old_ones(server: Profiler, tmp_path: Path) -> None:
    server.profile = lambda request: reply(small_xspace())
    server.monitor = lambda request: monitor_reply(LEVEL_1)
    assert old("--service_addr", server.address, "--logdir", str(tmp_path)) == 0
    assert old("--service_addr", server.address, "--monitoring_level=1", "--num_queries=1") == 0
    (_, traced), (_, monitored) = server.requests
    assert (traced.duration_ms, traced.opts.include_dataset_ops) == (2000, True)
    assert (monitored.duration_ms, monitored.monitoring_level) == (1000, 1)
    flags = {flag.name: flag.default for flag in capture_tpu_profile.FLAGS}
    assert (flags["num_tracing_attempts"], flags["num_queries"], flags["display_timestamp"]) == (
        3,
        100,
        False,
    )


def test_the_lines_that_old_scripts_look_for(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2)
    arguments = (f"--service_addr={server.address}", "--duration_ms=10", "--num_queries=1")
    assert old(*arguments, "--monitoring_level=2", "--display_timestamp") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].startswith("Timestamp: ")
    assert lines[1:] == [
        "TPU type: TPU v3",
        "Number of TPU cores: 8",
        "TPU idle time (lower is better): 36.9%",
        "Utilization of TPU Matrix Units (higher is better): 10.7%",
        "Step time: 90.8ms (avg), 89.8ms (min), 92.2ms (max)",
        "Infeed percentage: 1.50% (avg), 0% (min), 3.00% (max)",
    ]
    assert old(*arguments, "--monitoring_level=1") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["TPU type: TPU v3", "Utilization of TPU Matrix Units (higher is better): 10.7%"]


def test_old_lines_of_a_job_without_tpus_name_its_device(
    server: Profiler, capsys: pytest.CaptureFixture[str]
) -> None:
    server.profile = lambda request: reply(small_xspace())
    assert (
        old(f"--service_addr={server.address}", "--duration_ms=10", "--num_queries=1", "--monitoring_level=2")
        == 0
    )
    out = capsys.readouterr().out
    assert "Device type: CPU" in out
    assert "TPU" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--logdir=x"], "--tpu=NAME or --service_addr"),
        (["--service_addr=a:1"], "--logdir"),
        (["--service_addr=a:1", "--logdir=x", "--durations_ms=1"], "--duration_ms"),
        (["--service_addr=a:1", "--logdir=x", "--duration_ms=long"], "whole number"),
        (["--service_addr=a:1", "--logdir"], "needs a value"),
        (["--service_addr=a:1", "--logdir=x", "more"], "Unexpected argument"),
        (["--service_addr=a:1", "--monitoring_level=3"], "monitoring_level"),
        (["--service_addr=a:1", "--logdir=x", "--include_dataset_ops=perhaps"], "true or false"),
    ],
)
def test_wrong_old_flags(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert old(*arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.startswith("capture_tpu_profile: ")


def test_both_an_address_and_a_name(server: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_1)
    assert (
        old(
            "--tpu=x",
            "--service_addr",
            server.address,
            "--monitoring_level=1",
            "--num_queries=1",
            "--duration_ms=10",
        )
        == 0
    )
    assert "ignoring --tpu" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--help", "-h", "--helpfull"])
def test_help_names_every_flag(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert old(flag) == 0
    out = capsys.readouterr().out
    assert all(f"--{flag.name}" in out or f"--[no]{flag.name}" in out for flag in capture_tpu_profile.FLAGS)


def test_both_commands_are_installed() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")
    scripts = dict(
        re.findall(
            r'^(\w+) = "([\w.]+:\w+)"$',
            text.partition("[project.scripts]")[2].partition("\n[")[0],
            re.MULTILINE,
        )
    )
    assert set(scripts) == {"tpuprof", "capture_tpu_profile"}
    for entry in scripts.values():
        module, _, function = entry.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


FLAGS = (Flag("name", "", "n"), Flag("count", 1, "c"), Flag("ops", True, "o", ("operations",)))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {"name": "", "count": 1, "ops": True}),
        (["--name=a=b", "-count", "-3"], {"name": "a=b", "count": -3}),
        (["--noops"], {"ops": False}),
        (["--ops=0"], {"ops": False}),
        (["--ops=False", "--ops"], {"ops": True}),
        (["--nooperations", "--name", "--ops"], {"ops": False, "name": "--ops"}),
        (["--count=1", "--count=2", "--"], {"count": 2}),
    ],
)
def test_flags(arguments: list[str], expected: dict[str, Any]) -> None:
    assert parse_flags(arguments, FLAGS) == {"name": "", "count": 1, "ops": True} | expected


@pytest.mark.parametrize(
    "arguments",
    [["--noname"], ["--noops=true"], ["x"], ["--", "x"], ["-"], ["--count"], ["--count=x"], ["--nothing"]],
)
def test_flags_that_are_none(arguments: list[str]) -> None:
    with pytest.raises((UsageError, BadParameter)):
        parse_flags(arguments, FLAGS)
