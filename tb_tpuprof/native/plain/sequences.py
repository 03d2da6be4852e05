"""Plain twins of `sequences.py`: the same names, arguments and results, for where no extension is built and
for tests.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
Events = tuple[
    Int64s, Int64s, Flags, Int32s
]  # start, end, before which of them a run ends in any case, and their numbers


def by_start(start: Int64s, rows: Int32s, offsets: Int64s) -> Int32s:
    """Order of the rows by start, of equal starts as they stand. Rows offsets[i] … offsets[i + 1] of each
    line i stand so already.
    """
    return np.argsort(start[rows[: offsets[-1]]], kind="stable").astype(np.int32)


def in_order(start: Int64s, duration: Int64s) -> bool:
    """Whether events stand by start, and of equal starts the longest first."""
    later = start[1:] > start[:-1]
    return bool((later | ((start[1:] == start[:-1]) & (duration[1:] <= duration[:-1]))).all())


def n_runs(is_new: Flags, label: Int32s, keys: Int32s) -> int:
    """How many stretches `runs` will find."""
    return len(_firsts(is_new, label, keys)[0])


def runs(events: Events, label: Int32s, keys: Int32s, out: tuple[Int64s, Int64s, Int32s, Int32s]) -> None:
    """Successive events with one key → start, duration, key and first event's number of each stretch, in the
    order in which they begin.

    `keys[label[i]]` are the keys of event i, the outermost level first; -1 is no key and makes no run. A run
    ends before an event that is new, and with the run of the level around it. As many are written as there is
    room for.

        keys     a/x  a/x  a/y  b/y       a from 0 to 2, x from 0 to 1, y from 2 to 2, b from 3 to 3, y from 3
        to 3
    """
    start, end, is_new, row = events
    out_start, out_duration, out_key, out_row = out
    first, after, level = (column[: len(out_start)] for column in _firsts(is_new, label, keys))
    out_start[:], out_key[:], out_row[:] = start[first], keys[label[first], level], row[first]
    latest = [end[a:b].max() for a, b in zip(first.tolist(), after.tolist(), strict=True)]
    out_duration[:] = np.array(latest, np.int64) - start[first]


def _firsts(is_new: Flags, label: Int32s, keys: Int32s) -> tuple[Int64s, Int64s, Int64s]:
    """(first event, the event after the last one, level) of each run."""
    begins, parts = is_new.astype(np.bool_), [np.empty((3, 0), np.int64)]
    begins[:1] = True
    for level, key in enumerate(keys[label].T if len(label) else ()):
        begins[1:] |= key[1:] != key[:-1]
        first = np.flatnonzero(begins)
        after = np.append(first[1:], len(label))
        named = key[first] >= 0
        parts.append(np.stack([first, after, np.full(len(first), level)])[:, named])
    found = np.concatenate(parts, axis=1)
    first, after, level_of = found[:, np.lexsort((found[2], found[0]))]
    return first, after, level_of


def sequence(
    start: Int64s, duration: Int64s, rows: Int32s, group: Int32s, small_gap: int
) -> tuple[Int64s, Int64s, Flags]:
    """(start, end, is new) of rows in time order: a run ends where the group changes, and outside of groups
    (-1, or no groups at all: an empty array) where the gap to what came before is more than the small gap and
    more than twice the event before it.
    """
    starts, durations = start[rows], duration[rows]
    ends, is_new = starts + durations, np.ones(len(rows), np.bool_)
    if len(rows):
        groups = group if len(group) == len(rows) else np.full(len(rows), -1, np.int32)
        gap = starts[1:] - np.maximum.accumulate(ends)[:-1]
        is_new[1:] = (groups[1:] != groups[:-1]) | (
            (groups[1:] < 0) & (gap > np.maximum(2 * durations[:-1], small_gap))
        )
    return starts, ends, is_new.view(np.uint8)


def replay(
    events: tuple[Int64s, Int32s, Int32s], root: Int64s, size: Int64s, unpadded: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, int]:
    """What a heap holds as its events (kind, buffer, buffer shared with) come one after the other.

    `root` is the buffer whose memory a buffer uses; a root's is held while it has users. Returns bytes held
    before each event and at the end, the same unpadded, first and last event of each buffer (-1: none), for
    each event that takes memory the one that gives it back (n: none does; -1: takes none), and how many frees
    had no user. Events without a buffer do nothing.
    """
    n, free, share = len(events[0]), 1, 2
    held, start, end = (
        np.zeros((2, n + 1), np.int64),
        np.full(len(root), -1, np.int64),
        np.full(len(root), -1, np.int64),
    )
    until, users, since, n_refused = np.full(n, -1, np.int64), [0] * len(root), [0] * len(root), 0
    rows = list(enumerate(zip(*(column.tolist() for column in events), strict=True)))
    for i, (kind, buffer, shared) in rows:
        held[:, i + 1] = held[:, i]
        if buffer < 0 or (kind == share and shared < 0):
            continue
        at = int(root[buffer])
        if kind != free:
            start[buffer], end[buffer] = i, n - 1
            users[at] += 1
            if users[at] == 1:
                held[:, i + 1] += size[at], unpadded[at]
                since[at], until[i] = i, n
        elif not users[at]:
            n_refused += 1
        else:
            users[at] -= 1
            if not users[at]:
                held[:, i + 1] -= size[at], unpadded[at]
                until[since[at]] = i
    for i, (kind, buffer, _) in rows:
        if kind == free and buffer >= 0:
            end[buffer] = i if start[buffer] >= 0 else -1
    for i, (kind, buffer, _) in rows:
        if until[i] >= 0 and kind != share:
            end[buffer] = min(until[i], n - 1)
    return held[0], held[1], start, end, until, n_refused
