"""The operations of compiled programs, one row each: times, occurrences, work, and the framework operations
that they came from.

Rows are of one host, summed over its devices; `merge_hlo_ops` sums hosts. It covers all devices: TPU (the
line `XLA Ops`), GPU (kernels that name an HLO instruction), and XLA:CPU (the host's threads).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.hlo.work import Work, join_work, summed_work
from tb_tpuprof.analysis.ops.hlo_linked import linked_ops
from tb_tpuprof.analysis.ops.hlo_record import (
    SUMS,
    TEXTS,
    HloOps,
    words_of,
)
from tb_tpuprof.analysis.ops.hlo_tpu import tpu_hlo_ops
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.ops.roofline import possible_work, roofs
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


@once
def hlo_ops(trace: Trace) -> HloOps:
    """Operations of one host. Empty if nothing in the trace names an HLO operation. Their work is unknown
    where more was counted than the device can do (`possible_work`).
    """
    kind = planes(trace).hardware
    ops = tpu_hlo_ops(trace) if kind == "TPU" else linked_ops(trace, kind)
    return replace(ops, work=possible_work(ops.work, ops.work_ps, roofs(trace)))


def merge_hlo_ops(parts: Sequence[HloOps]) -> HloOps:
    """Operations of several hosts, summed by (program, name). Texts are those of the first host that has the
    operation.
    """
    if len(parts) == 1 or not any(len(part) for part in parts):
        return parts[0]
    keys: dict[tuple[int, str], int] = {}
    row_of = np.array(
        [
            keys.setdefault((p, part.name[i]), len(keys))
            for part in parts
            for i, p in enumerate(part.program.tolist())
        ],
        np.int64,
    )
    n = len(keys)
    first = np.full(n, len(row_of), np.int64)
    np.minimum.at(first, row_of, np.arange(len(row_of)))
    texts = {
        key: words_of(
            [words[i] for words in (getattr(part, key) for part in parts) for i in range(len(words))]
        )
        for key in TEXTS
    }
    columns: dict[str, Any] = {key: words.taken(first) for key, words in texts.items()}
    columns |= {key: sum_by(row_of, _joined(parts, key), n) for key in SUMS}
    columns["thread_ps"] = _summed_where_known(row_of, _joined(parts, "thread_ps"), n)
    columns |= {key: _joined(parts, key)[first] for key in ("program", "instruction", "metadata")}
    return replace(
        next((part for part in parts if len(part)), parts[0]),
        **columns,
        energy_j=_summed(row_of, _joined(parts, "energy_j"), n),
        work=_summed_work(parts, row_of, n),
        host=np.concatenate([np.full(len(part), i) for i, part in enumerate(parts)])[first],
        span_ps=sum(part.span_ps for part in parts),
        n_devices=sum(part.n_devices for part in parts),
        programs={number: title for part in reversed(parts) for number, title in part.programs.items()},
        unreadable={number: reason for part in parts for number, reason in part.unreadable.items()},
    )


def _summed_work(parts: Sequence[HloOps], row_of: Int64s, n: int) -> Work:
    """Sums by row; unknown for a row of which any host counted more than is possible."""
    joined = join_work([part.work for part in parts])
    total = summed_work(joined, row_of, n)
    if not joined.excess.size:
        return total
    excess = np.zeros((len(joined.excess), n))
    for largest, values in zip(excess, joined.excess, strict=True):
        np.maximum.at(largest, row_of, values)
    return total.without(excess)


def _joined(parts: Sequence[HloOps], key: str) -> npt.NDArray[Any]:
    return np.concatenate([getattr(part, key) for part in parts])


def _summed(row_of: Int64s, values: Floats, n: int) -> Floats:
    total: Floats = np.bincount(row_of, values, n).astype(np.float64)
    return total


def _summed_where_known(row_of: Int64s, values: Int64s, n: int) -> Int64s:
    """Sums by row, or -1 for a row with any unknown value."""
    total = sum_by(row_of, np.maximum(values, 0), n)
    total[row_of[values < 0]] = -1
    return total
