"""Shape messages → `Shape`; each distinct byte sequence is read once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.hlo.message import MAX_DEPTH, Bytes, Message
from tb_tpuprof.trace.hlo_shape import BUFFER, NO_SHAPE, TUPLE, Layout, Shape

Ints = npt.NDArray[np.int64]


class ShapeReader:
    """Reads shapes from a block of bytes; equal bytes give the same object. Counts shapes that nest too deep
    or are malformed.
    """

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.n_damaged = 0
        self._shapes: dict[bytes, Shape] = {}
        self._layouts: dict[bytes, Layout] = {}

    def read(self, start: int, size: int, depth: int = 0) -> Shape:
        """The shape in data[start:start + size]."""
        if depth > MAX_DEPTH:
            self.n_damaged += 1
            return NO_SHAPE
        key = self.data[start : start + size].tobytes() if size < _MAX_CACHED_BYTES else None
        if key is not None and key in self._shapes:
            return self._shapes[key]
        message = Message(self.data, start, size)
        self.n_damaged += message.is_damaged
        code = message.number32(2)
        elements = (
            tuple(self.read(*span, depth + 1) for span in message.spans(4)) if code in (TUPLE, BUFFER) else ()
        )
        dims, layout = message.numbers(3), None
        self.n_damaged += any(n < 0 and n != -(2**63) for n in dims)
        if message.has(5):
            layout = self._layout(*message.span(5))
        shape = Shape(code, dims, tuple(flag != 0 for flag in message.numbers(6)), layout, elements)
        if key is not None:
            self._shapes[key] = shape
        return shape

    def _layout(self, start: int, size: int) -> Layout:
        key = self.data[start : start + size].tobytes()
        if key not in self._layouts:
            self._layouts[key] = read_layout(Message(self.data, start, size))
        return self._layouts[key]


_MAX_CACHED_BYTES = 1 << 16


def read_layout(message: Message) -> Layout:
    """The layout in a message."""
    return Layout(
        minor_to_major=message.numbers(1),
        tiles=tuple(tile.numbers(1) for tile in message.messages(6)),
        element_bits=max(message.number(7), 0),
        memory_space=message.number(8),
        tail_padding_elements=max(message.number(16), 1),
        dynamic_prefix_bytes=message.number(15),
        index_type=message.number32(11),
        pointer_type=message.number32(12),
        dim_levels=message.numbers(9),
        splits=tuple((split.number(1), split.numbers(2)) for split in message.messages(17)),
    )
