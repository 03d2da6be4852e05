"""The command line: what it prints, and the exit code of each kind of failure."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tpuprof import __version__
from tb_tpuprof.cli import main
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.tools import NAMES, all_tools
from tests.ingest.merged_spaces import merged_space
from tests.ingest.stream_files import SMALL as STREAM
from tests.ingest.stream_files import records_of
from tests.ingest.xspaces import small_xspace


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "plugins" / "profile" / "r"
    folder.mkdir(parents=True)
    (folder / "h.xplane.pb").write_bytes(small_xspace())
    return folder


def test_version() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tb_tpuprof.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith(f"tpuprof {__version__}")
    assert ("without the compiled decoder" in result.stdout) is not IS_COMPILED


def test_runs(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(run_dir.parents[2])]) == 0
    assert "r  " in capsys.readouterr().out
    assert main(["runs", str(run_dir.parents[2]), "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["hosts"] == ["h"]
    assert run["path"] == str(run_dir)
    (run_dir / "nothing").mkdir()
    assert main(["runs", str(run_dir / "nothing")]) == 0
    assert "No profile runs" in capsys.readouterr().out
    assert main(["runs", str(run_dir / "missing")]) == 4
    assert "missing is not a folder" in capsys.readouterr().err


def test_tools(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", str(run_dir)]) == 0
    out = capsys.readouterr().out
    for tool in all_tools():
        assert f"{tool.name}  " in out
        assert f"  {tool.summary}" in out
    assert "hosts: h" in out


def test_the_help_of_show_lists_each_tool_with_its_questions_and_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["show", "--help"])
    lines = iter(capsys.readouterr().out.partition("\ntools:\n")[2].splitlines())
    for tool in all_tools():
        questions = ", ".join(one.name for one in tool.questions)
        assert next(lines) == (f"  {tool.name}: questions {questions}" if questions else f"  {tool.name}")
        for kind in tool.files:
            assert next(lines) == f"      --format {kind.format}: {kind.summary}"
    assert not list(lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--version"], set()),
        (["runs", "{run}"], set()),
        (["show", "kernel_stats", "{run}"], {"kernel_stats"}),
        (["schema", "hlo_stats"], {"hlo_stats"}),
        (["query", "{run}", "MatMul"], {"trace_viewer"}),
        (["tools", "{run}"], set(NAMES)),
    ],
)
def test_a_command_imports_only_the_tools_that_it_needs(
    run_dir: Path, arguments: list[str], expected: set[str]
) -> None:
    """They take about half a second of processor time, of one second that a command line takes to start."""
    filled = [text.format(run=run_dir) for text in arguments]
    code = (
        "import sys, tb_tpuprof.cli as cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: sys.stderr.write(' '.join(name for name in sys.modules if name.endswith('.view')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *filled], capture_output=True, text=True, timeout=120, check=True
    )
    assert {name.split(".")[-2] for name in done.stderr.split() if "tb_tpuprof.tools." in name} == expected


def test_show_in_each_format(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "framework_op_stats", str(run_dir)]) == 0
    assert "MatMul" in capsys.readouterr().out
    assert main(["show", "framework_op_stats", str(run_dir), "--format", "csv", "--no-cache"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    matmul = next(row for row in rows if row["operation"] == "MatMul")
    assert (matmul["n_occurrences"], matmul["total_time_ps"]) == ("40", "20000")
    assert main(["show", "trace_viewer", str(run_dir), "--param", "width_px=10", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scalars"]["n_events_in_window"]["value"] == 80


def test_an_output_that_cannot_be_written(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_dir / "missing" / "x.json.gz"
    for arguments in (["trace_viewer", "--format", "trace"], ["overview_page"]):
        assert main(["show", *arguments, str(run_dir), "-o", str(output)]) == 4
        errors = capsys.readouterr().err
        assert f"--output: {output} cannot be written: No such file or directory" in errors
        assert "list of runs" not in errors


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "nonsense", "{run}"], 4, "no tool"),
        (["show", "overview_page", "{run}/none"], 4, "not a folder"),
        (["show", "overview_page", "{run}", "--host", "x"], 4, "no host"),
        (["show", "trace_viewer", "{run}", "--param", "width_px=x"], 2, "width_px"),
        (["show", "trace_viewer", "{run}", "--param", "width_px"], 2, "name=value"),
        (["show", "trace_viewer", "{run}", "--format", "dot"], 2, "text, json, csv, trace, events"),
        (["show", "trace_viewer/active", "{run}", "--format", "trace"], 2, "text, json, csv."),
        (["show", "overview_page", "{run}", "--format", "trace"], 2, "text, json, csv."),
        (["show", "overview_page", "{logs}"], 4, "log directory, not a run"),
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


def test_the_list_of_runs_says_what_a_folder_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, file in (("old", "h.overview_page.pb"), ("table", "h.SSTABLE")):
        (tmp_path / "plugins" / "profile" / name).mkdir(parents=True)
        (tmp_path / "plugins" / "profile" / name / file).write_bytes(b"x")
    assert main(["runs", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "legacy: This run contains no trace, only finished pages that an older profiler saved" in listed


def test_a_stream_is_listed_and_shown_like_any_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the numbers of the pieces merged into one XSpace by the protobuf runtime."""
    for run, name in (("stream", "h.xplane.riegeli"), ("merged", "h.xplane.pb")):
        (tmp_path / "plugins" / "profile" / run).mkdir(parents=True)
        content = STREAM.read_bytes() if run == "stream" else merged_space(records_of(STREAM))
        (tmp_path / "plugins" / "profile" / run / name).write_bytes(content)
    assert main(["runs", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "stream" in listed
    assert "unsupported" not in listed
    shown = []
    for target in ("stream", "stream/h.xplane.riegeli", "merged"):
        path = tmp_path / "plugins" / "profile" / target
        assert main(["show", "overview_page", str(path), "--format", "json"]) == 0
        shown.append(json.loads(capsys.readouterr().out)["scalars"])
    assert shown[0] == shown[1] == shown[2]
    assert shown[0]["n_steps"]["value"] > 10
    exported = []
    for run in ("stream", "merged"):
        file = tmp_path / f"{run}.trace.json.gz"
        folder = str(tmp_path / "plugins" / "profile" / run)
        assert main(["show", "trace_viewer", folder, "--format", "trace", "-o", str(file)]) == 0
        exported.append(json.loads(gzip.decompress(file.read_bytes()))["traceEvents"])
    assert exported[0] == exported[1]
    assert sum("_src" in event.get("args", {}) for event in exported[0]) > 100


def test_a_run_is_no_log_directory(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(run_dir)]) == 0
    assert capsys.readouterr().out.startswith("r  ")
    (run_dir / "h.xplane.pb").rename(run_dir.parents[3] / "h.trace")  # a name that says too little elsewhere
    folder = run_dir.parents[3]
    run_dir.rmdir()
    assert main(["runs", str(folder)]) == 0
    assert f"is itself a run: tpuprof show overview_page {folder}" in capsys.readouterr().out


def test_a_damaged_trace_is_exit_code_3(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "h.xplane.pb").write_bytes(small_xspace() + b"\x00" * 9)
    assert main(["show", "overview_page", str(run_dir)]) == 3
    assert "h.xplane.pb" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["show"])
    assert caught.value.code == 2


def test_show_writes_chrome_trace_json(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.trace.json.gz"
    assert main(["show", "trace_viewer", str(run_dir), "--format", "trace", "-o", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out
    whole = json.loads(gzip.decompress(target.read_bytes()))
    assert any(event["ph"] == "X" for event in whole["traceEvents"])
    assert main(["show", "trace_viewer", str(target), "--param", "width_px=100"]) == 0
    assert "Trace" in capsys.readouterr().out
    assert main(["show", "trace_viewer", str(run_dir), "--format", "trace"]) == 2
    assert "-o r.trace.json.gz" in capsys.readouterr().err
    assert main(["show", "overview_page", str(run_dir), "--format", "trace", "-o", str(target)]) == 2
    assert (
        main(
            ["show", "trace_viewer", str(run_dir), "--format", "trace", "-o", str(tmp_path / "none" / "f.gz")]
        )
        == 4
    )
    assert list(tmp_path.glob("**/*.part")) == []


def test_show_writes_to_a_file(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.json"
    assert main(["show", "overview_page", str(run_dir), "--format", "json", "--output", str(target)]) == 0
    assert json.loads(target.read_text("utf-8"))["tool"] == "overview_page"
    assert capsys.readouterr().out == f"wrote {target}\n"


@pytest.mark.parametrize(
    "name", ["one.xplane.pb", "one.xplane.pb.gz", "one.trace.json", "one.json.gz", "one.pt.trace.json.gz"]
)
def test_a_single_file_is_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    data = small_xspace() if "xplane" in name else b'[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]'
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert main(["show", "trace_viewer", str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["hosts"] == ["one"]
    assert shown["scalars"]["n_events"]["value"] > 0
    assert sorted(os.listdir(tmp_path)) in (["cache", name], [name])  # nothing beside the file


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists threads there")
@pytest.mark.parametrize(("set_to", "n_threads"), [("", 1), ("2", min(2, os.cpu_count() or 1))])
def test_numpy_starts_no_threads_unless_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, set_to: str, n_threads: int
) -> None:
    """Those of OpenBLAS, at most one for each processor."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if set_to:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", set_to)
    code = (
        "import os, sys\nfrom tb_tpuprof.__main__ import main\nsys.argv = ['tpuprof', '--version']\n"
        "try: main()\nfinally: print(len(os.listdir('/proc/self/task')), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{n_threads} True"
