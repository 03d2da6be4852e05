"""The place of a tf.data stage in the user's code: the Python function that it ran, as the Python tracer
recorded it.

    caller   ├ Map ──────────────────────┤
             ├ InstantiatedCapturedFunction::Run (id 7) ┤
    pool          ├ ExecutorState::Process (id 7) ─────┤
                  ├ $script_ops.py:140 __call__ ────┤
                    ├ $train.py:31 augment ───────┤     the outermost frame outside the framework
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
# TensorFlow's files between the executor and the user's function.
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
    """The Python function that the pipeline's bottleneck ran, as "`augment` (train.py:31)"; empty if the
    trace has no frames of it.
    """
    stage, iterators = pipeline.bottleneck_stage, forest(trace)
    if stage is None or not len(iterators.runs.row):
        return ""
    event = iterators.runs.event
    is_stage_run = (iterators.node[event] == iterators.stages.index(stage.long_name)) & np.isin(
        iterators.call[event], pipeline.calls
    )
    owner, value = first_ints(trace, "id")
    ids = values_at(iterators.runs.row[is_stage_run], owner, value, 0)
    processes = events_named(trace, (EXECUTOR,))
    executions = processes[np.isin(values_at(processes, owner, value, 0), ids[ids != 0])]
    names = {row: parsed for row in range(len(trace.metadata)) if (parsed := _frame(trace, row))}
    frames = np.flatnonzero(np.isin(trace.events["metadata"], list(names)))
    is_inside = _within(trace, frames, executions)
    total: dict[int, int] = {}
    frame, took_ps = (
        trace.events["metadata"][frames[is_inside]],
        trace.events["duration_ps"][frames[is_inside]],
    )
    for row in np.unique(frame).tolist():
        total[row] = int(took_ps[frame == row].sum())
    if not total:
        return ""
    file, line, function = names[max(total, key=lambda row: total[row])]
    return f"`{function}` ({file}:{line})"


def _frame(trace: Trace, row: int) -> tuple[str, str, str] | None:
    """File, line and function of a metadata row that is a frame of the user's code."""
    name_id = int(trace.metadata["name"][row])
    match = _FRAME.fullmatch(trace.strings[name_id]) if name_id >= 0 else None
    return None if not match or match[1] in _FRAMEWORK else (match[1], match[2], match[3])


def _within(trace: Trace, rows: Rows, outer: Rows) -> Bools:
    """Mark the events inside one of the `outer` events of the same line (ascending, not overlapping)."""
    if not len(rows) or not len(outer):
        return np.zeros(len(rows), np.bool_)
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    position = np.searchsorted(outer, rows) - 1
    candidate = outer[np.maximum(position, 0)]
    is_same_line: Bools = (position >= 0) & (trace.event_line[candidate] == trace.event_line[rows])
    return is_same_line & (start[rows] >= start[candidate]) & (end[rows] <= end[candidate])
