"""Rows that pieces of a stream have in common → one number for each, in the order of their first appearance;
and the places of rows that are put together line by line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import Interner, repeated

Ints = npt.NDArray[np.int64]
_WORD_BYTES = 8


class DistinctRows:
    """Rows of integers → numbers: equal rows have the same one, whichever piece they are from."""

    def __init__(self) -> None:
        self._interner = Interner(int.from_bytes(os.urandom(8), "little"))

    def __len__(self) -> int:
        return len(self._interner)

    def add(self, *columns: npt.NDArray[np.integer[Any]]) -> Ints:
        """The number of each row of equally long columns."""
        rows = np.stack([column.astype(np.int64) for column in columns], axis=1)
        return self.add_uneven(rows.reshape(-1), np.arange(len(rows) + 1) * len(columns))

    def add_uneven(self, values: Ints, offsets: Ints) -> Ints:
        """The number of each row; row i is values[offsets[i]:offsets[i + 1]]."""
        data = np.ascontiguousarray(values).view(np.uint8)
        numbers = self._interner.add(data, offsets[:-1] * _WORD_BYTES, np.diff(offsets) * _WORD_BYTES)
        return np.asarray(numbers, np.int64)


class DistinctEntries:
    """Like `DistinctRows`, but equal rows of one piece stay apart: the second one in a piece is the second
    one in any other.
    """

    def __init__(self) -> None:
        self._rows, self._entries = DistinctRows(), DistinctRows()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, *columns: npt.NDArray[np.integer[Any]]) -> Ints:
        """The number of each row of a piece's equally long columns."""
        return self._apart(self._rows.add(*columns))

    def add_uneven(self, values: Ints, offsets: Ints) -> Ints:
        """The number of each row of a piece; row i is values[offsets[i]:offsets[i + 1]]."""
        return self._apart(self._rows.add_uneven(values, offsets))

    def _apart(self, rows: Ints) -> Ints:
        return self._entries.add(rows, n_equal_before(rows))


class GrownColumns:
    """Columns to which each piece adds rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}

    def add(self, rows: npt.NDArray[Any], **columns: npt.NDArray[Any]) -> None:
        """Add these rows of the columns."""
        for name, parts in self._parts.items():
            parts.append(columns[name][rows])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([np.empty(0, np.int64), *self._parts[name]]).astype(np.int64)


def n_equal_before(values: Ints) -> Ints:
    """For each value, how many earlier ones are equal to it."""
    n = len(values)
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])[:n])
    result = np.empty(n, np.int64)
    result[order] = np.arange(n) - np.repeat(first, np.diff(np.append(first, n)))
    return np.asarray(result, np.int64)


def unique_ids(group: Ints, ids: Ints) -> Ints:
    """Ids that differ within their group: the first one of equal ids stays, each other one becomes the least
    positive number that its group does not use.
    """
    result: Ints = ids.copy()
    order = np.lexsort((ids, group))
    is_repeated = (group[order][1:] == group[order][:-1]) & (ids[order][1:] == ids[order][:-1])
    repeated_rows = np.sort(order[1:][is_repeated])
    for one in np.unique(group[repeated_rows]).tolist():
        rows = repeated_rows[group[repeated_rows] == one]
        used = np.unique(ids[group == one])
        free = np.setdiff1d(np.arange(1, len(used) + len(rows) + 1), used, assume_unique=True)
        result[rows] = free[: len(rows)]
    return np.asarray(result, np.int64)


def places(lines: Sequence[Ints], counts: Sequence[Ints], n_lines: int) -> tuple[Ints, list[Ints]]:
    """Where rows go that are put together line by line, within a line piece by piece.

    `lines` and `counts`: for each piece its lines' rows in the whole, and how many rows each of them has.
    Returns (the first row of each line, and one past the last; for each piece and line of it, what is added
    to a row's number in the piece).
    """
    totals = np.zeros(n_lines, np.int64)
    for rows, n in zip(lines, counts, strict=True):
        np.add.at(totals, rows, n)
    first = np.append(0, np.cumsum(totals))
    following, shifts = first[:-1].copy(), []
    for rows, n in zip(lines, counts, strict=True):
        shifts.append(following[rows] - (np.cumsum(n) - n))
        np.add.at(following, rows, n)
    return first, shifts


def moved_rows(shifts: Ints, counts: Ints) -> Ints:
    """The new row of each row of a piece, whose lines have `counts` rows."""
    rows: Ints = repeated(shifts.astype(np.int32), counts).astype(np.int64)
    rows += np.arange(len(rows))
    return rows
