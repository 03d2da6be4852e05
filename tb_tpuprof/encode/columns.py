"""Payload → binary columns (docs/http_api.md, `format=columns`): a JSON header, then little-endian arrays
aligned to 8 bytes.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import numpy as np

from tb_tpuprof.encode.json import dumps, payload_object
from tb_tpuprof.native import packed
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import run_in_parallel
from tb_tpuprof.tools.payload import Column, Payload

MAGIC = b"TPC1"
_ALIGN = 8


def encode_columns(payload: Payload) -> bytes:
    """The payload with each column's rows as one typed array of the narrowest type that holds them."""
    buffers: list[bytes] = []
    size = 0
    large = {
        id(column): column
        for table in payload.tables.values()
        for column in table.columns
        if len(column.values) >= POLICY.min_parallel_rows
    }
    ahead = dict(zip(large, run_in_parallel(_buffer, large.values()), strict=True)) if large else {}

    def place(column: Column) -> dict[str, Any]:
        nonlocal size
        facts, data = ahead.get(id(column)) or _buffer(column)
        facts["offset"] = size
        padding = b"\0" * (-len(data) % _ALIGN)
        buffers.extend((data, padding))
        size += len(data) + len(padding)
        return {"buffer": facts, **({"strings": list(column.strings)} if column.strings is not None else {})}

    header = dumps(payload_object(payload, place))
    header += b" " * (-len(header) % _ALIGN)
    return b"".join([MAGIC, struct.pack("<I", len(header)), header, *buffers])


def _buffer(column: Column) -> tuple[dict[str, Any], bytes]:
    """A column's entry in the header, and its buffer. Integers beyond 2^53 lose their last bits,
    as JSON's do in a browser.
    """
    values = column.values
    facts: dict[str, Any] = {"dtype": "u1", "offset": 0, "length": len(values), "delta": False}
    if values.dtype.kind == "b" or (values.dtype == np.uint8 and not column.delta):
        return facts, values.astype(np.uint8, copy=False).tobytes()
    if values.dtype == np.float32:
        return {**facts, "dtype": "f4"}, values.tobytes()
    if values.dtype.kind != "f" and values.dtype != np.uint64:
        with contextlib.suppress(OverflowError):
            dtype, base, scale, data = packed(np.ascontiguousarray(values, np.int64), column.delta)
            return {**facts, "dtype": dtype, "delta": column.delta, "base": base, "scale": scale}, data
    return {**facts, "dtype": "f8"}, values.astype("<f8").tobytes()
