"""What the compiler states of the work of TensorCores' operations, each asynchronous operation counted once:
where it ends.
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
    """Work of one occurrence of each row of metadata.

    Start and done of an asynchronous operation both state what the whole does: it counts for the done, and
    the start, which only queues it, does nothing. Where both state an amount the done's counts: XLA's cost
    analysis has a start read its operand and write it twice over, as its result holds the operand too; a done
    only states what arrived. Of a half whose other half never ran nothing is known.
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
    """Make the work of the marked operations unknown, in place."""
    for key in COLUMNS:
        getattr(work, key)[..., mask] = 0


def working_ps(trace: Trace, rows: Rows, op: Int64s, n_occurrences: Int64s, time_ps: Int64s) -> Int64s:
    """Time in which operations do their work, summed over occurrences; `op` is the operation of each of these
    rows of metadata.

    Of an asynchronous operation's end the time from start to end (the mean of the matched occurrences stands
    for all), 0 where none is matched; of its start 0; of all others their own time.
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


def add_events_own(trace: Trace, work: Work, rows: Rows, is_custom_call: npt.NDArray[np.bool_]) -> None:
    """Custom calls whose events state their own FLOPs and bytes: those sums over all occurrences replace
    `work`'s, in place.
    """
    chosen = np.flatnonzero(is_custom_call)
    if not len(chosen):
        return
    n = len(trace.metadata)
    columns = {
        "flops": ((work.flops, work.model_flops), work.knows_flops),
        "bytes_accessed": ((work.n_bytes, work.space_bytes[0]), work.knows_bytes),
    }
    for key, (amounts, knows) in columns.items():
        owner, value = first_ints(trace, key)
        metadata = trace.events["metadata"][owner].astype(np.int64)
        total = sum_by(metadata, value, n) if len(owner) else np.zeros(n, np.int64)
        mine = chosen[total[rows[chosen]] > 0]
        for column in amounts:
            column[mine] = total[rows[mine]]
        knows[mine] = True
