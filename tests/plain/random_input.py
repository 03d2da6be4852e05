"""Random TPU hosts: one to three TensorCores, up to two SparseCores, and threads that read, map and enqueue.

What was drawn is kept next to the trace, for plain loops to count.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

CATEGORIES = {
    "fusion": "loop fusion",
    "conv": "convolution",
    "infeed": "infeed",
    "all-reduce": "all-reduce",
    "gather": "all-gather",
    "outfeed": "outfeed",
    "send": "send",
    "recv": "recv-done",
    "wait": "sparse-core-v0 infeed wait",
    "host-send": "host send",
    "host-recv": "host recv-done",
}
STAGES = (
    "Iterator::Root",
    "Iterator::Root::Prefetch",
    "Iterator::Root::Prefetch::BatchV2",
    "Iterator::Root::Prefetch::BatchV2::TFRecord",
    "Iterator::Root::Shuffle::TextLine",
    "Iterator::Root::Map",
    "feed:InfeedEnqueueTuple",
    "cast:Cast",
)
_SC_NAMES = {"infeed.9": "infeed", "outfeed.9": "outfeed", "gather.9": ""}


@dataclass(frozen=True)
class DrawnOp:
    """An operation of a core. `step`: -1 for none; `unique`: its collective's id, -1 for none."""

    name: str
    step: int
    start_ps: int
    duration_ps: int
    unique: int = -1

    @property
    def category(self) -> str:
        """HLO category."""
        return {**CATEGORIES, **_SC_NAMES}[
            self.name if self.name in _SC_NAMES else self.name.partition(".")[0]
        ]


@dataclass
class DrawnCore:
    """`steps`: start and length of each, in ps."""

    number: int
    steps: list[tuple[int, int]]
    ops: list[DrawnOp]


@dataclass
class DrawnHost:
    """`waits`: (step, start, end) of waiting for input; `threads`: (name, start, duration) of each thread's
    events.
    """

    name: str
    start_ns: int
    first_step: int
    cores: list[DrawnCore]
    sparse: list[DrawnCore] = field(default_factory=list)
    waits: list[tuple[int, int, int]] = field(default_factory=list)
    threads: list[list[tuple[str, int, int]]] = field(default_factory=list)

    def trace(self) -> Trace:
        """The trace that the profiler would write."""
        planes = [self._host_plane()]
        planes += [
            _core_plane(f"/device:TPU:{core.number}", core, self.first_step, "") for core in self.cores
        ]
        planes += [
            _core_plane(f"/device:TPU:0 SparseCore {core.number}", core, self.first_step, "Sparse Core ")
            for core in self.sparse
        ]
        return build(planes, host=self.name, start_ns=self.start_ns)

    def _host_plane(self) -> DrawnPlane:
        waits = [
            DrawnEvent("IteratorGetNext", start, end - start, {"group_id": self.first_step + step})
            for step, start, end in self.waits
        ]
        lines = {f"wait {i}": waits[i::2] for i in range(2) if waits[i::2]}
        for i, events in enumerate(self.threads):
            lines[f"thread {i}"] = [DrawnEvent(*event) for event in events]
        for events in lines.values():
            events.sort(key=lambda event: event.start_ps)
        return DrawnPlane("/host:CPU", lines)


def _core_plane(name: str, core: DrawnCore, first_step: int, kind: str) -> DrawnPlane:
    steps = [
        DrawnEvent(
            f"{first_step + i}",
            start,
            length,
            {"group_id": first_step + i, "step_name": f"step {first_step + i}"},
        )
        for i, (start, length) in enumerate(core.steps)
    ]
    events = []
    for op in core.ops:
        stats: dict[str, int] = {"group_id": first_step + op.step} if op.step >= 0 else {}
        if op.unique >= 0:
            stats["all_reduce_unique_id"] = op.unique
        events.append(DrawnEvent(op.name, op.start_ps, op.duration_ps, stats))
    events.sort(key=lambda event: event.start_ps)
    stats_of: dict[str, Stats] = {op.name: {"hlo_category": op.category} for op in core.ops if op.category}
    lines = {f"{kind}Steps": steps, "XLA Ops" if not kind else f"{kind}Ops": events}
    return DrawnPlane(name, {key: value for key, value in lines.items() if value}, metadata_stats=stats_of)


def random_hosts(rng: random.Random) -> list[DrawnHost]:
    """Three or four hosts that run the same program with different times."""
    n_steps = rng.randint(2, 5)
    has_infeed, has_ids = rng.random() < 0.6, rng.random() < 0.5
    program = [
        f"{name}.{k}"
        for k, name in enumerate(rng.choices([*CATEGORIES], k=rng.randint(4, 9)))
        if has_infeed or name != "infeed"
    ]
    length = rng.randint(3_000, 9_000)
    return [
        _random_host(rng, i, (program, has_ids), (n_steps - rng.randint(0, 1), length))
        for i in range(rng.randint(3, 4))
    ]


def _random_host(
    rng: random.Random, number: int, program: tuple[list[str], bool], steps: tuple[int, int]
) -> DrawnHost:
    n_steps, length = steps
    host = DrawnHost(f"h{number}", rng.randint(0, 3), rng.choice((0, 7)), [])
    begin = [10_000 + i * (length + 500) for i in range(n_steps)]
    for op_number in range(rng.randint(1, 3)):
        starts = [time + rng.randint(0, 200) for time in begin]
        core = DrawnCore(
            2 * op_number + number % 2, [(start, length + rng.randint(0, 250)) for start in starts], []
        )
        for step, (start, step_ps) in enumerate(core.steps):
            core.ops += _program(rng, program, step, (start, step_ps))
        host.cores.append(core)
    for op_number in range(rng.choice((0, 1, 2))):
        host.sparse.append(_sparse_core(rng, op_number, begin, length))
    for step, start in enumerate(begin):
        for _ in range(rng.randint(0, 3)):
            since = start + rng.randint(0, length)
            host.waits.append((step, since, since + rng.randint(1, length // 3)))
    host.threads = [_thread(rng) for _ in range(rng.randint(1, 4))]
    return host


def _program(
    rng: random.Random, program: tuple[list[str], bool], step: int, within: tuple[int, int]
) -> list[DrawnOp]:
    """The program's operations in order, with gaps; some occur twice, some never."""
    names, has_ids = program
    ops = []
    names = [name for name in names for _ in range(rng.choice((1, 1, 1, 2, 0)))]
    start, step_ps = within
    room = step_ps // max(len(names), 1)
    n_runs: dict[str, int] = {}
    for i, name in enumerate(names):
        duration = rng.randint(1, max(room - 2, 1))
        nth = n_runs[name] = n_runs.get(name, -1) + 1
        is_collective = name.startswith(("all-reduce", "gather"))
        unique = 1000 * step + 10 * int(name.partition(".")[2]) + nth if has_ids and is_collective else -1
        ops.append(DrawnOp(name, step, start + i * room + rng.randint(0, 1), duration, unique))
    return ops


def _sparse_core(rng: random.Random, number: int, begin: Sequence[int], length: int) -> DrawnCore:
    core = DrawnCore(number, [(start + 100, length // 2) for start in begin], [])
    for step, start in enumerate(begin):
        position = start + rng.randint(0, 300)
        for name in rng.choices([*_SC_NAMES], k=rng.randint(0, 4)):
            duration = rng.randint(1, length // 3)
            core.ops.append(DrawnOp(name, step if rng.random() < 0.6 else -1, position, duration))
            position += duration + rng.randint(0, 50)
    return core


def _thread(rng: random.Random) -> list[tuple[str, int, int]]:
    position, events = rng.randint(0, 500), []
    for name in rng.choices(STAGES, k=rng.randint(1, 8)):
        duration = rng.randint(1, 900)
        events.append((name, position, duration))
        position += duration + rng.randint(0, 400)
    return events
