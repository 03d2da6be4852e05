"""Calls of programs too small to be worth a call: the host's part takes as long as the device's, so their
compute hardly counts.

thread   │g│g│g│g│g│g│g│g│    │step│
device     ■ ■ ■ ■ ■ ■ ■ ■         ■■■■■■■■■■
burst    ├───────────────┤                       the cost of many calls: one program would take almost no time
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.names import CAUSES
from tb_tpuprof.analysis.diagnosis.parts import attribution_of, own_lines, program_of
from tb_tpuprof.analysis.diagnosis.step_calls import MANY
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import are_inside
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, events_of, mix
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.windows import clipped, step_at, windows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_TINY_PS = 100 * 10**6  # a tiny program computes for at most this, or three times as long as its call
_TIMES = 3
_PAUSE = 2  # in call lengths: after a longer pause, a new burst begins


@dataclass(frozen=True)
class TinyCalls:
    """`names`: of the tiny programs and operations. `computed_ps`: compute of each step within bursts of
    their calls, while no larger program computes.
    """

    names: frozenset[str]
    computed_ps: Int64s


@once
def tiny_calls(trace: Trace) -> TinyCalls:
    """The tiny programs of a host's steps, on hosts without accelerators."""
    all_steps, pieces = step_pieces(trace)
    no_calls = TinyCalls(frozenset(), np.zeros(len(all_steps), np.int64))
    if pieces is None or not len(all_steps):
        return no_calls
    rows = _calls(trace, pieces)
    windows = windows_of(all_steps.start_ps, all_steps.duration_ps)
    step = step_at(windows, trace.events["start_ps"][rows])
    rows = rows[step >= 0]
    tiny = _tiny(trace, rows, len(all_steps))
    rows = rows[tiny[trace.events["metadata"][rows]]]
    if not len(rows):
        return no_calls
    begin, end = _bursts(trace, rows)
    larger = _larger(trace, tiny)
    outline = pieces.outline()
    computes = attribution_of(trace, outline).cause == CAUSES.index(Cause.COMPUTE)
    busy = pieces.spread(np.where(computes, 0, -1))
    either = union_cover(np.concatenate((busy.start, larger[0])), np.concatenate((busy.end, larger[1])))
    larger_only = union_cover(*larger)
    order = np.argsort(windows.start, kind="stable")
    _which, window, begin, end = clipped(begin, end, windows.take(order))
    lost = (either(end) - either(begin)) - (larger_only(end) - larger_only(begin))
    time = np.bincount(order[window], weights=lost, minlength=len(all_steps)).astype(np.int64)
    called = (metadata_names(trace)[row] for row in np.flatnonzero(tiny).tolist())
    return TinyCalls(frozenset(program_of(name) or name for name in called), time)


def _calls(trace: Trace, pieces: Pieces) -> Rows:
    """Outermost calls of programs and eager operations on the steps' threads."""
    is_call = np.array(
        [name.startswith(("PjitFunction(", "EagerLocalExecute: ")) for name in metadata_names(trace)],
        np.bool_,
    )
    rows = events_of(trace, is_call)
    rows = rows[np.isin(trace.event_line[rows], own_lines(trace, pieces))]
    return rows[~are_inside(trace, rows, is_call)]


def _tiny(trace: Trace, rows: Rows, n_steps: int) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a call that is frequent in the steps and computes little."""
    result = np.zeros(len(trace.metadata), np.bool_)
    metadata = trace.events["metadata"][rows]
    count = np.bincount(metadata, minlength=len(result))
    total = np.bincount(metadata, weights=trace.events["duration_ps"][rows], minlength=len(result))
    frequent = np.flatnonzero(count >= MANY * n_steps).tolist()
    computed = _computed(trace) if frequent else {}
    for row in frequent:
        call = total[row] / count[row]
        name = metadata_names(trace)[row]
        is_program = bool(program_of(name))
        result[row] = (
            computed.get(program_of(name), 0.0) <= max(_TINY_PS, _TIMES * call)
            if is_program
            else call <= _TINY_PS
        )
    return result


def _computed(trace: Trace) -> dict[str, float]:
    """Mean compute time in ps of one execution of each XLA:CPU program, by function name."""
    number, start, end = _executions(trace)
    times_by_name: dict[str, list[float]] = {}
    for program_id in np.unique(number).tolist():
        program = trace.programs.get(program_id)
        is_execution = number == program_id
        if program:
            times_by_name.setdefault(_function(program.title), []).append(
                float((end - start)[is_execution].mean())
            )
    return {name: max(times) for name, times in times_by_name.items()}


@once
def _executions(trace: Trace) -> tuple[Int64s, Int64s, Int64s]:
    """(program, start, end) of each execution of a program on XLA:CPU."""
    runs, links = cpu_runs(trace), hlo_links(trace)
    linked = np.flatnonzero(runs.op >= 0)
    program = links.program[runs.op[linked]]
    event = runs.event[linked]
    run_id = trace.event_stats.ints("run_id")
    stat_row = np.minimum(np.searchsorted(run_id.owner, event), max(len(run_id.owner) - 1, 0))
    if not len(linked) or not len(run_id.owner):
        none = np.empty(0, np.int64)
        return none, none, none
    keys, which = distinct_codes(
        mix(mix(program, run_id.value[stat_row].astype(np.int64)), runs.device[linked])
    )
    first, last = np.full(len(keys), np.iinfo(np.int64).max), np.zeros(len(keys), np.int64)
    np.minimum.at(first, which, runs.start_ps[linked])
    np.maximum.at(last, which, runs.end_ps[linked])
    number = np.zeros(len(keys), np.int64)
    number[which] = program
    return number, first, last


def _function(title: str) -> str:
    """The `step` in `jit_step(7)`."""
    return title.partition("(")[0].removeprefix("jit_")


def _larger(trace: Trace, tiny: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Starts and ends of executions of all other programs."""
    called = {program_of(metadata_names(trace)[row]) for row in np.flatnonzero(tiny).tolist()}
    number, start, end = _executions(trace)
    tiny_programs = [
        one
        for one in np.unique(number).tolist()
        if (program := trace.programs.get(one)) and _function(program.title) in called
    ]
    is_larger = ~np.isin(number, tiny_programs)
    return start[is_larger], end[is_larger]


def _bursts(trace: Trace, rows: Rows) -> tuple[Int64s, Int64s]:
    """Starts and ends of stretches in which such calls follow one another closely."""
    rows = rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = np.maximum.accumulate(start + trace.events["duration_ps"][rows])
    pause = _PAUSE * float(np.median(trace.events["duration_ps"][rows]))
    opens = np.flatnonzero(np.append(True, start[1:] - end[:-1] > pause))
    return start[opens], end[np.append(opens[1:] - 1, len(rows) - 1)]
