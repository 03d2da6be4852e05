"""Stretches of time within steps, each with its class and the event that determines it: the parts that the
steps' classes consist of.

A step's own thread can have millions of them, of a few hundred kinds. It is stored as its events' contexts
(`Pieces.own`), so that a caller first chooses which kinds it distinguishes.

    pieces.outline()         one row per piece of other threads and per context of own threads: its class,
                             name and event
    pieces.charged(codes)    how long each code of these rows lasts in each step
    pieces.spread(codes)     the stretches over which the code stays the same
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
    """A thread that steps run on, by context: `klass` (of TimeClass) and `named` (metadata row) of each
    context's own time.

    `first_row`: row of the thread's first event; `start`, `duration`, `parent` (index among them) and
    `context` of its events; `first`: an event of each context. `opens`, `closes`, `step`: the windows in
    which the thread is in a step.
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
        """One row per context, without duration."""
        zeros = np.zeros(len(self.first), np.int64)
        return Pieces(
            zeros, zeros, self.klass, zeros, self.named, self.first.astype(np.int64) + self.first_row
        )

    def stretches(self, code: Int64s) -> Stretches:
        """Stretches over which the `code` of the innermost event's context stays the same.

        Contexts with a negative code and unclassified contexts are left out.
        """
        parts = []
        for rows in non_overlapping(self.opens, self.closes):
            start, end, window, first, last = stretches(*self._walk(code, rows))
            parts.append(Stretches(start, end, self.step[rows][window], first, last))
        return (
            parts[0]
            if len(parts) == 1
            else Stretches(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        )

    def walk(self, code: Int64s) -> tuple[Any, ...]:
        """Arguments for `native.charged`; only for a thread whose steps do not overlap."""
        (rows,) = non_overlapping(self.opens, self.closes)
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
        """Only the steps with a `place` ≥ 0, which becomes their number."""
        rows = np.flatnonzero(place[self.step] >= 0)
        return replace(self, opens=self.opens[rows], closes=self.closes[rows], step=place[self.step[rows]])


class Stretches(NamedTuple):
    """One row per stretch: its step, and its first and last event as rows of the thread."""

    start: Int64s
    end: Int64s
    step: Int64s
    first: Int32s
    last: Int32s


def non_overlapping(opens: Int64s, closes: Int64s) -> list[npt.NDArray[np.intp]]:
    """Split windows into groups that do not overlap, each in time order. (Steps of several threads can
    overlap.)
    """
    order = np.argsort(opens, kind="stable")
    if (opens[order][1:] >= closes[order][:-1]).all():
        return [order]
    groups: list[list[int]] = []
    ends: list[int] = []
    for row in order.tolist():
        group = next((i for i, end in enumerate(ends) if end <= opens[row]), len(ends))
        if group == len(ends):
            groups.append([])
            ends.append(0)
        groups[group].append(row)
        ends[group] = int(closes[row])
    return [np.array(rows, np.intp) for rows in groups]


@dataclass(frozen=True)
class Pieces:
    """One row per stretch; times in ps. `klass`: of TimeClass; `step`: index of its step.

    `named`: the metadata row that names it, on the steps' own threads; -1 for work of other threads and
    devices. `event`: the innermost event on the steps' own threads, elsewhere the event that is counted;
    `last`: the last event, if a stretch of an own thread has several. `thread_class`: the activity of the
    thread, as a class. It equals `klass` except while devices are idle, which has no class of its own. `own`:
    threads that are still stored by context (see the module's docstring).
    """

    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]
    step: Int64s
    named: Int64s
    event: Int64s
    thread_class: npt.NDArray[np.uint8] = field(default_factory=lambda: _SAME)
    last: Int64s = field(default_factory=lambda: _SAME_EVENT)
    own: tuple[OwnThread, ...] = ()

    def __post_init__(self) -> None:
        if self.thread_class is _SAME:
            object.__setattr__(self, "thread_class", self.klass)
        if self.last is _SAME_EVENT:
            object.__setattr__(self, "last", self.event)

    def __len__(self) -> int:
        return len(self.start)

    def outline(self) -> Pieces:
        """The class, name and event of each piece and of each context of own threads, whose rows have no
        times.
        """
        return joined([replace(self, own=()), *(thread.outline() for thread in self.own)])

    def spread(self, code: Int64s) -> Pieces:
        """Pieces with times; those of own threads last as long as their code stays the same.

        `code`: one per row of the outline; rows with a negative code are left out.
        """
        parts = [self.take(np.flatnonzero(code[: len(self)] >= 0))]
        for thread, thread_code in self._by_thread(code):
            if (thread_code < 0).all():
                continue  # saves a walk over all events of the thread
            cuts = thread.stretches(thread_code)
            context = thread.context[cuts.first]
            event, last = (rows.astype(np.int64) + thread.first_row for rows in (cuts.first, cuts.last))
            parts.append(
                Pieces(
                    cuts.start,
                    cuts.end,
                    thread.klass[context],
                    cuts.step,
                    thread.named[context],
                    event,
                    last=last,
                )
            )
        return joined(parts)

    def charged(self, code: Int64s, steps: tuple[Int64s, Int64s], n: int) -> tuple[Int64s, Int64s]:
        """Time of each step (starts, ends) during which each of `n` codes (at most 256) is the highest active
        one: int64[steps, codes], in ps.

        `code`: one per row of the outline, at least 1; rows with a negative code are left out. Code 0 gets
        the time during which nothing is active. Also returns [3, codes]: number of stretches of each code,
        and start and end of the longest.
        """
        included = np.flatnonzero(code[: len(self)] >= 0)
        events: tuple[npt.NDArray[Any], ...] = (
            self.start[included],
            self.end[included],
            code[included].astype(np.uint8),
            self.step[included],
        )
        single_walk: tuple[Any, ...] = ()
        for thread, thread_code in self._by_thread(code):
            if len(self.own) == 1 and len(non_overlapping(thread.opens, thread.closes)) == 1:
                single_walk = thread.walk(thread_code)
            else:  # threads whose steps overlap
                cuts = thread.stretches(thread_code)
                codes = thread_code.astype(np.uint8)[thread.context[cuts.first]]
                columns: tuple[npt.NDArray[Any], ...] = (
                    cuts.start,
                    cuts.end,
                    codes,
                    cuts.step,
                )
                events = tuple(np.concatenate(pair) for pair in zip(events, columns, strict=True))
        time = np.empty((len(steps[0]), n), np.int64)
        longest = charged(events, np.argsort(events[0], kind="stable"), steps, time, single_walk)
        time[:, 0] = np.maximum(steps[1] - steps[0], 0) - time.sum(axis=1)
        return time, longest

    def _by_thread(self, code: Int64s) -> Iterator[tuple[OwnThread, Int64s]]:
        offset = len(self)
        for thread in self.own:
            yield thread, code[offset : offset + len(thread.first)]
            offset += len(thread.first)

    def take(self, rows: npt.NDArray[np.intp]) -> Pieces:
        """The given rows, without own threads."""
        return Pieces(**{column.name: getattr(self, column.name)[rows] for column in fields(Pieces)[:-1]})

    def of_steps(self, number: Int64s, chosen_numbers: Int64s) -> Pieces:
        """The pieces of the steps whose numbers are in `chosen_numbers`, in that order. `number`: the number
        of each step that `step` indexes.
        """
        index_of = {n: new_index for new_index, n in enumerate(chosen_numbers.tolist())}
        new_index = np.array([index_of.get(n, -1) for n in number.tolist()], np.int64)
        taken = self.take(np.flatnonzero(new_index[self.step] >= 0))
        return replace(
            taken, step=new_index[taken.step], own=tuple(thread.of_steps(new_index) for thread in self.own)
        )


def joined(parts: Sequence[Pieces]) -> Pieces:
    """Concatenate the rows and own threads of several parts."""
    columns = {
        column.name: np.concatenate([getattr(part, column.name) for part in parts])
        for column in fields(Pieces)[:-1]
    }
    return Pieces(**columns, own=tuple(thread for part in parts for thread in part.own))


def no_pieces() -> Pieces:
    """Pieces without rows."""
    empty = np.empty(0, np.int64)
    return Pieces(empty, empty, empty.astype(np.uint8), empty, empty, empty)
