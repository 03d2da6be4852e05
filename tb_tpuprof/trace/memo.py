"""Results of pure functions of one object, kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from threading import Lock, RLock
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Memo:
    """Computes each function of its object once, also where several threads ask for it at the same time."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, RLock] = {}
        self._lock = Lock()

    @property
    def results(self) -> Mapping[Hashable, Any]:
        """What is kept, by function."""
        return self._results.copy()

    def get(self, function: Callable[[S], T], subject: S) -> T:
        """`function(subject)`, computed by the first caller. What the function raises is not kept."""
        if function in self._results:
            return self._results[function]  # type: ignore[no-any-return]
        with self._lock:
            lock = self._locks.setdefault(function, RLock())
        with lock:
            if function not in self._results:
                self._results[function] = function(subject)
            return self._results[function]  # type: ignore[no-any-return]
