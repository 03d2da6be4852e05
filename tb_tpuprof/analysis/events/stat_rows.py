"""Stats of events as columns, and joins of these sparse columns for events that have several stats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import ascends, look_up, number, rows_of
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]

_MIX = np.int64(-7046029254386353131)  # 64 bits of the golden ratio: spreads a combined key


def first_ints(trace: Trace, key: str) -> tuple[Rows, Keys]:
    """Events that have an integer stat, and its value: each event once, with the first of several values."""
    sparse = trace.event_stats.ints(key)
    owner, value = sparse.owner, sparse.value.astype(np.int64, copy=False)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    return owner, value


def events_with(trace: Trace, *keys: str) -> tuple[Rows, Keys]:
    """Events that have all of the integer stats, and one number per event that combines their values.

    Two events have the same number if all their values are equal (if not, with a probability of 1 in 2^64).
    """
    owner, combined = first_ints(trace, keys[0])
    for key in keys[1:]:
        other, value = first_ints(trace, key)
        if len(other) == len(owner) and np.array_equal(other, owner):
            combined = mix(combined, value)
            continue
        owner, in_owner, in_other = np.intersect1d(owner, other, assume_unique=True, return_indices=True)
        combined = mix(combined[in_owner], value[in_other])
    return owner, combined


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Distinct values, ascending. For many, mostly distinct values this is several times faster than
    np.unique's hashing.
    """
    ordered = np.sort(values)
    is_first: npt.NDArray[np.bool_] = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    result: npt.NDArray[np.int64] = ordered[is_first]
    return result


def distinct_codes(values: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(distinct values, ascending; for each value its index among them)."""
    ordered, codes = number(np.ascontiguousarray(values, np.int64))
    return ordered, codes.astype(np.int64)


def marked(rows: npt.NDArray[np.integer], n: int) -> npt.NDArray[np.intp]:
    """Distinct `rows` of a table of n rows, ascending; linear in n."""
    mark = np.zeros(n, np.bool_)
    mark[rows] = True
    return np.flatnonzero(mark)


def mix(first: Keys, second: Keys) -> Keys:
    """Combine two numbers into one; wraps around on purpose."""
    with np.errstate(over="ignore"):
        mixed: Keys = first * _MIX + second
    return mixed


def values_at(rows: npt.NDArray[np.integer], owner: Rows, value: Keys, missing: int) -> Keys:
    """The value of each row, `missing` where it has none. `owner` must ascend."""
    if len(owner) == len(rows) and np.array_equal(owner, rows):
        return value.astype(np.int64)
    result: Keys = look_up(
        np.ascontiguousarray(owner, np.int32),
        np.ascontiguousarray(value, np.int64),
        np.ascontiguousarray(rows),
        missing,
    )
    return result


def consecutive(rows: Rows) -> Rows | slice:
    """An index for distinct rows of a column: a slice, which copies nothing, if they are consecutive, else
    the rows.
    """
    n = len(rows)
    is_run = n > 0 and int(rows[-1]) - int(rows[0]) == n - 1 and bool((rows[1:] > rows[:-1]).all())
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_run else rows


def metadata_named(trace: Trace, names: frozenset[str] | tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """For each row of `metadata`, whether its name is one of `names`."""
    ids = [i for i in (trace.strings.find(name) for name in names) if i >= 0]
    return np.isin(trace.metadata["name"], np.array(ids, np.int32))


def events_named(trace: Trace, names: frozenset[str] | tuple[str, ...]) -> npt.NDArray[np.intp]:
    """Events with one of the names, ascending."""
    return events_of(trace, metadata_named(trace, names))


def events_of(trace: Trace, is_chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Events whose metadata row is chosen, ascending."""
    if not is_chosen.any():
        return np.empty(0, np.intp)
    rows: npt.NDArray[np.intp] = rows_of(trace.events["metadata"], is_chosen.view(np.uint8))
    return rows.astype(np.intp, copy=False)
