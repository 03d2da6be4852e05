"""Plain twin of `compiled/riegeli.py`: the hash of Riegeli/records files, and the walk that puts records
together from a transposed chunk.

The hash is 64-bit HighwayHash (github.com/google/highwayhash) with the format's key: 32 bytes at a time are
mixed into 16 numbers of 64 bits, in four lanes.

A transposed chunk stores equal fields of all messages together: for each field a buffer with its values. A
state machine says in which order they come. The walk goes through it from the last field of the last record
to the first field of the first one, so that a message's length is known when its start is written:

    states      ▸ kind, tag, buffer, next state …         transitions   one byte per choice
    buffers     1a 07 2c …   (one field's values)         records    ◂── written from the end
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
# Columns of a state: its kind, the bytes of its tag as a little-endian number, how many they are, the buffer
# of its values (-1 if none), the next state, whether that follows without a transition, and the size of its
# values (varints and fixed numbers).
STATE_COLUMNS = 7
# Kinds of states. WHOLE_RECORD copies a record that is no message; TAG_ONLY has no value, or one of a single
# byte, which then belongs to its tag.
NOTHING, WHOLE_RECORD, MESSAGE_START, RECORD_START, TAG_ONLY, VARINT, FIXED, TEXT, MESSAGE_END = range(9)
MOST_OPEN = 1024  # messages within one another; encoders break up at most 100
STEPS_PER_BYTE = 16  # a field has two bytes at least, and takes a few steps
_KEY = (0x2F696C6567656952, 0x0A7364726F636572) * 2
_MUL_0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_MUL_1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)
_MASK, _HALF = 2**64 - 1, 2**32 - 1


class Malformed(ValueError):
    """A transposed chunk that its own parts contradict; the message completes "… because …"."""


def record_hash(data: Bytes) -> int:
    """The 64-bit hash of bytes that the format's headers hold."""
    state = _Hash()
    content = data.tobytes()
    whole = len(content) - len(content) % 32
    for i in range(0, whole, 32):
        state.update(content[i : i + 32])
    return state.finish(content[whole:])


class _Hash:
    """The state of the hash: four lanes of four numbers."""

    def __init__(self) -> None:
        self.mul0, self.mul1 = list(_MUL_0), list(_MUL_1)
        self.v0 = [a ^ b for a, b in zip(_MUL_0, _KEY, strict=True)]
        self.v1 = [a ^ _swapped(b) for a, b in zip(_MUL_1, _KEY, strict=True)]

    def update(self, packet: bytes) -> None:
        """Mix 32 bytes into the state."""
        v0, v1, mul0, mul1 = self.v0, self.v1, self.mul0, self.mul1
        for i in range(4):
            lane = int.from_bytes(packet[8 * i : 8 * i + 8], "little")
            v1[i] = (v1[i] + mul0[i] + lane) & _MASK
            mul0[i] ^= (v1[i] & _HALF) * (v0[i] >> 32)
            v0[i] = (v0[i] + mul1[i]) & _MASK
            mul1[i] ^= (v0[i] & _HALF) * (v1[i] >> 32)
        for to, of in ((v0, v1), (v1, v0)):
            for low in (0, 2):
                a, b = _zipped(of[low + 1], of[low])
                to[low], to[low + 1] = (to[low] + a) & _MASK, (to[low + 1] + b) & _MASK

    def finish(self, rest: bytes) -> int:
        """The hash, after the last bytes (fewer than 32) are mixed in."""
        n = len(rest)
        if n:
            self.v0 = [(x + (n << 32) + n) & _MASK for x in self.v0]
            self.v1 = [_turned(x & _HALF, n) | _turned(x >> 32, n) << 32 for x in self.v1]
            self.update(_padded(rest))
        for _ in range(4):
            lanes = (self.v0[2], self.v0[3], self.v0[0], self.v0[1])
            self.update(b"".join(_swapped(x).to_bytes(8, "little") for x in lanes))
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & _MASK


def _swapped(x: int) -> int:
    """The number with its halves exchanged."""
    return x >> 32 | (x & _HALF) << 32


def _turned(half: int, n: int) -> int:
    """32 bits, rotated to the left by n."""
    return (half << n | half >> (32 - n)) & _HALF


def _zipped(x1: int, x0: int) -> tuple[int, int]:
    """The bytes of two numbers, mixed: what is added to the lower and to the upper lane."""
    a, b = x0.to_bytes(8, "little"), x1.to_bytes(8, "little")
    low = bytes((a[3], b[4], a[2], a[5], b[6], a[1], b[7], a[0]))
    high = bytes((b[3], a[4], b[2], b[5], b[1], a[6], b[0], a[7]))
    return int.from_bytes(low, "little"), int.from_bytes(high, "little")


def _padded(rest: bytes) -> bytes:
    """The last bytes as a packet of 32."""
    n, few = len(rest), len(rest) & 3
    whole = n - few
    packet = bytearray(32)
    packet[:whole] = rest[:whole]
    if n & 16:
        packet[28:] = rest[n - 4 :]
    elif few:
        packet[16:19] = bytes((rest[whole], rest[whole + (few >> 1)], rest[n - 1]))
    return bytes(packet)


def untransposed(
    states: Ints,
    first_state: int,
    buffers: tuple[Bytes, Ints, Ints],
    transitions: Bytes,
    n_records: int,
    size: int,
) -> tuple[Bytes, Ints]:
    """The records of a transposed chunk: (their `size` bytes end to end, the end of each of `n_records`).

    `states`: rows of STATE_COLUMNS; `buffers`: the bytes of all, the start and the end of each, with the
    lengths of whole records in the last one. Raises Malformed if the parts do not fit together, ValueError if
    a state or a buffer is not there.
    """
    check(states, first_state, buffers)
    walk = _Walk(states, buffers, n_records, size)
    state, transition = first_state, 0
    repeats = int(states[state, 5])
    for _ in range(STEPS_PER_BYTE * (size + n_records + 256)):
        walk.visit(state)
        state = int(states[state, 4])
        if repeats == 0:
            if transition == len(transitions):
                return walk.records()
            byte = int(transitions[transition])
            transition += 1
            state += byte >> 2
            if state >= len(states):
                raise Malformed("a transition leads to no state")
            repeats = (byte & 3) + int(states[state, 5])
        elif not states[state, 5]:
            repeats -= 1
    raise Malformed("its states lead nowhere")


def check(states: Ints, first_state: int, buffers: tuple[Bytes, Ints, Ints]) -> None:
    """Raises ValueError unless states refer to states and buffers, and these are within their bytes."""
    data, starts, ends = buffers
    lacks_buffer = (states[:, 3] < 0) & np.isin(states[:, 0], (WHOLE_RECORD, VARINT, FIXED, TEXT))
    is_nowhere = (states[:, 3] >= len(starts)) | (states[:, 4] < 0) | (states[:, 4] >= len(states))
    if (lacks_buffer | is_nowhere).any():
        raise ValueError("a state refers to a buffer or state that is not there")
    sizes, values = states[:, 2], states[:, 6]
    is_empty = (states[:, 0] == VARINT) & (values == 0)
    if ((sizes < 0) | (sizes > 8) | (values < 0) | (values > 10) | is_empty).any():
        raise ValueError("a state has a tag or a value of impossible size")
    if not 0 <= first_state < len(states) or len(ends) != len(starts):
        raise ValueError("the first state or the buffers are not there")
    if ((starts < 0) | (ends < starts) | (ends > len(data))).any():
        raise ValueError("a buffer is outside the data")


class _Walk:
    """Writes records from the end, a state's part at a time."""

    def __init__(self, states: Ints, buffers: tuple[Bytes, Ints, Ints], n_records: int, size: int) -> None:
        data, starts, ends = buffers
        self.states = states.tolist()
        self.data, self.positions, self.ends = data.tobytes(), starts.tolist(), ends.tolist()
        self.n_records, self.left = n_records, size
        self.parts: list[bytes] = []  # the last one first
        self.begins: list[int] = []
        self.open: list[tuple[int, int]] = []  # what is left at a message's end, and its state

    def visit(self, state: int) -> None:
        """Write what a state stands for."""
        kind, _, _, buffer, _, _, n = self.states[state]
        if kind == MESSAGE_END:
            if len(self.open) == MOST_OPEN:
                raise Malformed("its messages are nested too deeply")
            self.open.append((self.left, state))
        elif kind == MESSAGE_START:
            if not self.open:
                raise Malformed("a message starts that did not end")
            end, state = self.open.pop()
            self._put(_varint(end - self.left))
            self._put(self._tag(state))
        elif kind in (VARINT, FIXED):
            value = bytearray(self._take(buffer, n))
            for i in range(n - 1 if kind == VARINT else 0):
                value[i] |= 0x80
            self._put(bytes(value))
            self._put(self._tag(state))
        elif kind == TEXT:
            length = self._length(buffer)
            self._put(length + self._take(buffer, _number(length)))
            self._put(self._tag(state))
        elif kind == TAG_ONLY:
            self._put(self._tag(state))
        elif kind == WHOLE_RECORD:
            self._put(self._take(buffer, _number(self._length(-1))))
            self._begin()
        elif kind == RECORD_START:
            self._begin()
        elif kind != NOTHING:
            raise Malformed("a transition leads to no state")

    def records(self) -> tuple[Bytes, Ints]:
        """All that was written, and the end of each record."""
        if self.open:
            raise Malformed("a message ends that did not start")
        begins = self.begins[::-1]
        if len(begins) != self.n_records or self.left or any(begins[:1]):
            raise Malformed("its records are fewer or shorter than the header says")
        values = np.frombuffer(bytearray(b"".join(self.parts[::-1])), np.uint8)
        return values, np.array([*begins[1:], *([len(values)] if begins else [])], np.int64)

    def _begin(self) -> None:
        if self.open:
            raise Malformed("a record starts within a message")
        if len(self.begins) == self.n_records:
            raise Malformed("it has more records than the header says")
        self.begins.append(self.left)

    def _tag(self, state: int) -> bytes:
        return int(self.states[state][1]).to_bytes(8, "little")[: self.states[state][2]]

    def _put(self, part: bytes) -> None:
        if len(part) > self.left:
            raise Malformed("its records are longer than the header says")
        self.left -= len(part)
        self.parts.append(part)

    def _take(self, buffer: int, n: int) -> bytes:
        start = self.positions[buffer]
        if n > self.ends[buffer] - start:
            raise Malformed("a buffer ends too early")
        self.positions[buffer] += n
        return self.data[start : start + n]

    def _length(self, buffer: int) -> bytes:
        """The varint (of at most 32 bits) at a buffer's position."""
        start = self.positions[buffer]
        head = self.data[start : min(start + 5, self.ends[buffer])]
        n = next((i + 1 for i, byte in enumerate(head) if byte < 0x80), 0)
        if not n or _number(head[:n]) > _HALF:
            raise Malformed("a buffer ends too early")
        return self._take(buffer, n)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _number(varint: bytes) -> int:
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(varint))
