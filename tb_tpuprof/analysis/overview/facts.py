"""What every page says of a run alike: hosts, devices, spans, steps, busy and idle time. One module computes
and names them.

    capture   ├───────────────────────────────────────────────┤      from the trace's start to its last event,
    of the longest host device 0       ├■■■■■■░░■■■■■■░░░■■■■■■┤                         its span: from its
    first operation to its last one's end device 1         ├■■■■■░░░■■■■■░░░░■■■■■┤
    busy ■: at least one operation runs on it; idle ░: none
    all devices    ├■■■■■■■■░■■■■■■■░░■■■■■■■┤                       their union: busy while any of them is

Device time is the sum of the devices' spans, so four devices that ran for 10 s have 40 s of it: it is what
shares of operations and rates are of. Idle time is either each device's own (what is left of device time) or
time in which none of them works. The step time of a run is the mean over its hosts, of the steps that all
have: categories are means too, and so add up to it. Hosts that differ are named beside it with their own
times. Hosts whose captures do not overlap have no step in common (`combine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.frameworks import Software, software, sum_software
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, STEP_LINES, lines_named, planes
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.steps.classes import ON_GPU
from tb_tpuprof.analysis.steps.combine import CommonSteps, common_steps, sum_hardware
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Spans = tuple[Int64s, Int64s]


@dataclass(frozen=True)
class DeviceTimes:
    """Of the devices of one host that ran anything: each one's span and the part of it in which an operation
    ran, in ps.

    `union_span_ps` and `union_busy_ps`: the same of all of them as one.
    """

    span_ps: tuple[int, ...] = ()
    busy_ps: tuple[int, ...] = ()
    union_span_ps: int = 0
    union_busy_ps: int = 0


@dataclass(frozen=True)
class HostFacts:
    """The facts of one host. `start_ns`: the clock at the trace's 0; `duration_ps`: of the capture, from
    there to the last event.
    """

    host: str
    start_ns: int
    duration_ps: int
    hardware: Hardware
    software: Software
    devices: DeviceTimes
    steps: Steps


@dataclass(frozen=True)
class RunFacts:
    """The facts of some hosts as one run. Times in ps; None is unknown, or that there is no such thing."""

    hosts: tuple[HostFacts, ...]
    common: CommonSteps

    @property
    def steps(self) -> Steps:
        """The steps that all hosts have; times and shares are means over the hosts."""
        return self.common.steps

    @property
    def hardware(self) -> Hardware:
        """Devices that the traces hold (present) with their peaks."""
        return sum_hardware([host.hardware for host in self.hosts])

    @property
    def kind(self) -> str:
        """`TPU`, `GPU` or `CPU`."""
        return self.hardware.kind

    @property
    def software(self) -> Software:
        """Framework of the job."""
        return sum_software([host.software for host in self.hosts])

    @property
    def n_present(self) -> int:
        """Accelerators that the traces know of."""
        return self.hardware.n_devices

    @property
    def n_active(self) -> int:
        """Accelerators that ran at least one operation."""
        return sum(len(host.devices.span_ps) for host in self.hosts)

    @property
    def capture_ps(self) -> int:
        """The longest host's capture."""
        return max((host.duration_ps for host in self.hosts), default=0)

    @property
    def device_time_ps(self) -> int:
        """The spans of all active devices, summed."""
        return sum(sum(host.devices.span_ps) for host in self.hosts)

    @property
    def device_busy_ps(self) -> int:
        """The time in which an operation ran, device by device, summed. Never above `device_time_ps`."""
        return sum(sum(host.devices.busy_ps) for host in self.hosts)

    @property
    def step_time_ps(self) -> float | None:
        """Mean over the hosts and their common steps."""
        return float(self.steps.duration_ps.mean()) if len(self.steps) else None

    @property
    def mean_idle_fraction(self) -> float | None:
        """Idle time of the devices, each by itself: 1 - busy / device time."""
        return 1.0 - self.device_busy_ps / self.device_time_ps if self.device_time_ps else None

    @property
    def union_idle_fraction(self) -> float | None:
        """Time in which no device of a host works: of the steps where there are any, else of the devices'
        common span.
        """
        if self.kind == "GPU" and len(self.steps):
            busy = int(self.steps.class_ps[:, list(ON_GPU)].sum()) / int(self.steps.duration_ps.sum())
            return min(1.0, max(0.0, 1.0 - busy))
        span = sum(host.devices.union_span_ps for host in self.hosts)
        return 1.0 - sum(host.devices.union_busy_ps for host in self.hosts) / span if span else None

    @property
    def idle_fraction(self) -> float | None:
        """The idle share that headlines speak of: of GPUs with steps the union's, within them; else each
        device's own.
        """
        if self.kind == "CPU" or self.common.is_disjoint:
            return None
        return self.union_idle_fraction if self.kind == "GPU" and len(self.steps) else self.mean_idle_fraction


@once
def host_facts(trace: Trace) -> HostFacts:
    """The facts of one host."""
    return HostFacts(
        trace.info.host,
        trace.info.start_ns,
        trace.duration_ps,
        hardware(trace),
        software(trace),
        _device_times(trace),
        waiting(trace).steps,
    )


def run_facts(parts: Sequence[HostFacts], corrections_ns: Sequence[int] = ()) -> RunFacts:
    """Hosts as one run. `corrections_ns`: what to add to each host's clock, as `clocks` found it; none: the
    clocks agree.
    """
    add = corrections_ns or (0,) * len(parts)
    starts = [part.start_ns + more for part, more in zip(parts, add, strict=True)]
    return RunFacts(tuple(parts), common_steps([part.steps for part in parts], starts))


def _device_times(trace: Trace) -> DeviceTimes:
    """Streams of GPUs; of TensorCores the operations, in a span that their steps may widen."""
    roles = planes(trace)
    if roles.hardware == "TPU":
        return _times([_of_core(trace, plane) for plane in roles.tensor_cores])
    return _times([_of_gpu(trace, plane) for plane in roles.gpus])


def _of_gpu(trace: Trace, plane: int) -> tuple[Spans, Spans]:
    rows = stream_events(trace, plane)
    start = trace.events["start_ps"][rows]
    spans = start, start + trace.events["duration_ps"][rows]
    return spans, spans


def _of_core(trace: Trace, plane: int) -> tuple[Spans, Spans]:
    """(operations, operations and steps) of a TensorCore."""
    found = [
        [device_spans(trace, line) for line in lines_named(trace, plane, names)]
        for names in ((OP_LINE,), STEP_LINES)
    ]
    ops, steps = (
        (_joined([one.start_ps for one in part]), _joined([one.start_ps + one.duration_ps for one in part]))
        for part in found
    )
    return ops, (_joined([ops[0], steps[0]]), _joined([ops[1], steps[1]]))


def _joined(parts: Sequence[Int64s]) -> Int64s:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _times(devices: Sequence[tuple[Spans, Spans]]) -> DeviceTimes:
    """Devices without an operation are not active."""
    active = [(ops, extent) for ops, extent in devices if len(ops[0])]
    if not active:
        return DeviceTimes()
    first, last = (
        [int(extent[0].min()) for _, extent in active],
        [int(extent[1].max()) for _, extent in active],
    )
    start, end = (_joined([ops[side] for ops, _ in active]) for side in (0, 1))
    return DeviceTimes(
        tuple(b - a for a, b in zip(first, last, strict=True)),
        tuple(int(union_ps(*ops)) for ops, _ in active),
        max(last) - min(first),
        int(union_ps(start, end)),
    )
