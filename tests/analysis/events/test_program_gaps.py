"""Gaps without an operation inside programs, compared with counting microseconds."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.events.program_gaps import gaps_within
from tests.builders import DrawnEvent, DrawnPlane, build

US = 1_000_000
Span = tuple[int, int]


def gaps(programs: list[Span], operations: list[Span], unit: int = US) -> list[tuple[int, int, int]]:
    """(start, end, program) in units of ps."""
    events = [DrawnEvent("op", a * unit, (b - a) * unit) for a, b in operations]
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": events})])
    bounds = np.array(programs, np.int64).reshape(-1, 2) * unit
    found = gaps_within(trace, (bounds[:, 0], bounds[:, 1]), np.arange(len(operations)))
    columns = ((found.start_ps // unit).tolist(), (found.end_ps // unit).tolist(), found.program.tolist())
    return sorted(zip(*columns, strict=True), key=lambda gap: (gap[2], gap[0]))


def plain(programs: list[Span], operations: list[Span]) -> list[tuple[int, int, int]]:
    """Runs of microseconds of each program in which no operation ran."""
    found = []
    for number, (first, last) in enumerate(programs):
        idle_from = -1
        for moment in range(first, last + 1):
            is_idle = moment < last and not any(a <= moment < b for a, b in operations)
            if is_idle and idle_from < 0:
                idle_from = moment
            if not is_idle and idle_from >= 0:
                found.append((idle_from, moment, number))
                idle_from = -1
    return found


def test_gaps_before_between_and_after_operations() -> None:
    operations = [(2, 5), (5, 6), (9, 20), (11, 13), (33, 40)]
    assert gaps([(0, 25), (30, 50)], operations) == [
        (0, 2, 0),
        (6, 9, 0),
        (20, 25, 0),
        (30, 33, 1),
        (40, 50, 1),
    ]


def test_a_single_operation() -> None:
    assert gaps([(10, 30)], [(5, 14)]) == [(14, 30, 0)]
    assert gaps([(10, 30)], [(12, 40)]) == [(10, 12, 0)]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    edges = np.sort(draw.choice(80, 6, replace=False)).tolist()
    programs = [(edges[i], edges[i + 1]) for i in (0, 2, 4)]
    starts = np.sort(draw.integers(0, 85, 14))
    operations = [(int(a), int(a + n)) for a, n in zip(starts, draw.integers(0, 6, 14), strict=True)]
    operations = [one for one in operations if one[1] > one[0]]
    assert gaps(programs, operations) == plain(programs, operations)


def test_only_gaps_of_at_least_a_microsecond() -> None:
    operations = [(0, 10), (10 + US - 1, 2 * US), (3 * US, 4 * US)]
    assert gaps([(0, 4 * US)], operations, unit=1) == [(2 * US, 3 * US, 0)]
    assert gaps([(0, 2 * US + 9)], [(0, 9), (2 * US, 2 * US + 9)], unit=1) == [(9, 2 * US, 0)]
    # A gap of 2 µs, of which a program has less than 1 µs.
    assert gaps([(0, 20 + US - 1), (4 * US, 5 * US)], [(0, 20), (3 * US, 6 * US)], unit=1) == []


def test_without_programs_or_operations_there_are_none() -> None:
    assert gaps([], [(0, 5)]) == []
    assert gaps([(0, 5)], []) == []
