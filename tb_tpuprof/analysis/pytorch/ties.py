"""Operators of PyTorch's backward pass and the forward operators whose gradients they compute: the arrows
that Kineto calls `fwdbwd`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_FLOW = "fwdbwd"


def backward_ties(trace: Trace) -> tuple[Bools, Int64s]:
    """Whether each event is the backward operation of another, and of which."""
    tied, source = np.zeros(trace.n_events, np.bool_), np.full(trace.n_events, -1, np.int64)
    kinds = np.unique(trace.flows["kind"])
    named = [kind for kind in kinds.tolist() if kind >= 0 and trace.strings.get(kind) == _FLOW]
    names = [name for name in np.unique(trace.flows["name"]).tolist() if trace.strings.get(name) == _FLOW]
    rows = np.flatnonzero(np.isin(trace.flows["kind"], named) | np.isin(trace.flows["name"], names))
    target = trace.flows["to_event"][rows]
    tied[target] = True
    source[target] = trace.flows["from_event"][rows]
    return tied, source
