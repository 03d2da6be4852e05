"""Events that carry several stats at once: joins of the sparse stat columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import ascends, look_up, number, rows_of
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]

_MIX = np.int64(-7046029254386353131)  # the golden ratio's 64 bits: spreads a combined key


def first_ints(trace: Trace, key: str) -> tuple[Rows, Keys]:
    """Events that have an integer stat and its value, each event once (the first of several values)."""
    sparse = trace.event_stats.ints(key)
    owner, value = sparse.owner, sparse.value.astype(np.int64, copy=False)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    return owner, value


def events_with(trace: Trace, *keys: str) -> tuple[Rows, Keys]:
    """Events that have all of the integer stats, and one number that stands for their values together.

    Two events have the same number when all their values are equal (and else only by an accident of 1 in
    2^64).
    """
    owner, combined = first_ints(trace, keys[0])
    for key in keys[1:]:
        other, value = first_ints(trace, key)
        if len(other) == len(owner) and np.array_equal(other, owner):
            combined = mix(combined, value)
            continue
        owner, mine, theirs = np.intersect1d(owner, other, assume_unique=True, return_indices=True)
        combined = mix(combined[mine], value[theirs])
    return owner, combined


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Distinct values, ascending. For many values that are mostly distinct this beats np.unique's hashing
    several times.
    """
    ordered = np.sort(values)
    first: npt.NDArray[np.bool_] = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    kept: npt.NDArray[np.int64] = ordered[first]
    return kept


def distinct_codes(values: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct values, ascending, and which of them each value is."""
    found, codes = number(np.ascontiguousarray(values, np.int64))
    return found, codes.astype(np.int64)


def marked(rows: npt.NDArray[np.integer], n: int) -> npt.NDArray[np.intp]:
    """Distinct rows of a table of n rows, ascending."""
    mark = np.zeros(n, np.bool_)
    mark[rows] = True
    return np.flatnonzero(mark)


def mix(first: Keys, second: Keys) -> Keys:
    """One number of two; wraps around on purpose."""
    with np.errstate(over="ignore"):
        mixed: Keys = first * _MIX + second
    return mixed


def values_at(rows: npt.NDArray[np.integer], owner: Rows, value: Keys, missing: int) -> Keys:
    """The value of each row, `missing` where it has none. `owner` ascends."""
    if len(owner) == len(rows) and np.array_equal(owner, rows):
        return value.astype(np.int64)
    known: Keys = look_up(
        np.ascontiguousarray(owner, np.int32),
        np.ascontiguousarray(value, np.int64),
        np.ascontiguousarray(rows),
        missing,
    )
    return known


def consecutive(rows: Rows) -> Rows | slice:
    """Distinct rows to index a column with: a slice, which copies nothing, where they follow one another."""
    n = len(rows)
    is_run = n > 0 and int(rows[-1]) - int(rows[0]) == n - 1 and bool((rows[1:] > rows[:-1]).all())
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_run else rows


def metadata_named(trace: Trace, names: frozenset[str] | tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """For each row of `metadata`, whether its name is one of the given."""
    ids = [i for i in (trace.strings.find(name) for name in names) if i >= 0]
    return np.isin(trace.metadata["name"], np.array(ids, np.int32))


def events_named(trace: Trace, names: frozenset[str] | tuple[str, ...]) -> npt.NDArray[np.intp]:
    """Events called by one of the names, ascending."""
    wanted = metadata_named(trace, names)
    rows: npt.NDArray[np.intp] = (
        rows_of(trace.events["metadata"], wanted.view(np.uint8)) if wanted.any() else np.empty(0, np.intp)
    )
    return rows
