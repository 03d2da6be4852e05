"""Short turns of the interpreter's lock while requests are computed, so that small ones do not wait for large
ones.

A thread that needs the lock waits one turn for each thread of Python code before it. A small request needs
the lock ten times or more (a connection, its thread, each file, each array): with Python's turns of 5 ms it
takes 50 ms and more beside a thread that computes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

TURN_S = 0.0005
_HALF_US = 5e-7


class Turns:
    """Makes the turns short while there is work; afterwards they are what they were. Thread-safe."""

    def __init__(self) -> None:
        self._n_working = 0
        self._usual_s = 0.0
        self._lock = Lock()

    @contextmanager
    def short(self) -> Iterator[None]:
        """In this context, turns take at most `TURN_S` seconds."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            if not self._n_working:
                self._usual_s = sys.getswitchinterval()
                _set(min(TURN_S, self._usual_s))
            self._n_working += by
            if not self._n_working:
                _set(self._usual_s)


def _set(seconds: float) -> None:
    sys.setswitchinterval(seconds + _HALF_US)  # it cuts to whole microseconds


TURNS = Turns()
