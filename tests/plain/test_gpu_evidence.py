"""Evidence about random GPUs of one host, compared with loops over their kernels."""

from __future__ import annotations

import random

import pytest

from tb_tpuprof.analysis.diagnosis.device_evidence import device_evidence
from tb_tpuprof.analysis.diagnosis.device_turns import device_turns
from tb_tpuprof.analysis.steps.steps import steps
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build
from tests.plain.plain_threads import Span, union

KINDS = ("all-reduce", "all-gather", "collective")


def random_gpus(rng: random.Random) -> list[DrawnPlane]:
    """Steps of one thread that launch kernels of one to three GPUs, together or in turns; some are
    collectives.
    """
    n_gpus, in_turns = rng.randint(1, 3), rng.random() < 0.7
    sizes = [rng.choice((1, 6, 12)) for _ in range(n_gpus)]
    main: list[DrawnEvent] = []
    streams: list[list[DrawnEvent]] = [[] for _ in range(n_gpus)]
    at, correlation = 5, 0
    for number in range(rng.randint(3, 6)):
        length = rng.randint(40, 90)
        main.append(DrawnEvent("train", at * PS, length * PS, {"_r": 1, "step_num": number}))
        start = at + 3
        for gpu, stream in enumerate(streams):
            start = start if in_turns else at + 3
            for _ in range(rng.randint(1, 3)):
                correlation += 1
                launched = at + 1 + (correlation % 7) / 10
                ids = {"correlation_id": correlation}
                main.append(DrawnEvent("cudaLaunchKernel", int(launched * PS), PS // 20, ids))
                took = rng.randint(1, 4) + sizes[gpu]
                name, stats = random_kernel(rng)
                stream.append(DrawnEvent(name, start * PS, took * PS, {**ids, **stats}))
                start += took + rng.randint(0, 2)
        at = max(at + length, *(stream[-1].start_ps // PS + 20 for stream in streams))
    main.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    planes = [DrawnPlane(f"/device:GPU:{i}", {"Stream #1": stream}) for i, stream in enumerate(streams)]
    return [DrawnPlane("/host:CPU", {"main": main}), *planes]


def random_kernel(rng: random.Random) -> tuple[str, Stats]:
    if rng.random() < 0.6:
        return rng.choice(("gemm", "add")), {}
    stats: dict[str, int | str] = {"comm_kind": rng.choice(KINDS)}
    if rng.random() < 0.7:
        stats["comm_group"] = rng.choice(("0 (data)", "1 (tensor)"))
    if rng.random() < 0.7:
        stats["comm_size"] = rng.choice((2, 8))
    return "ncclDevKernel_AllReduce", stats


@pytest.mark.parametrize("seed", range(8))
def test_turns_and_kernels_of_gpus(seed: int) -> None:
    rng, n_turns = random.Random(f"gpus {seed}"), 0
    for _ in range(30):
        planes = random_gpus(rng)
        trace = build(planes)
        shown = steps(trace)
        spans = list(zip(shown.start_ps.tolist(), (shown.start_ps + shown.duration_ps).tolist(), strict=True))
        kernels = [[event for line in plane.lines.values() for event in line] for plane in planes[1:]]
        made = device_turns(trace)
        assert made.tolist() == turns([[span_of(one) for one in of_gpu] for of_gpu in kernels], spans)
        n_turns += int(made.any())
        evidence = device_evidence(trace)
        assert evidence is not None
        starts = [one.start_ps for of_gpu in kernels for one in of_gpu]
        inside = sum(first <= start < last for start in starts for first, last in spans)
        assert evidence.n_kernels == pytest.approx(inside / len(spans))
        exchanges = [
            (one.kind, one.group, one.n_devices, one.per_step, one.share) for one in evidence.exchanges
        ]
        expected = collectives([one for of_gpu in kernels for one in of_gpu], spans)
        assert sorted(exchanges) == [pytest.approx(one) for one in sorted(expected)]
        assert [one[4] for one in exchanges] == sorted((one[4] for one in exchanges), reverse=True)
    assert n_turns > 3


def span_of(event: DrawnEvent) -> Span:
    return event.start_ps, event.start_ps + event.duration_ps


def turns(gpus: list[list[Span]], spans: list[Span]) -> list[int]:
    """Time of each step in which any GPU is busy, without that of its busiest one, if they overlap little."""
    every = [span for gpu in gpus for span in gpu]
    together = [union(every, step) for step in spans]
    busy = [[union(gpu, step) for step in spans] for gpu in gpus]
    taking_part = [sum(gpu) for gpu in busy if sum(gpu) > 0.15 * sum(together)]
    if len(taking_part) < 2 or sum(taking_part) > 1.2 * sum(together):
        return [0] * len(spans)
    return [together[i] - max(gpu[i] for gpu in busy) for i in range(len(spans))]


def collectives(events: list[DrawnEvent], spans: list[Span]) -> list[tuple[str, str, int, float, float]]:
    """(kind, group, size, number per step, share) of the collectives that begin in steps and have a kind."""
    times: dict[tuple[str, str, int], list[int]] = {}
    for event in events:
        if "comm_kind" in event.stats and any(first <= event.start_ps < last for first, last in spans):
            stats = event.stats
            key = str(stats["comm_kind"]), str(stats.get("comm_group", "")), int(stats.get("comm_size", 0))
            times.setdefault(key, []).append(event.duration_ps)
    total = sum(map(sum, times.values()))
    return [
        (*key, len(took) / len(spans), sum(took) / total) for key, took in times.items() if key[0] != KINDS[2]
    ]
