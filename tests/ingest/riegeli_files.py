"""Writes Riegeli/records files for tests: simple and transposed chunks, every codec, any damage.

The transposed encoder is written anew from how decoders read its chunks; files that google/riegeli's own
encoder has written are in `tests/data/riegeli`.
"""

from __future__ import annotations

import itertools
import struct
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tb_tpuprof.native import record_hash

BLOCK, USABLE = 1 << 16, (1 << 16) - 24
NONE, BROTLI, ZSTANDARD, SNAPPY = 0, ord("b"), ord("z"), ord("s")
CODECS = (NONE, BROTLI, ZSTANDARD, SNAPPY)


def hashed(data: bytes) -> int:
    return int(record_hash(np.frombuffer(data, np.uint8)))


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def packed(codec: int, data: bytes) -> bytes:
    """A part of a chunk: compressed, after its size."""
    if codec == NONE:
        return data
    if codec == BROTLI:
        import brotli

        content = brotli.compress(data, quality=4)
    else:
        import cramjam

        compress = cramjam.zstd.compress if codec == ZSTANDARD else cramjam.snappy.compress_raw
        content = bytes(compress(data))
    return varint(len(data)) + content


def simple_data(records: Sequence[bytes], codec: int = BROTLI) -> bytes:
    """The data of a simple chunk."""
    sizes = packed(codec, b"".join(varint(len(record)) for record in records))
    return bytes([codec]) + varint(len(sizes)) + sizes + packed(codec, b"".join(records))


class RiegeliFile:
    """Chunks one after another, with the headers of blocks among them."""

    def __init__(self, signed: bool = True) -> None:
        self.out = bytearray()
        self.begins: list[int] = []  # of all chunks
        if signed:
            self.chunk("s", b"", 0, 0)

    def chunk(self, kind: str, data: bytes, n_records: int, size: int) -> RiegeliFile:
        """Write any chunk; what its header says need not be true."""
        rest = struct.pack("<QQQQ", len(data), hashed(data), ord(kind) | n_records << 8, size)
        content = struct.pack("<Q", hashed(rest)) + rest + data
        begin = len(self.out)
        self.begins.append(begin)
        n_blocks = (len(content) + (begin + USABLE - 1) % BLOCK) // USABLE
        least = begin + n_records
        end = max(begin + len(content) + 24 * n_blocks, least + max(0, -least % BLOCK - (USABLE - 1)))
        while len(self.out) < end:
            if len(self.out) % BLOCK == 0:
                places = struct.pack("<QQ", len(self.out) - begin, end - len(self.out))
                self.out += struct.pack("<Q", hashed(places)) + places
                continue
            n = min(BLOCK - len(self.out) % BLOCK, end - len(self.out))
            self.out += content[:n].ljust(n, b"\0")
            content = content[n:]
        return self

    def records(self, records: Sequence[bytes], codec: int = BROTLI, transposed: bool = False) -> RiegeliFile:
        """A chunk with these records."""
        data = transposed_data(records, codec) if transposed else simple_data(records, codec)
        return self.chunk("t" if transposed else "r", data, len(records), sum(map(len, records)))

    def closed(self) -> bytes:
        """The file, with padding up to the end of the block."""
        left = -len(self.out) % BLOCK
        if 0 < left < 40:  # no space for a header: the chunk goes on in the next block
            left += BLOCK
        if left:
            n = left - 40 - (24 if left > BLOCK else 0)
            self.chunk("p", b"\0" * n, 0, 0)
        return bytes(self.out)


# Transposed chunks.

NOTHING, WHOLE, START, RECORD = 0, 1, 2, 3
Step = tuple[int, int, tuple[int, ...]]  # tag, subtype (-1 if it has none), the field's path


def fields_of(message: bytes) -> list[tuple[int, bytes]] | None:
    """(tag, value's bytes) of each field in canonical encoding; None if the bytes are no such message."""
    rows, pos = [], 0
    while pos < len(message):
        tag, after = _read(message, pos, 5)
        wire = tag & 7
        if after < 0 or tag < 8 or tag > 0xFFFFFFFF or wire not in (0, 1, 2, 5):
            return None
        if wire == 0:
            _, end = _read(message, after, 10)
        elif wire == 2:
            size, start = _read(message, after, 5)
            end = start + size if start >= 0 else -1
        else:
            end = after + (8 if wire == 1 else 4)
        if end < 0 or end > len(message):
            return None
        rows.append((tag, message[after:end]))
        pos = end
    return rows


def _read(data: bytes, pos: int, most: int) -> tuple[int, int]:
    """(value, position after) of a varint; position -1 unless it is whole and as short as it can be."""
    value = 0
    for i, byte in enumerate(data[pos : pos + most]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, pos + i + 1 if byte or not i else -1
    return 0, -1


class _Fields:
    """Steps through records from the first field on, and the values of each field."""

    def __init__(self, breaks_up: bool) -> None:
        self.steps: list[Step] = []
        self.values: dict[tuple[int, ...], list[bytes]] = defaultdict(list)
        self.lengths: list[bytes] = []
        self.breaks_up = breaks_up

    def record(self, record: bytes) -> None:
        if fields_of(record) is None:
            self.steps.append((WHOLE, -1, ()))
            self.values[()].append(record)
            self.lengths.append(varint(len(record)))
            return
        self.steps.append((RECORD, -1, ()))
        self.message(record, (0,))

    def message(self, message: bytes, path: tuple[int, ...]) -> None:
        for tag, value in fields_of(message) or ():
            own, wire = (*path, tag), tag & 7
            if wire == 0 and value[0] <= 3:
                self.steps.append((tag, 10 + value[0], own))
            elif wire == 0:
                self.steps.append((tag, len(value) - 1, own))
                self.values[own].append(bytes(byte & 0x7F for byte in value))
            elif wire == 2 and self.breaks_up and len(value) > 1 and self._is_message(value):
                self.steps.append((START, -1, own))
                size, start = _read(value, 0, 5)
                self.message(value[start : start + size], own)
                self.steps.append((tag + 4, -1, own))  # wire type 6
            else:
                self.steps.append((tag, -1, own))
                self.values[own].append(value)

    @staticmethod
    def _is_message(value: bytes) -> bool:
        _, start = _read(value, 0, 5)
        return start < len(value) and fields_of(value[start:]) is not None


def transposed_data(records: Sequence[bytes], codec: int = BROTLI, breaks_up: bool = True) -> bytes:
    """The data of a transposed chunk. Without `breaks_up`, messages in messages stay texts."""
    fields = _Fields(breaks_up)
    for record in records:
        fields.record(record)
    steps = fields.steps[::-1]
    buffers = {path: b"".join(values[::-1]) for path, values in fields.values.items()}
    if fields.lengths:  # must be the last buffer
        buffers[(-1,)] = b"".join(fields.lengths[::-1])
    number = {path: i for i, path in enumerate(buffers)}
    contents = list(buffers.values())
    half = len(contents) // 2
    buckets = [packed(codec, b"".join(part)) for part in (contents[:half], contents[half:]) if part]
    states, transitions = _machine(steps)
    tags = [step[0] if step else NOTHING for step, _, _ in states]
    header = varint(len(buckets)) + varint(len(contents))
    header += b"".join(varint(len(bucket)) for bucket in buckets)
    header += b"".join(varint(len(content)) for content in contents)
    header += varint(len(states)) + b"".join(varint(tag) for tag in tags)
    header += b"".join(varint(base + (len(states) if implicit else 0)) for _, base, implicit in states)
    header += bytes(step[1] for step, _, _ in states if step and step[1] >= 0)
    for step, _, _ in states:
        if step and _has_buffer(step):
            header += varint(number[step[2]])
    first = next(i for i, (step, _, _) in enumerate(states) if step == steps[0]) if steps else 0
    header += varint(first)
    whole = packed(codec, header)
    return bytes([codec]) + varint(len(whole)) + whole + b"".join(buckets) + packed(codec, transitions)


def _has_buffer(step: Step) -> bool:
    tag, subtype, _ = step
    if tag in (START, RECORD) or tag & 7 == 6:
        return False
    return tag == WHOLE or subtype < 10


def _machine(steps: list[Step]) -> tuple[list[tuple[Step | None, int, bool]], bytes]:
    """(states with their step, next state and whether it follows without a transition; transitions).

    Up to 56 states form the first block, together with NOTHING states that lead to further blocks of 64.
    """
    distinct = list(dict.fromkeys(steps)) or [(RECORD, -1, ())]
    blocks = [distinct[:56], *(distinct[i : i + 64] for i in range(56, len(distinct), 64))]
    assert len(blocks) <= 9
    place: dict[Step, tuple[int, int]] = {}
    n = 0
    bases = []
    for number, block in enumerate(blocks):
        bases.append(n)
        place |= {step: (number, n + i) for i, step in enumerate(block)}
        n += len(block) + (len(blocks) - 1 if number == 0 else 0)
    followers: dict[Step, set[Step]] = defaultdict(set)
    for before, after in itertools.pairwise(steps):
        followers[before].add(after)
    if steps:
        followers[steps[-1]].add((-1, -1, ()))  # after the last step transitions end: it needs one
    states: list[tuple[Step | None, int, bool]] = []
    base_of = {}
    for number, block in enumerate(blocks):
        for step in block:
            only = followers[step]
            places = [place[after][1] for after in only if after in place]
            if len(only) == 1 and places:
                base_of[step] = (places[0], True)
            elif places and max(places) - min(places) <= 63:
                base_of[step] = (min(places), False)
            else:
                base_of[step] = (0, False)
            states.append((step, *base_of[step]))
        if number == 0:
            states += [(None, bases[later], False) for later in range(1, len(blocks))]
    moves: list[int] = []
    for before, after in itertools.pairwise(steps):
        base, implicit = base_of[before]
        number, position = place[after]
        if implicit:
            continue
        if 0 <= position - base <= 63:
            moves.append(position - base)
        else:
            assert base == 0
            moves += [len(blocks[0]) + number - 1, position - bases[number]]
    return states, _joined(moves)


def _joined(moves: list[int]) -> bytes:
    """A byte for each move; up to three that lead nowhere else than to the next state go into the byte before
    them.
    """
    out = bytearray()
    for move in moves:
        if move == 0 and out and out[-1] & 3 < 3:
            out[-1] += 1
        else:
            out.append(move << 2)
    return bytes(out)
