# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Counting, finding and summing events by their metadata row, each in one pass. Compiled; the twins in
`plain/tallies.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t
from cython.cimports.libc.stdlib import free, realloc

Open = cython.struct(end=int64_t, self_ps=int64_t, metadata=int32_t, counted=int32_t)
Whole = cython.fused_type(int32_t, int64_t)
FAR = cython.declare(int64_t, (1 << 62))


def tally(metadata: cython.const[int32_t][::1], duration: cython.const[int64_t][::1], n_metadata: int64_t):
    """Count, total, shortest and longest duration by metadata row; see `plain.tallies.tally`."""
    result = np.zeros((4, n_metadata), np.int64)
    result[2] = FAR
    out: int64_t[:, ::1] = result
    i: int64_t
    m: int32_t
    d: int64_t
    with cython.nogil:
        for i in range(metadata.shape[0]):
            m = metadata[i]
            if 0 <= m < n_metadata:
                d = duration[i]
                out[0, m] += 1
                out[1, m] += d
                if d < out[2, m]:
                    out[2, m] = d
                if d > out[3, m]:
                    out[3, m] = d
    result[2][result[0] == 0] = 0
    return result


def histogram(
    metadata: cython.const[int32_t][::1],
    duration: cython.const[int64_t][::1],
    wanted: cython.const[uint8_t][::1],
    edges: cython.const[int64_t][::1],
):
    """Number of wanted events with a duration from each edge up to the next; see
    `plain.tallies.histogram`.
    """
    n_bins: int64_t = edges.shape[0] - 1
    counts = np.zeros(max(n_bins, 0), np.int64)
    out: int64_t[::1] = counts
    i: int64_t
    lo: int64_t
    hi: int64_t
    mid: int64_t
    m: int32_t
    if n_bins < 1:
        return counts
    with cython.nogil:
        for i in range(metadata.shape[0]):
            m = metadata[i]
            if not (0 <= m < wanted.shape[0] and wanted[m] != 0):
                continue
            if duration[i] < edges[0] or duration[i] > edges[n_bins]:
                continue
            lo = 0
            hi = n_bins - 1
            while lo < hi:
                mid = (lo + hi + 1) // 2
                if edges[mid] <= duration[i]:
                    lo = mid
                else:
                    hi = mid - 1
            out[lo] += 1
    return counts


@cython.final
@cython.cclass
class _Totals:
    """Sums by metadata row, and the stack of the events that are open on the line being swept."""

    out: int64_t[:, ::1]
    stack: cython.pointer(Open)
    capacity: int64_t
    top: int64_t

    def __cinit__(self, out):
        self.out = out
        self.stack = cython.NULL
        self.capacity = 0
        self.top = 0

    def __dealloc__(self):
        free(self.stack)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def close_before(self, end: int64_t) -> cython.void:
        """Pop the events that end before the time, and add up their self times."""
        while self.top > 0 and self.stack[self.top - 1].end < end:
            self.top -= 1
            if self.stack[self.top].counted and self.stack[self.top].self_ps > 0:
                self.out[2, self.stack[self.top].metadata] += self.stack[self.top].self_ps

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(self, metadata: int32_t, low: int64_t, high: int64_t, counted: cython.bint) -> cython.bint:
        """Push an event; False if out of memory."""
        self.close_before(high)
        if self.top > 0:
            self.stack[self.top - 1].self_ps -= high - low
        if counted:
            self.out[0, metadata] += 1
            self.out[1, metadata] += high - low
            self.out[3, metadata] = min(self.out[3, metadata], high - low)
            self.out[4, metadata] = max(self.out[4, metadata], high - low)
        if self.top == self.capacity:
            capacity: int64_t = self.capacity * 2 if self.capacity else 256
            grown = cython.cast(
                cython.pointer(Open),
                realloc(self.stack, cython.cast(cython.size_t, capacity) * cython.sizeof(Open)),
            )
            if grown == cython.NULL:
                return False
            self.stack = grown
            self.capacity = capacity
        self.stack[self.top].end = high
        self.stack[self.top].self_ps = high - low
        self.stack[self.top].metadata = metadata
        self.stack[self.top].counted = 1 if counted else 0
        self.top += 1
        return True


def range_totals(
    columns,
    lines: cython.const[int64_t][:, ::1],
    window_start: int64_t,
    window_end: int64_t,
    depth_from: int64_t,
    depth_to: int64_t,
    n_metadata: int64_t,
):
    """Count, clipped total, self time, shortest and longest by metadata row; see
    `plain.tallies.range_totals`.
    """
    start: cython.const[int64_t][::1] = columns[0]
    duration: cython.const[int64_t][::1] = columns[1]
    metadata: cython.const[int32_t][::1] = columns[2]
    depth: cython.const[uint16_t][::1] = columns[3]
    result = np.zeros((5, n_metadata), np.int64)
    result[3] = FAR
    totals = _Totals(result)
    line: int64_t
    i: int64_t
    low: int64_t
    high: int64_t
    good: cython.bint = True
    with cython.nogil:
        for line in range(lines.shape[0]):
            for i in range(lines[line, 0], lines[line, 1]):
                if start[i] >= window_end or not good:
                    break
                if start[i] + max(duration[i], 1) <= window_start or not 0 <= metadata[i] < n_metadata:
                    continue
                low = max(start[i], window_start)
                high = max(low, min(start[i] + duration[i], window_end))
                good = totals.add(metadata[i], low, high, depth_from <= depth[i] <= depth_to)
            totals.close_before(FAR)
    if not good:
        raise MemoryError
    result[3][result[0] == 0] = 0
    return result


def sums(
    code: cython.const[int32_t][::1],
    n_groups: int64_t,
    rows: cython.const[Whole][::1],
    duration: cython.const[int64_t][::1],
):
    """Count, total, smallest, largest, the last row with the largest and the first row, by group; see
    `plain.tallies.sums`.
    """
    result = np.zeros((6, n_groups), np.int64)
    out: int64_t[:, ::1] = result
    i: int64_t
    d: int64_t
    g: int32_t
    with cython.nogil:
        for i in range(code.shape[0]):
            g = code[i]
            d = duration[rows[i]]
            if out[0, g] == 0:
                out[2, g] = d
                out[5, g] = rows[i]
            elif d < out[2, g]:
                out[2, g] = d
            if d >= out[3, g]:
                out[3, g] = d
                out[4, g] = rows[i]
            out[0, g] += 1
            out[1, g] += d
    return result


def extremes(values: cython.const[int64_t][::1], cuts: cython.const[int64_t][::1]):
    """The first smallest and the last largest value of each stretch; see `plain.tallies.extremes`."""
    n: int64_t = max(cuts.shape[0] - 1, 0)
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    least: int64_t[::1] = low
    most: int64_t[::1] = high
    k: int64_t
    i: int64_t
    a: int64_t
    b: int64_t
    with cython.nogil:
        for k in range(n):
            a = cuts[k]
            b = a
            for i in range(a, cuts[k + 1]):
                if values[i] < values[a]:
                    a = i
                if values[i] >= values[b]:
                    b = i
            least[k] = a
            most[k] = b
    return low, high


def last_end(start: cython.const[int64_t][::1], duration: cython.const[int64_t][::1]):
    """The latest end; see `plain.tallies.last_end`."""
    latest: int64_t = 0
    i: int64_t
    with cython.nogil:
        for i in range(start.shape[0]):
            latest = max(latest, start[i] + max(duration[i], 1))
    return latest
