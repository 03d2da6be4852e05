"""A file or an XSpace in memory → its Trace: Chrome trace JSON; an XSpace natively or by the protobuf runtime where nothing is compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.files import FileBytes, FileState, file_state, is_chrome_trace, read_file
from tb_tpuprof.ingest.outline_bytes import PartialFile, reads_in_part
from tb_tpuprof.ingest.runs import host_of, is_program
from tb_tpuprof.ingest.source import BytesSource, FileSource, PackedSource
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.trace import Trace, TraceSource

if IS_COMPILED:  # loaded with the plugin, not while the first answer waits
    from tb_tpuprof.ingest.xspace import decode

_NO_EVENTS = b"\x22\x00"  # an XSpace with nothing but a host without a name


def open_trace(path: str, is_outline: bool = False) -> Trace:
    """Decode one host's file, plain or gzipped. Raises StorageError or TraceFormatError.

    An outline need not hold more than the planes with their stats, and the programs: with it, large files open in a moment.
    """
    state = file_state(path)
    if is_program(path):  # a run of programs alone: a trace without events, whose programs lie beside one another
        return _decoded(FileBytes(np.frombuffer(_NO_EVENTS, np.uint8)), path, host_of(path), FileSource(state))
    if IS_COMPILED and reads_in_part(state):
        return _decoded(PartialFile(path, is_outline), path, host_of(path), FileSource(state), is_outline)
    data, was_packed = read_file(path)
    if is_chrome_trace(data):
        return _decoded_json(data, state, was_packed)
    source: TraceSource = PackedSource(state) if was_packed else FileSource(state)
    file = FileBytes(data)
    del data
    return _decoded(file, path, host_of(path), source, is_outline)


def trace_of_bytes(xspace: bytes | memoryview, host: str) -> Trace:
    """Decode an XSpace that is in memory; the host's name stands for a path in errors. Raises TraceFormatError."""
    data = np.frombuffer(xspace, np.uint8)
    return _decoded(FileBytes(data), host, host, BytesSource(FileState(host, len(data), 0), data))


def _decoded_json(data: npt.NDArray[np.uint8], state: FileState, was_packed: bool) -> Trace:
    from tb_tpuprof.ingest.chrome_trace import decode_chrome  # a process that only reads XSpaces starts sooner without it
    from tb_tpuprof.ingest.json_source import JsonSource, PackedJsonSource

    return decode_chrome(data, state.path, host_of(state.path), PackedJsonSource(state) if was_packed else JsonSource(state))


def _decoded(file: FileBytes, path: str, host: str, source: TraceSource, is_outline: bool = False) -> Trace:
    if not IS_COMPILED:
        from tb_tpuprof.ingest.xspace_protobuf import decode_protobuf

        return decode_protobuf(file.data, path, host)
    try:
        return decode(file, path, host, source, is_outline)
    finally:
        file.release()
