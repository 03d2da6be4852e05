"""Operations of a TPU that begin and end a transfer to or from the host's memory → the transfers as spans.

    XLA Ops             ▪copy-start.5   ▪add ▪mul …   ▪copy-done.5
    Host Offload Ops    ├──────── offload-copy.5 ───────────────┤

An operation is a transfer if one of the shapes in its HLO text is in memory space 5, the host's (`S(5)`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, line_events, lines_named
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_HOST_MEMORY = re.compile(rb"S\(5\)")
_TRANSFER = re.compile(r"(copy|dynamic-slice|dynamic-update-slice)-(start|done)")


@dataclass(frozen=True)
class Transfers:
    """Spans from the begin of a start operation to the end of its done operation, in time order. `start` and
    `done` are their events, `name` a code into `names`.
    """

    start_ps: Int64s
    end_ps: Int64s
    start: Int64s
    done: Int64s
    name: Int64s
    names: tuple[str, ...]


def host_transfers(trace: Trace, plane: int) -> Transfers:
    """Transfers of one core. The starts and dones of one name are matched first come, first served. A done
    without a start, or a start without a done (both occur at the capture's ends), gives no transfer.
    """
    code_of, is_start, names = _operations(trace, plane)
    parts = [np.empty((3, 0), np.int64)]
    for line in lines_named(trace, plane, (OP_LINE,)) if names else []:
        span = line_events(trace, line)
        metadata = trace.events["metadata"][span]
        rows = np.flatnonzero(code_of[metadata] >= 0)
        rows = rows[
            np.lexsort((~is_start[metadata[rows]], trace.events["start_ps"][rows + span.start]))
        ]  # a start may take no time at all
        codes = code_of[metadata[rows]]
        parts += [
            matched(rows[codes == code] + span.start, is_start[metadata[rows[codes == code]]], code)
            for code in range(len(names))
        ]
    start, done, name = np.concatenate(parts, axis=1)
    begin, end = (
        trace.events["start_ps"][start],
        trace.events["start_ps"][done] + trace.events["duration_ps"][done],
    )
    order = np.lexsort((-end, begin))
    return Transfers(begin[order], end[order], start[order], done[order], name[order], names)


@once
def names_host_memory(trace: Trace) -> npt.NDArray[np.bool_]:
    """For each string, whether it names the host's memory. Searches all strings at once, since programs may
    have 100,000 operations.
    """
    position = np.array([match.start() for match in _HOST_MEMORY.finditer(trace.strings.blob.data)], np.int64)
    names_it = np.zeros(len(trace.strings), np.bool_)
    names_it[np.searchsorted(trace.strings.offsets, position, side="right") - 1] = True
    return names_it


def _operations(trace: Trace, plane: int) -> tuple[Int64s, npt.NDArray[np.bool_], tuple[str, ...]]:
    """For each row of `metadata` the code of its transfer's name (-1: not a transfer) and whether it is the
    start; and the names.
    """
    code_of = np.full(len(trace.metadata), -1, np.int64)
    is_start = np.zeros(len(trace.metadata), np.bool_)
    names: dict[str, int] = {}
    is_transfer = names_host_memory(trace)[trace.metadata["name"]] & (trace.metadata["plane"] == plane)
    for row in np.flatnonzero(is_transfer).tolist():
        transfer = _TRANSFER.search(trace.strings.get(int(trace.event_names[row])))
        if transfer:
            code_of[row] = names.setdefault(_transfer_name(transfer), len(names))
            is_start[row] = transfer[2] == "start"
    return code_of, is_start, tuple(names)


def _transfer_name(transfer: re.Match[str]) -> str:
    """`copy-start.5` and `copy-done.5` → `offload-copy.5`; a missing number becomes 0, unused by XLA."""
    name = transfer.string
    number = name.rpartition(".")[2] if "." in name else "0"
    return f"offload-{name[: transfer.start(2) - 1]}.{number}"


def matched(events: Int64s, is_start: npt.NDArray[np.bool_], code: int) -> Int64s:
    """int64[3, n] of (start, done, code) for the `events` of one name, which are in time order: first come,
    first served.

    A done with no open start takes no later start.
    """
    surplus = np.cumsum(
        np.where(is_start, -1, 1)
    )  # dones minus starts: at each new maximum above zero a start is missing
    highest = np.maximum.accumulate(np.maximum(surplus, 0))
    before = np.concatenate((np.zeros(1, np.int64), highest))[: len(events)]
    dones = events[~is_start & (highest == before)]
    starts = events[is_start][: len(dones)]
    return np.stack((starts, dones, np.full(len(dones), code)))
