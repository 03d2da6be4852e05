# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A line's events as a tree: which events share the calls around them, and which event is innermost at each
moment.

Compiled; the twins in `plain/calling.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t, uint64_t

MIX = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
MIX_AGAIN = cython.declare(uint64_t, 0xC2B2AE3D27D4EB4F)
LOW = cython.declare(int64_t, 0xFFFFFFFF)


def contexts(
    parent: cython.const[int32_t][::1],
    name: cython.const[int32_t][::1],
    mark: cython.const[uint16_t][::1] = None,
):
    """Number of each event's context, and the first event of each; see `plain.calling.contexts`.

    The table holds the hash of each context's key above the context's number: of two keys that share a slot
    nearly all are told apart without a look at their events, which are far apart in memory.
    """
    n: int64_t = parent.shape[0]
    numbers = np.empty(n, np.int32)
    firsts = np.empty(n, np.int32)  # unwritten pages cost nothing
    context: int32_t[::1] = numbers
    first: int32_t[::1] = firsts
    table: int64_t[::1] = np.full(1024, -1, np.int64)
    has_mark: cython.bint = mark is not None
    n_contexts: int64_t = 0
    i: int64_t
    above: int32_t
    label: int64_t
    hashed: int64_t
    slot: int64_t
    other: int32_t
    for i in range(n):
        above = context[parent[i]] if 0 <= parent[i] < i else -1
        label = cython.cast(int64_t, name[i]) << 16 | (mark[i] if has_mark else 0)
        hashed = _hash(above, label)
        slot = hashed & (table.shape[0] - 1)
        while table[slot] >= 0:
            if table[slot] >> 32 == hashed:
                other = first[table[slot] & LOW]
                if (
                    name[other] == name[i]
                    and (not has_mark or mark[other] == mark[i])
                    and (context[parent[other]] if 0 <= parent[other] < other else -1) == above
                ):
                    break
            slot = (slot + 1) & (table.shape[0] - 1)
        if table[slot] < 0:
            table[slot] = hashed << 32 | n_contexts
            first[n_contexts] = cython.cast(int32_t, i)
            n_contexts += 1
        context[i] = cython.cast(int32_t, table[slot] & LOW)
        if 2 * n_contexts > table.shape[0]:
            table = _grown(table)
    return numbers, firsts[:n_contexts].copy()


@cython.cfunc
def _grown(table: int64_t[::1]):
    """The table with twice as many slots."""
    larger = np.full(2 * table.shape[0], -1, np.int64)
    slots: int64_t[::1] = larger
    mask: int64_t = slots.shape[0] - 1
    i: int64_t
    slot: int64_t
    with cython.nogil:
        for i in range(table.shape[0]):
            if table[i] < 0:
                continue
            slot = (table[i] >> 32) & mask
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = table[i]
    return larger


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hash(above: int32_t, label: int64_t) -> int64_t:
    """31 bits."""
    hashed: uint64_t = (cython.cast(uint64_t, label) * MIX) ^ (cython.cast(uint64_t, above + 1) * MIX_AGAIN)
    return cython.cast(int64_t, ((hashed ^ (hashed >> 29)) * MIX) >> 33)


BLOCK = cython.declare(int64_t, 256)
LATEST = cython.declare(int64_t, 0x7FFFFFFFFFFFFFFF)

# A stretch of time within a window in which the innermost event has the same code.
Stretch = cython.struct(begin=int64_t, end=int64_t, window=int64_t, code=int32_t, first=int32_t, last=int32_t)

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
    least=int64_t,  # shorter stretches are left out
    i=int64_t,  # the next event: active events are processed up to its start
    event=int64_t,  # the active event, from the innermost one outwards
    now=int64_t,
    window=int64_t,  # the first window that may still be open
    current=Stretch,  # under construction; none if its code is negative
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _next_stretches(walk: cython.pointer(Walk), block: cython.pointer(Stretch)) -> int64_t:
    """Put the next stretches into `block`, at most BLOCK, and return their number; 0 after the last one.

    Each event is read once where it starts and once for each segment in which it is the innermost one.
    """
    n_found: int64_t = 0
    i: int64_t = walk.i
    event: int64_t = walk.event
    now: int64_t = walk.now
    window: int64_t
    right: int64_t
    code: int32_t
    current: Stretch = walk.current
    stop: int64_t = walk.start[i] if i < walk.n else LATEST
    while n_found < BLOCK:
        if event < 0 or now >= stop:
            if i >= walk.n:
                break
            now = max(now, stop)
            event = i
            i += 1
            while i < walk.n and walk.duration[i] <= 0:
                i += 1
            stop = walk.start[i] if i < walk.n else LATEST
            continue
        right = min(walk.start[event] + walk.duration[event], stop)
        code = walk.codes[walk.context[event]]
        if right > now and code >= 0:
            while walk.window < walk.n_windows and walk.closes[walk.window] <= now:
                walk.window += 1
            window = walk.window
            while window < walk.n_windows and walk.opens[window] < right and n_found < BLOCK:
                now = max(now, walk.opens[window])
                n_found += _extend(
                    cython.address(current),
                    Stretch(
                        now,
                        min(right, walk.closes[window]),
                        window,
                        code,
                        cython.cast(int32_t, event),
                        cython.cast(int32_t, event),
                    ),
                    walk.least,
                    block + n_found,
                )
                window += 1
            if n_found == BLOCK:
                # The rest of the segment, if there is one, is read again.
                now = max(now, min(right, walk.closes[window - 1]))
                break
        now = max(now, right)
        event = walk.parent[event]
    if n_found < BLOCK and current.code >= 0:
        if current.end - current.begin >= walk.least:
            block[n_found] = current
            n_found += 1
        current.code = -1
    walk.i, walk.event, walk.now, walk.current = i, event, now, current
    return n_found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _extend(
    current: cython.pointer(Stretch), piece: Stretch, least: int64_t, finished: cython.pointer(Stretch)
) -> int64_t:
    """Extend the stretch under construction by a piece, or begin a new one with it; returns whether that
    finished the one before.
    """
    is_finished: cython.bint
    if piece.begin >= piece.end:
        return 0
    if current.code == piece.code and current.end == piece.begin and current.window == piece.window:
        current.end = piece.end
        current.last = piece.last
        return 0
    is_finished = current.code >= 0 and current.end - current.begin >= least
    if is_finished:
        finished[0] = current[0]
    current[0] = piece
    return is_finished


def stretches(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    parent: cython.const[int32_t][::1],
    code: tuple,
    windows: tuple,
    least: int64_t = 1,
):
    """Stretches of time with a constant code of the innermost event; see `plain.calling.stretches`."""
    capacity: int64_t = 2 * start.shape[0] + windows[0].shape[0] + 1
    times = np.empty((2, capacity), np.int64)  # unwritten pages cost nothing
    numbers = np.empty((3, capacity), np.int32)
    begin: int64_t[::1] = times[0]
    end: int64_t[::1] = times[1]
    window: int32_t[::1] = numbers[0]
    first: int32_t[::1] = numbers[1]
    last: int32_t[::1] = numbers[2]
    n: int64_t = 0
    i: int64_t
    n_found: int64_t = 1
    walk = cython.declare(Walk)
    block = cython.declare(Stretch[256])
    _open(cython.address(walk), start, duration, parent, code, windows)
    walk.least = least
    with cython.nogil:
        while n_found:
            n_found = _next_stretches(cython.address(walk), block)
            for i in range(n_found):
                begin[n] = block[i].begin
                end[n] = block[i].end
                window[n] = cython.cast(int32_t, block[i].window)
                first[n] = block[i].first
                last[n] = block[i].last
                n += 1
    return tuple(column[:n] for column in (*times, *numbers))


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
    walk.event = -1
    walk.now = -LATEST
    walk.window = 0
    walk.least = 1
    walk.current.code = -1
    walk.i = 0
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
        while walk.i < walk.n and walk.duration[walk.i] <= 0:
            walk.i += 1
    else:
        walk.n = 0


def own_times(
    start: cython.const[int64_t][::1],
    duration: cython.const[int64_t][::1],
    parent: cython.const[int32_t][::1],
    context: cython.const[int32_t][::1],
    windows: tuple,
    n_contexts: int64_t,
):
    """Own time and number of events of each context within windows; see `plain.calling.own_times`."""
    sums = np.zeros((2, n_contexts), np.int64)
    time: int64_t[::1] = sums[0]
    count: int64_t[::1] = sums[1]
    opens: cython.const[int64_t][::1] = windows[0]
    closes: cython.const[int64_t][::1] = windows[1]
    first: int64_t = 0
    i: int64_t
    n_found: int64_t = 1
    walk = cython.declare(Walk)
    block = cython.declare(Stretch[256])
    codes = np.arange(n_contexts, dtype=np.int32)
    _open(cython.address(walk), start, duration, parent, (context, codes), windows)
    with cython.nogil:
        while n_found:
            n_found = _next_stretches(cython.address(walk), block)
            for i in range(n_found):
                time[block[i].code] += block[i].end - block[i].begin
        for i in range(start.shape[0] if opens.shape[0] else 0):
            while first < opens.shape[0] and closes[first] <= start[i]:
                first += 1
            if first == opens.shape[0]:
                break
            if opens[first] < start[i] + max(duration[i], 1):
                count[context[i]] += 1
    return sums


def summed_up(above: cython.const[int32_t][::1], values: cython.const[int64_t][:, ::1]):
    """Sums over each node and all nodes below it; see `plain.calling.summed_up`."""
    sums = np.array(values, np.int64)
    total: int64_t[:, ::1] = sums
    i: int64_t
    row: int64_t
    with cython.nogil:
        for row in range(total.shape[0]):
            for i in range(above.shape[0] - 1, -1, -1):
                if 0 <= above[i] < i:
                    total[row, above[i]] += total[row, i]
    return sums


def repeats(above: cython.const[int32_t][::1], name: cython.const[int32_t][::1], n_names: int64_t):
    """Which nodes are below another of the same name; see `plain.calling.repeats`."""
    n: int64_t = above.shape[0]
    result = np.zeros(n, np.uint8)
    is_repeated: uint8_t[::1] = result
    child: int32_t[::1] = np.full(n + 1, -1, np.int32)  # the last child of each, of the root at the end
    sibling: int32_t[::1] = np.empty(n, np.int32)
    depth: int32_t[::1] = np.zeros(max(n_names, 1), np.int32)
    i: int64_t
    parent: int64_t
    at: int64_t
    with cython.nogil:
        for i in range(n):
            parent = above[i] if 0 <= above[i] < i else n
            sibling[i] = child[parent]
            child[parent] = cython.cast(int32_t, i)
        at = child[n]
        while at >= 0:
            is_repeated[at] = depth[name[at]] > 0
            depth[name[at]] += 1
            if child[at] >= 0:
                at = child[at]
                continue
            while at >= 0:
                depth[name[at]] -= 1
                if sibling[at] >= 0:
                    at = sibling[at]
                    break
                at = above[at] if 0 <= above[at] < at else -1
    return result.view(np.bool_)


Piece = cython.struct(start=int64_t, end=int64_t, limit=int64_t, step=int64_t, klass=int64_t)


def charged(
    events: tuple,
    order: cython.const[int64_t][::1],
    windows: tuple,
    time: int64_t[:, ::1],
    thread: tuple = (),
):
    """Charges each step's time to the highest active class, and finds the longest event of each; see
    `plain.calling.charged`.
    """
    start: cython.const[int64_t][::1] = events[0]
    end: cython.const[int64_t][::1] = events[1]
    klass: cython.const[uint8_t][::1] = events[2]
    step: cython.const[int64_t][::1] = events[3]
    last: cython.const[int64_t][::1] = windows[1]
    n_classes: int64_t = time.shape[1]
    now: int64_t[::1] = np.array(windows[0], np.int64)
    until: int64_t[:, ::1] = np.zeros((time.shape[0], n_classes), np.int64)
    on: uint64_t[:, ::1] = np.zeros((time.shape[0], 4), np.uint64)  # a bit for each class that may be active
    counts = np.zeros((3, n_classes), np.int64)
    longest: int64_t[:, ::1] = counts
    step_of: cython.const[int64_t][::1] = thread[1] if thread else np.empty(0, np.int64)
    j: int64_t = 0
    i: int64_t
    s: int64_t
    k: int64_t
    walk = cython.declare(Walk)
    block = cython.declare(Stretch[256])
    stretch: cython.pointer(Stretch) = block
    n_found: int64_t = 0
    n_used: int64_t = 0
    piece = cython.declare(Piece)
    if thread:
        walk_arguments = thread[0]
        _open(
            cython.address(walk),
            walk_arguments[0],
            walk_arguments[1],
            walk_arguments[2],
            walk_arguments[3],
            walk_arguments[4],
        )
    with cython.nogil:
        for s in range(time.shape[0]):
            for k in range(n_classes):
                time[s, k] = 0
        if step_of.shape[0]:
            n_found = _next_stretches(cython.address(walk), block)
        while n_used < n_found or j < order.shape[0]:
            stretch = block + n_used
            if n_used < n_found and (j == order.shape[0] or stretch.begin < start[order[j]]):
                s = step_of[stretch.window]
                k = min(cython.cast(int64_t, stretch.code), n_classes - 1)
                piece.start, piece.end, piece.limit, piece.step, piece.klass = (
                    stretch.begin,
                    stretch.end,
                    last[s],
                    s,
                    k,
                )
                if _is_alone(on, s) and (j == order.shape[0] or stretch.end <= start[order[j]]):
                    _put_alone(time, now, longest, cython.address(piece))
                else:
                    _put(time, until, on, now, longest, cython.address(piece))
                n_used += 1
                if n_used == n_found:
                    n_found, n_used = _next_stretches(cython.address(walk), block), 0
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
    """Activate a class in a step; pieces come in order of their starts."""
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
    """Like `_put`, for a piece that nothing else overlaps: charged at once."""
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
    """Whether no other class can be active in a step."""
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
    word_index: int64_t
    bit: int64_t = 32
    word: uint64_t = 0
    highest: int64_t
    for word_index in range(3, -1, -1):
        word = on[s, word_index]
        if word:
            highest = word_index << 6
            while bit:
                if word >> bit:
                    highest += bit
                    word >>= bit
                bit >>= 1
            return highest
    return -1
