"""Work of the runtime's threads while a step computes: on a CPU both need the same processors.

own thread      │put│call│
copying thread      ■■■■■■■■■■■■
computing            ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     takes longer where all processors are busy
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.diagnosis.parts import own_lines
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import event_ends
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_COPIES = re.compile(r"[HD]2[HD] Dispatch")
_STAGES = re.compile(r"\w*PyFunc\b.*")


@once
def concurrent_copies(trace: Trace) -> float:
    """Mean number of concurrent copies to the device while XLA:CPU computes, on threads other than the
    steps'.
    """
    runs = cpu_runs(trace)
    return _mean_concurrent(trace, _COPIES, runs.start_ps, runs.end_ps)


@once
def concurrent_python_stages(trace: Trace) -> float:
    """Mean number of concurrent Python functions of tf.data during the steps, on threads other than the
    steps'.

    The trace does not record whether they compute or sleep.
    """
    steps = step_pieces(trace)[0]
    return _mean_concurrent(trace, _STAGES, steps.start_ps, steps.start_ps + steps.duration_ps)


def _mean_concurrent(trace: Trace, names: re.Pattern[str], start: Int64s, end: Int64s) -> float:
    """Mean number of concurrent matching events during some spans, on threads other than the steps'."""
    all_steps, pieces = step_pieces(trace)
    if not len(all_steps) or pieces is None or not len(start):
        return 0.0
    is_match = np.array([bool(names.fullmatch(name)) for name in metadata_names(trace)], np.bool_)
    rows = events_of(trace, is_match)
    rows = rows[~np.isin(trace.event_line[rows], own_lines(trace, pieces))]
    covered = union_cover(start, end)
    running = 0
    for line in np.unique(trace.event_line[rows]).tolist():
        of_line = rows[trace.event_line[rows] == line]
        begin, stop = trace.events["start_ps"][of_line].astype(np.int64), event_ends(trace, of_line)
        previous_end = np.maximum.accumulate(np.append(begin[:1], stop[:-1]))  # nested events count once
        running += int(np.maximum(covered(stop) - covered(np.maximum(begin, previous_end)), 0).sum())
    return running / max(int(covered(end.max(keepdims=True))[0]), 1)
