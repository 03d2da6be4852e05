"""Stats gathered by decoders → columns. The columns of a key are made on request: few pages need most of
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import repeated
from tb_tpuprof.native.compiled.gathering import Gathered, Values
from tb_tpuprof.native.memory import Arena, new_array
from tb_tpuprof.parallel.threads import call_in_parallel
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.schema import DOUBLE, INT, TEXT, UINT
from tb_tpuprof.trace.stats import Rows, StatColumns
from tb_tpuprof.trace.table import Table

Ids = npt.NDArray[np.int32]
# The decoder's number and its chunk: memory, number of stats, owner of the first one, and the kind if the
# chunk has only values.
Chunk = tuple[int, tuple[Any, int, int, int]]
_NUMBERS = {DOUBLE, UINT, INT}
_FEW = 8  # a lookup is for a few rows if the key has at least this many times more stats
_REFERENCE = 7  # the decoder's kind for a reference to a text
_ROW_BYTES = sum(np.dtype(spec.dtype).itemsize for spec in schema.STATS)


class GatheredStats:
    """The stats of several decoders, one after another. Safe for use by several threads.

    `names` is the string of each row of stat metadata, which are the decoders' keys; `texts` has for each
    decoder the strings of its `text_spans`. Putting stats into columns frees the decoders' memory.
    """

    def __init__(self, gathered: list[Gathered], names: Ids, texts: list[Ids]) -> None:
        self._gathered = gathered
        self._names, self._names64 = names, names.astype(np.int64)
        self._texts = texts
        kept_keys = sorted(
            (int(names[key]), i, key)
            for i, gathered_stats in enumerate(gathered)
            for key in gathered_stats.keys_with_stats()
        )
        self._chunks: dict[int, list[Chunk]] = {}
        for name, i, key in kept_keys:
            self._chunks.setdefault(name, []).extend((i, chunk) for chunk in gathered[i].take_chunks(key))
        self._n_rows = {name: sum(chunk[1] for _, chunk in chunks) for name, chunks in self._chunks.items()}
        self._locks = {name: threading.Lock() for name in self._chunks}
        self._columns_of_key: dict[int, StatColumns] = {}
        self._values: dict[int, tuple[int, Values] | None] = {}
        self._arena = Arena()
        self._columns: dict[tuple[Any, ...], npt.NDArray[Any]] = {}

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
        if key not in self._locks:
            return None
        with self._locks[key]:
            if key not in self._columns_of_key:
                chunks = self._chunks.pop(key)
                self._values.pop(key, None)
                self._columns_of_key[key] = _read_only(
                    self._of_one_kind(chunks, self._n_rows[key])
                    or self._mixed_columns(chunks, self._n_rows[key])
                )
            return self._columns_of_key[key]

    def at(self, key: int, rows: Rows) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
        """(kind, value of each row, whether it has one) if the key is not in columns yet and need not be;
        else None.
        """
        if key not in self._locks or _FEW * len(rows) > self._n_rows[key]:
            return None
        with self._locks[key]:
            if key in self._columns_of_key:
                return None
            if key not in self._values:
                self._values[key] = _values(self._chunks[key])
            lookup = self._values[key]
        if lookup is None:
            return None
        kind, (values, is_there) = lookup[0], lookup[1].at(np.ascontiguousarray(rows, np.int64))
        return (
            (TEXT, self._names64[values], is_there.view(np.bool_))
            if kind == _REFERENCE
            else (kind, values, is_there.view(np.bool_))
        )

    def _of_one_kind(self, chunks: list[Chunk], n_rows: int) -> StatColumns | None:
        """The columns of a key whose chunks contain only numbers, or only text references, of consecutive
        owners; else None.
        """
        kinds = {chunk[3] for _, chunk in chunks if chunk[1]}
        if len(kinds) != 1 or not kinds <= _NUMBERS | {_REFERENCE}:
            return None
        kind, value, row = kinds.pop(), self._arena.take(n_rows, np.int64), 0
        runs: list[tuple[int, int]] = []
        for _, (memory, n, first, _) in chunks:
            chunk_values = memory[: 8 * n].view(np.int64)
            if kind == _REFERENCE:
                # With `mode`, NumPy writes into `out` directly instead of into a copy first.
                np.take(self._names64, chunk_values, out=value[row : row + n], mode="clip")
            else:
                value[row : row + n] = chunk_values
            row, end = row + n, first + n
            if runs and runs[-1][1] == first:
                first, _ = runs.pop()
            runs.append((first, end))
        kind = TEXT if kind == _REFERENCE else kind
        kind_column = self._shared(("kind", kind, n_rows), lambda: np.full(n_rows, kind, np.uint8))
        no_sizes = self._shared(("size", n_rows), lambda: np.zeros(n_rows, np.int32))
        return StatColumns(
            self._shared(("owner", *runs), lambda: _owners(runs)), kind_column, value, no_sizes
        )

    def _shared(self, column_key: tuple[Any, ...], make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A column that keys share. If two threads make it at the same time, both take the first one."""
        existing = self._columns.get(column_key)
        return self._columns.setdefault(column_key, make()) if existing is None else existing

    def _mixed_columns(self, chunks: list[Chunk], n: int) -> StatColumns:
        columns = StatColumns(
            self._arena.take(n, np.int32),
            self._arena.take(n, np.uint8),
            self._arena.take(n, np.int64),
            np.zeros(n, np.int32),
        )
        row = 0
        for i, chunk in chunks:
            self._gathered[i].put(chunk, row, columns, self._names, self._texts[i])
            row += chunk[1]
        return columns

    def table(self) -> Table:
        """All stats as a table of STATS, sorted by key; from then on the columns of each key are
        parts of it.
        """
        counts = np.array(list(self._n_rows.values()), np.int64)
        n = int(counts.sum())
        whole = StatColumns(
            new_array(n, np.int32), new_array(n, np.uint8), new_array(n, np.int64), np.zeros(n, np.int32)
        )
        ends = np.cumsum(counts).tolist()

        def put(key: int, end: int) -> None:
            part = self.columns(key)
            assert part is not None
            rows = slice(end - len(part.owner), end)
            target = StatColumns(whole.owner[rows], whole.kind[rows], whole.value[rows], whole.size[rows])
            target.owner[:], target.kind[:], target.value[:], target.size[:] = part
            with self._locks[key]:
                self._columns_of_key[key] = _read_only(target)

        call_in_parallel(partial(put, key, end) for key, end in zip(self.keys, ends, strict=True))
        columns = {"owner": whole.owner, "key": repeated(np.array(self.keys, np.int32), counts)}
        return Table(schema.STATS, {**columns, "kind": whole.kind, "value": whole.value, "size": whole.size})


def _values(chunks: list[Chunk]) -> tuple[int, Values] | None:
    """The kind and values of all chunks, if they contain only values that are integers or text references;
    else None.
    """
    non_empty = [chunk for _, chunk in chunks if chunk[1]]
    kinds = {chunk[3] for chunk in non_empty}
    return (kinds.pop(), Values(non_empty)) if len(kinds) == 1 and kinds <= {UINT, INT, _REFERENCE} else None


def _owners(runs: list[tuple[int, int]]) -> Ids:
    """Row numbers of the runs, which are (first, end)."""
    parts = [np.arange(first, end, dtype=np.int32) for first, end in runs]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _read_only(columns: StatColumns) -> StatColumns:
    for values in columns:
        values.flags.writeable = False
    return columns
