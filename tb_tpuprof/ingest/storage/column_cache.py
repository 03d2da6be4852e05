"""Decoded columns kept in the user's cache folder and memory-mapped on the next opening.

    <cache folder>/columns/<key>.tpc
        8 bytes   "TPUCOLS" and a version byte
        8 bytes   length of the header
        header    JSON: the file's state, the trace's facts, each array's dtype, offset and length
        arrays    each aligned to 64 bytes

The key is a hash of path, size and time of the trace file, and of which stats are decoded. When all files are
together larger than the limit, the longest unused go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.storage.cache_folder import cache_folder, trim, write_whole
from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.ingest.storage.json_source import JsonSource, PackedJsonSource
from tb_tpuprof.ingest.storage.source import (
    FileSource,
    PackedSource,
    PackedTraceEventSource,
    TraceEventSource,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace, TraceInfo

VERSION = 7
_MAGIC = b"TPUCOLS" + bytes([VERSION])
_ALIGN = 64
MIN_TRACE_BYTES = 4 * 2**20
DEFAULT_LIMIT_BYTES = 8 * 2**30
_SOURCES = {
    source.__name__: source
    for source in (
        FileSource,
        PackedSource,
        JsonSource,
        PackedJsonSource,
        TraceEventSource,
        PackedTraceEventSource,
    )
}
_STAT_TABLES = ("event_stats", "metadata_stats", "plane_stats")


def limit_bytes() -> int:
    """How large the cache may grow: TPUPROF_CACHE_MB, else 8 GiB."""
    text = os.environ.get("TPUPROF_CACHE_MB", "")
    return int(text) * 2**20 if text.isdigit() else DEFAULT_LIMIT_BYTES


def load(state: FileState) -> Trace | None:
    """The cached trace of a file in that state, memory-mapped; None where there is none that can be used."""
    path = _path(state)
    try:
        data = np.memmap(path, np.uint8, "r")
        header, start = _header(data)
        if header["state"] != _identity(state):
            return None
        arrays = {name: _array(data, start, *facts) for name, facts in header["arrays"].items()}
        trace = _trace(header["info"], arrays, _SOURCES[header["source"]](state))
        with contextlib.suppress(OSError):
            os.utime(path)
        return trace
    except (OSError, ValueError, KeyError, TypeError, json.JSONDecodeError):
        return None


def save_later(state: FileState, trace: Trace) -> threading.Thread | None:
    """Write the trace to the cache in the background; small ones decode as fast as they would load and are
    not kept.
    """
    if trace.info.size_bytes < MIN_TRACE_BYTES or not isinstance(trace.source, FileSource):
        return None
    thread = threading.Thread(target=save, args=(state, trace), name="tb_tpuprof column cache")
    thread.start()
    return thread


def save(state: FileState, trace: Trace) -> bool:
    """Write the trace to the cache; False where the folder cannot be written, which is no error."""
    arrays = _arrays(trace)
    placed: dict[str, tuple[str, int, int]] = {}
    offset = 0
    for name, values in arrays.items():
        placed[name] = (values.dtype.str, offset, len(values))
        offset += -(-values.nbytes // _ALIGN) * _ALIGN
    info = {**trace.info.__dict__}
    source = type(trace.source).__name__
    header = json.dumps(
        {"state": _identity(state), "source": source, "info": info, "arrays": placed}
    ).encode()
    header += b" " * (-(len(header) + 16) % _ALIGN)

    def parts() -> Iterator[bytes | memoryview]:
        yield _MAGIC + struct.pack("<Q", len(header)) + header
        for values in arrays.values():
            yield np.ascontiguousarray(values).data
            yield b"\0" * (-values.nbytes % _ALIGN)

    path = _path(state)
    try:
        write_whole(path, parts())
    except OSError:
        return False
    trim(path.parent, limit_bytes())
    return True


def _identity(state: FileState) -> list[Any]:
    return [
        os.path.abspath(state.path) if "://" not in state.path else state.path,
        state.size_bytes,
        state.mtime_ns,
    ]


def _path(state: FileState) -> Path:
    key = hashlib.sha256(
        json.dumps([VERSION, schema.HOT_STATS, schema.DEVICE_STATS, *_identity(state)]).encode()
    ).hexdigest()
    return cache_folder("columns") / f"{key[:32]}.tpc"


def _header(data: npt.NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    if data[:8].tobytes() != _MAGIC:
        raise ValueError("not a column cache of this version")
    (length,) = struct.unpack("<Q", data[8:16].tobytes())
    if length > len(data) - 16:
        raise ValueError("cut off")
    return json.loads(data[16 : 16 + length].tobytes()), 16 + length


def _array(data: npt.NDArray[np.uint8], start: int, dtype: str, offset: int, length: int) -> npt.NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.hasobject or offset < 0 or length < 0 or start + offset + length * kind.itemsize > len(data):
        raise ValueError("an array lies outside of the file")
    return np.frombuffer(data, kind, length, start + offset)


def _arrays(trace: Trace) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "strings.blob": trace.strings.blob,
        "strings.offsets": trace.strings.offsets,
    }
    for name in schema.TABLES:
        part = getattr(trace, name)
        table = part.table if isinstance(part, StatTable) else part
        arrays.update({f"{name}.{column}": values for column, values in table.columns.items()})
    return arrays


def _trace(info: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], source: FileSource) -> Trace:
    strings = Strings(arrays["strings.blob"], arrays["strings.offsets"])
    parts: dict[str, Any] = {}
    for name, spec in schema.TABLES.items():
        table = Table(spec, {column.name: arrays[f"{name}.{column.name}"] for column in spec})
        parts[name] = StatTable(table, strings) if name in _STAT_TABLES else table
    facts: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in info.items()
    }
    return Trace(TraceInfo(**facts), strings, source=source, **parts)
