"""A file with a snapshot of memory, plain or gzipped → its Heap. Its first bytes decide the format."""

from __future__ import annotations

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.heap.pprof import read_pprof
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.ingest.storage.files import read_file
from tb_tpuprof.native.machine_memory import machine_memory
from tb_tpuprof.trace.heap import Heap

MAX_BYTES = 2**30
_MEMORY_PER_BYTE = 16  # objects of Python take more than the bytes that they are made of
_PICKLE = b"\x80"


def read_heap(path: str) -> Heap:
    """The memory in the file. Raises StorageError or TraceFormatError, NotATrace for other kinds of files."""
    data, _ = read_file(path)
    limit = min(MAX_BYTES, machine_memory() // _MEMORY_PER_BYTE)
    if len(data) > limit:
        raise TraceFormatError(
            path,
            -1,
            f"has {len(data):,} bytes, more than the {limit:,} that can be read",
            "Save a snapshot of a shorter history, or of fewer allocations.",
        )
    if not len(data):
        raise TraceFormatError(path, 0, "is empty (0 bytes)", "Save the snapshot again.")
    content = data.tobytes()
    return (read_torch_snapshot if content.startswith(_PICKLE) else read_pprof)(content, path)
