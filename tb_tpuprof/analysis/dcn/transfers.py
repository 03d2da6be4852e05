"""One host's operations → the occurrences of each transfer between slices, on each core.

    core   ▪send▪ ■ compute ■ ▪send-done▪ ▪recv▪ ■ compute ■ ▪▪recv-done▪▪
           ├──────────────────── observed duration ──────────────────────┤
                  ├─ slack ─┤                    ├─ slack ─┤
           stall: ▪ of this transfer

Slack is the time that the network has: from the start of the send to that of the recv-done, without all
operations of transfers in between, its own and others'. Stall is the time that the core spends in the four
operations. All times are of one core's clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.dcn.ops import Half, Rendezvous, dcn_ops
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.steps.device_spans import device_times
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Occurrences:
    """Completed transfers, sorted by core and start. `core`: of the host's cores; `rendezvous`: of the host's
    list; `source`: the event of the send, `last`: of the recv-done; `stall_ps`: by half, [n, 4].
    """

    core: Int64s
    rendezvous: Int64s
    source: Int64s
    last: Int64s
    start_ps: Int64s
    end_ps: Int64s
    slack_ps: Int64s
    stall_ps: Int64s

    def __len__(self) -> int:
        return len(self.core)


@dataclass(frozen=True)
class DcnHost:
    """`cores`: names, none if the host transfers nothing; `span_ps`: of each core, from its first operation
    to its last. `n_unknown`: operations that transfer between slices without a known rendezvous;
    `n_unfinished`: sends without a recv-done in the trace.
    """

    host: str
    cores: tuple[str, ...]
    span_ps: Int64s
    rendezvous: tuple[Rendezvous, ...]
    occurrences: Occurrences
    n_unknown: int
    n_unfinished: int


@once
def dcn_host(trace: Trace) -> DcnHost:
    """The transfers between slices of one host."""
    ops = dcn_ops(trace)
    names, spans, parts, n_sends = [], [], [], 0
    for core, plane in enumerate(planes(trace).tensor_cores if ops.rendezvous else ()):
        names.append(trace.plane_names[plane].removeprefix("/device:"))
        rows, start, duration = _operations(trace, plane)
        spans.append(int((start + duration).max() - start.min()) if len(rows) else 0)
        metadata = trace.events["metadata"][rows]
        is_transfer = ops.half_of[metadata] >= 0
        metadata, rows, start, duration = (
            values[is_transfer] for values in (metadata, rows, start, duration)
        )
        half = ops.half_of[metadata]
        n_sends += int((half == Half.SEND).sum())
        parts.append(_occurrences(core, rows, (half, ops.rendezvous_of[metadata]), start, duration))
    occurrences = _joined(parts)
    return DcnHost(
        trace.info.host,
        tuple(names),
        np.array(spans, np.int64),
        ops.rendezvous,
        occurrences,
        ops.n_unknown,
        n_sends - len(occurrences),
    )


def _operations(trace: Trace, plane: int) -> tuple[Int64s, Int64s, Int64s]:
    """Rows, starts and durations of a core's operations, by start."""
    lines = [device_times(trace, line) for line in lines_named(trace, plane, (OP_LINE,))]
    rows, start, duration = (
        np.concatenate([np.empty(0, np.int64), *columns]).astype(np.int64)
        for columns in (zip(*lines, strict=True) if lines else ((), (), ()))
    )
    if len(lines) < 2:
        return rows, start, duration
    order = np.argsort(start, kind="stable")
    return rows[order], start[order], duration[order]


def _occurrences(
    core: int, rows: Int64s, kinds: tuple[Int64s, Int64s], start: Int64s, duration: Int64s
) -> Occurrences:
    """The transfers of one core. `kinds`: half and rendezvous of each operation, in order of start.

    A transfer ends at the first recv-done after its send; operations before the send belong to an earlier
    transfer that the trace does not hold whole.
    """
    half, rendezvous = kinds
    spent = np.append(0, np.cumsum(duration))
    order = np.lexsort((np.arange(len(rows)), rendezvous))
    half, group = half[order], rendezvous[order]
    index = np.arange(len(order))
    first_of_group = np.searchsorted(group, group)
    send = np.maximum.accumulate(np.where(half == Half.SEND, index, -1)) if len(order) else index
    ends = np.where(half == Half.RECV_DONE, index, -1)
    end_before = np.append(-1, np.maximum.accumulate(ends)[:-1]) if len(order) else index
    is_whole = (half == Half.RECV_DONE) & (send >= first_of_group) & (end_before < send)
    last, begin = index[is_whole], send[is_whole]
    by_half = np.zeros((len(order) + 1, len(Half)), np.int64)
    by_half[1:][index, half] = duration[order]
    by_half = by_half.cumsum(axis=0)
    first_row, last_row = order[begin], order[last]
    # Operations between are those of any rendezvous, the send among them.
    between = spent[last_row] - spent[first_row]
    slack = np.maximum(start[last_row] - start[first_row] - between, 0)
    by_start = np.argsort(first_row, kind="stable")
    result = Occurrences(
        np.full(len(last), core, np.int64),
        group[last],
        rows[first_row],
        rows[last_row],
        start[first_row],
        start[last_row] + duration[last_row],
        slack,
        by_half[last + 1] - by_half[begin],
    )
    return Occurrences(*(getattr(result, name)[by_start] for name in Occurrences.__dataclass_fields__))


def _joined(parts: list[Occurrences]) -> Occurrences:
    none = np.empty(0, np.int64)
    empty = Occurrences(none, none, none, none, none, none, none, np.empty((0, len(Half)), np.int64))
    return Occurrences(
        *(
            np.concatenate([getattr(part, name) for part in (empty, *parts)])
            for name in Occurrences.__dataclass_fields__
        )
    )
