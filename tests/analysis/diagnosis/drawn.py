"""Traces for the diagnosis, drawn with short names: a legend gives the full name of `u` or `g`. And helpers
that show its parts in columns of the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Call, Calls, HostEvidence, Part
from tb_tpuprof.analysis.events.frameworks import JAX, Software
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnPlane, Stats, build, drawn_planes

LEGEND = {
    "u": "$mine.py:40 update",
    "v": "$shop.py:7 report",
    "g": "PjitFunction(grow)",
    "h": "PjitFunction(shrink)",
    "c": "backend_compile",
    "d": "dot:Dot",
    "s": "$time sleep",
    "n": "$builtins next",
    "b": "$gen.py:15 batches",
    "a": "np.asarray(jax.Array)",
    "k": "pure_callback",
    "p": "$pxla.py:90 run",
}
Row = tuple[Cause, str, str, str]
STEPS_US = (100, 200, 300)
NOBODY = Culprit()


def planes_of(
    text: str,
    legend: Mapping[str, str] | None = None,
    stats: Mapping[str, Stats | Sequence[Stats]] | None = None,
    column_ps: int = PS,
) -> list[DrawnPlane]:
    """The planes of a drawing whose events have the legend's names, and in which every `train` is a step."""
    planes = drawn_planes(text, stats)
    names = {**LEGEND, **(legend or {})}
    events = [event for plane in planes for line in plane.lines.values() for event in line]
    marks = sorted((event for event in events if event.name == "train"), key=lambda event: event.start_ps)
    for number, event in enumerate(marks):
        event.stats = {"_r": 1, "step_num": number}
    for event in events:
        event.name = names.get(event.name, event.name)
        event.start_ps, event.duration_ps = (
            event.start_ps // PS * column_ps,
            event.duration_ps // PS * column_ps,
        )
    return planes


def trace_of(
    text: str,
    legend: Mapping[str, str] | None = None,
    stats: Mapping[str, Stats | Sequence[Stats]] | None = None,
    column_ps: int = PS,
) -> Trace:
    """The trace of a drawing (see `planes_of`)."""
    return build(planes_of(text, legend, stats, column_ps))


def us(times: npt.ArrayLike) -> list[float]:
    """Times in ps as columns of the drawing."""
    return (np.asarray(times) / PS).tolist()


def rows(parts: Iterable[Part]) -> dict[Row, list[float]]:
    """(cause, culprit, caller, call) → time in each step."""
    times: dict[Row, npt.NDArray[np.int64]] = {}
    for part in parts:
        key = part.cause, part.culprit.name, part.caller.name, part.call
        times[key] = times.get(key, 0) + part.time_ps
    return {key: us(time) for key, time in times.items()}


def columns(*times_us: float) -> npt.NDArray[np.int64]:
    """Times of steps in ps, given in µs."""
    return np.array([round(time * PS) for time in times_us], np.int64)


def part(
    cause: Cause,
    *times_us: float,
    klass: TimeClass = TimeClass.HOST_PYTHON,
    culprit: Culprit = NOBODY,
    caller: Culprit = NOBODY,
    call: str = "",
    span: tuple[int, int] = (-1, -1),
) -> Part:
    """A handmade part."""
    return Part(cause, klass, culprit, caller, call, columns(*times_us), 1, *span)


def evidence(
    *parts: Part,
    framework: str = JAX,
    has_python: bool = True,
    steps_us: Sequence[float] = STEPS_US,
    **given: object,
) -> HostEvidence:
    """Handmade evidence, by default of three unlike steps: 100, 200 and 300 µs, so that a mean of 20 µs is 10
    %.
    """
    duration = columns(*steps_us)
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(duration)[:-1])) if len(duration) else duration
    made = HostEvidence(
        "worker-0",
        "CPU",
        Software(framework, has_python=has_python),
        "annotation",
        False,
        tuple(f"train {i}" for i in range(len(duration))),
        start,
        duration,
        tuple(parts),
        (),
        Calls(),
        (),
        (),
        (),
        None,
        True,
        np.zeros(len(duration), np.int64),
    )
    return replace(made, **given)  # type: ignore[arg-type]


def calls(kind: str, **per_step: Sequence[int]) -> Calls:
    """Calls of one kind, by name."""
    return Calls(tuple(Call(kind, name, np.array(counts, np.int64)) for name, counts in per_step.items()))


def function(name: str, file: str = "mine.py", line: int = 40) -> Culprit:
    """A function as the culprit."""
    return Culprit("function", name, file, line)
