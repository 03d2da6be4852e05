"""Bursts of calls of programs that compute next to nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.tiny_calls import _bursts, tiny_calls
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of, us
from tests.builders import PS, DrawnEvent, DrawnPlane, build

EAGER = {
    "f": "TFE_Py_FastPathExecute_C",
    "e": "EagerLocalExecute: Mul",
    "x": "a/Mul:Mul",
    "m": "EagerLocalExecute: MatMul",
    "y": "b/MatMul:MatMul",
}
COLUMN_PS = 4 * 10**6


def loop(steps: Sequence[tuple[int, int]]) -> Trace:
    """Steps of so many calls of 5 columns, 3 of which the operation takes, then of one large operation of so
    many columns.
    """
    marks = python = calls = ops = "main  "
    for n, large in steps:
        marks += f"[train{' ' * (5 * n + large - 5)}]"
        python += f" {'[f  ]' * n}[f{' ' * (large - 3)}] "
        calls += f" {'[e  ]' * n}[m{' ' * (large - 3)}] "
        ops += f" {' [x] ' * n} [y{' ' * (large - 5)}]  "
    return trace_of("\n".join((marks, python, calls, ops)), EAGER, column_ps=COLUMN_PS)


def in_columns(evidence: HostEvidence, cause: Cause) -> list[float]:
    total = np.sum([part.time_ps for part in evidence.parts if part.cause == cause], axis=0)
    return [round(time * 10**6 / COLUMN_PS, 6) for time in us(total)]


def test_operations_that_the_host_calls_one_by_one() -> None:
    """Three unlike steps: 8, 9 and 12 small ones; the large one takes more than 100 µs."""
    tiny = tiny_calls(loop([(8, 40), (9, 60), (12, 30)]))
    assert tiny.names == {"EagerLocalExecute: Mul"}
    assert [time * 10**6 / COLUMN_PS for time in us(tiny.computed_ps)] == [8 * 3, 9 * 3, 12 * 3]


def test_what_they_compute_is_the_price_of_calling_them() -> None:
    """All of the calls' time is dispatch; of the large one's the 2 columns that are not the operation's."""
    evidence = host_evidence(loop([(8, 40), (9, 60), (12, 30)]))
    assert in_columns(evidence, Cause.DISPATCH) == [8 * 5 + 2, 9 * 5 + 2, 12 * 5 + 2]
    assert in_columns(evidence, Cause.COMPUTE) == [38, 58, 28]
    assert evidence.tiny_ps == pytest.approx((8 * 3 + 9 * 3 + 12 * 3) / 3 * COLUMN_PS)


def test_few_calls_are_none() -> None:
    tiny = tiny_calls(loop([(3, 40), (7, 60), (5, 30)]))
    assert (tiny.names, us(tiny.computed_ps)) == (frozenset(), [0, 0, 0])


def test_bursts_end_at_a_pause_of_more_than_two_calls() -> None:
    """Random calls of two threads, compared with a loop over them in time order."""
    rng = random.Random("bursts")
    for _ in range(60):
        lines: dict[str, list[DrawnEvent]] = {}
        for name in ("main", "second"):
            at, lines[name] = rng.randint(0, 50), []
            for _ in range(rng.randint(1, 12)):
                length = rng.randint(1, 5)
                lines[name].append(DrawnEvent("call", at * PS, length * PS))
                at += length + rng.choice((0, 1, 2, 9, 12, 15, 40))
        trace = build([DrawnPlane("/host:CPU", lines)])
        calls = sorted((one.start_ps, one.duration_ps) for line in lines.values() for one in line)
        pause = 2 * median(length for _, length in calls)
        bursts: list[list[int]] = []
        for start, length in calls:
            if bursts and start - bursts[-1][1] <= pause:
                bursts[-1][1] = max(bursts[-1][1], start + length)
            else:
                bursts.append([start, start + length])
        assert np.array(_bursts(trace, np.arange(len(calls)))).T.tolist() == bursts
