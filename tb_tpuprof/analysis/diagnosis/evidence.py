"""Evidence that the rules read: what a host's trace shows about its steps. Small and plain, so that caches
can keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_evidence import device_evidence
from tb_tpuprof.analysis.diagnosis.device_turns import device_turns
from tb_tpuprof.analysis.diagnosis.moved_parts import (
    after_waits,
    between_calls,
    from_producers,
    in_turns,
    lost_to_copies,
    lost_to_own_python,
    lost_to_producers,
    lost_to_stages,
    lost_to_threads,
    of_tiny_calls,
)
from tb_tpuprof.analysis.diagnosis.other_threads import ahead_of_device, other_threads
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.analysis.diagnosis.periodic_parts import without_periodic
from tb_tpuprof.analysis.diagnosis.pools import pools
from tb_tpuprof.analysis.diagnosis.rare_functions import rare_functions
from tb_tpuprof.analysis.diagnosis.records import (
    NO_POOLS,
    HostEvidence,
    Part,
    _time_ps,
)
from tb_tpuprof.analysis.diagnosis.runtime_threads import concurrent_copies, concurrent_python_stages
from tb_tpuprof.analysis.diagnosis.step_calls import step_calls
from tb_tpuprof.analysis.diagnosis.synchronizing import synchronizing
from tb_tpuprof.analysis.diagnosis.tiny_calls import tiny_calls
from tb_tpuprof.analysis.diagnosis.unrecorded import gaps, short_gaps
from tb_tpuprof.analysis.diagnosis.warming import warming
from tb_tpuprof.analysis.events.frameworks import software
from tb_tpuprof.analysis.events.memo import compute_ahead, once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.program import n_phases
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.tf_data.finding import by_weight
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_LEAST = 0.02  # of the steps: shorter waits name no stage
# What takes long and needs none of the rest, about the longest first: computed in parallel. (`hlo_ops` is for
# devices, and for the overview, which comes next.)
_INDEPENDENT = (
    synchronizing,
    parts,
    rare_functions,
    gaps,
    hlo_ops,
    step_calls,
    concurrent_copies,
    device_turns,
    tiny_calls,
    other_threads,
    concurrent_python_stages,
    warming,
)


@once
def host_evidence(trace: Trace) -> HostEvidence:
    """All evidence of one host that the rules need."""
    compute_ahead(trace, waiting, op_stats, *_INDEPENDENT)
    steps = waiting(trace).steps
    calls = step_calls(trace)
    syncs, unrecorded_gaps = synchronizing(trace), gaps(trace)
    threads = other_threads(trace)
    stages = concurrent_python_stages(trace)
    attributed = lost_to_stages(from_producers(parts(trace), threads), stages)
    parts_of_steps, periods = without_periodic(attributed, calls, steps.duration_ps, rare_functions(trace))
    turns = device_turns(trace)
    parts_of_steps = in_turns(parts_of_steps, turns, syncs)
    # Steps that last from call to call do not show whether host work after a wait still belongs to the step,
    # unless several calls make one step.
    if steps.source != "program" or n_phases(trace) > 1:
        parts_of_steps = after_waits(parts_of_steps, syncs, planes(trace).has_device)
    computed = _time_ps(parts_of_steps, Cause.COMPUTE)
    parts_of_steps = of_tiny_calls(
        between_calls(parts_of_steps, unrecorded_gaps, short_gaps(trace), calls), tiny_calls(trace)
    )
    tiny_ps = computed - _time_ps(parts_of_steps, Cause.COMPUTE)
    compute_pools = pools(trace) if planes(trace).hardware in ("", "CPU") else NO_POOLS
    copies = concurrent_copies(trace)
    ahead = ahead_of_device(trace)
    parts_of_steps = lost_to_producers(
        lost_to_threads(parts_of_steps, threads, compute_pools), threads, compute_pools
    )
    parts_of_steps = lost_to_own_python(parts_of_steps, ahead, compute_pools)
    parts_of_steps = lost_to_copies(parts_of_steps, copies, compute_pools)
    return HostEvidence(
        host=trace.info.host,
        kind=planes(trace).hardware or "CPU",
        software=software(trace),
        source=steps.source,
        is_ahead=steps.is_ahead,
        names=steps.name,
        start_ps=steps.start_ps,
        duration_ps=steps.duration_ps,
        parts=parts_of_steps,
        periods=periods,
        calls=calls,
        syncs=syncs,
        gaps=unrecorded_gaps,
        other_threads=threads,
        warming=warming(trace),
        is_detailed=step_pieces(trace)[1] is not None,
        turns_ps=turns,
        device=device_evidence(trace),
        pools=compute_pools,
        stage=_stage(trace, parts_of_steps),
        copies=copies,
        ahead=ahead,
        stages=stages,
        tiny_ps=tiny_ps,
    )


def _stage(trace: Trace, parts: Sequence[Part]) -> str:
    """The bottleneck stage of the pipeline that the steps wait for most, as the tf.data page names it."""
    waits = sum(int(part.time_ps.sum()) for part in parts if part.klass == TimeClass.HOST_WAIT_INPUT)
    if waits < _LEAST * sum(int(part.time_ps.sum()) for part in parts):
        return ""
    pipeline = next((one for one in by_weight(trace) if one.kind == "Host"), None)
    stage = pipeline.bottleneck_stage if pipeline else None
    return stage.name if stage else ""
