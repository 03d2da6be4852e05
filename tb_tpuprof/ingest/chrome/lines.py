"""Processes and threads of a Chrome trace → planes and lines, named by the file's metadata events.

Kineto's processes become `/host:CPU` and `/device:GPU:n`; TensorFlow's and JAX's have such names already.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.slices import (
    ANNOTATION,
    ASYNC,
    DEVICE,
    OBJECTS,
    PROCESS_MARKS,
    SYNC,
    THREAD,
    Slices,
    hash_rows,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table, table_from_rows

Rows = npt.NDArray[np.intp]
_DEVICE_KINDS = (DEVICE, ANNOTATION, SYNC)
_FIRST_ASYNC_ID = 1 << 48
# Ids of lines derived from other lines, which analyses leave out (analysis/events/planes.py).
_FIRST_DERIVED_ID = 0xDEADBEEF + 100
_N_DERIVED_IDS = 390
_ORDER = {kind: i for i, kind in enumerate((PROCESS_MARKS, ANNOTATION, DEVICE, SYNC, THREAD, ASYNC, OBJECTS))}
_LINE_KIND = {ASYNC: schema.ASYNC, OBJECTS: schema.ASYNC, PROCESS_MARKS: schema.INSTANTS}


@dataclass
class Names:
    """Contents of metadata events by process, or by (process, thread); later ones win."""

    processes: dict[int, str] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    process_order: dict[int, int] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    thread_order: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def is_xplane(self) -> bool:
        """Whether the processes have names of XPlane planes."""
        return any(name.startswith(("/device:", "/host:")) for name in self.processes.values())


@dataclass(frozen=True)
class Layout:
    """Planes and lines: the tables (without events yet), the line of each slice, and the plane of each
    process.
    """

    planes: Table
    lines: dict[str, npt.NDArray[Any]]
    line_kinds: Table
    line_of_slice: npt.NDArray[np.int32]
    plane_of_pid: dict[int, int]
    thread_lines: dict[tuple[int, int], int]


def names_of(raw: RawEvents) -> Names:
    """Names, labels and orders of processes and threads."""
    names = Names()
    is_meta = raw["phase"][raw.values["event"]] == ord("M")
    columns = [raw.values[name][is_meta].tolist() for name in ("event", "key", "kind", "value")]
    title, pids, tids = raw["name"], raw["pid"], raw["tid"]
    for event, key, kind, value in zip(*columns, strict=True):
        event_name, argument = raw.texts.get(int(title[event])), raw.texts.get(key)
        pid, thread = int(pids[event]), (int(pids[event]), int(tids[event]))
        if kind == schema.TEXT and argument in ("name", "labels"):
            text = raw.texts.get(value).strip()
            if event_name == "process_name":
                names.processes[pid] = text
            elif event_name == "process_labels":
                names.labels[pid] = text
            elif event_name == "thread_name":
                names.threads[thread] = text
        elif kind == schema.INT and argument == "sort_index":
            if event_name == "process_sort_index":
                names.process_order[pid] = value
            elif event_name == "thread_sort_index":
                names.thread_order[thread] = value
    return names


def layout(raw: RawEvents, slices: Slices, names: Names, is_kineto: bool, path: str) -> Layout:
    """Planes ordered by sort index, then as in the file; lines by kind, sort index and thread. Raises
    TraceFormatError for more lines than a profile has.
    """
    key = hash_rows(slices.kind, slices.pid, slices.tid, slices.group)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    counters = raw.rows("C")
    n_lines = len(first) + len(np.unique(raw["pid"][counters]))
    if n_lines > schema.MAX_LINES:
        raise TraceFormatError(path, -1, f"contains {n_lines:,} threads, more than a profile has")
    line_facts = list(
        zip(*(getattr(slices, name)[first].tolist() for name in ("kind", "pid", "tid", "group")), strict=True)
    )
    first_rows = slices.raw[first].tolist()
    pids = {
        pid: int(counters[i])
        for pid, i in zip(
            *(a.tolist() for a in np.unique(raw["pid"][counters], return_index=True)), strict=True
        )
    }
    planes: dict[tuple[int, bool], int] = {(pid, False): first_row for pid, first_row in pids.items()}
    for (kind, pid, _, _), first_row in zip(line_facts, first_rows, strict=True):
        plane = (pid, is_kineto and kind in _DEVICE_KINDS)
        planes[plane] = min(first_row, planes.get(plane, first_row))
    ordered = sorted(
        planes, key=lambda plane: (names.process_order.get(plane[0], 0), plane[1], planes[plane])
    )
    number = {plane: i for i, plane in enumerate(ordered)}
    plane_of = [number[(pid, is_kineto and kind in _DEVICE_KINDS)] for kind, pid, _, _ in line_facts]
    order = sorted(
        range(len(line_facts)), key=lambda i: (plane_of[i], _line_order(raw, names, line_facts[i]))
    )
    new_row = np.empty(len(order), np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    lines = _lines(raw, names, [line_facts[i] for i in order], [plane_of[i] for i in order])
    kinds = [
        (i, _LINE_KIND[line_facts[old][0]]) for i, old in enumerate(order) if line_facts[old][0] in _LINE_KIND
    ]
    return Layout(
        _planes(raw, names, ordered, slices, is_kineto),
        lines,
        table_from_rows(schema.LINE_KINDS, kinds),
        new_row[inverse.reshape(-1)],
        {pid: i for (pid, is_device), i in number.items() if not is_device}
        | {pid: i for (pid, is_device), i in number.items() if is_device and (pid, False) not in number},
        # If a stream and a thread share a number, arrows refer to the stream.
        {
            (line_facts[old][1], line_facts[old][2]): i
            for kind in (THREAD, DEVICE)
            for i, old in enumerate(order)
            if line_facts[old][0] == kind
        },
    )


def _line_order(raw: RawEvents, names: Names, facts: tuple[int, int, int, int]) -> tuple[Any, ...]:
    kind, pid, tid, group = facts
    text = raw.texts.get(tid)
    digits = re.search(r"\d+", text)
    return (
        _ORDER[kind],
        names.thread_order.get((pid, tid), 0),
        int(digits[0][:18]) if digits else 0,
        text,
        raw.texts.get(group),
    )


def _lines(
    raw: RawEvents, names: Names, facts: list[tuple[int, int, int, int]], planes: list[int]
) -> dict[str, npt.NDArray[Any]]:
    ids: list[int] = []
    texts: list[int] = []
    used: set[tuple[int, int]] = set()
    for (kind, pid, tid, group), plane in zip(facts, planes, strict=True):
        texts.append(raw.texts.add(_line_name(raw, names, kind, (pid, tid), group)))
        is_device = names.processes.get(pid, "").startswith("/device:")
        ids.append(_line_id(raw.texts.get(tid), kind, plane, used, is_device))
    display = [names.thread_order.get((pid, tid), 0) for _, pid, tid, _ in facts]
    none = np.zeros(len(facts), np.int64)
    return {
        "plane": np.array(planes, np.int32),
        "id": np.array(ids, np.int64),
        "display_id": np.array(display, np.int64),
        "name": np.array(texts, np.int32),
        "first_event": none,
        "n_events": none.copy(),
    }


def _line_id(tid: str, kind: int, plane: int, used: set[tuple[int, int]], is_device: bool) -> int:
    """The thread's number if it has one, else one derived from its text; unique within the plane. Only an
    XPlane's device (`is_device`) has lines whose own numbers say that they are derived.
    """
    number = number_of(tid)
    if kind in (ANNOTATION, SYNC):
        number = _FIRST_DERIVED_ID
    elif kind not in (THREAD, DEVICE) or (not is_device and _is_derived(number)):
        number = _FIRST_ASYNC_ID
    limit = number + _N_DERIVED_IDS if kind in (ANNOTATION, SYNC) else -1
    while (plane, number) in used:
        number = number + 1 if number != limit else _FIRST_ASYNC_ID
    used.add((plane, number))
    return number


def _is_derived(number: int) -> bool:
    return _FIRST_DERIVED_ID - 100 <= number & 0xFFFFFFFF < _FIRST_DERIVED_ID + 400


def number_of(text: str) -> int:
    """The number of a process or thread; for one that is a text, the text's checksum."""
    match = re.fullmatch(r"(?:stream |thread )?(-?\d{1,18})", text.strip())
    return int(match[1]) if match else zlib.crc32(text.encode())


def _line_name(raw: RawEvents, names: Names, kind: int, thread: tuple[int, int], group: int) -> str:
    tid = raw.texts.get(thread[1])
    stream = re.sub(r"^stream ", "", tid)
    thread_name = names.threads.get(thread, "")
    if kind in _DEVICE_KINDS:
        device_line_name = (
            thread_name
            if thread_name and not re.match(r"(stream|thread) ", thread_name, re.IGNORECASE)
            else f"Stream #{stream}"
        )
        return {
            DEVICE: device_line_name,
            ANNOTATION: f"Annotations - from #{stream}",
            SYNC: f"Synchronization - from #{stream}",
        }[kind]
    if kind == PROCESS_MARKS:
        return "Marks of the process"
    if kind in (ASYNC, OBJECTS):
        return raw.texts.get(group) or ("Async" if kind == ASYNC else "Objects")
    return thread_name or (f"thread {tid}" if tid.lstrip("-").isdigit() else tid) or "(no thread)"


def _planes(
    raw: RawEvents, names: Names, planes: list[tuple[int, bool]], slices: Slices, is_kineto: bool
) -> Table:
    hosts = set(np.unique(slices.pid[slices.kind == THREAD]).tolist()) if is_kineto else set()
    texts = [_plane_name(raw, names, pid, is_device, pid in hosts) for pid, is_device in planes]
    rows = []
    for (pid, _), text in zip(planes, texts, strict=True):
        number = raw.texts.get(pid)
        is_repeated = texts.count(text) > 1 if len(texts) < 1000 else True
        title = (
            f"{text} (process {number})"
            if is_repeated and not text.startswith(("/host:", "/device:"))
            else text
        )
        rows.append((number_of(number), raw.texts.add(title)))
    return table_from_rows(schema.PLANES, rows)


def _plane_name(raw: RawEvents, names: Names, pid: int, is_device: bool, is_host: bool) -> str:
    name, label, text = names.processes.get(pid, ""), names.labels.get(pid, ""), raw.texts.get(pid)
    if is_device:
        kind = re.match(r"(MTIA|XPU|HPU)\b", label or name)
        digits = re.search(r"\d+", text)
        return f"/device:{kind[1] if kind else 'GPU'}:{digits[0] if digits else 0}"
    if name.startswith(("/device:", "/host:")):
        return name
    if is_host and text.lstrip("-").isdigit():
        return "/host:CPU"
    title = f"{name} ({label})" if name and label else name or label
    return title or (f"process {text}" if text.lstrip("-").isdigit() else text) or "Whole trace"
