"""All lines that a viewer adds to a file's own: those of programs and operations (`timeline_derived`), then a
device's launches, transfers to the host's memory, and the gaps in its programs.

A line that the file brings along is not made again, and a trace without such a device costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.host_offload import host_transfers
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import MODULE_LINES, OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.events.program_gaps import gaps_within
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.launches import step_launches
from tb_tpuprof.analysis.timeline.derived import Derived, DerivedLine, derived
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Facts = list[tuple[str, str]]
LAUNCH_LINE, OFFLOAD_LINE, GAP_LINE = "Launch Stats", "Host Offload Ops", "XLA Overhead"
_PS_PER_US = 1e6


@dataclass(frozen=True)
class _Made:
    """A line with its boxes, sorted by start; `facts` tells what is known of one of them beside what its
    event has.
    """

    line: DerivedLine
    start_ps: Int64s
    end_ps: Int64s
    names: list[str]
    source: Int64s
    facts: Callable[[int], Facts]


@once
def derived_lines(trace: Trace) -> Derived:
    """All derived lines of a trace: those of `derived`, then the others."""
    base, more = derived(trace), _made(trace)
    if not more:
        return base
    known: dict[str, int] = {text: i for i, text in enumerate(base.texts)}
    codes = [np.array([known.setdefault(name, len(known)) for name in made.names], np.int32) for made in more]
    sizes = np.cumsum([len(made.start_ps) for made in more])
    return Derived(
        (*base.lines, *(made.line for made in more)),
        np.concatenate((base.line_offsets, base.line_offsets[-1] + sizes)).astype(np.int64),
        np.concatenate((base.start_ps, *(made.start_ps for made in more))),
        np.concatenate((base.duration_ps, *(made.end_ps - made.start_ps for made in more))),
        np.concatenate((base.name, *codes)),
        np.concatenate((base.source, *(made.source for made in more))).astype(np.int32),
        tuple(known),
    )


def facts_of(trace: Trace, event: int) -> Facts:
    """What is known of a derived event (its number in `derived_lines`) beside what the event has that it
    begins with.
    """
    lines = derived_lines(trace)
    line = int(np.searchsorted(lines.line_offsets, event, side="right")) - 1
    number = line - len(derived(trace).lines)
    return _made(trace)[number].facts(event - int(lines.line_offsets[line])) if number >= 0 else []


@once
def _made(trace: Trace) -> tuple[_Made, ...]:
    found = planes(trace)
    made = [part for plane in found.gpus for part in _gpu_lines(trace, plane)]
    made += [part for plane in found.tensor_cores for part in _tpu_lines(trace, plane)]
    return tuple(part for part in made if len(part.start_ps))


def _is_missing(trace: Trace, plane: int, name: str) -> bool:
    """Whether the file has no such line on the plane."""
    return not any(trace.line_names[line].startswith(name) for line in trace.lines_of([plane]).tolist())


def _gpu_lines(trace: Trace, plane: int) -> Iterator[_Made]:
    if _is_missing(trace, plane, LAUNCH_LINE):
        yield _launch_line(trace, plane)
    programs = _derived_programs(trace, plane)
    if programs and _is_missing(trace, plane, GAP_LINE):
        rows = stream_events(trace, plane)
        yield _gap_line(
            trace, plane, programs, rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]
        )


def _tpu_lines(trace: Trace, plane: int) -> Iterator[_Made]:
    if _is_missing(trace, plane, OFFLOAD_LINE):
        yield _offload_line(trace, plane)
    modules, ops = lines_named(trace, plane, MODULE_LINES[:1]), lines_named(trace, plane, (OP_LINE,))
    if len(modules) == len(ops) == 1 and _is_missing(trace, plane, GAP_LINE):
        rows = np.arange(*line_events(trace, modules[0]).indices(trace.n_events)[:2])
        start, metadata = trace.events["start_ps"][rows], trace.events["metadata"]
        programs = _Programs(
            start,
            start + trace.events["duration_ps"][rows],
            rows,
            lambda i: trace.strings.get(int(trace.event_names[metadata[rows[i]]])),
        )
        yield _gap_line(
            trace, plane, programs, np.arange(*line_events(trace, ops[0]).indices(trace.n_events)[:2])
        )


@dataclass(frozen=True)
class _Programs:
    """Runs of programs by start, the event that each begins with, and what it is called."""

    start_ps: Int64s
    end_ps: Int64s
    source: npt.NDArray[np.integer]
    name: Callable[[int], str]


def _derived_programs(trace: Trace, plane: int) -> _Programs | None:
    """The programs of the GPU stream that computes most, as they were derived from its kernels; None where
    nothing tells of any.
    """
    lines = derived(trace)
    own = next(
        (line for line, made in enumerate(lines.lines) if made.plane == plane and made.kind == "modules"), -1
    )
    if own < 0:
        return None
    span = slice(int(lines.line_offsets[own]), int(lines.line_offsets[own + 1]))
    start, codes = lines.start_ps[span], lines.name[span]
    return _Programs(
        start, start + lines.duration_ps[span], lines.source[span], lambda i: lines.texts[codes[i]]
    )


def _launch_line(trace: Trace, plane: int) -> _Made:
    found, names = step_launches(trace, plane), groups(trace).names

    def facts(i: int) -> Facts:
        return [
            ("num_launches", str(int(found.n[i]))),
            ("max_launch_time_us", _us(found.longest_ps[i])),
            ("avg_launch_time_us", _us(found.mean_ps[i])),
            ("max_launch_latency_us", _us(found.longest_latency_ps[i])),
            ("avg_launch_latency_us", _us(found.mean_latency_ps[i])),
        ]

    texts = [f"Launch Stats for {names.get(group, group)}" for group in found.group.tolist()]
    return _Made(
        DerivedLine(plane, LAUNCH_LINE, "launches"), found.start_ps, found.end_ps, texts, found.first, facts
    )


def _offload_line(trace: Trace, plane: int) -> _Made:
    found = host_transfers(trace, plane)

    def facts(i: int) -> Facts:
        waited = int(trace.events["duration_ps"][found.done[i]])
        begin, end = trace.events["metadata"][[found.start[i], found.done[i]]].tolist()
        shape, size = (
            _metadata_text(trace, begin, "shape_with_layout"),
            _metadata_text(trace, end, "raw_bytes_accessed"),
        )
        told = [("shape_with_layout", shape), ("raw_bytes_accessed", size), ("waited_for_us", _us(waited))]
        return [(name, value) for name, value in told if value]

    texts = [found.names[name] for name in found.name.tolist()]
    return _Made(
        DerivedLine(plane, OFFLOAD_LINE, "async"), found.start_ps, found.end_ps, texts, found.start, facts
    )


def _gap_line(trace: Trace, plane: int, programs: _Programs, operations: npt.NDArray[np.integer]) -> _Made:
    found = gaps_within(trace, (programs.start_ps, programs.end_ps), operations)
    names = {
        program: f"no operation of {programs.name(program)}" for program in np.unique(found.program).tolist()
    }
    texts = [names[program] for program in found.program.tolist()]
    source = programs.source[found.program].astype(np.int64)
    return _Made(
        DerivedLine(plane, GAP_LINE, "overhead"), found.start_ps, found.end_ps, texts, source, lambda _: []
    )


def _metadata_text(trace: Trace, row: int, key: str) -> str:
    table, rows = trace.metadata_stats, trace.metadata_stats.rows(key)
    at = np.flatnonzero(table.table["owner"][rows] == row)
    return table.text_at(rows.start + int(at[0])) if len(at) else ""


def _us(ps: float) -> str:
    return f"{float(ps) / _PS_PER_US:.3f}"
