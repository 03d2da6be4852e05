"""One protobuf message within a block of bytes → its fields by number, each with protobuf's default where it
is absent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import fields, ints, parts, spans

Bytes = npt.NDArray[np.uint8]
_MANY = 256  # fields from which on arrays sort them faster than a loop: lists of devices
MAX_DEPTH = 64  # of what nests within itself: tuples of shapes, shardings, literals


class Message:
    """The fields of data[start:start + size]; of a malformed message those before the damage."""

    __slots__ = ("_fields", "data", "is_damaged", "size", "start")

    def __init__(self, data: Bytes, start: int, size: int) -> None:
        self.data = data
        self.start = start
        self.size = size
        rows, bad = fields(data, start, start + size)
        self.is_damaged = bad >= 0
        self._fields: dict[int, Any] = {}  # a list of (wire, value, size), or the rows of an array
        for number, wire, value, length in rows.tolist() if len(rows) < _MANY else ():
            self._fields.setdefault(number, []).append((wire, value, length))
        if len(rows) >= _MANY:
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            first = np.flatnonzero(np.diff(rows[:, 0], prepend=-1))
            self._fields = {int(part[0, 0]): part[:, 1:] for part in np.split(rows, first[1:])}

    def _of(self, number: int) -> Sequence[Sequence[int]]:
        """Wire type, value or position, and size of each occurrence of a field."""
        found = self._fields.get(number, ())
        return found.tolist() if isinstance(found, np.ndarray) else found  # type: ignore[no-any-return]

    def has(self, number: int) -> bool:
        """Whether the field is there."""
        return number in self._fields

    @property
    def numbers_present(self) -> Iterable[int]:
        """The numbers of the fields that are there."""
        return self._fields.keys()

    def number(self, number: int) -> int:
        """A varint as int64."""
        for wire, value, _ in reversed(self._of(number)):
            if wire == 0:
                return value
        return 0

    def number32(self, number: int) -> int:
        """A varint as int32."""
        return ((self.number(number) + 2**31) & 0xFFFFFFFF) - 2**31

    def flag(self, number: int) -> bool:
        """A varint as bool."""
        return self.number(number) != 0

    def decimal(self, number: int) -> float:
        """A float or a double."""
        for wire, value, size in reversed(self._of(number)):
            if wire in (1, 5):
                return float(
                    struct.unpack("<d" if wire == 1 else "<f", self.data[value : value + size].tobytes())[0]
                )
        return 0.0

    def span(self, number: int) -> tuple[int, int]:
        """Position and size of bytes, (0, 0) where there are none."""
        for wire, value, size in reversed(self._of(number)):
            if wire == 2:
                return value, size
        return 0, 0

    def blob(self, number: int) -> bytes:
        """Bytes."""
        start, size = self.span(number)
        return self.data[start : start + size].tobytes()

    def text(self, number: int) -> str:
        """A string."""
        return self.blob(number).decode("utf-8", "replace")

    def texts(self, number: int) -> tuple[str, ...]:
        """All strings of a repeated field."""
        return tuple(
            str(self.data[a : a + n].tobytes(), "utf-8", "replace") for w, a, n in self._of(number) if w == 2
        )

    def numbers(self, number: int) -> tuple[int, ...]:
        """All numbers of a repeated field, packed or not."""
        if number not in self._fields:
            return ()
        _, values = ints(self.data, np.array([self.start], np.int64), np.array([self.size], np.int64), number)
        return tuple(values.tolist())

    def spans(self, number: int) -> list[tuple[int, int]]:
        """Positions and sizes of a repeated field of messages."""
        return [(value, size) for wire, value, size in self._of(number) if wire == 2]

    def messages(self, number: int) -> Iterator[Message]:
        """The messages of a repeated field."""
        return (Message(self.data, start, size) for start, size in self.spans(number))

    def number_rows(self, number: int, wanted: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Of a repeated field of messages that hold numbers alone: int64[n_messages, n_wanted], 0 where one
        is absent.

        All at once: a program of thousands of devices names as many pairs of them.
        """
        _, starts, sizes = parts(
            self.data, np.array([self.start], np.int64), np.array([self.size], np.int64), number
        )
        values, found, _, _ = spans(self.data, starts, sizes, np.array(wanted, np.int64))
        return np.where(found > 0, 0, values)  # bytes where a number belongs

    def message(self, number: int) -> Message | None:
        """The (last) message of a field, or None."""
        found = self.spans(number)
        return Message(self.data, *found[-1]) if found else None

    def submessage(self, number: int) -> Message:
        """The (last) message of a field, an empty one where there is none."""
        return self.message(number) or Message(self.data, 0, 0)

    def map(self, number: int) -> dict[str, str]:
        """A map of strings."""
        return {entry.text(1): entry.text(2) for entry in self.messages(number)}
