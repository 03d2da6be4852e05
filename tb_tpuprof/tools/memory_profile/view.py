"""memory_profile: how much of each memory is in use over time, what fills it at its peak, and whether it
grows from step to step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.memory.events import MemoryEvents, has_memory_events, memory_events
from tb_tpuprof.analysis.memory.host import host_memory
from tb_tpuprof.analysis.memory.peak import MemoryPeak, active_allocations, event_at
from tb_tpuprof.analysis.memory.window import window_events
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.analysis.steps.grouping import Groups, groups
from tb_tpuprof.analysis.steps.marks import step_marks
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params
from tb_tpuprof.tools.memory_profile import declared
from tb_tpuprof.tools.memory_profile.by_holder import holder_tables, module_sentence
from tb_tpuprof.tools.memory_profile.tables import (
    Memory,
    active_table,
    floor_table,
    memories_table,
    small_table,
    timeline_table,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Table, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.units import format_bytes, format_fraction, format_time

_NOT_REPORTED = "not in the trace"
_NEARLY_FULL = 0.9
_SCATTERED = 0.5
_HOSTS_TO_CHECK = 4
Numbers = dict[str, Number | float | None]
_REASON = "the trace contains no memory allocations or deallocations."
_REMEDY = (
    "Allocators are traced on the host: capture with host_tracer_level 2 while the job allocates. JAX on "
    "the CPU has no traced allocator, and a compiled program that is already running makes no new "
    "allocations. PyTorch: profile with profile_memory=True."
)


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """All memories of the chosen hosts, and one of them in detail."""
    parts = session.map(host_memory, hosts)
    memories = [
        Memory(host, shape) for host, part in zip(hosts, parts, strict=True) for shape in part.memories
    ]
    memories.sort(key=lambda memory: -memory.peak.used_bytes)
    notices = [notice for of_host in session.map(trace_notices, hosts) for notice in of_host]
    diagnostics = tuple(Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices)
    if not memories:
        raise ToolUnavailable(TOOL.name, _REASON, _REMEDY)
    tables: dict[str, Table] = {"memories": memories_table(memories), "history": small_table(memories)}
    chosen = _chosen(memories, str(params.get("memory", "")))
    trace = session.trace(chosen.host)
    events = memory_events(trace)
    detail, numbers = _detail(
        events, groups(trace), chosen, parts[hosts.index(chosen.host)].duration_ps, params
    )
    tables |= detail
    row, moment = _moment(events, chosen.peak, params)
    by_holder = holder_tables(trace, events, chosen.peak.memory, row, moment)
    tables |= by_holder
    scalars = fill_scalars(declared.SCALARS, {**numbers, "row": memories.index(chosen)})
    marked = session.get(step_marks, chosen.host)
    tables["floor"] = floor_table(chosen, marked.name, marked.start_ps)
    if missing_bytes := chosen.shape.excess_bytes:
        text = (
            f"{chosen.full_name}: known allocations exceed the heap by {format_bytes(missing_bytes)} at the "
            "peak: deallocations are missing."
        )
        diagnostics = (
            *diagnostics,
            Diagnostic("warning", text, "Capture for a shorter time, so that no event is dropped."),
        )
    judged = _verdict(chosen, memories)
    if "modules" in by_holder and "at_ps" not in params:
        sentence = module_sentence(by_holder["modules"])
        judged = replace(judged, details=(*judged.details, *filter(None, [sentence])))
    verdict = with_limits(TOOL.name, judged, limits_of(session, hosts))
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, diagnostics)


def _chosen(memories: list[Memory], name: str) -> Memory:
    """The memory requested as `HOST/NAME` or `NAME`, else the one with the largest peak."""
    if not name:
        return memories[0]
    for memory in memories:
        if name in (memory.full_name, memory.peak.name):
            return memory
    names = ", ".join(sorted(memory.full_name for memory in memories)[:20])
    raise BadParameter("memory", name, f"one of {names}")


def _detail(
    events: MemoryEvents, grouped: Groups, memory: Memory, trace_end: int, params: Params
) -> tuple[dict[str, Table], Numbers]:
    """One memory's history in the window, its contents at the moment, and its numbers."""
    peak = memory.peak
    start_ps, end_ps = int(params.get("start_ps", 0)), int(params.get("end_ps", trace_end))
    if end_ps <= start_ps:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    rows = window_events(events, peak.memory, start_ps, end_ps, int(params["width_px"]))
    starts_ps = events.start_ps[events.of(peak.memory)]
    n_inside = int(np.searchsorted(starts_ps, end_ps, "right") - np.searchsorted(starts_ps, start_ps, "left"))
    row, moment = _moment(events, peak, params)
    active = active_allocations(events, peak.memory, row)
    return {
        "timeline": timeline_table(events, grouped, rows, n_inside),
        "active": active_table(events, grouped, active, moment),
    }, {
        **_summary(events, grouped, memory),
        "start_ps": start_ps,
        "end_ps": end_ps,
        "trace_duration_ps": trace_end,
        "at_ps": Number(int(events.start_ps[row]), moment),
        "n_events_in_window": n_inside,
    }


def _moment(events: MemoryEvents, peak: MemoryPeak, params: Params) -> tuple[int, str]:
    """The event after which contents are shown, and its name."""
    if "at_ps" not in params:
        return peak.at, "at the peak"
    at_ps = float(params["at_ps"])
    return event_at(events, peak.memory, int(at_ps)), f"at {format_time(at_ps)}"


def _summary(events: MemoryEvents, grouped: Groups, memory: Memory) -> Numbers:
    peak = memory.peak
    step = grouped.step_name(int(grouped.group[events.event[peak.at]]))
    where = f"at {format_time(peak.start_ps)}" + (
        f", in {'step ' if step.isdigit() else ''}{step}" if step else ""
    )
    if peak.held_bytes >= 0:
        scattered = f"{declared.HELD_IDLE} ({format_bytes(peak.held_bytes)})"
    else:
        scattered = (
            "free memory is contiguous"
            if peak.fragmentation == 0
            else "of the free memory is not in its largest piece"
        )
    share = f"; {format_fraction(peak.used_fraction)} of {_pool_words(peak)}" if peak.capacity_bytes else ""
    not_reported = Number(None, _NOT_REPORTED)
    return {
        "peak_bytes": Number(peak.used_bytes, where + share),
        "lifetime_peak_bytes": Number(peak.lifetime_peak_bytes, "since the process started")
        if peak.lifetime_peak_bytes >= 0
        else not_reported,
        "capacity_bytes": Number(
            peak.capacity_bytes or None,
            _capacity_note(peak) if peak.capacity_bytes else _NOT_REPORTED,
            _pool_title(peak),
        ),
        "n_allocations": Number(peak.n_allocations, "in the capture"),
        "n_deallocations": Number(peak.n_deallocations, "in the capture"),
        "peak_ps": Number(peak.start_ps, "since the trace's start"),
        "stack_bytes": Number(peak.stack_bytes, "reserved by programs"),
        "heap_bytes": Number(peak.heap_bytes, "allocated"),
        "free_bytes": peak.free_bytes if peak.free_bytes >= 0 else not_reported,
        "fragmentation_fraction": not_reported
        if np.isnan(peak.fragmentation)
        else Number(peak.fragmentation, scattered),
    }


def _pool_title(peak: MemoryPeak) -> str:
    """XLA's and TensorFlow's allocators report the pool they manage, PyTorch's the device's memory."""
    return "Allocator's pool" if peak.held_bytes < 0 else "Chip memory"


def _pool_words(peak: MemoryPeak) -> str:
    return "the allocator's pool" if peak.held_bytes < 0 else "chip memory"


def _capacity_note(peak: MemoryPeak) -> str:
    return "stack, heap and free: what the allocator manages" if peak.held_bytes < 0 else "of the device"


def _verdict(chosen: Memory, memories: list[Memory]) -> Verdict:
    """How full the memory is and when; whether it or another one leaks."""
    peak = chosen.peak
    share = format_fraction(peak.used_fraction)
    name = chosen.full_name if len({memory.host for memory in memories}) > 1 else peak.name
    used = format_bytes(peak.used_bytes)
    of_capacity = (
        f", {share} of the {format_bytes(peak.capacity_bytes)} of {_pool_words(peak)}"
        if peak.capacity_bytes
        else ""
    )
    text = f"`{name}` peaks at {used}{of_capacity}, {format_time(peak.start_ps)} after the trace's start."
    details = [*_leak_sources(chosen), text] if chosen.floor.rise_bytes_per_step > 0 else []
    if details:
        text = leak_text(chosen, name)
    leaking = [memory for memory in memories if memory is not chosen and memory.floor.rise_bytes_per_step > 0]
    if leaking:
        details.append(
            "The floor also rises in "
            f"{', '.join(f'`{memory.full_name}`' for memory in leaking[:4])}"
            f"{' …' if len(leaking) > 4 else ''}."
        )
    full = peak.used_fraction >= _NEARLY_FULL
    if full:
        details.append(
            "Little memory is left: smaller batches, rematerialization (checkpointing), lower precision "
            "or sharding free memory."
        )
    if full and peak.fragmentation >= _SCATTERED:
        unusable = (
            "of the memory the allocator holds is not in use"
            if peak.held_bytes >= 0
            else "of the free memory is scattered"
        )
        details.append(
            f"{format_fraction(peak.fragmentation)} {unusable}: a large allocation can fail although "
            "enough memory is free in total."
        )
    is_bad = full or chosen.floor.rise_bytes_per_step > 0 or bool(leaking)
    most = max(peak.used_bytes, peak.lifetime_peak_bytes)
    # PyTorch's capacity is the device's; other processes may use what seems free.
    is_enough = not is_bad and peak.held_bytes < 0 < most < _NEARLY_FULL * peak.capacity_bytes
    if is_enough:
        when = "since the process started" if peak.lifetime_peak_bytes >= 0 else "in the capture"
        free = format_bytes(peak.capacity_bytes - most)
        details.append(f"Memory is not a constraint: at least {free} was free at all times {when}.")
    around = max(1, peak.start_ps // 50)
    where = {
        "hosts": chosen.host,
        "start_ps": str(max(0, peak.start_ps - around)),
        "end_ps": str(peak.start_ps + around),
    }
    next_steps = (NextStep("See what ran at the peak", "trace_viewer", where),)
    return Verdict(
        "warn" if is_bad else "good" if is_enough else "unknown", text, "", tuple(details), next_steps
    )


def leak_text(memory: Memory, name: str) -> str:
    """The floor's rise, and when the memory will be full."""
    floor, peak = memory.floor, memory.peak
    rise = floor.rise_bytes_per_step
    text = (
        f"Possible leak: what stays in use in `{name}` rises by {format_bytes(rise)} per step over the last "
        f"{floor.n_steps} steps"
    )
    n_steps_left = peak.free_bytes / rise
    if 0 <= n_steps_left < 1e6:
        return f"{text}; at this rate the memory is full after {n_steps_left:,.0f} more."
    return f"{text}."


def _leak_sources(memory: Memory) -> list[str]:
    """What was allocated while the floor rose and stays in use."""
    floor = memory.floor
    named = [(op, size, n_allocations) for op, size, n_allocations in floor.suspects if size > 0]
    if not named:
        return []
    op, size, n_allocations = named[0]
    count = "1 allocation" if n_allocations == 1 else f"{n_allocations:,} allocations"
    who = f"`{op}`" if op else "no named operation"
    return [
        f"Most of the memory allocated in these steps and not freed belongs to {who}: "
        f"{format_bytes(size)} in {count}."
    ]


def available(session: Session) -> Availability:
    """Whether one of the first hosts traced an allocator; all hosts of a job run the same program."""
    if any(session.get(has_memory_events, host) for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability()
    return Availability(_REASON, _REMEDY, "not traced")


TOOL = Tool(
    name="memory_profile",
    title="Memory profile",
    group="Memory",
    summary="Memory in use over time, what fills it at the peak, and leaks",
    view=view,
    available=available,
    params=declared.PARAMS,
    tables=declared.TABLES,
    scalars=declared.SCALARS,
    tiles=declared.TILES,
)
