"""`docs/capture.md` keeps its word: its snippets are cut out and run, and the runs that they make open and
show the steps that ran.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.cli import capture_tpu_profile
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.session import Session
from tests.free_port import free_port
from tests.integration.jobs import ROOT, environment, python_with, running

PAGE = (ROOT / "docs" / "capture.md").read_text("utf-8")
# How many steps each program within a job records, what marks them, the package it needs, and the first one
# that is shown: the one before is left out, for the recording's start falls into it. (Keras counts its
# batches from the first on, recorded or not.)
RECORDED = {
    "keras_callback": (10, "function", "keras", "10"),
    "tensorflow_start_stop": (10, "annotation", "tensorflow", "train 1"),
    "tensorflow_block": (10, "annotation", "tensorflow", "train 1"),
    "custom_loop": (20, "annotation", "tensorflow", "train 1"),
    "keras_predict": (20, "function", "keras", "1"),
    "jax_trace": (10, "annotation", "jax", "train 1"),
    "jax_start_stop": (10, "annotation", "jax", "train 1"),
}
SERVERS = {"tensorflow_server", "keras_server", "jax_server"}


def programs() -> dict[str, str]:
    """The page's programs by name."""
    return dict(re.findall(r"<!-- run: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def command_after(marker: str) -> str:
    """The first command that the page gives after a marker."""
    found = re.search(r"```sh\n(.*?)\n```", PAGE[PAGE.index(marker) :], re.DOTALL)
    assert found
    return found[1]


def tpuprof(command: str, folder: Path) -> str:
    """Run a command of the page; what it prints."""
    words = shlex.split(command)
    assert words[0] == "tpuprof"
    done = subprocess.run(
        [sys.executable, "-m", "tb_tpuprof.cli", *words[1:]],
        cwd=folder,
        env=_ours(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _ours() -> dict[str, str]:
    return {**environment(), "PYTHONPATH": str(ROOT)}


def opened(folder: Path) -> Session:
    """The only run below a folder's logs."""
    (run,) = find_runs(str(folder / "logs"))
    return Session(run.path, cache=False)


def check_steps(found: Steps, source: str) -> None:
    """Steps were found, one after the other."""
    assert found.source == source
    assert len(found) >= 1
    numbers = found.number.tolist()
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert (found.duration_ps > 0).all()


def test_every_program_of_the_page_is_tested() -> None:
    assert set(programs()) == set(RECORDED) | SERVERS


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_recording_from_inside(name: str, tmp_path: Path) -> None:
    n_steps, source, package, first = RECORDED[name]
    python = python_with(package, "tensorflow") if package == "keras" else python_with(package)
    (tmp_path / "job.py").write_text(programs()[name], "utf-8")
    done = subprocess.run(
        [python, "job.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    session = opened(tmp_path)
    (host,) = session.hosts
    found = session.get(steps, host)
    check_steps(found, source)
    assert len(found) + found.n_trimmed + found.n_incomplete == n_steps
    assert found.name[0] == first


def started(name: str, folder: Path, package: str) -> tuple[Any, int]:
    """One of the page's servers on a free port, and that port."""
    port = free_port()
    program = re.sub(r"(start(?:_server)?\()\d+\)", rf"\g<1>{port})", programs()[name])
    assert str(port) in program
    return running(
        python_with(package, *(["tensorflow"] if package == "keras" else [])), program, folder / name, port
    ), port


@pytest.mark.slow
def test_a_keras_job_from_outside(tmp_path: Path) -> None:
    job, port = started("keras_server", tmp_path, "keras")
    with job:
        tpuprof(command_after("<!-- run: keras_server -->").replace("6009", str(port)), tmp_path)
    session = opened(tmp_path)
    (host,) = session.hosts
    check_steps(session.get(steps, host), "function")


@pytest.mark.slow
def test_a_tensorflow_and_a_jax_job_alone_together_and_watched(tmp_path: Path) -> None:
    tensorflow, port = started("tensorflow_server", tmp_path, "tensorflow")
    jax, jax_port = started("jax_server", tmp_path, "jax")
    alone, both, kept = tmp_path / "alone", tmp_path / "both", tmp_path / "kept"
    kept.mkdir()
    alone.mkdir()
    both.mkdir()
    with jax:
        for line in command_after("<!-- continuous -->").replace("9012", str(jax_port)).splitlines():
            tpuprof(line, kept)
        watched = tpuprof(command_after("<!-- command: monitor -->").replace("9012", str(jax_port)), tmp_path)
        with tensorflow:
            tpuprof(command_after("<!-- run: tensorflow_server -->").replace("6009", str(port)), alone)
            command = command_after("<!-- command: several_workers -->")
            tpuprof(
                command.replace("worker0:6009,worker1:9012", f"localhost:{port},localhost:{jax_port}"), both
            )
    (host,) = opened(alone).hosts
    check_steps(opened(alone).get(steps, host), "annotation")
    (host,) = opened(kept).hosts
    check_steps(opened(kept).get(steps, host), "annotation")
    session = opened(both)
    assert len(session.hosts) == 2
    for found in session.map(steps, session.hosts):
        check_steps(found, "annotation")
    lines = watched.splitlines()
    assert len(lines) == 3
    assert all(f"localhost:{jax_port}  CPU" in line for line in lines)
    assert re.search(r"step [0-9.]+ [mµn]?s .* [1-9][0-9,]* steps", lines[-1])


def test_flags_of_the_page_exist() -> None:
    """Commands that cannot be run here at least name flags that there are."""
    from tb_tpuprof.cli import main

    for command in re.findall(r"^(?:docker .* )?(tpuprof \w+|capture_tpu_profile) (.*)$", PAGE, re.MULTILINE):
        used = set(re.findall(r"--(\w+)", command[1]))
        if command[0] == "capture_tpu_profile":
            known = {flag.name for flag in capture_tpu_profile.FLAGS}
        else:
            # Of a command with actions, the flags of the action count.
            words = [command[0].split()[1], *re.findall(r"^(?:start|snapshot|stop)\b", command[1])]
            known = set(re.findall(r"--(\w+)", _help(main, *words)))
        assert used <= known


def _help(main: Any, *words: str) -> str:
    import io
    from contextlib import redirect_stdout

    text = io.StringIO()
    with redirect_stdout(text), pytest.raises(SystemExit):
        main([*words, "--help"])
    return text.getvalue()


def test_links_of_the_page_lead_somewhere() -> None:
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    links = re.findall(r"\]\(([^)]*)\)", PAGE)
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    assert all((ROOT / "docs" / link).is_file() for link in links if not link.startswith("#"))


def test_the_compose_file() -> None:
    """Syntax, and what the Compose specification says of the keys that are used."""
    yaml = pytest.importorskip("yaml", reason="*** NOT RUN: PyYAML is not installed. ***")
    compose = yaml.safe_load((ROOT / "docs" / "examples" / "tf_serving.compose.yaml").read_text("utf-8"))
    assert set(compose) == {"services"}
    allowed = {
        "image": str,
        "command": list,
        "environment": dict,
        "volumes": list,
        "ports": list,
        "depends_on": list,
    }
    for service in compose["services"].values():
        assert set(service) <= set(allowed)
        assert all(isinstance(value, allowed[key]) for key, value in service.items())
        assert all(
            isinstance(item, str) for value in service.values() if isinstance(value, list) for item in value
        )
        assert re.fullmatch(r"[a-z0-9./_-]+(:[\w.-]+)?", service["image"])
        assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in service["ports"])
        assert all(re.fullmatch(r"\./\w+:/\w+(:ro)?", volume) for volume in service["volumes"])
        assert set(service.get("depends_on", [])) <= set(compose["services"])
    serving, tensorboard = compose["services"]["serving"], compose["services"]["tensorboard"]
    assert "127.0.0.1:8500:8500" in serving["ports"]
    assert "./logs:/logs" in serving["volumes"]
    assert "./logs:/logs" in tensorboard["volumes"]
    assert "--logdir /logs" in tensorboard["command"][-1]
