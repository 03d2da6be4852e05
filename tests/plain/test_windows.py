"""Windows of steps, and what lies in them, compared with loops over random steps and intervals."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.windows import Windows, clipped, overlapping, step_at, step_windows

Steps = list[tuple[int, int, int, int]]  # group, start, end, end of its work


def random_steps(rng: random.Random) -> Steps:
    """Steps on one thread, which may follow each other closely or leave gaps, and whose work may
    end later.
    """
    gap = rng.choice((0, 0, 1, 5, 6, 30))
    late, behind = rng.choice((0, 0, 20, 60, 140)), rng.choice((0, 0, 0, 130))
    every, long_gap = rng.randint(1, 4), rng.choice((0, 6, 40))
    start, result = rng.randint(0, 50), []
    for number in range(rng.choice((1, 2, 3, 4, 6, 9))):
        end = start + rng.choice((95, 100, 100, 120))
        result.append((number * 3, start, end, behind + (rng.randint(end - 40, end + late) if late else end)))
        start = end + rng.choice((gap, gap, gap, 0)) + (long_gap if number % every == 0 else 0)
    if rng.random() < 0.15 and len(result) > 1:
        group, begin, end, work = result[-1]
        result[-1] = group, begin - 60, end, work
    if rng.random() < 0.15:
        work = max(step[3] for step in result)
        result = [(*step[:3], work) for step in result]
    rng.shuffle(result)
    return result


def plain_windows(steps: Steps, are_alike: bool) -> tuple[list[tuple[int, int, int]], str, int, bool]:
    """(group, start, end) of each window by start, how they were found, how many steps are left out, and
    whether nine of ten steps ended before the work of the step before.
    """
    steps = sorted(steps, key=lambda step: step[1])
    annotated = [(group, start, end) for group, start, end, _ in steps], "annotated", 0, False
    if len(steps) < 3 or not are_alike or any(after[1] < step[2] for step, after in pairwise(steps)):
        return annotated
    work, ended = [], 0
    for _, _, end, work_end in steps:
        ended = max(ended, end, work_end)
        work.append(ended)
    n_later = sum(work[i] > steps[i + 1][1] for i in range(len(steps) - 1))
    n_own = sum(after > before for before, after in pairwise(work))
    if 2 * n_later > len(steps) - 1 and 2 * n_own > len(steps) - 1:
        begin = [steps[0][1], *work[:-1]]
        n_early = sum(steps[i][2] <= begin[i] for i in range(1, len(steps)))
        is_ahead = 10 * n_early >= 9 * (len(steps) - 1)
        return [(steps[i][0], begin[i], work[i]) for i in range(len(steps))], "dispatched", 0, is_ahead
    period = median(after[1] - step[1] for step, after in pairwise(steps))
    gaps = [after[1] - step[2] for step, after in pairwise(steps)]
    long_gaps = [i for i, gap in enumerate(gaps) if gap > 0.05 * period]
    is_even = len({after - before for before, after in pairwise(long_gaps)}) == 1
    if median(gaps) > 0.05 * period or is_even:
        return [(step[0], step[1], after[1]) for step, after in pairwise(steps)], "loop", 1, False
    return annotated


@pytest.mark.parametrize("seed", range(6))
def test_windows_of_steps_equal_those_of_loops(seed: int) -> None:
    rng = random.Random(f"windows {seed}")
    kinds = []
    for _ in range(200):
        steps, are_alike = random_steps(rng), rng.random() < 0.9
        made = step_windows(*np.array(steps, np.int64).T, are_alike)
        rows = list(zip(made.group.tolist(), made.start.tolist(), made.end.tolist(), strict=True))
        expected = plain_windows(steps, are_alike)
        assert (rows, made.how, made.n_open, made.is_ahead) == expected
        kinds.append((made.how, made.is_ahead))
        chosen = np.array(sorted(rng.sample(range(len(rows)), len(rows) // 2)), np.intp)
        taken = made.take(chosen)
        assert (taken.group.tolist(), taken.how, taken.n_open, taken.is_ahead) == (
            [rows[i][0] for i in chosen.tolist()],
            made.how,
            made.n_open,
            made.is_ahead,
        )
    both = {("dispatched", False), ("dispatched", True)}
    assert {("annotated", False), ("loop", False), *both} == set(kinds)


def random_windows(rng: random.Random) -> Windows:
    """Windows by start, of which some overlap, touch or are empty."""
    n = rng.randint(0, 6)
    start = sorted(rng.randint(0, 30) for _ in range(n))
    end = [one + rng.randint(0, 12) for one in start]
    return Windows(np.arange(n), np.array(start, np.int64), np.array(end, np.int64), "annotated")


@pytest.mark.parametrize("seed", range(4))
def test_intervals_are_cut_at_each_window_that_they_overlap(seed: int) -> None:
    rng = random.Random(f"intervals {seed}")
    for _ in range(200):
        windows = random_windows(rng)
        start = [rng.randint(-3, 35) for _ in range(rng.randint(0, 8))]
        end = [one + rng.choice((0, 1, 5, 20)) for one in start]
        expected = [
            (i, w, max(start[i], first), min(end[i], last))
            for i in range(len(start))
            for w, (first, last) in enumerate(zip(windows.start.tolist(), windows.end.tolist(), strict=True))
            if min(end[i], last) > max(start[i], first)
        ]
        spans = np.array(start, np.int64), np.array(end, np.int64)
        assert [tuple(row) for row in np.array(clipped(*spans, windows)).T.tolist()] == expected
        assert [tuple(row) for row in np.array(overlapping(*spans, windows)).T.tolist()] == [
            row[:2] for row in expected
        ]


@pytest.mark.parametrize("seed", range(4))
def test_a_moment_is_in_the_window_that_began_last(seed: int) -> None:
    rng = random.Random(f"moments {seed}")
    n_in_none = n_later = 0
    for _ in range(200):
        n = rng.randint(1, 6)
        start = rng.sample(range(30), n)
        end = [one + rng.randint(1, 12) for one in start]
        windows = Windows(np.arange(n), np.array(start, np.int64), np.array(end, np.int64), "annotated")
        for moment, step in enumerate(step_at(windows, np.arange(40)).tolist()):
            begun = [i for i in range(n) if start[i] <= moment]
            last = max(begun, key=lambda i: start[i]) if begun else -1
            expected = last if begun and moment < end[last] else -1
            assert step == expected
            n_in_none, n_later = n_in_none + (step < 0), n_later + (step > 0)
    assert min(n_in_none, n_later) > 100
