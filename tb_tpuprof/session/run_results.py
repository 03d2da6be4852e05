"""What several hosts' results are combined into, kept for the last choice of hosts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import RLock
from typing import Any, TypeVar
from weakref import ref

from tb_tpuprof.session.memory import Memory
from tb_tpuprof.trace.held import Sizes

T = TypeVar("T")


class RunResults:
    """Combined results of a run by name, within the memory that all sessions share. Thread-safe."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._kept: dict[Hashable, tuple[list[ref[Any]], Any]] = {}
        self._sizes = Sizes()
        self._lock = RLock()

    def get(self, name: str, inputs: Sequence[object], compute: Callable[[], T]) -> T:
        """`compute()`; kept until it is asked for with other inputs than these same objects."""
        with self._lock:
            former, result = self._kept.get(name, ([], None))
            is_same = len(former) == len(inputs) and name in self._kept
            if not is_same or any(a() is not b for a, b in zip(former, inputs, strict=True)):
                result = compute()
                self._kept[name] = [ref(one) for one in inputs], result
        self._memory.use(self, name)
        return result  # type: ignore[no-any-return]

    def bytes_of(self, part: Hashable) -> int:
        """About the memory of a result."""
        kept = self._kept.get(part)
        return self._sizes.total({part: kept[1]}, again=False) if kept else 0

    def drop(self, part: Hashable) -> bool:
        """Forget a result."""
        self._kept.pop(part, None)
        return True
