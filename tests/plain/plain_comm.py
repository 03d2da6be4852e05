"""The division of a device's time into hidden and exposed communication, moment by moment in plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

Span = tuple[int, int]


class PlainExposure:
    """`runs`: (start, end) of each; `compute`: spans in any order; `steps`: (start, end) of each."""

    def __init__(self, runs: Sequence[Span], compute: Sequence[Span], steps: Sequence[Span]) -> None:
        self.hidden: dict[tuple[int, int], int] = defaultdict(int)
        self.exposed: dict[tuple[int, int], int] = defaultdict(int)
        self.elapsed: dict[tuple[int, int], int] = defaultdict(int)
        self.compute = [0] * len(steps)
        for step, (begin, end) in enumerate(steps):
            for moment in range(begin, end):
                computes = any(a <= moment < b for a, b in compute)
                self.compute[step] += computes
                active = [run for run, (a, b) in enumerate(runs) if a <= moment < b]
                for run in active:
                    self.elapsed[run, step] += 1
                if active:
                    owner = min(active, key=lambda run: (runs[run][1], run))
                    (self.hidden if computes else self.exposed)[owner, step] += 1


def plain_cover(run: Span, compute: Sequence[Span]) -> float:
    """The share of a run that compute covers."""
    covered = sum(any(a <= moment < b for a, b in compute) for moment in range(*run))
    return covered / (run[1] - run[0])
