"""Operations of a TPU that begin and end a transfer to or from the host's memory → the transfers as spans.

    XLA Ops             ▪copy-start.5   ▪add ▪mul …   ▪copy-done.5
    Host Offload Ops    ├──────── offload-copy.5 ───────────────┤

A transfer is told by its operation's HLO text: one of its shapes lies in memory space 5, the host's (`S(5)`).
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
    """Spans from a start's begin to its done's end, by time. `start` and `done` are their events, `name` a
    code into `names`.
    """

    start_ps: Int64s
    end_ps: Int64s
    start: Int64s
    done: Int64s
    name: Int64s
    names: tuple[str, ...]


def host_transfers(trace: Trace, plane: int) -> Transfers:
    """Transfers of one core. Starts and dones of one name are matched first come, first served; a done
    without a start, or a start without a done, as the capture's ends leave them, is none.
    """
    code_of, is_start, names = _operations(trace, plane)
    parts = [np.empty((3, 0), np.int64)]
    for line in lines_named(trace, plane, (OP_LINE,)) if names else []:
        span = line_events(trace, line)
        metadata = trace.events["metadata"][span]
        at = np.flatnonzero(code_of[metadata] >= 0)
        at = at[
            np.lexsort((~is_start[metadata[at]], trace.events["start_ps"][at + span.start]))
        ]  # a start may take no time at all
        codes = code_of[metadata[at]]
        parts += [
            matched(at[codes == code] + span.start, is_start[metadata[at[codes == code]]], code)
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
def of_host_memory(trace: Trace) -> npt.NDArray[np.bool_]:
    """Strings that name the host's memory: found in all of them at once, as programs may have 100,000
    operations.
    """
    at = np.array([match.start() for match in _HOST_MEMORY.finditer(trace.strings.blob.data)], np.int64)
    found = np.zeros(len(trace.strings), np.bool_)
    found[np.searchsorted(trace.strings.offsets, at, side="right") - 1] = True
    return found


def _operations(trace: Trace, plane: int) -> tuple[Int64s, npt.NDArray[np.bool_], tuple[str, ...]]:
    """For each row of `metadata` the code of its transfer's name (-1: it is none's) and whether it begins it;
    and the names.
    """
    code_of = np.full(len(trace.metadata), -1, np.int64)
    is_start = np.zeros(len(trace.metadata), np.bool_)
    names: dict[str, int] = {}
    named = of_host_memory(trace)[trace.metadata["name"]] & (trace.metadata["plane"] == plane)
    for row in np.flatnonzero(named).tolist():
        found = _TRANSFER.search(trace.strings.get(int(trace.event_names[row])))
        if found:
            code_of[row] = names.setdefault(_transfer_name(found), len(names))
            is_start[row] = found[2] == "start"
    return code_of, is_start, tuple(names)


def _transfer_name(found: re.Match[str]) -> str:
    """`copy-start.5` and `copy-done.5` are `offload-copy.5`; without a number it is 0, as XLA's never is."""
    name = found.string
    number = name.rpartition(".")[2] if "." in name else "0"
    return f"offload-{name[: found.start(2) - 1]}.{number}"


def matched(events: Int64s, is_start: npt.NDArray[np.bool_], code: int) -> Int64s:
    """int64[3, n]: start, done, code of one name's `events`, which are in time order: first come, first
    served.

    A done that finds no start waiting takes none away from those that follow.
    """
    surplus = np.cumsum(
        np.where(is_start, -1, 1)
    )  # dones less starts: where it reaches a new height above zero, a start was missing
    highest = np.maximum.accumulate(np.maximum(surplus, 0))
    before = np.concatenate((np.zeros(1, np.int64), highest))[: len(events)]
    dones = events[~is_start & (highest == before)]
    starts = events[is_start][: len(dones)]
    return np.stack((starts, dones, np.full(len(dones), code)))
