"""Steps of a loop that annotates none: from one call of its main program to the next.

    thread   │update│ … Python … │mean││update│ … Python … │mean││update│
    step     ├─────────────────────────┤├────────────────────────┤

A loop that calls it several times in turn, each time with other work after it, has a step for each turn:

    thread   │update│ draw │update│ score │update│ save │update│ draw │ …
    step     ├───────────────────────────────────────┤├─────────────── …

Programs of JAX, or operations that TensorFlow runs eagerly. The main one is that whose calls are spread most
evenly over the loop, and at least a millisecond apart on average (or their runs are): neither one of the many
small programs of a step nor one that only every n-th step calls.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import are_inside, parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.program_runs import run_ends
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.intp]
_CALLS = ("PjitFunction(", "EagerLocalExecute: ")
_NUMBERED = re.compile(r"__(?:inference|forward|backward)_(.+?)_\d+")
_FUNCTION = re.compile(r"EagerLocalExecute: __(?:inference|forward|backward)_.+_\d+$")
_FEW = 3
_LEAST_PS = 10**9
_ALIKE = 1.25
_MOST_PHASES = 8
_FEW_TURNS = 3


@once
def main_calls(trace: Trace) -> Rows:
    """The calls of the main program on the thread that calls most, by start; none where no program is called
    three times.
    """
    names = metadata_names(trace)
    on_host = np.isin(trace.metadata["plane"], planes(trace).hosts)
    for prefix in _CALLS:
        is_call = np.array([name.startswith(prefix) for name in names], np.bool_) & on_host
        if is_call.any():
            rows = np.flatnonzero(is_call[trace.events["metadata"]])
            rows = _main(trace, rows[~are_inside(trace, rows, is_call)])
            units = _units(trace, rows)
            _, first = np.unique(units, return_index=True)
            return rows[np.sort(first)][:: _n_phases(trace, units[np.sort(first)])]
    return np.empty(0, np.intp)


@once
def main_function_calls(trace: Trace) -> Rows:
    """The same of functions of TensorFlow alone, not of its operations."""
    is_call = np.array([_FUNCTION.match(name) is not None for name in metadata_names(trace)], np.bool_)
    rows = np.flatnonzero(is_call[trace.events["metadata"]])
    return _main(trace, rows[~are_inside(trace, rows, is_call)])


@once
def n_phases(trace: Trace) -> int:
    """How often each step calls the main program, 1 where that cannot be told."""
    rows = main_calls(trace)
    if len(rows) < _FEW_TURNS:
        return 1
    metadata, start = trace.events["metadata"], trace.events["start_ps"]
    same = np.flatnonzero((metadata == metadata[rows[0]]) & (trace.event_line == trace.event_line[rows[0]]))
    above = parents(trace)[same]
    same = same[
        (above < 0) | (metadata[above] != metadata[rows[0]])
    ]  # a call of JAX is written twice, one inside of the other
    return max(int((start[same] < start[rows[1]]).sum() - (start[same] < start[rows[0]]).sum()), 1)


def _units(trace: Trace, calls: Rows) -> Rows:
    """What each call (ascending by start) is part of in its loop: the event around it right inside of that
    which holds them all.

    fit     ├ train_step ──────────┤├ train_step ──────────┤     the loop's frame holds all calls
              MatMul  MatMul           MatMul  MatMul         two units of two calls
    """
    if len(calls) < _FEW or not _is_ordered(trace, calls):
        return calls
    parent, ends = parents(trace), trace.events["start_ps"] + trace.events["duration_ps"]
    loop = int(parent[calls[0]])
    while loop >= 0 and int(ends[loop]) < int(ends[calls[-1]]):
        loop = int(parent[loop])
    units: Rows = calls.copy()
    while True:
        inner = np.flatnonzero((parent[units] != loop) & (parent[units] >= 0))
        if not len(inner):
            break
        units[inner] = parent[units[inner]]
    n = len(np.unique(units))
    return units if n >= _FEW else calls


def _is_ordered(trace: Trace, calls: Rows) -> bool:
    return bool((np.diff(trace.events["start_ps"][calls]) >= 0).all())


def _n_phases(trace: Trace, calls: Rows) -> int:
    """The number of calls that make a turn: after each of them the loop calls something that it calls after
    no other one.
    """
    n = len(calls)
    if n < 2 * _FEW_TURNS:
        return 1
    parent = parents(trace)
    around = parent[calls]
    if not (around == around[0]).all():
        return 1
    beside = np.flatnonzero((parent == around[0]) & (trace.event_line == trace.event_line[calls[0]]))
    turn = (
        np.searchsorted(trace.events["start_ps"][calls], trace.events["start_ps"][beside], side="right") - 1
    )
    what = trace.events["metadata"][beside].astype(np.int64)
    pairs = np.unique((what * n + turn)[turn >= 0])
    _, first, count = np.unique(pairs // n, return_index=True, return_counts=True)
    found: set[tuple[int, int]] = set()
    for at, some in zip(
        first[count >= _FEW_TURNS].tolist(), count[count >= _FEW_TURNS].tolist(), strict=True
    ):
        turns = pairs[at : at + some] % n
        every = int(turns[1] - turns[0])
        is_whole = turns[0] < every and n - 1 - turns[-1] < every
        if 2 <= every <= _MOST_PHASES and is_whole and (np.diff(turns) == every).all():
            found.add((every, int(turns[0])))
    return next(
        (every for every in range(2, _MOST_PHASES + 1) if all((every, at) in found for at in range(every))), 1
    )


def _done(trace: Trace, rows: Rows) -> npt.NDArray[np.int64]:
    """When the run of each call ended, in ps; 0 where that is not known. Calls of a thread that does not wait
    can all come at once.
    """
    start = trace.events["start_ps"][rows]
    order = np.argsort(start, kind="stable")
    call, until = run_ends(trace)
    at = np.searchsorted(start[order], trace.events["start_ps"][call], side="right") - 1
    result = np.zeros(len(rows), np.int64)
    np.maximum.at(result, order[at[at >= 0]], until[at >= 0])
    return result


def _main(trace: Trace, rows: Rows) -> Rows:
    """Of calls those of one name (see the module's picture)."""
    line = trace.event_line[rows]
    rows = rows[line == np.bincount(line).argmax()] if len(rows) else rows
    names = metadata_names(trace)
    used, at = np.unique(trace.events["metadata"][rows], return_inverse=True)
    # A function of TensorFlow that is traced again has another number.
    labels = np.array([_NUMBERED.sub(r"\1", names[row]) for row in used.tolist()], np.str_)
    found, which, count = np.unique(
        labels[at] if len(used) else labels, return_inverse=True, return_counts=True
    )
    start = trace.events["start_ps"][rows].astype(np.int64)
    begin, end, done = int(start.min(initial=0)), int(start.max(initial=0)), _done(trace, rows)
    pause = np.full(len(found), np.iinfo(np.int64).max)
    for i in np.flatnonzero(count >= _FEW).tolist():
        mine = np.sort(start[which == i])
        last = max(int(mine[-1]), int(done[which == i].max()))
        if last - mine[0] >= _LEAST_PS * (len(mine) - 1):
            pause[i] = int(np.diff(np.concatenate(([begin], mine, [end]))).max())
    if not len(pause) or pause.min() == np.iinfo(np.int64).max:
        return rows[:0]
    # Of about equally even ones the rarest, of these the first in time.
    even = np.flatnonzero(pause <= _ALIKE * pause.min())
    best = min(even.tolist(), key=lambda i: (int(count[i]), int(start[which == i].min())))
    chosen: Rows = rows[which == best]
    return chosen
