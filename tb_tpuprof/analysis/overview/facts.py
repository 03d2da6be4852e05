"""The facts of a run that all pages share: hosts, devices, spans, steps, busy and idle time. This module
alone computes and names them.

    capture     ├───────────────────────────────────────────┤   of the longest host: from the trace's start
                                                                to its last event
    device 0         ├■■■■■■░░■■■■■■░░░■■■■■■┤                  its span: from its first operation's start to
                                                                its last one's end
    device 1           ├■■■■■░░░■■■■■░░░░■■■■■┤                 busy ■: it runs an operation; idle ░: none
    all devices      ├■■■■■■■■░■■■■■■■░░■■■■■■■┤                their union: busy while any of them is

Device time is the sum of the devices' spans, so four devices that ran for 10 s have 40 s of it; shares of
operations and rates refer to it. Idle time is either each device's own (the rest of device time) or the time
in which none of them works. The step time of a run is the mean over its hosts, of the steps that all have:
categories are means too, and so add up to it. Pages that name hosts which differ show these hosts' own times
next to it. Hosts whose captures do not overlap have no step in common (`combine`).
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
    """The devices of one host that ran anything: each one's span and the part of it in which an operation
    ran, in ps.

    `union_span_ps` and `union_busy_ps`: the same for the union of all devices. `longest_idle_ps`: start and
    end of the longest stretch between operations in which no device works; equal if there is none.
    """

    span_ps: tuple[int, ...] = ()
    busy_ps: tuple[int, ...] = ()
    union_span_ps: int = 0
    union_busy_ps: int = 0
    longest_idle_ps: tuple[int, int] = (0, 0)


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
    """The facts of some hosts as one run. Times in ps; None: unknown or not applicable."""

    hosts: tuple[HostFacts, ...]
    common: CommonSteps

    @property
    def steps(self) -> Steps:
        """The steps that all hosts have; times and shares are means over the hosts."""
        return self.common.steps

    @property
    def hardware(self) -> Hardware:
        """Devices in the traces (present) with their peaks."""
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
        """Number of accelerators in the traces."""
        return self.hardware.n_devices

    @property
    def n_active(self) -> int:
        """Number of accelerators that ran at least one operation."""
        return sum(len(host.devices.span_ps) for host in self.hosts)

    @property
    def capture_ps(self) -> int:
        """Duration of the longest host's capture."""
        return max((host.duration_ps for host in self.hosts), default=0)

    @property
    def device_time_ps(self) -> int:
        """The sum of the spans of all active devices."""
        return sum(sum(host.devices.span_ps) for host in self.hosts)

    @property
    def device_busy_ps(self) -> int:
        """Time in which an operation ran, summed over devices. Never above `device_time_ps`."""
        return sum(sum(host.devices.busy_ps) for host in self.hosts)

    @property
    def step_time_ps(self) -> float | None:
        """Mean over the hosts and their common steps; None without steps."""
        return float(self.steps.duration_ps.mean()) if len(self.steps) else None

    @property
    def mean_idle_fraction(self) -> float | None:
        """Idle share of the devices, each separately: 1 - busy / device time."""
        return 1.0 - self.device_busy_ps / self.device_time_ps if self.device_time_ps else None

    @property
    def union_idle_fraction(self) -> float | None:
        """Share of the time in which no device of a host works: of the steps if there are any, else of the
        devices' common span.
        """
        if self.kind == "GPU" and len(self.steps):
            busy = int(self.steps.class_ps[:, list(ON_GPU)].sum()) / int(self.steps.duration_ps.sum())
            return min(1.0, max(0.0, 1.0 - busy))
        span = sum(host.devices.union_span_ps for host in self.hosts)
        return 1.0 - sum(host.devices.union_busy_ps for host in self.hosts) / span if span else None

    @property
    def idle_fraction(self) -> float | None:
        """The idle share in headlines: for GPUs with steps the union's, within the steps; else each device's
        own.
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
    """Combine hosts into one run. `corrections_ns`: added to each host's clock, as computed by `clocks`;
    empty if the clocks agree.
    """
    corrections = corrections_ns or (0,) * len(parts)
    starts = [part.start_ns + correction for part, correction in zip(parts, corrections, strict=True)]
    return RunFacts(tuple(parts), common_steps([part.steps for part in parts], starts))


def _device_times(trace: Trace) -> DeviceTimes:
    """For GPUs the streams; for TensorCores the operations, in a span that their steps may widen."""
    roles = planes(trace)
    if roles.hardware == "TPU":
        return _times([_core_spans(trace, plane) for plane in roles.tensor_cores])
    return _times([_gpu_spans(trace, plane) for plane in roles.gpus])


def _gpu_spans(trace: Trace, plane: int) -> tuple[Spans, Spans]:
    """(operations, operations again) of a GPU's streams."""
    rows = stream_events(trace, plane)
    start = trace.events["start_ps"][rows]
    spans = start, start + trace.events["duration_ps"][rows]
    return spans, spans


def _core_spans(trace: Trace, plane: int) -> tuple[Spans, Spans]:
    """(operations, operations and steps) of a TensorCore."""
    spans_by_kind = [
        [device_spans(trace, line) for line in lines_named(trace, plane, names)]
        for names in ((OP_LINE,), STEP_LINES)
    ]
    ops, steps = (
        (
            _joined([spans.start_ps for spans in part]),
            _joined([spans.start_ps + spans.duration_ps for spans in part]),
        )
        for part in spans_by_kind
    )
    return ops, (_joined([ops[0], steps[0]]), _joined([ops[1], steps[1]]))


def _joined(parts: Sequence[Int64s]) -> Int64s:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _times(devices: Sequence[tuple[Spans, Spans]]) -> DeviceTimes:
    """Times of the active devices: those with an operation."""
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
        longest_gap(start, end),
    )


def longest_gap(start_ps: Int64s, end_ps: Int64s) -> tuple[int, int]:
    """Start and end of the longest time between some spans that none of them covers, the first of equals;
    (0, 0) if there is none.
    """
    order = np.argsort(start_ps, kind="stable")
    if len(order) < 2:
        return 0, 0
    covered = np.maximum.accumulate(end_ps[order])[:-1]
    gaps = start_ps[order][1:] - covered
    longest = int(gaps.argmax())
    if gaps[longest] <= 0:
        return 0, 0
    return int(covered[longest]), int(covered[longest] + gaps[longest])
