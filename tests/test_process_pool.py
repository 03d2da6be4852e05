"""Processes that help: answers and errors come back, nothing is lost to what is printed, and no process is
left behind.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tb_tpuprof.errors import ExecutorFailed, TraceFormatError
from tb_tpuprof.parallel.process_pool import ProcessPool


def where(seconds: float = 0.0) -> int:
    """The process that calls, after a while."""
    time.sleep(seconds)
    return os.getpid()


def noisy(text: str) -> str:
    """Print as a library may, from Python and from below it."""
    print(text, flush=True)
    os.write(1, text.encode())
    return text.upper()


def bad(path: str) -> None:
    """What the decoder raises."""
    raise TraceFormatError(path, 7, "is damaged")


def odd() -> None:
    """A fault of ours."""
    raise ZeroDivisionError("by accident")


def test_calls_run_here_and_in_other_processes_which_end() -> None:
    with ProcessPool(3) as pool:
        seen = {done.result() for done in [pool.submit(where, seconds=0.2) for _ in range(12)]}
    assert len(seen) == 3
    assert os.getpid() in seen
    for process in seen - {os.getpid()}:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def blas_threads() -> str | None:
    """How many threads NumPy's BLAS is to start in the process that calls."""
    return os.environ.get("OPENBLAS_NUM_THREADS")


@pytest.mark.parametrize(("set_to", "expected"), [(None, "1"), ("3", "3")])
def test_other_processes_start_no_blas_threads_unless_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, set_to: str | None, expected: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if set_to:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", set_to)
    with ProcessPool(2) as pool:
        assert pool._workers[0].call(blas_threads, (), {}) == expected
        assert blas_threads() == set_to


def late(i: int) -> int:
    """A number, after a while that differs."""
    time.sleep(0.001 * (i * 7 % 5))
    return i


def test_each_call_has_its_own_answer() -> None:
    with ProcessPool(3) as pool:
        assert list(pool.map(late, range(200))) == list(range(200))


def test_what_is_printed_is_no_answer() -> None:
    with ProcessPool(2) as pool:
        assert {done.result() for done in [pool.submit(noisy, "x" * 100_000) for _ in range(20)]} == {
            "X" * 100_000
        }


@pytest.mark.parametrize("n", [1, 2])
def test_what_is_raised_there_is_raised_here(n: int) -> None:
    with ProcessPool(n) as pool:
        for done in [pool.submit(bad, "host.xplane.pb") for _ in range(9)]:
            with pytest.raises(TraceFormatError, match=r"host\.xplane\.pb.*is damaged"):
                done.result()
        faults = [pool.submit(odd).exception() for _ in range(9)]
        assert all(type(fault) is ZeroDivisionError for fault in faults)
        assert pool.submit(where).result(), "it goes on"


def test_where_a_fault_was_is_told() -> None:
    with ProcessPool(2) as pool:
        faults = [pool.submit(odd).exception() for _ in range(6)]
    assert any("in odd" in str(fault.__cause__) for fault in faults if fault)


def test_what_cannot_travel_is_an_error_of_its_call() -> None:
    with ProcessPool(2) as pool:
        errors = [pool.submit(unpicklable).exception() for _ in range(6)]
        with pytest.raises((pickle.PicklingError, AttributeError)):
            [done.result() for done in [pool.submit(lambda: None) for _ in range(6)]]
        assert list(pool.map(late, range(6))) == list(range(6)), "it goes on"
    assert any(errors)


def unpicklable() -> object:
    """Only of use where it was made."""
    return threading.Lock()


def test_a_call_that_ends_its_processes_fails_alone() -> None:
    """In another process, it ends that one and the next; in this process it only waits."""
    with ProcessPool(3) as pool:
        fatal = [pool.submit(end_helper, os.getpid()) for _ in range(4)]
        harmless = [pool.submit(abs, -number) for number in range(20)]
        errors = [call.exception() for call in fatal]
        assert [call.result() for call in harmless] == list(range(20))
    failed = [error for error in errors if error]
    assert failed
    assert all(isinstance(error, ExecutorFailed) for error in failed)
    assert all("exit code 9" in str(error) and error.remedy for error in failed)


def test_a_process_that_is_killed_loses_no_call(tmp_path: Path) -> None:
    """The first of three calls that runs in another process is killed with it."""
    with ProcessPool(3) as pool:
        calls = [pool.submit(killed_once, os.getpid(), str(tmp_path / "mark")) for n in range(3)]
        others = [pool.submit(abs, -number) for number in range(30)]
        assert [call.result() for call in calls] == ["done"] * 3
        assert [call.result() for call in others] == list(range(30))


def killed_once(process: int, mark: str) -> str:
    """Die as after `kill -9`, except in the given process or if the mark exists."""
    if os.getpid() != process and not os.path.exists(mark):
        with open(mark, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
    return "done"


def end_helper(process: int) -> None:
    """End the process that calls, unless it is this one."""
    if os.getpid() != process:
        os._exit(9)
    time.sleep(0.3)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the pipe there")
def test_an_answer_that_breaks_off_is_no_answer() -> None:
    with ProcessPool(2) as pool:
        errors = [call.exception() for call in [pool.submit(half_an_answer, os.getpid()) for _ in range(6)]]
    assert any(errors)
    assert all(error is None or isinstance(error, ExecutorFailed) for error in errors)


def half_an_answer(process: int) -> None:
    """Write the beginning of a pickle where the answers go, and end; in the first process only wait."""
    if os.getpid() == process:
        time.sleep(0.3)
        return
    answers = max(
        int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")
    )
    os.write(answers, pickle.dumps(["x"] * 1000)[:20])
    os._exit(5)


def test_what_has_not_begun_is_left_when_the_question_is() -> None:
    begin = time.perf_counter()
    with ProcessPool(2) as pool:
        for _ in range(100):
            pool.submit(time.sleep, 0.3)
    assert time.perf_counter() - begin < 10


SCRIPT = """
import os, sys, time
from tb_tpuprof.parallel.process_pool import ProcessPool
pool = ProcessPool(2)
print(pool._workers[0]._process.pid, flush=True)
time.sleep(60)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """However it ends: nobody is left to close anything when it is killed."""
    (tmp_path / "script.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    helper = int(child.stdout.readline())
    child.kill()
    child.communicate()
    for _ in range(200):
        if not is_running(helper):
            return
        time.sleep(0.05)
    pytest.fail("the helper still runs")


def is_running(process: int) -> bool:
    """Whether there is such a process that is more than an entry that its parent has not fetched yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
