# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sweeps over intervals sorted by start: nesting, drawing depth, flooding. Compiled; the twins in
`plain/intervals.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t
from cython.cimports.libc.stdlib import free, realloc

MAX_DEPTH = cython.declare(cython.int, 4096)
NEVER = cython.declare(int64_t, 0x7FFFFFFFFFFFFFFF)


def nest(
    start: cython.const[int64_t][::1],
    end: cython.const[int64_t][::1],
    line_offsets: cython.const[int64_t][::1],
):
    """Parent of each event by containment, and its self time; see `plain.intervals.nest`."""
    n: int64_t = start.shape[0]
    parents = np.full(n, -1, np.int32)
    selfs = np.zeros(n, np.int64)
    parent: int32_t[::1] = parents
    self_ps: int64_t[::1] = selfs
    stack: cython.pointer(int32_t) = cython.NULL
    grown: cython.pointer(int32_t)
    capacity: int64_t = 0
    top: int64_t
    line: int64_t
    i: int64_t
    failed: cython.bint = False
    with cython.nogil:
        for line in range(line_offsets.shape[0] - 1):
            top = 0
            for i in range(line_offsets[line], line_offsets[line + 1]):
                while top > 0 and not (start[stack[top - 1]] <= start[i] and end[stack[top - 1]] >= end[i]):
                    top -= 1
                self_ps[i] = end[i] - start[i]
                if top > 0:
                    parent[i] = stack[top - 1]
                    self_ps[stack[top - 1]] -= end[i] - start[i]
                if top == capacity:
                    capacity = capacity * 2 if capacity else 256
                    grown = cython.cast(cython.pointer(int32_t), realloc(stack, capacity * 4))
                    if grown == cython.NULL:
                        failed = True
                        break
                    stack = grown
                stack[top] = cython.cast(int32_t, i)
                top += 1
            if failed:
                break
        free(stack)
        for i in range(n):
            if self_ps[i] < 0:
                self_ps[i] = 0
    if failed:
        raise MemoryError
    return parents, selfs


def enclose(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    line_offsets: cython.const[int64_t][::1],
    longer: tuple,
    parent: int32_t[::1],
    take: cython.const[uint8_t][::1] = None,
) -> None:
    """Parent of each event of some lines, into `parent`; see `plain.intervals.enclose`."""
    longer_rows: cython.const[int64_t][::1] = longer[0]
    longer_ends: cython.const[int64_t][::1] = longer[1]
    has_take: cython.bint = take is not None
    stack: cython.pointer(int64_t) = cython.NULL
    grown: cython.pointer(int64_t)
    capacity: int64_t = 0
    top: int64_t
    line: int64_t
    i: int64_t
    end: int64_t
    next_longer: int64_t = 0
    n_longer: int64_t = longer_rows.shape[0]
    failed: cython.bint = False
    with cython.nogil:
        for line in range(line_offsets.shape[0] - 1):
            top = 0
            while next_longer < n_longer and longer_rows[next_longer] < line_offsets[line]:
                next_longer += 1
            for i in range(line_offsets[line], line_offsets[line + 1]):
                end = start[i] + duration[i]
                if next_longer < n_longer and longer_rows[next_longer] == i:
                    end = max(end, longer_ends[next_longer])
                    next_longer += 1
                parent[i] = -1
                if has_take and take[i] == 0:
                    continue
                while top > 0 and stack[2 * top - 1] < end:
                    top -= 1
                if top > 0:
                    parent[i] = cython.cast(int32_t, stack[2 * top - 2])
                if top == capacity:
                    capacity = capacity * 2 if capacity else 256
                    grown = cython.cast(cython.pointer(int64_t), realloc(stack, capacity * 16))
                    if grown == cython.NULL:
                        failed = True
                        break
                    stack = grown
                stack[2 * top] = i
                stack[2 * top + 1] = end
                top += 1
            if failed:
                break
        free(stack)
    if failed:
        raise MemoryError


def flood(parent: cython.const[int32_t][::1], entry_group: cython.const[int32_t][::1], groups=None):
    """Group of each event: its own entry's, else its parent's; see `plain.intervals.flood`."""
    n: int64_t = parent.shape[0]
    groups = np.empty(n, np.int32) if groups is None else groups
    group: int32_t[::1] = groups
    i: int64_t
    with cython.nogil:
        for i in range(n):
            if entry_group[i] >= 0:
                group[i] = entry_group[i]
            elif parent[i] >= 0 and parent[i] < i:
                group[i] = group[parent[i]]
            else:
                group[i] = -1
    return groups


def relabel(numbers: int32_t[::1], label: cython.const[int32_t][::1]) -> None:
    """Replace each number by its label, in place; see `plain.intervals.relabel`."""
    i: int64_t
    with cython.nogil:
        for i in range(numbers.shape[0]):
            numbers[i] = label[numbers[i]] if 0 <= numbers[i] < label.shape[0] else -1


def lanes(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    line_offsets: cython.const[int64_t][::1],
    depth: uint16_t[::1],
):
    """Drawing depth of each event of some lines, below all events that contain it, into `depth`; see
    `plain.intervals.lanes`.
    """
    n: int64_t = line_offsets[line_offsets.shape[0] - 1] - line_offsets[0]
    n_depths = np.zeros(line_offsets.shape[0] - 1, np.int32)
    counts: int32_t[::1] = n_depths
    size_buffer = np.empty(n, np.int64)  # unwritten pages cost nothing
    sizes: int64_t[::1] = size_buffer
    # Ends of the open events; the first entry is a sentinel that never ends.
    ends = np.full(MAX_DEPTH + 1, NEVER, np.int64)
    ends_view: int64_t[::1] = ends
    last: cython.pointer(int64_t) = cython.address(ends_view[1])
    line: int64_t
    i: int64_t
    begin: int64_t
    end: int64_t
    latest: int64_t = 0
    first_row: int64_t = 0
    free_depth: cython.int
    top: cython.int
    used: cython.int
    # Number of open events, from the outermost on, that each end no later than the one around them.
    nested: cython.int
    with cython.nogil:
        for line in range(line_offsets.shape[0] - 1):
            used = 0
            top = 0
            nested = MAX_DEPTH
            for i in range(line_offsets[line], line_offsets[line + 1]):
                begin = start[i]
                end = begin + max(duration[i], 1)
                latest = max(latest, end)
                while last[top - 1] <= begin:
                    top -= 1
                free_depth = top
                if top <= nested:
                    nested = MAX_DEPTH
                else:
                    free_depth = _free_depth(last, top, begin, end)
                free_depth = min(free_depth, MAX_DEPTH - 1)
                if last[free_depth - 1] < end:
                    nested = min(nested, free_depth)
                last[free_depth] = end
                top = max(top, free_depth + 1)
                if top > used:
                    sizes[first_row + used] = 0
                    used = top
                sizes[first_row + free_depth] += 1
                depth[i] = cython.cast(uint16_t, free_depth)
            counts[line] = used
            first_row += used
    return n_depths, size_buffer[:first_row].copy(), latest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _free_depth(last: cython.pointer(int64_t), top: cython.int, begin: int64_t, end: int64_t) -> cython.int:
    """The first depth that is free at `begin`, below all events that last until `end`; `top` if there is
    none.
    """
    d: cython.int
    free_row: cython.int = top
    for d in range(top):
        if last[d] <= begin:
            free_row = min(free_row, d)
        elif last[d] >= end:
            free_row = top
    return free_row


def ending_first(start: cython.const[int64_t][::1], end: cython.const[int64_t][::1]):
    """Disjoint pieces of the union of some intervals, each with the interval that ends first; see
    `plain.intervals.ending_first`.
    """
    n: int64_t = start.shape[0]
    # Each interval adds at most a piece where it begins and one where it ends.
    starts, ends, owners = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    piece_start: int64_t[::1] = starts
    piece_end: int64_t[::1] = ends
    piece_owner: int64_t[::1] = owners
    active: int64_t[::1] = np.empty(n, np.int64)
    n_active: int64_t = 0
    n_pieces: int64_t = 0
    now: int64_t = start[0] if n else 0
    until: int64_t
    stop: int64_t
    i: int64_t
    with cython.nogil:
        for i in range(n + 1):
            until = start[i] if i < n else NEVER
            while n_active > 0 and now < until:
                if end[active[0]] <= now:
                    n_active -= 1
                    active[0] = active[n_active]
                    _sink(end, active, n_active)
                    continue
                stop = min(end[active[0]], until)
                if n_pieces and piece_end[n_pieces - 1] == now and piece_owner[n_pieces - 1] == active[0]:
                    piece_end[n_pieces - 1] = stop
                else:
                    piece_start[n_pieces] = now
                    piece_end[n_pieces] = stop
                    piece_owner[n_pieces] = active[0]
                    n_pieces += 1
                now = stop
            now = max(now, until)
            if i < n and end[i] > until:
                active[n_active] = i
                n_active += 1
                _rise(end, active, n_active)
    return starts[:n_pieces].copy(), ends[:n_pieces].copy(), owners[:n_pieces].copy()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_sooner(end: cython.const[int64_t][::1], a: int64_t, b: int64_t) -> cython.bint:
    """Whether interval a ends before b, or with it and comes first."""
    return end[a] < end[b] or (end[a] == end[b] and a < b)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sink(end: cython.const[int64_t][::1], heap: int64_t[::1], n: int64_t) -> cython.void:
    """Sink the top of a heap of n intervals to its place."""
    i: int64_t = 0
    child: int64_t
    top: int64_t
    if n < 2:
        return
    top = heap[0]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and _is_sooner(end, heap[child + 1], heap[child]):
            child += 1
        if not _is_sooner(end, heap[child], top):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = top


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rise(end: cython.const[int64_t][::1], heap: int64_t[::1], n: int64_t) -> cython.void:
    """Raise the last of a heap of n intervals to its place."""
    i: int64_t = n - 1
    last: int64_t = heap[i]
    while i > 0 and _is_sooner(end, last, heap[(i - 1) // 2]):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = last
