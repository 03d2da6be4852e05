"""One host's MegaScale events → what it received from other slices.

The runtime records each message when it has arrived, with its size and duration: `MegaScale: Communication
Transport Receive`. The clocks of two hosts make the duration; where they contradict each other it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PREFIX, RECEIVE = "MegaScale:", "MegaScale: Communication Transport Receive"
_PS_PER_US = 1_000_000


@dataclass(frozen=True)
class Messages:
    """Messages between pairs of slices, one row each, busiest first. `timed`: messages with a duration, and
    `latency_ps` their sum; `longest_ps`: the longest. `n_events`: all MegaScale events of the host.
    """

    source: Int64s
    target: Int64s
    count: Int64s
    size_bytes: Int64s
    timed: Int64s
    latency_ps: Int64s
    longest_ps: Int64s
    n_events: int

    def __len__(self) -> int:
        return len(self.source)


def messages(trace: Trace) -> Messages:
    """The messages that a host received, by slice that sent and slice that received."""
    n_events, rows = _receives(trace)
    stats = trace.event_stats
    source, target, size, duration_us = (
        stats.ints_at(key, rows)
        for key in ("dcn_source_slice_id", "dcn_destination_slice_id", "payload_size_bytes", "duration_us")
    )
    is_stated = (source >= 0) & (target >= 0) & (size >= 0)
    source, target, size, duration_us = (values[is_stated] for values in (source, target, size, duration_us))
    pairs, pair = distinct_rows(source, target)
    n = len(pairs)
    latency = np.clip(duration_us, 0, 2**40) * _PS_PER_US
    longest = np.zeros(n, np.int64)
    np.maximum.at(longest, pair, latency)
    total_bytes, total_ps = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(total_bytes, pair, np.clip(size, 0, 2**50))
    np.add.at(total_ps, pair, latency)
    order = np.argsort(-total_bytes, kind="stable")
    return Messages(
        pairs[order, 0].astype(np.int64),
        pairs[order, 1].astype(np.int64),
        np.bincount(pair, minlength=n)[order].astype(np.int64),
        total_bytes[order],
        np.bincount(pair, duration_us > 0, n)[order].astype(np.int64),
        total_ps[order],
        longest[order],
        n_events,
    )


def _receives(trace: Trace) -> tuple[int, Int64s]:
    """How many MegaScale events there are, and the rows of those that record an arrived message."""
    names = {int(i): trace.strings.get(int(i)) for i in np.unique(trace.metadata["name"]).tolist()}
    of_megascale = [i for i, name in names.items() if name.startswith(PREFIX)]
    if not of_megascale:
        return 0, np.empty(0, np.int64)
    name = trace.metadata["name"][trace.events["metadata"]]
    is_receive = np.isin(name, [i for i in of_megascale if names[i] == RECEIVE])
    return int(np.isin(name, of_megascale).sum()), np.flatnonzero(is_receive).astype(np.int64)
