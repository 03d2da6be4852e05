"""Estimates the memory of results within microseconds: long lists are extrapolated from a few elements."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from threading import Lock
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_SAMPLE = 16  # elements that stand for all of a list
_MOST_OBJECTS = 2000
_NO_DATA = (type, FunctionType, ModuleType)


def held_bytes(value: object, counted: Iterable[object] = ()) -> int:
    """About how many bytes an object keeps in memory, with all that it refers to.

    Left out are `counted` arrays (also views of them) and objects whose class sets `COUNTED_APART`: a trace
    and a program are counted where they are kept. Long lists and dicts are extrapolated from 16 elements.
    """
    seen = {id(_root(one)) for one in counted}
    waiting: list[tuple[object, float]] = [(value, 1.0)]
    total = 0.0
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            break
        one, weight = waiting.pop()
        root = _root(one)
        if id(root) in seen or isinstance(one, _NO_DATA) or getattr(type(one), "COUNTED_APART", False):
            continue
        seen.add(id(root))
        total += weight * (root.nbytes if isinstance(root, np.ndarray) else sys.getsizeof(root))
        parts, n_alike = _parts(root)
        waiting += [(part, weight * n_alike) for part in parts if part is not None]
    return int(total)


class Sizes:
    """Bytes of objects by name. Each is measured when it is first seen; with `again`, one more each time, so
    that what grows is noticed.
    """

    def __init__(self) -> None:
        self._sizes: dict[Hashable, tuple[int, int]] = {}
        self._n_calls = 0
        self._lock = Lock()

    def total(
        self, items: Mapping[Hashable, object], counted: Iterable[object] = (), again: bool = True
    ) -> int:
        """Bytes of all objects together."""
        present = [name for name, value in items.items() if value is not None]
        with self._lock:
            self._n_calls += 1
            n_again = self._n_calls % len(present) if again and present else -1
            former, self._sizes = self._sizes, {}
            for i, name in enumerate(present):
                identity, size = former.get(name, (0, 0))
                is_measured = identity == id(items[name]) and i != n_again
                self._sizes[name] = (
                    id(items[name]),
                    size if is_measured else held_bytes(items[name], counted),
                )
            return sum(size for _, size in self._sizes.values())


def _root(value: object) -> Any:
    """The array that owns the memory of a view; every other object itself."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


def _parts(value: object) -> tuple[list[object], float]:
    """(what an object refers to, or a sample of it; how many parts each of them stands for)."""
    if isinstance(value, dict):
        half = _SAMPLE // 2 if len(value) > _SAMPLE else len(value)
        names = {**dict.fromkeys(itertools.islice(value, half)), **dict.fromkeys(_last(value, half))}
        pairs = itertools.chain.from_iterable((name, value.get(name)) for name in names)
        return list(pairs), len(value) / max(len(names), 1)
    if isinstance(value, (list, tuple)):
        sample = value if len(value) <= _SAMPLE else value[:: -(-len(value) // _SAMPLE)]
        return list(sample), len(value) / max(len(sample), 1)
    if isinstance(value, Set):
        sample = tuple(itertools.islice(value, _SAMPLE))
        return list(sample), len(value) / max(len(sample), 1)
    slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *slots], 1.0


def _last(value: dict[Any, Any], n: int) -> Iterator[Any]:
    return itertools.islice(reversed(value), n)
