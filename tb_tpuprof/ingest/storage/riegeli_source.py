"""Reads from a stream of profile pieces (Riegeli records) what opening it left undecoded: single events'
stats and HLO protos.

A position counts the bytes of all records as if they stood end to end. The chunk around it is read and
unpacked as a whole; the last one is kept, since the next position is usually near.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.riegeli.codecs import MissingCodec
from tb_tpuprof.ingest.riegeli.layout import Chunk, Layout, file_layout
from tb_tpuprof.ingest.riegeli.records import chunk_records
from tb_tpuprof.ingest.riegeli.varints import Damaged
from tb_tpuprof.ingest.storage.files import FileState, check_unchanged, most_unpacked_bytes, read_range
from tb_tpuprof.ingest.storage.source import FileSource
from tb_tpuprof.native import fields, parts, spans
from tb_tpuprof.trace.trace import Trace

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_KEPT_BYTES = 64 * 2**20  # larger chunks are unpacked anew each time
_PLANE, _STAT_NAMES, _DELIMITED = 1, 5, 2


@dataclass
class _Unpacked:
    """A chunk's records end to end, the end of each, and the names of stats of planes that were looked up, by
    the plane's position.
    """

    chunk: Chunk
    values: Bytes
    ends: Ints
    names: dict[int, dict[int, str]] = field(default_factory=dict)

    def record(self, position: int) -> tuple[Bytes, int]:
        """The record around a position, and the position of its first byte."""
        number = int(np.searchsorted(self.ends, position - self.chunk.base, side="right"))
        begin = int(self.ends[number - 1]) if number else 0
        return self.values[begin : int(self.ends[number])], self.chunk.base + begin


class RiegeliSource(FileSource):
    """Reads from the records of a file, as long as it has not changed since it was decoded. Safe for use by
    several threads.
    """

    def __init__(self, state: FileState, layout: Layout | None = None) -> None:
        super().__init__(state)
        self._layout = layout
        self._lock = Lock()
        self._last: _Unpacked | None = None

    def block(self, position: int, size: int) -> Bytes:
        """Bytes of a record, as an array. Raises StorageError if the file is gone or has changed."""
        record, start = self._around(position).record(position)
        return record[position - start : position - start + size]

    def _names(self, trace: Trace, event: int) -> dict[int, str]:
        """The names of stats in the record of an event: ids mean nothing in any other."""
        position = int(trace.events["position"][event])
        unpacked = self._around(position)
        record, start = unpacked.record(position)
        rows, _ = fields(record, 0, len(record))
        planes = rows[(rows[:, 0] == _PLANE) & (rows[:, 1] == _DELIMITED), 2:].tolist()
        around = next(((a, size) for a, size in planes if a <= position - start < a + size), None)
        if around is None:
            return {}
        names = unpacked.names.get(start + around[0])
        if names is None:
            names = unpacked.names[start + around[0]] = _stat_names(record, *around)
        return names

    def _around(self, position: int) -> _Unpacked:
        """The chunk around a position. Raises StorageError or TraceFormatError."""
        check_unchanged(self.state)
        with self._lock:
            chunk = self._chunk(position)
            unpacked = self._last
            if unpacked is None or unpacked.chunk != chunk:
                self._last = None  # its memory is free before the next one is unpacked
                del unpacked
                unpacked = _Unpacked(chunk, *self._unpacked(chunk))
                if len(unpacked.values) <= _KEPT_BYTES:
                    self._last = unpacked
            return unpacked

    def _chunk(self, position: int) -> Chunk:
        if self._layout is None:
            self._layout = file_layout(partial(read_range, self.state), self.state.size_bytes)
        chunks = self._layout.chunks
        number = int(np.searchsorted(self._layout.bases, position, side="right")) - 1
        if number < 0 or position >= chunks[number].base + chunks[number].size:
            raise TraceFormatError(self.state.path, -1, f"has no record at {position:,}")
        return chunks[number]

    def _unpacked(self, chunk: Chunk) -> tuple[Bytes, Ints]:
        try:
            return chunk_records(partial(read_range, self.state), chunk, most_unpacked_bytes())
        except (Damaged, MissingCodec) as error:
            raise TraceFormatError(
                self.state.path, chunk.begin, f"has a piece that cannot be read ({error})"
            ) from None


def _stat_names(record: Bytes, start: int, size: int) -> dict[int, str]:
    """The names of a plane's stats, by id."""
    _, starts, sizes = parts(record, np.array([start]), np.array([size]), _STAT_NAMES)
    entries, lengths, _, _ = spans(record, starts, sizes, np.array([1, 2]))
    messages, message_sizes = np.ascontiguousarray(entries[:, 1]), np.maximum(lengths[:, 1], 0)
    texts, text_sizes, _, _ = spans(record, messages, message_sizes, np.array([2]))
    names = (
        record[a : a + max(n, 0)].tobytes().decode("utf-8", "replace")
        for a, n in zip(texts[:, 0].tolist(), text_sizes[:, 0].tolist(), strict=True)
    )
    return dict(zip(entries[:, 0].tolist(), names, strict=True))
