"""What compiled operations spend their time on, in a sentence about categories: the headline of a run without
steps.

A single operation says little where a program has thousands, or where several like ones share the time.
Waiting is a category of its own, whatever it is waited for: `copy-done`, `async-done`, infeed.
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
_WORDS = {"TPU": ("core", "TPU"), "GPU": ("GPU", "GPU"), "CPU": ("device", "CPU")}


@dataclass(frozen=True)
class OpCategories:
    """Self times of operations in ps, summed over the devices: by category, and `offload_ps` of it waiting
    for transfers to or from the host's memory. `kind`: TPU, GPU or CPU.
    """

    times: dict[str, int]
    offload_ps: int
    n_devices: int
    kind: str

    @property
    def busy_ps(self) -> int:
        """Of all operations."""
        return sum(self.times.values())

    @property
    def waiting(self) -> dict[str, int]:
        """The categories in which a device only waits."""
        return {name: time for name, time in self.times.items() if name in TRANSFERS or is_waiting(name)}


@once
def offload_wait_ps(trace: Trace) -> int:
    """Time in which one host's TensorCores wait for transfers to or from the host's memory to end: self times
    of their dones.
    """
    is_offload = async_ops(trace).is_offload
    if not is_offload.any():
        return 0
    lines = [line for plane in planes(trace).tensor_cores for line in lines_named(trace, plane, (OP_LINE,))]
    spans = [device_spans(trace, line) for line in lines]
    return sum(int(one.self_ps[is_offload[trace.events["metadata"][one.rows]]].sum()) for one in spans)


@once
def host_categories(trace: Trace) -> OpCategories:
    """The categories of one host's compiled operations; no times where there are none."""
    return op_categories(hlo_ops(trace), offload_wait_ps(trace))


def op_categories(ops: HloOps, offload_ps: int) -> OpCategories:
    """The categories of given operations but SparseCores', which run beside the others."""
    main = np.where(ops.is_sparse, 0, ops.self_ps)
    totals = (
        sum_by(ops.category.codes, main, len(ops.category.strings)) if len(ops) else np.zeros(0, np.int64)
    )
    times: dict[str, int] = {}
    for name, time in zip(ops.category.strings, totals.tolist(), strict=False):
        times[name] = times.get(name, 0) + time
    return OpCategories(times, offload_ps, ops.n_devices, ops.kind)


def sum_categories(parts: Sequence[OpCategories]) -> OpCategories:
    """Several hosts together; the kind is that of the first with operations."""
    first = next((part for part in parts if part.busy_ps), parts[0])
    names = dict.fromkeys(name for part in parts for name in part.times)
    times = {name: sum(part.times.get(name, 0) for part in parts) for name in names}
    return replace(
        first,
        times=times,
        offload_ps=sum(p.offload_ps for p in parts),
        n_devices=sum(p.n_devices for p in parts),
    )


def category_sentence(found: OpCategories) -> str:
    """Whether most of the operations' time is waiting, and for what; else which category takes most. Shares
    are of that time.
    """
    busy, waiting = found.busy_ps, found.waiting
    word, kind = _WORDS.get(found.kind, ("device", "device"))
    name, time = max(found.times.items(), key=lambda item: item[1])
    waited = sum(waiting.values())
    if waited and waited >= max((t for n, t in found.times.items() if n not in waiting), default=0):
        told = _time(waited, found, word)
        return (
            f"{format_fraction(waited / busy)} of the operations' time on the {kind} is waiting for "
            f"{_awaited(found)}: {told}."
        )
    return (
        f"`{name}` takes {format_fraction(time / busy)} of the operations' time on the {kind}: "
        f"{_time(time, found, word)}."
    )


def _awaited(found: OpCategories) -> str:
    """What is waited for, and the category that shows it."""
    waiting = found.waiting
    name, time = max(waiting.items(), key=lambda item: item[1])
    if name in TRANSFERS:
        return f"the host (`{name}`)"
    if found.offload_ps >= _MOST * sum(waiting.values()):
        return f"host-offload copies (`{name}`)"
    what = {"copy-done": "asynchronous copies", "async-done": "asynchronous operations"}.get(
        name, "transfers between devices"
    )
    return (
        f"{what} (`{name}`)"
        if time >= _MOST * sum(waiting.values())
        else f"{what} and others (`{name}` most)"
    )


def _time(time_ps: int, found: OpCategories, word: str) -> str:
    n = found.n_devices
    each = (
        f" summed over {n:,} {word}s, {format_time(time_ps / n)} per {word}"
        if n > 1 and found.kind != "CPU"
        else ""
    )
    return f"{format_time(time_ps)}{each}"


def without_steps_sentence(found: OpCategories) -> str:
    """The headline of a run without steps; empty where no compiled operation was traced."""
    return (
        f"No steps were found, so there is no step time. {category_sentence(found)}" if found.busy_ps else ""
    )


def told_by_category(finding: Finding, n_steps: int, found: OpCategories, device_busy_ps: int) -> Finding:
    """The verdict on a run; without steps it speaks of categories, where nearly all operations on the devices
    are compiled ones.
    """
    is_told = not n_steps and found.kind != "CPU" and found.busy_ps >= _MOST * device_busy_ps
    text = without_steps_sentence(found) if is_told else ""
    return replace(finding, text=text) if text else finding
