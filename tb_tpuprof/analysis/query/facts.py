"""What an event is part of: its step, its HLO category and its program; one code per event of the file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import MODULE_LINES, line_events, lines_named, planes
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.timeline.steps import number_in_name, step_marks
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
_GAPS = 1000


@dataclass(frozen=True)
class Codes:
    """A text for each event: `of` are codes into `texts`, -1 is none."""

    of: Int32s
    texts: tuple[str, ...]


@once
def event_steps(trace: Trace) -> Codes:
    """The step of each event, by name: the one that it was grouped into. In a trace without groups, the one
    in which it starts.
    """
    grouped = groups(trace)
    if len(grouped.group) and grouped.names:
        numbers, texts = list(grouped.names), tuple(grouped.names.values())
        most = max(numbers)
        if most < 2 * len(numbers) + _GAPS and int(grouped.group.max()) <= most:  # the numbers are the codes
            return Codes(grouped.group, tuple(grouped.names.get(i, "") for i in range(most + 1)))
        code = np.full(max(int(grouped.group.max(initial=0)), *numbers) + 2, -1, np.int32)
        code[numbers] = np.arange(len(numbers), dtype=np.int32)
        return Codes(code[grouped.group], texts)
    marks = step_marks(trace)
    if not len(marks.start_ps):
        return Codes(np.full(trace.n_events, -1, np.int32), ())
    start = trace.events["start_ps"]
    place = np.searchsorted(marks.start_ps, start, "right") - 1
    ends = marks.start_ps + np.maximum(marks.duration_ps, 1)
    is_within = (place >= 0) & (start < ends[np.maximum(place, 0)])
    return Codes(np.where(is_within, place, -1).astype(np.int32), marks.name)


def step_numbers(texts: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The number in each step's name (`train 17`), -1 if it has none."""
    return np.array([number_in_name(text) for text in texts], np.int64)


@once
def event_categories(trace: Trace) -> Codes:
    """The HLO category of each event that is an operation: the recorded one (TPU), else that of the
    instruction that it ran.
    """
    texts: dict[str, int] = {}
    of_metadata = np.full(len(trace.metadata), -1, np.int32)
    recorded = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for row in np.flatnonzero(recorded >= 0).tolist():
        of_metadata[row] = texts.setdefault(trace.strings.get(int(recorded[row])), len(texts))
    code = of_metadata[trace.events["metadata"]] if len(trace.metadata) else np.empty(0, np.int32)
    links = hlo_links(trace)
    if len(links):
        ops = hlo_ops(trace)
        programs = enumerate(ops.program.tolist())
        category = {(program, ops.name[row]): ops.category[row] for row, program in programs}
        of_op = np.array(
            [texts.setdefault(category.get((op.program_id, op.name), ""), len(texts)) for op in links.ops],
            np.int32,
        )
        if "" in texts:
            of_op[of_op == texts[""]] = -1
        unknown = code[links.events] < 0
        code[links.events[unknown]] = of_op[links.op[unknown]]
    return Codes(code, tuple(texts))


@once
def event_modules(trace: Trace) -> Codes:
    """The compiled program of each event: the one that its operation names, else the one that was running on
    its device when it began.
    """
    texts: dict[str, int] = {}
    code = np.full(trace.n_events, -1, np.int32)
    for plane in (*planes(trace).tensor_cores, *planes(trace).sparse_cores):
        for line in lines_named(trace, plane, MODULE_LINES):
            _fill_by_time(trace, plane, line, code, texts)
    links = hlo_links(trace)
    if len(links):
        titles = hlo_ops(trace).programs
        of_op = np.array([_title(titles.get(op.program_id, ""), texts) for op in links.ops], np.int32)
        rows = np.flatnonzero(code[links.events] < 0)
        code[links.events[rows]] = of_op[links.op[rows]]
    return Codes(code, tuple(texts))


def _title(title: str, texts: dict[str, int]) -> int:
    return texts.setdefault(title, len(texts)) if title else -1


def _fill_by_time(trace: Trace, plane: int, line: int, code: Int32s, texts: dict[str, int]) -> None:
    """Sets the programs of a plane's events from its line of programs."""
    span = line_events(trace, line)
    begin, duration = trace.events["start_ps"][span], trace.events["duration_ps"][span]
    if not len(begin):
        return
    names = trace.event_names[trace.events["metadata"][span]]
    module = np.array(
        [texts.setdefault(trace.strings.get(name), len(texts)) for name in names.tolist()], np.int32
    )
    for other in trace.lines_of([plane]).tolist():
        rows = line_events(trace, other)
        start = trace.events["start_ps"][rows]
        place = np.searchsorted(begin, start, "right") - 1
        inside = (place >= 0) & (start < (begin + np.maximum(duration, 1))[np.maximum(place, 0)])
        code[rows] = np.where(inside & (code[rows] < 0), module[np.maximum(place, 0)], code[rows])
