# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Two loops of Riegeli/records files over bytes: the hash of headers and data, and the walk that puts records
together from a transposed chunk. Compiled; the twin is `plain/riegeli.py`, which explains both.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcpy, memset

from tb_tpuprof.native.memory import new_array
from tb_tpuprof.native.plain.riegeli import MOST_OPEN, STEPS_PER_BYTE, Malformed

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


def untransposed(
    states: cython.const[int64_t][:, ::1],
    first_state: int64_t,
    buffers: tuple,
    transitions: cython.const[uint8_t][::1],
    n_records: int64_t,
    size: int64_t,
):
    """The records of a transposed chunk: (their bytes end to end, the end of each); see the twin."""
    data: cython.const[uint8_t][::1] = buffers[0]
    starts: cython.const[int64_t][::1] = buffers[1]
    ends: cython.const[int64_t][::1] = buffers[2]
    positions: int64_t[::1] = np.array(starts, np.int64)
    n_states: int64_t = states.shape[0]
    n_buffers: int64_t = starts.shape[0]
    values = new_array(size, np.uint8)
    begins = np.zeros(n_records, np.int64)
    begins_view: int64_t[::1] = begins
    open_ends: int64_t[::1] = np.zeros(MOST_OPEN, np.int64)
    open_states: int64_t[::1] = np.zeros(MOST_OPEN, np.int64)
    out_view: uint8_t[::1] = values
    out: cython.pointer(uint8_t) = cython.NULL
    if size:
        out = cython.address(out_view[0])
    p: cython.pointer(cython.const[uint8_t]) = cython.NULL
    if data.shape[0]:
        p = cython.address(data[0])
    dest: int64_t = size
    n_begun: int64_t = 0
    n_open: int64_t = 0
    most_open: int64_t = MOST_OPEN
    steps: int64_t = STEPS_PER_BYTE * (size + n_records + 256)
    n_transitions: int64_t = transitions.shape[0]
    transition: int64_t = 0
    state: int64_t = first_state
    repeats: int64_t
    kind: int64_t
    buffer: int64_t
    n: int64_t
    at: int64_t
    after: int64_t
    word: uint64_t
    byte: uint8_t
    tag_state: int64_t
    i: int64_t
    why: cython.int = DONE
    for i in range(n_states):
        if states[i, 3] >= n_buffers or states[i, 4] < 0 or states[i, 4] >= n_states:
            raise ValueError("a state refers to a buffer or state that is not there")
        if states[i, 3] < 0 and (states[i, 0] == WHOLE_RECORD or VARINT <= states[i, 0] <= TEXT):
            raise ValueError("a state refers to a buffer or state that is not there")
        if states[i, 2] < 0 or states[i, 2] > 8 or states[i, 6] < 0 or states[i, 6] > 10:
            raise ValueError("a state has a tag or a value of impossible size")
        if states[i, 0] == VARINT and states[i, 6] == 0:
            raise ValueError("a state has a tag or a value of impossible size")
    if first_state < 0 or first_state >= n_states or ends.shape[0] != n_buffers:
        raise ValueError("the first state or the buffers are not there")
    for i in range(n_buffers):
        if starts[i] < 0 or ends[i] < starts[i] or ends[i] > data.shape[0]:
            raise ValueError("a buffer is outside the data")
    with cython.nogil:
        repeats = 1 if states[state, 5] else 0
        while True:
            steps -= 1
            if steps < 0:
                why = ENDLESS
                break
            kind = states[state, 0]
            buffer = states[state, 3]
            tag_state = -1
            if kind == MESSAGE_END:
                if n_open == most_open:
                    why = TOO_DEEP
                    break
                open_ends[n_open] = dest
                open_states[n_open] = state
                n_open += 1
            elif kind == MESSAGE_START:
                if n_open == 0:
                    why = NOT_OPEN
                    break
                n_open -= 1
                n = open_ends[n_open] - dest
                tag_state = open_states[n_open]
                # The length, as a varint.
                after = 1
                while n >> (7 * after):
                    after += 1
                if after > dest:
                    why = TOO_LONG
                    break
                dest -= after
                for i in range(after):
                    out[dest + i] = cython.cast(
                        uint8_t, ((n >> (7 * i)) & 0x7F) | (0x80 if i < after - 1 else 0)
                    )
            elif kind in (VARINT, FIXED):
                n = states[state, 6]
                at = positions[buffer]
                if n > ends[buffer] - at:
                    why = TOO_SHORT
                    break
                if n > dest:
                    why = TOO_LONG
                    break
                dest -= n
                if kind == FIXED:
                    memcpy(out + dest, p + at, n)
                else:
                    for i in range(n - 1):
                        out[dest + i] = p[at + i] | 0x80
                    out[dest + n - 1] = p[at + n - 1]
                positions[buffer] = at + n
                tag_state = state
            elif kind == TEXT:
                at = positions[buffer]
                after = _length(p, at, ends[buffer], cython.address(n))
                if after < 0 or n > ends[buffer] - after:
                    why = TOO_SHORT
                    break
                n += after - at
                if n > dest:
                    why = TOO_LONG
                    break
                dest -= n
                memcpy(out + dest, p + at, n)
                positions[buffer] = at + n
                tag_state = state
            elif kind == TAG_ONLY:
                tag_state = state
            elif kind == WHOLE_RECORD:
                at = positions[n_buffers - 1]
                after = _length(p, at, ends[n_buffers - 1], cython.address(n))
                if after < 0:
                    why = TOO_SHORT
                    break
                positions[n_buffers - 1] = after
                at = positions[buffer]
                if n > ends[buffer] - at:
                    why = TOO_SHORT
                    break
                if n > dest:
                    why = TOO_LONG
                    break
                dest -= n
                memcpy(out + dest, p + at, n)
                positions[buffer] = at + n
            elif kind != NOTHING and kind != RECORD_START:
                why = NO_STATE
                break
            if tag_state >= 0:
                n = states[tag_state, 2]
                if n > dest:
                    why = TOO_LONG
                    break
                word = cython.cast(uint64_t, states[tag_state, 1])
                dest -= n
                for i in range(n):
                    out[dest + i] = cython.cast(uint8_t, word >> (8 * i))
            if kind in (RECORD_START, WHOLE_RECORD):
                if n_open:
                    why = STILL_OPEN
                    break
                if n_begun == n_records:
                    why = TOO_MANY
                    break
                n_begun += 1
                begins_view[n_records - n_begun] = dest
            state = states[state, 4]
            if repeats == 0:
                if transition == n_transitions:
                    break
                byte = transitions[transition]
                transition += 1
                state += byte >> 2
                if state >= n_states:
                    why = NO_STATE
                    break
                repeats = (byte & 3) + (1 if states[state, 5] else 0)
            elif not states[state, 5]:
                repeats -= 1
    if why:
        raise Malformed(REASONS[why])
    if n_open:
        raise Malformed("a message ends that did not start")
    if n_begun != n_records or dest or (n_records and begins[0]):
        raise Malformed("its records are fewer or shorter than the header says")
    return values, np.append(begins[1:], [size] if n_records else []).astype(np.int64)
