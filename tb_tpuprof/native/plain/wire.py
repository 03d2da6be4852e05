"""Plain twin of `compiled/wire.py` and `compiled/interning.py`: protobuf wire format → arrays of fields, and
equal byte strings → ids.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_MASK = 2**64 - 1
_FIXED = {1: 8, 5: 4}


def fields(data: Bytes, start: int, end: int) -> tuple[Ints, int]:
    """All fields of the message in data[start:end]: (rows of number, wire type, value, size; the offset at
    which it is malformed, else -1).
    """
    blob = data.data
    start, end = max(start, 0), min(end, len(blob))
    rows: list[tuple[int, int, int, int]] = []
    position = start
    for number, wire, value, size, after in _walk(blob, start, end):
        rows.append((number, wire, value, size))
        position = after
    return np.array(rows, np.int64).reshape(-1, 4), -1 if position >= end else position


def spans(
    data: Bytes, starts: Ints, sizes: Ints, numbers: Ints, counted: int = -1
) -> tuple[Ints, Ints, Ints, npt.NDArray[np.uint8]]:
    """The last field of each of `numbers`, for many messages: (value, size [n, k], count [n] of
    numbers[counted], bad [n]).
    """
    n, column_of = len(starts), {number: j for j, number in enumerate(numbers.tolist())}
    values, lengths = np.zeros((len(column_of), n), np.int64).T, np.full((len(column_of), n), -1, np.int64).T
    counts = np.zeros(n if counted >= 0 else 0, np.int64)
    bad = np.zeros(n, np.uint8)
    if not len(data) or not column_of:
        return values, lengths, counts, bad
    blob = data.data
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        if not _is_inside(start, size, len(blob)):
            bad[i] = 1
            continue
        position = start
        for number, _wire, value, length, after in _walk(blob, start, start + size):
            position = after
            if number in column_of:
                j = column_of[number]
                values[i, j], lengths[i, j] = value, length
                if j == counted:
                    counts[i] += 1
        bad[i] = position < start + size
    return values, lengths, counts, bad


def add_records(
    data: Bytes, starts: Ints, sizes: Ints, columns: Ints, rows: Ints, out: npt.NDArray[np.float64]
) -> None:
    """Sum amounts by kind: field 1 of each message, repeated, is a record of 1 first, 2 second (0 if absent)
    and 3 amount.

    An amount is added to out[rows[second, first], column of the message]; kinds that `rows` lacks or maps to
    -1, and amounts outside 1 … 2^62 - 1, are left out. A malformed message or record counts up to the damage.
    """
    blob = data.data
    for start, size, column in zip(starts.tolist(), sizes.tolist(), columns.tolist(), strict=True):
        if not _is_inside(start, size, len(blob)):
            continue
        for key, wire, value, length, _ in _walk(blob, start, start + size):
            if key != 1 or wire != 2:
                continue
            record = {1: 0, 2: 0, 3: 0}
            record |= {k: v if w == 0 else -1 for k, w, v, _, _ in _walk(blob, value, value + length)}
            first, second, amount = record[1], record[2], record[3]
            is_known = 0 <= second < rows.shape[0] and 0 <= first < rows.shape[1] and 0 < amount < 2**62
            if is_known and rows[second, first] >= 0:
                out[rows[second, first], column] += amount


def parts(data: Bytes, starts: Ints, sizes: Ints, number: int) -> tuple[Ints, Ints, Ints]:
    """The repeated messages of one field in many messages: (offsets [n + 1], starts, sizes)."""
    blob = data.data
    offsets, first, second = [0], [], []
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if _is_inside(start, size, len(blob)):
            part_spans = [
                (value, length)
                for key, wire, value, length, _ in _walk(blob, start, start + size)
                if key == number and wire == 2
            ]
            first += [value for value, _ in part_spans]
            second += [length for _, length in part_spans]
        offsets.append(len(first))
    return np.array(offsets, np.int64), np.array(first, np.int64), np.array(second, np.int64)


def ints(data: Bytes, starts: Ints, sizes: Ints, number: int) -> tuple[Ints, Ints]:
    """The repeated numbers of one field in many messages, packed or not: (offsets [n + 1], values)."""
    blob = data.data
    offsets, numbers = [0], []
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if _is_inside(start, size, len(blob)):
            for key, wire, value, length, _ in _walk(blob, start, start + size):
                if key == number and wire == 0:
                    numbers.append(value)
                elif key == number and wire == 2:
                    numbers += _packed(blob, value, value + length)
        offsets.append(len(numbers))
    return np.array(offsets, np.int64), np.array(numbers, np.int64)


def intern(data: Bytes, starts: Ints, sizes: Ints, seed: int) -> tuple[npt.NDArray[np.int32], Ints]:
    """Give equal byte strings equal ids: (ids [n], an index of each distinct string, in order of id). `seed`
    has no effect here.
    """
    blob = data.data
    id_of: dict[bytes, int] = {}
    ids, first = np.empty(len(starts), np.int32), []
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        if not _is_inside(start, size, len(blob)):
            raise ValueError("a span is outside the data")
        key = bytes(blob[start : start + size])
        if key not in id_of:
            id_of[key] = len(id_of)
            first.append(i)
        ids[i] = id_of[key]
    return ids, np.array(first, np.int64)


class Interner:
    """Byte strings of many arrays → one id per distinct string, in the order of their first appearance.
    `seed` has no effect here.
    """

    def __init__(self, seed: int) -> None:
        self._ids: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, data: Bytes, starts: Ints, sizes: Ints) -> npt.NDArray[np.int32]:
        """The id of each of the byte strings. Raises ValueError if a span is outside the data."""
        blob = data.data
        places = list(zip(starts.tolist(), sizes.tolist(), strict=True))
        if not all(_is_inside(start, size, len(blob)) for start, size in places):
            raise ValueError("a span is outside the data")
        keys = (bytes(blob[start : start + size]) for start, size in places)
        return np.array([self._ids.setdefault(key, len(self._ids)) for key in keys], np.int32)

    def strings(self) -> tuple[Bytes, Ints]:
        """All distinct byte strings end to end, and the start of each (offsets [n + 1])."""
        offsets = np.cumsum([0, *(len(key) for key in self._ids)]).astype(np.int64)
        return np.frombuffer(bytearray(b"".join(self._ids)), np.uint8), offsets


def alike(
    data: Bytes, starts: Ints, sizes: Ints, rows: npt.NDArray[np.int32], references: tuple[Ints, Ints]
) -> npt.NDArray[np.bool_]:
    """Whether each byte string equals the reference string (starts, sizes) of its row; False if either is
    outside the data.
    """
    blob = data.data
    reference_spans = list(zip(references[0].tolist(), references[1].tolist(), strict=True))
    result = np.zeros(len(starts), np.bool_)
    for i, (start, size, row) in enumerate(zip(starts.tolist(), sizes.tolist(), rows.tolist(), strict=True)):
        if 0 <= row < len(reference_spans) and _is_inside(start, size, len(blob)):
            reference_start, reference_size = reference_spans[row]
            result[i] = (
                _is_inside(reference_start, reference_size, len(blob))
                and blob[start : start + size] == blob[reference_start : reference_start + reference_size]
            )
    return result


def joined(data: Bytes, starts: Ints, sizes: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """The byte strings end to end, and the start of each (offsets [n + 1])."""
    blob = data.data
    spans = list(zip(starts.tolist(), sizes.tolist(), strict=True))
    if not all(_is_inside(start, size, len(blob)) for start, size in spans):
        raise ValueError("a span is outside the data")
    text = b"".join(bytes(blob[start : start + size]) for start, size in spans)
    return np.frombuffer(bytearray(text), np.uint8), np.append(0, np.cumsum(sizes)).astype(np.int64)


def _is_inside(start: int, size: int, limit: int) -> bool:
    return start >= 0 and 0 <= size <= limit - start


def _walk(blob: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Fields of a message as (number, wire type, value or position, size, position of the next field), up to
    the first malformed one.
    """
    while position < end:
        tag, after = _varint(blob, position, end)
        number, wire = tag >> 3, tag & 7
        if after < 0 or not 0 < number < 2**29:
            return
        if wire == 0:
            value, position = _varint(blob, after, end)
            if position < 0:
                return
            yield number, wire, _signed(value), 0, position
            continue
        size = _FIXED.get(wire, -1)
        if wire == 2:
            size, after = _varint(blob, after, end)
        if size < 0 or after < 0 or size > end - after:
            return
        position = after + size
        yield number, wire, after, size, position


def _varint(blob: memoryview, position: int, end: int) -> tuple[int, int]:
    """A varint and the position after it, -1 if it is cut off."""
    value = shift = 0
    while position < end and shift < 70:
        byte = blob[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, position
        shift += 7
    return 0, -1


def _packed(blob: memoryview, position: int, end: int) -> Iterator[int]:
    while position < end:
        value, position = _varint(blob, position, end)
        if position < 0:
            return
        yield _signed(value)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
