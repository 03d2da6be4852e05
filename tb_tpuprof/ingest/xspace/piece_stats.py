"""Stats of events of many pieces → columns of the whole, made when a key is first asked for.

Until then they are kept as small as they are: a run of rows instead of each row, one kind instead of equal
kinds, numbers of four bytes where they fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.xspace.piece_rows import Ints, moved_rows, places
from tb_tpuprof.native import repeated
from tb_tpuprof.native.memory import new_array
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import Rows, StatColumns, StatsByKey
from tb_tpuprof.trace.table import Table

_ROW_BYTES = sum(np.dtype(spec.dtype).itemsize for spec in schema.STATS)
_INT32 = np.iinfo(np.int32)


class PackedStats(NamedTuple):
    """The stats of one key in one piece. `owner`: the events, or the first one if they follow one another;
    `kind` and `size`: one number if all are equal.
    """

    owner: npt.NDArray[np.int32] | int
    kind: npt.NDArray[np.uint8] | int
    value: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    size: npt.NDArray[np.int32] | int

    def owners(self) -> npt.NDArray[np.int32]:
        """The event of each stat."""
        if isinstance(self.owner, int):
            return np.arange(self.owner, self.owner + len(self.value), dtype=np.int32)
        return self.owner


class PieceLines(NamedTuple):
    """The lines of a piece that has events: their rows in the whole, and how many events each has."""

    rows: Ints
    n_events: Ints


def packed(stats: StatColumns, string_ids: npt.NDArray[np.int32], base: int) -> PackedStats:
    """The stats of one key; texts become strings of the whole, positions of bytes count from `base` on."""
    owner, kind, value, size = stats
    is_text, is_bytes = kind == schema.TEXT, kind == schema.BYTES
    value = value.copy()
    value[is_text] = string_ids[value[is_text]]
    value[is_bytes] += base
    is_small = _INT32.min <= int(value.min()) and int(value.max()) <= _INT32.max
    is_run = int(owner[-1]) - int(owner[0]) + 1 == len(owner) and bool((np.diff(owner) == 1).all())
    return PackedStats(
        int(owner[0]) if is_run else owner.copy(),
        int(kind[0]) if (kind == kind[0]).all() else kind.copy(),
        value.astype(np.int32) if is_small else value,
        int(size[0]) if (size == size[0]).all() else size.copy(),
    )


def by_key(stats: Table | StatsByKey) -> Iterator[tuple[int, StatColumns]]:
    """(key, its stats) of a table or of what becomes one; only keys with stats."""
    if not isinstance(stats, Table):
        for key in stats.keys:
            columns = stats.columns(key)
            if columns is not None and len(columns.owner):
                yield key, columns
        return
    names = ("owner", "kind", "value", "size")
    keys, first = np.unique(stats["key"], return_index=True)
    ends = np.append(first, len(stats))[1:]
    for key, a, b in zip(keys.tolist(), first.tolist(), ends.tolist(), strict=True):
        yield key, StatColumns(*(stats[name][a:b] for name in names))


class MergedStats:
    """The stats of all pieces by key, which is a string of the whole. Safe for use by several threads.

    `lines`: of each piece. `new_row`: where an event went whose line had to be sorted; None if none had to.
    """

    def __init__(
        self,
        parts: dict[int, list[tuple[int, PackedStats]]],
        lines: list[PieceLines],
        n_lines: int,
        new_row: npt.NDArray[np.int32] | None,
    ) -> None:
        self._parts = parts
        self._lines, self._n_lines = lines, n_lines
        _, self._shifts = places([part.rows for part in lines], [part.n_events for part in lines], n_lines)
        self._new_row = new_row
        self._n_rows = {key: sum(len(part.value) for _, part in parts[key]) for key in sorted(parts)}
        self._columns: dict[int, StatColumns] = {}
        self._lock = threading.Lock()

    @property
    def keys(self) -> list[int]:
        """The keys (string ids), ascending."""
        return list(self._n_rows)

    @property
    def size_bytes(self) -> int:
        """Memory of all columns once they are made."""
        return _ROW_BYTES * sum(self._n_rows.values())

    def columns(self, key: int) -> StatColumns | None:
        """The columns of one key; None if no stat has it."""
        with self._lock:
            if key not in self._n_rows:
                return None
            if key not in self._columns:
                self._columns[key] = self._merged(self._parts[key])
                del self._parts[key]
            return self._columns[key]

    def at(self, key: int, rows: Rows) -> tuple[int, Ints, npt.NDArray[np.bool_]] | None:
        """None: every answer takes columns."""
        return None

    def table(self) -> Table:
        """All stats as a table of STATS, sorted by key and owner."""
        n = sum(self._n_rows.values())
        columns = {spec.name: new_array(n, spec.dtype) for spec in schema.STATS}
        columns["key"] = repeated(
            np.array(self.keys, np.int32), np.array(list(self._n_rows.values()), np.int64)
        )
        row = 0
        for key, n_rows in self._n_rows.items():
            part, rows = self.columns(key), slice(row, row + n_rows)
            assert part is not None
            for name, values in part._asdict().items():
                columns[name][rows] = values
            with self._lock:  # from now on a part of the table
                self._columns[key] = StatColumns(*(columns[name][rows] for name in part._fields))
            row += n_rows
        return Table(schema.STATS, columns)

    def _merged(self, parts: list[tuple[int, PackedStats]]) -> StatColumns:
        """The columns of a key: the events of a line together, within it piece by piece."""
        owners = [part.owners() for _, part in parts]
        counts = []
        for (piece, _), owner in zip(parts, owners, strict=True):
            ends = np.cumsum(self._lines[piece].n_events)
            counts.append(np.diff(np.searchsorted(owner, ends.astype(owner.dtype)), prepend=0))
        first, shifts = places([self._lines[piece].rows for piece, _ in parts], counts, self._n_lines)
        n = int(first[-1])
        columns = StatColumns(
            new_array(n, np.int32), new_array(n, np.uint8), new_array(n, np.int64), new_array(n, np.int32)
        )
        for (piece, part), owner, shift, count in zip(parts, owners, shifts, counts, strict=True):
            rows = moved_rows(shift, count)
            columns.owner[rows] = owner + repeated(self._shifts[piece].astype(np.int32), count)
            columns.kind[rows], columns.value[rows], columns.size[rows] = part.kind, part.value, part.size
        return _read_only(columns if self._new_row is None else _sorted(columns, self._new_row))


def _sorted(columns: StatColumns, new_row: npt.NDArray[np.int32]) -> StatColumns:
    """The stats whose events have moved, in the order of their events."""
    owner = new_row[columns.owner]
    order = np.argsort(owner, kind="stable")
    return StatColumns(owner[order], columns.kind[order], columns.value[order], columns.size[order])


def _read_only(columns: StatColumns) -> StatColumns:
    for values in columns:
        values.flags.writeable = False
    return columns
