"""What a host's steps show, as records: made by the modules of the same names, weighed by the rules."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.events.frameworks import Software
from tb_tpuprof.analysis.steps.classes import TimeClass

Int64s = npt.NDArray[np.int64]


COMPUTES = (TimeClass.HOST_COMPUTE, TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)


@dataclass(frozen=True)
class Part:
    """Time of one cause and culprit in each step. `call`: the library's or runtime's function that the
    culprit is in, empty for none.

    `caller`: the user's function that called for it, where the culprit is none itself. `n`: of its stretches
    of time. `first_ps`, `last_ps`: its longest stretch, for the timeline.
    """

    cause: Cause
    klass: TimeClass
    culprit: Culprit
    caller: Culprit
    call: str
    time_ps: Int64s
    n: int = 0
    first_ps: int = -1
    last_ps: int = -1

    @property
    def mean_ps(self) -> float:
        """Per step."""
        return float(self.time_ps.mean()) if len(self.time_ps) else 0.0


@dataclass(frozen=True)
class Sync:
    """Calls of one kind by one function. `after_ps`: in each step the host's time behind them in which
    nothing computed; `before_dispatch_ps`: as far as the step dispatches more work then; `computed_ps`: the
    time in which something did. `first_ps`, `last_ps`: one call, for the timeline.
    """

    call: str
    culprit: Culprit
    per_step: Int64s
    after_ps: Int64s
    before_dispatch_ps: Int64s
    computed_ps: Int64s
    first_ps: int
    last_ps: int

    def of_step(self, number: int) -> Sync:
        """The same of one step."""
        at = slice(number, number + 1)
        return replace(
            self,
            per_step=self.per_step[at],
            after_ps=self.after_ps[at],
            before_dispatch_ps=self.before_dispatch_ps[at],
            computed_ps=self.computed_ps[at],
        )


_RUNS = 0.3  # of the steps' time


@dataclass(frozen=True)
class Beside:
    """A thread's share of the steps' time in which its Python runs and in which it waits, and the function
    that runs most.

    `hands_over`: whether it puts something into a queue, an event or a future: what the steps may wait for.
    """

    thread: str
    culprit: Culprit
    running: float
    waiting: float
    hands_over: bool


def busy_thread(beside: Sequence[Beside]) -> Beside | None:
    """The busiest thread that runs Python for much of the time and hands nothing over."""
    return next(
        (one for one in beside if one.running >= _RUNS and not one.hands_over and one.culprit.name), None
    )


@dataclass(frozen=True)
class Gap:
    """Unrecorded time between two things: names of what ends before and begins after it, empty at the step's
    own start and end.

    `time_ps`: in each step; `first_ps`, `last_ps`: its longest.
    """

    before: str
    after: str
    time_ps: Int64s
    first_ps: int
    last_ps: int

    @property
    def where(self) -> str:
        """In words."""
        if self.before and self.after:
            return f"between `{self.before}` and `{self.after}`"
        if self.before:
            return f"between `{self.before}` and the end of the step"
        return f"before `{self.after}`" if self.after else "throughout the step"

    def of_step(self, number: int) -> Gap:
        """The same of one step."""
        return replace(self, time_ps=self.time_ps[number : number + 1])


@dataclass(frozen=True)
class Period:
    """Periodic work of one culprit: `every` n-th step takes `excess_ps` more. `was`: what the time would be
    without its period.
    """

    culprit: Culprit
    call: str
    was: Cause
    every: int
    n: int
    excess_ps: float
    mean_ps: float
    first_ps: int
    last_ps: int
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """One thing that is called. `per_step`: how often, of each step that pages show."""

    kind: str
    name: str
    per_step: Int64s

    @property
    def mean(self) -> float:
        """Calls per step."""
        return float(self.per_step.mean()) if len(self.per_step) else 0.0


@dataclass(frozen=True)
class Calls:
    """All calls, the most frequent first."""

    all: tuple[Call, ...] = ()

    def of(self, kind: str) -> tuple[Call, ...]:
        """Those of one kind."""
        return tuple(call for call in self.all if call.kind == kind)

    def per_step(self, kind: str) -> float:
        """How many of one kind there are per step."""
        return sum(call.mean for call in self.of(kind))

    def of_step(self, number: int) -> Calls:
        """Those of one of the steps alone."""
        return Calls(
            tuple(
                replace(call, per_step=call.per_step[number : number + 1])
                for call in self.all
                if call.per_step[number]
            )
        )


@dataclass(frozen=True)
class Warming:
    """A first step, left out of the shown ones, that took long: how long, the median of the others, and what
    it did most of that.

    Without a name: compiling before the first step begins.
    """

    name: str
    duration_ps: int
    usual_ps: int
    cause: Cause
    cause_ps: int
    start_ps: int


@dataclass(frozen=True)
class Pools:
    """`n`: threads of the pool that computes. `active`: how many threads of pools work at once, the mean over
    the steps.
    """

    n: int
    active: float

    def lost(self, running: float) -> float:
        """Share of computing that is lost to threads that run beside it, when each runnable thread gets as
        much of the processors.
        """
        runnable = min(self.active, self.n) + running
        return max(0.0, 1.0 - self.n / runnable) if self.n and runnable else 0.0


NO_POOLS = Pools(0, 0.0)


@dataclass(frozen=True)
class DeviceOp:
    """An operation in a step: its time, and how much of the peaks it reaches; NaN where its work or the peak
    is not known.
    """

    name: str
    category: str
    time_ps: float
    each_ps: float
    flops_fraction: float
    hbm_fraction: float
    efficiency: float
    product: str = ""
    fill: float = math.nan

    @property
    def lost_ps(self) -> float:
        """What it takes longer than at the peak that it comes nearest to."""
        return self.time_ps * max(0.0, 1 - self.efficiency)


@dataclass(frozen=True)
class Group:
    """Operations of one purpose: their time in a step, how many kinds there are, and the longest one with its
    own time.
    """

    time_ps: float = 0.0
    n: int = 0
    top: str = ""
    top_ps: float = 0.0


@dataclass(frozen=True)
class Exchange:
    """Collectives of one kind among the devices of one group: their share of all collectives' time, how many
    per step, how many devices.
    """

    kind: str
    group: str
    n_devices: int
    per_step: float
    share: float

    @property
    def title(self) -> str:
        """`all-reduce` among 8 ranks (default_pg)."""
        among = f" among {self.n_devices:,} ranks" if self.n_devices > 1 else ""
        told = re.search(r"\((.+)\)$", self.group)
        group = told[1] if told else f"group {self.group}"
        return f"`{self.kind}`{among}" + (f" ({group})" if self.group else "")


@dataclass(frozen=True)
class KernelUse:
    """A GPU's kernel in a step. `occupancy`: share of a multiprocessor's threads that it can hold, NaN
    unknown; `n_blocks`: of its grid, 0 unknown.
    """

    name: str
    op: str
    time_ps: float
    each_ps: float
    occupancy: float
    n_blocks: int


@dataclass(frozen=True)
class DeviceEvidence:
    """One host's devices. Times in ps per step; `hbm_fraction` and `flops_fraction`: of the peaks while the
    devices compute, NaN unknown.

    `moves` data from one layout to another, `remat` computes again, `waits` for asynchronous operations, at a
    `barrier`, for `debug` output, for `sparse` cores; `collectives` exchange data; `wide` products of
    matrices in 32 bits use no tensor cores. `runtime_calls`: of CUDA or HIP in which the host is while
    devices are idle, longest first. `sources`: where the peaks come from.
    """

    device: str
    busy_ps: float
    compute_ps: float
    n_kernels: float = 0.0
    flops_fraction: float = math.nan
    hbm_fraction: float = math.nan
    sources: tuple[str, str] = ("", "")
    n_multiprocessors: int = 0
    ops: tuple[DeviceOp, ...] = ()
    kernels: tuple[KernelUse, ...] = ()
    moves: Group = Group()
    remat: Group = Group()
    waits: Group = Group()
    barrier: Group = Group()
    debug: Group = Group()
    sparse: Group = Group()
    collectives: Group = Group()
    wide: Group = Group()
    exchanges: tuple[Exchange, ...] = ()
    runtime_calls: tuple[tuple[str, float], ...] = ()

    def of_one_step(self) -> DeviceEvidence:
        """What holds of a single step as well: operations' times are known of all steps together alone."""
        return DeviceEvidence(
            self.device, 0.0, 0.0, self.n_kernels, sources=self.sources, exchanges=self.exchanges
        )


@dataclass(frozen=True)
class HostEvidence:
    """One host's steps. `names`, `start_ps`, `duration_ps`: of each; `parts`: their times by cause, periodic
    work apart in `periods`.

    `kind`: CPU, GPU or TPU. `device`: what accelerators do. `stage`: of tf.data, that the steps wait for;
    empty where they wait for none. `copies`: how many copies to the device run at once beside the computing.
    `ahead`: the function in which the steps' own thread runs Python while the computing needs its processor.
    `stages`: how many Python functions of tf.data run at once beside the steps. `tiny_ps`: what programs too
    small for a call compute per step, which counts as dispatch.
    """

    host: str
    kind: str
    software: Software
    source: str
    how: str
    names: tuple[str, ...]
    start_ps: Int64s
    duration_ps: Int64s
    parts: tuple[Part, ...]
    periods: tuple[Period, ...]
    calls: Calls
    syncs: tuple[Sync, ...]
    gaps: tuple[Gap, ...]
    beside: tuple[Beside, ...]
    warming: Warming | None
    is_detailed: bool
    turns_ps: Int64s
    device: DeviceEvidence | None = None
    pools: Pools = NO_POOLS
    stage: str = ""
    copies: float = 0.0
    ahead: Beside | None = None
    stages: float = 0.0
    tiny_ps: float = 0.0

    @property
    def step_ps(self) -> float:
        """The mean step."""
        return float(self.duration_ps.mean()) if len(self.duration_ps) else 0.0

    @property
    def n_steps(self) -> int:
        """Steps that are shown."""
        return len(self.duration_ps)

    def time_ps(self, cause: Cause) -> float:
        """Mean time per step of a cause."""
        return _time_ps(self.parts, cause)

    def share(self, time_ps: float) -> float:
        """Of the mean step."""
        return time_ps / self.step_ps if self.step_ps else 0.0

    def of_step(self, number: int) -> HostEvidence:
        """The same of one of the steps alone, by its place."""
        at = slice(number, number + 1)
        return replace(
            self,
            turns_ps=self.turns_ps[at],
            names=self.names[at],
            start_ps=self.start_ps[at],
            duration_ps=self.duration_ps[at],
            periods=(),
            warming=None,
            parts=tuple(
                replace(part, time_ps=part.time_ps[at]) for part in self.parts if part.time_ps[at].any()
            ),
            syncs=tuple(sync.of_step(number) for sync in self.syncs),
            gaps=tuple(gap.of_step(number) for gap in self.gaps),
            calls=self.calls.of_step(number),
            device=self.device.of_one_step() if self.device else None,
        )


def _time_ps(parts: Sequence[Part], cause: Cause) -> float:
    return sum(part.mean_ps for part in parts if part.cause == cause)
