"""Plain twin of `compiled/sequences.py`: the same names, arguments and results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
# Start, end, whether a run must end before the event, and the events' numbers.
Events = tuple[Int64s, Int64s, Flags, Int32s]


def by_start(start: Int64s, rows: Int32s, offsets: Int64s) -> Int32s:
    """Order of the rows by start, stable for equal starts. Rows offsets[i] … offsets[i + 1] of each line i
    are already sorted.
    """
    return np.argsort(start[rows[: offsets[-1]]], kind="stable").astype(np.int32)


def in_order(start: Int64s, duration: Int64s) -> bool:
    """Whether events are sorted by start, and the longest first among equal starts."""
    later = start[1:] > start[:-1]
    return bool((later | ((start[1:] == start[:-1]) & (duration[1:] <= duration[:-1]))).all())


def n_runs(is_new: Flags, label: Int32s, keys: Int32s) -> int:
    """Number of stretches that `runs` will find."""
    return len(_firsts(is_new, label, keys)[0])


def runs(events: Events, label: Int32s, keys: Int32s, out: tuple[Int64s, Int64s, Int32s, Int32s]) -> None:
    """Merges successive events with equal keys → start, duration, key and first event's number of each
    stretch, in order of their starts.

    `keys[label[i]]` are the keys of event i, the outermost level first; -1 is no key and starts no run. A run
    ends before an event that is new, and with the run of the level around it. Writes at most as many as `out`
    has space for.

        keys     a/x  a/x  a/y  b/y       a from 0 to 2, x from 0 to 1, y from 2 to 2, b and y from 3 to 3
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
    run_table = np.concatenate(parts, axis=1)
    first, after, level_of = run_table[:, np.lexsort((run_table[2], run_table[0]))]
    return first, after, level_of


def sequence(
    start: Int64s, duration: Int64s, rows: Int32s, group: Int32s, small_gap: int
) -> tuple[Int64s, Int64s, Flags]:
    """(start, end, is new) of rows in time order. A run ends where the group changes. Outside groups (-1, or
    an empty array for no groups at all) it ends where the gap to the preceding events exceeds both the small
    gap and twice the duration of the event before it.
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
    """Simulates a heap: its events (kind, buffer, buffer shared with) one after another.

    `root` is the buffer whose memory a buffer uses; a root's memory is held while it has users. Returns bytes
    held before each event and at the end; the same unpadded; first and last event of each buffer (-1: none);
    for each event that allocates, the event that frees (n: none does; -1: it does not allocate); the number
    of frees without a user. Events without a buffer do nothing.
    """
    n, free, share = len(events[0]), 1, 2
    held, start, end = (
        np.zeros((2, n + 1), np.int64),
        np.full(len(root), -1, np.int64),
        np.full(len(root), -1, np.int64),
    )
    freed_at, users, allocated_at, n_refused = np.full(n, -1, np.int64), [0] * len(root), [0] * len(root), 0
    rows = list(enumerate(zip(*(column.tolist() for column in events), strict=True)))
    for i, (kind, buffer, shared) in rows:
        held[:, i + 1] = held[:, i]
        if buffer < 0 or (kind == share and shared < 0):
            continue
        root_buffer = int(root[buffer])
        if kind != free:
            start[buffer], end[buffer] = i, n - 1
            users[root_buffer] += 1
            if users[root_buffer] == 1:
                held[:, i + 1] += size[root_buffer], unpadded[root_buffer]
                allocated_at[root_buffer], freed_at[i] = i, n
        elif not users[root_buffer]:
            n_refused += 1
        else:
            users[root_buffer] -= 1
            if not users[root_buffer]:
                held[:, i + 1] -= size[root_buffer], unpadded[root_buffer]
                freed_at[allocated_at[root_buffer]] = i
    for i, (kind, buffer, _) in rows:
        if kind == free and buffer >= 0:
            end[buffer] = i if start[buffer] >= 0 else -1
    for i, (kind, buffer, _) in rows:
        if freed_at[i] >= 0 and kind != share:
            end[buffer] = min(freed_at[i], n - 1)
    return held[0], held[1], start, end, freed_at, n_refused
