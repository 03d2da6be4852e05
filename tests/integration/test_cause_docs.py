"""`docs/causes/` keeps its word: every program that is marked `<!-- run: … -->` is cut out and run; the
others are at least Python.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tests.free_port import free_port
from tests.integration.jobs import ROOT, environment, python_with

PAGES = {
    path.stem: path.read_text("utf-8")
    for path in sorted((ROOT / "docs" / "causes").glob("*.md"))
    if path.stem != "README"
}
FRAMEWORKS = ("jax", "tensorflow")
AT_ONCE, LIMIT_S = 2, 240
_MARK = re.compile(r"<!-- run: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
_PORT = re.compile(r"(start(?:_server)?\()\d+\)")
PROGRAMS: dict[str, str] = {name: text for page in PAGES.values() for name, text in _MARK.findall(page)}


def packages(name: str) -> tuple[str, ...]:
    """What a program needs, by its mark and its imports."""
    framework = next(one for one in FRAMEWORKS if name.endswith(f"_{one}"))
    return (framework, *(["keras"] if re.search(r"\bkeras\b", PROGRAMS[name]) else []))


def ran(python: str, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own; a server that it starts listens on a free port."""
    (folder / "job.py").write_text(_PORT.sub(rf"\g<1>{free_port()})", PROGRAMS[name]), "utf-8")
    command = [python, "-W", "error::SyntaxWarning", "job.py"]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


Runs = Mapping[str, "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The programs of the tests that were chosen, two at once: most of their time is the import of a
    framework.
    """
    chosen = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.originalname == test_a_marked_program_runs.__name__
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = {}
        for name in chosen:
            try:
                python = python_with(*packages(name))
            except pytest.skip.Exception:
                continue  # the test says it
            found[name] = pool.submit(ran, python, name, tmp_path_factory.mktemp(name))
        yield found
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_marked_program_runs(name: str, runs: Runs) -> None:
    python_with(*packages(name))
    done = runs[name].result()
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_cause_has_a_page_with_a_program_of_each_framework() -> None:
    assert set(PAGES) == {cause.value for cause in Cause}
    assert sorted(PROGRAMS) == sorted(f"{page}_{framework}" for page in PAGES for framework in FRAMEWORKS)
    marks = [mark for page in PAGES.values() for mark in re.findall(r"<!-- run:", page)]
    assert len(marks) == len(PROGRAMS)


@pytest.mark.parametrize("page", PAGES)
def test_programs_are_python(page: str) -> None:
    """Those of PyTorch, too, which are not run."""
    blocks = re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL)
    assert len(blocks) > len(FRAMEWORKS)
    for block in blocks:
        ast.parse(block)


def test_a_program_that_fails_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(PROGRAMS, "bad_jax", "start_server(9999)\n")
    done = ran(sys.executable, "bad_jax", tmp_path)
    assert done.returncode == 1
    assert "NameError" in done.stderr
    assert "start_server(" in done.stderr
    assert "9999" not in done.stderr
    monkeypatch.setitem(PROGRAMS, "more_tensorflow", "import keras\n")
    assert packages("more_tensorflow") == ("tensorflow", "keras")
