"""Stats (the key-value pairs of events, metadata and planes) as sparse columns: the rows that have a key, and
its value for each.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import look_up
from tb_tpuprof.trace.schema import BYTES, DOUBLE, TEXT, UINT
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table

Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]
_CHUNK = 1 << 14
_NO_NUMBER = int(np.iinfo(np.int64).min)
_NAN_BITS = int(np.array([np.nan]).view(np.int64)[0])


class Sparse(NamedTuple):
    """Rows that have a stat (ascending) and the value of each."""

    owner: npt.NDArray[np.int32]
    value: npt.NDArray[np.int64] | npt.NDArray[np.float64]


class StatColumns(NamedTuple):
    """The stats of one key: the columns of STATS except `key`."""

    owner: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]


class StatsByKey(Protocol):
    """Stats that become columns when they are requested."""

    @property
    def size_bytes(self) -> int:
        """Memory of all columns."""
        ...

    @property
    def keys(self) -> list[int]:
        """The keys (string ids), ascending."""
        ...

    def columns(self, key: int) -> StatColumns | None:
        """The columns of one key (a string id); None if no stat has it."""
        ...

    def table(self) -> Table:
        """All stats, sorted by (key, owner)."""
        ...

    def at(self, key: int, rows: Rows) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
        """(kind, value of each of a few rows, whether the row has one), if all values of the key are integers
        or all are texts, and no row has two.

        None if the answer takes columns.
        """
        ...


def all_of(stats: Table | StatsByKey) -> Table:
    """All stats as one table."""
    return stats if isinstance(stats, Table) else stats.table()


class StatTable:
    """A table of STATS, sorted by (key, owner), queried by key. A stat that a row has twice keeps both
    entries, in the file's order.
    """

    def __init__(self, stats: Table | StatsByKey, strings: Strings) -> None:
        self.stats = stats
        self.strings = strings
        self._kinds_of_key: dict[str, tuple[int, int]] = {}

    @cached_property
    def table(self) -> Table:
        """The whole table. Requests every column if stats become columns one by one."""
        return all_of(self.stats)

    @property
    def size_bytes(self) -> int:
        """Memory of all columns."""
        return self.stats.size_bytes

    def rows(self, key: str) -> slice:
        """Rows of the table with this key."""
        string = self.strings.find(key)
        if string < 0:
            return slice(0, 0)
        keys = self.table["key"]
        # Another dtype would copy all the keys.
        first, last = np.searchsorted(keys, np.array([string, string + 1], keys.dtype))
        return slice(int(first), int(last))

    def columns(self, key: str) -> StatColumns:
        """All stats of a key, of any kind; do not write to them."""
        return self._of(key)

    def names(self) -> list[str]:
        """The names of all keys."""
        keys = np.unique(self.table["key"]).tolist() if self._is_table else self.stats.keys  # type: ignore[union-attr]
        return [self.strings.get(key) for key in keys]

    @property
    def _is_table(self) -> bool:
        return isinstance(self.stats, Table) or "table" in self.__dict__

    def has(self, key: str) -> bool:
        """Whether any row has the stat."""
        return len(self._of(key).owner) > 0

    def ints(self, key: str) -> Sparse:
        """Numbers as int64 (doubles truncated, uint64 bits kept), without texts and bytes."""
        owner, kind, value, _ = self._of(key)
        least, most = self._kinds(key, kind)
        if least > DOUBLE and most < TEXT:
            return Sparse(owner, value)
        is_double = kind == DOUBLE
        if is_double.any():
            value = value.copy()
            with np.errstate(invalid="ignore"):
                value[is_double] = (
                    np.nan_to_num(value[is_double].view(np.float64))
                    .clip(-(2.0**62), 2.0**62)
                    .astype(np.int64)
                )
        numeric = kind < TEXT
        return Sparse(owner, value) if numeric.all() else Sparse(owner[numeric], value[numeric])

    def floats(self, key: str) -> Sparse:
        """Numbers as float64, without texts and bytes."""
        owner, kind, value, _ = self._of(key)
        if self._kinds(key, kind)[1] >= TEXT:
            numeric = kind < TEXT
            owner, kind, value = owner[numeric], kind[numeric], value[numeric]
        is_double = kind == DOUBLE
        if is_double.all():
            return Sparse(owner, value.view(np.float64))
        return Sparse(owner, np.where(is_double, value.view(np.float64), value.astype(np.float64)))

    def texts(self, key: str) -> Sparse:
        """String ids of text values, without numbers and bytes."""
        owner, kind, value, _ = self._of(key)
        if self._kinds(key, kind) == (TEXT, TEXT):
            return Sparse(owner, value)
        is_text = kind == TEXT
        return Sparse(owner[is_text], value[is_text])

    def ints_at(self, key: str, rows: Rows, missing: int = -1) -> npt.NDArray[np.int64]:
        """The first number of each row, as in `ints`; `missing` if it has none. Do not write to the result:
        it may be the table's column.
        """
        if (direct := self._values_at(key, rows)) is not None:
            kind, values, is_there = direct
            return np.where(is_there & (kind < TEXT), values, missing)
        sparse = self.ints(key)
        return _first_values(sparse.owner, sparse.value.astype(np.int64, copy=False), rows, missing)

    def floats_at(self, key: str, rows: Rows) -> npt.NDArray[np.float64]:
        """The first number of each row, NaN if it has none. Do not write to the result."""
        if (direct := self._values_at(key, rows)) is not None:
            return np.where(direct[2] & (direct[0] < TEXT), direct[1], np.nan)
        owner, kind, value, _ = self._of(key)
        least, most = self._kinds(key, kind)
        if least > DOUBLE and most < TEXT:
            whole = _first_values(owner, value, rows, _NO_NUMBER)
            return np.where(whole == _NO_NUMBER, np.nan, whole)
        sparse = self.floats(key)
        return _first_values(
            sparse.owner, sparse.value.astype(np.float64, copy=False).view(np.int64), rows, _NAN_BITS
        ).view(np.float64)

    def texts_at(self, key: str, rows: Rows) -> npt.NDArray[np.int64]:
        """The string id of the first text of each row, -1 if it has none. Do not write to the result."""
        if (direct := self._values_at(key, rows)) is not None:
            kind, values, is_there = direct
            return np.where(is_there & (kind == TEXT), values, -1)
        sparse = self.texts(key)
        return _first_values(sparse.owner, sparse.value.astype(np.int64, copy=False), rows, -1)

    def spans(self, key: str) -> list[tuple[int, int, int]]:
        """(owner, position in the file, size) of each value of type bytes."""
        return list(zip(*(column.tolist() for column in self.places(key)), strict=True))

    def places(self, key: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Owners, positions in the file and sizes of values of type bytes."""
        stats = self._of(key)
        is_bytes = stats.kind == BYTES
        owner, position, size = (
            column[is_bytes].astype(np.int64) for column in (stats.owner, stats.value, stats.size)
        )
        return owner, position, size

    def dense_ints(self, key: str, n_rows: int, missing: int = -1) -> npt.NDArray[np.int64]:
        """One int64 per owner, `missing` if it has none; the first of several values."""
        result = np.full(n_rows, missing, np.int64)
        sparse = self.ints(key)
        result[sparse.owner[::-1]] = sparse.value[::-1]
        return result

    def dense_texts(self, key: str, n_rows: int) -> npt.NDArray[np.int32]:
        """One string id per owner, -1 if it has none; the first of several values."""
        result = np.full(n_rows, -1, np.int32)
        sparse = self.texts(key)
        result[sparse.owner[::-1]] = sparse.value[::-1]
        return result

    def text_at(self, row: int) -> str:
        """The value of one row of the table as text."""
        kind, value = int(self.table["kind"][row]), self.table["value"][row]
        return self.value_text(value, kind, int(self.table["size"][row]))

    def value_text(self, value: np.int64, kind: int, size_bytes: int) -> str:
        """A value of STATS as text."""
        if kind == TEXT:
            return self.strings.get(int(value))
        if kind == BYTES:
            return f"({size_bytes} bytes)"
        return str(
            value.view(np.float64) if kind == DOUBLE else value.view(np.uint64) if kind == UINT else value
        )

    def _values_at(
        self, key: str, rows: Rows
    ) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
        if isinstance(self.stats, Table) or "table" in self.__dict__:
            return None
        return self.stats.at(self.strings.find(key), rows)

    def _kinds(self, key: str, kind: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """The smallest and the largest kind of a key's stats, computed once per key."""
        if key not in self._kinds_of_key:
            self._kinds_of_key[key] = (int(kind.min(initial=BYTES)), int(kind.max(initial=0)))
        return self._kinds_of_key[key]

    def _of(self, key: str) -> StatColumns:
        string = self.strings.find(key)
        if not isinstance(self.stats, Table) and "table" not in self.__dict__:
            return self.stats.columns(string) or _NO_STATS
        rows = self.rows(key)
        return StatColumns(
            self.table["owner"][rows],
            self.table["kind"][rows],
            self.table["value"][rows],
            self.table["size"][rows],
        )


_NO_STATS = StatColumns(
    np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int32)
)


def _first_values(
    owner: npt.NDArray[np.int32], value: npt.NDArray[np.int64], rows: Rows, missing: int
) -> npt.NDArray[np.int64]:
    """The first value of each row; the column itself if every row has one."""
    if len(owner) == len(rows) and _are_equal(owner, rows):
        return value
    values: npt.NDArray[np.int64] = look_up(
        np.ascontiguousarray(owner), np.ascontiguousarray(value), np.ascontiguousarray(rows), missing
    )
    return values


def _are_equal(a: npt.NDArray[np.int32], b: Rows) -> bool:
    """Whether two columns of equal length are equal. Compares chunks that fit into the processor's cache; the
    first one usually decides.
    """
    return all(np.array_equal(a[i : i + _CHUNK], b[i : i + _CHUNK]) for i in range(0, len(a), _CHUNK))
