"""Stretches of time within steps, each with its class and with the event that says so: what classes of steps
are made of.

A step's own thread can have millions of them, of a few hundred kinds: it is kept as its events' contexts
(`Pieces.own`), so that whoever asks says first which of them it tells apart.

    pieces.outline()         one row per piece of other threads and per context of own ones: what is said of
    it
    pieces.charged(codes)    how long each code of these rows lasts in each step
    pieces.spread(codes)     the stretches over which it stays the same
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.native import charged, stretches

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
_SAME = np.empty(0, np.uint8)
_SAME_EVENT = np.empty(0, np.int64)


@dataclass(frozen=True)
class OwnThread:
    """A thread that steps run on, by context: `klass` (of TimeClass) and `named` (metadata row) of each one's
    own time.

    `first_row`: of its events, of which `start`, `duration`, `parent` (among them) and `context` say what is
    on when; `first`: an event of each context. `opens`, `closes`, `step`: when the thread is in which step.
    """

    first_row: int
    start: Int64s
    duration: Int64s
    parent: Int32s
    context: Int32s
    first: Int32s
    klass: npt.NDArray[np.uint8]
    named: Int64s
    opens: Int64s
    closes: Int64s
    step: Int64s

    def outline(self) -> Pieces:
        """A row of no length per context."""
        none = np.zeros(len(self.first), np.int64)
        return Pieces(none, none, self.klass, none, self.named, self.first.astype(np.int64) + self.first_row)

    def stretches(self, code: Int64s) -> Stretches:
        """Those over which the `code` of the innermost event's context stays the same.

        Contexts with a negative one, and those that nothing is said of, are left out.
        """
        parts = []
        for rows in apart(self.opens, self.closes):
            start, end, window, first, last = stretches(*self._walk(code, rows))
            parts.append(Stretches(start, end, self.step[rows][window], first, last))
        return (
            parts[0]
            if len(parts) == 1
            else Stretches(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        )

    def walk(self, code: Int64s) -> tuple[Any, ...]:
        """The same for `native.charged`, of a thread whose steps do not overlap."""
        (rows,) = apart(self.opens, self.closes)
        return self._walk(code, rows), self.step[rows]

    def _walk(self, code: Int64s, rows: npt.NDArray[np.intp]) -> tuple[Any, ...]:
        codes = np.where(self.klass == TimeClass.UNKNOWN, -1, code).astype(np.int32)
        return (
            self.start,
            self.duration,
            self.parent,
            (self.context, codes),
            (self.opens[rows], self.closes[rows]),
        )

    def of_steps(self, place: Int64s) -> OwnThread:
        """In the steps that have a `place` alone, which is then their number."""
        rows = np.flatnonzero(place[self.step] >= 0)
        return replace(self, opens=self.opens[rows], closes=self.closes[rows], step=place[self.step[rows]])


class Stretches(NamedTuple):
    """One row per stretch: the step that it is in, and the first and the last event in it, as rows of the
    thread.
    """

    start: Int64s
    end: Int64s
    step: Int64s
    first: Int32s
    last: Int32s


def apart(opens: Int64s, closes: Int64s) -> list[npt.NDArray[np.intp]]:
    """Windows in groups of such as do not overlap, each in time. (Steps of several threads can overlap.)"""
    order = np.argsort(opens, kind="stable")
    if (opens[order][1:] >= closes[order][:-1]).all():
        return [order]
    groups: list[list[int]] = []
    ends: list[int] = []
    for row in order.tolist():
        at = next((i for i, end in enumerate(ends) if end <= opens[row]), len(ends))
        if at == len(ends):
            groups.append([])
            ends.append(0)
        groups[at].append(row)
        ends[at] = int(closes[row])
    return [np.array(rows, np.intp) for rows in groups]


@dataclass(frozen=True)
class Pieces:
    """One row per stretch; times in ps. `klass`: of TimeClass; `step`: index of the step that it lies in.

    `named`: the metadata row that names it, on the steps' own threads; -1 for work of other threads and of
    devices. `event`: the innermost event on the steps' own threads, elsewhere the event that is counted;
    `last`: where a stretch of an own thread is of several events, the last of them. `said`: what the thread
    says that it does. The same as `klass`, but for time in which devices are idle: that has no class of its
    own. `own`: threads whose stretches are still to be made (see the module's text).
    """

    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]
    step: Int64s
    named: Int64s
    event: Int64s
    said: npt.NDArray[np.uint8] = field(default_factory=lambda: _SAME)
    last: Int64s = field(default_factory=lambda: _SAME_EVENT)
    own: tuple[OwnThread, ...] = ()

    def __post_init__(self) -> None:
        if self.said is _SAME:
            object.__setattr__(self, "said", self.klass)
        if self.last is _SAME_EVENT:
            object.__setattr__(self, "last", self.event)

    def __len__(self) -> int:
        return len(self.start)

    def outline(self) -> Pieces:
        """What is said of each piece, and of each context of own threads, whose rows have no times."""
        return joined([replace(self, own=()), *(thread.outline() for thread in self.own)])

    def spread(self, code: Int64s) -> Pieces:
        """Pieces with times; those of own threads last as long as their code stays the same.

        `code`: of each row of the outline; those with a negative one are left out.
        """
        found = [self.take(np.flatnonzero(code[: len(self)] >= 0))]
        for thread, mine in self._by_thread(code):
            every = thread.stretches(mine)
            context = thread.context[every.first]
            event, last = (rows.astype(np.int64) + thread.first_row for rows in (every.first, every.last))
            found.append(
                Pieces(
                    every.start,
                    every.end,
                    thread.klass[context],
                    every.step,
                    thread.named[context],
                    event,
                    last=last,
                )
            )
        return joined(found)

    def charged(self, code: Int64s, steps: tuple[Int64s, Int64s], n: int) -> tuple[Int64s, Int64s]:
        """Time of each step (starts, ends) in which each of `n` codes, up to 256, is the highest that is on:
        [steps, codes].

        `code`: of each row of the outline; none is below 1 but for those that are left out, as the time is of
        code 0 in which nothing is on. Also [3, codes]: how many stretches each code has, and from when to
        when the longest lasts.
        """
        kept = np.flatnonzero(code[: len(self)] >= 0)
        events: tuple[npt.NDArray[Any], ...] = (
            self.start[kept],
            self.end[kept],
            code[kept].astype(np.uint8),
            self.step[kept],
        )
        alone: tuple[Any, ...] = ()
        for thread, mine in self._by_thread(code):
            if len(self.own) == 1 and len(apart(thread.opens, thread.closes)) == 1:
                alone = thread.walk(mine)
            else:  # threads whose steps overlap
                every = thread.stretches(mine)
                codes = mine.astype(np.uint8)[thread.context[every.first]]
                columns: tuple[npt.NDArray[Any], ...] = every.start, every.end, codes, every.step
                events = tuple(np.concatenate(pair) for pair in zip(events, columns, strict=True))
        time = np.empty((len(steps[0]), n), np.int64)
        longest = charged(events, np.argsort(events[0], kind="stable"), steps, time, alone)
        time[:, 0] = np.maximum(steps[1] - steps[0], 0) - time.sum(axis=1)
        return time, longest

    def _by_thread(self, code: Int64s) -> Iterator[tuple[OwnThread, Int64s]]:
        at = len(self)
        for thread in self.own:
            yield thread, code[at : at + len(thread.first)]
            at += len(thread.first)

    def take(self, rows: npt.NDArray[np.intp]) -> Pieces:
        """Some of the rows, without own threads."""
        return Pieces(**{one.name: getattr(self, one.name)[rows] for one in fields(Pieces)[:-1]})

    def of_steps(self, number: Int64s, kept: Int64s) -> Pieces:
        """Those of the steps whose numbers are in `kept`, in that order. `number`: of each step that `step`
        counts.
        """
        place = {value: at for at, value in enumerate(kept.tolist())}
        at = np.array([place.get(value, -1) for value in number.tolist()], np.int64)
        found = self.take(np.flatnonzero(at[self.step] >= 0))
        return replace(found, step=at[found.step], own=tuple(thread.of_steps(at) for thread in self.own))


def joined(parts: Sequence[Pieces]) -> Pieces:
    """All rows of several, and all their own threads."""
    columns = {
        one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Pieces)[:-1]
    }
    return Pieces(**columns, own=tuple(thread for part in parts for thread in part.own))


def no_pieces() -> Pieces:
    """No rows."""
    none = np.empty(0, np.int64)
    return Pieces(none, none, none.astype(np.uint8), none, none, none)
