"""What runs on the runtime's threads while a step computes: on a CPU both need the same processors.

own thread      │put│call│
copying thread      ■■■■■■■■■■■■
computing            ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     longer than alone, where every processor is in use
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
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_COPIES = re.compile(r"[HD]2[HD] Dispatch")
_STAGES = re.compile(r"\w*PyFunc\b.*")


@once
def copies_beside(trace: Trace) -> float:
    """How many copies to the device run at once while XLA:CPU computes, on threads other than the steps': the
    mean over that time.
    """
    runs = cpu_runs(trace)
    return _beside(trace, _COPIES, runs.start_ps, runs.end_ps)


@once
def python_stages_beside(trace: Trace) -> float:
    """How many Python functions of tf.data run at once on threads other than the steps': the mean over the
    steps.

    Whether they compute or sleep is not recorded.
    """
    steps = step_pieces(trace)[0]
    return _beside(trace, _STAGES, steps.start_ps, steps.start_ps + steps.duration_ps)


def _beside(trace: Trace, names: re.Pattern[str], start: Int64s, end: Int64s) -> float:
    """How many such events run at once on other threads than the steps', the mean over some time."""
    found, pieces = step_pieces(trace)
    if not len(found) or pieces is None or not len(start):
        return 0.0
    is_one = np.array([bool(names.fullmatch(name)) for name in metadata_names(trace)], np.bool_)
    rows = np.flatnonzero(is_one[trace.events["metadata"]])
    rows = rows[~np.isin(trace.event_line[rows], own_lines(trace, pieces))]
    covered = union_cover(start, end)
    running = 0
    for line in np.unique(trace.event_line[rows]).tolist():
        mine = rows[trace.event_line[rows] == line]
        begin, stop = trace.events["start_ps"][mine].astype(np.int64), event_ends(trace, mine)
        last = np.maximum.accumulate(np.append(begin[:1], stop[:-1]))  # one within another counts once
        running += int(np.maximum(covered(stop) - covered(np.maximum(begin, last)), 0).sum())
    return running / max(int(covered(end.max(keepdims=True))[0]), 1)
