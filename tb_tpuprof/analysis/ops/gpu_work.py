"""Work of device operations as on the HLO operations page: of GPUs the cost model's FLOPs and bytes of the
HLO instructions that kernels name, of TPUs the compiler's where they are possible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.trace.trace import Trace


def with_work(trace: Trace, ops: OpMetrics) -> OpMetrics:
    """`ops` with the FLOPs and bytes that `hlo_ops` has for the same (program, operation); NaN where neither
    the trace nor HLO states them.
    """
    if not len(ops) or not any(program > 0 for program in ops.program):
        return ops
    compiled = hlo_ops(trace)
    row = _rows(compiled, ops)
    work = compiled.work
    knows_flops, knows_bytes = ((row >= 0) & knows[row] for knows in (work.knows_flops, work.knows_bytes))
    flops, model_flops, roof_flops = (
        np.where(knows_flops, values[row], np.nan)
        for values in (work.flops, work.model_flops, work.roof_flops)
    )
    return replace(
        ops,
        flops=flops,
        model_flops=model_flops,
        roof_flops=roof_flops,
        n_bytes=np.where(knows_bytes, work.n_bytes[row], np.nan),
        miscounted_ps=np.where((row >= 0) & work.is_miscounted[row], ops.self_ps, 0.0),
    )


def without_impossible_work(trace: Trace, ops: OpMetrics) -> OpMetrics:
    """`ops` of a TPU, which have the compiler's work; unknown where `hlo_ops` found it impossible."""
    excess = hlo_ops(trace).work.excess
    if not excess.size:
        return ops
    row = _rows(hlo_ops(trace), ops)
    flops_above, bytes_above = (
        (row >= 0) & (part[:, row] > 0).any(axis=0) for part in (excess[:1], excess[1:])
    )
    return replace(
        ops,
        flops=np.where(flops_above, np.nan, ops.flops),
        model_flops=np.where(flops_above, np.nan, ops.model_flops),
        n_bytes=np.where(bytes_above, np.nan, ops.n_bytes),
        miscounted_ps=np.where(flops_above | bytes_above, ops.self_ps, 0.0),
    )


def _rows(compiled: HloOps, ops: OpMetrics) -> npt.NDArray[np.intp]:
    """The row of each operation in `compiled`, by program and name; -1 where it is not there."""
    texts, codes = compiled.name.strings, compiled.name.codes.tolist()
    row_of = {
        (program, texts[code]): row
        for row, (program, code) in enumerate(zip(compiled.program.tolist(), codes, strict=True))
    }
    return np.array([row_of.get(key, -1) for key in zip(ops.program, ops.name, strict=True)], np.intp)
