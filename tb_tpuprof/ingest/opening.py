"""A file's path → its Trace: by the native decoder, or by the protobuf runtime where that was not built."""

from __future__ import annotations

from tb_tpuprof.ingest.files import file_state, read_file
from tb_tpuprof.ingest.runs import host_of
from tb_tpuprof.ingest.source import FileSource, PackedSource
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.trace import Trace, TraceSource


def open_trace(path: str) -> Trace:
    """Decode one host's file, plain or gzipped. Raises StorageError or TraceFormatError."""
    state = file_state(path)
    data, was_packed = read_file(path)
    if not IS_COMPILED:
        from tb_tpuprof.ingest.xspace_protobuf import decode_protobuf

        return decode_protobuf(data, path, host_of(path))
    from tb_tpuprof.ingest.xspace import FileBytes, decode

    source: TraceSource = PackedSource(state) if was_packed else FileSource(state)
    file = FileBytes(data)
    del data
    return decode(file, path, host_of(path), source)
