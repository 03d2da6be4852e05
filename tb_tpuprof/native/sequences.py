# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Events in time order → their distinct labels, and the stretches over which a label lasts. Compiled; twins in `plain_sequences.py`."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t

GOLDEN = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
FIRST_BITS = cython.declare(cython.int, 12)
PROBES_EACH = cython.declare(int64_t, 16)


def number(values: cython.const[int64_t][::1]):
    """Distinct values, and which of them each value is; see `plain_sequences.number`."""
    n: int64_t = values.shape[0]
    places = np.empty(n, np.int32)
    bits: cython.int = FIRST_BITS
    keys = np.empty(1 << (bits - 1), np.int64)
    m: int64_t = 0
    i: int64_t = 0
    budget: int64_t = PROBES_EACH * n + (1 << 20)
    while True:
        slots = np.full(1 << bits, -1, np.int32)
        budget -= _rehash(keys, m, slots, bits)
        i, m, budget = _place(values, i, keys, m, slots, bits, places, budget)
        if budget < 0:  # values chosen to fall on one another
            distinct, inverse = np.unique(np.asarray(values), return_inverse=True)
            return distinct, inverse.reshape(-1).astype(np.int32)
        if i == n:
            break
        bits += 1
        keys = np.concatenate([keys, np.empty_like(keys)])
    found = keys[:m]
    order = np.argsort(found)
    if (order[1:] > order[:-1]).all():
        return found.copy(), places
    rank = np.empty(m, np.int32)
    rank[order] = np.arange(m, dtype=np.int32)
    return found[order], rank[places]


@cython.cfunc
def _rehash(keys: cython.const[int64_t][::1], m: int64_t, slots: int32_t[::1], bits: cython.int) -> int64_t:
    """Put the known keys into empty slots; how many others were met on the way."""
    k: int64_t
    at: uint64_t
    mask: uint64_t = (cython.cast(uint64_t, 1) << bits) - 1
    n_met: int64_t = 0
    with cython.nogil:
        for k in range(m):
            at = (cython.cast(uint64_t, keys[k]) * GOLDEN) >> (64 - bits)
            while slots[at] >= 0:
                at = (at + 1) & mask
                n_met += 1
            slots[at] = cython.cast(int32_t, k)
    return n_met


@cython.cfunc
def _place(
    values: cython.const[int64_t][::1],
    i: int64_t,
    keys: int64_t[::1],
    m: int64_t,
    slots: int32_t[::1],
    bits: cython.int,
    places: int32_t[::1],
    budget: int64_t,
):
    """Go on at value i until all are placed, the keys are full or the budget of probes is used up."""
    n: int64_t = values.shape[0]
    room: int64_t = keys.shape[0]
    at: uint64_t
    value: int64_t
    mask: uint64_t = (cython.cast(uint64_t, 1) << bits) - 1
    with cython.nogil:
        while i < n and budget >= 0:
            value = values[i]
            at = (cython.cast(uint64_t, value) * GOLDEN) >> (64 - bits)
            while slots[at] >= 0 and keys[slots[at]] != value:
                at = (at + 1) & mask
                budget -= 1
            if slots[at] < 0:
                if m == room:
                    break
                slots[at] = cython.cast(int32_t, m)
                keys[m] = value
                m += 1
            places[i] = slots[at]
            i += 1
    return i, m, budget


def n_runs(is_new: cython.const[uint8_t][::1], label: cython.const[int32_t][::1], keys: cython.const[int32_t][:, ::1]):
    """How many stretches `runs` will find."""
    n: int64_t = 0
    i: int64_t
    level: int64_t
    key: int32_t
    fresh: cython.bint
    with cython.nogil:
        for i in range(label.shape[0]):
            fresh = i == 0 or is_new[i] != 0
            if fresh or label[i] != label[i - 1]:
                for level in range(keys.shape[1]):
                    key = keys[label[i], level]
                    fresh = fresh or key != keys[label[i - 1], level]
                    n += fresh and key >= 0
    return n


def runs(events, label: cython.const[int32_t][::1], keys: cython.const[int32_t][:, ::1], out):
    """Stretches of one key, level by level; see `plain_sequences.runs`."""
    start: cython.const[int64_t][::1] = events[0]
    end: cython.const[int64_t][::1] = events[1]
    is_new: cython.const[uint8_t][::1] = events[2]
    out_start: int64_t[::1] = out[0]
    out_duration: int64_t[::1] = out[1]
    out_key: int32_t[::1] = out[2]
    out_first: int64_t[::1] = out[3]
    room: int64_t = out_start.shape[0]
    m: int64_t = 0
    i: int64_t
    level: int64_t
    slot: int64_t
    key: int32_t
    fresh: cython.bint
    slots: int64_t[::1] = np.full(keys.shape[1], -1, np.int64)
    with cython.nogil:
        for i in range(start.shape[0]):
            fresh = i == 0 or is_new[i] != 0
            for level in range(keys.shape[1]):
                key = keys[label[i], level]
                fresh = fresh or key != keys[label[i - 1], level]
                slot = slots[level]
                if fresh:
                    slots[level] = -1
                    if key >= 0 and m < room:
                        slots[level] = m
                        out_start[m] = start[i]
                        out_duration[m] = end[i] - start[i]
                        out_key[m] = key
                        out_first[m] = i
                        m += 1
                elif slot >= 0 and end[i] - out_start[slot] > out_duration[slot]:
                    out_duration[slot] = end[i] - out_start[slot]


def sequence(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    rows: cython.const[int64_t][::1],
    group: cython.const[int32_t][::1],
    small_gap: int64_t,
):
    """Times of the rows, and before which of them a run ends; see `plain_sequences.sequence`."""
    n: int64_t = rows.shape[0]
    has_groups: cython.bint = group.shape[0] == n
    starts, ends, news = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)
    out_start: int64_t[::1] = starts
    out_end: int64_t[::1] = ends
    is_new: uint8_t[::1] = news
    i: int64_t
    latest: int64_t = 0
    before: int64_t = 0
    gap: int64_t
    with cython.nogil:
        for i in range(n):
            out_start[i] = start[rows[i]]
            out_end[i] = start[rows[i]] + duration[rows[i]]
            if i == 0:
                is_new[i] = 1
                latest = out_end[i]
            else:
                gap = out_start[i] - latest
                if has_groups and group[i] != group[i - 1]:
                    is_new[i] = 1
                else:
                    is_new[i] = (not has_groups or group[i] < 0) and gap > max(2 * before, small_gap)
                latest = max(latest, out_end[i])
            before = duration[rows[i]]
    return starts, ends, news
