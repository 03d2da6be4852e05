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

from tb_tpuprof.encode.json import dumps, payload_object
from tb_tpuprof.native import divided, packed, packed_parts
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import run_in_parallel
from tb_tpuprof.tools.payload import Column, Payload, Table

MAGIC = b"TPC1"
MIN_ROWS_IN_PARTS = 2_048
ROWS_PER_CHANGE = 64  # a column that changes more rarely is a few bytes as it is
N_STRETCHES, STRETCH_ROWS = 8, 1_024
_ALIGN = 8
_EXACT = 2**53

Int64s = npt.NDArray[np.int64]
Buffer = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class _Parts:
    """The rows of a table by part: `order` lists them, `offsets` where each part begins in it; `number` is
    the part of each row.
    """

    number: npt.NDArray[np.uint8]
    order: npt.NDArray[np.int32]
    offsets: Int64s


@dataclass(frozen=True)
class _Sent:
    """A column with what it takes to send it: its table, and the table's rows by part, None if it has no
    parts.
    """

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
        _Sent(column, table, parts_of[name])
        for name, table in payload.tables.items()
        for column in table.columns
    ]
    large = [one for one in sent if len(one.column.values) >= POLICY.min_parallel_rows]
    large.sort(key=lambda one: not one.column.after)  # those that are packed in two ways take longest
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
        buffers = ahead.get(id(one)) or _buffers(one)
        fields: dict[str, Any] = (
            {"buffers": [placed(buffer) for buffer in buffers]}
            if isinstance(buffers, list)
            else {"buffer": placed(buffers)}
        )
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
    return _Parts(*divided(table.parts))


def _is_varied(column: Column) -> bool:
    """Whether a column's values change so often that it is worth dividing, judging by stretches of it."""
    values = column.values
    if len(values) < MIN_ROWS_IN_PARTS:
        return False
    length = len(values) // N_STRETCHES
    stretches = values[: N_STRETCHES * length].reshape(N_STRETCHES, length)[:, :STRETCH_ROWS]
    n_changes = np.count_nonzero(stretches[:, 1:] != stretches[:, :-1])
    return bool(n_changes * ROWS_PER_CHANGE > stretches.size)


def _buffers(sent: _Sent) -> Buffer | list[Buffer]:
    """A column's entry in the header with its buffer, or one for each part if it is worth dividing. Starts
    count from the start before, or from the end before (the start and its length), whichever compresses
    better.
    """
    column, parts = sent.column, sent.parts
    if not parts or not _is_varied(column):
        return _buffer(column.values, column.delta)
    rows_of = [parts.order[a:b] for a, b in itertools.pairwise(parts.offsets.tolist())]
    if _is_packed(column.values, column.delta):
        values = np.ascontiguousarray(column.values, np.int64)
        lengths = _lengths(sent)
        with contextlib.suppress(OverflowError):
            packs = packed_parts(values, parts.order, parts.offsets, column.delta, lengths)
            after = {True: {"after": column.after}, False: {}}
            return [
                ({**_facts(dtype, len(rows), column.delta, base, scale), **after[is_after]}, data)
                for (dtype, base, scale, data, is_after), rows in zip(packs, rows_of, strict=True)
            ]
    return [_buffer(column.values[rows], column.delta) for rows in rows_of]


def _lengths(sent: _Sent) -> Int64s | None:
    """The lengths of the rows that start where the column says, if they vary."""
    lengths = next((one for one in sent.table.columns if one.name == sent.column.after), None)
    if lengths is None or lengths.values.dtype.kind != "i" or not _is_varied(lengths):
        return None
    return np.ascontiguousarray(lengths.values, np.int64)


def _is_packed(values: npt.NDArray[Any], is_delta: bool) -> bool:
    """Whether numbers take as few bytes as hold them; the others are sent as they are."""
    return values.dtype.kind in "iu" and values.dtype != np.uint64 and (is_delta or values.dtype != np.uint8)


def _buffer(values: npt.NDArray[Any], is_delta: bool = False) -> Buffer:
    """Numbers as an entry in the header and a buffer. Integers beyond 2^53 lose their last bits, as JSON's do
    in a browser.
    """
    if _is_packed(values, is_delta):
        with contextlib.suppress(OverflowError):
            dtype, base, scale, data = packed(np.ascontiguousarray(values, np.int64), is_delta)
            return _facts(dtype, len(values), is_delta, base, scale), data
    if values.dtype.kind == "b" or values.dtype == np.uint8:
        return _facts("u1", len(values)), values.astype(np.uint8, copy=False).tobytes()
    if values.dtype == np.float32:
        return _facts("f4", len(values)), values.tobytes()
    return _facts("f8", len(values)), values.astype("<f8").tobytes()


def _facts(dtype: str, length: int, is_delta: bool = False, base: int = 0, scale: int = 1) -> dict[str, Any]:
    """A buffer's entry in the header, but for its place."""
    facts = {"dtype": dtype, "offset": 0, "length": length, "delta": is_delta}
    return {**facts, "base": base, "scale": scale} if is_delta or (base, scale) != (0, 1) else facts
