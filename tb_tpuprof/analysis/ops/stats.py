"""All operations of a trace: on the host, and on its devices by framework name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.ops.details import Details, call_stacks, input_shapes, with_hlo_shapes
from tb_tpuprof.analysis.ops.gpu import gpu_ops, gpu_ops_by
from tb_tpuprof.analysis.ops.gpu_work import with_work, without_impossible_work
from tb_tpuprof.analysis.ops.host import host_ops, host_ops_by
from tb_tpuprof.analysis.ops.metrics import OpMetrics, add_up, by_framework_op, no_ops
from tb_tpuprof.analysis.ops.tpu import tpu_ops
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class OpStats:
    """Operations on the host; on devices as the compiler named them (`compiled`); and the latter by framework
    operation (`device`).
    """

    host: OpMetrics
    compiled: OpMetrics
    device: OpMetrics


@once
def op_stats(trace: Trace) -> OpStats:
    """Operations of one host and of its devices."""
    hardware = planes(trace).hardware
    compiled = (
        without_impossible_work(trace, tpu_ops(trace))
        if hardware == "TPU"
        else with_work(trace, gpu_ops(trace))
        if hardware == "GPU"
        else no_ops()
    )
    return OpStats(host_ops(trace), compiled, by_framework_op(compiled))


@once
def op_stats_by_shape(trace: Trace) -> OpStats:
    """Operations, those with inputs of different sizes apart."""
    details, stats = input_shapes(trace), op_stats(trace)
    if details.texts:
        return _by(trace, details)
    compiled = with_hlo_shapes(trace, stats.compiled)
    return OpStats(stats.host, compiled, by_framework_op(compiled))


@once
def op_stats_by_stack(trace: Trace) -> OpStats:
    """Operations, those called by different Python functions apart."""
    details = call_stacks(trace)
    return _by(trace, details) if details.texts else op_stats(trace)


def _by(trace: Trace, details: Details) -> OpStats:
    compiled = gpu_ops_by(trace, details) if planes(trace).hardware == "GPU" else no_ops()
    return OpStats(host_ops_by(trace, details), compiled, by_framework_op(compiled))


def sum_op_stats(parts: Sequence[OpStats]) -> OpStats:
    """Sum the operations of several hosts by name (and program, on devices): times, occurrences and work."""
    if len(parts) == 1:
        return parts[0]
    compiled = add_up(part.compiled for part in parts)
    return OpStats(add_up(part.host for part in parts), compiled, by_framework_op(compiled))
