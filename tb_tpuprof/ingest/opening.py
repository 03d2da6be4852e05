"""A file or an XSpace in memory → its Trace.

The content decides: Chrome trace JSON, TensorFlow's older Trace protobuf, a streaming trace viewer's table, a
Perfetto trace, a stream of XSpaces (Riegeli), or an XSpace, which the compiled decoder reads, or the protobuf
runtime if nothing is compiled. Other files are refused with the name of their kind.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.riegeli.layout import Read, begins_as_riegeli, file_layout
from tb_tpuprof.ingest.riegeli.varints import Damaged
from tb_tpuprof.ingest.storage import kinds
from tb_tpuprof.ingest.storage.file_names import (
    PERFETTO_SUFFIXES,
    STREAM_SUFFIX,
    host_of,
    is_program,
    is_saved_page,
    is_snapshot,
)
from tb_tpuprof.ingest.storage.files import (
    FileBytes,
    FileState,
    file_state,
    is_chrome_trace,
    is_url,
    open_ranges,
    read_file,
    read_range,
)
from tb_tpuprof.ingest.storage.riegeli_source import RiegeliSource
from tb_tpuprof.ingest.storage.source import (
    BytesSource,
    ColumnSource,
    FileSource,
    PackedSource,
    PackedTraceEventSource,
    TraceEventSource,
)
from tb_tpuprof.ingest.xspace import structure
from tb_tpuprof.ingest.xspace.cut_off import intact_part
from tb_tpuprof.ingest.xspace.outline_bytes import PartialFile, reads_in_part
from tb_tpuprof.ingest.xspace.stream import StreamReader
from tb_tpuprof.native import IS_COMPILED, fields
from tb_tpuprof.trace.trace import Trace, TraceInfo, TraceSource

if IS_COMPILED:  # imported with the plugin, so that the first request does not wait for it
    from tb_tpuprof.ingest.xspace.decoder import decode

_HEAD_BYTES = 64  # the headers that every Riegeli file begins with
_NO_EVENTS = b"\x22\x00"  # an XSpace that contains only a host without a name


def open_trace(path: str, is_outline: bool = False, stats: frozenset[str] | None = None) -> Trace:
    """Decode one host's file, plain or gzipped. Raises StorageError or TraceFormatError.

    An outline has at least the planes with their stats and the programs; with it, large files open in a
    moment. `stats`: the stats of an XSpace's events to decode instead of those that analyses read.
    """
    state = file_state(path)
    if is_snapshot(path):
        return _of_snapshot(path, state)
    if is_program(path) or is_saved_page(path):
        # A run of programs or saved pages only: a trace without events, with programs in the same folder.
        return _decoded(
            FileBytes(np.frombuffer(_NO_EVENTS, np.uint8)), path, host_of(path), FileSource(state)
        )
    if not is_url(path) and begins_as_riegeli(read_range(state, 0, _HEAD_BYTES).tobytes()):
        with open_ranges(state) as read:
            return _stream(read, state, is_outline, stats)
    if IS_COMPILED and reads_in_part(state):
        part = PartialFile(path, is_outline)
        kind = _other_kind(part.data, path)
        if kind is None and _is_whole(part.data):
            return _decoded(part, path, host_of(path), FileSource(state), is_outline, stats=stats)
        part.release()
        if kind not in (None, kinds.OLD_TRACE, kinds.TABLE, kinds.PERFETTO):
            raise NotATrace(path, kind.what, kind.remedy)
    data, was_packed = read_file(path)
    if is_chrome_trace(data):
        return _decoded_json(data, state, was_packed)
    kind = _other_kind(data, path)
    if kind is kinds.OLD_TRACE:
        return _decoded_events(data, state, was_packed)
    if kind is kinds.PERFETTO:
        return _decoded_track_events(data, state)
    if kind is kinds.TABLE:
        return _decoded_table(data, state)
    is_stream = begins_as_riegeli(data[:_HEAD_BYTES].tobytes())
    if is_stream or (kind is kinds.UNKNOWN and path.endswith(STREAM_SUFFIX)):
        if was_packed:
            raise NotATrace(
                path, "a gzipped stream of profile pieces", "Unpack it (gunzip) and open it again."
            )
        return _stream(partial(_part, data), state, is_outline, stats)
    if kind is not None:
        raise NotATrace(path, kind.what, kind.remedy)
    source: TraceSource = PackedSource(state) if was_packed else FileSource(state)
    intact = intact_part(data)
    if intact is not None:
        data = intact.data
    file = FileBytes(data)
    del data
    return _decoded(file, path, host_of(path), source, is_outline, intact.damage if intact else "", stats)


def _stream(read: Read, state: FileState, is_outline: bool, stats: frozenset[str] | None) -> Trace:
    """The trace of a stream of profile pieces."""
    try:
        layout = file_layout(read, state.size_bytes)
    except Damaged as error:
        raise TraceFormatError(state.path, -1, f"cannot be read: {error}") from None
    info = TraceInfo(host_of(state.path), state.path, state.size_bytes, 0)
    reader = StreamReader(read, state.size_bytes, layout, info)
    return reader.trace(RiegeliSource(state, layout), is_outline, stats)


def _part(data: npt.NDArray[np.uint8], position: int, size: int) -> npt.NDArray[np.uint8]:
    return data[position : position + size]


def _of_snapshot(path: str, state: FileState) -> Trace:
    """A trace without events, with the memory in use at one moment."""
    from tb_tpuprof.ingest.heap.snapshot import read_heap

    nothing = _decoded(FileBytes(np.frombuffer(_NO_EVENTS, np.uint8)), path, host_of(path), FileSource(state))
    return replace(nothing, heap=read_heap(path))


def _is_whole(data: npt.NDArray[np.uint8]) -> bool:
    return bool(fields(data, 0, len(data))[1] < 0)


def trace_of_bytes(
    xspace: bytes | memoryview | npt.NDArray[np.uint8], host: str, stats: frozenset[str] | None = None
) -> Trace:
    """Decode an XSpace that is in memory; errors name the host instead of a path. Raises TraceFormatError."""
    data = np.frombuffer(xspace, np.uint8)
    source = BytesSource(FileState(host, len(data), 0), data)
    return _decoded(FileBytes(data), host, host, source, stats=stats)


def _other_kind(data: npt.NDArray[np.uint8], path: str) -> kinds.FileKind | None:
    """The kind of a file that is not an XSpace; None for an XSpace, whole or cut off."""
    top, bad = fields(data, 0, len(data))
    if not len(data) or structure.is_xspace(data, top):
        return None  # the decoder reports empty files
    by_bytes = kinds.kind_of_bytes(data[:4096].tobytes(), data[-8:].tobytes())
    if by_bytes is None and not len(top) and structure.begins_as_xspace(data):
        return None
    if structure.is_trace_events(data, top):
        return kinds.OLD_TRACE
    if structure.is_track_events(data, top) or (by_bytes is None and path.endswith(PERFETTO_SUFFIXES)):
        return kinds.PERFETTO
    return (
        kinds.kind_of_name(path)
        or by_bytes
        or (kinds.HLO if bad < 0 and structure.is_hlo(data, top) else kinds.UNKNOWN)
    )


def _decoded_events(data: npt.NDArray[np.uint8], state: FileState, was_packed: bool) -> Trace:
    from tb_tpuprof.ingest.chrome.trace_events import decode_trace_events

    source = PackedTraceEventSource(state) if was_packed else TraceEventSource(state)
    return decode_trace_events(data, state.path, host_of(state.path), source)


def _decoded_track_events(data: npt.NDArray[np.uint8], state: FileState) -> Trace:
    from tb_tpuprof.ingest.perfetto.decoder import decode_track_events

    return decode_track_events(data, state.path, host_of(state.path), ColumnSource(state))


def _decoded_table(data: npt.NDArray[np.uint8], state: FileState) -> Trace:
    from tb_tpuprof.ingest.chrome.table_events import decode_table
    from tb_tpuprof.ingest.storage.table_source import TableSource

    return decode_table(data, state.path, host_of(state.path), TableSource(state))


def _decoded_json(data: npt.NDArray[np.uint8], state: FileState, was_packed: bool) -> Trace:
    # Imported here: a process that reads only XSpaces starts sooner without it.
    from tb_tpuprof.ingest.chrome.decoder import decode_chrome
    from tb_tpuprof.ingest.storage.json_source import JsonSource, PackedJsonSource

    kind = kinds.kind_of_name(state.path)
    if kind is not None:  # another profiler's finished pages are JSON, too
        raise NotATrace(state.path, kind.what, kind.remedy)
    return decode_chrome(
        data, state.path, host_of(state.path), PackedJsonSource(state) if was_packed else JsonSource(state)
    )


def _decoded(
    file: FileBytes,
    path: str,
    host: str,
    source: TraceSource,
    is_outline: bool = False,
    damage: str = "",
    stats: frozenset[str] | None = None,
) -> Trace:
    """The trace of an XSpace. `damage`: what its file lacks."""
    if not IS_COMPILED:
        from tb_tpuprof.ingest.xspace.protobuf import decode_protobuf

        return decode_protobuf(file.data, path, host, damage, stats)
    try:
        return decode(file, path, host, source, is_outline, damage, stats)
    finally:
        file.release()
