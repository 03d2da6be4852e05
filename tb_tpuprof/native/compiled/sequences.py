# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Events in time order → the stretches over which a label lasts. Compiled; the twins in `plain/sequences.py`
have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t

from tb_tpuprof.native.memory import new_array

FREE = cython.declare(int64_t, 1)
SHARE = cython.declare(int64_t, 2)


def by_start(
    start: cython.const[int64_t][::1], rows: cython.const[int32_t][::1], offsets: cython.const[int64_t][::1]
):
    """Order of the rows by start, given that those of each line are already sorted; see
    `plain.sequences.by_start`.
    """
    order = np.empty(rows.shape[0], np.int32)
    out: int32_t[::1] = order
    following: int64_t[::1] = np.array(offsets)
    # A heap of lines, ordered by their next row's start.
    heads: int64_t[::1] = np.flatnonzero(np.diff(offsets)).astype(np.int64)
    n: int64_t = heads.shape[0]
    i: int64_t
    line: int64_t
    with cython.nogil:
        for i in range(n // 2 - 1, -1, -1):
            _sift(start, rows, following, heads, i, n)
        for i in range(rows.shape[0]):
            line = heads[0]
            out[i] = cython.cast(int32_t, following[line])
            following[line] += 1
            if following[line] == offsets[line + 1]:
                n -= 1
                heads[0] = heads[n]
            if n > 1:
                _sift(start, rows, following, heads, 0, n)
    return order


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sift(
    start: cython.const[int64_t][::1],
    rows: cython.const[int32_t][::1],
    following: int64_t[::1],
    heads: int64_t[::1],
    i: int64_t,
    n: int64_t,
) -> cython.void:
    """Sift a line down the heap, below lines that start earlier or have a lower number at equal starts."""
    line: int64_t = heads[i]
    time: int64_t = start[rows[following[line]]]
    child: int64_t
    ahead: int64_t
    other: int64_t
    while 2 * i + 1 < n:
        child = 2 * i + 1
        ahead = start[rows[following[heads[child]]]]
        if child + 1 < n:
            other = start[rows[following[heads[child + 1]]]]
            if other < ahead or (other == ahead and heads[child + 1] < heads[child]):
                child += 1
                ahead = other
        if ahead > time or (ahead == time and heads[child] > line):
            break
        heads[i] = heads[child]
        i = child
    heads[i] = line


def in_order(start: cython.const[int64_t][::1], duration: cython.const[int64_t][::1]):
    """Whether events are sorted by start, and the longest first among equal starts; see
    `plain.sequences.in_order`.
    """
    i: int64_t
    good: cython.bint = True
    with cython.nogil:
        for i in range(1, start.shape[0]):
            if start[i] < start[i - 1] or (start[i] == start[i - 1] and duration[i] > duration[i - 1]):
                good = False
                break
    return good


def n_runs(
    is_new: cython.const[uint8_t][::1], label: cython.const[int32_t][::1], keys: cython.const[int32_t][:, ::1]
):
    """Number of stretches that `runs` will find."""
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
    """Stretches of one key, level by level; see `plain.sequences.runs`."""
    start: cython.const[int64_t][::1] = events[0]
    end: cython.const[int64_t][::1] = events[1]
    is_new: cython.const[uint8_t][::1] = events[2]
    row: cython.const[int32_t][::1] = events[3]
    out_start: int64_t[::1] = out[0]
    out_duration: int64_t[::1] = out[1]
    out_key: int32_t[::1] = out[2]
    out_row: int32_t[::1] = out[3]
    capacity: int64_t = out_start.shape[0]
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
                    if key >= 0 and m < capacity:
                        slots[level] = m
                        out_start[m] = start[i]
                        out_duration[m] = end[i] - start[i]
                        out_key[m] = key
                        out_row[m] = row[i]
                        m += 1
                elif slot >= 0 and end[i] - out_start[slot] > out_duration[slot]:
                    out_duration[slot] = end[i] - out_start[slot]


def sequence(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    rows: cython.const[int32_t][::1],
    group: cython.const[int32_t][::1],
    small_gap: int64_t,
):
    """Times of the rows, and before which of them a run ends; see `plain.sequences.sequence`."""
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


def replay(
    events: tuple,
    root: cython.const[int64_t][::1],
    size: cython.const[int64_t][::1],
    unpadded: cython.const[int64_t][::1],
):
    """Simulates a heap, event by event; see `plain.sequences.replay`."""
    kind: cython.const[int64_t][::1] = events[0]
    buffer: cython.const[int32_t][::1] = events[1]
    shared: cython.const[int32_t][::1] = events[2]
    n: int64_t = kind.shape[0]
    m: int64_t = root.shape[0]
    totals = new_array(2 * (n + 1), np.int64).reshape(2, n + 1)
    lives = new_array(2 * m, np.int64).reshape(2, m)
    free_events = new_array(n, np.int64)
    user_table = new_array(2 * m, np.int64).reshape(2, m)
    held: int64_t[:, ::1] = totals
    live: int64_t[:, ::1] = lives
    freed_at: int64_t[::1] = free_events
    users: int64_t[:, ::1] = user_table  # per root: the number of users, and the event that allocated
    n_refused: int64_t = 0
    change: int64_t
    i: int64_t
    r: int64_t
    b: int64_t
    with cython.nogil:
        held[0, 0] = 0
        held[1, 0] = 0
        for i in range(m):
            live[0, i] = -1
            live[1, i] = -1
            users[0, i] = 0
        for i in range(n):
            freed_at[i] = -1
            b = buffer[i]
            change = 0
            if b >= 0 and not (kind[i] == SHARE and shared[i] < 0):
                r = root[b]
                if kind[i] != FREE:
                    live[0, b] = i
                    live[1, b] = n - 1
                    users[0, r] += 1
                    if users[0, r] == 1:
                        change = 1
                        users[1, r] = i
                        freed_at[i] = n
                elif users[0, r] == 0:
                    n_refused += 1
                else:
                    users[0, r] -= 1
                    if users[0, r] == 0:
                        change = -1
                        freed_at[users[1, r]] = i
                held[0, i + 1] = held[0, i] + change * size[r]
                held[1, i + 1] = held[1, i] + change * unpadded[r]
            else:
                held[0, i + 1] = held[0, i]
                held[1, i + 1] = held[1, i]
        for i in range(n):
            b = buffer[i]
            if b >= 0 and kind[i] == FREE:
                live[1, b] = i if live[0, b] >= 0 else -1
        for i in range(n):
            if freed_at[i] >= 0 and kind[i] != SHARE:
                live[1, buffer[i]] = min(freed_at[i], n - 1)
    return totals[0], totals[1], lives[0], lives[1], free_events, n_refused
