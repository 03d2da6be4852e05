"""Where a stage of a tf.data pipeline stands in the user's code: the Python function that it ran, as the
Python tracer saw it.

caller   ├ Map ──────────────────────┤
         ├ InstantiatedCapturedFunction::Run (id 7) ┤
pool          ├ ExecutorState::Process (id 7) ─────┤
              ├ $script_ops.py:140 __call__ ────┤
                ├ $train.py:31 augment ───────┤         the outermost frame that is not the framework's
"""

from __future__ import annotations

import re

import numpy as np

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.events.stat_rows import events_named, first_ints, values_at
from tb_tpuprof.analysis.tf_data.forest import Bools, Rows, forest
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline
from tb_tpuprof.trace.trace import Trace

_FRAME = re.compile(r"\$(?:.*/)?([\w.<>-]+\.py):(\d+) (.+)")
# Files of TensorFlow that lie between the executor and the user's function.
_FRAMEWORK = frozenset(
    (
        "script_ops.py",
        "api.py",
        "conversion.py",
        "converter.py",
        "func_graph.py",
        "function_wrappers.py",
        "autograph_util.py",
        "dispatch.py",
        "traceback_utils.py",
        "ops.py",
        "context.py",
        "constant_op.py",
        "contextlib.py",
        "threading.py",
        "structured_function.py",
        "from_generator_op.py",
        "execute.py",
        "nest.py",
    )
)


def source_of(trace: Trace, pipeline: Pipeline) -> str:
    """The Python function that the pipeline's bottleneck ran, as "`augment` (train.py:31)"; empty where the
    trace has no frames of it.
    """
    stage, found = pipeline.bottleneck_stage, forest(trace)
    if stage is None or not len(found.runs.row):
        return ""
    event = found.runs.event
    mine = (found.node[event] == found.stages.index(stage.long_name)) & np.isin(
        found.call[event], pipeline.calls
    )
    owner, value = first_ints(trace, "id")
    ids = values_at(found.runs.row[mine], owner, value, 0)
    processes = events_named(trace, (EXECUTOR,))
    around = processes[np.isin(values_at(processes, owner, value, 0), ids[ids != 0])]
    names = {row: parsed for row in range(len(trace.metadata)) if (parsed := _frame(trace, row))}
    frames = np.flatnonzero(np.isin(trace.events["metadata"], list(names)))
    inside = _within(trace, frames, around)
    total: dict[int, int] = {}
    frame, took = trace.events["metadata"][frames[inside]], trace.events["duration_ps"][frames[inside]]
    for row in np.unique(frame).tolist():
        total[row] = int(took[frame == row].sum())
    if not total:
        return ""
    file, line, function = names[max(total, key=lambda row: total[row])]
    return f"`{function}` ({file}:{line})"


def _frame(trace: Trace, row: int) -> tuple[str, str, str] | None:
    """File, line and function of a row of `metadata` that is a frame of the user's."""
    at = int(trace.metadata["name"][row])
    found = _FRAME.fullmatch(trace.strings[at]) if at >= 0 else None
    return None if not found or found[1] in _FRAMEWORK else (found[1], found[2], found[3])


def _within(trace: Trace, rows: Rows, around: Rows) -> Bools:
    """Whether each event lies within one of some events of its line (ascending, apart from one another)."""
    if not len(rows) or not len(around):
        return np.zeros(len(rows), np.bool_)
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    at = np.searchsorted(around, rows) - 1
    before = around[np.maximum(at, 0)]
    found: Bools = (at >= 0) & (trace.event_line[before] == trace.event_line[rows])
    return found & (start[rows] >= start[before]) & (end[rows] <= end[before])
