"""A tf.data pipeline played through, element by element: when each call returns, from what its stages took in
a trace.

consumer   ├ call ┤ step ├ call ┤        asks, then works for its step
inline     ├ Batch ├ Map ├ Map           runs on the thread that asks
prefetch   ├ Map ├ Map ├                 runs on a thread of its own, as far ahead as its buffer
lanes      ├ f ├ f ├ f                   runs a function on n elements at a time and hands them out in order

The rules are those of TensorFlow's kernels (`prefetch_dataset_op`, `parallel_map_dataset_op`,
`map_and_batch_dataset_op`, `parallel_interleave_dataset_op`). The loops are over at most `_ELEMENTS`
simulated elements, whatever the size of the trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Kind = Literal["inline", "prefetch", "lanes", "batch_lanes", "woven"]
CONSUMER = "the consumer"
_ELEMENTS = 6000
_FEWEST_CALLS, _MOST_CALLS = 24, 240
_SETTLES = 0.25  # share of the calls after which buffers have settled
_MOST_BATCHES = 16  # that MapAndBatch makes at a time


@dataclass(frozen=True)
class Part:
    """A stage. `per_parent`: elements per element of its consumer. `work_ps` and `function_ps` repeat: of
    each of its elements on the thread that asks for it, and of each run of its function. `lanes`: runs at a
    time; `buffer`: elements ahead.
    """

    name: str
    parent: int
    kind: Kind
    per_parent: float
    work_ps: Floats
    function_ps: Floats
    lanes: int = 1
    buffer: int = 1
    batch: int = 1
    is_ordered: bool = True


@dataclass(frozen=True)
class Played:
    """Mean time from call to call, the mean wait of a call, and what the threads' time shows as the limit."""

    period_ps: float
    wait_ps: float
    limited_by: str


class _Source(Protocol):
    def next(self, time: float) -> float:
        """When the next element is handed over that is asked for at a time."""
        ...


@dataclass
class _Cycle:
    """Values that repeat, and their sum so far; `thread` is the one whose time they take, `share` how much of
    it.
    """

    values: list[float]
    name: str
    thread: int
    share: float = 1.0
    at: int = 0
    total: float = 0.0

    def next(self) -> float:
        """The next value."""
        value = self.values[self.at]
        self.at = (self.at + 1) % len(self.values)
        self.total += value
        return value


@dataclass
class _Input:
    source: _Source
    per_parent: float
    owed: float = 1e-6

    def next(self, time: float) -> float:
        """Ask as often as an element of the consumer takes."""
        self.owed += self.per_parent
        while self.owed >= 1:
            self.owed -= 1
            time = self.source.next(time)
        return time


@dataclass
class _Inline:
    inputs: list[_Input]
    work: _Cycle

    def next(self, time: float) -> float:
        for one in self.inputs:
            time = one.next(time)
        return time + self.work.next()


@dataclass
class _Prefetch:
    inputs: list[_Input]
    buffer: int
    made: float = 0.0
    taken: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        free = self.taken.popleft() if len(self.taken) >= self.buffer else 0.0
        self.made = max(self.made, free)
        for one in self.inputs:
            self.made = one.next(self.made)
        self.taken.append(max(time, self.made))
        return self.taken[-1]


@dataclass
class _Lanes:
    """`lanes` runs at a time, at most `ahead` elements that nobody took yet."""

    inputs: list[_Input]
    function: _Cycle
    lanes: int
    ahead: int
    is_ordered: bool
    fetched: float = 0.0
    freed: float = 0.0
    free: list[float] = field(default_factory=list)
    flying: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        while len(self.flying) < self.ahead:
            start = max(self.fetched, self.freed)
            for one in self.inputs:
                start = one.next(start)
            self.fetched = start
            if len(self.free) >= self.lanes:
                start = max(start, heappop(self.free))
            end = start + self.function.next()
            heappush(self.free, end)
            self.flying.append(end)
        if not self.is_ordered:
            self.flying = deque(sorted(self.flying))
        # Its place is free as soon as it is asked for, even if it is not finished.
        self.freed = max(time, self.freed)
        return max(time, self.flying.popleft())


@dataclass
class _BatchLanes:
    """Functions of a batch run on any free lane; the next batch waits until an earlier one was taken."""

    inputs: list[_Input]
    function: _Cycle
    lanes: int
    batch: int
    batches: int
    fetched: float = 0.0
    free: list[float] = field(default_factory=list)
    taken: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        begin = self.taken.popleft() if len(self.taken) >= self.batches else 0.0
        self.fetched = max(self.fetched, begin)
        last = self.fetched
        for _ in range(self.batch):
            if len(self.free) >= self.lanes:
                self.fetched = max(self.fetched, heappop(self.free))
            for one in self.inputs:
                self.fetched = one.next(self.fetched)
            end = self.fetched + self.function.next()
            heappush(self.free, end)
            last = max(last, end)
        self.taken.append(max(time, last))
        return self.taken[-1]


@dataclass
class _Woven:
    """Several inputs read at a time, each on a thread of its own, and handed out in turn."""

    source: _Inline
    lanes: int
    ahead: int
    made: float = 0.0
    free: list[float] = field(default_factory=list)
    taken: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        begin = self.taken.popleft() if len(self.taken) >= self.ahead else 0.0
        if not self.free:
            self.free = [0.0] * self.lanes
            heapify(self.free)
        begin = max(begin, heappop(self.free))
        end = self.source.next(begin)
        heappush(self.free, end)
        self.made = max(self.made, end)  # in turn: none before the one ahead of it
        self.taken.append(max(time, self.made))
        return self.taken[-1]


@dataclass
class _Build:
    parts: tuple[Part, ...]
    pool: int
    cycles: list[_Cycle] = field(default_factory=list)
    n_threads: int = 1

    def thread(self) -> int:
        """A new thread's number."""
        self.n_threads += 1
        return self.n_threads - 1

    def cycle(self, values: Floats, name: str, thread: int, share: float = 1.0) -> _Cycle:
        """Values that the limit is looked for in."""
        found = _Cycle(values.tolist() or [0.0], name, thread, share)
        self.cycles.append(found)
        return found

    def inputs(self, at: int, thread: int, divisor: float = 1.0) -> list[_Input]:
        """The stages that a stage asks."""
        return [
            _Input(self.source(i, thread), part.per_parent / divisor)
            for i, part in enumerate(self.parts) if part.parent == at and i != at
        ]  # fmt: skip

    def source(self, at: int, thread: int) -> _Source:
        """A stage with all that feeds it; `thread`: of the one who asks."""
        part = self.parts[at]
        makers: dict[Kind, Callable[[], _Source]] = {
            "inline": lambda: _Inline(self.inputs(at, thread), self.cycle(part.work_ps, part.name, thread)),
            "prefetch": lambda: _Prefetch(self.inputs(at, self.thread()), max(1, part.buffer)),
            "lanes": lambda: self._lanes(at, thread),
            "batch_lanes": lambda: self._batch_lanes(at, thread),
            "woven": lambda: self._woven(at),
        }
        return makers[part.kind]()

    def _lanes(self, at: int, thread: int) -> _Source:
        part, lanes = self.parts[at], min(self.parts[at].lanes, self.pool)
        function = self.cycle(part.function_ps, part.name, self.thread(), 1 / lanes)
        found = _Lanes(self.inputs(at, self.thread()), function, lanes, part.lanes, part.is_ordered)
        return _Inline([_Input(found, 1.0)], self.cycle(part.work_ps, part.name, thread))

    def _batch_lanes(self, at: int, thread: int) -> _Source:
        part, lanes = self.parts[at], min(self.parts[at].lanes, self.pool)
        function = self.cycle(part.function_ps, part.name, self.thread(), 1 / lanes)
        batches = min(_MOST_BATCHES, 1 + ceil(part.lanes / part.batch))
        found = _BatchLanes(self.inputs(at, self.thread(), part.batch), function, lanes, part.batch, batches)
        return _Inline([_Input(found, 1.0)], self.cycle(part.work_ps, part.name, thread))

    def _woven(self, at: int) -> _Source:
        part, thread, known = self.parts[at], self.thread(), len(self.cycles)
        found = _Woven(
            _Inline(self.inputs(at, thread), self.cycle(part.work_ps, part.name, thread)),
            part.lanes,
            max(part.lanes, part.buffer),
        )
        for cycle in self.cycles[known:]:
            cycle.share = cycle.share / part.lanes if cycle.thread == thread else cycle.share
        return found


def play(parts: tuple[Part, ...], consumer_ps: Floats, pool: int) -> Played:
    """Play calls until buffers have settled, and as many more as give a mean. `parts`: consumers before
    producers, the root first.
    """
    building = _Build(parts, max(1, pool))
    root: _Source = building.source(0, 0) if parts else _Inline([], building.cycle(np.zeros(1), CONSUMER, 0))
    gaps = building.cycle(consumer_ps, CONSUMER, 0)
    n = int(min(_MOST_CALLS, max(_FEWEST_CALLS, _ELEMENTS / _elements(parts))))
    first, time, begin, waited = int(n * _SETTLES), 0.0, 0.0, 0.0
    for i in range(n):
        if i == first:
            begin, waited = time, 0.0
            for cycle in building.cycles:
                cycle.total = 0.0
        ready = root.next(time)
        waited += ready - time
        time = ready + gaps.next()
    return Played((time - begin) / (n - first), waited / (n - first), _limit(building.cycles))


def _elements(parts: tuple[Part, ...]) -> float:
    """Elements of all stages per call."""
    per_call: list[float] = []
    for i, part in enumerate(parts):
        per_call.append(part.per_parent * per_call[part.parent] if i and part.parent >= 0 else 1.0)
    return sum(per_call) + 1


def _limit(cycles: list[_Cycle]) -> str:
    """Of the thread (or the lanes) that worked most, what took most."""
    busy: dict[int, float] = {}
    for cycle in cycles:
        busy[cycle.thread] = busy.get(cycle.thread, 0.0) + cycle.total * cycle.share
    fullest = max(busy, key=lambda thread: busy[thread])
    return max((cycle for cycle in cycles if cycle.thread == fullest), key=lambda cycle: cycle.total).name
