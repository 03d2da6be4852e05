"""Whether a job waits for its input, on which host and core, and what its host spends its input time on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import compute_ahead
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.input.host import HostInput, HostTime, host_input, host_time, sum_host_input
from tb_tpuprof.analysis.input.tpu import TC_PARTS, CoreSteps, core_steps, waiting
from tb_tpuprof.analysis.ops.stats import OpStats, op_stats
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.combine import CommonSteps, common_steps
from tb_tpuprof.analysis.steps.diagnostics import Notice, trace_notices
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class InputPart:
    """One host's part. In `steps`, waiting for input is separated from idling (see `waiting`): `moved_ps` per
    step moved from idle time; `cores` of TPUs only.
    """

    host: str
    kind: str
    steps: Steps
    moved_ps: Int64s
    cores: CoreSteps | None
    host_input: HostInput
    ops: OpStats
    notices: tuple[Notice, ...]
    start_ns: int
    has_loop_ops: bool

    @property
    def fraction(self) -> float:
        """Share of the steps' time spent waiting for input; NaN without steps."""
        return self.steps.fraction("input") if len(self.steps) else float("nan")

    @property
    def waiting_ps(self) -> float:
        """Time in ps per step spent waiting for input, the mean over steps; NaN without steps."""
        return float(self.steps.category_ps("input").mean()) if len(self.steps) else float("nan")

    @property
    def host_time(self) -> HostTime:
        """Time of this host's input pipeline by category."""
        return host_time(self.host_input, copy_fraction(self.steps))


def input_part(trace: Trace) -> InputPart:
    """Everything that the input pipeline analyzer needs of one host."""
    compute_ahead(trace, waiting, op_stats, parents)
    waits = waiting(trace)
    return InputPart(
        trace.info.host,
        planes(trace).hardware,
        waits.steps,
        waits.moved_ps,
        core_steps(trace),
        host_input(trace),
        op_stats(trace),
        trace_notices(trace),
        trace.info.start_ns,
        groups(trace).has_loop_ops,
    )


def copy_fraction(steps: Steps) -> float:
    """Share of the steps' time spent on copies from host to device; 0 without steps."""
    total_ps = int(steps.duration_ps.sum())
    return float(steps.class_ps[:, TimeClass.HOST_TO_DEVICE].sum()) / total_ps if total_ps else 0.0


@dataclass(frozen=True)
class CoreRange:
    """The range over the cores of all hosts in each step: the smallest and the largest share spent waiting
    for input, and the core with the largest.
    """

    parts: dict[str, Int64s]
    least: Floats
    most: Floats
    worst: tuple[str, ...]


@dataclass(frozen=True)
class InputPipeline:
    """All hosts together. `hosts` are sorted by the share of their steps spent waiting for input, hosts
    without steps last.
    """

    common: CommonSteps
    cores: CoreRange | None
    host_input: HostInput
    host_time: HostTime
    hosts: tuple[InputPart, ...]

    @property
    def steps(self) -> Steps:
        """The steps that all hosts have."""
        return self.common.steps

    @property
    def judged_steps(self) -> Steps:
        """The steps that advice is about: the common ones; without any, those of the host that waits most."""
        return self.steps if len(self.steps) or not self.hosts else self.hosts[0].steps

    @property
    def input_fraction(self) -> Floats:
        """Share of each step spent waiting for input."""
        step_ps = self.steps.duration_ps
        return np.divide(
            self.steps.category_ps("input"), step_ps, out=np.zeros(len(step_ps)), where=step_ps > 0
        )

    @property
    def moved_ps(self) -> int:
        """Idle time of TPU cores in ps that counts as waiting for input, summed over all hosts' steps."""
        return sum(int(part.moved_ps.sum()) for part in self.hosts)


def input_pipeline(parts: Sequence[InputPart]) -> InputPipeline:
    """Align the hosts' steps and combine the hosts. Step times and shares are means over the hosts;
    operations are summed.
    """
    common = common_steps([part.steps for part in parts], [part.start_ns for part in parts])
    total_input = sum_host_input([part.host_input for part in parts])
    by_share = sorted(
        parts, key=lambda part: (not len(part.steps), -part.fraction if len(part.steps) else 0.0)
    )
    time = host_time(total_input, copy_fraction(common.steps))
    return InputPipeline(common, _core_range(parts, common), total_input, time, tuple(by_share))


def _core_range(parts: Sequence[InputPart], common: CommonSteps) -> CoreRange | None:
    """The cores of the hosts that have the common steps; None without TPU cores."""
    with_cores = [
        (part, part.cores, rows)
        for part, rows in zip(parts, common.rows, strict=True)
        if part.cores and rows.stop > rows.start
    ]
    if not with_cores or not len(common.steps):
        return None
    names = [f"{part.host}:{core}" for part, cores, _ in with_cores for core in cores.cores]
    share = np.concatenate([cores.input_fraction[:, rows] for _, cores, rows in with_cores])
    means = {}
    for group in ("parts", "sparse"):
        for name in dict.fromkeys(name for _, cores, _ in with_cores for name in getattr(cores, group)):
            columns = [
                getattr(cores, group)[name][rows]
                for _, cores, rows in with_cores
                if name in getattr(cores, group)
            ]
            means[name] = np.sum(columns, axis=0) // len(columns)
    # Means are whole picoseconds: idle time gets the rounding loss, so that the parts still sum to the step.
    means["tc_idle"] = (
        means["tc_idle"] + common.steps.duration_ps - np.sum([means[name] for name in TC_PARTS], axis=0)
    )
    most = share.max(axis=0)
    worst = tuple(
        names[i] if high > 0 else ""
        for i, high in zip(share.argmax(axis=0).tolist(), most.tolist(), strict=True)
    )
    return CoreRange(means, share.min(axis=0), most, worst)
