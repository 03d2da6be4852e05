"""TensorCores: when each moves data, and when it computes.

    XLA Ops     ▪all-gather-start.3  ■■ fusion ■■  ├ all-gather-done.3 ┤  ├ all-reduce.7 ┤
    moves data  ├───────────────────── all-gather.3 ──────────────────┤  ├ all-reduce.7 ┤
    computes                         ├───────────┤

An asynchronous operation lasts from the beginning of its start to the end of its done; where the operations'
line lacks these, its event on the line `Async XLA Ops` counts. A done whose start was not captured counts by
itself. A collective, send or receive that is not asynchronous is exposed as a whole. A core computes while
the innermost operation is any other one, except infeed, outfeed, transfers with the host, and loops and
calls, which only run others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import COPY, Activity, CommOp, Traffic, activity
from tb_tpuprof.analysis.events.host_offload import matched, names_host_memory
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import ASYNC_OP_LINE, OP_LINE, lines_named, planes
from tb_tpuprof.analysis.ops.hlo_times import CONTAINERS
from tb_tpuprof.analysis.pod.parts import COLLECTIVES, Part, part_of_op
from tb_tpuprof.analysis.pod.transfers import kind_of
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import nest, stretches
from tb_tpuprof.trace.collectives import UNKNOWN_KIND
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Spans = Callable[[Trace, int], DeviceSpans]
_HALF = re.compile(r"([A-Za-z][\w\-]*)-(start|done)((?:\.\w+)*)")
_SEND_OR_RECEIVE = re.compile(r"(?:send|recv)(?:\.\w+)*")
_OPERAND = re.compile(r"%((?:[A-Za-z][\w\-]*-start|send|recv)(?:\.\w+)*)\)")
_ELSEWHERE = ("call",)  # asynchronous, but computes on another engine instead of moving data
_COMPUTES = (Part.HIGH_FLOPS, Part.LOW_FLOPS)
_MOVES = (Part.COLLECTIVE, Part.SEND, Part.RECV)


class Role(IntEnum):
    """The role of an operation in communication. WHOLE: it moves data from its start to its end."""

    NEITHER = 0
    COMPUTES = 1
    WHOLE = 2
    STARTS = 3
    ENDS = 4


@dataclass(frozen=True, eq=False)
class TpuOps:
    """By row of `metadata`: its role, and the operation that it is or is a half of (a code into `ops`, -1
    none). The halves of one asynchronous operation have the same code.
    """

    role: npt.NDArray[np.uint8]
    op: Int64s
    ops: tuple[CommOp, ...]


@once
def tpu_ops(trace: Trace) -> TpuOps:
    """The roles of all operations of a host's TensorCores."""
    n = len(trace.metadata)
    role, op = np.zeros(n, np.uint8), np.full(n, -1, np.int64)
    category = trace.metadata_stats.dense_texts("hlo_category", n)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).tensor_cores))
    # Programs may have 100,000 operations: only those whose category leaves it open are looked at by name.
    texts, position = np.unique(category[rows], return_inverse=True)
    plain = [trace.strings.get(int(i)) for i in texts.tolist()]
    role_of_text = [Role.NEITHER if _is_open(text) else _role(text, "") for text in plain]
    role[rows] = np.array(role_of_text, np.uint8)[position.reshape(-1)]
    is_open = np.array([_is_open(text) for text in plain], np.bool_)[position.reshape(-1)]
    named = _Named(trace)
    names = named.instructions(rows[is_open])
    for row, name in names.items():
        text = trace.strings.get(int(category[row]))
        role[row] = _role(text, name)
        if role[row] in (Role.WHOLE, Role.STARTS):
            op[row] = named.code(row, name, text)
    for row in np.flatnonzero(role == Role.ENDS).tolist():
        start = named.start_of(row, names[row])
        if start >= 0:
            op[row] = op[start]
            named.pair(start, row)
        else:
            op[row] = named.code(row, names[row], trace.strings.get(int(category[row])))
    return TpuOps(role, op, named.ops())


def _is_open(category: str) -> bool:
    """Whether an operation's category does not decide its role: the name does."""
    return not category or category.startswith(("async", *COLLECTIVES, "send", "recv")) or "-" in category


def _role(category: str, name: str) -> Role:
    half = _HALF.fullmatch(name)
    part = part_of_op(category, name)
    if part in (Part.INPUT, Part.OUTPUT) or category in CONTAINERS:
        return Role.NEITHER
    if half and half[1].rpartition(".")[2] in _ELSEWHERE:
        return Role.NEITHER
    if half:
        return Role.STARTS if half[2] == "start" else Role.ENDS
    if _SEND_OR_RECEIVE.fullmatch(name) and part in (Part.SEND, Part.RECV):
        return Role.STARTS
    if part in _MOVES or (not category and kind_of(name.partition(".")[0])):
        return Role.WHOLE
    return Role.COMPUTES if part in _COMPUTES else Role.WHOLE


class _Named:
    """The operations that move data by name, and the metadata rows of their halves."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.plane = trace.metadata["plane"].tolist()
        self.program = trace.metadata_stats.dense_ints("program_id", len(trace.metadata)).tolist()
        self.index: dict[str, int] = {}
        self.found: list[CommOp] = []
        self.starts: dict[tuple[int, int, str], int] = {}
        self.ends: dict[int, str] = {}

    def instructions(self, rows: npt.NDArray[np.intp]) -> dict[int, str]:
        """The instruction of each row of `metadata`: as its HLO text names it, else as the event does."""
        full = zip(rows.tolist(), self.trace.metadata["name"][rows].tolist(), strict=True)
        texts = {row: self.trace.strings.get(text) for row, text in full}
        return {
            row: (text if text.startswith("%") else self._event_name(row))
            .partition(" = ")[0]
            .removeprefix("%")
            for row, text in texts.items()
        }

    def _event_name(self, row: int) -> str:
        return self.trace.strings.get(int(self.trace.event_names[row])).removeprefix("%")

    def code(self, row: int, name: str, category: str) -> int:
        """The code of the operation that a row of `metadata` is or starts; of a done without a start, too."""
        half = _HALF.fullmatch(name)
        base = half[1] + half[3] if half else name
        if (half and half[2] == "start") or _SEND_OR_RECEIVE.fullmatch(name):
            self.starts[self.plane[row], self.program[row], name] = row
        if base not in self.index:
            self.index[base] = len(self.found)
            self.found.append(self._op(row, base, name, category, half[1] if half else ""))
        return self.index[base]

    def _op(self, row: int, base: str, name: str, category: str, opcode: str) -> CommOp:
        kind = (
            kind_of(category)
            or kind_of(opcode or name.partition(".")[0])
            or (UNKNOWN_KIND if "collective" in base else "")
        )
        if kind:
            return CommOp(base, kind, Traffic.DEVICES, bool(opcode), (self._event_name(row),))
        is_host = bool(names_host_memory(self.trace)[self.trace.metadata["name"][row]])
        traffic = Traffic.HOST if is_host else Traffic.LOCAL
        size = _copied_bytes(self.trace, self.program[row], name)
        return CommOp(base, opcode or COPY, traffic, True, (), size)

    def start_of(self, row: int, name: str) -> int:
        """The row of the start that a done ends, -1 if there is none on its plane and in its program: the one
        that its HLO text names, else the one with its own name and number.
        """
        half = _HALF.fullmatch(name)
        operand = _OPERAND.search(self.trace.strings.get(int(self.trace.metadata["name"][row])))
        own = "" if half is None else f"{half[1]}{'' if half[1] in ('send', 'recv') else '-start'}{half[3]}"
        key = self.plane[row], self.program[row], operand[1] if operand else own
        return self.starts.get(key, -1)

    def pair(self, start: int, done: int) -> None:
        """Note the name of the done that ends a start."""
        self.ends[start] = self._event_name(done)

    def ops(self) -> tuple[CommOp, ...]:
        """The operations by code. Of an asynchronous one the done waits, and so comes first."""
        done_of = {self._event_name(row): done for row, done in self.ends.items()}
        return tuple(
            CommOp(op.name, op.kind, op.traffic, True, (done_of[op.transfers[0]], *op.transfers))
            if op.transfers and op.transfers[0] in done_of
            else op
            for op in self.found
        )


def _copied_bytes(trace: Trace, program: int, name: str) -> int:
    """Bytes that an asynchronous copy moves: of the largest array of its start; 0 unknown."""
    try:
        module = trace.programs.module(program)
    except ProfilerError:
        return 0
    row = -1 if module is None else module.find(name)
    if module is None or row < 0:
        return 0
    return max((leaf.size_bytes for leaf in module.shape(row).leaves if leaf.is_array), default=0)


def tpu_activity(trace: Trace, plane: int, spans_of: Spans) -> Activity:
    """When a TensorCore moves data and computes. `spans_of`: the events of a line, by the clock of choice."""
    ops = tpu_ops(trace)
    runs, computing = [np.empty((4, 0), np.int64)], [np.empty((2, 0), np.int64)]
    for line in lines_named(trace, plane, (OP_LINE,)):
        spans = spans_of(trace, line)
        computing.append(_computing(trace, ops, spans))
        runs.append(_runs(trace, ops, spans))
    known = np.unique(np.concatenate(runs, axis=1)[2])
    for line in lines_named(trace, plane, (ASYNC_OP_LINE,)):
        runs.append(_async_runs(trace, ops, spans_of(trace, line), known))
    start, end, op, event = np.concatenate(runs, axis=1)
    begin, stop = np.concatenate(computing, axis=1)
    return activity((start, end, op, event), (begin, stop))


def _computing(trace: Trace, ops: TpuOps, spans: DeviceSpans) -> Int64s:
    """Starts and ends of the stretches in which the innermost operation computes, int64[2, n]."""
    if not len(spans.rows):
        return np.empty((2, 0), np.int64)
    end = spans.start_ps + spans.duration_ps
    parent, _self_ps = nest(spans.start_ps, end, np.array([0, len(end)], np.int64))
    computes = (ops.role[trace.events["metadata"][spans.rows]] == Role.COMPUTES).astype(np.int32)
    window = np.array([spans.start_ps[0]], np.int64), np.array([end.max()], np.int64)
    code = computes, np.array([-1, 0], np.int32)
    start, stop, *_ = stretches(spans.start_ps, spans.duration_ps, parent, code, window)
    return np.stack((start, stop))


def _runs(trace: Trace, ops: TpuOps, spans: DeviceSpans) -> Int64s:
    """Starts, ends, operations and events of the runs of operations that move data, int64[4, n]."""
    metadata = trace.events["metadata"][spans.rows].astype(np.int64)
    role, op = ops.role[metadata], ops.op[metadata]
    end = spans.start_ps + spans.duration_ps
    halves = np.flatnonzero(role >= Role.STARTS)
    is_start = role == Role.STARTS
    # Starts sort before dones of the same time, since a start may take no time at all.
    order = halves[np.lexsort((~is_start[halves], spans.start_ps[halves], op[halves]))]
    cuts = np.flatnonzero(np.diff(op[order])) + 1
    pairs = [matched(group, is_start[group], 0) for group in np.split(order, cuts) if len(group)]
    start, done, _ = np.concatenate([np.empty((3, 0), np.int64), *pairs], axis=1).astype(np.int64)
    alone = np.flatnonzero((role == Role.WHOLE) | (role == Role.ENDS))
    alone = alone[~np.isin(alone, done)]
    first, last = np.concatenate((start, alone)), np.concatenate((done, alone))
    return np.stack((spans.start_ps[first], end[last], op[last], spans.rows[last].astype(np.int64)))


def _async_runs(trace: Trace, ops: TpuOps, spans: DeviceSpans, known: Int64s) -> Int64s:
    """The same for the line of asynchronous operations, without those that the operations' line has too."""
    metadata = trace.events["metadata"][spans.rows].astype(np.int64)
    op = ops.op[metadata]
    rows = np.flatnonzero((op >= 0) & ~np.isin(op, known))
    end = spans.start_ps + spans.duration_ps
    return np.stack((spans.start_ps[rows], end[rows], op[rows], spans.rows[rows].astype(np.int64)))
