"""One protobuf message within a block of bytes → its fields by number, with protobuf's defaults for absent
ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import fields, ints, parts, spans

Bytes = npt.NDArray[np.uint8]
_MANY = 256  # number of fields from which sorting arrays is faster than a loop, as in lists of devices
MAX_DEPTH = 64  # limit on recursive messages: tuples of shapes, shardings, literals


class Message:
    """The fields of data[start:start + size], up to the first malformed one."""

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
        occurrences = self._fields.get(number, ())
        return occurrences.tolist() if isinstance(occurrences, np.ndarray) else occurrences  # type: ignore[no-any-return]

    def has(self, number: int) -> bool:
        """Whether the field is present."""
        return number in self._fields

    @property
    def numbers_present(self) -> Iterable[int]:
        """The numbers of the fields that are present."""
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
        """Position and size of bytes, (0, 0) if absent."""
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

    def number_rows(self, number: int, field_numbers: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Numbers of a repeated field of messages: int64[n_messages, len(field_numbers)], 0 if absent.

        Reads all messages at once: a program for thousands of devices lists thousands of pairs.
        """
        _, starts, sizes = parts(
            self.data, np.array([self.start], np.int64), np.array([self.size], np.int64), number
        )
        values, lengths, _, _ = spans(self.data, starts, sizes, np.array(field_numbers, np.int64))
        return np.where(lengths > 0, 0, values)  # 0 if there are bytes in place of a number

    def message(self, number: int) -> Message | None:
        """The (last) message of a field, None if absent."""
        message_spans = self.spans(number)
        return Message(self.data, *message_spans[-1]) if message_spans else None

    def submessage(self, number: int) -> Message:
        """The (last) message of a field, an empty one if absent."""
        return self.message(number) or Message(self.data, 0, 0)

    def map(self, number: int) -> dict[str, str]:
        """A map of strings."""
        return {entry.text(1): entry.text(2) for entry in self.messages(number)}
