"""A stream of profile pieces (`.xplane.riegeli`) → Trace. JAX writes it with continuous profiling: each
record of the Riegeli file is a whole XSpace, with ids of its own.

    file ─ layout ─▶ chunks ─ records ─▶ XSpace after XSpace ─ decode ─▶ piece ─ TraceMerger ─▶ Trace

Pieces are read one after another, so that memory holds the bytes of one and the columns of those before it.
What cannot be read is left out, counted and described.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.riegeli.codecs import MissingCodec
from tb_tpuprof.ingest.riegeli.layout import Chunk, Layout, Read
from tb_tpuprof.ingest.riegeli.records import chunk_records
from tb_tpuprof.ingest.riegeli.varints import Damaged
from tb_tpuprof.ingest.storage.files import FileBytes, most_unpacked_bytes
from tb_tpuprof.ingest.xspace import structure
from tb_tpuprof.ingest.xspace.merging import TraceMerger
from tb_tpuprof.ingest.xspace.protobuf import MessageSource, Value, decode_protobuf_tables
from tb_tpuprof.native import IS_COMPILED, fields
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace, TraceInfo, TraceSource
from tb_tpuprof.units import format_bytes, format_fraction

if IS_COMPILED:
    from tb_tpuprof.ingest.xspace.decoder import decode_tables

Bytes = npt.NDArray[np.uint8]
_ALL_HOT_STATS = schema.hot_stats(schema.DEVICE_STATS)  # which planes there are is known at the end
_NOT_CLOSED = (
    "The file was not closed: its writer may still be running, or died. What was recorded after the last "
    "piece is missing."
)


class StreamReader:
    """Reads one file. `read` and `n_bytes`: its bytes; `info`: its host and path."""

    def __init__(self, read: Read, n_bytes: int, layout: Layout, info: TraceInfo) -> None:
        self.read, self.n_bytes, self.layout, self.info = read, n_bytes, layout, info
        self.losses: list[str] = []
        self.n_pieces = self.n_foreign = 0

    def trace(self, source: TraceSource, is_outline: bool, stats: frozenset[str] | None) -> Trace:
        """The whole trace. `stats`: those of events to decode instead of those that analyses read. Raises
        TraceFormatError if no piece can be read, NotATrace if the records are no profile.
        """
        merger, sources = TraceMerger(self.info.path), _PieceSource()
        wanted = _ALL_HOT_STATS if stats is None else stats
        for content, base in self._records():
            piece = self._piece(content, source, is_outline, wanted)
            if piece is not None:
                self.n_pieces += 1
                if isinstance(piece.source, MessageSource):
                    sources.add(base, piece.source)
                    merger.add(piece, piece.source.block, base)
                else:
                    merger.add(piece, partial(_part, content), base)
            del content, piece  # before the next chunk is unpacked
        self._check_any()
        self._add_losses_of_file()
        return merger.trace(
            merger.merged_info(self._whole_info(merger.n_damaged, is_outline)),
            source if IS_COMPILED else sources,
            stats,
        )

    def _records(self) -> Iterator[tuple[Bytes, int]]:
        """The records that can be read and are not empty, and the position of each."""
        for chunk in self.layout.chunks:
            content = self._chunk(chunk)
            if content is None:
                continue
            values, ends = content
            for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
                if end > begin:
                    yield values[begin:end], chunk.base + begin
            del values, content

    def _chunk(self, chunk: Chunk) -> tuple[Bytes, npt.NDArray[np.int64]] | None:
        try:
            return chunk_records(self.read, chunk, most_unpacked_bytes())
        except Damaged as error:
            self.losses.append(f"a piece of {format_bytes(chunk.data_size)} is damaged and left out: {error}")
        except MissingCodec as error:
            raise TraceFormatError(
                self.info.path,
                chunk.begin,
                f"is compressed with {error.name}, for which a package is missing",
                f'Run: pip install "{error.package}"',
            ) from None
        return None

    def _piece(
        self, content: Bytes, source: TraceSource, is_outline: bool, stats: frozenset[str]
    ) -> Trace | None:
        """The trace of a record; None if it is damaged or no XSpace."""
        path, host, size = self.info.path, self.info.host, format_bytes(len(content))
        top, _ = fields(content, 0, len(content))
        if not (structure.is_xspace(content, top) or structure.begins_as_xspace(content)):
            self.n_foreign += 1
            self.losses.append(f"a piece of {size} is left out: it is not a profile (XSpace)")
            return None
        try:
            if IS_COMPILED:
                return decode_tables(FileBytes(content), path, host, source, is_outline, stats=stats)
            return decode_protobuf_tables(content, path, host, stats=stats)
        except TraceFormatError as error:
            self.losses.append(f"a piece of {size} is left out: it {error.what}")
        return None

    def _check_any(self) -> None:
        """Raises TraceFormatError or NotATrace if no piece was read although there are some."""
        if self.n_pieces or not self.losses:
            return
        if self.n_foreign == len(self.losses):
            raise NotATrace(
                self.info.path,
                "a Riegeli file, but its records are not profiles (XSpaces)",
                "Choose the .xplane.riegeli or .xplane.pb file of a profile.",
            )
        raise TraceFormatError(self.info.path, -1, f"has no piece that can be read: {self.losses[0]}")

    def _add_losses_of_file(self) -> None:
        layout = self.layout
        if layout.n_lost:
            what = (
                f"{format_bytes(layout.lost_bytes)} of the file are left out: the headers there are damaged"
            )
            self.losses += [what] * layout.n_lost
        if layout.n_unknown:
            what = "a piece is stored in a way that this version cannot read"
            self.losses += [what] * layout.n_unknown
        if layout.cut_at >= 0:
            n_left = self.n_bytes - layout.cut_at
            self.losses.insert(
                0,
                f"the end is missing: the file is cut off within a piece, of which it has "
                f"{format_bytes(n_left)}; {_pieces(self.n_pieces)} before it, "
                f"{format_fraction(layout.cut_at / self.n_bytes)} of the file, were read",
            )

    def _whole_info(self, n_damaged: int, is_outline: bool) -> TraceInfo:
        is_open = not self.layout.is_closed and self.layout.cut_at < 0
        return TraceInfo(
            self.info.host,
            self.info.path,
            self.layout.n_bytes,
            0,
            n_damaged=n_damaged + len(self.losses),
            damage=self.losses[0] if self.losses else "",
            notes=(_NOT_CLOSED,) if is_open else (),
            is_outline=is_outline and IS_COMPILED,
        )


def _part(content: Bytes, start: int, size: int) -> Bytes:
    return content[start : start + size]


def _pieces(n: int) -> str:
    return "1 whole piece" if n == 1 else f"{n:,} whole pieces"


class _PieceSource(MessageSource):
    """The parsed messages of all pieces, where nothing is compiled. A position is one in its piece plus the
    piece's base.
    """

    def __init__(self) -> None:
        super().__init__([], bytearray(), [])
        self._bases: list[int] = []
        self._sources: list[MessageSource] = []

    def add(self, base: int, source: MessageSource) -> None:
        """Add a piece after those before it."""
        self._bases.append(base)
        self._sources.append(source)

    def read(self, position: int, size: int) -> bytes:
        """Bytes of stats."""
        source, own = self._at(position)
        return source.read(own, size)

    def stats_at(self, position: int) -> list[tuple[str, Value]]:
        """All stats of the event at a position."""
        source, own = self._at(position)
        return source.stats_at(own)

    def _at(self, position: int) -> tuple[MessageSource, int]:
        piece = int(np.searchsorted(self._bases, position, side="right")) - 1
        return self._sources[piece], position - self._bases[piece]
