"""Device operations with known work: those of compiled programs, or PyTorch's operators by their inputs."""

from __future__ import annotations

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.torch_ops import has_torch_ops, torch_ops
from tb_tpuprof.trace.trace import Trace


@once
def device_ops(trace: Trace) -> HloOps:
    """Operations of one host: what XLA compiled, else PyTorch's operators; empty if the trace has neither."""
    compiled = hlo_ops(trace)
    return compiled if len(compiled) or not has_torch_ops(trace) else torch_ops(trace).ops
