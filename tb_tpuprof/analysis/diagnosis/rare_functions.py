"""Functions of the user that few steps call: possible periodic work, even while the device computes."""

from __future__ import annotations

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
    step = step_at(windows_of(steps.start_ps, steps.duration_ps), trace.events["start_ps"][rows])
    rows, step = rows[step >= 0], step[step >= 0]
    # One code per function and step, so that functions times steps never exist as a matrix.
    code, index = np.unique(trace.events["metadata"][rows].astype(np.int64) * n + step, return_inverse=True)
    time_ps = np.bincount(index, trace.events["duration_ps"][rows], len(code)).astype(np.int64)
    function, first, n_steps = np.unique(code // n, return_index=True, return_counts=True)
    is_rare = (n_steps > 1) & (n_steps * 2 <= n)
    found = []
    for metadata, begin, count in zip(
        function[is_rare].tolist(), first[is_rare].tolist(), n_steps[is_rare].tolist(), strict=True
    ):
        frame = frame_of(trace.strings.get(int(trace.metadata["name"][metadata])))
        if frame:
            per_step = np.zeros(n, np.int64)
            per_step[code[begin : begin + count] % n] = time_ps[begin : begin + count]
            culprit = Culprit("function", frame.function, frame.file, frame.line)
            found.append(StepFunction(culprit, np.minimum(per_step, steps.duration_ps)))
            if len(found) == _MOST_FUNCTIONS:
                break
    return tuple(sorted(found, key=lambda one: -int(one.time_ps.sum())))


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
