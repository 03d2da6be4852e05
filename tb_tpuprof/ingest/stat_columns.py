"""Stats as decoders have gathered them → columns, each key's when it is asked for: few pages ask for most of them."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native.events import Decoder
from tb_tpuprof.native.memory import new_array
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatColumns
from tb_tpuprof.trace.table import Table

Ids = npt.NDArray[np.int32]
_MAX_THREADS = 8
_ROW_BYTES = sum(np.dtype(spec.dtype).itemsize for spec in schema.STATS)


class GatheredStats:
    """The stats of several decoders, one after the other. Safe for use by several threads.

    `names` is the string of each row of stat metadata, which are the decoders' keys; `texts` holds for each decoder the strings of its
    `text_spans`. The decoders' memory is given back as it is put into columns.
    """

    def __init__(self, decoders: list[Decoder], names: Ids, texts: list[Ids]) -> None:
        self._decoders = decoders
        self._names = names
        self._texts = texts
        found = sorted((int(names[key]), i, key) for i, decoder in enumerate(decoders) for key in decoder.kept_keys())
        self._chunks: dict[int, list[tuple[int, Any, int, int]]] = {}
        for name, i, key in found:
            self._chunks.setdefault(name, []).extend((i, *chunk) for chunk in decoders[i].take_chunks(key))
        self._n_rows = {name: sum(n_alive for *_, n_alive in chunks) for name, chunks in self._chunks.items()}
        self._locks = {name: threading.Lock() for name in self._chunks}
        self._made: dict[int, StatColumns] = {}

    @property
    def keys(self) -> list[int]:
        """The strings that are keys, ascending."""
        return list(self._n_rows)

    @property
    def size_bytes(self) -> int:
        """Memory of all columns, once they are made."""
        return _ROW_BYTES * sum(self._n_rows.values())

    def columns(self, key: int) -> StatColumns | None:
        """The columns of one key; none where no stat has it."""
        if key not in self._locks:
            return None
        with self._locks[key]:
            if key not in self._made:
                n = self._n_rows[key]
                made = StatColumns(new_array(n, np.int32), new_array(n, np.uint8), new_array(n, np.int64), np.zeros(n, np.int32))
                at = 0
                for i, memory, n_rows, n_alive in self._chunks.pop(key):
                    self._decoders[i].put(memory, n_rows, at, made, self._names, self._texts[i])
                    at += n_alive
                self._made[key] = _read_only(made)
            return self._made[key]

    def table(self) -> Table:
        """All of them as a table of STATS, sorted by key; the columns of each key are parts of it from then on."""
        counts = np.array(list(self._n_rows.values()), np.int64)
        n = int(counts.sum())
        whole = StatColumns(new_array(n, np.int32), new_array(n, np.uint8), new_array(n, np.int64), np.zeros(n, np.int32))
        ends = np.cumsum(counts).tolist()

        def put(key: int, end: int) -> None:
            part = self.columns(key)
            assert part is not None
            rows = slice(end - len(part.owner), end)
            place = StatColumns(whole.owner[rows], whole.kind[rows], whole.value[rows], whole.size[rows])
            place.owner[:], place.kind[:], place.value[:], place.size[:] = part
            with self._locks[key]:
                self._made[key] = _read_only(place)

        with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS)) as pool:
            list(pool.map(put, self.keys, ends))
        columns = {"owner": whole.owner, "key": np.repeat(np.array(self.keys, np.int32), counts)}
        return Table(schema.STATS, {**columns, "kind": whole.kind, "value": whole.value, "size": whole.size})


def _read_only(columns: StatColumns) -> StatColumns:
    for values in columns:
        values.flags.writeable = False
    return columns
