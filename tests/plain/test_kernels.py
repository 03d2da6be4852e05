"""Kernels of random GPUs of several hosts, compared with loops over all events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tb_tpuprof.analysis.kernels.kernels import Kernels, kernels, merge_kernels
from tb_tpuprof.analysis.kernels.rows import is_transfer, kernel_mask, kernel_rows
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build

SEEDS = range(8)
NAMES = ("relu", "add", "softmax", "ncclDevKernel_AllReduce", "h884gemm")
TENSOR = ("h884gemm",)
TEXTS = (
    "regs:16 static_shared:0 dynamic_shared:0 grid:4,1,1 block:256,1,1 occ_pct:100",
    "regs:16 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:100",
    "regs:32 static_shared:1024 dynamic_shared:2048 grid:4,1,1 block:64,1,1 occ_pct:50",
    "",
)
LAUNCHES = {
    TEXTS[0]: (16, 0, 0, "256,1,1", "4,1,1"),
    TEXTS[1]: (16, 0, 0, "256,1,1", "8,1,1"),
    TEXTS[2]: (32, 1024, 2048, "64,1,1", "4,1,1"),
    "": (-1, -1, -1, "", ""),
}
OPS = {"": "", "a/MatMul:MatMul": "a/MatMul", "b/Add:AddV2": "b/Add", "c/MatMul:MatMul": "c/MatMul"}
COPIES = ("MemcpyH2D", "Memset", "dma_request_7")


class Run(NamedTuple):
    """One kernel as drawn."""

    host: str
    name: str
    op: str
    launch: tuple[int, int, int, str, str]
    start_ps: int
    duration_ps: int


def random_host(rng: random.Random, host: str) -> tuple[list[DrawnPlane], list[Run]]:
    """GPUs with one or two streams each, and their kernels in the order of the events."""
    planes, runs = [], []
    for gpu in range(3):
        lines: dict[str, list[DrawnEvent]] = {}
        for stream in range(rng.randint(1, 2)):
            events, at = [], 0
            for _ in range(rng.randint(0, 25)):
                name = rng.choice((*NAMES, *COPIES[: rng.randint(0, 3)]))
                at += rng.randint(0, 3) * PS
                duration = rng.choice((0, 1, 2, 5, rng.randint(1, 40))) * PS
                text, op = rng.choice(TEXTS), rng.choice(tuple(OPS))
                stats: dict[str, str | int] = {"correlation_id": len(runs)}
                stats |= {"kernel_details": text} if text and name in NAMES else {}
                stats |= {"tf_op": op} if op else {}
                events.append(DrawnEvent(name, at, duration, stats))
                if name in NAMES:
                    runs.append(Run(host, name, OPS[op], LAUNCHES[text], at, duration))
                at += duration
            lines[f"Stream #{stream}"] = events
        planes.append(DrawnPlane(f"/device:GPU:{gpu}", lines))
    planes.append(DrawnPlane("/host:CPU", {"main": [DrawnEvent("launch", 0, PS)]}))
    return planes, runs


def rows_of(found: Kernels) -> list[tuple[object, ...]]:
    launches = [launch.key for launch in found.launch]
    columns = (found.n_occurrences, found.total_ps, found.min_ps, found.max_ps, found.longest_start_ps)
    texts = zip(found.name, found.op, launches, found.host, strict=True)
    return [
        (*text, *numbers)
        for text, *numbers in zip(texts, *(column.tolist() for column in columns), strict=True)
    ]


def summed(runs: Sequence[Run]) -> list[tuple[object, ...]]:
    """A row per kernel, operation and launch: the longest total first. Of equally long runs, the last one is
    the longest.
    """
    groups: dict[tuple[str, str, tuple[int, int, int, str, str]], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.name, run.op, run.launch), []).append(run)
    rows = []
    for (name, op, launch), members in groups.items():
        durations = [run.duration_ps for run in members]
        longest = [run for run in members if run.duration_ps == max(durations)][-1]
        total = sum(durations)
        extremes = min(durations), max(durations)
        rows.append((name, op, launch, longest.host, len(members), total, *extremes, longest.start_ps))
    return sorted(rows, key=lambda row: (-int(row[5]), row[0], row[1], row[2]))


@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_of_a_host_and_of_several(seed: int) -> None:
    rng = random.Random(f"kernels {seed}")
    parts, every = [], []
    for host in ("a", "b", "c"):
        planes, runs = random_host(rng, host)
        found = kernels(build(planes, host=host))
        assert rows_of(found) == summed(runs)
        assert found.uses_tensor_cores.tolist() == [name in TENSOR for name in found.name]
        assert found.is_eligible.tolist() == [op.endswith("MatMul") for op in found.op]
        parts.append(found)
        every += runs
        assert rows_of(merge_kernels([found])) == rows_of(found)
    assert rows_of(merge_kernels(parts)) == summed(every)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_events_that_are_kernels_and_their_details(seed: int) -> None:
    rng = random.Random(f"kernel rows {seed}")
    planes, runs = random_host(rng, "a")
    trace = build(planes)
    rows, text = kernel_rows(trace)
    assert trace.events["start_ps"][rows].tolist() == [run.start_ps for run in runs]
    assert trace.events["duration_ps"][rows].tolist() == [run.duration_ps for run in runs]
    assert kernel_mask(trace).nonzero()[0].tolist() == rows.tolist()
    details = [trace.strings[row] if row >= 0 else "" for row in text.tolist()]
    assert [LAUNCHES[one] for one in details] == [run.launch for run in runs]


def test_kernels_that_all_have_details() -> None:
    """Their strings are those of the column."""
    events: list[DrawnEvent] = []
    for i in range(3):
        stats: Stats = {"kernel_details": TEXTS[i]}
        events.append(DrawnEvent("k", 10 * i, 5, stats))
    trace = build([DrawnPlane("/device:GPU:0", {"Stream #1": events})])
    rows, text = kernel_rows(trace)
    assert rows.tolist() == [0, 1, 2]
    assert [trace.strings[one] for one in text.tolist()] == list(TEXTS[:3])


@pytest.mark.parametrize(
    ("name", "is_copy"),
    [
        ("MemcpyH2D", True),
        ("memset 4", True),
        ("Memory Copy", True),
        ("DMA_Request 3", True),
        ("dma_request", True),
        ("gemm_memcpy", False),
        ("mem", False),
        ("", False),
    ],
)
def test_copies_and_fills_by_the_beginning_of_their_names(name: str, is_copy: bool) -> None:
    assert is_transfer(name) == is_copy


def test_a_detailed_copy_is_a_kernel() -> None:
    """It runs as one."""
    events = [
        DrawnEvent("memcpy_kernel", 0, 5, {"kernel_details": TEXTS[0]}),
        DrawnEvent("memcpy_kernel", 9, 5),
        DrawnEvent("k", 20, 5),
    ]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": events}), DrawnPlane("/device:GPU:0", {"Stream #1": events})]
    )
    assert kernel_mask(trace).tolist() == [False, False, False, True, False, True]
    assert not kernel_mask(build([DrawnPlane("/host:CPU", {"main": events})])).any()
