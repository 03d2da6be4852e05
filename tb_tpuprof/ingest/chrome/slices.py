"""Raw events of a Chrome trace → slices, which have a start, a duration and a line, regardless of the phases
that encode them.

    X            ───────         B … E  ───────       begins and ends of a thread, paired by nesting
    b … n … e    ───▏───         S … T … F   ──│──    async: paired by category and id, on a line named after
                                                      the outermost slice
    N … O … D    ───▏───         objects: from creation to deletion, snapshots as marks
    i I R P c       ▏            marks of a thread, a process or the whole trace
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.native import pair_up
from tb_tpuprof.trace.schema import TEXT

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

# Kinds of lines. Lines of several kinds may come from one thread of the file.
THREAD, DEVICE, ANNOTATION, SYNC, ASYNC, PROCESS_MARKS, OBJECTS = range(7)
SUPPORTED = "XBEbneSTpFiIRPcNODCMstf"
_HAS_DURATION, _LOCAL_ID = 2, 8
_MIX = np.int64(-7046029254386353131)


@dataclass(frozen=True)
class Slices:
    """Columns with one row per slice: rows of the raw events of its begin and its end (-1 none), its time,
    and what determines its line.
    """

    raw: Rows
    end_raw: Rows
    start_ps: Int64s
    duration_ps: Int64s
    kind: npt.NDArray[np.uint8]
    pid: Int32s
    tid: Int32s
    group: Int32s
    is_unfinished: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pairing:
    """Slices, and the number of ends without a begin."""

    slices: Slices
    n_unmatched: int


def hash_rows(*columns: npt.NDArray[Any]) -> Int64s:
    """A hash of the values in each row of the columns (two rows collide once in 2^64)."""
    result = np.zeros(len(columns[0]), np.int64)
    with np.errstate(over="ignore"):
        for column in columns:
            result = (result ^ column.astype(np.int64)) * _MIX
            result ^= result >> 29
    return result


def slices_of(raw: RawEvents) -> Pairing:
    """All slices of a file, in no particular order."""
    begins, n_open_ends = _begins_and_ends(raw)
    tracks, n_open_async = _async(raw)
    parts = [_complete(raw), begins, tracks, _objects(raw), _marks(raw)]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in Slices.__dataclass_fields__
    }
    return Pairing(Slices(**joined), n_open_ends + n_open_async)


def _made(raw: RawEvents, rows: Rows, kind: int, duration: Int64s | int = 0, **others: Any) -> Slices:
    n = len(rows)
    columns: dict[str, Any] = {
        "raw": rows,
        "end_raw": np.full(n, -1, np.intp),
        "start_ps": raw.start_ps[rows],
        "duration_ps": np.broadcast_to(np.asarray(duration, np.int64), n),
        "kind": np.full(n, kind, np.uint8),
        "pid": raw["pid"][rows],
        "tid": raw["tid"][rows],
        "group": np.full(n, -1, np.int32),
        "is_unfinished": np.zeros(n, np.bool_),
    }
    return Slices(**(columns | others))


def _complete(raw: RawEvents) -> Slices:
    rows = raw.rows("X")
    return _made(raw, rows, THREAD, raw["duration_ps"][rows])


def _begins_and_ends(raw: RawEvents) -> tuple[Slices, int]:
    """Each end closes its thread's latest open begin, regardless of its name. A begin without an end lasts to
    its thread's last time.
    """
    rows = raw.rows("BE")
    if not len(rows):
        return _made(raw, rows, THREAD), 0
    thread = hash_rows(raw["pid"][rows], raw["tid"][rows])
    order = np.lexsort((raw.start_ps[rows], thread))
    rows, thread = rows[order], thread[order]
    _, number = np.unique(thread, return_inverse=True)
    is_end = (raw["phase"][rows] == ord("E")).astype(np.uint8)
    partner, _ = pair_up(number.astype(np.int32), is_end, np.full(len(rows), -1, np.int32))
    return _paired(raw, rows, is_end, partner, THREAD, _last_time(raw, rows)), int(
        ((partner < 0) & (is_end == 1)).sum()
    )


def _last_time(raw: RawEvents, rows: Rows) -> Int64s:
    """The last known time of each row's thread."""
    used = raw.rows("XBEiIRP")
    threads, number = np.unique(hash_rows(raw["pid"][used], raw["tid"][used]), return_inverse=True)
    last = np.zeros(len(threads), np.int64)
    np.maximum.at(
        last,
        number,
        raw.start_ps[used] + np.where(raw["phase"][used] == ord("X"), raw["duration_ps"][used], 0),
    )
    return last[np.searchsorted(threads, hash_rows(raw["pid"][rows], raw["tid"][rows]))]


def _paired(
    raw: RawEvents,
    rows: Rows,
    kinds: npt.NDArray[np.uint8],
    partner: Int32s,
    kind: int,
    last: Int64s,
    **others: Any,
) -> Slices:
    """Slices from begins (kind 0) to their partners, and marks (kind 2). `others`: columns of the result, per
    row of `rows`.
    """
    begins = np.flatnonzero(kinds != 1)
    begin, mate = rows[begins], partner[begins]
    is_open = (mate < 0) & (kinds[begins] == 0)
    end_raw = np.where(mate >= 0, rows[np.maximum(mate, 0)], -1)
    end_ps = np.where(mate >= 0, raw.start_ps[end_raw], np.where(is_open, last[begins], raw.start_ps[begin]))
    duration = np.maximum(end_ps - raw.start_ps[begin], 0)
    other_columns = {name: values[begins] for name, values in others.items()}
    return _made(raw, begin, kind, duration, end_raw=end_raw, is_unfinished=is_open, **other_columns)


def _async(raw: RawEvents) -> tuple[Slices, int]:
    """Slices of equal category, id and scope (older phases: and name) nest; all slices inside an outermost
    one are on the same line.
    """
    rows = raw.rows("bneSTpF")
    if not len(rows):
        return _made(raw, rows, ASYNC), 0
    phase = raw["phase"][rows]
    is_old = np.isin(phase, [ord(c) for c in "STpF"])
    process = np.where(raw["flags"][rows] & _LOCAL_ID, raw["pid"][rows], -1)
    key = hash_rows(raw["cat"][rows], raw["id"][rows], process, np.where(is_old, raw["name"][rows], -2))
    kinds = np.select(
        [np.isin(phase, [ord("b"), ord("S")]), np.isin(phase, [ord("e"), ord("F")])], [0, 1], 2
    ).astype(np.uint8)
    order = np.lexsort((raw.start_ps[rows], key))
    rows, key, kinds, is_old = rows[order], key[order], kinds[order], is_old[order]
    _, number = np.unique(key, return_inverse=True)
    names = np.where(is_old, -1, raw["name"][rows]).astype(np.int32)
    partner, root = pair_up(number.astype(np.int32), kinds, names)
    last = np.full(len(rows), int((raw.start_ps[raw.usable] + raw["duration_ps"][raw.usable]).max()))
    slices = _paired(
        raw, rows, kinds, partner, ASYNC, last,
        pid=raw["pid"][rows[root]], tid=np.full(len(rows), -1, np.int32), group=raw["name"][rows[root]],
    )  # fmt: skip
    return _with_steps(raw, slices, rows, key), int(((partner < 0) & (kinds == 1)).sum())


def _with_steps(raw: RawEvents, slices: Slices, rows: Rows, key: Int64s) -> Slices:
    """Steps of the older phases as slices: T lasts to the next event of its key, p from the one before. Their
    names get `args.step`.
    """
    phase = raw["phase"][rows]
    starts_step, ends_step = phase == ord("T"), phase == ord("p")
    if not (starts_step | ends_step).any():
        return slices
    time, same_key = raw.start_ps[rows], key[1:] == key[:-1]
    start = np.where(ends_step & np.append(False, same_key), np.append(time[0], time[:-1]), time)
    end = np.where(starts_step & np.append(same_key, False), np.append(time[1:], time[-1]), time)
    steps = np.flatnonzero(starts_step | ends_step)
    event, kind, value = raw.argument("step")
    texts = dict(zip(event[kind == TEXT].tolist(), value[kind == TEXT].tolist(), strict=True))
    for row in rows[steps].tolist():
        if row in texts:
            raw.columns["name"][row] = raw.texts.add(
                f"{raw.texts.get(int(raw['name'][row]))}: {raw.texts.get(texts[row])}"
            )
    sorted_row_of_raw = np.full(len(raw), -1, np.intp)
    sorted_row_of_raw[rows[steps]] = steps
    sorted_row = sorted_row_of_raw[slices.raw]
    is_step = sorted_row >= 0
    start_ps = np.where(is_step, start[sorted_row], slices.start_ps)
    duration_ps = np.where(is_step, (end - start)[sorted_row], slices.duration_ps)
    return replace(slices, start_ps=start_ps, duration_ps=duration_ps)


def _objects(raw: RawEvents) -> Slices:
    """Objects from creation to deletion. A snapshot is a mark, and so is the deletion of an object that was
    created before the trace.
    """
    rows = raw.rows("NOD")
    if not len(rows):
        return _made(raw, rows, OBJECTS)
    phase = raw["phase"][rows]
    key = hash_rows(raw["pid"][rows], raw["name"][rows], raw["id"][rows])
    order = np.lexsort((raw.start_ps[rows], key))
    rows, key, phase = rows[order], key[order], phase[order]
    _, number = np.unique(key, return_inverse=True)
    kinds = np.select([phase == ord("N"), phase == ord("D")], [0, 1], 2).astype(np.uint8)
    partner, _ = pair_up(number.astype(np.int32), kinds, np.full(len(rows), -1, np.int32))
    kinds[(kinds == 1) & (partner < 0)] = 2
    last = np.full(len(rows), int((raw.start_ps[raw.usable] + raw["duration_ps"][raw.usable]).max()))
    return _paired(
        raw,
        rows,
        kinds,
        partner,
        OBJECTS,
        last,
        tid=np.full(len(rows), -1, np.int32),
        group=raw["name"][rows],
    )


def _marks(raw: RawEvents) -> Slices:
    """Marks of their thread, or of their process if their scope is wider or they name no thread."""
    rows = raw.rows("iIRPc")
    is_wide = (
        np.isin(raw["scope"][rows], [ord("g"), ord("p")])
        | (raw["tid"][rows] < 0)
        | (raw["phase"][rows] == ord("c"))
    )
    kind = np.where(is_wide, PROCESS_MARKS, THREAD).astype(np.uint8)
    tid, pid = np.where(is_wide, -1, raw["tid"][rows]).astype(np.int32), raw["pid"][rows]
    samples = (raw["phase"][rows] == ord("P")) & (pid < 0) & (tid >= 0)
    if samples.any():
        pid = np.where(samples, _process_of_thread(raw, raw["tid"][rows]), pid)
    return replace(_made(raw, rows, THREAD), kind=kind, tid=tid, pid=pid.astype(np.int32))


def _process_of_thread(raw: RawEvents, tid: Int32s) -> Int32s:
    """The process of each thread's first event that names both; -1 if there is none."""
    named = np.flatnonzero((raw["pid"] >= 0) & (raw["tid"] >= 0))
    threads, first = np.unique(raw["tid"][named], return_index=True)
    index = np.minimum(np.searchsorted(threads, tid), max(len(threads) - 1, 0))
    if not len(threads):
        return np.full(len(tid), -1, np.int32)
    return np.where(threads[index] == tid, raw["pid"][named[first]][index], -1).astype(np.int32)
