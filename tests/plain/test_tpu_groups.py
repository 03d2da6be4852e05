"""Steps of random TPU cores, started by the host or not, compared with loops over their events."""

from __future__ import annotations

import random

import pytest

from tb_tpuprof.analysis.steps.grouping import groups
from tests.builders import PS, DrawnEvent, DrawnPlane, build

Event = tuple[int, int, int]  # start, end, id of the context that it consumes or produces (-1: none)


def random_events(rng: random.Random, last: int, longest: int, ids: list[int], share: float) -> list[Event]:
    """Events one after another, some of which have one of the ids."""
    events, at = [], rng.randint(0, 4)
    while at < last:
        end = at + rng.randint(1, longest)
        events.append((at, end, rng.choice(ids) if ids and rng.random() < share else -1))
        at = end + rng.choice((0, 0, 1, 6))
    return events


def drawn(name: str, events: list[Event], keys: tuple[str, str]) -> list[DrawnEvent]:
    return [
        DrawnEvent(name, start * PS, (end - start) * PS, {keys[0]: 2, keys[1]: key} if key >= 0 else {})
        for start, end, key in events
    ]


def step_labels(steps: list[Event], ops: list[Event], label_of: dict[int, int]) -> list[int]:
    """The earliest host step that feeds each step, itself or by an operation that lies within it; -1 for
    none.
    """
    result = []
    for i, (begin, end, key) in enumerate(steps):
        fed = [label_of.get(key, -1)]
        for start, stop, wanted in ops:
            ending_after = [j for j, step in enumerate(steps) if step[1] > start]
            if ending_after and ending_after[0] == i and begin <= start and stop <= end:
                fed.append(label_of.get(wanted, -1))
        labels = [one for one in fed if one >= 0]
        result.append(min(labels) if labels else -1)
    return result


def of_overlapping(steps: list[Event], labels: list[int], event: Event) -> int:
    """The label of the first step that ends after an event begins, if they overlap or touch; else of the last
    one.
    """
    after = [i for i, step in enumerate(steps) if step[1] > event[0]]
    i = after[0] if after else len(steps) - 1
    return labels[i] if steps[i][0] <= event[1] and steps[i][1] >= event[0] else -1


@pytest.mark.parametrize("seed", range(8))
def test_groups_of_cores(seed: int) -> None:
    rng = random.Random(f"cores {seed}")
    n_fed = n_numbered = 0
    for _ in range(40):
        n_cores, line = rng.randint(1, 3), rng.choice(("Steps", "Steps", "XLA Modules"))
        roots = random_events(rng, 60, 15, [], 0)
        ids = list(range(8))
        sends = [(start, start + 1, ids.pop()) for start, end, _ in roots if end - start > 1 and len(ids) > 1]
        label_of = {
            key: next(i for i, root in enumerate(roots) if root[0] <= start < root[1])
            for start, _, key in sends
        }
        is_fed = rng.random() < 0.6
        host = [
            *(DrawnEvent("train", a * PS, (b - a) * PS, {"_r": 1, "step_num": i})
              for i, (a, b, _) in enumerate(roots)),
            *drawn("send", sends, ("_pt", "_p")),
        ]  # fmt: skip
        host.sort(key=lambda event: (event.start_ps, -event.duration_ps))
        keys = sorted(label_of) if is_fed else []
        cores = [
            (random_events(rng, 80, 20, keys, 0.2), random_events(rng, 90, 9, keys, 0.3))
            for _ in range(n_cores)
        ]
        planes = [
            DrawnPlane(
                f"/device:TPU:{i}",
                {line: drawn("step", steps, ("_ct", "_c")), "XLA Ops": drawn("op", ops, ("_ct", "_c"))},
            )
            for i, (steps, ops) in enumerate(cores)
        ]
        made = groups(build([DrawnPlane("/host:CPU", {"main": host}), *planes])).group.tolist()
        labels = [step_labels(steps, ops, label_of) for steps, ops in cores]
        if all(label < 0 for of_core in labels for label in of_core):
            labels = [[len(roots) + i for i in range(len(of_core))] for of_core in labels]
            n_numbered += 1
        else:
            n_fed += 1
        expected = [
            next(i for i, root in enumerate(roots) if root[0] * PS <= event.start_ps < root[1] * PS)
            for event in host
        ]
        for (steps, ops), of_core in zip(cores, labels, strict=True):
            expected += of_core + [of_overlapping(steps, of_core, op) for op in ops]
        assert made == expected
    assert min(n_fed, n_numbered) > 3
