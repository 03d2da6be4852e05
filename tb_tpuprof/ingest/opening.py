"""A file's path → its Trace: unpacked if need be, decoded by the native decoder, or by protobuf where that was not built."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.files import file_state, read_file
from tb_tpuprof.ingest.runs import host_of
from tb_tpuprof.ingest.source import FileSource
from tb_tpuprof.trace.trace import Trace

Decode = Callable[[npt.NDArray[np.uint8], str, str], Trace]


def open_trace(path: str) -> Trace:
    """Decode one host's file. Raises StorageError or TraceFormatError."""
    state = file_state(path)
    from tb_tpuprof.ingest.xspace import FileBytes, decode

    return decode(FileBytes(read_file(path)), path, host_of(path), FileSource(state))
