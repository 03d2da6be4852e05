"""A short profile of a running job → the few numbers that monitoring prints, each as on the overview of the
same trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.ops.utilization import utilization
from tb_tpuprof.analysis.overview.facts import host_facts, run_facts
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class LiveSample:
    """The numbers of one host during the profile. None: unknown, such as step times if no step ended in that
    time.

    `matrix_unit_fraction`: FLOPs done / FLOPs that the peak allows in the profiled time.
    `device_idle_fraction`: of the accelerators. `input_fraction_*`: share of a step spent waiting for input;
    the average is the ratio of the sums, the other two are those of single steps.
    """

    device_type: str
    n_cores: int | None = None
    matrix_unit_fraction: float | None = None
    device_idle_fraction: float | None = None
    step_time_avg_ps: float | None = None
    step_time_min_ps: int | None = None
    step_time_max_ps: int | None = None
    n_steps: int | None = None
    input_fraction_avg: float | None = None
    input_fraction_min: float | None = None
    input_fraction_max: float | None = None


def live_sample(trace: Trace) -> LiveSample:
    """The sample of one host's trace."""
    facts = run_facts([host_facts(trace)])
    machine, steps = facts.hardware, facts.steps
    without_steps = LiveSample(
        machine.device,
        machine.n_devices or None,
        utilization(trace).flops_fraction,
        facts.idle_fraction,
        n_steps=len(steps),
    )
    if not len(steps):
        return without_steps
    time = steps.duration_ps
    share = steps.category_ps("input") / np.maximum(time, 1)
    return LiveSample(
        without_steps.device_type,
        without_steps.n_cores,
        without_steps.matrix_unit_fraction,
        without_steps.device_idle_fraction,
        float(time.mean()),
        int(time.min()),
        int(time.max()),
        len(steps),
        steps.fraction("input"),
        float(share.min()),
        float(share.max()),
    )
