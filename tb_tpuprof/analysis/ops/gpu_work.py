"""Work of GPU operations: the cost model's FLOPs and bytes of the HLO instructions that kernels name, as on
the HLO operations page.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.trace.trace import Trace


def with_work(trace: Trace, ops: OpMetrics) -> OpMetrics:
    """`ops` with the FLOPs and bytes that `hlo_ops` has for the same (program, operation); NaN where neither
    the trace nor HLO states them.
    """
    if not len(ops) or not any(program > 0 for program in ops.program):
        return ops
    compiled = hlo_ops(trace)
    texts, codes = compiled.name.strings, compiled.name.codes.tolist()
    row_of = {
        (program, texts[code]): row
        for row, (program, code) in enumerate(zip(compiled.program.tolist(), codes, strict=True))
    }
    row = np.array([row_of.get(key, -1) for key in zip(ops.program, ops.name, strict=True)], np.intp)
    work = compiled.work
    knows_flops, knows_bytes = ((row >= 0) & knows[row] for knows in (work.knows_flops, work.knows_bytes))
    flops, model_flops = (
        np.where(knows_flops, values[row], np.nan) for values in (work.flops, work.model_flops)
    )
    return replace(
        ops, flops=flops, model_flops=model_flops, n_bytes=np.where(knows_bytes, work.n_bytes[row], np.nan)
    )
