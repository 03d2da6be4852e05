"""A simulation of a tf.data pipeline, element by element: when each call returns, given the times of its
stages in a trace.

    consumer   ├ call ┤ step ├ call ┤    requests an element, then works for its step
    inline     ├ Batch ├ Map ├ Map       runs on the requesting thread
    prefetch   ├ Map ├ Map ├             runs on its own thread, ahead by up to the size of its buffer
    lanes      ├ f ├ f ├ f               runs a function on n elements at a time and returns them in order

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
Kind = Literal["inline", "prefetch", "lanes", "batch_lanes", "interleave"]
CONSUMER = "the consumer"
_ELEMENTS = 6000
_FEWEST_CALLS, _MOST_CALLS = 24, 240
_SETTLES = 0.25  # share of the calls after which buffers have settled
_MOST_BATCHES = 16  # that MapAndBatch builds at a time


@dataclass(frozen=True)
class Part:
    """A stage. `per_parent`: elements per element of its consumer. `work_ps` and `function_ps` are times that
    repeat: of each element on the requesting thread, and of each run of the stage's function. `lanes`:
    concurrent runs; `buffer`: elements ahead.
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
class Simulated:
    """Mean time in ps from call to call, the mean wait of a call in ps, and the limiting stage by the
    threads' time.
    """

    period_ps: float
    wait_ps: float
    limited_by: str


class _Source(Protocol):
    def next(self, time: float) -> float:
        """Return when an element requested at `time` is delivered."""
        ...


@dataclass
class _Cycle:
    """Values that repeat, and their sum so far; they occupy `thread`, to the share `share`."""

    values: list[float]
    name: str
    thread: int
    share: float = 1.0
    position: int = 0
    total: float = 0.0

    def next(self) -> float:
        """The next value."""
        value = self.values[self.position]
        self.position = (self.position + 1) % len(self.values)
        self.total += value
        return value


@dataclass
class _Input:
    source: _Source
    per_parent: float
    owed: float = 1e-6

    def next(self, time: float) -> float:
        """Request as many elements as one element of the consumer needs."""
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
        for source in self.inputs:
            time = source.next(time)
        return time + self.work.next()


@dataclass
class _Prefetch:
    inputs: list[_Input]
    buffer: int
    ready_ps: float = 0.0
    taken_ps: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        free = self.taken_ps.popleft() if len(self.taken_ps) >= self.buffer else 0.0
        self.ready_ps = max(self.ready_ps, free)
        for source in self.inputs:
            self.ready_ps = source.next(self.ready_ps)
        self.taken_ps.append(max(time, self.ready_ps))
        return self.taken_ps[-1]


@dataclass
class _Lanes:
    """At most `most` elements in progress, from their fetch on, and as many that have not been taken. Of
    their functions `lanes` run concurrently.
    """

    inputs: list[_Input]
    function: _Cycle
    lanes: int
    most: int
    is_ordered: bool
    fetched: float = 0.0
    freed: float = 0.0
    begun: list[float] = field(default_factory=list)
    free: list[float] = field(default_factory=list)
    flying: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        while len(self.flying) < self.most:
            # An element counts from its fetch on: the next one waits until another is done.
            start = max(self.fetched, self.freed)
            if len(self.begun) >= self.most:
                start = max(start, heappop(self.begun))
            for source in self.inputs:
                start = source.next(start)
            self.fetched = start
            if len(self.free) >= self.lanes:
                start = max(start, heappop(self.free))
            end = start + self.function.next()
            heappush(self.free, end)
            heappush(self.begun, end)
            self.flying.append(end)
        if self.is_ordered:
            # An element's place is free as soon as the element is requested, even if it is not finished.
            self.freed = max(time, self.freed)
            return max(time, self.flying.popleft())
        self.flying = deque(sorted(self.flying))
        self.freed = max(time, self.flying.popleft())
        return self.freed


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
    taken_ps: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        begin = self.taken_ps.popleft() if len(self.taken_ps) >= self.batches else 0.0
        self.fetched = max(self.fetched, begin)
        last = self.fetched
        for _ in range(self.batch):
            if len(self.free) >= self.lanes:
                self.fetched = max(self.fetched, heappop(self.free))
            for source in self.inputs:
                self.fetched = source.next(self.fetched)
            end = self.fetched + self.function.next()
            heappush(self.free, end)
            last = max(last, end)
        self.taken_ps.append(max(time, last))
        return self.taken_ps[-1]


@dataclass
class _Interleave:
    """Several inputs, each read on its own thread; their elements are returned in turn."""

    source: _Inline
    lanes: int
    ahead: int
    ready_ps: float = 0.0
    free: list[float] = field(default_factory=list)
    taken_ps: deque[float] = field(default_factory=deque)

    def next(self, time: float) -> float:
        begin = self.taken_ps.popleft() if len(self.taken_ps) >= self.ahead else 0.0
        if not self.free:
            self.free = [0.0] * self.lanes
            heapify(self.free)
        begin = max(begin, heappop(self.free))
        end = self.source.next(begin)
        heappush(self.free, end)
        self.ready_ps = max(self.ready_ps, end)  # in turn: never before the previous one
        self.taken_ps.append(max(time, self.ready_ps))
        return self.taken_ps[-1]


@dataclass
class _Builder:
    parts: tuple[Part, ...]
    pool: int
    cycles: list[_Cycle] = field(default_factory=list)
    n_threads: int = 1

    def thread(self) -> int:
        """The number of a new thread."""
        self.n_threads += 1
        return self.n_threads - 1

    def cycle(self, values: Floats, name: str, thread: int, share: float = 1.0) -> _Cycle:
        """Times that count toward the limit."""
        cycle = _Cycle(values.tolist() or [0.0], name, thread, share)
        self.cycles.append(cycle)
        return cycle

    def inputs(self, index: int, thread: int, divisor: float = 1.0) -> list[_Input]:
        """The stages that a stage requests elements from."""
        return [
            _Input(self.source(i, thread), part.per_parent / divisor)
            for i, part in enumerate(self.parts)
            if part.parent == index and i != index
        ]

    def source(self, index: int, thread: int) -> _Source:
        """A stage with all stages that feed it; `thread` is the requesting thread."""
        part = self.parts[index]
        makers: dict[Kind, Callable[[], _Source]] = {
            "inline": lambda: _Inline(
                self.inputs(index, thread), self.cycle(part.work_ps, part.name, thread)
            ),
            "prefetch": lambda: _Prefetch(self.inputs(index, self.thread()), max(1, part.buffer)),
            "lanes": lambda: self._lanes(index, thread),
            "batch_lanes": lambda: self._batch_lanes(index, thread),
            "interleave": lambda: self._interleave(index),
        }
        return makers[part.kind]()

    def _lanes(self, index: int, thread: int) -> _Source:
        part, lanes = self.parts[index], min(self.parts[index].lanes, self.pool)
        function = self.cycle(part.function_ps, part.name, self.thread(), 1 / lanes)
        source = _Lanes(self.inputs(index, self.thread()), function, lanes, part.lanes, part.is_ordered)
        return _Inline([_Input(source, 1.0)], self.cycle(part.work_ps, part.name, thread))

    def _batch_lanes(self, index: int, thread: int) -> _Source:
        part, lanes = self.parts[index], min(self.parts[index].lanes, self.pool)
        function = self.cycle(part.function_ps, part.name, self.thread(), 1 / lanes)
        batches = min(_MOST_BATCHES, 1 + ceil(part.lanes / part.batch))
        source = _BatchLanes(
            self.inputs(index, self.thread(), part.batch), function, lanes, part.batch, batches
        )
        return _Inline([_Input(source, 1.0)], self.cycle(part.work_ps, part.name, thread))

    def _interleave(self, index: int) -> _Source:
        part, thread, n_cycles = self.parts[index], self.thread(), len(self.cycles)
        source = _Interleave(
            _Inline(self.inputs(index, thread), self.cycle(part.work_ps, part.name, thread)),
            part.lanes,
            max(part.lanes, part.buffer),
        )
        for cycle in self.cycles[n_cycles:]:
            cycle.share = cycle.share / part.lanes if cycle.thread == thread else cycle.share
        return source


def simulate(parts: tuple[Part, ...], consumer_ps: Floats, pool: int) -> Simulated:
    """Simulate calls until buffers have settled, and then enough calls for a mean. `parts`: consumers before
    producers, the root first; `consumer_ps`: times between calls; `pool`: threads of the pool.
    """
    building = _Builder(parts, max(1, pool))
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
    return Simulated((time - begin) / (n - first), waited / (n - first), _limit(building.cycles))


def _elements(parts: tuple[Part, ...]) -> float:
    """Elements of all stages per call."""
    per_call: list[float] = []
    for i, part in enumerate(parts):
        per_call.append(part.per_parent * per_call[part.parent] if i and part.parent >= 0 else 1.0)
    return sum(per_call) + 1


def _limit(cycles: list[_Cycle]) -> str:
    """The part that took the most time of the busiest thread (or lanes)."""
    busy: dict[int, float] = {}
    for cycle in cycles:
        busy[cycle.thread] = busy.get(cycle.thread, 0.0) + cycle.total * cycle.share
    fullest = max(busy, key=lambda thread: busy[thread])
    return max((cycle for cycle in cycles if cycle.thread == fullest), key=lambda cycle: cycle.total).name
