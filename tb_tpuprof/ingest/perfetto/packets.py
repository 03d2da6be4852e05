"""The bytes of a Perfetto trace → its packets, by the sequence that wrote them.

    Trace: 1 packets ─ TracePacket: 6 clock snapshot, 8 timestamp, 10 sequence, 11 track event,
        12 interned data, 13 flags, 41 state cleared, 42 packets before this one lost, 50 compressed packets,
        58 clock, 59 defaults, 60 track descriptor

A sequence is one writer. Names and defaults that it has written hold for its later packets, until it clears
its state: the packets from one clearing to the next are a generation. Where packets were lost, those after
them that need the state (flag 2) mean nothing until it is cleared: names, defaults, increments of time and
begins of slices may be among the lost ones.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.native import parts, spans

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
CLOCKS, TIMESTAMP, SEQUENCE, EVENT, INTERNED, FLAGS = 6, 8, 10, 11, 12, 13
CLEARED, DROPPED, COMPRESSED, CLOCK, DEFAULTS, TRACK = 41, 42, 50, 58, 59, 60
_FIELDS = (
    *(CLOCKS, TIMESTAMP, SEQUENCE, EVENT, INTERNED, FLAGS, CLEARED, DROPPED),
    *(COMPRESSED, CLOCK, DEFAULTS, TRACK),
)
_STATE_CLEARED, _NEEDS_STATE = 1, 2  # among the flags
_MOST_UNPACKED_BYTES = 4 * 2**30
_MOST_REPEATED = 64
_MOST_RATIO = 1100  # deflate cannot pack more tightly


@dataclass(frozen=True)
class Spans:
    """A field of many messages: numbers, or positions of bytes; and sizes in bytes, 0 for numbers and -1 for
    absent fields.
    """

    value: Ints
    size: Ints

    @property
    def is_number(self) -> Bools:
        """Whether each message has the field as a number."""
        return np.asarray(self.size == 0)

    @property
    def is_bytes(self) -> Bools:
        """Whether each message has the field as bytes that are not empty."""
        return np.asarray(self.size > 0)

    def numbers(self, otherwise: int = 0) -> Ints:
        """The numbers, `otherwise` where there is none."""
        return np.where(self.is_number, self.value, otherwise)

    def at(self, rows: npt.NDArray[np.intp]) -> Spans:
        """The field of some of the messages."""
        if self.size.strides == (0,):
            return absent(len(rows))
        return Spans(self.value[rows], self.size[rows])


def absent(n: int) -> Spans:
    """A field that none of `n` messages has, in constant memory."""
    return Spans(np.broadcast_to(np.int64(0), n), np.broadcast_to(np.int64(-1), n))


def read_spans(data: Bytes, messages: Spans, numbers: tuple[int, ...]) -> dict[int, Spans]:
    """The last field of each number, of many messages; absent messages have none."""
    rows, n = np.flatnonzero(messages.is_bytes), len(messages.size)
    if not len(rows):
        return dict.fromkeys(numbers, absent(n))
    some = messages if len(rows) == n else messages.at(rows)
    values, sizes, _, _ = spans(data, some.value, some.size, np.array(numbers, np.int64))
    return {
        number: _spread(Spans(values[:, i].copy(), sizes[:, i].copy()), rows, n)
        if (sizes[:, i] >= 0).any()
        else absent(n)
        for i, number in enumerate(numbers)
    }


def _spread(field: Spans, rows: npt.NDArray[np.intp], n: int) -> Spans:
    """A field of the messages at `rows` as a field of all `n` messages."""
    if len(rows) == n:
        return field
    value, size = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    value[rows], size[rows] = field.value, field.size
    return Spans(value, size)


@dataclass(frozen=True)
class Packets:
    """Packets ordered by sequence, and as in the file within each. `data` includes compressed ones, unpacked;
    `ordinal`: their places in the file; `fields`: by number; `generation`: ascending numbers.
    """

    data: Bytes
    ordinal: Ints
    fields: dict[int, Spans]
    sequence: Ints
    generation: Ints

    def __len__(self) -> int:
        return len(self.ordinal)

    @property
    def has_state(self) -> Bools:
        """Whether the state that each packet needs, if any, was written to the file as a whole."""
        lost = self.latest((self.fields[DROPPED].numbers() > 0) & ~_clears(self.fields))
        return np.asarray((lost < 0) | (self.fields[FLAGS].numbers() & _NEEDS_STATE == 0))

    def latest(self, has: Bools) -> Ints:
        """The last packet of the generation up to each packet that `has` something, -1 for none."""
        rows = np.arange(len(self))
        last = np.maximum.accumulate(np.where(has, rows, -1)) if len(self) else rows
        begin = np.searchsorted(self.generation, self.generation)
        return np.where(last >= begin, last, -1)


def read_packets(data: Bytes, path: str) -> Packets:
    """All packets of a file. Raises TraceFormatError for compressed packets that are damaged or too large."""
    data, start, size = _unpacked(data, path)
    fields = read_spans(data, Spans(start, size), _FIELDS)
    sequence = fields[SEQUENCE].numbers()
    order = np.argsort(sequence, kind="stable")
    if (sequence[1:] < sequence[:-1]).any():
        fields = {number: spans.at(order) for number, spans in fields.items()}
        sequence = sequence[order]
    begins = np.append(True, sequence[1:] != sequence[:-1])[: len(sequence)]
    begins |= _clears(fields)
    return Packets(data, order.astype(np.int64), fields, sequence, np.cumsum(begins))


def _clears(fields: dict[int, Spans]) -> Bools:
    """Whether each packet clears the state of its sequence."""
    return np.asarray((fields[FLAGS].numbers() & _STATE_CLEARED > 0) | (fields[CLEARED].numbers() > 0))


def _unpacked(data: Bytes, path: str) -> tuple[Bytes, Ints, Ints]:
    """The bytes with the compressed packets appended, and the positions and sizes of all packets."""
    whole = np.array([0], np.int64), np.array([len(data)], np.int64)
    _, start, size = parts(data, *whole, 1)
    packed = read_spans(data, Spans(start, size), (COMPRESSED,))[COMPRESSED]
    rows = np.flatnonzero(packed.is_bytes)
    if not len(rows):
        return data, start, size
    chunks, length, origin = [data], len(data), [np.arange(len(start), dtype=np.int64)]
    starts, sizes = [start], [size]
    for row in rows.tolist():
        position = int(packed.value[row])
        chunk = _inflated(data[position : position + int(packed.size[row])], path, position)
        if length + len(chunk) > _MOST_UNPACKED_BYTES:
            raise TraceFormatError(path, position, "contains more than 4 GiB of compressed packets")
        _, inner_start, inner_size = parts(chunk, np.array([0]), np.array([len(chunk)]), 1)
        starts.append(inner_start + length)
        sizes.append(inner_size)
        origin.append(np.full(len(inner_start), row, np.int64))
        chunks.append(chunk)
        length += len(chunk)
    order = np.argsort(np.concatenate(origin), kind="stable")
    return np.concatenate(chunks), np.concatenate(starts)[order], np.concatenate(sizes)[order]


def _inflated(packed: Bytes, path: str, position: int) -> Bytes:
    reader = zlib.decompressobj()
    most = min(_MOST_UNPACKED_BYTES, _MOST_RATIO * len(packed) + 1024)
    try:
        return np.frombuffer(reader.decompress(packed.tobytes(), most), np.uint8)
    except zlib.error as error:
        raise TraceFormatError(
            path, position, f"contains compressed packets that are damaged ({error})"
        ) from error


def fixed(data: Bytes, start: Ints) -> Ints:
    """The 8 bytes at each position as a number."""
    if not len(start):
        return np.empty(0, np.int64)
    return np.ascontiguousarray(data[start[:, None] + np.arange(8)]).view("<i8").reshape(-1).astype(np.int64)


def repeated_fixed(data: Bytes, messages: Spans, number: int) -> tuple[Ints, Ints]:
    """(message, number) of a repeated field of 8 bytes each: the last 64 of each message."""
    owners, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    tag_bytes = 1 if number < 16 else 2
    rows, start, size = np.arange(len(messages.size)), messages.value, messages.size
    for _ in range(_MOST_REPEATED):
        last = read_spans(data, Spans(start, size), (number,))[number]
        has = np.flatnonzero(last.size == 8)
        if not len(has):
            break
        rows, start, position = rows[has], start[has], last.value[has]
        owners.append(rows)
        found.append(fixed(data, position))
        size = position - tag_bytes - start  # what comes before this field
    return np.concatenate(owners), np.concatenate(found)
