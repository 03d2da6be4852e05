"""An executor of this process and of others that help it, each doing one call after another.

This process works too: the others take as long to start as a dozen small hosts do. They are fresh ones, not
forks (a fork of a server with threads may hang), and know nothing of the program that runs here: what
`multiprocessing` starts imports its main module anew, be it a script without a guard or all of TensorBoard.
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

T = TypeVar("T")
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from tb_tpuprof.parallel.helpers import serve; serve()"


class Helped(Executor):
    """So many calls at a time: one in this process, each other in a process of its own. Functions and results
    must pickle.

    Another process has its next call before it is done with one: it would wait for the interpreter's lock
    here in between.
    """

    def __init__(self, n: int) -> None:
        self._helpers = [_Helper() for _ in range(n - 1)]
        self._free: SimpleQueue[_Helper | None] = SimpleQueue()
        places = (*self._helpers, *self._helpers, None)
        for place in places:
            self._free.put(place)
        self._threads = ThreadPoolExecutor(len(places))

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """As every executor; the future raises BrokenExecutor where the process that had the call
        has died.
        """
        return self._threads.submit(self._call, function, arguments, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Leave what has not begun undone, wait for the rest and end the processes."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for helper in self._helpers:
            helper.end()

    def _call(self, function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
        place = self._free.get()
        try:
            return place.call(function, arguments, named) if place else function(*arguments, **named)
        finally:
            self._free.put(place)


class _Helper:
    """Another process. It ends with this one, or sooner."""

    def __init__(self) -> None:
        arguments = [sys.executable, "-c", _CODE, *sys.path]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._questions: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._asking = Lock()
        self._before = Event()
        self._before.set()

    def call(self, function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
        """What the function returns or raises there. Raises BrokenExecutor where the process has died."""
        answered = Event()
        question = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        try:
            with self._asking:  # answers come in the order of the calls
                before, self._before = self._before, answered
                self._questions.write(question)
                self._questions.flush()
            before.wait()
            result, error, where = pickle.load(self._answers)
        except (
            OSError,
            EOFError,
            pickle.UnpicklingError,
        ) as broken:  # the last: it died in the middle of an answer
            self._process.kill()
            raise BrokenExecutor(f"a process has ended with the exit code {self._process.wait()}") from broken
        finally:
            answered.set()
        if error:
            raise error from RuntimeError(where)
        return result  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process and wait for that."""
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """What a helper does: calls come in on its standard input, answers go out on its output, until there is
    nothing more to read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the process that asks, and with it this one
    questions = sys.stdin.buffer
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
        while True:
            try:
                function, arguments, named = pickle.load(questions)
            except EOFError:
                return
            try:
                answer = pickle.dumps((function(*arguments, **named), None, ""), pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # whoever called is to see it
                answer = pickle.dumps((None, error, traceback.format_exc()), pickle.HIGHEST_PROTOCOL)
            answers.write(answer)
            answers.flush()
