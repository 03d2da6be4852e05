"""Marks of phases: the events that work on prompts (prefill) or on next tokens (decode).

    generate      ├──────────────────────────────────────────────┤     a request
    its phases      ├─ prefill ────────┤├ decode ┤├ decode ┤            three marks, inside it
    an engine     ├ step[EXTEND bs=2] ─┤├ step[DECODE bs=2] ┤           two marks, which are passes

Marks are the passes of an engine, else the annotations called `prefill` or `decode`, wherever they are.
Inside of requests of another name they count only if one is called `prefill`: such a request may also decode
an image. Of those inside one another only the outermost counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.inference.executions import (
    LONGEST_PS,
    Executions,
    enclosing,
    executions,
    owners_among,
    usable,
)
from tb_tpuprof.analysis.inference.names import UNKNOWN, Phase, annotation_of, pass_of
from tb_tpuprof.analysis.inference.requests import outermost, requests
from tb_tpuprof.analysis.inference.work import Part, work
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class PhaseMarks:
    """One row per mark, by start; times in ps. `row`: its event. `end_ps`: when it ends, or its last work on
    a device if that is later. `phase`: of Phase. `n_prefill`, `n_decode`: sequences, -1 unknown. `request`:
    the execution that it is or is in, -1 none.

    `of_work`: the mark that each row of `work` belongs to, -1 for none.
    """

    row: Rows
    start_ps: Int64s
    end_ps: Int64s
    phase: npt.NDArray[np.uint8]
    n_prefill: Int64s
    n_decode: Int64s
    request: Int64s
    of_work: Int64s

    def __len__(self) -> int:
        return len(self.row)


@once
def phase_marks(trace: Trace) -> PhaseMarks:
    """The marks of one host; none if the trace does not distinguish phases."""
    marked, marks, done = requests(trace), executions(trace), work(trace)
    own = marks.row[: marks.n_requests]
    if marked.unit == "pass":
        row, owner, is_certain = own, done.owner, done.is_certain
        inner = marks
    else:
        row = _annotated(trace, own)
        inner = _as_executions(trace, row)
        owner, is_certain = _owners_of_work(trace, inner)
    last = inner.end.copy()
    counted = np.flatnonzero(is_certain & (done.part != Part.TO_DEVICE))
    np.maximum.at(last, owner[counted], done.end[counted])
    end = np.minimum(last, inner.start + LONGEST_PS)
    phase, n_prefill, n_decode = _named(trace, row)
    return PhaseMarks(row, inner.start, end, phase, n_prefill, n_decode, enclosing(trace, own, row), owner)


def _named(trace: Trace, rows: Rows) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """The phase that each event's name states, and its sequences in prefill and in decode."""
    names = metadata_names(trace)
    metadata, code = distinct_codes(trace.events["metadata"][rows])
    stated = [_phase_and_counts(names[row]) for row in metadata.tolist()]
    table = np.array(stated, np.int64).reshape(-1, 3)[code]
    return table[:, 0].astype(np.uint8), table[:, 1].copy(), table[:, 2].copy()


def _phase_and_counts(name: str) -> tuple[int, int, int]:
    if one := pass_of(name):
        return int(one.phase), one.n_prefill, one.n_decode
    annotation = annotation_of(name)
    return int(annotation.phase if annotation else Phase.NONE), UNKNOWN, UNKNOWN


def _annotated(trace: Trace, own: Rows) -> Rows:
    """Annotations of phases, by start: those among the requests `own`, and if one of all is called `prefill`,
    those inside and outside of requests, too.
    """
    names = metadata_names(trace)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist()
    phase = np.zeros(len(names), np.uint8)
    for row in rows if len(own) else ():
        annotation = annotation_of(names[row])
        if annotation:
            phase[row] = annotation.phase
    found = outermost(trace, phase != Phase.NONE)
    if not (phase[trace.events["metadata"][found]] == Phase.PREFILL).any():
        found = found[np.isin(found, own)]
    found = usable(trace, found)
    result: Rows = found[np.argsort(trace.events["start_ps"][found], kind="stable")]
    return result


def _as_executions(trace: Trace, row: Rows) -> Executions:
    start = trace.events["start_ps"][row].astype(np.int64)
    end = start + trace.events["duration_ps"][row]
    return Executions(row, start, end, len(row), np.full(len(row), -1, np.int64), start)


def _owners_of_work(trace: Trace, marks: Executions) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """The mark that each row of `work` belongs to, -1 for none; and whether its thread, its group or its
    launch says so.
    """
    done = work(trace)
    among = owners_among(trace, marks)
    owner = among.of(done.event)
    return among.at(owner, done.start), owner >= 0
