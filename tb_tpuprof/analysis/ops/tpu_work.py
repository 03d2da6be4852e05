"""Work of TensorCore operations as the compiler states it. Each asynchronous operation counts once, at its
end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.hlo.work import COLUMNS, Work, stated_work
from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


@once
def tpu_work(trace: Trace) -> Work:
    """Work of one occurrence of each metadata row.

    The start and the done of an asynchronous operation both state the work of the whole: the done counts it,
    and the start, which only queues it, counts none. Where both state an amount, the done's is used: XLA's
    cost analysis lets a start read its operand and write it twice, since its result contains the operand too;
    a done states only what arrived. The work of a half whose other half never ran is unknown.
    """
    halves = async_ops(trace)
    work = stated_work(trace, np.arange(len(trace.metadata)))
    dones = np.flatnonzero(halves.start_of >= 0)
    starts = halves.start_of[dones]
    for values in (work.flops, work.model_flops, work.n_bytes, work.space_bytes):
        values[..., dones] = np.where(values[..., dones] > 0, values[..., dones], values[..., starts])
        values[..., starts] = 0
    for knows in (work.knows_flops, work.knows_bytes):
        knows[dones] |= knows[starts]
    forget(work, halves.is_orphan)
    return work


def forget(work: Work, mask: npt.NDArray[np.bool_]) -> None:
    """Mark the work of the operations in `mask` as unknown, in place."""
    for key in COLUMNS:
        getattr(work, key)[..., mask] = 0


def working_ps(trace: Trace, rows: Rows, op: Int64s, n_occurrences: Int64s, time_ps: Int64s) -> Int64s:
    """Time in ps in which operations do their work, summed over occurrences; `op` is the operation of each of
    these metadata rows.

    For an asynchronous done this is the time from start to done (the mean of the matched occurrences is used
    for all), or 0 if none is matched; for a start 0; for all others their own time.
    """
    halves, n = async_ops(trace), len(n_occurrences)
    elapsed, n_matched = sum_by(op, halves.elapsed_ps[rows], n), sum_by(op, halves.n_matched[rows], n)
    is_done, is_start = (
        np.bincount(op, other[rows] >= 0, n) > 0 for other in (halves.start_of, halves.done_of)
    )
    scaled = np.divide(
        elapsed * n_occurrences.astype(np.float64), n_matched, out=np.zeros(n), where=n_matched > 0
    )
    return np.where(is_done, scaled.astype(np.int64), np.where(is_start, 0, time_ps))


def use_event_work(
    trace: Trace, work: Work, rows: Rows, op: Int64s, is_custom_call: npt.NDArray[np.bool_]
) -> None:
    """Use the FLOPs and bytes that the events of custom calls state: their sums over all occurrences on all
    cores replace those in `work`, in place. `op` is the operation of each of the metadata rows `rows`.
    """
    custom_calls = np.flatnonzero(is_custom_call)
    if not len(custom_calls):
        return
    n = len(trace.metadata)
    columns = {
        "flops": ((work.flops, work.model_flops), work.knows_flops),
        "bytes_accessed": ((work.n_bytes, work.space_bytes[0]), work.knows_bytes),
    }
    for key, (amounts, knows) in columns.items():
        owner, value = first_ints(trace, key)
        by_metadata = sum_by(trace.events["metadata"][owner].astype(np.int64), value, n)
        total = sum_by(op, by_metadata[rows], len(is_custom_call))
        stating = custom_calls[total[custom_calls] > 0]
        for column in amounts:
            column[stating] = total[stating]
        knows[stating] = True
