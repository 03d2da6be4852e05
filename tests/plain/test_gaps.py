"""Unrecorded time of random steps, which may overlap, compared with a walk over the pieces of each step."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.analysis.diagnosis import unrecorded as module
from tb_tpuprof.analysis.diagnosis.records import DEVICE_WORK
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build

SEEDS = range(12)
NAMES = (
    "$mine.py:4 f",
    "PjitFunction(g)",
    "ThreadpoolListener::Record",
    "void gemm<float>(int)",
    "a",
    "b",
    "c",
)
SHOWN = ("mine.py:4 f", "PjitFunction(g)", DEVICE_WORK, "void gemm<float>(int)", "a", "b", "c")
ON_DEVICE = ("$mine.py:4 f", "PjitFunction", "ThreadpoolListener::Record", "gemm", "a", "b", "c")
CLASSES = (TimeClass.UNKNOWN, TimeClass.HOST_PYTHON, TimeClass.HOST_COMPUTE, TimeClass.DEVICE_COMPUTE_16)


@dataclass(frozen=True)
class Steps:
    start_ps: npt.NDArray[np.int64]
    duration_ps: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True)
class Piece:
    """A stretch of a step. `first`, `last`: its events, as places of NAMES; `is_own`: of the steps'
    thread.
    """

    step: int
    start: int
    end: int
    klass: TimeClass
    is_own: bool
    first: int
    last: int

    def name(self, event: int) -> str:
        is_device = not self.is_own and self.klass > TimeClass.HOST_COMPUTE
        return ON_DEVICE[event] if is_device else SHOWN[event]


def random_steps(rng: random.Random) -> tuple[Steps, list[Piece]]:
    """Steps in the order of their starts, and their pieces in any order. No two pieces end together."""
    unit, starts, lengths, at = 1000, [], [], 0
    for _ in range(rng.randint(1, 5)):
        starts.append(at * unit)
        lengths.append(rng.randint(5, 40) * unit)
        at += rng.randint(1, 50)
    pieces = []
    for step, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        for _ in range(rng.randint(0, 7)):
            begin = start + rng.randint(0, length // unit - 1) * unit + 13 * len(pieces)  # none together
            end = min(begin + rng.randint(1, 12) * unit + len(pieces) + 1, start + length)
            names = rng.randrange(len(NAMES)), rng.randrange(len(NAMES))
            pieces.append(Piece(step, begin, end, rng.choice(CLASSES), rng.random() < 0.5, *names))
    rng.shuffle(pieces)
    return Steps(np.array(starts), np.array(lengths)), pieces


def traced(steps: Steps, pieces: list[Piece]) -> tuple[Trace, Pieces]:
    trace = build(
        [DrawnPlane("/host:CPU", {"main": [DrawnEvent(name, i, 1) for i, name in enumerate(NAMES)]})]
    )
    columns = {
        key: np.array([getattr(one, key) for one in pieces], np.int64)
        for key in ("start", "end", "klass", "step", "is_own", "first", "last")
    }
    klass = columns["klass"].astype(np.uint8)
    named = np.where(columns["is_own"] > 0, columns["first"], -1)
    made = Pieces(
        columns["start"],
        columns["end"],
        klass,
        columns["step"],
        named,
        columns["first"],
        klass,
        columns["last"],
    )
    return trace, made


def walked(steps: Steps, pieces: list[Piece]) -> list[tuple[int, int, int, str, str]]:
    """(step, start, end, before, after) of each gap; a step without recorded pieces has none."""
    result = []
    for step, (start, length) in enumerate(
        zip(steps.start_ps.tolist(), steps.duration_ps.tolist(), strict=True)
    ):
        mine = [one for one in pieces if one.step == step and one.klass != TimeClass.UNKNOWN]
        mine.sort(key=lambda one: one.start)
        reached, before = start, ""
        for one in mine:
            if one.start > reached:
                result.append((step, reached, one.start, before, one.name(one.first)))
            if one.end > reached or not before:
                reached, before = max(one.end, reached), one.name(one.last)
        if mine and reached < start + length:
            result.append((step, reached, start + length, before, ""))
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_of_steps_that_may_overlap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"gaps {seed}")
    for _ in range(15):
        steps, pieces = random_steps(rng)
        trace, made = traced(steps, pieces)
        monkeypatch.setattr(module, "step_pieces", lambda _trace, pair=(steps, made): pair)
        expected = walked(steps, pieces)
        places: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        for step, start, end, before, after in expected:
            places.setdefault((before, after), []).append((step, start, end))
        totals = sorted((sum(end - start for _, start, end in one) for one in places.values()), reverse=True)
        found = module.gaps(trace)
        assert [int(gap.time_ps.sum()) for gap in found] == totals[:3]
        for gap in found:
            mine = places[gap.before, gap.after]
            per_step = [
                sum(end - start for at, start, end in mine if at == step) for step in range(len(steps))
            ]
            assert gap.time_ps.tolist() == per_step
            longest = max(end - start for _, start, end in mine)
            assert (gap.last_ps - gap.first_ps) == longest
            assert (gap.first_ps, gap.last_ps) in {(start, end) for _, start, end in mine}
        short = [0] * len(steps)
        for step, start, end, before, after in expected:
            short[step] += (end - start) * bool(before and after)
        assert module.short_gaps(trace).tolist() == short


def test_gaps_of_300_us_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    us = 1_000_000
    python = TimeClass.HOST_PYTHON
    pieces = [
        Piece(0, start * us, (start + 10) * us + more, python, True, i, i)
        for i, (start, more) in enumerate(((0, 0), (310, 0), (620, -1), (930, 0)))
    ]
    steps = Steps(np.array([0]), np.array([2000 * us]))
    trace, made = traced(steps, pieces)
    monkeypatch.setattr(module, "step_pieces", lambda _trace: (steps, made))
    assert module.short_gaps(trace).tolist() == [2 * 300 * us]


@pytest.mark.parametrize("pieces", [[], [Piece(0, 5, 9, TimeClass.UNKNOWN, True, 0, 0)]])
def test_steps_of_which_nothing_is_recorded_have_no_place_of_gaps(
    pieces: list[Piece], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(np.array([0, 10]), np.array([10, 20]))
    trace, made = traced(steps, pieces)
    monkeypatch.setattr(module, "step_pieces", lambda _trace: (steps, made))
    assert (module.gaps(trace), module.short_gaps(trace).tolist()) == ((), [0, 0])
