"""Chrome trace JSON (PyTorch Kineto's, TensorFlow's and JAX's trace.json, and others) → the same tables as
from an XPlane.

    file ─ scan ─▶ raw events ─ pair ─▶ slices ─ lay out ─▶ planes, lines ─ sort ─▶ events ─▶ stats, flows,
    counters ─▶ Trace

An array without its closing bracket is read to its end. Nothing is read after damage, and the trace reports
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome import kineto
from tb_tpuprof.ingest.chrome.events import HOT, UNREAD_MEMBERS, RawEvents, object_at, read_events
from tb_tpuprof.ingest.chrome.extras import Unbound, counters_of, flows_of
from tb_tpuprof.ingest.chrome.kineto import Stat
from tb_tpuprof.ingest.chrome.kineto_collectives import collective_stats, job_stats
from tb_tpuprof.ingest.chrome.kineto_memory import Marks, memory_marks, memory_stats, renamed
from tb_tpuprof.ingest.chrome.lines import Layout, Names, layout, names_of
from tb_tpuprof.ingest.chrome.slices import ASYNC, OBJECTS, SUPPORTED, Slices, hash_rows, slices_of
from tb_tpuprof.ingest.chrome.stats import StatRows, device_stats, stat_table, stats_of_names
from tb_tpuprof.ingest.storage.json_source import END_POSITION, STACK_FRAMES
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table, table_from_rows
from tb_tpuprof.trace.trace import Trace, TraceInfo, TraceSource

Array = npt.NDArray[Any]
_MAX_NOTES = 100


@dataclass(frozen=True)
class EventFile:
    """The file of the raw events; `arguments_at` reads the arguments of the event at a position of it.
    `arguments`: names of those that all become stats, whoever wrote the file.
    """

    data: npt.NDArray[np.uint8]
    path: str
    host: str
    source: TraceSource
    arguments_at: Callable[[int], object]
    arguments: tuple[str, ...] = ()


def decode_chrome(data: npt.NDArray[np.uint8], path: str, host: str, source: TraceSource) -> Trace:
    """Decode a whole file. Raises TraceFormatError if it is not a Chrome trace or is damaged before its first
    event.
    """
    return trace_of(
        read_events(data, path),
        EventFile(data, path, host, source, lambda position: object_at(data, position).get("args")),
    )


def trace_of(raw: RawEvents, file: EventFile) -> Trace:
    """The trace of raw events, regardless of the file format."""
    data = file.data
    names = names_of(raw)
    role = kineto.categories(raw)
    is_kineto = (
        bool(np.isin(role, (kineto.OPERATION, kineto.KERNEL, kineto.LAUNCH, kineto.COPY)).any())
        and not names.is_xplane
    )
    pairing = slices_of(raw)
    slices = kineto.on_devices(pairing.slices, role) if is_kineto else pairing.slices
    laid_out = layout(raw, slices, names, is_kineto, file.path)
    slices, line, lines = _ordered(slices, laid_out)
    row_of_raw = np.full(len(raw), -1, np.int32)
    row_of_raw[slices.raw] = np.arange(len(slices.raw), dtype=np.int32)
    steps = kineto.step_numbers(raw, slices, role) if is_kineto else np.full(len(line), -1, np.int64)
    marks = memory_marks(raw, slices) if is_kineto else None
    metadata, metadata_row = _metadata(
        raw, slices, laid_out, line, _names_of_slices(raw, slices, steps, marks), names
    )
    shift_ns = int(slices.start_ps.min(initial=2**62)) // 1000 if len(slices.raw) else 0
    raw.start_ps -= shift_ns * 1000
    events = {
        "start_ps": slices.start_ps - shift_ns * 1000,
        "duration_ps": slices.duration_ps,
        "metadata": metadata_row,
        "position": raw["position"][slices.raw].astype(np.uint32 if len(data) < 2**32 else np.uint64),
    }
    flows, unbound = flows_of(raw, laid_out, events, lines, row_of_raw)
    counters, samples, n_bad = counters_of(raw, laid_out, data, is_kineto)
    stats = _decoder_stats(raw, slices, row_of_raw)
    stats += kineto.stats_of(raw, slices, line, role, steps) if is_kineto else []
    stats += collective_stats(raw, slices, line, role, data) if is_kineto else []
    stats += (
        memory_stats(raw, slices, line, (role[slices.raw] == kineto.OPERATION) & (steps < 0), marks)
        if marks
        else []
    )
    decoded = file.arguments or (HOT if names.is_xplane else ())
    rows = StatRows.of(raw, row_of_raw, slices.end_raw, decoded) if decoded else StatRows.none()
    name_stats = (
        stats_of_names(raw, file.arguments_at, lines, laid_out.planes, metadata, events)
        if names.is_xplane
        else stat_table(raw.texts, [])
    )
    stat_tables = (
        stat_table(raw.texts, stats, rows),
        name_stats,
        stat_table(raw.texts, _plane_stats(raw, laid_out, is_kineto)),
    )
    strings = Strings.of(raw.texts.items)
    tables = [StatTable(table, strings) for table in stat_tables]
    info = _info(file, raw, raw.start_ns + shift_ns, unbound, (pairing.n_unmatched, n_bad))
    return Trace(
        info, strings, laid_out.planes, lines, Table(schema.EVENTS, events), metadata,
        table_from_rows(schema.AGGREGATES, ()), table_from_rows(schema.STAT_NAMES, ()),
        tables[0], tables[1], tables[2], file.source, laid_out.line_kinds, counters, samples, flows,
    )  # fmt: skip


def _info(
    file: EventFile, raw: RawEvents, start_ns: int, unbound: Unbound, n_wrong: tuple[int, int]
) -> TraceInfo:
    """Facts of the file. `n_wrong`: ends without a begin; counter values that are not numbers."""
    warnings, notes, n_unread = _notes(raw, unbound)
    n_damaged = raw.n_left_out + raw.n_lost_blocks + sum(n_wrong) + n_unread + (raw.bad >= 0)
    damage = _damage(raw, *n_wrong)
    return TraceInfo(
        file.host, file.path, len(file.data), start_ns, (), (), warnings, int(n_damaged), damage, notes
    )


def _ordered(slices: Slices, laid_out: Layout) -> tuple[Slices, Array, Table]:
    """Slices sorted by (line, start, longest first, position in the file), their lines, and the table of
    lines.
    """
    line = laid_out.line_of_slice
    order = np.lexsort((slices.raw, -slices.duration_ps, slices.start_ps, line))
    sorted_slices = Slices(**{name: getattr(slices, name)[order] for name in Slices.__dataclass_fields__})
    counts = np.bincount(line, minlength=len(laid_out.lines["id"])).astype(np.int64)
    columns = {**laid_out.lines, "n_events": counts, "first_event": np.cumsum(counts) - counts}
    return sorted_slices, line[order], Table(schema.LINES, columns)


def _names_of_slices(
    raw: RawEvents, slices: Slices, steps: Array, marks: Marks | None
) -> tuple[Array, Array]:
    """(name of each slice, its display name if that differs; -1 for all others)."""
    written = raw["name"][slices.raw]
    name = np.where(written >= 0, written, raw.texts.add("(no name)")).astype(np.int64)
    display = np.full(len(name), -1, np.int64)
    if (steps >= 0).any():
        name[steps >= 0] = raw.texts.add(kineto.STEP_NAME)
    if marks and len(marks.row):
        display[marks.row] = name[marks.row]
        name = renamed(raw, marks, name)
    return name, display


def _metadata(
    raw: RawEvents,
    slices: Slices,
    laid_out: Layout,
    line: Array,
    slice_names: tuple[Array, Array],
    names: Names,
) -> tuple[Table, Array]:
    """One row per plane and name (and long name, as in XPlanes), and the row of each event."""
    plane = laid_out.lines["plane"][line]
    name, display = slice_names
    if names.is_xplane:
        long_name = kineto.dense(raw, "long_name", (schema.TEXT,))[slices.raw]
        name, display = np.where(long_name >= 0, long_name, name), np.where(long_name >= 0, name, display)
    _, first, inverse = np.unique(hash_rows(plane, name, display), return_index=True, return_inverse=True)
    columns = {
        "plane": plane[first],
        "id": np.arange(len(first), dtype=np.int64),
        "name": name[first].astype(np.int32),
        "display_name": display[first].astype(np.int32),
    }
    return Table(schema.METADATA, columns), inverse.reshape(-1).astype(np.int32)


def _decoder_stats(raw: RawEvents, slices: Slices, row_of_raw: Array) -> list[Stat]:
    """Stats that the decoder itself adds to events."""
    crossing = np.flatnonzero(np.isin(slices.kind, (ASYNC, OBJECTS)))
    unfinished = np.flatnonzero(slices.is_unfinished)
    two_ended = np.flatnonzero(slices.end_raw >= 0)
    return [
        Stat("_a", crossing, schema.INT, np.ones(len(crossing), np.int64)),
        Stat("did_not_finish", unfinished, schema.INT, np.ones(len(unfinished), np.int64)),
        Stat(END_POSITION, two_ended, schema.INT, raw["position"][slices.end_raw[two_ended]]),
    ]


def _plane_stats(raw: RawEvents, laid_out: Layout, is_kineto: bool) -> list[Any]:
    frames = raw.members.get("stackFrames")
    rows: list[Any] = []
    if isinstance(frames, tuple) and len(laid_out.planes):
        rows.append((0, STACK_FRAMES, schema.BYTES, frames[0], min(frames[1], 2**31 - 1)))
    return rows + (device_stats(raw, laid_out) + job_stats(raw, len(laid_out.planes)) if is_kineto else [])


def _notes(raw: RawEvents, unbound: Unbound) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """(warnings in the file, notes on what is not shown, number of events of unknown phases)."""
    warnings = [str(line) for name in ("ERROR", "WARNING") for line in _list(raw.members.get(name))][
        :_MAX_NOTES
    ]
    counts = np.bincount(raw["phase"][raw.usable], minlength=256).tolist()
    n_by_phase = {chr(code): n for code, n in enumerate(counts) if n and chr(code) not in SUPPORTED}
    notes = [
        f"Events of the phase {phase!r} cannot be shown: {n}." for phase, n in sorted(n_by_phase.items())
    ]
    notes += [f"The file's {name} are not shown." for name in UNREAD_MEMBERS if raw.members.get(name)]
    notes += raw.notes
    if raw.n_moved:
        notes.append(_moved(raw.n_moved))
    for n, reason in (
        (unbound.n_off_events, "one of their ends is not on an event"),
        (unbound.n_without_start, "the file has no start for their end"),
    ):
        if n:
            notes.append(f"Arrows not shown because {reason}: {n:,}.")
    return tuple(text[:10_000] for text in warnings), tuple(notes), sum(n_by_phase.values())


def _moved(n: int) -> str:
    events = "1 event has a time" if n == 1 else f"{n:,} events have times"
    return (
        f"{events} more than 13 days from most others (a ts of 0, for example): drawn at the nearest end "
        "of these."
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _damage(raw: RawEvents, n_unmatched: int, n_bad: int) -> str:
    parts = (
        [f"the file is cut off or damaged at byte {raw.bad}; everything after it is missing"]
        if raw.bad >= 0
        else []
    )
    parts += [f"damaged blocks, whose events are missing: {raw.n_lost_blocks}"] if raw.n_lost_blocks else []
    parts += [f"entries that are not events or have no time: {raw.n_left_out}"] if raw.n_left_out else []
    parts += [f"ends without a begin: {n_unmatched}"] if n_unmatched else []
    parts += [f"counter values that are not numbers: {n_bad}"] if n_bad else []
    return "; ".join(parts)
