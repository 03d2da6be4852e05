"""Occupancy that follows from a launch: worked examples, its bounds, and beside what PyTorch's tracer
computed on real GPUs.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.kernels.kernels import kernels
from tb_tpuprof.analysis.kernels.launch import Launch, read_launch
from tb_tpuprof.analysis.kernels.occupancy import (
    MULTIPROCESSORS,
    WARP,
    capabilities,
    n_blocks,
    theoretical_occupancy,
    with_occupancy,
)
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.conformance.peer import corpus

KIB = 1024


@pytest.mark.parametrize(
    ("capability", "registers", "shared", "threads", "blocks", "limited_by"),
    [
        ((8, 0), 32, 0, 256, 8, "warps: 64 / 8"),
        ((8, 0), 64, 0, 256, 4, "registers: 2,048 a warp, 8 warps in each quarter, 32 in all"),
        ((8, 0), 33, 0, 256, 6, "registers: 1,056 become 1,280 a warp, 12 in each quarter, 48 in all"),
        ((8, 0), 16, 48 * KIB, 256, 3, "shared memory: 164 / 49 KiB, one of them the system's"),
        ((7, 0), 16, 48 * KIB, 256, 2, "shared memory: 96 / 48 KiB, the system takes none"),
        ((8, 0), 16, 0, 32, 32, "blocks"),
        ((7, 5), 32, 0, 1024, 1, "warps: 32 / 32"),
        ((8, 6), 32, 0, 1024, 1, "warps: 48 / 32"),
        ((8, 9), 16, 0, 32, 24, "blocks"),
        ((9, 0), 168, 226 * KIB, 384, 1, "shared memory: a Hopper matrix product takes it whole"),
        ((9, 0), 168, 0, 384, 1, "registers: 5,376 a warp, 3 in each quarter, 12 in all"),
        ((6, 0), 96, 0, 192, 3, "registers: 3,072 a warp, 10 in each half, 20 in all"),
        ((12, 0), 40, 0, 256, 6, "warps: 48 / 8"),
        ((8, 0), 255, 0, 1024, 0, "does not fit: 8,192 a warp, 2 in each quarter, 8 in all, of 32"),
        ((9, 9), 32, 0, 256, -1, "an unknown GPU"),
        ((8, 0), -1, 0, 256, -1, "unknown registers"),
        ((8, 0), 32, -1, 256, -1, "unknown shared memory"),
        ((8, 0), 32, 0, 2048, -1, "no block is so large"),
    ],
)
def test_blocks(
    capability: tuple[int, int], registers: int, shared: int, threads: int, blocks: int, limited_by: str
) -> None:
    assert n_blocks(capability, registers, shared, threads) == blocks, limited_by


# CUDA C++ Programming Guide, "Compute Capabilities": warps, blocks and KiB of shared memory of a
# multiprocessor; all have 65,536 registers. Their parts, and the units of shared memory: `cuda_occupancy.h`.
LIMITS = {
    (5, 0): (64, 32, 64, 4),
    (5, 2): (64, 32, 96, 4),
    (6, 0): (64, 32, 64, 2),
    (6, 1): (64, 32, 96, 4),
    (7, 0): (64, 32, 96, 4),
    (7, 5): (32, 16, 64, 4),
    (8, 0): (64, 32, 164, 4),
    (8, 6): (48, 16, 100, 4),
    (8, 7): (48, 16, 164, 4),
    (8, 9): (48, 24, 100, 4),
    (9, 0): (64, 32, 228, 4),
    (10, 0): (64, 32, 228, 4),
    (10, 3): (64, 32, 228, 4),
    (12, 0): (48, 24, 100, 4),
    (12, 1): (48, 24, 100, 4),
}


def blocks_one_by_one(capability: tuple[int, int], registers: int, shared: int, threads: int) -> int:
    """Blocks that fit, by adding one after the other until a resource is used up."""
    n_warps, n_most, shared_kib, n_parts = LIMITS[capability]
    of_block = -(-threads // 32)
    per_warp = -(-registers * 32 // 256) * 256
    warps_by_registers = n_parts * (65_536 // n_parts // per_warp)
    unit, system = (128, 1024) if capability >= (8, 0) else (256, 0)
    size = -(-(shared + system) // unit) * unit
    n = 0
    while (
        n < n_most
        and (n + 1) * of_block <= n_warps
        and (n + 1) * of_block <= warps_by_registers
        and (n + 1) * size <= shared_kib * 1024
    ):
        n += 1
    return n


def test_the_limits_of_every_compute_capability() -> None:
    assert LIMITS.keys() == MULTIPROCESSORS.keys()
    for capability, (n_warps, n_most, shared_kib, n_parts) in LIMITS.items():
        unit, system = (128, 1024) if capability >= (8, 0) else (256, 0)
        expected = (n_warps, n_most, shared_kib * 1024, unit, system, 65_536, n_parts)
        assert astuple(MULTIPROCESSORS[capability]) == expected


@pytest.mark.parametrize("capability", LIMITS)
def test_blocks_fit_until_a_resource_is_used_up(capability: tuple[int, int]) -> None:
    rng = random.Random(str(capability))
    launches = [(1, 0, 1), (255, 0, 1024), (255, 0, 1), (32, 0, 33), (1, 0, 1024)]
    launches += [
        (
            rng.randint(1, 255),
            rng.choice((0, rng.randint(0, 2000), rng.randint(0, 100 * KIB))),
            rng.randint(1, 1024),
        )
        for _ in range(300)
    ]
    for launch in launches:
        assert n_blocks(capability, *launch) == blocks_one_by_one(capability, *launch), launch


@pytest.mark.parametrize(
    ("registers", "shared", "threads"), [(0, 0, 32), (256, 0, 32), (1, -1, 32), (1, 0, 0), (1, 0, 1025)]
)
def test_launches_that_no_gpu_accepts_are_unknown(registers: int, shared: int, threads: int) -> None:
    assert n_blocks((8, 0), registers, shared, threads) == -1


def test_an_occupancy_is_the_share_of_the_threads_that_fit() -> None:
    """8.6 holds 48 warps: of blocks of 3 x 5 x 7 = 105 threads, 12 fit, in 4 warps each."""
    launch = Launch(32, 0, 0, "3,5,7")
    assert theoretical_occupancy(launch, (8, 6)) == 12 * 105 / (48 * 32)
    assert math.isnan(theoretical_occupancy(launch, (9, 9)))
    assert math.isnan(theoretical_occupancy(Launch(32, 0, 0, ""), (8, 6)))
    assert math.isnan(theoretical_occupancy(Launch(255, 0, 0, "1024,1,1"), (8, 6)))  # none fits


def capability_of(*stats: dict[str, int | float | str | bytes]) -> list[tuple[int, int]]:
    """The capabilities of GPUs with these stats."""
    events = {"Stream #1": [DrawnEvent("k", 0, 5)]}
    planes = [DrawnPlane(f"/device:GPU:{i}", events, stats=given) for i, given in enumerate(stats)]
    return list(capabilities(build(planes)).values())


def test_the_compute_capability_of_each_gpu() -> None:
    assert capability_of(
        {"device_vendor": "Nvidia", "compute_cap_major": 8, "compute_cap_minor": 6},
        {"compute_cap_major": 9, "compute_cap_minor": 0},
        {"device_vendor": "NVIDIA", "compute_cap_major": 7},
        {"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4},
        {"compute_cap_major": math.nan, "compute_cap_minor": 5},
        {},
    ) == [(8, 6), (9, 0), (7, 0), (0, 0), (0, 5), (0, 0)]


def test_what_the_tracer_tells_stays() -> None:
    told = read_launch("regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1 occ_pct:40")
    assert with_occupancy(told, (8, 0)) == told
    untold = read_launch("regs:64 static_shared:0 dynamic_shared:0 grid:1,1,1 block:16,16,1 occ_pct:0")
    computed = with_occupancy(untold, (8, 0))
    assert (computed.occupancy, computed.is_computed) == (0.5, True)
    assert not with_occupancy(untold, (0, 0)).is_computed
    assert not with_occupancy(read_launch("grid:1,1,1 block:256,1,1 group_mem:0"), (9, 0)).is_computed


def drawn(vendor: str, details: str) -> Any:
    stats: dict[str, int | float | str | bytes] = {
        "device_vendor": vendor,
        "compute_cap_major": 9,
        "compute_cap_minor": 0,
    }
    event = DrawnEvent("k", 0, 5, {"kernel_details": details, "correlation_id": 1})
    return build(
        [
            DrawnPlane("/device:GPU:0", {"Stream #1": [event]}, stats=stats),
            DrawnPlane("/host:CPU", {"main": []}),
        ]
    )


def test_a_kernel_s_gpu_decides() -> None:
    text = "regs:64 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1"
    (launch,) = kernels(drawn("Nvidia", text)).launch
    assert (launch.occupancy, launch.is_computed) == (0.5, True)
    amd = drawn("AMD", text)  # gfx9.0 is not Hopper
    assert set(capabilities(amd).values()) == {(0, 0)}
    assert math.isnan(kernels(amd).launch[0].occupancy)


LAUNCH = st.tuples(
    st.sampled_from(sorted(MULTIPROCESSORS)),
    st.integers(1, 255),
    st.integers(0, 256 * KIB),
    st.integers(1, 1024),
)


@given(LAUNCH)
def test_more_resources_never_fit_more_often(drawn_launch: tuple[tuple[int, int], int, int, int]) -> None:
    capability, registers, shared, threads = drawn_launch
    of = MULTIPROCESSORS[capability]
    found = n_blocks(capability, registers, shared, threads)
    assert found <= n_blocks(capability, max(1, registers - 1), shared, threads)
    assert found <= n_blocks(capability, registers, shared // 2, threads)
    warps = found * math.ceil(threads / WARP)
    assert warps <= of.n_warps
    assert warps * registers * WARP <= of.n_registers
    assert found * shared <= of.shared_bytes
    occupancy = theoretical_occupancy(Launch(registers, shared, 0, f"{threads},1,1"), capability)
    assert math.isnan(occupancy) == (found == 0)
    assert not occupancy > 1


# (trace, GPU): V100, A100 and H100.
TRACES = (
    ("kineto_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", (7, 0)),
    ("hta/trace_diff/test/test.json.gz", (7, 0)),
    ("hta/trace_diff/control/control.json.gz", (8, 0)),
    ("hta/nccl_parser_config/nccl_data.json.gz", (8, 0)),
    ("tracelens_torch/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", (9, 0)),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "capability"), TRACES)
def test_beside_what_pytorch_computed(name: str, capability: tuple[int, int]) -> None:
    """Kineto calls NVIDIA's `cuda_occupancy.h` and counts no more blocks than the grid has for each
    multiprocessor; whole percents.

    Where a block takes more than 48 KiB of shared memory it does not know that the kernel asked for more, and
    says 0.
    """
    with gzip.open(corpus() / name) as file:
        content = json.load(file)
    n_multiprocessors = {entry["id"]: entry["numSms"] for entry in content["deviceProperties"]}
    n_same = n_limited = 0
    for args in (
        event["args"]
        for event in content["traceEvents"]
        if "est. achieved occupancy %" in event.get("args", {})
    ):
        threads = math.prod(args["block"])
        blocks = n_blocks(capability, args["registers per thread"], args["shared memory"], threads)
        waiting = math.prod(args["grid"]) / n_multiprocessors[args["device"]]
        told = args["est. achieved occupancy %"]
        if told == 0 and args["shared memory"] > 48 * KIB:
            assert blocks > 0
            continue
        mine = 100 * min(blocks, waiting) * threads / (MULTIPROCESSORS[capability].n_warps * WARP)
        assert told == pytest.approx(mine, abs=0.51), args
        n_same, n_limited = n_same + 1, n_limited + (blocks <= waiting)
    assert n_same > 500
    assert n_limited > 500
