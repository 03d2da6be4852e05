"""Functions of the user that few steps call: possible periodic work, even while the device computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import Origin, names
from tb_tpuprof.analysis.diagnosis.parts import own_lines
from tb_tpuprof.analysis.diagnosis.records import StepFunction
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.python_frames import frame_of
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.windows import step_at, windows_of
from tb_tpuprof.native import rows_of
from tb_tpuprof.trace.trace import Trace

_MOST_FUNCTIONS = 100
_MOST_CELLS = 1 << 22  # functions times steps


@once
def rare_functions(trace: Trace) -> tuple[StepFunction, ...]:
    """The user's functions on the steps' own threads that at least two steps call, but at most half of them;
    the longest first. Empty without steps or Python frames.
    """
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    n = len(steps)
    rows = _users_frames(trace)
    rows = rows[np.isin(trace.event_line[rows], own_lines(trace, pieces))]
    metadata, duration_ps = trace.events["metadata"][rows], trace.events["duration_ps"][rows]
    step = step_at(windows_of(steps.start_ps, steps.duration_ps), trace.events["start_ps"][rows])
    functions = _longest(np.bincount(metadata, duration_ps, len(trace.metadata)), _MOST_CELLS // n)
    index = np.full(len(trace.metadata), -1, np.int64)
    index[functions] = np.arange(len(functions))
    cell = index[metadata] * n + step
    is_counted = (index[metadata] >= 0) & (step >= 0)
    cells = np.bincount(cell[is_counted], duration_ps[is_counted], len(functions) * n)
    time_ps = np.minimum(cells.reshape(-1, n).astype(np.int64), steps.duration_ps)
    n_steps = (time_ps > 0).sum(axis=1)
    is_rare = (n_steps > 1) & (n_steps * 2 <= n)
    return tuple(
        StepFunction(Culprit("function", frame.function, frame.file, frame.line), per_step)
        for function, per_step in zip(functions[is_rare].tolist(), time_ps[is_rare], strict=True)
        if (frame := frame_of(trace.strings.get(int(trace.metadata["name"][function]))))
    )[:_MOST_FUNCTIONS]


def _longest(total: npt.NDArray[Any], most: int) -> npt.NDArray[np.intp]:
    """Metadata rows with time, by time; at most so many."""
    order = np.argsort(-total, kind="stable")[:most]
    return order[total[order] > 0]


def _users_frames(trace: Trace) -> npt.NDArray[np.int64]:
    """Rows of the user's frames. In files named like a library's, only what a user's frame calls counts."""
    origin = names(trace).origin
    metadata = trace.events["metadata"]
    is_maybe = np.isin(origin, (Origin.USER, Origin.COMMON))
    rows: npt.NDArray[np.int64] = rows_of(metadata, is_maybe.view(np.uint8))
    above = parents(trace)[rows]
    is_called_by_user = (above >= 0) & (origin[metadata[above]] == Origin.USER)
    rows = rows[(origin[metadata[rows]] == Origin.USER) | is_called_by_user]
    return rows
