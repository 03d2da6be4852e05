"""Payload → binary columns (docs/http_api.md, `format=columns`): a JSON header, then little-endian arrays aligned to 8 bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.encode.json import dumps, payload_object
from tb_tpuprof.tools.base import Column, Payload

MAGIC = b"TPC1"
_ALIGN = 8
_INTS = (("u1", np.uint8), ("u2", np.uint16), ("u4", np.uint32), ("i1", np.int8), ("i2", np.int16), ("i4", np.int32))
MAX_EXACT = 2**53


def encode_columns(payload: Payload) -> bytes:
    """The payload with each column's rows as one typed array of the narrowest type that holds them."""
    buffers: list[bytes] = []
    size = 0

    def place(column: Column) -> dict[str, Any]:
        nonlocal size
        name, values, is_delta = narrowed(column)
        facts = {"dtype": name, "offset": size, "length": len(values), "delta": is_delta}
        data = values.tobytes()
        data += b"\0" * (-len(data) % _ALIGN)
        buffers.append(data)
        size += len(data)
        return {"buffer": facts, **({"strings": list(column.strings)} if column.strings is not None else {})}

    header = dumps(payload_object(payload, place))
    header += b" " * (-len(header) % _ALIGN)
    return b"".join([MAGIC, struct.pack("<I", len(header)), header, *buffers])


def narrowed(column: Column) -> tuple[str, npt.NDArray[Any], bool]:
    """(dtype's name, array, whether it holds differences). Integers beyond 2^53 lose their last bits, as JSON's do in a browser."""
    values = column.values
    if values.dtype.kind == "b":
        return "u1", values.astype(np.uint8), False
    if values.dtype.kind == "f":
        return ("f4", values, False) if values.dtype == np.float32 else ("f8", values.astype("<f8"), False)
    if not len(values):
        return "u1", np.empty(0, np.uint8), False
    is_delta = column.delta and abs(int(values.max())) < MAX_EXACT and abs(int(values.min())) < MAX_EXACT
    if is_delta:
        values = np.diff(values, prepend=values.dtype.type(0))
    low, high = int(values.min()), int(values.max())
    for name, dtype in _INTS:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return name, values.astype(dtype), is_delta
    return "f8", values.astype("<f8"), is_delta
