"""Steps that random events belong to, compared with walks from every root."""

from __future__ import annotations

import random

import pytest

from tb_tpuprof.analysis.steps.grouping import groups
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build
from tests.plain.plain_groups import plain_groups

NAMES = ("train", "eval", "send", "work", "receive")


def random_events(rng: random.Random, first: int, last: int, depth: int, n_ids: int) -> list[DrawnEvent]:
    """Nested events: roots of several levels, and contexts of several types that share their ids."""
    events: list[DrawnEvent] = []
    at = first
    while last - at > 1 and rng.random() < 0.8:
        start = rng.randint(at, min(at + 6, last - 1))
        end = rng.randint(start + 1, last)
        events.append(DrawnEvent(rng.choice(NAMES), start * PS, (end - start) * PS, random_stats(rng, n_ids)))
        if depth:
            events += random_events(rng, start, end, depth - 1, n_ids)
        at = end
    return events


def random_stats(rng: random.Random, n_ids: int) -> Stats:
    stats: dict[str, int] = {}
    if rng.random() < 0.25:
        stats |= {"_r": rng.choice((0, 1, 1, 1, 2, 3))}
        stats |= rng.choice(({}, {"step_num": rng.randint(0, 9)}, {"iter_num": rng.randint(0, 9)}))
    if rng.random() < 0.3:
        stats |= {"_pt": rng.choice((2, 3, 15)), "_p": rng.randint(0, n_ids)}
    if rng.random() < 0.3:
        stats |= {"_ct": rng.choice((2, 3, 15)), "_c": rng.randint(0, n_ids)}
    if rng.random() < 0.05:
        stats |= {"step_num": rng.randint(10, 19)}
    return stats


@pytest.mark.parametrize("seed", range(10))
def test_groups_equal_what_each_root_leads_to(seed: int) -> None:
    rng = random.Random(f"groups {seed}")
    n_groups = n_none = 0
    for _ in range(40):
        n_ids = rng.choice((2, 6, 20))
        lines = {
            name: sorted(
                random_events(rng, rng.randint(0, 9), 60, 3, n_ids),
                key=lambda event: (event.start_ps, -event.duration_ps),
            )
            for name in ("main", "worker", "pool")
        }
        trace = build([DrawnPlane("/host:CPU", lines)])
        made, expected = groups(trace), plain_groups(trace)
        assert made.group.tolist() == expected.group
        assert made.names == expected.names
        assert made.named_roots.tolist() == sorted(expected.roots)
        n_groups += len(expected.roots)
        n_none += expected.group.count(-1)
    assert n_groups > 20
    assert n_none > 20
