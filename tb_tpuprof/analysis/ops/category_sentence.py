"""A sentence about the categories in which compiled operations spend their time: the headline of a run
without steps.

A single operation means little in a program with thousands, or where several similar ones share the time.
Waiting has its own categories, whatever it waits for: `copy-done`, `async-done`, infeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import TRANSFERS, HloOps
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.ops.recommend import Finding
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

_MOST = 0.95
_MOSTLY_IDLE = 0.5
_WORDS = {"TPU": ("core", "TPU"), "GPU": ("GPU", "GPU"), "CPU": ("device", "CPU")}


@dataclass(frozen=True)
class OpCategories:
    """Self times of operations in ps, summed over the devices: by category; `offload_ps` is the part spent
    waiting for transfers to or from the host's memory. `kind`: TPU, GPU or CPU.
    """

    times: dict[str, int]
    offload_ps: int
    n_devices: int
    kind: str

    @property
    def busy_ps(self) -> int:
        """Self time of all operations."""
        return sum(self.times.values())

    @property
    def waiting(self) -> dict[str, int]:
        """The categories in which a device only waits."""
        return {name: time for name, time in self.times.items() if name in TRANSFERS or is_waiting(name)}

    @property
    def waits_most(self) -> bool:
        """Whether waiting takes at least as much time as any category of work."""
        waiting = self.waiting
        work = max((time for name, time in self.times.items() if name not in waiting), default=0)
        return bool(waiting) and 0 < sum(waiting.values()) >= work


@once
def offload_wait_ps(trace: Trace) -> int:
    """Time in ps that one host's TensorCores wait for transfers to or from the host's memory to end: the self
    times of the dones of these.
    """
    is_offload = async_ops(trace).is_offload
    if not is_offload.any():
        return 0
    lines = [line for plane in planes(trace).tensor_cores for line in lines_named(trace, plane, (OP_LINE,))]
    spans = [device_spans(trace, line) for line in lines]
    return sum(
        int(line_spans.self_ps[is_offload[trace.events["metadata"][line_spans.rows]]].sum())
        for line_spans in spans
    )


@once
def host_categories(trace: Trace) -> OpCategories:
    """The categories of one host's compiled operations; `times` is empty if there are none."""
    return op_categories(hlo_ops(trace), offload_wait_ps(trace))


def op_categories(ops: HloOps, offload_ps: int) -> OpCategories:
    """The categories of the given operations except those of SparseCores, which run concurrently with the
    others.
    """
    main = np.where(ops.is_sparse, 0, ops.self_ps)
    totals = (
        sum_by(ops.category.codes, main, len(ops.category.strings)) if len(ops) else np.zeros(0, np.int64)
    )
    times: dict[str, int] = {}
    for name, time in zip(ops.category.strings, totals.tolist(), strict=False):
        times[name] = times.get(name, 0) + time
    return OpCategories(times, offload_ps, ops.n_devices, ops.kind)


def sum_categories(parts: Sequence[OpCategories]) -> OpCategories:
    """The sum of several hosts; the kind is that of the first host with operations."""
    first = next((part for part in parts if part.busy_ps), parts[0])
    names = dict.fromkeys(name for part in parts for name in part.times)
    times = {name: sum(part.times.get(name, 0) for part in parts) for name in names}
    return replace(
        first,
        times=times,
        offload_ps=sum(p.offload_ps for p in parts),
        n_devices=sum(p.n_devices for p in parts),
    )


def category_sentence(categories: OpCategories) -> str:
    """A sentence that says what most of the operations' time is waiting for; if it is not waiting, which
    category takes the most. Shares are of the operations' time.
    """
    busy, waiting = categories.busy_ps, categories.waiting
    word, kind = _WORDS.get(categories.kind, ("device", "device"))
    name, time = max(categories.times.items(), key=lambda item: item[1])
    waited = sum(waiting.values())
    if categories.waits_most:
        waited_text = _time(waited, categories, word)
        return (
            f"{format_fraction(waited / busy)} of the operations' time on the {kind} is waiting for "
            f"{_awaited(categories)}: {waited_text}."
        )
    return (
        f"`{name}` takes {format_fraction(time / busy)} of the operations' time on the {kind}: "
        f"{_time(time, categories, word)}."
    )


def _awaited(categories: OpCategories) -> str:
    """What the device waits for, and the category that shows it."""
    waiting = categories.waiting
    name, time = max(waiting.items(), key=lambda item: item[1])
    if name in TRANSFERS:
        return f"the host (`{name}`)"
    if categories.offload_ps >= _MOST * sum(waiting.values()):
        return f"host-offload copies (`{name}`)"
    what = {"copy-done": "asynchronous copies", "async-done": "asynchronous operations"}.get(
        name, "transfers between devices"
    )
    return (
        f"{what} (`{name}`)"
        if time >= _MOST * sum(waiting.values())
        else f"{what} and other operations (largest: `{name}`)"
    )


def _time(time_ps: int, categories: OpCategories, word: str) -> str:
    n = categories.n_devices
    per_device = (
        f" summed over {n:,} {word}s, {format_time(time_ps / n)} per {word}"
        if n > 1 and categories.kind != "CPU"
        else ""
    )
    return f"{format_time(time_ps)}{per_device}"


def verdict_by_category(
    verdict: Finding, categories: OpCategories, device_busy_ps: int, idle: DeviceIdle | None
) -> Finding:
    """The verdict on a run without steps: the devices' idle time if it is most of their time, else the
    category that takes the most, if nearly all operations on the devices are compiled ones.
    """
    is_covered = categories.kind != "CPU" and categories.busy_ps >= _MOST * device_busy_ps > 0
    largest = verdict.text if device_busy_ps else ""
    by_category = category_sentence(categories) if is_covered else largest
    if not by_category:
        return verdict
    main, why = by_category, (largest,) if is_covered else ()
    if idle and idle.fraction >= _MOSTLY_IDLE:
        return replace(verdict, level="warn", category="other", text=idle.sentence, why=(by_category,))
    if not (is_covered and categories.waits_most):
        return replace(verdict, text=main, why=why)
    advice = (*_waiting_advice(categories), *verdict.advice)
    return replace(verdict, level="warn", text=main, why=why, advice=advice)


def _waiting_advice(categories: OpCategories) -> tuple[str, ...]:
    """What shortens the wait for copies to and from the host's memory, if these are what the device waits
    for.
    """
    if categories.offload_ps < _MOST * sum(categories.waiting.values()):
        return ()
    return (
        "Offload fewer arrays to the host's memory: the copies take longer than the compute that could hide "
        "them. Keep on the device what fits there (the memory profile shows how much is free).",
    )


@dataclass(frozen=True)
class DeviceIdle:
    """How much of their time devices idle: of `span_ps`, from the first operation to the last, on each of
    `n_devices` of a kind (TPU, GPU).
    """

    fraction: float
    span_ps: float
    n_devices: int
    kind: str

    @property
    def sentence(self) -> str:
        """The GPU is idle for 88.2% of the 32.6 ms between its first and its last operation."""
        word = _WORDS.get(self.kind, ("device", "device"))[0]
        subject = f"The {self.kind} is" if self.n_devices < 2 else f"The {self.n_devices:,} {word}s are"
        whose = "its" if self.n_devices < 2 else "their"
        return (
            f"{subject} idle for {format_fraction(self.fraction)} of the {format_time(self.span_ps)} between "
            f"{whose} first and {whose} last operation."
        )
