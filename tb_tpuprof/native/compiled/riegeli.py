# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Two loops of Riegeli/records files over bytes: the hash of headers and data, and the walk that puts records
together from a transposed chunk. Compiled; the twin is `plain/riegeli.py`, which explains both.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcpy, memset

from tb_tpuprof.native.memory import new_array
from tb_tpuprof.native.plain.riegeli import MOST_OPEN, STEPS_PER_BYTE, Malformed, check

KEY_0 = cython.declare(uint64_t, 0x2F696C6567656952)
KEY_1 = cython.declare(uint64_t, 0x0A7364726F636572)
START_0 = cython.declare(uint64_t, 0xDBE6D5D5FE4CCE2F)
START_1 = cython.declare(uint64_t, 0xA4093822299F31D0)
START_2 = cython.declare(uint64_t, 0x13198A2E03707344)
START_3 = cython.declare(uint64_t, 0x243F6A8885A308D3)
START_4 = cython.declare(uint64_t, 0x3BD39E10CB0EF593)
START_5 = cython.declare(uint64_t, 0xC0ACF169B5F18A8C)
START_6 = cython.declare(uint64_t, 0xBE5466CF34E90C6C)
START_7 = cython.declare(uint64_t, 0x452821E638D01377)
LOW_HALF = cython.declare(uint64_t, 0xFFFFFFFF)
# A byte of a number, counted from the lowest.
BYTE_1 = cython.declare(uint64_t, 0xFF00)
BYTE_2 = cython.declare(uint64_t, 0xFF0000)
BYTE_3 = cython.declare(uint64_t, 0xFF000000)
BYTE_4 = cython.declare(uint64_t, 0xFF00000000)
BYTE_5 = cython.declare(uint64_t, 0xFF0000000000)
BYTE_6 = cython.declare(uint64_t, 0xFF000000000000)
BYTE_7 = cython.declare(uint64_t, 0xFF00000000000000)
# Kinds of states, as in the twin.
NOTHING = cython.declare(int64_t, 0)
WHOLE_RECORD = cython.declare(int64_t, 1)
MESSAGE_START = cython.declare(int64_t, 2)
RECORD_START = cython.declare(int64_t, 3)
TAG_ONLY = cython.declare(int64_t, 4)
VARINT = cython.declare(int64_t, 5)
FIXED = cython.declare(int64_t, 6)
TEXT = cython.declare(int64_t, 7)
MESSAGE_END = cython.declare(int64_t, 8)
# Why a walk ended.
DONE = cython.declare(cython.int, 0)
NO_STATE = cython.declare(cython.int, 1)
TOO_SHORT = cython.declare(cython.int, 2)
TOO_LONG = cython.declare(cython.int, 3)
TOO_MANY = cython.declare(cython.int, 4)
NOT_OPEN = cython.declare(cython.int, 5)
STILL_OPEN = cython.declare(cython.int, 6)
TOO_DEEP = cython.declare(cython.int, 7)
ENDLESS = cython.declare(cython.int, 8)
REASONS = (
    "",
    "a transition leads to no state",
    "a buffer ends too early",
    "its records are longer than the header says",
    "it has more records than the header says",
    "a message starts that did not end",
    "a record starts within a message",
    "its messages are nested too deeply",
    "its states lead nowhere",
)

Hash = cython.struct(
    v0=uint64_t[4],
    v1=uint64_t[4],
    mul0=uint64_t[4],
    mul1=uint64_t[4],
)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _swapped(x: uint64_t) -> uint64_t:
    """The number with its halves exchanged."""
    return (x >> 32) | (x << 32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zipped_low(x1: uint64_t, x0: uint64_t) -> uint64_t:
    """Half of the bytes of two numbers, mixed: what is added to the lower lane."""
    return (
        (((x0 & BYTE_3) | (x1 & BYTE_4)) >> 24)
        | (((x0 & BYTE_5) | (x1 & BYTE_6)) >> 16)
        | (x0 & BYTE_2)
        | ((x0 & BYTE_1) << 32)
        | ((x1 & BYTE_7) >> 8)
        | (x0 << 56)
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zipped_high(x1: uint64_t, x0: uint64_t) -> uint64_t:
    """The other half: what is added to the upper lane."""
    return (
        (((x1 & BYTE_3) | (x0 & BYTE_4)) >> 24)
        | (x1 & BYTE_2)
        | ((x1 & BYTE_5) >> 16)
        | ((x1 & BYTE_1) << 24)
        | ((x0 & BYTE_6) >> 8)
        | ((x1 & 0xFF) << 48)
        | (x0 & BYTE_7)
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _update(h: cython.pointer(Hash), lanes: cython.pointer(uint64_t)) -> cython.void:
    """Mix 32 bytes into the state."""
    i: cython.int
    for i in range(4):
        h.v1[i] += h.mul0[i] + lanes[i]
        h.mul0[i] ^= (h.v1[i] & LOW_HALF) * (h.v0[i] >> 32)
        h.v0[i] += h.mul1[i]
        h.mul1[i] ^= (h.v0[i] & LOW_HALF) * (h.v1[i] >> 32)
    h.v0[0] += _zipped_low(h.v1[1], h.v1[0])
    h.v0[1] += _zipped_high(h.v1[1], h.v1[0])
    h.v0[2] += _zipped_low(h.v1[3], h.v1[2])
    h.v0[3] += _zipped_high(h.v1[3], h.v1[2])
    h.v1[0] += _zipped_low(h.v0[1], h.v0[0])
    h.v1[1] += _zipped_high(h.v0[1], h.v0[0])
    h.v1[2] += _zipped_low(h.v0[3], h.v0[2])
    h.v1[3] += _zipped_high(h.v0[3], h.v0[2])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _start(h: cython.pointer(Hash)) -> cython.void:
    """The state before the first byte."""
    i: cython.int
    h.mul0[0] = START_0
    h.mul0[1] = START_1
    h.mul0[2] = START_2
    h.mul0[3] = START_3
    h.mul1[0] = START_4
    h.mul1[1] = START_5
    h.mul1[2] = START_6
    h.mul1[3] = START_7
    for i in range(4):
        h.v0[i] = h.mul0[i] ^ (KEY_1 if i & 1 else KEY_0)
        h.v1[i] = h.mul1[i] ^ _swapped(KEY_1 if i & 1 else KEY_0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _finish(h: cython.pointer(Hash), p: cython.pointer(cython.const[uint8_t]), size: cython.int) -> uint64_t:
    """The hash, after the last `size` bytes (fewer than 32) are mixed in."""
    lanes: uint64_t[4]
    packet: uint8_t[32]
    i: cython.int
    low: uint64_t
    high: uint64_t
    few: cython.int = size & 3
    whole: cython.int = size & ~3
    if size:
        memset(packet, 0, 32)
        for i in range(4):
            h.v0[i] += (cython.cast(uint64_t, size) << 32) + cython.cast(uint64_t, size)
            low = h.v1[i] & LOW_HALF
            high = h.v1[i] >> 32
            low = ((low << size) | (low >> (32 - size))) & LOW_HALF
            high = ((high << size) | (high >> (32 - size))) & LOW_HALF
            h.v1[i] = low | (high << 32)
        memcpy(packet, p, whole)
        if size & 16:
            for i in range(4):
                packet[28 + i] = p[whole + i + few - 4]
        elif few:
            packet[16] = p[whole]
            packet[17] = p[whole + (few >> 1)]
            packet[18] = p[whole + few - 1]
        memcpy(lanes, packet, 32)
        _update(h, lanes)
    for _ in range(4):
        lanes[0] = _swapped(h.v0[2])
        lanes[1] = _swapped(h.v0[3])
        lanes[2] = _swapped(h.v0[0])
        lanes[3] = _swapped(h.v0[1])
        _update(h, lanes)
    return h.v0[0] + h.v1[0] + h.mul0[0] + h.mul1[0]


def record_hash(data: cython.const[uint8_t][::1]):
    """The 64-bit hash of bytes that the format's headers hold."""
    h: Hash
    lanes: uint64_t[4]
    n: int64_t = data.shape[0]
    pos: int64_t = 0
    result: uint64_t
    p: cython.pointer(cython.const[uint8_t]) = cython.NULL
    if n:
        p = cython.address(data[0])
    with cython.nogil:
        _start(cython.address(h))
        while pos + 32 <= n:
            memcpy(lanes, p + pos, 32)
            _update(cython.address(h), lanes)
            pos += 32
        result = _finish(cython.address(h), p + pos, cython.cast(cython.int, n - pos))
    return result


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _length(
    p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, out: cython.pointer(int64_t)
) -> int64_t:
    """Position after the varint of at most 32 bits at `pos`, -1 if it is none."""
    value: int64_t = 0
    shift: cython.int = 0
    while pos < end and shift < 35:
        value |= cython.cast(int64_t, p[pos] & 0x7F) << shift
        pos += 1
        if p[pos - 1] < 0x80:
            out[0] = value
            return pos if value <= cython.cast(int64_t, LOW_HALF) else -1
        shift += 7
    return -1


Walk = cython.struct(
    states=cython.pointer(cython.const[int64_t]),  # rows of 7
    data=cython.pointer(cython.const[uint8_t]),
    positions=cython.pointer(int64_t),
    ends=cython.pointer(cython.const[int64_t]),
    n_buffers=int64_t,
    out=cython.pointer(uint8_t),
    left=int64_t,  # bytes of `out` that are not written yet: records are written from the end
    begins=cython.pointer(int64_t),
    n_records=int64_t,
    n_begun=int64_t,
    open_ends=cython.pointer(int64_t),
    open_states=cython.pointer(int64_t),
    most_open=int64_t,
    n_open=int64_t,
)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(w: cython.pointer(Walk), buffer: int64_t, n: int64_t) -> cython.int:
    """Write the next n bytes of a buffer."""
    if n > w.ends[buffer] - w.positions[buffer]:
        return TOO_SHORT
    if n > w.left:
        return TOO_LONG
    w.left -= n
    memcpy(w.out + w.left, w.data + w.positions[buffer], n)
    w.positions[buffer] += n
    return DONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_tag(w: cython.pointer(Walk), state: int64_t) -> cython.int:
    """Write the tag of a state."""
    i: int64_t
    n: int64_t = w.states[7 * state + 2]
    word: uint64_t = cython.cast(uint64_t, w.states[7 * state + 1])
    if n > w.left:
        return TOO_LONG
    w.left -= n
    for i in range(n):
        w.out[w.left + i] = cython.cast(uint8_t, word >> (8 * i))
    return DONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(w: cython.pointer(Walk), buffer: int64_t, n: int64_t) -> cython.int:
    """Write a varint of n bytes, which the buffer has without the marks of bytes that follow."""
    i: int64_t
    why: cython.int = _copy(w, buffer, n)
    if why == DONE:
        for i in range(n - 1):
            w.out[w.left + i] |= 0x80
    return why


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_text(w: cython.pointer(Walk), buffer: int64_t) -> cython.int:
    """Write a text with its length."""
    size: int64_t = 0
    at: int64_t = w.positions[buffer]
    after: int64_t = _length(w.data, at, w.ends[buffer], cython.address(size))
    if after < 0:
        return TOO_SHORT
    return _copy(w, buffer, size + after - at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_record(w: cython.pointer(Walk), buffer: int64_t) -> cython.int:
    """Write a record that is no message; its length is in the last buffer."""
    size: int64_t = 0
    last: int64_t = w.n_buffers - 1
    after: int64_t = _length(w.data, w.positions[last], w.ends[last], cython.address(size))
    if after < 0:
        return TOO_SHORT
    w.positions[last] = after
    return _copy(w, buffer, size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _start_message(w: cython.pointer(Walk)) -> cython.int:
    """Write the tag and the length of the message that ended last."""
    i: int64_t
    n: int64_t
    n_bytes: int64_t = 1
    if w.n_open == 0:
        return NOT_OPEN
    w.n_open -= 1
    n = w.open_ends[w.n_open] - w.left
    while n >> (7 * n_bytes):
        n_bytes += 1
    if n_bytes > w.left:
        return TOO_LONG
    w.left -= n_bytes
    for i in range(n_bytes):
        w.out[w.left + i] = cython.cast(uint8_t, ((n >> (7 * i)) & 0x7F) | (0x80 if i < n_bytes - 1 else 0))
    return _put_tag(w, w.open_states[w.n_open])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_message(w: cython.pointer(Walk), state: int64_t) -> cython.int:
    """Remember where a message ends."""
    if w.n_open == w.most_open:
        return TOO_DEEP
    w.open_ends[w.n_open] = w.left
    w.open_states[w.n_open] = state
    w.n_open += 1
    return DONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _start_record(w: cython.pointer(Walk)) -> cython.int:
    """A record is complete: it begins where the last byte was written."""
    if w.n_open:
        return STILL_OPEN
    if w.n_begun == w.n_records:
        return TOO_MANY
    w.n_begun += 1
    w.begins[w.n_records - w.n_begun] = w.left
    return DONE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _visit(w: cython.pointer(Walk), state: int64_t) -> cython.int:
    """Write what a state stands for; returns why that is impossible, else DONE."""
    kind: int64_t = w.states[7 * state]
    buffer: int64_t = w.states[7 * state + 3]
    why: cython.int = DONE
    if kind == NOTHING:
        return DONE
    if kind == MESSAGE_END:
        return _end_message(w, state)
    if kind == MESSAGE_START:
        return _start_message(w)
    if kind == RECORD_START:
        return _start_record(w)
    if kind == WHOLE_RECORD:
        why = _put_record(w, buffer)
        return why if why != DONE else _start_record(w)
    if kind == VARINT:
        why = _put_varint(w, buffer, w.states[7 * state + 6])
    elif kind == FIXED:
        why = _copy(w, buffer, w.states[7 * state + 6])
    elif kind == TEXT:
        why = _put_text(w, buffer)
    elif kind != TAG_ONLY:
        return NO_STATE
    return why if why != DONE else _put_tag(w, state)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    w: cython.pointer(Walk),
    n_states: int64_t,
    state: int64_t,
    transitions: cython.pointer(cython.const[uint8_t]),
    n_transitions: int64_t,
    steps: int64_t,
) -> cython.int:
    """Go through the states as the transitions say, in at most so many steps."""
    transition: int64_t = 0
    repeats: int64_t = 1 if w.states[7 * state + 5] else 0
    why: cython.int
    byte: uint8_t
    while steps > 0:
        steps -= 1
        why = _visit(w, state)
        if why != DONE:
            return why
        state = w.states[7 * state + 4]
        if repeats == 0:
            if transition == n_transitions:
                return DONE
            byte = transitions[transition]
            transition += 1
            state += byte >> 2
            if state >= n_states:
                return NO_STATE
            repeats = (byte & 3) + (1 if w.states[7 * state + 5] else 0)
        elif not w.states[7 * state + 5]:
            repeats -= 1
    return ENDLESS


def untransposed(
    states: cython.const[int64_t][:, ::1],
    first_state: int64_t,
    buffers: tuple,
    transitions: cython.const[uint8_t][::1],
    n_records: int64_t,
    size: int64_t,
):
    """The records of a transposed chunk: (their bytes end to end, the end of each); see the twin."""
    # One byte or number more than needed each: an empty array has no address.
    data: cython.const[uint8_t][::1] = np.append(buffers[0], np.zeros(1, np.uint8))
    moves: cython.const[uint8_t][::1] = np.append(transitions, np.zeros(1, np.uint8))
    starts: cython.const[int64_t][::1] = buffers[1]
    ends: cython.const[int64_t][::1] = np.append(buffers[2], 0)
    positions: int64_t[::1] = np.append(starts, 0)
    values = new_array(size + 1, np.uint8)
    begins = np.zeros(n_records + 1, np.int64)
    out: uint8_t[::1] = values
    begins_view: int64_t[::1] = begins
    open_ends: int64_t[::1] = np.zeros(MOST_OPEN, np.int64)
    open_states: int64_t[::1] = np.zeros(MOST_OPEN, np.int64)
    n_buffers: int64_t = starts.shape[0]
    steps: int64_t = STEPS_PER_BYTE * (size + n_records + 256)
    why: cython.int
    w: Walk
    check(np.asarray(states), first_state, buffers)
    w.states = cython.address(states[0, 0])
    w.data = cython.address(data[0])
    w.positions = cython.address(positions[0])
    w.ends = cython.address(ends[0])
    w.n_buffers = n_buffers
    w.out = cython.address(out[0])
    w.left = size
    w.begins = cython.address(begins_view[0])
    w.n_records = n_records
    w.n_begun = 0
    w.open_ends = cython.address(open_ends[0])
    w.open_states = cython.address(open_states[0])
    w.most_open = MOST_OPEN
    w.n_open = 0
    with cython.nogil:
        why = _walk(
            cython.address(w),
            states.shape[0],
            first_state,
            cython.address(moves[0]),
            moves.shape[0] - 1,
            steps,
        )
    if why != DONE:
        raise Malformed(REASONS[why])
    if w.n_open:
        raise Malformed("a message ends that did not start")
    if w.n_begun != n_records or w.left or begins[0]:
        raise Malformed("its records are fewer or shorter than the header says")
    begins[n_records] = size
    return values[:size], begins[1:]
