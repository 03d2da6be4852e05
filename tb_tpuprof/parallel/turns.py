"""Releases the GIL more often while requests are computed, so that small requests do not wait for large ones.

A thread that needs the GIL waits one switch interval for each running thread ahead of it. A small request
acquires it ten times or more (connection, thread, each file, each array): with Python's interval of 5 ms, it
takes 50 ms and more while another thread computes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

TURN_S = 0.0005
_HALF_US = 5e-7


class Turns:
    """Shortens the switch interval during work and restores it afterwards. Thread-safe."""

    def __init__(self) -> None:
        self._n_working = 0
        self._usual_s = 0.0
        self._lock = Lock()

    @contextmanager
    def short(self) -> Iterator[None]:
        """Context manager: the switch interval is at most `TURN_S` seconds."""
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
    sys.setswitchinterval(seconds + _HALF_US)  # Python truncates to whole microseconds


TURNS = Turns()
