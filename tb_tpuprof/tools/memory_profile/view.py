"""memory_profile: how much of each memory is in use over time, what fills it at its peak, and whether it
grows from step to step.
"""

from __future__ import annotations

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
from tb_tpuprof.tools.verdicts import limits_of, told
from tb_tpuprof.units import format_bytes, format_fraction, format_time

_UNTOLD = "the trace does not tell"
_NEARLY_FULL = 0.9
_SCATTERED = 0.5
_HOSTS_TO_ASK = 4
Numbers = dict[str, Number | float | None]
_REASON = "the trace holds no allocations or deallocations of memory."
_REMEDY = (
    "Allocators are traced on the host: capture with host_tracer_level 2 while the job allocates. JAX on "
    "the CPU has no allocator that is traced, and a compiled program that runs all the time allocates "
    "nothing anew. PyTorch: profile with profile_memory=True."
)


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """All memories of the chosen hosts, and one of them in detail."""
    parts = session.map(host_memory, hosts)
    memories = [
        Memory(host, shape) for host, part in zip(hosts, parts, strict=True) for shape in part.memories
    ]
    memories.sort(key=lambda memory: -memory.peak.used_bytes)
    notices = [notice for found in session.map(trace_notices, hosts) for notice in found]
    diagnostics = tuple(Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices)
    if not memories:
        raise ToolUnavailable(TOOL.name, _REASON, _REMEDY)
    tables: dict[str, Table] = {"memories": memories_table(memories), "history": small_table(memories)}
    chosen = _chosen(memories, str(params.get("memory", "")))
    trace = session.trace(chosen.host)
    detail, numbers = _detail(
        memory_events(trace), groups(trace), chosen, parts[hosts.index(chosen.host)].duration_ps, params
    )
    tables |= detail
    scalars = fill_scalars(declared.SCALARS, {**numbers, "row": memories.index(chosen)})
    marked = session.get(step_marks, chosen.host)
    tables["floor"] = floor_table(chosen, marked.name, marked.start_ps)
    if missed := chosen.shape.excess_bytes:
        text = (
            f"{chosen.full_name}: known allocations exceed the heap by {format_bytes(missed)} at the "
            "peak: deallocations are missing."
        )
        diagnostics = (
            *diagnostics,
            Diagnostic("warning", text, "Capture for a shorter time, so that no event is dropped."),
        )
    verdict = told(TOOL.name, _verdict(chosen, memories), limits_of(session, hosts))
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, diagnostics)


def _chosen(memories: list[Memory], wanted: str) -> Memory:
    """The memory that is asked for as `HOST/NAME` or `NAME`, else the one with the largest peak."""
    if not wanted:
        return memories[0]
    for memory in memories:
        if wanted in (memory.full_name, memory.peak.name):
            return memory
    known = ", ".join(sorted(memory.full_name for memory in memories)[:20])
    raise BadParameter("memory", wanted, f"one of {known}")


def _detail(
    events: MemoryEvents, grouped: Groups, memory: Memory, trace_end: int, params: Params
) -> tuple[dict[str, Table], Numbers]:
    """History of the window, what is in use at the moment, and the numbers of one memory."""
    peak = memory.peak
    start_ps, end_ps = int(params.get("start_ps", 0)), int(params.get("end_ps", trace_end))
    if end_ps <= start_ps:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    rows = window_events(events, peak.memory, start_ps, end_ps, int(params["width_px"]))
    within = events.start_ps[events.of(peak.memory)]
    n_inside = int(np.searchsorted(within, end_ps, "right") - np.searchsorted(within, start_ps, "left"))
    at = event_at(events, peak.memory, int(params["at_ps"])) if "at_ps" in params else peak.at
    moment = f"at {format_time(float(params['at_ps']))}" if "at_ps" in params else "at the peak"
    active = active_allocations(events, peak.memory, at)
    return {
        "timeline": timeline_table(events, grouped, rows, n_inside),
        "active": active_table(events, grouped, active, moment),
    }, {
        **_summary(events, grouped, memory),
        "start_ps": start_ps,
        "end_ps": end_ps,
        "trace_duration_ps": trace_end,
        "at_ps": Number(int(events.start_ps[at]), moment),
        "n_events_in_window": n_inside,
    }


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
    untold = Number(None, _UNTOLD)
    return {
        "peak_bytes": Number(peak.used_bytes, where + share),
        "lifetime_peak_bytes": Number(peak.lifetime_peak_bytes, "since the process began")
        if peak.lifetime_peak_bytes >= 0
        else untold,
        "capacity_bytes": Number(
            peak.capacity_bytes or None,
            _capacity_note(peak) if peak.capacity_bytes else _UNTOLD,
            _pool_title(peak),
        ),
        "n_allocations": Number(peak.n_allocations, "in the capture"),
        "n_deallocations": Number(peak.n_deallocations, "in the capture"),
        "peak_ps": Number(peak.start_ps, "since the trace's start"),
        "stack_bytes": Number(peak.stack_bytes, "reserved by programs"),
        "heap_bytes": Number(peak.heap_bytes, "allocated"),
        "free_bytes": peak.free_bytes if peak.free_bytes >= 0 else untold,
        "fragmentation_fraction": untold
        if np.isnan(peak.fragmentation)
        else Number(peak.fragmentation, scattered),
    }


def _pool_title(peak: MemoryPeak) -> str:
    """XLA's and TensorFlow's allocators report the pool that they manage, PyTorch's the memory of
    the device.
    """
    return "Allocator's pool" if peak.held_bytes < 0 else "Chip memory"


def _pool_words(peak: MemoryPeak) -> str:
    return "the allocator's pool" if peak.held_bytes < 0 else "chip memory"


def _capacity_note(peak: MemoryPeak) -> str:
    return "stack, heap and free: what the allocator manages" if peak.held_bytes < 0 else "of the device"


def _verdict(chosen: Memory, memories: list[Memory]) -> Verdict:
    """How full, when, with what; whether it leaks; others that are worse."""
    peak = chosen.peak
    share = format_fraction(peak.used_fraction)
    name = chosen.full_name if len({memory.host for memory in memories}) > 1 else peak.name
    held = format_bytes(peak.used_bytes)
    whole = (
        f", {share} of the {format_bytes(peak.capacity_bytes)} of {_pool_words(peak)}"
        if peak.capacity_bytes
        else ""
    )
    text = f"`{name}` holds {held} at its peak{whole}, at {format_time(peak.start_ps)}."
    details = [leak_text(chosen)] if chosen.floor.rise_bytes_per_step > 0 else []
    others = [memory for memory in memories if memory is not chosen and memory.floor.rise_bytes_per_step > 0]
    if others:
        details.append(
            "The floor also rises in "
            f"{', '.join(f'`{memory.full_name}`' for memory in others[:4])}{' …' if len(others) > 4 else ''}."
        )
    full = peak.used_fraction >= _NEARLY_FULL
    if full:
        details.append(
            "Little is left: smaller batches, rematerialisation (checkpointing), lower precision or sharding "
            "make room."
        )
    if full and peak.fragmentation >= _SCATTERED:
        what = (
            "of what the allocator holds is not in use"
            if peak.held_bytes >= 0
            else "of what is free is scattered"
        )
        details.append(
            f"{format_fraction(peak.fragmentation)} {what}: a large allocation can fail although the sum "
            "would do."
        )
    is_bad = full or chosen.floor.rise_bytes_per_step > 0 or bool(others)
    most = max(peak.used_bytes, peak.lifetime_peak_bytes)
    # PyTorch's capacity is the device's, of which other processes may use what seems free.
    is_enough = not is_bad and peak.held_bytes < 0 < most < _NEARLY_FULL * peak.capacity_bytes
    if is_enough:
        when = "since the process began" if peak.lifetime_peak_bytes >= 0 else "in the capture"
        details.append(
            f"Memory is not short: {when} {format_bytes(peak.capacity_bytes - most)} or more were left at "
            "any time."
        )
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


def leak_text(memory: Memory) -> str:
    """How much the floor rises, since when, when the memory will be full, and what stays."""
    floor, peak = memory.floor, memory.peak
    rise = floor.rise_bytes_per_step
    text = (
        f"A leak? What stays in use rises by {format_bytes(rise)} per step over the last {floor.n_steps} "
        "steps"
    )
    left = peak.free_bytes / rise
    text += f"; at this rate the memory is full after {left:,.0f} more." if 0 <= left < 1e6 else "."
    named = [(op, size, n) for op, size, n in floor.suspects if size > 0]
    if named:
        op, size, n = named[0]
        count = "1 allocation" if n == 1 else f"{n:,} allocations"
        who = f"`{op}`" if op else "no named operation"
        text += (
            f" Of what was allocated since and not freed, most is of {who}: {format_bytes(size)} in {count}."
        )
    return text


def available(session: Session) -> Availability:
    """Whether one of the first hosts traced an allocator; all hosts of a job run the same program."""
    if any(session.get(has_memory_events, host) for host in session.hosts[:_HOSTS_TO_ASK]):
        return Availability()
    return Availability(_REASON, _REMEDY)


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
)
