"""Steps of a loop without annotations: from one call of its main program to the next.

    thread   │update│ … Python … │mean││update│ … Python … │mean││update│
    step     ├─────────────────────────┤├────────────────────────┤

If a loop calls it several times in turn, each time followed by different work, a step is a whole turn:

    thread   │update│ draw │update│ score │update│ save │update│ draw │ …
    step     ├───────────────────────────────────────┤├─────────────── …

Candidates are programs of JAX, or operations that TensorFlow runs eagerly. The main program is the one whose
calls are spread most evenly over the loop and are (or whose runs are) at least a millisecond apart on
average: neither one of many small programs of a step, nor one that only every n-th step calls.
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
from tb_tpuprof.analysis.events.stat_rows import events_of
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
    """The calls of the main program on the thread with most calls, by start; empty if no program is called
    three times.
    """
    names = metadata_names(trace)
    on_host = np.isin(trace.metadata["plane"], planes(trace).hosts)
    for prefix in _CALLS:
        is_call = np.array([name.startswith(prefix) for name in names], np.bool_) & on_host
        if is_call.any():
            rows = events_of(trace, is_call)
            rows = _calls_of_main_program(trace, rows[~are_inside(trace, rows, is_call)])
            units = _units(trace, rows)
            _, first = np.unique(units, return_index=True)
            return rows[np.sort(first)][:: _n_phases(trace, units[np.sort(first)])]
    return np.empty(0, np.intp)


@once
def main_function_calls(trace: Trace) -> Rows:
    """As `main_calls`, but only for TensorFlow functions, not for its operations."""
    is_call = np.array([_FUNCTION.match(name) is not None for name in metadata_names(trace)], np.bool_)
    rows = events_of(trace, is_call)
    return _calls_of_main_program(trace, rows[~are_inside(trace, rows, is_call)])


@once
def n_phases(trace: Trace) -> int:
    """Number of calls of the main program per step, 1 if unknown."""
    rows = main_calls(trace)
    if len(rows) < _FEW_TURNS:
        return 1
    metadata, start = trace.events["metadata"], trace.events["start_ps"]
    same_name = np.flatnonzero(
        (metadata == metadata[rows[0]]) & (trace.event_line == trace.event_line[rows[0]])
    )
    parent = parents(trace)[same_name]
    same_name = same_name[
        (parent < 0) | (metadata[parent] != metadata[rows[0]])
    ]  # JAX writes each call twice, one event inside the other
    return max(int((start[same_name] < start[rows[1]]).sum() - (start[same_name] < start[rows[0]]).sum()), 1)


def _units(trace: Trace, calls: Rows) -> Rows:
    """The part of the loop that each call (ascending by start) belongs to: its ancestor directly inside the
    event that contains all calls.

    fit     ├ train_step ──────────┤├ train_step ──────────┤     the loop's frame contains all calls
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
    """Number of calls per turn: after each of them the loop calls something that it calls after no other."""
    n = len(calls)
    if n < 2 * _FEW_TURNS:
        return 1
    parent = parents(trace)
    parent_of_call = parent[calls]
    if not (parent_of_call == parent_of_call[0]).all():
        return 1
    siblings = np.flatnonzero(
        (parent == parent_of_call[0]) & (trace.event_line == trace.event_line[calls[0]])
    )
    turn_of_sibling = (
        np.searchsorted(trace.events["start_ps"][calls], trace.events["start_ps"][siblings], side="right") - 1
    )
    name = trace.events["metadata"][siblings].astype(np.int64)
    pairs = np.unique((name * n + turn_of_sibling)[turn_of_sibling >= 0])
    _, first, count = np.unique(pairs // n, return_index=True, return_counts=True)
    patterns: set[tuple[int, int]] = set()
    for begin, n_turns in zip(
        first[count >= _FEW_TURNS].tolist(), count[count >= _FEW_TURNS].tolist(), strict=True
    ):
        turns = pairs[begin : begin + n_turns] % n
        period = int(turns[1] - turns[0])
        is_whole = turns[0] < period and n - 1 - turns[-1] < period
        if 2 <= period <= _MOST_PHASES and is_whole and (np.diff(turns) == period).all():
            patterns.add((period, int(turns[0])))
    return next(
        (
            period
            for period in range(2, _MOST_PHASES + 1)
            if all((period, phase) in patterns for phase in range(period))
        ),
        1,
    )


def _run_ends_of(trace: Trace, rows: Rows) -> npt.NDArray[np.int64]:
    """End of the run of each call in ps, 0 if unknown. Calls of a thread that does not wait can all come at
    once.
    """
    start = trace.events["start_ps"][rows]
    order = np.argsort(start, kind="stable")
    call, run_end = run_ends(trace)
    index = np.searchsorted(start[order], trace.events["start_ps"][call], side="right") - 1
    result = np.zeros(len(rows), np.int64)
    np.maximum.at(result, order[index[index >= 0]], run_end[index >= 0])
    return result


def _calls_of_main_program(trace: Trace, rows: Rows) -> Rows:
    """The calls of the main program (see the module's docstring)."""
    line = trace.event_line[rows]
    rows = rows[line == np.bincount(line).argmax()] if len(rows) else rows
    names = metadata_names(trace)
    used_names, label = np.unique(trace.events["metadata"][rows], return_inverse=True)
    # A TensorFlow function that is retraced gets another number.
    labels = np.array([_NUMBERED.sub(r"\1", names[row]) for row in used_names.tolist()], np.str_)
    programs, program_of, count = np.unique(
        labels[label] if len(used_names) else labels, return_inverse=True, return_counts=True
    )
    start = trace.events["start_ps"][rows].astype(np.int64)
    begin, end, run_end = int(start.min(initial=0)), int(start.max(initial=0)), _run_ends_of(trace, rows)
    pause = np.full(len(programs), np.iinfo(np.int64).max)
    for i in np.flatnonzero(count >= _FEW).tolist():
        starts = np.sort(start[program_of == i])
        last = max(int(starts[-1]), int(run_end[program_of == i].max()))
        if last - starts[0] >= _LEAST_PS * (len(starts) - 1):
            pause[i] = int(np.diff(np.concatenate(([begin], starts, [end]))).max())
    if not len(pause) or pause.min() == np.iinfo(np.int64).max:
        return rows[:0]
    # Among about equally even ones the rarest, among these the first in time.
    most_even = np.flatnonzero(pause <= _ALIKE * pause.min())
    best = min(most_even.tolist(), key=lambda i: (int(count[i]), int(start[program_of == i].min())))
    calls: Rows = rows[program_of == best]
    return calls
