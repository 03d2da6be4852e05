"""Asynchronous operations of TensorCores: the halves that start and end one, and how long the whole takes.

    XLA Ops    ▪copy-start.5   ▪add ▪mul …   ├── copy-done.5 ──┤
               ├──────────── the copy: elapsed ────────────────┤

The start only queues the work and takes nanoseconds; the work runs concurrently with other operations until
the done returns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.host_offload import matched, names_host_memory
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_HALF = re.compile(r"%?([A-Za-z][\w\-]*)-(start|done)((?:\.\w+)*)")
_OPERAND = re.compile(r"%([A-Za-z][\w\-]*-start(?:\.\w+)*)\)")


@dataclass(frozen=True, eq=False)
class AsyncOps:
    """One row per metadata row. `start_of`: for a done, the row of the start that it ends, else -1;
    `done_of`: the reverse.

    `elapsed_ps` of a done: from the beginning of the start to the end of the done, summed over the
    `n_matched` occurrences with both halves in the capture. `is_offload`: dones of transfers to or from the
    host's memory. `is_orphan`: halves whose other half never ran.
    """

    start_of: Int64s
    done_of: Int64s
    elapsed_ps: Int64s
    n_matched: Int64s
    is_offload: npt.NDArray[np.bool_]
    is_orphan: npt.NDArray[np.bool_]


@once
def async_ops(trace: Trace) -> AsyncOps:
    """The asynchronous operations of one host's TensorCores.

    A done names its start in its HLO text; if it does not, the start with its own name and number is used.
    Occurrences of one pair are matched first come, first served.
    """
    n = len(trace.metadata)
    start_of, is_half = _starts(trace)
    dones = np.flatnonzero(start_of >= 0)
    done_of = np.full(n, -1, np.int64)
    done_of[start_of[dones]] = dones
    code = np.full(n, -1, np.int64)
    code[dones] = code[start_of[dones]] = np.arange(len(dones))
    elapsed_ps, n_matched = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for plane in planes(trace).tensor_cores if len(dones) else ():
        for line in lines_named(trace, plane, (OP_LINE,)):
            row, time_ps = _elapsed(trace, line, code, start_of)
            elapsed_ps += sum_by(row, time_ps, n)
            n_matched += np.bincount(row, minlength=n)
    is_offload = np.zeros(n, np.bool_)
    is_offload[dones] = names_host_memory(trace)[trace.metadata["name"][dones]] if len(dones) else False
    return AsyncOps(
        start_of, done_of, elapsed_ps, n_matched, is_offload, is_half & (start_of < 0) & (done_of < 0)
    )


def _starts(trace: Trace) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """For each metadata row of a done, the row of its start on the same plane and in the same program, else
    -1; and which rows are halves at all.
    """
    n = len(trace.metadata)
    plane, program = (
        trace.metadata["plane"].tolist(),
        trace.metadata_stats.dense_ints("program_id", n).tolist(),
    )
    starts: dict[tuple[int, int, str], int] = {}
    dones: list[tuple[int, str, str]] = []
    for row, name in enumerate(trace.strings.take(trace.event_names.astype(np.int64))):
        own_name = name.partition(" = ")[0]  # without a display name, the name is the whole HLO text
        half = (
            _HALF.fullmatch(own_name)
            if program[row] != -1 and ("-start" in own_name or "-done" in own_name)
            else None
        )
        if half and half[2] == "start":
            starts[plane[row], program[row], own_name.lstrip("%")] = row
        elif half:
            dones.append(
                (row, f"{half[1]}-start{half[3]}", trace.strings.get(int(trace.metadata["name"][row])))
            )
    start_of = np.full(n, -1, np.int64)
    is_half = np.zeros(n, np.bool_)
    is_half[[*starts.values(), *(row for row, _, _ in dones)]] = True
    for row, same_number, text in dones:
        operand = _OPERAND.search(text)
        start_name = operand[1] if operand else same_number
        start_of[row] = starts.get((plane[row], program[row], start_name), -1)
    return start_of, is_half


def _elapsed(trace: Trace, line: int, code_of: Int64s, start_of: Int64s) -> tuple[Int64s, Int64s]:
    """Metadata row of the done and elapsed time in ps of each operation on one line, if both halves were
    traced.
    """
    spans = device_spans(trace, line)
    metadata = trace.events["metadata"][spans.rows].astype(np.int64)
    code, is_start = code_of[metadata], start_of[metadata] < 0
    halves = np.flatnonzero(code >= 0)
    # Starts sort before dones of the same time, since a start may take no time at all.
    order = halves[np.lexsort((~is_start[halves], spans.start_ps[halves], code[halves]))]
    cuts = np.flatnonzero(np.diff(code[order])) + 1
    parts = [matched(group, is_start[group], 0) for group in np.split(order, cuts) if len(group)]
    start, done, _ = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1).astype(np.int64)
    return metadata[done], spans.start_ps[done] + spans.duration_ps[done] - spans.start_ps[start]
