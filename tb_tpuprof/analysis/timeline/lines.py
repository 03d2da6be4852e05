"""All lines that the timeline adds to a file's own: those of programs and operations (`derived.py`), then a
device's launches, transfers to the host's memory, exposed communication, the gaps in its programs, and the
tasks of a host's pools.

Lines that the file already contains are not derived, and a trace without such a device costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.marks import exposed_marks
from tb_tpuprof.analysis.dcn.ops import Half
from tb_tpuprof.analysis.dcn.transfers import dcn_host
from tb_tpuprof.analysis.events.host_offload import host_transfers
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import MODULE_LINES, OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.events.program_gaps import gaps_within
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.launches import step_launches
from tb_tpuprof.analysis.timeline.derived import Derived, DerivedLine, derived
from tb_tpuprof.analysis.timeline.pool import pool_tasks
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Facts = list[tuple[str, str]]
LAUNCH_LINE, OFFLOAD_LINE, GAP_LINE = "Launch Stats", "Host Offload Ops", "XLA Overhead"
DCN_LINE = "DCN Transfers"
EXPOSED_LINE = "Exposed communication"
POOL_LINE = "Thread Pool"
_PS_PER_US = 1e6


@dataclass(frozen=True)
class _AddedLine:
    """A line with its boxes, sorted by start; `facts` returns facts about a box in addition to its event's
    stats.
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
    base, added = derived(trace), _added_lines(trace)
    if not added:
        return base
    codes_by_text: dict[str, int] = {text: i for i, text in enumerate(base.texts)}
    codes = [
        np.array([codes_by_text.setdefault(name, len(codes_by_text)) for name in line_added.names], np.int32)
        for line_added in added
    ]
    sizes = np.cumsum([len(line_added.start_ps) for line_added in added])
    return Derived(
        (*base.lines, *(line_added.line for line_added in added)),
        np.concatenate((base.line_offsets, base.line_offsets[-1] + sizes)).astype(np.int64),
        np.concatenate((base.start_ps, *(line_added.start_ps for line_added in added))),
        np.concatenate(
            (base.duration_ps, *(line_added.end_ps - line_added.start_ps for line_added in added))
        ),
        np.concatenate((base.name, *codes)),
        np.concatenate((base.source, *(line_added.source for line_added in added))).astype(np.int32),
        tuple(codes_by_text),
    )


def facts_of(trace: Trace, event: int) -> Facts:
    """Facts about a derived event (its number in `derived_lines`) in addition to the stats of its first
    event.
    """
    lines = derived_lines(trace)
    line = int(np.searchsorted(lines.line_offsets, event, side="right")) - 1
    number = line - len(derived(trace).lines)
    return _added_lines(trace)[number].facts(event - int(lines.line_offsets[line])) if number >= 0 else []


@once
def _added_lines(trace: Trace) -> tuple[_AddedLine, ...]:
    roles = planes(trace)
    lines = [line_added for plane in roles.gpus for line_added in _gpu_lines(trace, plane)]
    lines += [line_added for plane in roles.tensor_cores for line_added in _tpu_lines(trace, plane)]
    lines += [_pool_line(trace, plane) for plane in roles.hosts]
    return tuple(line_added for line_added in lines if len(line_added.start_ps))


def _exposed_line(trace: Trace, plane: int) -> _AddedLine:
    """The stretches in which data moves and nothing computes on the device."""
    marks = exposed_marks(trace, plane)
    line = DerivedLine(plane, EXPOSED_LINE, "exposed")
    return _AddedLine(line, marks.start_ps, marks.end_ps, marks.names, marks.event, lambda _box: [])


def _is_missing(trace: Trace, plane: int, name: str) -> bool:
    """Whether the file has no such line on the plane."""
    return not any(trace.line_names[line].startswith(name) for line in trace.lines_of([plane]).tolist())


def _gpu_lines(trace: Trace, plane: int) -> Iterator[_AddedLine]:
    if _is_missing(trace, plane, LAUNCH_LINE):
        yield _launch_line(trace, plane)
    yield _exposed_line(trace, plane)
    programs = _derived_programs(trace, plane)
    if programs and _is_missing(trace, plane, GAP_LINE):
        rows = stream_events(trace, plane)
        yield _gap_line(
            trace, plane, programs, rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]
        )


def _tpu_lines(trace: Trace, plane: int) -> Iterator[_AddedLine]:
    if _is_missing(trace, plane, OFFLOAD_LINE):
        yield _offload_line(trace, plane)
    if _is_missing(trace, plane, DCN_LINE):
        yield _dcn_line(trace, plane)
    yield _exposed_line(trace, plane)
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
    """Runs of programs by start, with their first event and the program's name."""

    start_ps: Int64s
    end_ps: Int64s
    source: npt.NDArray[np.integer]
    name: Callable[[int], str]


def _derived_programs(trace: Trace, plane: int) -> _Programs | None:
    """The programs on the busiest compute stream of a GPU, as derived from its kernels; None if there are
    none.
    """
    lines = derived(trace)
    module_line = next(
        (
            line
            for line, derived_line in enumerate(lines.lines)
            if derived_line.plane == plane and derived_line.kind == "modules"
        ),
        -1,
    )
    if module_line < 0:
        return None
    span = slice(int(lines.line_offsets[module_line]), int(lines.line_offsets[module_line + 1]))
    start, codes = lines.start_ps[span], lines.name[span]
    return _Programs(
        start, start + lines.duration_ps[span], lines.source[span], lambda i: lines.texts[codes[i]]
    )


def _launch_line(trace: Trace, plane: int) -> _AddedLine:
    launches, names = step_launches(trace, plane), groups(trace).names

    def facts(i: int) -> Facts:
        return [
            ("num_launches", str(int(launches.n[i]))),
            ("max_launch_time_us", _us(launches.longest_ps[i])),
            ("avg_launch_time_us", _us(launches.mean_ps[i])),
            ("max_launch_latency_us", _us(launches.longest_latency_ps[i])),
            ("avg_launch_latency_us", _us(launches.mean_latency_ps[i])),
        ]

    texts = [f"Launch Stats for {names.get(group, group)}" for group in launches.group.tolist()]
    return _AddedLine(
        DerivedLine(plane, LAUNCH_LINE, "launches"),
        launches.start_ps,
        launches.end_ps,
        texts,
        launches.first,
        facts,
    )


def _offload_line(trace: Trace, plane: int) -> _AddedLine:
    transfers = host_transfers(trace, plane)

    def facts(i: int) -> Facts:
        waited = int(trace.events["duration_ps"][transfers.done[i]])
        begin, end = trace.events["metadata"][[transfers.start[i], transfers.done[i]]].tolist()
        shape, size = (
            _metadata_text(trace, begin, "shape_with_layout"),
            _metadata_text(trace, end, "raw_bytes_accessed"),
        )
        stats = [("shape_with_layout", shape), ("raw_bytes_accessed", size), ("waited_for_us", _us(waited))]
        return [(name, value) for name, value in stats if value]

    texts = [transfers.names[name] for name in transfers.name.tolist()]
    return _AddedLine(
        DerivedLine(plane, OFFLOAD_LINE, "async"),
        transfers.start_ps,
        transfers.end_ps,
        texts,
        transfers.start,
        facts,
    )


def _dcn_line(trace: Trace, plane: int) -> _AddedLine:
    """Transfers between slices, from their send to the end of their recv-done."""
    host = dcn_host(trace)
    transfers = host.occurrences
    rows = np.flatnonzero(transfers.core == planes(trace).tensor_cores.index(plane))
    rows = rows[np.lexsort((-transfers.end_ps[rows], transfers.start_ps[rows]))]

    def facts(i: int) -> Facts:
        row = int(rows[i])
        one, slack, stall = (
            host.rendezvous[int(transfers.rendezvous[row])],
            float(transfers.slack_ps[row]),
            transfers.stall_ps[row],
        )
        size = one.network_bytes
        stats = [
            ("transfer_type", one.transfer_type),
            ("network_bytes", "" if size is None else f"{size:.0f}"),
            ("slack_us", _us(slack)),
            ("stall_us", _us(float(stall.sum()))),
            *((f"in_{half.name.lower()}_us", _us(float(stall[half]))) for half in Half),
            ("required_gbit_per_s", "" if size is None or not slack else f"{size * 8e3 / slack:.3f}"),
        ]
        return [(name, value) for name, value in stats if value]

    return _AddedLine(
        DerivedLine(plane, DCN_LINE, "async"),
        transfers.start_ps[rows],
        transfers.end_ps[rows],
        [host.rendezvous[code].name for code in transfers.rendezvous[rows].tolist()],
        transfers.source[rows],
        facts,
    )


def _gap_line(
    trace: Trace, plane: int, programs: _Programs, operations: npt.NDArray[np.integer]
) -> _AddedLine:
    gaps = gaps_within(trace, (programs.start_ps, programs.end_ps), operations)
    names = {
        program: f"no operation of {programs.name(program)}" for program in np.unique(gaps.program).tolist()
    }
    texts = [names[program] for program in gaps.program.tolist()]
    source = programs.source[gaps.program].astype(np.int64)
    return _AddedLine(
        DerivedLine(plane, GAP_LINE, "overhead"), gaps.start_ps, gaps.end_ps, texts, source, lambda _: []
    )


def _pool_line(trace: Trace, plane: int) -> _AddedLine:
    """The tasks that the plane's thread pools ran, whatever the thread: as many rows as ran at once."""
    tasks = pool_tasks(trace)
    tasks = tasks.taken(np.flatnonzero(trace.lines["plane"][trace.event_line[tasks.event]] == plane))

    def name_of(event: int) -> str:
        return trace.strings.get(int(trace.event_names[trace.events["metadata"][event]]))

    def facts(i: int) -> Facts:
        record, owner, waited = (int(column[i]) for column in (tasks.record, tasks.owner, tasks.waited_ps))
        told = [("enqueued_by", name_of(owner) if owner >= 0 else "")]
        told += [("enqueued_on", trace.line_names[int(trace.event_line[record])] if record >= 0 else "")]
        told += [("waited_us", _us(waited) if waited >= 0 else "")]
        told += [("ran_on", trace.line_names[int(trace.event_line[tasks.event[i]])])]
        return [(name, value) for name, value in told if value]

    owner_names = np.where(tasks.owner >= 0, trace.event_names[trace.events["metadata"][tasks.owner]], -1)
    distinct, code = np.unique(owner_names, return_inverse=True)
    texts = [f"task of {trace.strings.get(name)}" if name >= 0 else "task" for name in distinct.tolist()]
    return _AddedLine(
        DerivedLine(plane, POOL_LINE, "pool"),
        tasks.start_ps,
        tasks.end_ps,
        np.array(texts, object)[code.reshape(-1)].tolist(),
        tasks.event,
        facts,
    )


def _metadata_text(trace: Trace, row: int, key: str) -> str:
    table, rows = trace.metadata_stats, trace.metadata_stats.rows(key)
    stat_rows = np.flatnonzero(table.table["owner"][rows] == row)
    return table.text_at(rows.start + int(stat_rows[0])) if len(stat_rows) else ""


def _us(ps: float) -> str:
    return f"{float(ps) / _PS_PER_US:.3f}"
