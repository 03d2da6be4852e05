"""Threads that steps run on, stored by context: stretches and times compared with a loop over every
moment.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import OwnThread, Pieces, joined, no_pieces

LAST = 60
Windows = list[tuple[int, int, int]]  # start, end, step


class RandomThread:
    """Nested events, each in the context of its name and its parent's context, and windows in which steps run
    on it.
    """

    def __init__(self, rng: random.Random, windows: Windows) -> None:
        self.windows, self.first_row = windows, rng.randint(0, 40)
        self.start: list[int] = []
        self.end: list[int] = []
        self.parent: list[int] = []
        self.context: list[int] = []
        self.contexts: dict[tuple[int, int], int] = {}
        self.first: list[int] = []
        self._nest(rng, 0, LAST, -1, 3)
        unknown = TimeClass.UNKNOWN
        self.klass = [
            rng.choice((unknown, TimeClass.HOST_PYTHON, TimeClass.HOST_WAIT, TimeClass.HOST_COMPUTE))
            for _ in self.first
        ]

    def _nest(self, rng: random.Random, low: int, high: int, parent: int, depth: int) -> None:
        at = low
        while at < high and rng.random() < 0.8:
            start = rng.randint(at, high - 1)
            end = rng.randint(start + 1, high)
            row = len(self.start)
            key = (self.context[parent] if parent >= 0 else -1, rng.randint(0, 1))
            if key not in self.contexts:
                self.contexts[key] = len(self.first)
                self.first.append(row)
            self.start.append(start)
            self.end.append(end)
            self.parent.append(parent)
            self.context.append(self.contexts[key])
            if depth:
                self._nest(rng, start, end, row, depth - 1)
            at = end

    def innermost(self, moment: int) -> int:
        """The innermost event at a moment, -1 for none."""
        inside = [i for i in range(len(self.start)) if self.start[i] <= moment < self.end[i]]
        return inside[-1] if inside else -1

    def made(self) -> OwnThread:
        def ints(values: list[int], kind: type = np.int64) -> np.ndarray:
            return np.array(values, kind)

        opens, closes, step = (ints(list(column)) for column in zip(*self.windows, strict=True))
        return OwnThread(
            self.first_row,
            ints(self.start),
            ints(self.end) - ints(self.start),
            ints(self.parent, np.int32),
            ints(self.context, np.int32),
            ints(self.first, np.int32),
            ints(self.klass, np.uint8),
            np.arange(len(self.first)) + 100,
            opens,
            closes,
            step,
        )


def random_windows(rng: random.Random, may_overlap: bool) -> Windows:
    windows, at = [], 0
    for step in range(3):
        start = rng.randint(0, 40) if may_overlap else rng.randint(at, at + 6)
        at = start + rng.randint(1, 18)
        windows.append((start, at, step))
    return windows


def codes_at(thread: RandomThread, code: list[int], moment: int) -> int:
    """The code of the innermost event's context, -1 if it has no class or there is no event."""
    row = thread.innermost(moment)
    context = thread.context[row] if row >= 0 else -1
    return code[context] if context >= 0 and thread.klass[context] != TimeClass.UNKNOWN else -1


@pytest.mark.parametrize("may_overlap", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_times_of_random_threads(seed: int, may_overlap: bool) -> None:
    """Of what is active in a step at a moment, on its own threads and on others, the highest code counts."""
    rng = random.Random(f"threads {seed} {may_overlap}")
    for _ in range(12):
        windows = random_windows(rng, may_overlap)
        threads = [
            RandomThread(rng, windows if i == 0 else random_windows(rng, may_overlap))
            for i in range(rng.randint(0, 2))
        ]
        threads = [thread for thread in threads if thread.start]
        others = [
            (rng.randint(0, 40), rng.randint(1, 15), rng.randint(0, 2)) for _ in range(rng.randint(0, 4))
        ]
        cut = [(max(a, windows[s][0]), min(a + n, windows[s][1]), s) for a, n, s in others]
        others = [(a, b - a, s) for a, b, s in cut if b > a]
        columns = (
            [
                np.array(values, np.int64)
                for values in zip(*((a, a + n, s) for a, n, s in others), strict=True)
            ]
            if others
            else [np.empty(0, np.int64)] * 3
        )
        n_others = len(others)
        rest = Pieces(
            columns[0],
            columns[1],
            np.full(n_others, 4, np.uint8),
            columns[2],
            np.full(n_others, -1),
            np.arange(n_others),
        )
        codes = [
            [rng.choice((-1, 1, 2, 3, 4)) for _ in range(n_others)],
            *([rng.choice((-1, 1, 2, 3, 4)) for _ in thread.first] for thread in threads),
        ]
        pieces = joined(
            [
                rest,
                *(
                    Pieces(
                        *(
                            getattr(no_pieces(), name)
                            for name in ("start", "end", "klass", "step", "named", "event")
                        ),
                        own=(thread.made(),),
                    )
                    for thread in threads
                ),
            ]
        )
        code = np.array([one for part in codes for one in part], np.int64)
        starts, ends = (
            np.array(column, np.int64) for column in zip(*((a, b) for a, b, _ in windows), strict=True)
        )
        time, _ = pieces.charged(code, (starts, ends), 5)
        expected = np.zeros((3, 5), np.int64)
        for begin, end, step in windows:
            for moment in range(begin, end):
                active = [
                    one
                    for (a, n, s), one in zip(others, codes[0], strict=True)
                    if s == step and a <= moment < a + n
                ]
                for thread, own in zip(threads, codes[1:], strict=True):
                    if any(s == step and a <= moment < b for a, b, s in thread.windows):
                        active.append(codes_at(thread, own, moment))
                expected[step, max([0, *active])] += 1
        assert time.tolist() == expected.tolist()
        outline = pieces.outline()
        assert outline.named.tolist() == [
            *[-1] * n_others,
            *(100 + i for thread in threads for i in range(len(thread.first))),
        ]
        assert outline.klass.tolist() == [
            *[4] * n_others,
            *(klass for thread in threads for klass in thread.klass),
        ]
        assert outline.event.tolist() == [
            *range(n_others),
            *(thread.first_row + row for thread in threads for row in thread.first),
        ]


@pytest.mark.parametrize("may_overlap", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_stretches_of_random_threads(seed: int, may_overlap: bool) -> None:
    rng = random.Random(f"stretches {seed} {may_overlap}")
    for _ in range(12):
        thread = RandomThread(rng, random_windows(rng, may_overlap))
        if not thread.start:
            continue
        code = [rng.choice((-1, 1, 2)) for _ in thread.first]
        pieces = Pieces(
            *(getattr(no_pieces(), name) for name in ("start", "end", "klass", "step", "named", "event")),
            own=(thread.made(),),
        ).spread(np.array(code))
        found: dict[tuple[int, int], int] = {}
        for start, end, step, event, klass, named in zip(
            *(
                column.tolist()
                for column in (
                    pieces.start,
                    pieces.end,
                    pieces.step,
                    pieces.event,
                    pieces.klass,
                    pieces.named,
                )
            ),
            strict=True,
        ):
            row = event - thread.first_row
            assert (klass, named) == (thread.klass[thread.context[row]], 100 + thread.context[row])
            for moment in range(start, end):
                assert (step, moment) not in found
                found[step, moment] = code[thread.context[row]]
        assert found == {
            (step, moment): codes_at(thread, code, moment)
            for begin, end, step in thread.windows
            for moment in range(begin, end)
            if codes_at(thread, code, moment) >= 0
        }
        chosen = thread.made().of_steps(np.array([-1, 1, 0]))
        assert sorted(
            zip(chosen.opens.tolist(), chosen.closes.tolist(), chosen.step.tolist(), strict=True)
        ) == sorted((begin, end, 2 - step) for begin, end, step in thread.windows if step > 0)
