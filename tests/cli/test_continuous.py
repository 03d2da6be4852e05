"""`tpuprof continuous`, and the settings of `tpuprof capture`: what is sent, saved and printed, and exit
codes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.capture.options import OPTIONS
from tb_tpuprof.cli import main
from tests.capture.double import continuously_profiled, free_target, good, serving
from tests.ingest.xspaces import small_xspace


def run_dirs(logdir: Path) -> list[str]:
    return sorted(path.name for path in (logdir / "plugins" / "profile").glob("*"))


def test_start_snapshot_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with continuously_profiled() as (target, double):
        where = ["--service_addr", str(target)]
        settings = ["--option", "tpu_trace_mode=TRACE_COMPUTE", "--option", "n=3"]
        assert main(["continuous", "start", *where, *settings, "--host_traceme_filter_mask=0x1"]) == 0
        assert capsys.readouterr().out == f"{target}: profiling continuously\n"
        saved = ["--logdir", str(tmp_path), "--run_name", "slow_step", "--override_hostnames", "w0"]
        assert main(["continuous", "snapshot", *where, *saved]) == 0
        assert "Saved 1 profile, " in capsys.readouterr().out
        assert main(["continuous", "stop", *where]) == 0
        assert capsys.readouterr().out == f"{target}: no longer profiled\n"
        assert main(["continuous", "stop", *where]) == 6
        assert f"{target} is not profiled continuously." in capsys.readouterr().err
    opts = double.requests[0].opts
    assert (opts.host_tracer_level, opts.device_tracer_level, opts.python_tracer_level) == (0, 1, 0)
    assert opts.trace_options.host_traceme_filter_mask == 1
    assert [one.key for one in opts.advanced_configuration] == [
        "tpu_trace_mode",
        "n",
        "tpu_circular_buffer_tracing",
    ]
    file = tmp_path / "plugins" / "profile" / "slow_step" / "w0.xplane.pb"
    assert file.read_bytes() == small_xspace()


def test_levels_can_be_raised(capsys: pytest.CaptureFixture[str]) -> None:
    with continuously_profiled() as (target, double):
        assert (
            main(
                [
                    "continuous",
                    "start",
                    "--service_addr",
                    str(target),
                    "--host_tracer_level=2",
                    "--python_tracer_level=1",
                ]
            )
            == 0
        )
    opts = double.requests[0].opts
    assert (opts.host_tracer_level, opts.python_tracer_level) == (2, 1)


def test_exit_codes_of_some_and_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = free_target()
    with continuously_profiled() as (target, _):
        assert main(["continuous", "start", "--service_addr", f"{target},{nobody}"]) == 8
        captured = capsys.readouterr()
        assert captured.out == f"{target}: profiling continuously\n"
        assert captured.err.startswith(f"{nobody} refused the connection.")
        both = ["--service_addr", f"{target},{nobody}", "--logdir", str(tmp_path)]
        assert main(["continuous", "snapshot", *both]) == 8
    assert main(["continuous", "start", "--service_addr", str(nobody)]) == 6
    assert main(["continuous", "stop", "--service_addr", str(nobody)]) == 6


def test_several_targets_that_all_do_it(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        continuously_profiled() as (one, _),
        continuously_profiled() as (two, _),
        continuously_profiled() as (three, _),
    ):
        addresses = ",".join(map(str, (one, two, three)))
        assert main(["continuous", "start", "--service_addr", addresses]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines == [f"{target}: profiling continuously" for target in (one, two, three)]
        assert main(["continuous", "stop", "--service_addr", addresses]) == 0


def test_help_says_how_long_a_snapshot_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["continuous", "snapshot", "--help"])
    assert caught.value.code == 0
    option = next(one for one in OPTIONS if one.name == "timeout_s")
    text = " ".join(capsys.readouterr().out.split())
    assert f"--timeout_s S {option.help} Default: {option.default} s." in text


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["continuous"])
    assert caught.value.code == 2
    with pytest.raises(SystemExit):
        main(["continuous", "snapshot", "--service_addr", "a:1"])
    assert "--logdir" in capsys.readouterr().err
    where = ["--service_addr", "127.0.0.1:1,127.0.0.1:2"]
    assert main(["continuous", "snapshot", *where, "--logdir", str(tmp_path), "--override_hostnames=a"]) == 2
    assert "as many names as targets, 2" in capsys.readouterr().err
    assert main(["continuous", "snapshot", *where, "--logdir", str(tmp_path), "--timeout_s=0"]) == 2
    assert main(["continuous", "start", *where, "--option", "novalue"]) == 2
    assert "--option" in capsys.readouterr().err


def test_settings_of_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(good()) as (target, double):
        where = ["--service_addr", str(target), "--logdir", str(tmp_path), "--duration_ms=5"]
        more = ["--option=gpu_pm_sample_counters=a,b", "--option", "x=true", "--session_id=mine"]
        assert main(["capture", *where, *more, "--override_hostnames", "host-a"]) == 0
        assert main(["capture", *where, "--option=x=1", "--option=x=2"]) == 2
    (request,) = double.requests
    values = {one.key: one.value for one in request.opts.advanced_configuration}
    assert values["gpu_pm_sample_counters"].string_value == "a,b"
    assert values["x"].bool_value is True
    assert (request.session_id, request.opts.session_id, request.opts.override_hostname) == (
        "mine",
        "mine",
        "host-a",
    )
    assert run_dirs(tmp_path) == ["mine"]
    assert (tmp_path / "plugins" / "profile" / "mine" / "host-a.xplane.pb").is_file()
    assert "each key once" in capsys.readouterr().err
