"""Traces for tests of the trace viewer, questions about them, and answers as rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, drawing
from tests.tools.drawn_session import session_of

NAMES = ("MatMul", "matmul_grad", "copy", "Iterator::Map", "$a.py:3 f")
EVENTS_PER_HOST, LINES_PER_HOST = 2**40, 2**24
CORPUS = os.environ.get("TPUPROF_CORPUS", "")
needs_corpus = pytest.mark.skipif(not CORPUS, reason="TPUPROF_CORPUS does not name the corpus of real traces")
IN, OUT, IN_AND_OUT = 1, 2, 3


def rows(payload: Payload, table: str) -> list[dict[str, Any]]:
    """A table as dictionaries."""
    columns = payload.tables[table].columns
    decoded = [
        [column.strings[code] for code in column.values.tolist()]
        if column.strings is not None
        else column.values.tolist()
        for column in columns
    ]
    return [
        dict(zip([column.name for column in columns], row, strict=True)) for row in zip(*decoded, strict=True)
    ]


def ask(*traces: Trace, question: str = "", **params: object) -> Payload:
    """The tool's answer for traces as hosts worker-0, worker-1 …"""
    return TOOL.run(session_of(*traces), None, params, question)


@st.composite
def traces(draw: st.DrawFn, start_ns: int = 0) -> Trace:
    """One or two planes with lines that nest and overlap in whatever way."""
    planes = []
    for plane in ("/host:CPU", "/device:TPU:0")[: draw(st.integers(1, 2))]:
        lines: dict[str, list[DrawnEvent]] = {}
        for line in range(draw(st.integers(1, 2))):
            rng = np.random.default_rng(draw(st.integers(0, 2**32)))
            n = int(rng.integers(0, draw(st.sampled_from([8, 120]))))
            starts = rng.integers(0, 400, n)
            durations = np.where(rng.random(n) < 0.2, rng.integers(0, 200, n), rng.integers(0, 6, n))
            events = [
                DrawnEvent(NAMES[rng.integers(len(NAMES))], int(s), int(d))
                for s, d in zip(starts, durations, strict=True)
            ]
            lines[f"line {line}"] = sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))
        planes.append(DrawnPlane(plane, lines))
    return build(planes, start_ns=start_ns)


def brute_events(trace: Trace) -> list[dict[str, Any]]:
    """The events as plain dictionaries, with the depth that the definition gives: the first free row below
    the open events.
    """
    events = []
    for line in range(len(trace.lines)):
        open_until: list[int] = []
        for row in range(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])):
            start, duration = int(trace.events["start_ps"][row]), int(trace.events["duration_ps"][row])
            end = start + max(duration, 1)
            around = [d for d, until in enumerate(open_until) if until > start and until >= end]
            free = [
                d
                for d in range((around[-1] + 1) if around else 0, len(open_until) + 1)
                if d == len(open_until) or open_until[d] <= start
            ]
            depth = free[0]
            open_until[depth : depth + 1] = [end]
            name = trace.strings[int(trace.event_names[trace.events["metadata"][row]])]
            events.append(
                {
                    "event": row,
                    "track": line,
                    "depth": depth,
                    "start": start,
                    "end": end,
                    "duration": duration,
                    "name": name,
                }
            )
    return events


GPU = """
    python     [train             ][train            ]
    python      <launch><launch>    <launch>
    /device:GPU:0:
    Stream #1(Compute)    [k1][k2][k2]  [k1]
"""


def gpu() -> Trace:
    kernel = {"tf_op": "net/dense/MatMul:MatMul", "hlo_op": "call.1::fusion.2", "program_id": 3}
    kernels = [
        {"correlation_id": 1, "group_id": 0},
        {"correlation_id": 2, "group_id": 0},
        {"correlation_id": 9, "group_id": 0},
    ]
    stats = {
        "train": [
            {"_r": 1, "step_num": 1, "group_id": 0, "step_name": "train 1"},
            {"_r": 1, "step_num": 2, "group_id": 1, "step_name": "train 2"},
        ],
        "launch": [
            {"correlation_id": 1, "group_id": 0},
            {"correlation_id": 2, "group_id": 0},
            {"correlation_id": 3, "group_id": 1},
        ],
        "k1": [kernels[0] | kernel, {"correlation_id": 3, "group_id": 1} | kernel],
        "k2": [kernels[1] | kernel, kernels[2] | {"tf_op": "net/out/Relu:Relu"}],
    }
    return drawing(GPU, stats)


def real(path: str) -> Session:
    return Session(str(Path(CORPUS) / path), cache=False)


def flow(number: int, direction: int, category: int = 0) -> int:
    """The stat `flow`, as a signed number."""
    value = category << 58 | number << 2 | direction
    return value - 2**64 if value >= 2**63 else value


def line_named(payload: Any, name: str) -> list[dict[str, Any]]:
    tracks = {track["track"]: track for track in rows(payload, "tracks") if track["name"] == name}
    return [
        {**box, "section": tracks[box["track"]]["section"]}
        for box in rows(payload, "boxes")
        if box["track"] in tracks
    ]
