"""A process that runs tests in the copy of the tree that it was started in: one job per line of its input, one answer per line.

    {"files": [...]}                                            → which functions each test enters, and how long it takes
    {"path": ..., "source": ..., "tests": [...], "timeout": s}  → whether a test notices this source of a module

What takes long to import is imported once; each job runs in a fork, of which nothing remains. Nothing of the tree itself is
imported here: it is a plain script.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_LIBRARIES = (
    "numpy", "hypothesis", "hypothesis.strategies", "google.protobuf.message", "google.protobuf.json_format",
    "werkzeug.test", "werkzeug.wrappers", "tensorboard.plugins.base_plugin", "concurrent.futures.thread",
)  # fmt: skip
_MEMORY = 8 << 30  # of one fork: a change may ask for any number of bytes
_ARGUMENTS = ("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--basetemp=.forks/tmp")
_KILLED, _SURVIVED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), pytest.ExitCode.OK


class Recorder:
    """Notes for each test its outcome, its seconds, and the functions of the package that it enters."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.tests: dict[str, dict[str, Any]] = {}
        self.outcome: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test with its fixtures."""
        seen: dict[int, CodeType] = {}

        def enter(frame: FrameType, _event: str, _arg: object) -> None:
            seen[id(frame.f_code)] = frame.f_code

        threading.settrace(enter)
        sys.settrace(enter)
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            entered = {
                f"{code.co_filename[len(self.package) :]}:{code.co_firstlineno}"
                for code in seen.values()
                if code.co_filename.startswith(self.package)
            }
            self.tests[item.nodeid] = {
                "seconds": time.perf_counter() - start,
                "outcome": self.outcome.get(item.nodeid, "failed"),
                "entered": sorted(entered),
            }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test counts as passed if nothing of it failed or was skipped."""
        if report.outcome != "passed" or (
            report.when == "call" and self.outcome.get(report.nodeid) in (None, "passed")
        ):
            self.outcome[report.nodeid] = report.outcome


class Chosen:
    """Runs the given tests alone, in the given order, and notes which one fails."""

    def __init__(self, tests: list[str]) -> None:
        self.place = {test: i for i, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Parameters may be made of what is changed: tests that are gone are replaced by all of their function's."""
        known = {item.nodeid for item in items if item.nodeid in self.place}
        functions = {test.partition("[")[0] for test in self.place if test not in known}
        kept = [item for item in items if item.nodeid in known or item.nodeid.partition("[")[0] in functions]
        items[:] = sorted(kept, key=lambda item: self.place.get(item.nodeid, len(self.place)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first one."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported any more."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def record(job: dict[str, Any]) -> dict[str, Any]:
    """Run files with the source as it is."""
    recorder = Recorder(f"{Path.cwd()}{os.sep}tb_tpuprof{os.sep}")
    arguments = [argument for argument in _ARGUMENTS if argument != "-x"]
    code = pytest.main([*arguments, *job["files"]], plugins=[recorder])
    return {"code": int(code), "tests": recorder.tests}


def attack(job: dict[str, Any]) -> dict[str, Any]:
    """Run tests with a changed module."""
    chosen = Chosen(job["tests"])
    files = list(dict.fromkeys(test.partition("::")[0] for test in job["tests"]))
    code = pytest.main([*_ARGUMENTS, *files], plugins=[chosen])
    status = "survived" if code == _SURVIVED else "killed" if code in _KILLED else "error"
    return {"status": status, "by": chosen.failed, "code": int(code)}


def forked(job: dict[str, Any], work: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Do a job in a process of its own, as far as it ends in time, and end what that process started."""
    answer, log = Path(".forks/answer.json"), Path(".forks/log.txt")
    answer.unlink(missing_ok=True)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _in_fork(job, work, answer, log)
    status = _ended(child, start + float(job["timeout"]))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    seconds = round(time.monotonic() - start, 2)
    if status is None:
        os.waitpid(child, 0)
        return {"status": "timeout", "by": "", "seconds": seconds}
    if not answer.exists():  # it crashed, or asked for too much memory
        return {"status": "killed", "by": f"ended with status {status}", "seconds": seconds}
    return {**json.loads(answer.read_text("utf-8")), "seconds": seconds}


def _ended(child: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    return None


def _in_fork(
    job: dict[str, Any], work: Callable[[dict[str, Any]], dict[str, Any]], answer: Path, log: Path
) -> None:
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(target, stream)
        sys.stdin = open(os.devnull)  # noqa: SIM115
        try:
            result = work(job)
        except BaseException:
            result = {"status": "error", "by": traceback.format_exc()}
        partial = answer.with_suffix(".part")
        partial.write_text(json.dumps(result), "utf-8")
        partial.rename(answer)
    finally:
        os._exit(0)


def with_source(job: dict[str, Any], stamp: int) -> dict[str, Any]:
    """Change a module, run its tests, and put it back. Each text has a time of its own, or compiled files would be reused."""
    path = Path(job["path"])
    before = path.read_bytes()
    try:
        path.write_text(job["source"], "utf-8")
        os.utime(path, (stamp, stamp))
        return forked(job, attack)
    finally:
        path.write_bytes(before)
        os.utime(path, (stamp + 1, stamp + 1))


def main() -> None:
    """Answer jobs until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    Path(".forks").mkdir(exist_ok=True)
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    stamp = 1_000_000_000
    for line in sys.stdin:
        job = json.loads(line)
        stamp += 2
        answer = with_source(job, stamp) if "source" in job else forked(job, record)
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
