"""The stat `flow` of events → arrows: which event led to which, as the trace file itself states.

flow = category (6 bits) | id (56 bits) | direction (2 bits: 1 in, 2 out, 3 in and out)

out ▪──────▶ in and out ▪──────▶ in        events of one category and id, in time order
    └──────────────────────────▶ in        (each `in` comes from the latest `out` before it)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_IN, _OUT = 1, 2
_DIRECTION_BITS = 2
_CATEGORY_SHIFT = 58


@dataclass(frozen=True)
class FlowArrows:
    """Arrows from event to event (rows), and the number of each arrow's category: a context type, as
    `analysis.events.links.CONTEXTS` names them.
    """

    source: Int64s
    target: Int64s
    category: Int64s


def flow_arrows(trace: Trace) -> FlowArrows:
    """Arrows of the stat `flow`. If no `out` of an id begins before an `in` (clocks of devices may lag), the
    id's first `out` is the source.

    A point without a partner gives no arrow, for example an asynchronous operation with an id of its own.
    """
    owner, value = first_ints(trace, "flow")
    event = owner.astype(np.int64)
    direction = value & (_IN | _OUT)
    # Points of one time sort as out, in and out, in.
    rank = np.select([direction == _OUT, direction == _IN | _OUT], [1, 2], 3)
    key = value >> _DIRECTION_BITS
    order = np.lexsort((rank, trace.events["start_ps"][event], key))
    event, direction, key = event[order], direction[order], key[order]
    position = np.arange(len(event))
    is_out = (direction & _OUT) > 0
    latest = _before(np.maximum.accumulate(np.where(is_out, position, -1)))
    first = _first_out(is_out, key)
    has_earlier_out = (latest >= 0) & (key[latest] == key)
    source = np.where(has_earlier_out, latest, first)
    target = np.flatnonzero(((direction & _IN) > 0) & (source >= 0) & (source != position))
    category = (value.view(np.uint64)[order][target] >> np.uint64(_CATEGORY_SHIFT)).astype(np.int64)
    return FlowArrows(event[source[target]], event[target], category)


def _before(values: Int64s) -> Int64s:
    """The predecessor of each value, -1 for the first."""
    return np.concatenate((np.full(min(len(values), 1), -1, np.int64), values[:-1]))


def _first_out(is_out: npt.NDArray[np.bool_], key: Int64s) -> Int64s:
    """For each point the position of the first `out` of its key, -1 if there is none."""
    outs = np.flatnonzero(is_out)
    keys, first = np.unique(key[outs], return_index=True)
    if not len(keys):
        return np.full(len(key), -1, np.int64)
    nearest = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[nearest] == key, outs[first[nearest]], -1)
