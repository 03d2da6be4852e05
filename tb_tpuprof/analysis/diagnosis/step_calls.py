"""Number of calls of each program, eager operation, kernel launch and compilation in each step."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.records import Call, Calls
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import are_inside, parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import is_compilation
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.windows import step_at, windows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
MANY = 8  # from here on, calls per step are many
PROGRAM, EAGER, COMPILE, LAUNCH = "program", "eager", "compile", "launch"
_CALLS = re.compile(
    r"PjitFunction\((?P<program>.*)\)|EagerLocalExecute: "
    r"(?P<eager>.+)|(?P<launch>(?:cuda|hip|cu)(?:Graph)?Launch\w*)"
)
_INFERENCE = re.compile(r"__(?:inference|forward|backward)_(.+?)_\d+")


@once
def step_calls(trace: Trace) -> Calls:
    """The calls in a host's steps, most frequent first."""
    found_steps = steps(trace)
    if not len(found_steps):
        return Calls()
    names = metadata_names(trace)
    is_call = np.zeros(len(names), np.bool_)
    labels: list[tuple[str, str]] = [("", "")] * len(names)
    for row in np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist():
        labels[row] = _label(names[row])
        is_call[row] = bool(labels[row][0])
    rows = events_of(trace, is_call)
    parent_rows = parents(trace)[rows]
    metadata = trace.events["metadata"]
    # PjitFunction is recorded twice, one inside the other; compilers call one another.
    is_repeated = (parent_rows >= 0) & np.array(
        [
            labels[a] == labels[b]
            for a, b in zip(metadata[parent_rows].tolist(), metadata[rows].tolist(), strict=True)
        ],
        np.bool_,
    )
    is_compile = np.array([label[0] == COMPILE for label in labels], np.bool_)
    rows = rows[~is_repeated & ~(is_compile[metadata[rows]] & are_inside(trace, rows, is_compile))]
    step = step_at(windows_of(found_steps.start_ps, found_steps.duration_ps), trace.events["start_ps"][rows])
    rows, step = rows[step >= 0], step[step >= 0]
    counts: dict[tuple[str, str], Int64s] = {}
    for row in np.unique(metadata[rows]).tolist():
        label = (
            (COMPILE, _compiled(trace, rows[metadata[rows] == row], names))
            if labels[row][0] == COMPILE
            else labels[row]
        )
        per_step = np.bincount(step[metadata[rows] == row], minlength=len(found_steps)).astype(np.int64)
        counts[label] = counts.get(label, 0) + per_step
    return Calls(
        tuple(
            sorted(
                (Call(*label, count) for label, count in counts.items()),
                key=lambda call: (-call.mean, call.name),
            )
        )
    )


def _label(name: str) -> tuple[str, str]:
    """(kind, called name) of an event's name; empty if it is no call."""
    match = _CALLS.fullmatch(name)
    if match:
        kind = match.lastgroup or ""
        inner = _INFERENCE.fullmatch(match[kind])
        return (PROGRAM, inner[1]) if inner else (kind, match[kind])
    return (COMPILE, name) if is_compilation(name) and name != "lower_sharding_computation" else ("", "")


def _compiled(trace: Trace, rows: Rows, names: Sequence[str]) -> str:
    """The program or function that the first of some compilations compiles; the compiler's name if none is
    around it.
    """
    parent = parents(trace)
    event = int(rows[0])
    compiler_name: str = names[trace.events["metadata"][event]]
    while event >= 0:
        kind, what = _label(names[trace.events["metadata"][event]])
        if kind == PROGRAM:
            return what
        if compiler_name == "tf.function-graph_building" and parent[event] >= 0:
            above: str = names[trace.events["metadata"][parent[event]]]
            return above
        event = int(parent[event])
    return compiler_name
