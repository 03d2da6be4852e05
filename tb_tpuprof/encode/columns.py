"""Payload → binary columns (docs/http_api.md, `format=columns`): a JSON header, then little-endian arrays
aligned to 8 bytes.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.encode.gzip import FAST, gzipped
from tb_tpuprof.encode.json import dumps, payload_object
from tb_tpuprof.native import packed
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import run_in_parallel
from tb_tpuprof.tools.payload import Column, Payload, Table

MAGIC = b"TPC1"
MIN_ROWS_IN_PARTS = 2_048
N_TRIED = 1_024  # numbers that are compressed in both ways to choose one
ROWS_PER_CHANGE = 64  # a column that changes more rarely is a few bytes as it is
_ALIGN = 8
_EXACT = 2**53

Buffer = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class _Parts:
    """The rows of a table by part: `order` lists them, `offsets` where each part begins in it; `number` is
    the part of each row.
    """

    number: npt.NDArray[np.uint8]
    order: npt.NDArray[np.intp]
    offsets: list[int]


@dataclass(frozen=True)
class _Sent:
    """A column with what it takes to send it: its table, and the parts to send it in, None for a whole."""

    column: Column
    table: Table
    parts: _Parts | None


def encode_columns(payload: Payload) -> bytes:
    """The payload with each column's rows as one typed array of the narrowest type that holds them, or as
    one for each part of the table.
    """
    body: list[bytes] = []
    size = 0
    parts_of = {name: _parts_of(table) for name, table in payload.tables.items()}
    sent = [
        _Sent(column, table, parts_of[name] if _is_varied(column) else None)
        for name, table in payload.tables.items()
        for column in table.columns
    ]
    large = [one for one in sent if len(one.column.values) >= POLICY.min_parallel_rows]
    ahead = dict(zip(map(id, large), run_in_parallel(_buffers, large), strict=True)) if large else {}
    in_order = iter(sent)

    def placed(buffer: Buffer) -> dict[str, Any]:
        nonlocal size
        facts, data = buffer
        facts["offset"] = size
        padding = b"\0" * (-len(data) % _ALIGN)
        body.extend((data, padding))
        size += len(data) + len(padding)
        return facts

    def place(column: Column) -> dict[str, Any]:
        one = next(in_order)  # the object lists tables and columns as the payload does
        heads = [placed(buffer) for buffer in ahead.get(id(one)) or _buffers(one)]
        fields: dict[str, Any] = {"buffers": heads} if one.parts else {"buffer": heads[0]}
        return {**fields, **({"strings": list(column.strings)} if column.strings is not None else {})}

    tree = payload_object(payload, place)
    for name, parts in parts_of.items():
        if parts:
            tree["tables"][name]["parts"] = placed(_buffer(parts.number))
    header = dumps(tree)
    header += b" " * (-len(header) % _ALIGN)
    return b"".join([MAGIC, struct.pack("<I", len(header)), header, *body])


def _parts_of(table: Table) -> _Parts | None:
    """The parts of a table's rows, numbered from 0; None if it is sent as a whole."""
    if table.parts is None or table.n_rows < MIN_ROWS_IN_PARTS:
        return None
    sizes = np.bincount(table.parts, minlength=256)
    used = np.flatnonzero(sizes)
    number = np.zeros(256, np.uint8)
    number[used] = np.arange(len(used))
    offsets = np.cumsum([0, *sizes[used].tolist()]).tolist()
    return _Parts(number[table.parts], np.argsort(table.parts, kind="stable"), offsets)


def _is_varied(column: Column) -> bool:
    """Whether a column's values change so often that it is worth dividing."""
    values = column.values
    if len(values) < MIN_ROWS_IN_PARTS:
        return False
    return bool(np.count_nonzero(values[1:] != values[:-1]) * ROWS_PER_CHANGE > len(values))


def _buffers(sent: _Sent) -> list[Buffer]:
    """A column's entries in the header with their buffers: one, or one for each part."""
    column = sent.column
    if not sent.parts:
        return [_buffer(column.values, column.delta)]
    order, offsets = sent.parts.order, sent.parts.offsets
    values = column.values[order]
    parts = [slice(a, b) for a, b in itertools.pairwise(offsets)]
    lengths = next((one for one in sent.table.columns if one.name == column.after), None)
    if lengths is None or not _is_varied(lengths):
        return [_buffer(values[part], column.delta) for part in parts]
    before = lengths.values[order]
    return [_follower(values[part], before[part], column.after) for part in parts]


def _follower(values: npt.NDArray[Any], lengths: npt.NDArray[Any], after: str) -> Buffer:
    """The buffer of starts: as differences from the start before, or from the end before (the start and its
    length) if the first of them compress better so.
    """
    if values.dtype.kind != "i" or float(np.sum(lengths, dtype=np.float64)) + float(values.max()) >= _EXACT:
        return _buffer(values, True)
    gaps = values - (np.cumsum(lengths) - lengths)
    by_start, by_end = (len(gzipped(_buffer(numbers[:N_TRIED], True)[1], FAST)) for numbers in (values, gaps))
    if by_start <= by_end:
        return _buffer(values, True)
    facts, data = _buffer(gaps, True)
    return {**facts, "after": after}, data


def _buffer(values: npt.NDArray[Any], is_delta: bool = False) -> Buffer:
    """Numbers as an entry in the header and a buffer. Integers beyond 2^53 lose their last bits, as JSON's do
    in a browser.
    """
    facts: dict[str, Any] = {"dtype": "u1", "offset": 0, "length": len(values), "delta": False}
    if values.dtype.kind == "b" or (values.dtype == np.uint8 and not is_delta):
        return facts, values.astype(np.uint8, copy=False).tobytes()
    if values.dtype == np.float32:
        return {**facts, "dtype": "f4"}, values.tobytes()
    if values.dtype.kind != "f" and values.dtype != np.uint64:
        with contextlib.suppress(OverflowError):
            dtype, base, scale, data = packed(np.ascontiguousarray(values, np.int64), is_delta)
            return {**facts, "dtype": dtype, "delta": is_delta, "base": base, "scale": scale}, data
    return {**facts, "dtype": "f8"}, values.astype("<f8").tobytes()
