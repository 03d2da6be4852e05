"""A process that runs tests in the copy of the tree that it was started in: one job per line of its input, one answer per line.

The first line lists files of tests: they are collected once, and each job runs in a fork, of which nothing remains.

    {"record": file}                                              → which functions each test enters, and how long it takes
    {"path": ..., "function": ..., "source": ..., "tests": [...]} → whether a test notices this source of a module
    {"tests": [...]}                                              → the same with the source as it is

A function is changed in the fork by giving it other code. What runs while modules are imported cannot be changed so: then the
file is written and its tests run in a process of their own. It is a plain script, and imports nothing of the tree itself.
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

_MEMORY = 8 << 30  # of one fork: a change may ask for any number of bytes
_ARGUMENTS = ("-q", "-s", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--basetemp=.forks/tmp")
_PACKAGE = f"{Path.cwd()}{os.sep}tb_tpuprof{os.sep}"
_KILLED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
Job = dict[str, Any]


class Entered:
    """Functions of the package that are entered while it is open."""

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
        """Path in the package and first line of each."""
        return sorted(
            {
                f"{code.co_filename[len(_PACKAGE) :]}:{code.co_firstlineno}"
                for code in self.codes.values()
                if code.co_filename.startswith(_PACKAGE)
            }
        )


class Outcomes:
    """What became of each test, and which one failed first."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passed if its call did and nothing of it failed or was skipped."""
        if report.outcome != "passed" or (report.when == "call" and report.nodeid not in self.of):
            self.of[report.nodeid] = report.outcome
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Serving:
    """Instead of running the collected tests: answers jobs about them."""

    def __init__(self, answer: Callable[[Job], None]) -> None:
        self.answer = answer
        self.imported = Entered()
        self.outcomes = Outcomes()
        self.items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Until the input ends."""
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
        found = {}
        for item in [item for name, item in self.items.items() if name.partition("::")[0] == job["record"]]:
            start = time.perf_counter()
            with Entered() as entered:
                self._run(item)
            found[item.nodeid] = {
                "seconds": time.perf_counter() - start,
                "outcome": self.outcomes.of.get(item.nodeid, "failed"),
                "entered": entered.places,
            }
        return {"tests": found}

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
        """What fixtures it shares with the following one stay; else each test makes its own."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def put(path: str, source: str) -> bool:
    """Give the functions of a module the code of another source; False where that cannot be done."""
    full = f"{Path.cwd()}{os.sep}{path}"
    before = dict(_codes(compile(Path(path).read_text("utf-8"), full, "exec"), "", {}))
    after = dict(_codes(compile(source, full, "exec"), "", {}))
    new = {
        (code.co_firstlineno, code.co_name): after[key]
        for key, code in before.items()
        if key in after and not _same(code, after[key])
    }
    live = [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType
        and one.__code__.co_filename == full
        and (one.__code__.co_firstlineno, one.__code__.co_name) in new
    ]
    try:
        for one in live:
            one.__code__ = new[one.__code__.co_firstlineno, one.__code__.co_name]
    except ValueError:  # another number of free variables
        return False
    return bool(live)


def _codes(code: CodeType, outer: str, seen: dict[str, int]) -> Iterator[tuple[str, CodeType]]:
    """The functions of a module by qualified name, and number among those of one name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = f"{outer}.{inner.co_name}"
            seen[name] = seen.get(name, 0) + 1
            yield f"{name} {seen[name]}", inner
            yield from _codes(inner, name, seen)


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same, wherever their lines are."""
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
    """Of files of tests runs the given ones alone, in the given order."""

    def __init__(self, tests: list[str]) -> None:
        self.place = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Parameters may be made of what is changed: tests that are gone are replaced by all of their function's."""
        known = {item.nodeid for item in items if item.nodeid in self.place}
        functions = {test.partition("[")[0] for test in self.place if test not in known}
        kept = [item for item in items if item.nodeid in known or item.nodeid.partition("[")[0] in functions]
        items[:] = sorted(kept, key=lambda item: self.place.get(item.nodeid, len(self.place)))


def alone(job: Job) -> Job:
    """Write the module, and run its tests in a new process."""
    path = Path(job["path"])
    path.write_text(job["source"], "utf-8")
    stamp = int(job["stamp"])  # each text has a time of its own, or compiled files would be taken for it
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
    """The tests of a job in this process."""
    outcomes = Outcomes()
    files = list(dict.fromkeys(test.partition("::")[0] for test in job["tests"]))
    code = pytest.main([*_ARGUMENTS, "-x", *files], plugins=[Chosen(job["tests"]), outcomes])
    status = "survived" if code == pytest.ExitCode.OK else "killed" if code in _KILLED else "error"
    return {"status": status, "by": outcomes.failed}


def forked(job: Job, work: Callable[[Job], Job]) -> Job:
    """Do a job in a process of its own, as far as it ends in time, and end what that process started."""
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
    """Collect, then answer jobs; or run the tests of one job."""
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
