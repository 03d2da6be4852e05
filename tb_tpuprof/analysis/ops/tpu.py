"""Operations on TPU TensorCores: the events of the line `XLA Ops`, with the work stated by their metadata."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import OP_LINE, STEP_LINES, lines_named, planes
from tb_tpuprof.analysis.ops.metrics import OpMetrics, add_up, no_ops, sum_by
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


def tpu_ops(trace: Trace) -> OpMetrics:
    """Occurrences, times in ps and work of the operations of all TensorCores.

    An operation is identified by (program id, symbol id) of its metadata; metadata without either is left
    out. Work is `tpu_work` per occurrence, as the compiler states it, times the occurrences. The bytes of an
    asynchronous done are unknown (NaN) here, since they are not moved in its own time. The span of a core is
    the time from its first step or operation to the last one's end.
    """
    return add_up([_ops_of(trace, plane) for plane in planes(trace).tensor_cores])


def _ops_of(trace: Trace, plane: int) -> OpMetrics:
    from tb_tpuprof.analysis.ops.async_ops import async_ops
    from tb_tpuprof.analysis.ops.tpu_work import tpu_work

    lines = lines_named(trace, plane, (OP_LINE,))
    spans = [device_spans(trace, line) for line in (*lines, *lines_named(trace, plane, STEP_LINES))]
    extent = [(int(s.start_ps[0]), int((s.start_ps + s.duration_ps).max())) for s in spans if len(s.rows)]
    if not extent:
        return no_ops()
    span_ps = max(last for _, last in extent) - min(first for first, _ in extent)
    ops = spans[: len(lines)]
    metadata = trace.events["metadata"][np.concatenate([s.rows for s in ops])].astype(np.int64)
    time_ps, self_ps = np.concatenate([s.duration_ps for s in ops]), np.concatenate([s.self_ps for s in ops])
    n = len(trace.metadata)
    program, symbol = (
        trace.metadata_stats.dense_ints(key, n, missing)
        for key, missing in (("program_id", -1), ("symbol_id", 0))
    )
    count = np.bincount(metadata, minlength=n)
    used = np.flatnonzero((count > 0) & (program != -1) & (symbol != 0))
    texts = {
        key: trace.metadata_stats.dense_texts(key, n)[used].tolist() for key in ("hlo_category", "tf_op")
    }
    names = trace.event_names[used].tolist()
    work = tpu_work(trace).taken(used).times(count[used])
    # A done only waits for a transfer that runs in parallel.
    moves_itself = work.knows_bytes & (async_ops(trace).start_of[used] < 0)
    flops, model_flops = (
        np.where(work.knows_flops, values, np.nan) for values in (work.flops, work.model_flops)
    )
    return OpMetrics(
        tuple(trace.strings.get(i) for i in names),
        tuple(trace.strings.get(i) for i in texts["hlo_category"]),
        count[used].astype(np.int64),
        sum_by(metadata, time_ps, n)[used],
        sum_by(metadata, self_ps, n)[used],
        np.zeros(len(used), np.bool_),
        span_ps,
        tuple(program[used].tolist()),
        tuple(trace.strings.get(i) for i in texts["tf_op"]),
        flops,
        model_flops,
        np.where(moves_itself, work.n_bytes, np.nan),
    )
