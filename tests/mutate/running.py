"""Copies of the tree, a worker in each, and the distribution of jobs."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.mutate.belonging import PACKAGE

_COPIED = (PACKAGE, "tests")
_NOT_LINKED = (".git", ".pytest_cache", ".hypothesis", "build")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "artifacts")
Job = dict[str, Any]


class Workers:
    """Workers that process jobs in any order. `imported`: functions that run while tests are collected."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]], imported: Sequence[str] = ()) -> None:
        self.processes = processes
        self.imported = imported

    def map(self, jobs: Sequence[Job], done: Callable[[int, Job], None] | None = None) -> list[Job]:
        """The answer to each job; `done` is called with the index of each job that finishes."""
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for i in range(len(jobs)):
            waiting.put(i)
        answers: list[Job] = [{} for _ in jobs]
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=_serve, args=(process, jobs, waiting, answers, (done, failures)))
            for process in self.processes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return answers


def _serve(
    process: subprocess.Popen[str],
    jobs: Sequence[Job],
    waiting: queue.SimpleQueue[int],
    answers: list[Job],
    ends: tuple[Callable[[int, Job], None] | None, list[BaseException]],
) -> None:
    done, failures = ends
    try:
        while not failures:
            try:
                job_id = waiting.get_nowait()
            except queue.Empty:
                return
            answers[job_id] = _asked(process, jobs[job_id])
            if done:
                done(job_id, answers[job_id])
    except BaseException as error:
        failures.append(error)


def _asked(process: subprocess.Popen[str], job: Job) -> Job:
    assert process.stdin is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return _answer(process)


def _answer(process: subprocess.Popen[str]) -> Job:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"A worker ended with code {process.wait()}.")
    answer: Job = json.loads(line)
    return answer


@contextmanager
def workers(root: Path, n: int, files: Sequence[str]) -> Iterator[Workers]:
    """`n` workers, each in its own copy of the tree at `root` with these test files; removed afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutate_")))
        processes = []
        for i in range(n):
            copied = folder / str(i)
            _copy(root, copied)
            process = subprocess.Popen(
                [sys.executable, "tests/mutate/worker.py"],
                cwd=copied,
                env={**os.environ, "PYTHONPATH": "", "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            stack.callback(_end, process)
            processes.append(process)
            assert process.stdin is not None
            process.stdin.write(json.dumps({"files": list(files)}) + "\n")
            process.stdin.flush()
        imported = [place for process in processes for place in _answer(process)["imported"]]
        yield Workers(processes, sorted(set(imported)))


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _copy(root: Path, to: Path) -> None:
    """Copy what can be mutated, link the rest."""
    to.mkdir()
    for path in root.iterdir():
        if path.name in _COPIED:
            shutil.copytree(path, to / path.name, ignore=_LEFT_OUT)
        elif path.name not in _NOT_LINKED:
            (to / path.name).symlink_to(path)
    worker = Path(__file__).with_name("worker.py")
    target = to / "tests" / "mutate" / worker.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(worker, target)
