"""A tf.data pipeline as threads that wait for one another, following TensorFlow's kernels, on a
discrete-event clock.

The model computes when each element is handed over. Here threads run: they sleep for their work and wait for
conditions as the kernels' threads do (`prefetch_dataset_op`, `parallel_map_dataset_op`,
`map_and_batch_dataset_op`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from tb_tpuprof.analysis.tf_data.simulation import Part

_MOST_BATCHES = 16
_OWED = 1e-6  # so that a third of an element three times is one
Thread = Generator["float | Condition", None, None]


class Condition:
    """A condition variable; notified threads check again."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.waiting: list[Thread] = []

    def notify_all(self) -> None:
        woken, self.waiting = self.waiting, []
        for thread in woken:
            self.clock.later(0.0, thread)

    def until(self, ready: Callable[[], bool]) -> Thread:
        """Wait until something holds."""
        while not ready():
            yield self


class Clock:
    """Runs threads in order of time; at equal times, in the order of waking."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue: list[tuple[float, int, Thread]] = []
        self.order = itertools.count()

    def later(self, delay: float, thread: Thread) -> None:
        heapq.heappush(self.queue, (self.now + delay, next(self.order), thread))

    def run(self) -> None:
        """Run until all threads wait for a condition."""
        while self.queue:
            self.now, _, thread = heapq.heappop(self.queue)
            for request in thread:
                if isinstance(request, Condition):
                    request.waiting.append(thread)
                    break
                if request > 0:
                    self.later(request, thread)
                    break


class Repeated:
    """Values in a cycle."""

    def __init__(self, values: list[float]) -> None:
        self.values = itertools.cycle(values or [0.0])

    def next(self) -> float:
        return next(self.values)


@dataclass
class Asked:
    """An input of a stage, read `per_parent` times per element."""

    stage: Stage
    per_parent: float
    owed: float = _OWED

    def get(self) -> Thread:
        self.owed += self.per_parent
        while self.owed >= 1:
            self.owed -= 1
            yield from self.stage.get()


@dataclass
class Stage:
    """Runs on the requesting thread: inputs first, then its own work."""

    clock: Clock
    part: Part
    inputs: list[Asked]
    work: Repeated
    function: Repeated
    pool: int

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start threads; none by default."""

    def fetch(self) -> Thread:
        """Read the inputs of one element."""
        for source in self.inputs:
            yield from source.get()

    def get(self) -> Thread:
        """Produce an element on the requesting thread."""
        yield from self.fetch()
        yield self.work.next()


class Prefetch(Stage):
    """A thread fills a buffer while there is room."""

    def begin(self) -> None:
        self.buffer, self.changed = 0, Condition(self.clock)
        self.clock.later(0.0, self.runner())

    def runner(self) -> Thread:
        while True:
            yield from self.changed.until(lambda: self.buffer < max(1, self.part.buffer))
            yield from self.fetch()
            self.buffer += 1
            self.changed.notify_all()

    def get(self) -> Thread:
        yield from self.changed.until(lambda: self.buffer > 0)
        self.buffer -= 1
        self.changed.notify_all()


@dataclass
class Result:
    """The result of a function run."""

    is_done: bool = False


class ParallelMap(Stage):
    """A thread fetches inputs and starts functions: at most n in progress, and n results that were
    not taken.
    """

    def begin(self) -> None:
        self.changed = Condition(self.clock)
        self.results: deque[Result] = deque()
        self.n_calls = self.n_running = 0
        self.clock.later(0.0, self.runner())

    def is_busy(self) -> bool:
        return self.n_calls >= self.part.lanes or len(self.results) >= self.part.lanes

    def runner(self) -> Thread:
        while True:
            yield from self.changed.until(lambda: not self.is_busy())
            new = []
            while not self.is_busy():
                new.append(Result())
                self.results.append(new[-1])
                self.n_calls += 1
            self.changed.notify_all()
            for result in new:
                yield from self.fetch()
                self.clock.later(0.0, self.call(result, self.function.next()))

    def call(self, result: Result, value: float) -> Thread:
        """Run a function on a thread of the pool."""
        yield from self.changed.until(lambda: self.n_running < self.pool)
        self.n_running += 1
        yield value
        self.n_running -= 1
        self.n_calls -= 1
        result.is_done = True
        self.changed.notify_all()

    def get(self) -> Thread:
        if self.part.is_ordered:
            yield from self.changed.until(lambda: bool(self.results))
            result = self.results.popleft()
            self.changed.notify_all()
            yield from self.changed.until(lambda: result.is_done)
        else:
            yield from self.changed.until(lambda: any(one.is_done for one in self.results))
            self.results.remove(next(one for one in self.results if one.is_done))
            self.changed.notify_all()
        yield self.work.next()


@dataclass
class Batch:
    """A batch; `left`: functions that are not done."""

    left: int


class MapAndBatch(Stage):
    """A thread fetches inputs and starts functions, at most n at a time. It works ahead by one batch more
    than n functions fill: the kernel adds one when a caller waits.
    """

    def begin(self) -> None:
        self.changed = Condition(self.clock)
        self.batches: deque[Batch] = deque()
        self.n_calls = self.n_started = 0
        self.most = min(_MOST_BATCHES, 1 + -(-self.part.lanes // self.part.batch))
        self.lanes = min(self.part.lanes, self.pool)
        self.clock.later(0.0, self.runner())

    def is_busy(self) -> bool:
        is_full = len(self.batches) == self.most and self.n_started % self.part.batch == 0
        return self.n_calls >= self.lanes or is_full

    def runner(self) -> Thread:
        while True:
            yield from self.changed.until(lambda: not self.is_busy())
            new = []
            while not self.is_busy():
                if self.n_started % self.part.batch == 0:
                    self.batches.append(Batch(self.part.batch))
                self.n_started += 1
                self.n_calls += 1
                new.append(self.batches[-1])
            for batch in new:
                yield from self.fetch()
                self.clock.later(0.0, self.call(batch, self.function.next()))

    def call(self, batch: Batch, value: float) -> Thread:
        yield value
        self.n_calls -= 1
        batch.left -= 1
        self.changed.notify_all()

    def get(self) -> Thread:
        yield from self.changed.until(lambda: bool(self.batches) and not self.batches[0].left)
        self.batches.popleft()
        self.changed.notify_all()
        yield self.work.next()


class Woven(Stage):
    """Threads read one element each; elements are handed out in the order in which they started."""

    def begin(self) -> None:
        self.changed = Condition(self.clock)
        self.n_begun = self.n_taken = 0
        self.done: set[int] = set()
        for _ in range(self.part.lanes):
            self.clock.later(0.0, self.reader())

    def reader(self) -> Thread:
        ahead = max(self.part.lanes, self.part.buffer)
        while True:
            yield from self.changed.until(lambda: self.n_begun - self.n_taken < ahead)
            reader_id, self.n_begun = self.n_begun, self.n_begun + 1
            yield from Stage.get(self)
            self.done.add(reader_id)
            self.changed.notify_all()

    def get(self) -> Thread:
        yield from self.changed.until(lambda: self.n_taken in self.done)
        self.n_taken += 1
        self.changed.notify_all()


@dataclass
class Playing:
    """Begin and end of the consumer's calls."""

    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


_STAGES: dict[str, type[Stage]] = {
    "inline": Stage,
    "prefetch": Prefetch,
    "lanes": ParallelMap,
    "batch_lanes": MapAndBatch,
    "interleave": Woven,
}


def stage(clock: Clock, parts: tuple[Part, ...], at: int, pool: int) -> Stage:
    """A stage with all its inputs. Inputs of MapAndBatch are read per function run."""
    part = parts[at]
    divisor = part.batch if part.kind == "batch_lanes" else 1
    inputs = [
        Asked(stage(clock, parts, i, pool), other.per_parent / divisor)
        for i, other in enumerate(parts)
        if other.parent == at and i != at
    ]
    return _STAGES[part.kind](
        clock, part, inputs, Repeated(part.work_ps.tolist()), Repeated(part.function_ps.tolist()), pool
    )


def run(parts: tuple[Part, ...], consumer_ps: list[float], pool: int, n_calls: int) -> Playing:
    """`n_calls` calls of a consumer that works after each."""
    clock = Clock()
    root, gaps, playing = stage(clock, parts, 0, max(1, pool)), Repeated(consumer_ps), Playing()

    def consumer() -> Thread:
        for _ in range(n_calls):
            playing.begins.append(clock.now)
            yield from root.get()
            playing.ends.append(clock.now)
            yield gaps.next()

    clock.later(0.0, consumer())
    clock.run()
    return playing


def means(parts: tuple[Part, ...], consumer_ps: list[float], pool: int) -> tuple[float, float]:
    """Mean period and mean wait of a call once buffers have settled: over the last three quarters of 24 to
    240 calls, fewer if a call takes many elements.
    """
    n = int(min(240, max(24, 6000 / (sum(per_call(parts)) + 1))))
    first = n // 4
    playing = run(parts, consumer_ps, pool, n + 1)
    waits = [end - begin for begin, end in zip(playing.begins[first:n], playing.ends[first:n], strict=True)]
    return (playing.begins[n] - playing.begins[first]) / (n - first), sum(waits) / len(waits)


def per_call(parts: tuple[Part, ...]) -> list[float]:
    """Elements of each stage per element of the root."""
    result = []
    for part in parts:
        count, ancestor = 1.0, part
        while ancestor is not parts[0]:
            count *= ancestor.per_parent
            ancestor = parts[ancestor.parent]
        result.append(count)
    return result
