"""The stat `flow` of events → arrows: what the file itself says of who led to what.

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
    """Arrows from event to event, and the number of each one's category: a context type, as
    `analysis.links.CONTEXTS` names them.
    """

    source: Int64s
    target: Int64s
    category: Int64s


def flow_arrows(trace: Trace) -> FlowArrows:
    """Arrows of the stat `flow`. Where no `out` of an id begins before an `in`, as clocks of devices may lag,
    its first one counts.

    A point without a partner (such as an asynchronous operation that has an id for itself) gives none.
    """
    owner, value = first_ints(trace, "flow")
    event = owner.astype(np.int64)
    direction = value & (_IN | _OUT)
    # In and out comes between the others of its time: 1 is out, 2 both, 3 in.
    rank = np.select([direction == _OUT, direction == _IN | _OUT], [1, 2], 3)
    key = value >> _DIRECTION_BITS
    order = np.lexsort((rank, trace.events["start_ps"][event], key))
    event, direction, key = event[order], direction[order], key[order]
    place = np.arange(len(event))
    is_out = (direction & _OUT) > 0
    latest = _before(np.maximum.accumulate(np.where(is_out, place, -1)))
    first = _first_out(is_out, key)
    belongs = (latest >= 0) & (key[latest] == key)
    source = np.where(belongs, latest, first)
    found = np.flatnonzero(((direction & _IN) > 0) & (source >= 0) & (source != place))
    category = (value.view(np.uint64)[order][found] >> np.uint64(_CATEGORY_SHIFT)).astype(np.int64)
    return FlowArrows(event[source[found]], event[found], category)


def _before(values: Int64s) -> Int64s:
    """Each value's predecessor, -1 for the first."""
    return np.concatenate((np.full(min(len(values), 1), -1, np.int64), values[:-1]))


def _first_out(is_out: npt.NDArray[np.bool_], key: Int64s) -> Int64s:
    """For each point the place of the first `out` of its key, -1 where there is none."""
    outs = np.flatnonzero(is_out)
    keys, at = np.unique(key[outs], return_index=True)
    if not len(keys):
        return np.full(len(key), -1, np.int64)
    near = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[near] == key, outs[at[near]], -1)
