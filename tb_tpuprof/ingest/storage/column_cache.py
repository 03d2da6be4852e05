"""Decoded columns kept in the user's cache folder and memory-mapped on the next opening.

    <cache folder>/columns/<key>.tpc
        8 bytes   "TPUCOLS" and a version byte
        4 bytes   length of the header
        4 bytes   CRC-32 of the header
        header    JSON: the file's state, the trace's facts, each array's dtype, offset, length and CRC-32
        arrays    each aligned to 64 bytes

The key is a hash of path, size and time of the trace file, and of which stats are decoded. A file that is
damaged, or that another user can write, is never used. If all files together exceed the limit, the least
recently used are removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from tb_tpuprof.ingest.storage.cache_folder import cache_folder, is_private, trim, write_whole
from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.ingest.storage.json_source import JsonSource, PackedJsonSource
from tb_tpuprof.ingest.storage.riegeli_source import RiegeliSource
from tb_tpuprof.ingest.storage.source import (
    FileSource,
    PackedSource,
    PackedTraceEventSource,
    TraceEventSource,
)
from tb_tpuprof.parallel.background import BACKGROUND, IsAbandoned
from tb_tpuprof.parallel.threads import call_in_parallel
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.references import check_references
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace, TraceInfo

VERSION = 9
_MAGIC = b"TPUCOLS" + bytes([VERSION])
_ALIGN = 64
_CHUNK_BYTES = 8 * 2**20
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
        RiegeliSource,
    )
}
_STAT_TABLES = ("event_stats", "metadata_stats", "plane_stats")
_SIZES = struct.Struct("<II")
_log = logging.getLogger(__name__)


class _Placed(NamedTuple):
    """An array in the file: its dtype, offset in bytes, length and checksum."""

    dtype: str
    offset: int
    length: int
    checksum: int


def limit_bytes() -> int:
    """How large the cache may grow: TPUPROF_CACHE_MB, else 8 GiB."""
    text = os.environ.get("TPUPROF_CACHE_MB", "")
    return int(text) * 2**20 if text.isdecimal() else DEFAULT_LIMIT_BYTES


def load(state: FileState) -> Trace | None:
    """The cached trace of a file in that state, memory-mapped; None without a usable one. A damaged cache
    file is removed.
    """
    path = _path(state)
    try:
        with open(path, "rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return None
            data = np.memmap(file, np.uint8, "r")
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    try:
        trace = _loaded(state, data)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, struct.error) as error:
        _log.warning("The cached columns %s are damaged (%s). %s is decoded again.", path, error, state.path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return trace


def _loaded(state: FileState, data: npt.NDArray[np.uint8]) -> Trace:
    """The trace in a cache file's bytes. Raises ValueError, KeyError or TypeError if they are damaged."""
    header, start = _header(data)
    if header["state"] != _identity(state):
        raise ValueError("of another file")
    placed = {name: _Placed(*facts) for name, facts in header["arrays"].items()}
    arrays = {name: _array(data, start, one) for name, one in placed.items()}
    checksums = call_in_parallel(partial(_checksum, values) for values in arrays.values())
    if checksums != [one.checksum for one in placed.values()]:
        raise ValueError("wrong checksum")
    return _trace(header["info"], arrays, _SOURCES[header["source"]](state))


def save_later(state: FileState, trace: Trace) -> threading.Thread | None:
    """Write the trace to the cache in the background, even while the interpreter exits. Small traces decode
    as fast as they would load and are not cached.
    """
    if trace.info.size_bytes < MIN_TRACE_BYTES or not isinstance(trace.source, FileSource):
        return None
    return BACKGROUND.start("tb_tpuprof column cache", partial(_save_quietly, state, trace))


def _save_quietly(state: FileState, trace: Trace, is_abandoned: IsAbandoned) -> None:
    try:
        save(state, trace, is_abandoned)
    except Exception:  # for whoever waits for the answer, a missing cache is no error
        _log.debug("The columns of %s could not be cached.", state.path, exc_info=True)


def _never() -> bool:
    """Default of `is_abandoned`."""
    return False


def save(state: FileState, trace: Trace, is_abandoned: IsAbandoned = _never) -> bool:
    """Write the trace to the cache; False if the folder cannot be written, the disk is full, or the write is
    abandoned. Then nothing remains of it.
    """
    arrays = _arrays(trace)
    placed: dict[str, _Placed] = {}
    n_bytes = 0
    for name, values in arrays.items():
        placed[name] = _Placed(values.dtype.str, n_bytes, len(values), _checksum(values))
        n_bytes += -(-values.nbytes // _ALIGN) * _ALIGN
    info = {**trace.info.__dict__}
    source = type(trace.source).__name__
    header = json.dumps(
        {"state": _identity(state), "source": source, "info": info, "arrays": placed}
    ).encode()
    header += b" " * (-(len(header) + 16) % _ALIGN)

    def parts() -> Iterator[bytes | memoryview]:
        yield _MAGIC + _SIZES.pack(len(header), zlib.crc32(header)) + header
        for values in arrays.values():
            content = values.view(np.uint8).data
            for start in range(0, len(content), _CHUNK_BYTES):
                if is_abandoned():
                    raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
                yield content[start : start + _CHUNK_BYTES]
            yield b"\0" * (-values.nbytes % _ALIGN)

    path = _path(state)
    is_written = False
    with contextlib.suppress(OSError):
        write_whole(path, parts(), n_bytes)
        is_written = True
    with contextlib.suppress(OSError):  # also of a full disk: it may hold what a killed process left
        trim(path.parent, limit_bytes())
    return is_written


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
    """The header, and where the arrays start. Raises ValueError, struct.error or JSONDecodeError."""
    if data[:8].tobytes() != _MAGIC:
        raise ValueError("not a column cache of this version")
    length, checksum = _SIZES.unpack(data[8:16].tobytes())
    header = data[16 : 16 + length].tobytes()
    if zlib.crc32(header) != checksum:
        raise ValueError("wrong checksum of the header")
    return json.loads(header), 16 + length


def _array(data: npt.NDArray[np.uint8], start: int, placed: _Placed) -> npt.NDArray[Any]:
    kind = np.dtype(placed.dtype)
    end = start + placed.offset + placed.length * kind.itemsize
    if kind.hasobject or placed.offset < 0 or placed.length < 0 or end > len(data):
        raise ValueError("an array ends outside of the file")
    return np.frombuffer(data, kind, placed.length, start + placed.offset)


def _arrays(trace: Trace) -> dict[str, npt.NDArray[Any]]:
    """All arrays of a trace, contiguous."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "strings.blob": trace.strings.blob,
        "strings.offsets": trace.strings.offsets,
    }
    for name in schema.TABLES:
        part = getattr(trace, name)
        table = part.table if isinstance(part, StatTable) else part
        arrays.update({f"{name}.{column}": values for column, values in table.columns.items()})
    return {name: np.ascontiguousarray(values) for name, values in arrays.items()}


def _checksum(values: npt.NDArray[Any]) -> int:
    """CRC-32 of a contiguous array's bytes."""
    return int(isal_zlib.crc32(values.view(np.uint8)))


def _trace(info: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], source: FileSource) -> Trace:
    strings = Strings(arrays["strings.blob"], arrays["strings.offsets"])
    tables = {
        name: Table(spec, {column.name: arrays[f"{name}.{column.name}"] for column in spec})
        for name, spec in schema.TABLES.items()
    }
    check_references(tables, strings)
    parts: dict[str, Any] = {
        name: StatTable(table, strings) if name in _STAT_TABLES else table for name, table in tables.items()
    }
    facts: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in info.items()
    }
    return Trace(TraceInfo(**facts), strings, source=source, **parts)
