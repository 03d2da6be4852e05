"""One memory budget for everything that sessions keep: traces, outlines, programs, results and graphs."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Protocol
from weakref import ref

from tb_tpuprof.native.machine_memory import memory_budget

_PAUSE_S = 0.1


class Keeper(Protocol):
    """Keeps parts that can be computed again."""

    def bytes_of(self, part: Hashable) -> int:
        """Memory of a part, 0 if it is gone. Takes microseconds."""
        ...

    def drop(self, part: Hashable) -> bool:
        """Forget a part; False while it is in use."""
        ...


_Key = tuple["ref[Keeper]", Hashable]


class Memory:
    """The parts that keepers keep, at most `limit_bytes` (0: `memory_budget`) together: the least recently
    used is dropped first. The one used last stays, whatever its size. Thread-safe; keeps no keeper alive.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = memory_budget() if limit_bytes is None else limit_bytes
        self._sizes: OrderedDict[_Key, int] = OrderedDict()
        self._used: set[_Key] = set()
        self._lasting: set[_Key] = set()
        self._lock = Lock()
        self._is_new = True
        self._total, self._measured_at = 0, 0.0

    def use(self, keeper: Keeper, part: Hashable, is_lasting: bool = False) -> None:
        """A part is kept and was used. `is_lasting`: it is dropped only between requests."""
        key = (ref(keeper), part)
        with self._lock:
            if key not in self._sizes:
                self._is_new = True
                self._sizes[key] = 0
            self._sizes.move_to_end(key)
            self._used.add(key)
            if is_lasting:
                self._lasting.add(key)

    def trim(self, is_between_requests: bool = False) -> None:
        """Drop parts until the rest is within the limit. Only parts that were used since the last request
        are measured again; of quick requests that keep nothing new, not every one measures.
        """
        if is_between_requests and self._is_surely_within():
            return
        total = self.size_bytes
        with self._lock:
            if is_between_requests:
                self._used.clear()
            lasting = set() if is_between_requests else self._lasting
            droppable = [key for key in list(self._sizes)[:-1] if key not in lasting]
        for key in droppable:
            if total <= self.limit_bytes:
                break
            keeper = key[0]()
            if keeper is None or keeper.drop(key[1]):
                total -= self._forget(key)

    @property
    def size_bytes(self) -> int:
        """Memory of all parts."""
        with self._lock:
            used, self._is_new = list(self._used), False
        sizes = {key: keeper.bytes_of(key[1]) for key in used if (keeper := key[0]())}
        for key in used:
            if not sizes.get(key):
                self._forget(key)
        with self._lock:
            self._sizes.update((key, size) for key, size in sizes.items() if key in self._sizes)
            gone = [key for key in self._sizes if key[0]() is None]
            for key in gone:
                del self._sizes[key]
            self._total, self._measured_at = sum(self._sizes.values()), time.monotonic()
            return self._total

    def _is_surely_within(self) -> bool:
        is_recent = time.monotonic() - self._measured_at < _PAUSE_S
        return is_recent and not self._is_new and self._total <= self.limit_bytes // 2

    def _forget(self, key: _Key) -> int:
        with self._lock:
            self._used.discard(key)
            self._lasting.discard(key)
            return self._sizes.pop(key, 0)
