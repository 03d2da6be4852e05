"""What a host's trace shows of its steps, beyond how long each cause took: what rules weigh. Small and plain,
so that it can be kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_evidence import device_evidence
from tb_tpuprof.analysis.diagnosis.device_turns import device_turns
from tb_tpuprof.analysis.diagnosis.moved_parts import (
    behind_waits,
    beside_copies,
    beside_own_python,
    beside_producers,
    beside_threads,
    between_calls,
    from_producers,
    in_turns,
    of_tiny_calls,
)
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.analysis.diagnosis.periodic_parts import without_periodic
from tb_tpuprof.analysis.diagnosis.pools import pools
from tb_tpuprof.analysis.diagnosis.records import (
    NO_POOLS,
    HostEvidence,
    Part,
    _time_ps,
)
from tb_tpuprof.analysis.diagnosis.runtime_beside import copies_beside, python_stages_beside
from tb_tpuprof.analysis.diagnosis.step_calls import step_calls
from tb_tpuprof.analysis.diagnosis.synchronizing import synchronizing
from tb_tpuprof.analysis.diagnosis.threads_beside import ahead_of_device, threads_beside
from tb_tpuprof.analysis.diagnosis.tiny_calls import tiny_calls
from tb_tpuprof.analysis.diagnosis.unrecorded import gaps, short_gaps
from tb_tpuprof.analysis.diagnosis.warming import warming
from tb_tpuprof.analysis.events.frameworks import software
from tb_tpuprof.analysis.events.memo import compute_ahead, once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.program import n_phases
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.tf_data.finding import by_weight
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_LEAST = 0.02  # of the steps: who waits less does not ask for a stage


@once
def host_evidence(trace: Trace) -> HostEvidence:
    """Everything that rules need of one host."""
    compute_ahead(trace, waiting, op_stats, synchronizing, parts, gaps, step_calls, threads_beside)
    steps = waiting(trace).steps
    calls = step_calls(trace)
    syncs, between = synchronizing(trace), gaps(trace)
    beside = threads_beside(trace)
    every = from_producers(parts(trace), beside)
    kept, periods = without_periodic(every, calls, steps.duration_ps)
    turns = device_turns(trace)
    kept = in_turns(kept, turns, syncs)
    # Of steps from call to call nothing says whether what follows a wait is still the same step, unless
    # several of them are one.
    if steps.source != "program" or n_phases(trace) > 1:
        kept = behind_waits(kept, syncs, planes(trace).has_device)
    computed = _time_ps(kept, Cause.COMPUTE)
    kept = of_tiny_calls(between_calls(kept, between, short_gaps(trace), calls), tiny_calls(trace))
    tiny_ps = computed - _time_ps(kept, Cause.COMPUTE)
    busy = pools(trace) if planes(trace).hardware in ("", "CPU") else NO_POOLS
    copying = copies_beside(trace)
    ahead = ahead_of_device(trace)
    kept = beside_producers(beside_threads(kept, beside, busy), beside, busy)
    kept = beside_own_python(kept, ahead, busy)
    kept = beside_copies(kept, copying, busy)
    return HostEvidence(
        host=trace.info.host,
        kind=planes(trace).hardware or "CPU",
        software=software(trace),
        source=steps.source,
        how=steps.how,
        names=steps.name,
        start_ps=steps.start_ps,
        duration_ps=steps.duration_ps,
        parts=kept,
        periods=periods,
        calls=calls,
        syncs=syncs,
        gaps=between,
        beside=beside,
        warming=warming(trace),
        is_detailed=step_pieces(trace)[1] is not None,
        turns_ps=turns,
        device=device_evidence(trace),
        pools=busy,
        stage=_stage(trace, kept),
        copies=copying,
        ahead=ahead,
        stages=python_stages_beside(trace),
        tiny_ps=tiny_ps,
    )


def _stage(trace: Trace, parts: Sequence[Part]) -> str:
    """The bottleneck of the pipeline that the steps wait for most, as the tf.data page has it."""
    waits = sum(int(part.time_ps.sum()) for part in parts if part.klass == TimeClass.HOST_WAIT_INPUT)
    if waits < _LEAST * sum(int(part.time_ps.sum()) for part in parts):
        return ""
    pipeline = next((one for one in by_weight(trace) if one.kind == "Host"), None)
    stage = pipeline.bottleneck_stage if pipeline else None
    return stage.name if stage else ""
