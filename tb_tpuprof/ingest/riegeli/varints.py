"""Varints of chunks and their headers: one by one, or many at once as an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_MOST_BYTES = 9  # of a varint below 2^63: nothing in these files is larger


class Damaged(ValueError):
    """Bytes that are not what the format says; the message completes "… because …"."""


class VarintReader:
    """Reads an array from its start. All methods raise Damaged where it ends too early."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.position = 0

    def number(self) -> int:
        """The next varint."""
        value = 0
        head = self.data[self.position : self.position + _MOST_BYTES].tobytes()
        for i, byte in enumerate(head):
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                self.position += i + 1
                return value
        raise Damaged("a number is cut off or too large")

    def numbers(self, n: int) -> Ints:
        """The next n varints."""
        rest = self.data[self.position :]
        if n > len(rest):
            raise Damaged("a list of numbers is cut off")
        if not n:
            return np.empty(0, np.int64)
        ends = np.flatnonzero(rest[: n * _MOST_BYTES] < 0x80)[:n]
        sizes = np.diff(ends, prepend=-1)
        if len(ends) < n or int(sizes.max()) > _MOST_BYTES:
            raise Damaged("a list of numbers is cut off or has one that is too large")
        used = rest[: int(ends[-1]) + 1]
        starts = ends + 1 - sizes
        place = np.arange(len(used)) - np.repeat(starts, sizes)
        parts = (used & 0x7F).astype(np.int64) << (7 * place)
        self.position += len(used)
        return np.add.reduceat(parts, starts)

    def bytes(self, n: int) -> Bytes:
        """The next n bytes."""
        if n > len(self.data) - self.position:
            raise Damaged("a part is cut off")
        self.position += n
        return self.data[self.position - n : self.position]

    def rest(self) -> Bytes:
        """All bytes that are left."""
        return self.bytes(len(self.data) - self.position)
