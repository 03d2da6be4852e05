# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A line's events as a tree: which have the same calls around them, and what is on from moment to moment.

Compiled; twins in `plain_calling.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t, uint64_t

MIX = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
MIX_AGAIN = cython.declare(uint64_t, 0xC2B2AE3D27D4EB4F)


def contexts(
    parent: cython.const[int32_t][::1],
    name: cython.const[int32_t][::1],
    mark: cython.const[uint16_t][::1] = None,
):
    """Number of each event's context, and the first event of each; see `plain_calling.contexts`."""
    n: int64_t = parent.shape[0]
    numbers = np.empty(n, np.int32)
    firsts = np.empty(n, np.int32)  # costs nothing beyond what is written
    context: int32_t[::1] = numbers
    first: int32_t[::1] = firsts
    tables = np.full(1024, -1, np.int32)
    table: int32_t[::1] = tables
    has_mark: cython.bint = mark is not None
    mask: uint64_t = 1023
    found: int64_t = 0
    i: int64_t
    j: int64_t
    above: int32_t
    label: int64_t
    at: uint64_t
    other: int32_t
    for i in range(n):
        above = context[parent[i]] if 0 <= parent[i] < i else -1
        label = cython.cast(int64_t, name[i]) << 16 | (mark[i] if has_mark else 0)
        at = _slot(above, label) & mask
        while table[at] >= 0:
            other = first[table[at]]
            if (
                name[other] == name[i]
                and (not has_mark or mark[other] == mark[i])
                and (context[parent[other]] if 0 <= parent[other] < other else -1) == above
            ):
                break
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = cython.cast(int32_t, found)
            first[found] = cython.cast(int32_t, i)
            found += 1
        context[i] = table[at]
        if 2 * cython.cast(uint64_t, found) > mask:
            mask = 4 * mask + 3
            tables = np.full(mask + 1, -1, np.int32)
            table = tables
            for j in range(found):
                other = first[j]
                label = cython.cast(int64_t, name[other]) << 16 | (mark[other] if has_mark else 0)
                at = _slot(context[parent[other]] if 0 <= parent[other] < other else -1, label) & mask
                while table[at] >= 0:
                    at = (at + 1) & mask
                table[at] = cython.cast(int32_t, j)
    return numbers, firsts[:found].copy()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _slot(above: int32_t, label: int64_t) -> uint64_t:
    mixed: uint64_t = (cython.cast(uint64_t, label) * MIX) ^ (cython.cast(uint64_t, above + 1) * MIX_AGAIN)
    return (mixed ^ (mixed >> 29)) * MIX >> 17


Walk = cython.struct(
    start=cython.pointer(int64_t),
    duration=cython.pointer(int64_t),
    parent=cython.pointer(int32_t),
    context=cython.pointer(int32_t),
    codes=cython.pointer(int32_t),
    opens=cython.pointer(int64_t),
    closes=cython.pointer(int64_t),
    n=int64_t,
    n_windows=int64_t,
    i=int64_t,  # the next event, up to whose start we look at what is on
    event=int64_t,  # that is on: from the innermost outwards
    now=int64_t,
    left=int64_t,  # what is on, as far as it was not looked at
    right=int64_t,
    owner=int32_t,
    code=int32_t,
    at=int64_t,  # the first window that may still be open
    window=int64_t,
    next_begin=int64_t,  # the next stretch, as far as it is known; none where its code is negative
    next_end=int64_t,
    next_window=int64_t,
    next_code=int32_t,
    next_first=int32_t,
    next_last=int32_t,
    begin=int64_t,  # the stretch that was found
    end=int64_t,
    in_window=int64_t,
    of_code=int32_t,
    first=int32_t,
    last=int32_t,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin(walk: cython.pointer(Walk)) -> cython.void:
    walk.i = -1
    walk.event = -1
    walk.now = -0x7FFFFFFFFFFFFFFF
    walk.left = 0
    walk.right = 0
    walk.code = -1
    walk.at = 0
    walk.window = 0
    walk.next_code = -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find(walk: cython.pointer(Walk)) -> cython.bint:
    """Go on to the next stretch; false after the last."""
    left: int64_t
    right: int64_t
    while True:
        while walk.code >= 0 and walk.window < walk.n_windows and walk.opens[walk.window] < walk.right:
            left = max(walk.left, walk.opens[walk.window])
            right = min(walk.right, walk.closes[walk.window])
            walk.window += 1
            if left >= right:
                continue
            if walk.next_code == walk.code and walk.next_end == left and walk.next_window == walk.window - 1:
                walk.next_end = right
                walk.next_last = walk.owner
                continue
            _hand_out(walk)
            walk.next_begin = left
            walk.next_end = right
            walk.next_window = walk.window - 1
            walk.next_code = walk.code
            walk.next_first = walk.owner
            walk.next_last = walk.owner
            if walk.of_code >= 0:
                return True
        if not _look(walk):
            break
    _hand_out(walk)
    walk.next_code = -1
    return walk.of_code >= 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hand_out(walk: cython.pointer(Walk)) -> cython.void:
    """The stretch that was known so far is the one that was found."""
    walk.begin = walk.next_begin
    walk.end = walk.next_end
    walk.in_window = walk.next_window
    walk.of_code = walk.next_code
    walk.first = walk.next_first
    walk.last = walk.next_last


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _look(walk: cython.pointer(Walk)) -> cython.bint:
    """Go on to what is on next, between any two starts and ends of events; false at the end."""
    stop: int64_t
    right: int64_t
    while True:
        stop = walk.start[walk.i] if 0 <= walk.i < walk.n else 0x7FFFFFFFFFFFFFFF if walk.i >= 0 else walk.now
        while walk.event >= 0 and walk.now < stop:
            right = min(walk.start[walk.event] + walk.duration[walk.event], stop)
            if right > walk.now:
                walk.left = walk.now
                walk.right = right
                walk.owner = cython.cast(int32_t, walk.event)
                walk.code = walk.codes[walk.context[walk.event]]
                while walk.at < walk.n_windows and walk.closes[walk.at] <= walk.now:
                    walk.at += 1
                walk.window = walk.at
                walk.now = right
                walk.event = walk.parent[walk.event]
                return True
            walk.event = walk.parent[walk.event]
        if walk.i >= walk.n:
            return False
        walk.now = max(walk.now, stop)
        walk.event = walk.i
        walk.i += 1
        while walk.i < walk.n and walk.duration[walk.i] <= 0:
            walk.i += 1


def stretches(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    parent: cython.const[int32_t][::1],
    code: tuple,
    windows: tuple,
    least: int64_t = 1,
):
    """Stretches of time over which the innermost event's code lasts; see `plain_calling.stretches`."""
    room: int64_t = 2 * start.shape[0] + windows[0].shape[0] + 1
    times = np.empty((2, room), np.int64)  # costs nothing beyond what is written
    places = np.empty((3, room), np.int32)
    begin: int64_t[::1] = times[0]
    end: int64_t[::1] = times[1]
    window: int32_t[::1] = places[0]
    first: int32_t[::1] = places[1]
    last: int32_t[::1] = places[2]
    n: int64_t = 0
    walk = cython.declare(Walk)
    _open(cython.address(walk), start, duration, parent, code, windows)
    with cython.nogil:
        while _find(cython.address(walk)):
            if walk.end - walk.begin >= least:
                begin[n] = walk.begin
                end[n] = walk.end
                window[n] = cython.cast(int32_t, walk.in_window)
                first[n] = walk.first
                last[n] = walk.last
                n += 1
    return tuple(column[:n] for column in (*times, *places))


@cython.cfunc
def _open(
    walk: cython.pointer(Walk),
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    parent: cython.const[int32_t][::1],
    code: tuple,
    windows: tuple,
):
    context: cython.const[int32_t][::1] = code[0]
    codes: cython.const[int32_t][::1] = code[1]
    opens: cython.const[int64_t][::1] = windows[0]
    closes: cython.const[int64_t][::1] = windows[1]
    _begin(walk)
    walk.n = start.shape[0]
    walk.n_windows = opens.shape[0]
    if walk.n and walk.n_windows:
        walk.start = cython.cast(cython.pointer(int64_t), cython.address(start[0]))
        walk.duration = cython.cast(cython.pointer(int64_t), cython.address(duration[0]))
        walk.parent = cython.cast(cython.pointer(int32_t), cython.address(parent[0]))
        walk.context = cython.cast(cython.pointer(int32_t), cython.address(context[0]))
        walk.codes = cython.cast(cython.pointer(int32_t), cython.address(codes[0]))
        walk.opens = cython.cast(cython.pointer(int64_t), cython.address(opens[0]))
        walk.closes = cython.cast(cython.pointer(int64_t), cython.address(closes[0]))
    else:
        walk.n = 0
        walk.i = 0


Piece = cython.struct(start=int64_t, end=int64_t, limit=int64_t, step=int64_t, klass=int64_t)


def charged(
    events: tuple, order: cython.const[int64_t][::1], windows: tuple, time: int64_t[:, ::1], own: tuple = ()
):
    """Time in which each class is the highest that is on in each step, and the longest of each; see
    `plain_calling.charged`.
    """
    start: cython.const[int64_t][::1] = events[0]
    end: cython.const[int64_t][::1] = events[1]
    klass: cython.const[uint8_t][::1] = events[2]
    step: cython.const[int64_t][::1] = events[3]
    last: cython.const[int64_t][::1] = windows[1]
    n_classes: int64_t = time.shape[1]
    now: int64_t[::1] = np.array(windows[0], np.int64)
    until: int64_t[:, ::1] = np.zeros((time.shape[0], n_classes), np.int64)
    on: uint64_t[:, ::1] = np.zeros((time.shape[0], 4), np.uint64)  # a bit of each class that may be on
    counts = np.zeros((3, n_classes), np.int64)
    longest: int64_t[:, ::1] = counts
    step_of: cython.const[int64_t][::1] = own[1] if own else np.empty(0, np.int64)
    j: int64_t = 0
    i: int64_t
    s: int64_t
    k: int64_t
    walk = cython.declare(Walk)
    piece = cython.declare(Piece)
    has_own: cython.bint = False
    if own:
        thread = own[0]
        _open(cython.address(walk), thread[0], thread[1], thread[2], thread[3], thread[4])
    with cython.nogil:
        for s in range(time.shape[0]):
            for k in range(n_classes):
                time[s, k] = 0
        if step_of.shape[0]:
            has_own = _find(cython.address(walk))
        while has_own or j < order.shape[0]:
            if has_own and (j == order.shape[0] or walk.begin < start[order[j]]):
                s = step_of[walk.in_window]
                k = min(cython.cast(int64_t, walk.of_code), n_classes - 1)
                piece.start, piece.end, piece.limit, piece.step, piece.klass = (
                    walk.begin,
                    walk.end,
                    last[s],
                    s,
                    k,
                )
                if _is_alone(on, s) and (j == order.shape[0] or walk.end <= start[order[j]]):
                    _put_alone(time, now, longest, cython.address(piece))
                else:
                    _put(time, until, on, now, longest, cython.address(piece))
                has_own = _find(cython.address(walk))
            else:
                i = order[j]
                j += 1
                k = min(cython.cast(int64_t, klass[i]), n_classes - 1)
                piece.start, piece.end, piece.limit, piece.step, piece.klass = (
                    start[i],
                    end[i],
                    last[step[i]],
                    step[i],
                    k,
                )
                _put(time, until, on, now, longest, cython.address(piece))
        for s in range(time.shape[0]):
            _advance(time, until, on, now, s, last[s])
    return counts


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put(
    time: int64_t[:, ::1],
    until: int64_t[:, ::1],
    on: uint64_t[:, ::1],
    now: int64_t[::1],
    longest: int64_t[:, ::1],
    piece: cython.pointer(Piece),
) -> cython.void:
    """What is on in a step from a moment on, after all that begins before."""
    s: int64_t = piece.step
    k: int64_t = piece.klass
    if k == 0 or min(piece.end, piece.limit) <= max(piece.start, now[s]):
        return
    _advance(time, until, on, now, s, piece.start)
    until[s, k] = max(until[s, k], min(piece.end, piece.limit))
    on[s, k >> 6] |= cython.cast(uint64_t, 1) << (k & 63)
    _count(longest, k, piece.start, piece.end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_alone(
    time: int64_t[:, ::1], now: int64_t[::1], longest: int64_t[:, ::1], piece: cython.pointer(Piece)
) -> cython.void:
    """The same of what nothing else overlaps: charged at once."""
    begin: int64_t = max(piece.start, now[piece.step])
    stop: int64_t = min(piece.end, piece.limit)
    if piece.klass > 0 and stop > begin:
        time[piece.step, piece.klass] += stop - begin
        now[piece.step] = stop
        _count(longest, piece.klass, piece.start, piece.end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(longest: int64_t[:, ::1], k: int64_t, start: int64_t, end: int64_t) -> cython.void:
    longest[0, k] += 1
    if end - start > longest[2, k] - longest[1, k]:
        longest[1, k] = start
        longest[2, k] = end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_alone(on: uint64_t[:, ::1], s: int64_t) -> cython.bint:
    """Whether nothing else can be on in a step."""
    return (on[s, 0] | on[s, 1] | on[s, 2] | on[s, 3]) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _advance(
    time: int64_t[:, ::1],
    until: int64_t[:, ::1],
    on: uint64_t[:, ::1],
    now: int64_t[::1],
    s: int64_t,
    limit: int64_t,
) -> cython.void:
    """Charge a step's time up to a moment."""
    k: int64_t
    stop: int64_t
    while now[s] < limit:
        k = _highest(on, s)
        if k < 0:
            now[s] = limit
        elif until[s, k] <= now[s]:
            on[s, k >> 6] &= ~(cython.cast(uint64_t, 1) << (k & 63))
        else:
            stop = min(until[s, k], limit)
            time[s, k] += stop - now[s]
            now[s] = stop


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _highest(on: uint64_t[:, ::1], s: int64_t) -> int64_t:
    """The highest class whose bit is set; -1 for none."""
    at: int64_t
    bit: int64_t = 32
    word: uint64_t = 0
    found: int64_t
    for at in range(3, -1, -1):
        word = on[s, at]
        if word:
            found = at << 6
            while bit:
                if word >> bit:
                    found += bit
                    word >>= bit
                bit >>= 1
            return found
    return -1
