"""An executor that uses this process and others, each of which runs one call at a time.

This process works too: the others take as long to start as a dozen small hosts take to analyze. They are
fresh processes, not forks (a fork of a server with threads may hang), and do not import the program that runs
here, as those of `multiprocessing` do: it may be a script without a guard, or all of TensorBoard.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, TypeVar

from tb_tpuprof.errors import ExecutorFailed

T = TypeVar("T")
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from tb_tpuprof.parallel.process_pool import work; work()"
# No analysis uses NumPy's BLAS, whose threads would spin while the others start.
_WITHOUT_BLAS_THREADS = {"OPENBLAS_NUM_THREADS": "1"}


class ProcessPool(Executor):
    """Runs `n_processes` calls at a time: one in this process, the others each in a separate process.
    Functions and results must pickle.

    Another process receives its next call before it is done with the current one: otherwise it would wait for
    this process's interpreter lock in between.
    """

    def __init__(self, n_processes: int) -> None:
        self._workers = [_Worker() for _ in range(n_processes - 1)]
        self._free: SimpleQueue[_Worker | None] = SimpleQueue()
        slots = (*self._workers, *self._workers, None)
        for slot in slots:
            self._free.put(slot)
        self._threads = ThreadPoolExecutor(len(slots))

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """As for every executor. A call whose process dies runs again in a process of its own; the future
        raises ExecutorFailed if that dies, too.
        """
        return self._threads.submit(self._call, function, arguments, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Cancel what has not begun, wait for the rest and end the processes."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for worker in self._workers:
            worker.end()

    def _call(self, function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
        slot = self._free.get()
        try:
            if slot is None:
                return function(*arguments, **named)
            try:
                return slot.call(function, arguments, named)
            except BrokenExecutor:  # by this call, or by the one before it in the same process
                slot.revive()
            return _call_alone(function, arguments, named)
        finally:
            self._free.put(slot)


def _call_alone(function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
    """Run a call in a new process that runs nothing else."""
    worker = _Worker()
    try:
        return worker.call(function, arguments, named)
    except BrokenExecutor as error:
        remedy = "Memory may be short: close other programs, or open fewer hosts at once."
        raise ExecutorFailed(f"Two processes that analyzed it ended: {error}.", remedy) from error
    finally:
        worker.end()


class _Worker:
    """Another process. It ends with this one, or sooner."""

    def __init__(self) -> None:
        self._sending = Lock()
        self._start()

    def _start(self) -> None:
        arguments = [sys.executable, "-c", _CODE, *sys.path]
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_WITHOUT_BLAS_THREADS | os.environ
        )
        self._calls: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._previous = Event()
        self._previous.set()

    def revive(self) -> None:
        """Start the process again, unless another call has already done so."""
        with self._sending:
            if self._process.poll() is not None:
                self._process.communicate()
                self._start()

    def call(self, function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
        """Return or raise what the function does in the other process. Raises BrokenExecutor if that
        process dies.
        """
        answered = Event()
        process = self._process
        call = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        try:
            with self._sending:  # answers arrive in the order of the calls
                process, answers = self._process, self._answers
                previous, self._previous = self._previous, answered
                self._calls.write(call)
                self._calls.flush()
            previous.wait()
            result, error, where = pickle.load(answers)
        except (
            OSError,
            EOFError,
            ValueError,
            pickle.UnpicklingError,
        ) as broken:  # the last: it died while answering
            process.kill()
            raise BrokenExecutor(f"a process has ended with the exit code {process.wait()}") from broken
        finally:
            answered.set()
        if error:
            raise error from RuntimeError(where)
        return result  # type: ignore[no-any-return]

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self._process.kill()
        self._process.communicate()


def work() -> None:
    """The main loop of a worker process: calls arrive on its standard input, answers leave on its standard
    output, until the input ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the calling process, which ends this one
    calls = sys.stdin.buffer
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print must not mix with answers
        while True:
            try:
                function, arguments, named = pickle.load(calls)
            except EOFError:
                return
            try:
                answer = pickle.dumps((function(*arguments, **named), None, ""), pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # raised again in the calling process
                answer = pickle.dumps((None, error, traceback.format_exc()), pickle.HIGHEST_PROTOCOL)
            answers.write(answer)
            answers.flush()
