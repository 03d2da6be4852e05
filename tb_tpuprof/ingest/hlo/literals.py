"""Literal messages → `Literal`: values of constants that are small enough to be shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.hlo.message import MAX_DEPTH, Message
from tb_tpuprof.ingest.hlo.shapes import ShapeReader
from tb_tpuprof.trace.hlo_attributes import Literal
from tb_tpuprof.trace.hlo_shape import NO_SHAPE

MAX_ELEMENTS = 1 << 16

# Element type → (field, dtype of its bytes). Types that NumPy lacks stay as their bits.
_BYTES = {
    2: (15, "<i1"),
    3: (17, "<i2"),
    6: (3, "<u1"),
    7: (16, "<u2"),
    10: (11, "<f2"),
    16: (13, "<u2"),
    19: (19, "<u1"),
    20: (20, "<u1"),
    21: (21, "i4"),
    22: (22, "u4"),
    23: (23, "<u1"),
    24: (24, "<u1"),
    25: (25, "<u1"),
    26: (26, "i2"),
    27: (27, "u2"),
    28: (28, "<u1"),
    29: (29, "<u1"),
    30: (30, "i1"),
    31: (31, "u1"),
    32: (32, "u4"),
    33: (33, "<u1"),
}
_VARINTS = {1: (2, np.bool_), 4: (4, np.int32), 5: (5, np.int64), 8: (6, np.uint32), 9: (7, np.uint64)}
_FIXED = {11: (8, "<f4"), 12: (9, "<f8"), 15: (12, "<c8"), 18: (18, "<c16")}


def read_literal(message: Message, shapes: ShapeReader, depth: int = 0) -> Literal:
    """A literal; its values have the shape's dimensions, in their logical order."""
    shape = shapes.read(*message.span(1)) if message.has(1) else NO_SHAPE
    if shape.is_tuple:
        inner = message.spans(10) if depth < MAX_DEPTH else []
        return Literal(
            shape,
            None,
            tuple(read_literal(Message(message.data, *span), shapes, depth + 1) for span in inner),
        )
    if not 0 < shape.n_elements <= MAX_ELEMENTS:
        empty = shape.is_array and shape.n_elements == 0 and all(n >= 0 for n in shape.dims)
        return Literal(shape, np.empty(0) if empty else None)
    flat = _flat(message, shape.element_type, shape.n_elements)
    if flat is None or len(flat) != shape.n_elements:
        return Literal(shape)
    order = shape.layout.minor_to_major if shape.layout else ()
    if sorted(order) != list(range(len(shape.dims))):
        return Literal(shape, flat.reshape(shape.dims))
    major = tuple(reversed(order))
    stored = flat.reshape([shape.dims[dim] for dim in major])
    return Literal(shape, stored.transpose(np.argsort(major)) if major else stored)


def _flat(message: Message, code: int, n: int) -> npt.NDArray[Any] | None:
    """Elements in the order in which they are stored, None for an unknown element type."""
    if code in _VARINTS:
        number, dtype = _VARINTS[code]
        return np.array(message.numbers(number), np.int64).astype(dtype)
    if code in _FIXED:
        number, name = _FIXED[code]
        return _fixed(message, number, name)
    if code not in _BYTES:
        return None
    number, name = _BYTES[code]
    data = message.blob(number)
    if name[0] == "<":
        return np.frombuffer(data[: len(data) - len(data) % np.dtype(name).itemsize], name)
    return _unpack(np.frombuffer(data, np.uint8), name, n)


def _fixed(message: Message, number: int, name: str) -> npt.NDArray[Any] | None:
    """Floats, packed or one by one."""
    size = np.dtype(name).itemsize
    if spans := message.spans(number):
        data = b"".join(message.data[a : a + k].tobytes() for a, k in spans)
        return np.frombuffer(data[: len(data) - len(data) % size], name)
    return np.array([message.decimal(number)], np.float64).astype(name) if message.has(number) else None


def _unpack(data: npt.NDArray[np.uint8], name: str, n: int) -> npt.NDArray[np.int64]:
    """Elements of 1, 2 or 4 bits that share bytes; those of 4 bits start at the high bits, the others at the
    low bits.
    """
    bits = int(name[1])
    per_byte = 8 // bits
    shifts = np.arange(per_byte)[::-1] * bits if bits == 4 else np.arange(per_byte) * bits
    values = ((data[:, None].astype(np.int64) >> shifts) & (2**bits - 1)).reshape(-1)[:n]
    if name[0] == "i":
        values = np.where(values >= 2 ** (bits - 1), values - 2**bits, values)
    return np.asarray(values, np.int64)
