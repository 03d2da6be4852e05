"""`docs/causes/` keeps its word: every program that is marked `<!-- run: … -->` is cut out and run; the
others are at least Python.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tests.free_port import free_port
from tests.integration.jobs import ROOT, environment, python_with
from tests.integration.preloaded import Preloaded

PAGES = {
    path.stem: path.read_text("utf-8")
    for path in sorted((ROOT / "docs" / "causes").glob("*.md"))
    if path.stem != "README"
}
FRAMEWORKS = ("jax", "tensorflow")
LIMIT_S = 240.0
_MARK = re.compile(r"<!-- run: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
_PORT = re.compile(r"(start(?:_server)?\()\d+\)")
PROGRAMS: dict[str, str] = {name: text for page in PAGES.values() for name, text in _MARK.findall(page)}


def packages(name: str) -> tuple[str, ...]:
    """What a program needs, by its mark and its imports."""
    framework = next(one for one in FRAMEWORKS if name.endswith(f"_{one}"))
    return (framework, *(["keras"] if re.search(r"\bkeras\b", PROGRAMS[name]) else []))


def ran(python: Preloaded, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own; a server that it starts listens on a free port."""
    program = folder / "job.py"
    program.write_text(_PORT.sub(rf"\g<1>{free_port()})", PROGRAMS[name]), "utf-8")
    return python.run(program, LIMIT_S)


@pytest.fixture(scope="module")
def preloaded() -> Iterator[Callable[[tuple[str, ...]], Preloaded]]:
    """The interpreter for programs that need these packages; skips the test where no Python has them."""
    with ExitStack() as stack:

        @cache
        def started(python: str, framework: str) -> Preloaded:
            return stack.enter_context(Preloaded(python, framework, environment()))

        yield lambda needed: started(python_with(*needed), needed[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_marked_program_runs(
    name: str, preloaded: Callable[[tuple[str, ...]], Preloaded], tmp_path: Path
) -> None:
    done = ran(preloaded(packages(name)), name, tmp_path)
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
    monkeypatch.setitem(PROGRAMS, "bad_jax", "start_server(9999)\n")
    monkeypatch.setitem(PROGRAMS, "invalid_jax", "print(1 is 1)\n")
    monkeypatch.setitem(PROGRAMS, "good_jax", "import decimal\nprint(decimal.Decimal(1) / 3)\n")
    with Preloaded(sys.executable, "json", {}) as python:
        done = ran(python, "bad_jax", tmp_path)
        assert done.returncode == 1
        assert "NameError" in done.stderr
        assert "start_server(" in done.stderr
        assert "9999" not in done.stderr
        assert '"is" with' in ran(python, "invalid_jax", tmp_path).stderr
        done = ran(python, "good_jax", tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"0.{'3' * 28}\n", "")
        monkeypatch.setitem(PROGRAMS, "good_jax", "while True:\n    pass\n")
        monkeypatch.setattr("tests.integration.test_cause_docs.LIMIT_S", 0.5)
        with pytest.raises(subprocess.TimeoutExpired):
            ran(python, "good_jax", tmp_path)
    monkeypatch.setitem(PROGRAMS, "more_tensorflow", "import keras\n")
    assert packages("more_tensorflow") == ("tensorflow", "keras")
