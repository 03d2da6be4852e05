"""Evidence of a trace, found with loops over its events: enclosing events come from a search for the shortest
one around each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.trace.trace import Trace

Span = tuple[int, int]
_COMPILERS = ("backend_compile", "tf.function-graph_building")


@dataclass
class Event:
    """An event: its thread and name, its span in ps, and the event that directly encloses it."""

    line: str
    name: str
    start: int
    end: int
    above: Event | None = None

    def around(self) -> list[Event]:
        """All events that enclose it, the innermost first."""
        result, one = [], self.above
        while one:
            result.append(one)
            one = one.above
        return result


def events_of(trace: Trace) -> list[Event]:
    """All events in the trace's order. An event encloses the later ones of its line that it contains."""
    result: list[Event] = []
    for line in range(len(trace.lines)):
        name = trace.strings[int(trace.lines["name"][line])]
        of_line: list[Event] = []
        for row in range(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])):
            start = int(trace.events["start_ps"][row])
            text = trace.strings[int(trace.metadata["name"][trace.events["metadata"][row]])]
            event = Event(name, text, start, start + int(trace.events["duration_ps"][row]))
            around = [one for one in of_line if one.start <= event.start and event.end <= one.end]
            event.above = around[-1] if around else None
            of_line.append(event)
        result += of_line
    return result


def union(spans: Iterable[Span], within: Span) -> int:
    """Time of a span that any of the spans covers."""
    covered, reached = 0, within[0]
    for start, end in sorted(spans):
        start, end = max(start, reached), min(end, within[1])
        covered += max(0, end - start)
        reached = max(reached, end)
    return covered


def label(name: str) -> tuple[str, str]:
    """Kind and name of what an event calls; empty for anything else."""
    if name in _COMPILERS:
        return "compile", name
    if re.fullmatch(r"cu\w*LaunchKernel\w*", name):
        return "launch", name
    kind, _, called = name.partition(": ") if ": " in name else name.rstrip(")").partition("(")
    if kind == "EagerLocalExecute":
        return "eager", called
    if kind != "PjitFunction":
        return "", ""
    return "program", re.sub(r"__inference_(.*)_\d+", r"\1", called)


def calls(events: Sequence[Event], steps: Sequence[Span]) -> dict[tuple[str, str], list[int]]:
    """Calls of each program, operation, launch and compilation in each step."""
    result: dict[tuple[str, str], list[int]] = {}
    first_compiled: dict[str, tuple[str, str]] = {}
    for event in events:
        kind, called = label(event.name)
        step = [i for i, (start, end) in enumerate(steps) if start <= event.start < end]
        is_again = event.above is not None and label(event.above.name) == (kind, called)
        is_nested = kind == "compile" and any(one.name in _COMPILERS for one in event.around())
        if not kind or not step or is_again or is_nested:
            continue
        key = kind, called
        if kind == "compile":
            key = first_compiled.setdefault(event.name, (kind, compiled(event)))
        result.setdefault(key, [0] * len(steps))[step[-1]] += 1
    return result


def compiled(event: Event) -> str:
    """What a compilation compiles: the program around it; what encloses a graph's building; else the
    compiler.
    """
    for one in (event, *event.around()):
        kind, called = label(one.name)
        if kind == "program":
            return called
        if event.name == "tf.function-graph_building" and one.above:
            return one.above.name
    return event.name


def pool(events: Sequence[Event], lines: Sequence[str], steps: Sequence[Span]) -> tuple[int, float]:
    """Threads of the largest compute pool, and how many tasks of all threads run at once."""
    n = max(
        sum(line.startswith(one) for line in lines) for one in ("tf_XLAEigen/", "tf_numa_", "tf_Compute/")
    )
    busy = 0
    for line in lines:
        spans = tasks([one for one in events if one.line == line])
        busy += sum(union(spans, step) for step in steps)
    return (n, busy / sum(end - start for start, end in steps)) if n else (0, 0.0)


def tasks(events: Sequence[Event]) -> list[Span]:
    """Tasks of a thread: from a start mark to the last stop mark before the next start, else to that start,
    else to the end of the thread's last event.
    """
    starts = [i for i, one in enumerate(events) if one.name.endswith("StartRegion")]
    result = []
    for i, following in zip(starts, [*starts, len(events)][1:], strict=True):
        stops = [one.start for one in events[i:following] if one.name.endswith("StopRegion")]
        if stops:
            result.append((events[i].start, stops[-1]))
        else:
            is_last = following == len(events)
            end = max(one.end for one in events) if is_last else events[following].start
            result.append((events[i].start, end))
    return result


def rare_functions(
    events: Sequence[Event], users: Sequence[str], common: str, steps: Sequence[Span]
) -> list[tuple[str, list[int]]]:
    """The user's functions of the steps' thread that two steps to half of them call, longest first. `common`:
    a function that is the user's where the user calls it.
    """
    times: dict[str, list[int]] = {}
    total: dict[str, int] = {}
    for event in events:
        is_called = event.name == common and event.above is not None and event.above.name in users
        if event.line == "main" and (event.name in users or is_called):
            total[event.name] = total.get(event.name, 0) + event.end - event.start
            for i, (start, end) in enumerate(steps):
                if start <= event.start < end:
                    times.setdefault(event.name, [0] * len(steps))[i] += event.end - event.start
    result = []
    for name, per_step in times.items():
        limited = [min(one, end - start) for one, (start, end) in zip(per_step, steps, strict=True)]
        n = sum(one > 0 for one in limited)
        if 2 <= n <= len(steps) / 2:
            result.append((name, limited))
    return sorted(result, key=lambda pair: -total[pair[0]])


def gaps(pieces: Pieces, steps: Sequence[Span]) -> list[tuple[int, Span, int, int]]:
    """(step, span, piece before, piece after) of the time of each step that no classified piece covers.

    -1: the step's start or end.
    """
    rows = [i for i in range(len(pieces)) if pieces.thread_class[i] != TimeClass.UNKNOWN]
    result = []
    for step, (start, end) in enumerate(steps):
        reached, before = start, -1
        for i in sorted((i for i in rows if pieces.step[i] == step), key=lambda i: int(pieces.start[i])):
            if pieces.start[i] > reached:
                result.append((step, (reached, int(pieces.start[i])), before, i))
            if pieces.end[i] >= reached or before < 0:
                reached, before = int(pieces.end[i]), i
        if end > reached and before >= 0:
            result.append((step, (reached, end), before, -1))
    return result
