"""PyTorch Kineto's categories and arguments → what profilers of XPlanes write: device lines, launches, steps,
kernel details.

    cudaLaunchKernel "correlation" 9 ┄ kernel "correlation" 9    both: correlation_id 9; kernel: tf_op = the
                                                                 operator around the launch
                                                                 launched_by = its row
    ProfilerStep#3   ▏──────────▏                                _r 1, step_num 3; the outermost events that
    backward thread    ▏─▏ ▏──▏                                  start inside it on other threads are its
                                                                 consumers (_ct, _c)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.kineto_inputs import input_columns
from tb_tpuprof.ingest.chrome.kineto_launches import Roles, operations
from tb_tpuprof.ingest.chrome.slices import ANNOTATION, DEVICE, SYNC, THREAD, Slices, hash_rows
from tb_tpuprof.trace import schema

Int64s = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

OPERATION, KERNEL, LAUNCH, COPY, GPU_ANNOTATION, GPU_SYNC, OTHER_DEVICE, USER_ANNOTATION = range(1, 9)
# Categories of current versions and of PyTorch 1.8 to 1.11.
CATEGORIES = {
    "cpu_op": OPERATION,
    "Operator": OPERATION,
    "user_annotation": USER_ANNOTATION,
    "kernel": KERNEL,
    "Kernel": KERNEL,
    "gpu_memcpy": COPY,
    "Memcpy": COPY,
    "gpu_memset": COPY,
    "Memset": COPY,
    "cuda_runtime": LAUNCH,
    "Runtime": LAUNCH,
    "cuda_driver": LAUNCH,
    "xpu_runtime": LAUNCH,
    "xpu_driver": LAUNCH,
    "mtia_runtime": LAUNCH,
    "gpu_user_annotation": GPU_ANNOTATION,
    "cuda_sync": GPU_SYNC,
    "mtia_ccp_events": OTHER_DEVICE,
}
# MTIA's events that compute nothing; all others are its kernels.
_MTIA_NAMES = {"dma_request": COPY, "event_wait": GPU_SYNC, "event_record": GPU_SYNC}
_LINE_KINDS = {KERNEL: DEVICE, COPY: DEVICE, GPU_ANNOTATION: ANNOTATION, GPU_SYNC: SYNC}
_STEP = re.compile(r"ProfilerStep[#*](\d{1,15})")
STEP_NAME = "ProfilerStep"
LOADER = "enumerate(DataLoader)#"
_STEP_CONTEXT = 63  # a context type that no profiler uses


@dataclass(frozen=True)
class Stat:
    """A stat of some slices: their rows, ascending, and the value of each; TEXT values are ids of texts."""

    name: str
    owner: Array
    kind: int
    value: Int64s


def listed_devices(raw: RawEvents) -> dict[int, dict[str, Any]]:
    """The file's `deviceProperties` by id."""
    listed = raw.members.get("deviceProperties")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {entry["id"]: entry for entry in entries if isinstance(entry.get("id"), int)}


def categories(raw: RawEvents) -> npt.NDArray[np.uint8]:
    """The role of each raw event by its category, 0 if the category is not Kineto's."""
    role = np.zeros(len(raw.texts.items) + 1, np.uint8)
    for name, number in CATEGORIES.items():
        text_id = raw.texts.find(name)
        if text_id >= 0:
            role[text_id] = number
    roles: npt.NDArray[np.uint8] = role[raw["cat"]]
    others = np.flatnonzero(roles == OTHER_DEVICE)
    refined = np.full(len(raw.texts.items) + 1, KERNEL, np.uint8)
    for name, refined_role in _MTIA_NAMES.items():
        refined[raw.texts.find(name)] = refined_role
    refined[-1] = KERNEL
    roles[others] = refined[raw["name"][others]]
    return roles


def on_devices(slices: Slices, role: npt.NDArray[np.uint8]) -> Slices:
    """Slices, with those of devices moved to line kinds of their own."""
    kinds = np.zeros(256, np.uint8)
    for category_role, kind_of_line in _LINE_KINDS.items():
        kinds[category_role] = kind_of_line
    kind = np.where(slices.kind == THREAD, kinds[role[slices.raw]], 0).astype(np.uint8)
    return replace(slices, kind=np.where(kind > 0, kind, slices.kind))


def step_numbers(raw: RawEvents, slices: Slices, role: npt.NDArray[np.uint8]) -> Int64s:
    """The step number of each slice that is a step of the host, else -1."""
    number_of_text = np.full(len(raw.texts.items) + 1, -1, np.int64)
    for i, text in enumerate(raw.texts.items):
        if text.startswith(b"ProfilerStep"):
            match = _STEP.fullmatch(text.decode("utf-8", "replace"))
            number_of_text[i] = int(match[1]) if match else -1
    is_host = (slices.kind == THREAD) & np.isin(role[slices.raw], (OPERATION, USER_ANNOTATION))
    numbers: Int64s = np.where(is_host, number_of_text[raw["name"][slices.raw]], -1)
    return numbers


def stats_of(
    raw: RawEvents, slices: Slices, line: Array, role: npt.NDArray[np.uint8], steps: Int64s
) -> list[Stat]:
    """Stats of the slices, which are in the order of the trace's events on `line`."""
    slice_role = role[slices.raw]
    correlation = _numbers(raw, "correlation", slices)
    has_launch = (
        (correlation > 0)
        & np.isin(slice_role, (KERNEL, COPY, LAUNCH))
        & np.isin(slices.kind, (THREAD, DEVICE))
    )
    external = np.maximum(_numbers(raw, "External id", slices), _numbers(raw, "external id", slices))
    roles = _roles(raw, slices, slice_role, steps)
    graph, node = (_numbers(raw, name, slices) for name in ("graph id", "graph node id"))
    ids = (external, np.where(has_launch, correlation, -1), graph, node)
    operation = operations(raw, slices, line, roles, ids)
    stats = [
        _stat("correlation_id", schema.INT, has_launch, correlation),
        _stat("tf_op", schema.TEXT, operation.name >= 0, operation.name),
        _stat("launched_by", schema.INT, operation.operator >= 0, operation.operator),
        _details(raw, slices, slice_role),
        _copied_bytes(raw, slices, slice_role),
    ]
    stats += [Stat(*columns) for columns in input_columns(raw, slices, np.flatnonzero(roles.operator))]
    if (steps >= 0).any():
        stats += [
            _stat("_r", schema.INT, steps >= 0, np.ones(len(steps), np.int64)),
            _stat("step_num", schema.INT, steps >= 0, steps),
        ]
        stats += _step_ties(slices, line, steps)
    return stats


def _roles(raw: RawEvents, slices: Slices, role: Array, steps: Int64s) -> Roles:
    """Operators, launches and device activity. Steps and waits for a data loader are not operators, although
    old files mark them as such.
    """
    on_thread, on_device = slices.kind == THREAD, slices.kind == DEVICE
    is_loader = np.array([text.startswith(LOADER.encode()) for text in raw.texts.items] + [False], np.bool_)
    is_operator = on_thread & (role == OPERATION) & (steps < 0) & ~is_loader[raw["name"][slices.raw]]
    return Roles(is_operator, on_thread & (role == LAUNCH), on_device & np.isin(role, (KERNEL, COPY)))


def _stat(name: str, kind: int, selected: npt.NDArray[np.bool_], values: Int64s) -> Stat:
    return Stat(name, np.flatnonzero(selected), kind, values[selected])


def dense(raw: RawEvents, name: str, kinds: tuple[int, ...], missing: int = -1) -> Int64s:
    """One value of an argument per raw event, `missing` if it has none."""
    event, kind, value = raw.argument(name)
    fits = np.isin(kind, kinds)
    result = np.full(len(raw), missing, np.int64)
    result[event[fits]] = value[fits]
    return result


def _numbers(raw: RawEvents, name: str, slices: Slices) -> Int64s:
    numbers: Int64s = dense(raw, name, (schema.INT,))[slices.raw]
    return numbers


def _details(raw: RawEvents, slices: Slices, role: Array) -> Stat:
    """`kernel_details` of kernels, as the CUDA profiler of XPlanes writes it: registers, shared memory, grid,
    block, occupancy.

    Every kernel has the stat, which distinguishes kernels from copies. It is empty if the file has no launch
    parameters, as for kernels of CUDA and HIP graphs.
    """
    rows = np.flatnonzero((role == KERNEL) & (slices.kind == DEVICE))
    events = slices.raw[rows]
    parts = [
        dense(raw, name, (schema.INT, schema.TEXT))[events]
        for name in ("registers per thread", "shared memory", "grid", "block")
    ]
    whole, real = (
        dense(raw, "est. achieved occupancy %", (kind,), -1)[events] for kind in (schema.INT, schema.DOUBLE)
    )
    occupancy = np.where(real != -1, real.view(np.float64), whole.astype(np.float64))
    if not len(rows):
        return Stat("kernel_details", rows, schema.TEXT, np.empty(0, np.int64))
    _, first, inverse = np.unique(
        hash_rows(*parts, occupancy.view(np.int64)), return_index=True, return_inverse=True
    )
    texts = [_detail(raw, [int(part[i]) for part in parts], float(occupancy[i])) for i in first.tolist()]
    return Stat(
        "kernel_details",
        rows,
        schema.TEXT,
        np.array([raw.texts.add(text) for text in texts], np.int64)[inverse.reshape(-1)],
    )


def _detail(raw: RawEvents, parts: list[int], occupancy: float) -> str:
    registers, shared, grid, block = parts
    words = [f"regs:{registers}"] if registers >= 0 else []
    # Static and dynamic shared memory together: the file does not distinguish them.
    words += [f"static_shared:{shared}"] if shared >= 0 else []
    words += [
        f"{name}:{text}"
        for name, part in (("grid", grid), ("block", block))
        if (text := re.sub(r"[\[\]\s]", "", raw.texts.get(part)))
    ]
    words += [f"occ_pct:{occupancy:g}"] if 0 <= occupancy <= 100 else []
    return " ".join(words)


def _copied_bytes(raw: RawEvents, slices: Slices, role: Array) -> Stat:
    """Bytes of copies between memories, where the file states them; fills copy nothing."""
    n_bytes = _numbers(raw, "bytes", slices)
    fills = np.array([text[:6].lower() == b"memset" for text in raw.texts.items] + [False], np.bool_)
    is_copy = (role == COPY) & (slices.kind == DEVICE) & ~fills[raw["name"][slices.raw]]
    return _stat("copied_bytes", schema.INT, is_copy & (n_bytes >= 0), n_bytes)


def _step_ties(slices: Slices, line: Array, steps: Int64s) -> list[Stat]:
    """Steps as producers of the outermost events that start inside them on other threads of their process."""
    steps_by_time = np.flatnonzero(steps >= 0)
    steps_by_time = steps_by_time[np.argsort(slices.start_ps[steps_by_time], kind="stable")]
    start = slices.start_ps[steps_by_time]
    outermost = np.flatnonzero(
        (slices.kind == THREAD) & (slices.duration_ps > 0) & (steps < 0) & ~np.isin(line, line[steps_by_time])
    )
    outermost = outermost[
        _is_outermost(line[outermost], slices.start_ps[outermost], slices.duration_ps[outermost])
    ]
    step_index = np.searchsorted(start, slices.start_ps[outermost], "right") - 1
    step = steps_by_time[np.maximum(step_index, 0)]
    inside = (step_index >= 0) & (
        slices.start_ps[outermost] < slices.start_ps[step] + slices.duration_ps[step]
    )
    inside &= slices.pid[outermost] == slices.pid[step]
    outermost, step_index = outermost[inside], step_index[inside]
    steps_by_time, order = np.sort(steps_by_time), np.argsort(steps_by_time, kind="stable")
    number = np.arange(len(order), dtype=np.int64)
    return [
        Stat("_pt", steps_by_time, schema.INT, np.full(len(steps_by_time), _STEP_CONTEXT, np.int64)),
        Stat("_p", steps_by_time, schema.INT, number[order]),
        Stat("_ct", outermost, schema.INT, np.full(len(outermost), _STEP_CONTEXT, np.int64)),
        Stat("_c", outermost, schema.INT, step_index.astype(np.int64)),
    ]


def _is_outermost(line: Array, start: Int64s, duration: Int64s) -> npt.NDArray[np.bool_]:
    """Whether each event starts after all earlier ones of its line have ended. Rows are sorted by line and
    start.
    """
    if not len(line):
        return np.empty(0, np.bool_)
    first = np.append(True, line[1:] != line[:-1])
    number = np.cumsum(first) - 1
    # Put all lines one after another on one axis, so that a single running maximum serves them all.
    low = start[first]
    length = np.maximum.reduceat(start + duration, np.flatnonzero(first)) - low + 1
    begin = start + (np.cumsum(length) - length - low)[number]
    end = np.maximum.accumulate(begin + duration)
    outer: npt.NDArray[np.bool_] = first | (begin >= np.append(-1, end[:-1]))
    return outer
