"""The picture of a step of random devices beside plain loops over moments."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.comm import picture as picture_module
from tb_tpuprof.analysis.comm.activity import CommOp, Traffic, activity
from tb_tpuprof.analysis.comm.host import Devices
from tb_tpuprof.analysis.comm.picture import Boxes, _n_cuts, picture
from tests.plain.plain_comm import Span

Run = tuple[int, int, int]  # start, end, operation
# Of a TensorCore, the second operation is on the line of its compute.
OPS = tuple(
    CommOp(name, "copy", Traffic.HOST, is_async)
    for name, is_async in (("a", True), ("b", False), ("c", True))
)
N_DEVICES = 120


def devices_of(kind: str, runs: list[Run], compute: list[Span], steps: list[Span]) -> Devices:
    """Two devices, of which the second one is drawn; the first does nothing."""
    starts, ends, ops = (np.array([run[i] for run in runs], np.int64) for i in range(3))
    busy = tuple(np.array([span[side] for span in compute], np.int64) for side in (0, 1))
    nothing = np.empty(0, np.int64)
    idle = activity((nothing,) * 4, (nothing,) * 2)
    device = activity((starts, ends, ops, np.arange(len(runs), dtype=np.int64)), (busy[0], busy[1]))
    begin = np.array([[0] * len(steps), [a for a, _ in steps]], np.int64)
    total = np.array([[1] * len(steps), [b - a for a, b in steps]], np.int64)
    return Devices(kind, (), (idle, device), OPS, begin, total)


def moments(boxes: Boxes, begin: int) -> list[tuple[int, str, int, int]]:
    """(lane, kind, operation, moment) of all boxes, by the device's clock."""
    columns = zip(
        boxes.lane.tolist(),
        boxes.kind,
        boxes.op.tolist(),
        boxes.start_ps.tolist(),
        boxes.duration_ps.tolist(),
        strict=True,
    )
    return [
        (lane, kind, op, begin + moment)
        for lane, kind, op, start, length in columns
        for moment in range(start, start + length)
    ]


def lanes_of(runs: list[Run], kind: str) -> list[int]:
    """The first lane for each run that is free and below those of runs that contain it; of two that start
    together the longer one comes first.
    """
    busy_until: list[int] = []
    lanes = [0] * len(runs)
    for i in sorted(range(len(runs)), key=lambda i: (runs[i][0], runs[i][0] - runs[i][1])):
        start, end, op = runs[i]
        if kind == "TPU" and not OPS[op].is_async:
            continue
        least = max(
            (n + 1 for n, until in enumerate(busy_until) if until > start and until >= end), default=0
        )
        free = (n for n in range(least, len(busy_until)) if busy_until[n] <= start)
        lane = next(free, len(busy_until))
        busy_until[lane : lane + 1] = [end]
        lanes[i] = lane + 1
    return lanes


def expected(kind: str, runs: list[Run], compute: list[Span], step: Span) -> list[tuple[int, str, int, int]]:
    def computes(moment: int) -> bool:
        return any(a <= moment < b for a, b in compute)

    window = range(*step)
    found = [(0, "compute", -1, moment) for moment in window if computes(moment)]
    shown = sorted(run for run in runs if run[1] > step[0] and run[0] < step[1] and run[1] > run[0])
    for (start, end, op), lane in zip(shown, lanes_of(shown, kind), strict=True):
        is_hidden = all(computes(moment) for moment in range(start, end))
        for moment in window:
            if start <= moment < end:
                state = "exposed" if not computes(moment) else "hidden" if is_hidden else "partly"
                found.append((lane, state, op, moment))
    bare = {moment for a, b, _ in shown for moment in range(a, b) if not computes(moment)}
    return found + [(-1, "total", -1, moment) for moment in window if moment in bare]


def random_runs(rng: random.Random) -> list[Run]:
    """Up to nine, no two of one start and end: their lanes would be either's."""
    made: dict[Span, int] = {}
    for _ in range(rng.randint(0, 9)):
        start = rng.choice((rng.randint(0, 90), 10 * rng.randint(0, 9)))
        made[start, start + rng.choice((rng.randint(0, 40), 10))] = rng.randrange(3)
    return [(*span, op) for span, op in made.items()]


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_pictures_of_random_devices(kind: str) -> None:
    rng = random.Random(f"picture {kind}")
    seen: dict[str, int] = dict.fromkeys(("compute", "hidden", "partly", "exposed", "total"), 0)
    deepest = 0
    for _ in range(N_DEVICES):
        compute = [
            (a, a + rng.randint(1, 25)) for a in (rng.randint(0, 100) for _ in range(rng.randint(0, 5)))
        ]
        runs = random_runs(rng)
        steps = [(begin, begin + rng.randint(1, 60)) for begin in (rng.randint(0, 70) for _ in range(3))]
        devices = devices_of(kind, runs, compute, steps)
        number = rng.randrange(3)
        boxes = picture(devices, 1, number)
        found = moments(boxes, steps[number][0])
        assert sorted(found) == sorted(expected(kind, runs, compute, steps[number]))
        assert boxes.n_left_out == 0
        for name in seen:
            seen[name] += any(kind_ == name for _, kind_, _, _ in found)
        deepest = max(deepest, int(boxes.lane.max(initial=0)))
    assert min(seen.values()) >= 10, seen
    assert deepest >= 3


def test_the_longest_runs_within_the_step_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third is longest, but not in the step; of equal ones the earlier counts."""
    runs = [(0, 40, 0), (10, 35, 1), (45, 400, 2), (20, 45, 0), (12, 15, 1), (0, 5, 2), (50, 60, 2)]
    devices = devices_of("GPU", runs, [(0, 1)], [(5, 50)])
    for most, starts in ((5, [0, 10, 12, 20, 45]), (3, [0, 10, 20]), (2, [0, 10]), (1, [0])):
        monkeypatch.setattr(picture_module, "MOST_RUNS", most)
        boxes = picture(devices, 1, 0)
        assert boxes.n_left_out == 5 - most
        shown = [
            start
            for lane, start in zip(boxes.lane.tolist(), boxes.start_ps.tolist(), strict=True)
            if lane > 0
        ]
        assert sorted(shown) == [max(start, 5) - 5 for start in starts]


def test_cuts_are_the_pairs_of_a_run_and_compute_within_it() -> None:
    rng = random.Random("cuts")
    n_touching = 0
    for _ in range(N_DEVICES):
        runs = random_runs(rng)
        at, compute = 0, []
        for _stretch in range(rng.randint(0, 6)):
            start = at + rng.randint(1, 9)
            at = start + rng.randint(1, 12)
            compute.append((start, at))
        columns = [
            tuple(np.array([span[side] for span in spans], np.int64) for side in (0, 1))
            for spans in (runs, compute)
        ]
        inside = [(run, span) for run in runs for span in compute if span[0] < run[1] and span[1] > run[0]]
        n_empty = sum(run[0] == run[1] for run, _ in inside)
        n_touching += sum(span[0] == run[1] or span[1] == run[0] for run in runs for span in compute)
        if not n_empty:
            assert _n_cuts((columns[0][0], columns[0][1]), (columns[1][0], columns[1][1])) == len(inside)
    assert n_touching > 10


def test_short_gaps_are_not_drawn() -> None:
    """A step of 10,000 ps: gaps of less than 5 ps vanish from the compute and the exposed time, not
    from runs.
    """
    runs = [(0, 3000, 0), (3004, 4000, 1), (4005, 5000, 2)]
    compute = [(6000, 6500), (6504, 7000), (7005, 8000)]
    boxes = picture(devices_of("GPU", runs, compute, [(0, 10_000)]), 1, 0)
    by_kind = {
        kind: [
            (start, start + length)
            for box, start, length in zip(
                boxes.kind, boxes.start_ps.tolist(), boxes.duration_ps.tolist(), strict=True
            )
            if box == kind
        ]
        for kind in ("compute", "total", "exposed")
    }
    assert by_kind["compute"] == [(6000, 7000), (7005, 8000)]
    assert by_kind["total"] == [(0, 4000), (4005, 5000)]
    assert by_kind["exposed"] == [(0, 3000), (3004, 4000), (4005, 5000)]
