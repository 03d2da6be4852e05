"""Records of the evidence about a host's steps: filled by modules of the same names, read by rules."""

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
    """Time of one cause and culprit in each step. `call`: the library or runtime function that the culprit
    calls, empty for none.

    `caller`: the user's function behind a culprit that is not one itself. `n`: number of stretches of time.
    `first_ps`, `last_ps`: the longest stretch, for the timeline.
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
    """Waits for the device in one call by one function. Per step: `per_step` the number of waits, `after_ps`
    the host's time after them in which nothing computed, `before_dispatch_ps` the part of it that precedes
    more dispatch, `computed_ps` the time in which something computed. `first_ps`, `last_ps`: the longest
    wait.
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
        row = slice(number, number + 1)
        return replace(
            self,
            per_step=self.per_step[row],
            after_ps=self.after_ps[row],
            before_dispatch_ps=self.before_dispatch_ps[row],
            computed_ps=self.computed_ps[row],
        )


DEVICE_WORK = "the device's work"  # the name of a gap's end that is no event of the steps' thread
_RUNS = 0.3  # of the steps' time


@dataclass(frozen=True)
class ThreadActivity:
    """Shares of the steps' time in which a thread's Python runs and waits, and the function that takes most
    of it.

    `hands_over`: whether it puts results into a queue, an event or a future, which the steps may wait for.
    """

    thread: str
    culprit: Culprit
    running: float
    waiting: float
    hands_over: bool


def busy_thread(threads: Sequence[ThreadActivity]) -> ThreadActivity | None:
    """The busiest thread that runs Python for much of the time and hands over no results."""
    return next(
        (one for one in threads if one.running >= _RUNS and not one.hands_over and one.culprit.name), None
    )


@dataclass(frozen=True)
class Gap:
    """Unrecorded time between two events, by their names; empty at the start and end of the step.

    `time_ps`: in each step; `first_ps`, `last_ps`: the longest gap.
    """

    before: str
    after: str
    time_ps: Int64s
    first_ps: int
    last_ps: int

    @property
    def where(self) -> str:
        """The place of the gap in words."""
        before, after = (
            name if name == DEVICE_WORK else f"`{name}`" if name else "" for name in (self.before, self.after)
        )
        if before == after == DEVICE_WORK:
            return "between runs on the device"
        if before:
            return f"between {before} and {after or 'the end of the step'}"
        return f"before {after}" if after else "throughout the step"

    def of_step(self, number: int) -> Gap:
        """The same of one step."""
        return replace(self, time_ps=self.time_ps[number : number + 1])


@dataclass(frozen=True)
class Period:
    """Periodic work of one culprit: every `every`-th step takes `excess_ps` more. `was`: the cause of the
    time before it was found to be periodic.
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
class StepFunction:
    """A function of the user on the steps' own threads. `time_ps`: how long it runs in each shown step,
    including what it calls.
    """

    culprit: Culprit
    time_ps: Int64s


@dataclass(frozen=True)
class Call:
    """A program, operation or function that is called. `per_step`: number of calls in each shown step."""

    kind: str
    name: str
    per_step: Int64s

    @property
    def mean(self) -> float:
        """Calls per step."""
        return float(self.per_step.mean()) if len(self.per_step) else 0.0


@dataclass(frozen=True)
class Calls:
    """All calls, most frequent first."""

    all: tuple[Call, ...] = ()

    def of(self, kind: str) -> tuple[Call, ...]:
        """The calls of one kind."""
        return tuple(call for call in self.all if call.kind == kind)

    def per_step(self, kind: str) -> float:
        """Mean number of calls of one kind per step."""
        return sum(call.mean for call in self.of(kind))

    def of_step(self, number: int) -> Calls:
        """The calls of one step."""
        return Calls(
            tuple(
                replace(call, per_step=call.per_step[number : number + 1])
                for call in self.all
                if call.per_step[number]
            )
        )


@dataclass(frozen=True)
class Warming:
    """A long first step, which is not shown: its duration, the median of the others, and the cause of most of
    the difference.

    Without a name: compilation before the first step.
    """

    name: str
    duration_ps: int
    usual_ps: int
    cause: Cause
    cause_ps: int
    start_ps: int


@dataclass(frozen=True)
class Pools:
    """`n`: threads of the compute pool. `active`: mean number of pool threads that work at once during the
    steps.
    """

    n: int
    active: float

    def lost(self, running: float) -> float:
        """Fraction of compute lost to `running` concurrent threads, if all runnable threads share the
        processors equally.
        """
        runnable = min(self.active, self.n) + running
        return max(0.0, 1.0 - self.n / runnable) if self.n and runnable else 0.0


NO_POOLS = Pools(0, 0.0)


@dataclass(frozen=True)
class DeviceOp:
    """An operation's time per step, and the fractions of the peaks that it reaches; NaN if its work or the
    peak is unknown.
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
        """Its time in excess of that at its nearest peak."""
        return self.time_ps * max(0.0, 1 - self.efficiency)


@dataclass(frozen=True)
class Group:
    """Operations of one purpose: time per step, number of distinct operations, and the longest one with its
    time.
    """

    time_ps: float = 0.0
    n: int = 0
    top: str = ""
    top_ps: float = 0.0


@dataclass(frozen=True)
class Exchange:
    """Collectives of one kind in one group of devices. `share`: of the time of all collectives."""

    kind: str
    group: str
    n_devices: int
    per_step: float
    share: float

    @property
    def title(self) -> str:
        """`all-reduce` among 8 ranks (default_pg)."""
        among = f" among {self.n_devices:,} ranks" if self.n_devices > 1 else ""
        in_brackets = re.search(r"\((.+)\)$", self.group)
        group = in_brackets[1] if in_brackets else f"group {self.group}"
        return f"`{self.kind}`{among}" + (f" ({group})" if self.group else "")


@dataclass(frozen=True)
class KernelUse:
    """A GPU kernel in a step. `occupancy`: theoretical occupancy (0-1), NaN if unknown; `n_blocks`: blocks of
    its grid, 0 if unknown.
    """

    name: str
    op: str
    time_ps: float
    each_ps: float
    occupancy: float
    n_blocks: int


@dataclass(frozen=True)
class DeviceEvidence:
    """One host's devices. Times in ps per step. `hbm_fraction`, `flops_fraction`: fractions of the peaks
    while the devices compute, NaN if unknown; `sources`: those of the peaks.

    Groups of operations: `moves` change layouts, `remat` recomputes, `waits` for asynchronous operations, at
    a `barrier`, for `debug` output, for `sparse` cores; `collectives` exchange data; `wide` are 32-bit matrix
    products without tensor cores. `runtime_calls`: calls of CUDA or HIP that the host is in while devices are
    idle, longest first.
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
        """The evidence that also holds for a single step: operations' times are known only for all steps
        together.
        """
        return DeviceEvidence(
            self.device, 0.0, 0.0, self.n_kernels, sources=self.sources, exchanges=self.exchanges
        )


@dataclass(frozen=True)
class HostEvidence:
    """One host's steps. `names`, `start_ps`, `duration_ps`: of each step; `parts`: their time by cause;
    `periods`: periodic work.

    `kind`: CPU, GPU or TPU. `is_ahead`: see `Windows`. `device`: evidence of accelerators. `stage`: the
    tf.data stage that the steps wait for, empty for none. `copies`: mean number of concurrent copies to the
    device during compute. `ahead`: the function that runs on the steps' own thread while compute needs its
    processor. `stages`: mean number of concurrent Python functions of tf.data during the steps. `tiny_ps`:
    compute per step of programs too small for a call, which counts as dispatch.
    """

    host: str
    kind: str
    software: Software
    source: str
    is_ahead: bool
    names: tuple[str, ...]
    start_ps: Int64s
    duration_ps: Int64s
    parts: tuple[Part, ...]
    periods: tuple[Period, ...]
    calls: Calls
    syncs: tuple[Sync, ...]
    gaps: tuple[Gap, ...]
    other_threads: tuple[ThreadActivity, ...]
    warming: Warming | None
    is_detailed: bool
    turns_ps: Int64s
    device: DeviceEvidence | None = None
    pools: Pools = NO_POOLS
    stage: str = ""
    copies: float = 0.0
    ahead: ThreadActivity | None = None
    stages: float = 0.0
    tiny_ps: float = 0.0

    @property
    def step_ps(self) -> float:
        """The mean step."""
        return float(self.duration_ps.mean()) if len(self.duration_ps) else 0.0

    @property
    def n_steps(self) -> int:
        """Number of shown steps."""
        return len(self.duration_ps)

    def time_ps(self, cause: Cause) -> float:
        """Mean time per step of a cause, in ps."""
        return _time_ps(self.parts, cause)

    def share(self, time_ps: float) -> float:
        """A time as a fraction of the mean step."""
        return time_ps / self.step_ps if self.step_ps else 0.0

    def of_step(self, number: int) -> HostEvidence:
        """The evidence of one step, by its row."""
        row = slice(number, number + 1)
        return replace(
            self,
            turns_ps=self.turns_ps[row],
            names=self.names[row],
            start_ps=self.start_ps[row],
            duration_ps=self.duration_ps[row],
            periods=(),
            warming=None,
            parts=tuple(
                replace(part, time_ps=part.time_ps[row]) for part in self.parts if part.time_ps[row].any()
            ),
            syncs=tuple(sync.of_step(number) for sync in self.syncs),
            gaps=tuple(gap.of_step(number) for gap in self.gaps),
            calls=self.calls.of_step(number),
            device=self.device.of_one_step() if self.device else None,
        )


def _time_ps(parts: Sequence[Part], cause: Cause) -> float:
    return sum(part.mean_ps for part in parts if part.cause == cause)
