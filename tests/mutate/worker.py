"""A process that runs tests in its copy of the tree: one job per input line, one answer per output line.

The first line lists test files. They are collected once, and each job runs in a fork.

    {"record": file}                                       → functions that each test enters, and its time
    {"path": ..., "source": ..., "tests": [...], ...}      → whether a test detects this source of a module
    {"tests": [...]}                                       → the same without a mutant

A function is mutated in the fork by assigning other code to it. That has no effect on code that runs at
import: for this the file is written and the tests run in a new process. This is a plain script that imports
nothing from the tree.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

_MEMORY = 8 << 30  # of one fork: a mutant may allocate any number of bytes
_ARGUMENTS = ("-q", "-s", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--basetemp=.forks/tmp")
_PACKAGE = f"{Path.cwd()}{os.sep}tb_tpuprof{os.sep}"
_KILLED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
Job = dict[str, Any]


class Entered:
    """Records the functions of the package that are entered within the context."""

    def __enter__(self) -> Entered:
        self.codes: dict[int, CodeType] = {}

        def enter(frame: FrameType, _event: str, _arg: object) -> None:
            self.codes[id(frame.f_code)] = frame.f_code

        threading.settrace(enter)
        sys.settrace(enter)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    @property
    def places(self) -> list[str]:
        """Path in the package and first line of each function."""
        return sorted(
            {
                f"{code.co_filename[len(_PACKAGE) :]}:{code.co_firstlineno}"
                for code in tuple(self.codes.values())
                if code.co_filename.startswith(_PACKAGE)
            }
        )


class Outcomes:
    """The outcome of each test, and the first failure."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passed if its call passed and no phase failed or was skipped."""
        if report.outcome != "passed" or (report.when == "call" and report.nodeid not in self.of):
            self.of[report.nodeid] = report.outcome
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Serving:
    """Processes jobs instead of running the collected tests."""

    def __init__(self, answer: Callable[[Job], None]) -> None:
        self.answer = answer
        self.imported = Entered()
        self.outcomes = Outcomes()
        self.items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Process jobs until the input ends."""
        self.imported.__exit__()
        self.items = {item.nodeid: item for item in session.items}
        session.config.pluginmanager.register(self.outcomes)
        self.answer({"imported": self.imported.places})
        for line in sys.stdin:
            self.answer(self._done(json.loads(line)))
        return True

    def _done(self, job: Job) -> Job:
        if "record" in job:
            return forked(job, self._record)
        return forked(job, self._attack)

    def _record(self, job: Job) -> Job:
        recorded = {}
        for item in [item for name, item in self.items.items() if name.partition("::")[0] == job["record"]]:
            start = time.perf_counter()
            with Entered() as entered:
                self._run(item)
            recorded[item.nodeid] = {
                "seconds": time.perf_counter() - start,
                "outcome": self.outcomes.of.get(item.nodeid, "failed"),
                "entered": entered.places,
            }
        return {"tests": recorded}

    def _attack(self, job: Job) -> Job:
        if "source" in job and (job["alone"] or not put(job["path"], job["source"])):
            return alone(job)
        items = [self.items[name] for name in job["tests"] if name in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            self._run(item, following)
            if self.outcomes.failed:
                return {"status": "killed", "by": self.outcomes.failed}
        return {"status": "survived", "by": ""}

    def _run(self, item: pytest.Item, following: pytest.Item | None = None) -> None:
        """Run one test. Fixtures that `following` shares are kept."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def put(path: str, source: str) -> bool:
    """Assign the code of another source to the functions of a module; False if that is impossible."""
    full = f"{Path.cwd()}{os.sep}{path}"
    before = dict(_codes(compile(Path(path).read_text("utf-8"), full, "exec"), "", {}))
    after = dict(_codes(compile(source, full, "exec"), "", {}))
    new = {
        (code.co_firstlineno, code.co_name): after[key]
        for key, code in before.items()
        if key in after and not _same(code, after[key])
    }
    live = [
        module
        for module in gc.get_objects()
        if type(module) is FunctionType
        and module.__code__.co_filename == full
        and (module.__code__.co_firstlineno, module.__code__.co_name) in new
    ]
    try:
        for module in live:
            module.__code__ = new[module.__code__.co_firstlineno, module.__code__.co_name]
    except ValueError:  # the number of free variables differs
        return False
    return bool(live)


def _codes(code: CodeType, outer: str, seen: dict[str, int]) -> Iterator[tuple[str, CodeType]]:
    """The functions of a module by qualified name, numbered if several have the same name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = f"{outer}.{inner.co_name}"
            seen[name] = seen.get(name, 0) + 1
            yield f"{name} {seen[name]}", inner
            yield from _codes(inner, name, seen)


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects are equal except for line numbers."""
    if (
        one.co_code != other.co_code
        or one.co_names != other.co_names
        or len(one.co_consts) != len(other.co_consts)
    ):
        return False
    return all(
        _same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


class Chosen:
    """Selects and orders the given tests."""

    def __init__(self, tests: list[str]) -> None:
        self.place = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A mutant may rename parametrized tests: one that is missing is replaced by all of its function."""
        chosen_ids = {item.nodeid for item in items if item.nodeid in self.place}
        functions = {test.partition("[")[0] for test in self.place if test not in chosen_ids}
        chosen_items = [
            item for item in items if item.nodeid in chosen_ids or item.nodeid.partition("[")[0] in functions
        ]
        items[:] = sorted(chosen_items, key=lambda item: self.place.get(item.nodeid, len(self.place)))


def alone(job: Job) -> Job:
    """Write the module and run its tests in a new process."""
    path = Path(job["path"])
    path.write_text(job["source"], "utf-8")
    stamp = int(job["stamp"])  # distinct for each mutant, so that cached bytecode is not reused
    os.utime(path, (stamp, stamp))
    process = subprocess.run(
        [sys.executable, __file__, "alone"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = process.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {"status": "killed", "by": f"ended with {process.returncode}"}
    answer: Job = json.loads(lines[-1])
    return answer


def run_alone(job: Job) -> Job:
    """Run the tests of a job in this process."""
    outcomes = Outcomes()
    files = list(dict.fromkeys(test.partition("::")[0] for test in job["tests"]))
    code = pytest.main([*_ARGUMENTS, "-x", *files], plugins=[Chosen(job["tests"]), outcomes])
    status = "survived" if code == pytest.ExitCode.OK else "killed" if code in _KILLED else "error"
    return {"status": status, "by": outcomes.failed}


def forked(job: Job, work: Callable[[Job], Job]) -> Job:
    """Do a job in a fork with a time limit, and end all processes that it started."""
    answer, log = Path(".forks/answer.json"), Path(".forks/log.txt")
    answer.unlink(missing_ok=True)
    path = Path(job["path"]) if "path" in job else None
    before = (path.read_bytes(), path.stat().st_mtime) if path else None
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _in_fork(job, work, answer, log)
    status = _ended(child, start + float(job["timeout"]))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    seconds = round(time.monotonic() - start, 2)
    if path and before and path.read_bytes() != before[0]:
        path.write_bytes(before[0])
        os.utime(path, (before[1], before[1]))
    if status is None:
        os.waitpid(child, 0)
        return {"status": "timeout", "by": "", "seconds": seconds}
    if not answer.exists():  # it crashed, or exceeded the memory limit
        return {"status": "killed", "by": f"ended with status {status}", "seconds": seconds}
    return {**json.loads(answer.read_text("utf-8")), "seconds": seconds}


def _ended(child: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    return None


def _in_fork(job: Job, work: Callable[[Job], Job], answer: Path, log: Path) -> None:
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


def main() -> int:
    """Collect tests and process jobs, or run the tests of one job."""
    if sys.argv[1:] == ["alone"]:
        print(json.dumps(run_alone(json.loads(sys.stdin.read()))), flush=True)
        return 0
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    Path(".forks").mkdir(exist_ok=True)

    def answer(told: Job) -> None:
        out.write(json.dumps(told) + "\n")
        out.flush()

    files = json.loads(sys.stdin.readline())["files"]
    serving = Serving(answer)
    with serving.imported:
        return int(pytest.main([*_ARGUMENTS, "--continue-on-collection-errors", *files], plugins=[serving]))


if __name__ == "__main__":
    sys.exit(main())
