"""A wish to stop, told to everybody who works on a capture: calls are cut off at once, waits end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Set once, from any thread; never unset."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], object]] = []

    def set(self) -> None:
        """Ask everybody to stop; returns when all calls under way have been cut off."""
        with self._lock:
            self._event.set()
            actions, self._actions = self._actions, []
        for action in actions:
            action()

    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until somebody asks; whether somebody did."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, action: Callable[[], object]) -> Iterator[None]:
        """Within the block, `action` is called when somebody asks, at once if somebody has."""
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
