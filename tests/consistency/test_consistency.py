"""Every page of every run beside the others: no fact, number, word or verdict contradicts another."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from tb_tpuprof.errors import ProfilerError
from tests.consistency.checks import violations
from tests.consistency.runs import PYTORCH, captured, corpus_runs, generated, payloads, pytorch_run
from tests.golden_files import demo_runs
from tests.synthetic import write_run

# (run, rule, pages), each a pattern: why it is no mistake. Aim: empty.
REASONS: dict[tuple[str, str, str], str] = {}


def check(name: str, path: str) -> None:
    pages = payloads(path)
    assert "overview_page" in pages or "memory_viewer" in pages, f"{name}: no page has anything to show"
    wrong = [
        one
        for one in violations(pages)
        if not any(_fits(name, one.rule, one.pages, known) for known in REASONS)
    ]
    assert not wrong, f"{name}:\n" + "\n".join(map(str, wrong))


def _fits(name: str, rule: str, pages: str, known: tuple[str, str, str]) -> bool:
    return all(
        fnmatch.fnmatchcase(text, pattern) for text, pattern in zip((name, rule, pages), known, strict=True)
    )


@pytest.mark.parametrize("log", sorted(demo_runs()))
def test_pages_of_the_demo_agree(log: str) -> None:
    check(f"demo/{log}", str(demo_runs()[log]))


@pytest.mark.parametrize("name", sorted(captured()))
def test_pages_of_captured_runs_agree(name: str) -> None:
    check(f"captured/{name}", captured()[name])


@pytest.mark.parametrize("name", sorted(generated()))
def test_pages_of_generated_runs_agree(name: str, tmp_path: Path) -> None:
    check(f"generated/{name}", str(write_run(tmp_path / name, generated()[name])))


@pytest.mark.parametrize("name", PYTORCH)
def test_pages_of_drawn_jobs_of_pytorch_agree(name: str, tmp_path: Path) -> None:
    check(f"pytorch/{name}", str(pytorch_run(name, tmp_path / name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(corpus_runs()))
def test_pages_of_real_runs_agree(name: str) -> None:
    try:
        payloads(corpus_runs()[name])
    except ProfilerError as error:
        pytest.skip(f"not a run: {error}")
    check(f"corpus/{name}", corpus_runs()[name])
