"""Utilization of accelerators: duty cycle of the chips; FLOP rate and memory bandwidth as shares of peaks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import known_share
from tb_tpuprof.analysis.device.hardware import Hardware, chip_of_plane, hardware
from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import (
    MODULE_LINES,
    OP_LINE,
    STEP_LINES,
    line_events,
    lines_named,
    planes,
)
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.analysis.ops.roofline import total_work
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
SPARSE_OP_LINE = "Sparse Core Ops"
_MAX_NAME = 1000

# Operations in which a TensorCore only waits or transfers data: not on duty. Source: OpenXLA's profiler
# (`IsOffDutyOp`).
OFF_DUTY = frozenset(
    (
        "infeed",
        "outfeed",
        "host send",
        "host send-done",
        "host recv",
        "host recv-done",
        "async-done",
        "megacore fusion",
    )
)


@dataclass(frozen=True)
class Utilization:
    """Work and time of one host's accelerators, as sums that can be added over hosts.

    `busy_ps` of `chip_ps`: time that chips were on duty, and their profiled time (0: unknown, as on GPUs).
    `flops` and `hbm_bytes`: work done in `device_ps`, the profiled time of all devices (TPU: cores).
    `max_flops` and `max_bytes`: the most that their peaks allow in that time, 0 if no peak is known.
    `roof_flops`: FLOPs × the peak ÷ the peak at the precision of the operands (see `Work`), 0: as `flops`.
    """

    busy_ps: int = 0
    chip_ps: int = 0
    device_ps: int = 0
    flops: float = 0.0
    hbm_bytes: float = 0.0
    max_flops: float = 0.0
    max_bytes: float = 0.0
    roof_flops: float = 0.0

    @property
    def duty_cycle(self) -> float | None:
        """Share of the profiled time in which a chip is on duty: busy / (busy + idle), over all chips; None
        if unknown.

        A chip is on duty while any of its TensorCores runs an operation other than OFF_DUTY, or its
        SparseCores run any. The profiled time of a chip is from the start of its first step, module or
        operation to the end of its last.
        """
        return self.busy_ps / self.chip_ps if self.chip_ps else None

    @property
    def flops_fraction(self) -> float | None:
        """FLOPs done / FLOPs that the peak allows in the profiled time, including idle time, each at the
        precision of its operands; None without a peak or FLOPs, and for more than the peak allows.
        """
        return known_share(self.roof_flops or self.flops, self.max_flops) if self.flops else None

    @property
    def bandwidth_fraction(self) -> float | None:
        """Bytes moved to and from HBM / bytes that the peak allows in the profiled time; None without a peak
        or bytes, and for more than the peak allows.
        """
        return known_share(self.hbm_bytes, self.max_bytes) if self.hbm_bytes else None

    @property
    def roofline_fraction(self) -> float | None:
        """FLOP rate / the best that the roofline allows for these operations: min(peak, FLOPs per byte × peak
        bandwidth).

        This equals the larger of the FLOPs' and the bytes' share of their peak: the resource that binds
        first.
        """
        if self.flops_fraction is None or self.bandwidth_fraction is None:
            return None
        return max(self.flops_fraction, self.bandwidth_fraction)

    @property
    def bound_by(self) -> str:
        """The limit that the roofline's optimum meets: `compute` or `memory`; empty if unknown."""
        if self.flops_fraction is None or self.bandwidth_fraction is None:
            return ""
        return "compute" if self.flops_fraction >= self.bandwidth_fraction else "memory"


@once
def utilization(trace: Trace) -> Utilization:
    """Utilization of one host's accelerators. On GPUs the work is known only for compiled programs whose HLO
    is in the trace, and for PyTorch's operators whose inputs are.
    """
    machine, ops = hardware(trace), op_stats(trace).compiled
    if machine.kind == "TPU":
        return _utilization_of(machine, ops.span_ps, _work(device_ops(trace)), _duty(trace))
    if machine.kind == "GPU":
        return _utilization_of(machine, ops.span_ps, _work(device_ops(trace)), (0, 0))
    return Utilization()


def sum_utilization(parts: Sequence[Utilization]) -> Utilization:
    """The sum of several hosts. Those whose trace does not name the device have the peaks of the first that
    does, as on the pages of operations.
    """
    names = ("busy_ps", "chip_ps", "device_ps", "flops", "hbm_bytes", "max_flops", "max_bytes", "roof_flops")
    total = Utilization(*(sum(getattr(part, name) for part in parts) for name in names))
    for name in ("max_flops", "max_bytes"):
        rates = [getattr(part, name) / part.device_ps for part in parts if part.device_ps]
        peak_rate = next((rate for rate in rates if rate), 0.0)
        unnamed_ps = sum(part.device_ps for part in parts if not getattr(part, name))
        total = replace(total, **{name: getattr(total, name) + peak_rate * unnamed_ps})
    return total


def with_work_of(use: Utilization, ops: HloOps) -> Utilization:
    """The utilization with the work of operations of several hosts: an operation's work that is unknown on
    any host is in no sum, as on the pages of operations.
    """
    flops, hbm_bytes, roof_flops = _work(ops)
    return replace(use, flops=flops, hbm_bytes=hbm_bytes, roof_flops=roof_flops)


def _utilization_of(
    machine: Hardware, device_ps: int, work: tuple[float, float, float], duty: tuple[int, int]
) -> Utilization:
    """The utilization by `work` (see `_work`) and time on duty and profiled time of the chips."""
    seconds = device_ps / 1e12
    flops, hbm_bytes, roof_flops = work
    return Utilization(
        *duty,
        device_ps,
        flops,
        hbm_bytes,
        machine.peak_flops_per_s * seconds,
        machine.peak_hbm_bytes_per_s * seconds,
        roof_flops,
    )


def _work(ops: HloOps) -> tuple[float, float, float]:
    """FLOPs, HBM bytes and `roof_flops` of all operations with known work, as on the roofline page."""
    total = total_work(ops.work, ~(ops.is_container | ops.is_sparse))
    return float(total.flops[0]), float(total.space_bytes[0, 0]), float(total.roof_flops[0])


def _core_of(name: str, core_named: Mapping[str, int], default: int) -> int:
    """The TensorCore of a SparseCore without a chip: its name and a space begin the SparseCore's name."""
    words = name[:_MAX_NAME].split(" ")
    beginnings = itertools.accumulate(words[:-1], lambda begun, word: f"{begun} {word}")
    return min((core_named[begun] for begun in beginnings if begun in core_named), default=default)


def _duty(trace: Trace) -> tuple[int, int]:
    """Time on duty and profiled time in ps, summed over chips. A core without `core_details` counts as a
    chip.
    """
    chip_of = chip_of_plane(trace)
    roles = planes(trace)
    chips: dict[tuple[str, int], list[int]] = {}
    core_named = {trace.plane_names[core]: core for core in reversed(roles.tensor_cores)}
    for plane in (*roles.tensor_cores, *roles.sparse_cores):
        core = _core_of(trace.plane_names[plane], core_named, plane)
        key = (
            ("chip", chip_of[plane])
            if plane in chip_of
            else ("chip", chip_of[core])
            if core in chip_of
            else ("core", core)
        )
        chips.setdefault(key, []).append(plane)
    duty_of_chips = [_duty_of_chip(trace, members) for members in chips.values()]
    return sum(busy for busy, _ in duty_of_chips), sum(extent for _, extent in duty_of_chips)


def _duty_of_chip(trace: Trace, members: list[int]) -> tuple[int, int]:
    """Time on duty and profiled time in ps of one chip's planes, by the times of the trace: only some lines
    have the device's own clock. Both 0 if it has no line of operations, as on a server that traces programs
    alone.
    """
    off_duty = [i for i in (trace.strings.find(name) for name in OFF_DUTY) if i >= 0]
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    none = np.empty(0, np.int64)
    starts, ends, first, last = [none], [none], [], []
    for plane in members:
        for line in lines_named(trace, plane, (*STEP_LINES, *MODULE_LINES, OP_LINE, SPARSE_OP_LINE)):
            rows = line_events(trace, line)
            start = trace.events["start_ps"][rows]
            end = start + trace.events["duration_ps"][rows]
            if not len(start):
                continue
            first.append(int(start.min()))
            last.append(int(end.max()))
            name = trace.line_names[line]
            if name in (OP_LINE, SPARSE_OP_LINE):
                is_on_duty = name == SPARSE_OP_LINE or ~np.isin(
                    category[trace.events["metadata"][rows]], off_duty
                )
                mask = np.broadcast_to(is_on_duty, len(start))
                starts.append(start[mask])
                ends.append(end[mask])
    if not first or not any(lines_named(trace, plane, (OP_LINE, SPARSE_OP_LINE)) for plane in members):
        return 0, 0
    return union_ps(np.concatenate(starts), np.concatenate(ends)), max(last) - min(first)


def idle_fraction(ops: OpMetrics) -> float | None:
    """Share of the profiled time in which no operation runs; None if nothing was profiled."""
    return ops.idle_ps / ops.span_ps if ops.span_ps else None
