"""Cancellation token shared by all threads of a capture: setting it aborts calls at once and ends waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """A cancellation token. Any thread can set it, once; it is never reset."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], object]] = []

    def set(self) -> None:
        """Request cancellation; returns after all calls in progress have been aborted."""
        with self._lock:
            self._event.set()
            actions, self._actions = self._actions, []
        for action in actions:
            action()

    def is_set(self) -> bool:
        """Whether cancellation was requested."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until cancellation is requested, at most `seconds`; returns whether it was."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, action: Callable[[], object]) -> Iterator[None]:
        """Context manager: calls `action` on cancellation, at once if it was already requested."""
        with self._lock:
            is_late = self._event.is_set()
            if not is_late:
                self._actions.append(action)
        if is_late:
            action()
        try:
            yield
        finally:
            with self._lock:
                if action in self._actions:
                    self._actions.remove(action)
