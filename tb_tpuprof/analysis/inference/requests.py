"""Finds the requests of a trace, or the forward passes where an engine marks those.

The first of these that a host has:
    passes of vLLM or SGLang
    requests to a model server; sessions, if nothing in the trace trains
    annotations named after inference: predict, serve, generate, prefill …
    runs of functions that predict or serve
    batches of a model server, if the requests themselves were not traced

Of those inside one another only the outermost counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import are_inside
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_of, metadata_named
from tb_tpuprof.analysis.inference.names import (
    BATCHES,
    SERVING_ROOTS,
    SESSION_ROOTS,
    annotation_of,
    is_training_step,
    may_be_data,
    pass_of,
    predicting_function,
    trains,
)
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Unit = Literal["request", "pass", "batch"]


@dataclass(frozen=True)
class Requests:
    """`row`: the events that mark them, ascending; `batch_row`: those of a model server's batches.

    `source`: who marks them, for people. `unit`: what one of them is.
    """

    row: Rows
    batch_row: Rows
    source: str = ""
    unit: Unit = "request"

    def __len__(self) -> int:
        return len(self.row)


@once
def requests(trace: Trace) -> Requests:
    """The requests of one host (see the module's docstring); none if nothing marks any."""
    batch_row = _events(trace, _host_metadata(trace, BATCHES))
    passes = _matching(trace, lambda name: pass_of(name) is not None)
    if passes.any():
        return Requests(outermost(trace, passes), batch_row[:0], "an LLM engine", "pass")
    served = _served(trace, batch_row)
    if len(served):
        return Requests(served, batch_row, "a model server")
    # A training loop may annotate how it decodes or scores its data.
    is_training = bool(_matching(trace, is_training_step).any())
    for matches, source in (
        (
            lambda name: annotation_of(name) is not None and not (is_training and may_be_data(name)),
            "annotations",
        ),
        (lambda name: bool(predicting_function(name)), "TensorFlow functions"),
    ):
        chosen = _matching(trace, matches)
        if chosen.any():
            return Requests(outermost(trace, chosen), batch_row[:0], source)
    if len(batch_row):
        return Requests(batch_row, batch_row[:0], "a model server", "batch")
    return Requests(np.empty(0, np.intp), batch_row)


def has_requests(trace: Trace) -> bool:
    """Whether anything marks requests or passes."""
    return len(requests(trace)) > 0


def _served(trace: Trace, batch_row: Rows) -> Rows:
    """Requests to a model server. Sessions count if a server's events are in the trace or nothing trains;
    those inside a batch are the batch's work.
    """
    roots = _host_metadata(trace, SERVING_ROOTS)
    is_server = bool(len(_events(trace, roots))) or len(batch_row) > 0
    sessions = _host_metadata(trace, SESSION_ROOTS)
    if sessions.any() and (is_server or not any(trains(name) for name in metadata_names(trace))):
        roots = roots | sessions
    rows = outermost(trace, roots)
    if not len(rows) or not len(batch_row):
        return rows
    rows = rows[~are_inside(trace, rows, metadata_named(trace, BATCHES))]
    group = groups(trace).group
    in_batch = np.isin(group[rows], group[batch_row][group[batch_row] >= 0])
    names = trace.events["metadata"][rows]
    return rows[~in_batch | _host_metadata(trace, SERVING_ROOTS)[names]]


def _host_metadata(trace: Trace, names: tuple[str, ...]) -> Mask:
    """Metadata rows of the host's threads with one of the names."""
    result: Mask = metadata_named(trace, names) & np.isin(trace.metadata["plane"], planes(trace).hosts)
    return result


def _matching(trace: Trace, matches: Callable[[str], bool]) -> Mask:
    """Metadata rows of the host's threads whose name matches."""
    result = np.zeros(len(trace.metadata), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    names = metadata_names(trace)
    result[rows] = [matches(names[row]) for row in rows.tolist()]
    return result


def _events(trace: Trace, chosen: Mask) -> Rows:
    """Events of these names with a duration, on lines that no back end derived; ascending."""
    rows = events_of(trace, chosen)
    if not len(rows):
        return rows
    rows = rows[trace.events["duration_ps"][rows] > 0]
    return rows[~planes(trace).is_derived_line[trace.lines_at(rows)]]


def outermost(trace: Trace, chosen: Mask) -> Rows:
    """Events of these names (`chosen`: rows of metadata) that are not inside another of them on their
    thread.
    """
    rows = _events(trace, chosen)
    return rows[~are_inside(trace, rows, chosen)] if len(rows) else rows
