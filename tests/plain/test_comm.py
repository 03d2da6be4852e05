"""Hidden and exposed communication of random devices beside plain loops over moments."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import Activity, activity
from tb_tpuprof.analysis.comm.exposure import coverage, exposure, pieces
from tb_tpuprof.analysis.comm.marks import exposed_stretches
from tests.plain.plain_comm import PlainExposure, Span, plain_cover

N_DEVICES = 60


def spans(rng: random.Random, most: int, length: int) -> list[Span]:
    """Up to `most` spans, some of them of equal begin or end, or touching."""
    made = []
    for _ in range(rng.randint(0, most)):
        begin = rng.choice((rng.randint(0, 100), 10 * rng.randint(0, 10)))
        made.append((begin, begin + rng.choice((rng.randint(0, length), 10))))
    return made


def of(runs: list[Span], compute: list[Span]) -> tuple[Activity, list[Span]]:
    """The device, and its runs in the order in which it has them."""
    starts, ends = (np.array([span[side] for span in runs], np.int64) for side in (0, 1))
    busy = tuple(np.array([span[side] for span in compute], np.int64) for side in (0, 1))
    n = np.arange(len(runs), dtype=np.int64)
    device = activity((starts, ends, n % 3, n), (busy[0], busy[1]))
    return device, list(zip(device.start_ps.tolist(), device.end_ps.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_random_devices_are_divided_as_in_plain_loops(seed: int) -> None:
    rng = random.Random(f"comm {seed}")
    seen = {"overlap": 0, "partly": 0, "hidden": 0, "exposed": 0, "outside": 0}
    for _ in range(N_DEVICES):
        compute = spans(rng, 6, 30)
        device, runs = of(spans(rng, 8, 40), compute)
        begin, steps = rng.randint(0, 30), []
        for _step in range(rng.randint(1, 4)):
            end = begin + rng.randint(1, 40)
            steps.append((begin, end))
            begin = end + rng.choice((0, 0, 5, -3))
        rng.shuffle(steps)
        plain = PlainExposure(runs, compute, steps)
        starts, lengths = (np.array(v, np.int64) for v in zip(*((a, b - a) for a, b in steps), strict=True))
        found = exposure(device, starts, lengths)
        places = list(zip(found.run.tolist(), found.step.tolist(), strict=True))
        assert sorted(places) == sorted(plain.elapsed)
        for row, place in enumerate(places):
            assert found.hidden_ps[row] == plain.hidden[place]
            assert found.exposed_ps[row] == plain.exposed[place]
            assert found.elapsed_ps[row] == plain.elapsed[place]
            step = steps[place[1]]
            assert found.begins[row] == (step[0] <= runs[place[0]][0] < step[1])
            seen["partly"] += plain.hidden[place] > 0 and plain.exposed[place] > 0
            seen["hidden"] += plain.hidden[place] > 0 and not plain.exposed[place]
            seen["exposed"] += plain.exposed[place] > 0 and not plain.hidden[place]
            seen["overlap"] += plain.elapsed[place] > plain.hidden[place] + plain.exposed[place]
        seen["outside"] += len(runs) > len({run for run, _ in places})
        assert found.compute_ps.tolist() == plain.compute
    assert min(seen.values()) >= 10, seen


def test_pieces_are_the_union_and_exposed_stretches_what_no_compute_covers() -> None:
    rng = random.Random("comm pieces")
    for _ in range(N_DEVICES):
        compute = spans(rng, 6, 30)
        device, runs = of(spans(rng, 8, 40), compute)
        made = pieces(device)
        owners = {
            moment: run
            for a, b, run in zip(made.start_ps.tolist(), made.end_ps.tolist(), made.run.tolist(), strict=True)
            for moment in range(a, b)
        }
        assert sum((made.end_ps - made.start_ps).tolist()) == len(owners)
        assert set(owners) == {moment for a, b in runs for moment in range(a, b)}
        bare = {moment for moment in owners if not any(a <= moment < b for a, b in compute)}
        start, end, run = exposed_stretches(device)
        marked = {
            moment: owner
            for a, b, owner in zip(start.tolist(), end.tolist(), run.tolist(), strict=True)
            for moment in range(a, b)
        }
        assert marked == {moment: owners[moment] for moment in bare}
        assert coverage(device).tolist() == pytest.approx([plain_cover(run, compute) for run in runs])
