"""Compiled operations → a tree of the framework's name scopes (`op_name`), with the time of each.

    jit(step)/jvp(loss)/dense/dot_general     program > jit(step) > jvp(loss) > dense > dot.12

Times are the operations' self times, summed over the devices, as the op profile has them. An operation's time
is divided among steps by how long its events last that start in each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.flame.frames import Family
from tb_tpuprof.analysis.flame.nodes import Branch, Node, nodes_of_branches
from tb_tpuprof.analysis.flame.stacks import Windows
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_steps import occurrences
from tb_tpuprof.analysis.ops.tree import scope_parts
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
MAX_OPS, MAX_SCOPES = 20_000, 60
_BACKWARD = re.compile(r"(?:^|/)transpose\(|(?:^|/)gradient_tape/|(?:^|/)gradients/")
_OPTIMIZER = re.compile(r"(?:^|/)(?:\w*optimizer\w*|\w*apply_gradients\w*|adamw?|sgd)(?:/|$)", re.IGNORECASE)


def has_scopes(trace: Trace) -> bool:
    """Whether compiled operations have names of the framework."""
    return any(hlo_ops(trace).provenance.strings)


def scope_nodes(trace: Trace, windows: Sequence[Windows]) -> list[Node]:
    """The tree in each set of windows, as nodes of group 0."""
    ops = hlo_ops(trace)
    if not len(ops):
        return []
    events, op, time_ps = occurrences(trace, ops)
    all_ps, n_all = (np.bincount(op, weights=column, minlength=len(ops)) for column in (time_ps, None))
    start = trace.events["start_ps"][events]
    sums = np.zeros((2, len(windows), len(ops)), np.int64)
    for k, (opens, closes) in enumerate(windows):
        window = np.searchsorted(closes, start, side="right")
        is_in = window < len(opens)
        is_in[is_in] = opens[window[is_in]] <= start[is_in]
        for row, (whole, columns, total) in enumerate(
            ((all_ps, time_ps[is_in], ops.self_ps), (n_all, None, ops.n_occurrences))
        ):
            part = np.bincount(op[is_in], weights=columns, minlength=len(ops))
            sums[row, k] = np.rint(total * (part / np.maximum(whole, 1)))
    flops = ops.work.flops / np.maximum(ops.n_occurrences, 1)
    is_known = ops.work.knows_flops
    largest = np.argsort(-sums[0].max(axis=0), kind="stable")
    branches = []
    for row in largest[:MAX_OPS].tolist():
        if not sums[0, :, row].any():
            break
        provenance = ops.provenance[row]
        path = (
            ops.programs.get(int(ops.program[row]), ""),
            *scope_parts(provenance)[:MAX_SCOPES],
            ops.name[row],
        )
        waits = is_waiting(ops.category[row], ops.name[row])
        branches.append(
            Branch(
                path,
                Family.WAITING if waits else Family.OPERATION,
                sums[0, :, row].tolist(),
                sums[1, :, row].tolist(),
                phase_of(provenance),
                float(flops[row] * sums[1, 0, row]) if is_known[row] else None,
            )
        )
    return nodes_of_branches(branches, len(windows))


def phase_of(provenance: str) -> str:
    """forward, backward or optimizer, by the scopes that JAX and TensorFlow write; empty for none."""
    if _OPTIMIZER.search(provenance):
        return "optimizer"
    if _BACKWARD.search(provenance):
        return "backward"
    return "forward" if "jvp(" in provenance else ""
