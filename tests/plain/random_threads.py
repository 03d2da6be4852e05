"""Random traces of a loop: annotated steps on one thread, with nested frames and calls in them, and other
threads of Python and of a pool.
"""

from __future__ import annotations

import random

from tests.builders import PS, DrawnEvent, DrawnPlane

NAMES = (
    "$mine.py:40 update", "$shop.py:7 report", "$data.py:3 batches", "$queue.py:154 get", "$queue.py:122 put",
    "$time sleep", "$<string>:1 <lambda>", "PjitFunction(grow)", "PjitFunction(grow)", "PjitFunction(shrink)",
    "PjitFunction(__inference_step_17)", "EagerLocalExecute: Mul", "EagerLocalExecute: Add", "backend_compile",
    "lower_sharding_computation", "tf.function-graph_building", "cudaLaunchKernel", "cuLaunchKernelEx", "anneal",
    "a/Mul:Mul", "np.asarray(jax.Array)", "ThreadpoolListener::Record",
)  # fmt: skip
POOLS = ("tf_XLAEigen/1", "tf_XLAEigen/2", "tf_Compute/1", "tf_numa_0/1", "tf_data/1")


def random_loop(rng: random.Random) -> list[DrawnPlane]:
    """The planes. Steps have unlike lengths, and sometimes little between them."""
    gap, at, main = rng.choice((0, 0, 1)), rng.randint(0, 60), []
    before = nested(rng, 0, at, 2)
    for number in range(rng.choice((1, 3, 4, 6, 9))):
        length = rng.choice((30, 40, 60, 90, 200))
        main.append(DrawnEvent("train", at * PS, length * PS, {"_r": 1, "step_num": number}))
        main += nested(rng, at, at + length, 4)
        at += length + gap
    lines = {"main": ordered([*before, *main])}
    for name in rng.sample(POOLS, rng.randint(0, 4)):
        lines[name] = tasks(rng, at + 20)
    for number in range(rng.randint(0, 2)):
        lines[f"worker-{number}"] = ordered(nested(rng, 0, at + 20, 4))
    return [DrawnPlane("/host:CPU", lines)]


def ordered(events: list[DrawnEvent]) -> list[DrawnEvent]:
    """Events of a line, the outer ones first."""
    return sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))


def tasks(rng: random.Random, last: int) -> list[DrawnEvent]:
    """Tasks of a pool's thread one after another: a start mark, work, and no, one or two stop marks."""
    events: list[DrawnEvent] = []
    at = rng.randint(0, 9)
    while at < last:
        events.append(DrawnEvent("ThreadpoolListener::StartRegion", at * PS, 0))
        for _ in range(rng.randint(0, 2)):
            length = rng.randint(1, 15)
            events.append(DrawnEvent(rng.choice(("a/Mul:Mul", "dot.3")), at * PS, length * PS))
            at += length
        for _ in range(rng.choice((0, 1, 1, 2))):
            events.append(DrawnEvent("ThreadpoolListener::StopRegion", at * PS, 0))
            at += rng.randint(1, 3)
        at += rng.randint(1, 25)
    return events


def nested(rng: random.Random, first: int, last: int, depth: int) -> list[DrawnEvent]:
    """Events one after another within a span, each with some inside."""
    events: list[DrawnEvent] = []
    at = first
    while last - at > 1 and rng.random() < 0.85:
        start = rng.randint(at, min(at + 12, last - 1))
        end = rng.randint(start + 1, last)
        name = rng.choice(NAMES)
        events.append(DrawnEvent(name, start * PS, (end - start) * PS))
        if name.startswith("PjitFunction") and rng.random() < 0.3:
            events.append(DrawnEvent(name, start * PS, (end - start) * PS))
        if depth:
            events += nested(rng, start, end, depth - 1)
        at = end
    return events
