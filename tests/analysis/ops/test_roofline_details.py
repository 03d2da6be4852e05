"""Rates against several roofs by a plain loop, limits on both sides, work above a peak, and its sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work, join_work, no_work
from tb_tpuprof.analysis.ops.roof_excess import Excess, excess_notices, roof_excesses
from tb_tpuprof.analysis.ops.roofline import (
    ABOVE_PEAK,
    LIMITS,
    NO_LIMIT,
    RESOURCES,
    UNKNOWN,
    WAITING,
    Roofs,
    first_roofs,
    in_words,
    limit_text,
    possible_work,
    rates,
    ratio,
    roofs,
)
from tb_tpuprof.analysis.ops.utilization import Utilization, idle_fraction, sum_utilization, utilization
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

N_SPACES = len(SPACES)
S, US = 10**12, 10**6
PEAKS = Roofs(100.0, (10.0, 0.0, 4.0, 40.0, 20.0), 0.0, ("the trace", "data sheet https://x.example/y Z"))


def drawn(seed: int, n: int = 400) -> tuple[Work, np.ndarray]:
    """Operations of 1 to 4 s: many near or above a peak, some with unknown FLOPs or bytes or without time."""
    chance = np.random.default_rng(seed)
    seconds = chance.integers(1, 5, n)
    peaks = np.array([PEAKS.flops_per_s, *PEAKS.bytes_per_s])[:, None]
    shares = chance.choice([0.0, 0.1, 0.29, 0.3, 0.31, 0.9, 1.0, 1.04, 1.06, 3.0], (1 + N_SPACES, n))
    amounts = np.where(chance.random(shares.shape) < 0.6, 0.0, shares) * np.maximum(peaks, 7) * seconds
    knows_flops, knows_bytes = chance.random((2, n)) < 0.9
    scaled = amounts[0] * knows_flops
    space = amounts[1:] * knows_bytes
    flops = scaled / 2  # their operands have half of the peak's rate
    time = np.where(chance.random(n) < 0.05, 0, seconds * S)
    return Work(flops, flops * 0.75, space.sum(axis=0), space, knows_flops, knows_bytes, scaled), time


def share(rate: float, peak: float) -> float:
    if math.isnan(rate) or peak <= 0 or rate > 1.05 * peak:
        return math.nan
    return min(rate / peak, 1.0)


def same(value: Any, expected: float) -> bool:
    return math.isnan(float(value)) if math.isnan(expected) else float(value) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_rates_of_random_operations(seed: int) -> None:
    work, time = drawn(seed)
    found = rates(work, time, PEAKS)
    limits = found.limits(np.zeros(len(time), np.bool_))
    seen = set()
    for i in range(len(time)):
        seconds = float(time[i]) / S

        def rate(amount: float, is_known: bool, seconds: float = seconds) -> float:
            return amount / seconds if is_known and seconds else math.nan

        roof = rate(float(work.scaled_flops[i]), bool(work.knows_flops[i]))
        space = [rate(float(amount), bool(work.knows_bytes[i])) for amount in work.space_bytes[:, i]]
        flops_above = roof > 1.05 * PEAKS.flops_per_s
        bytes_above = any(r > 1.05 * p for r, p in zip(space, PEAKS.bytes_per_s, strict=True) if p > 0)
        knows_flops = bool(work.knows_flops[i]) and not flops_above
        knows_bytes = bool(work.knows_bytes[i]) and not bytes_above
        assert same(found.flops_per_s[i], rate(float(work.flops[i]), knows_flops))
        assert same(found.model_flops_per_s[i], rate(float(work.model_flops[i]), knows_flops))
        assert same(found.bytes_per_s[i], rate(float(work.n_bytes[i]), knows_bytes))
        shown = [math.nan if bytes_above else one for one in space]
        assert all(map(same, found.space_bytes_per_s[:, i].tolist(), shown))
        shares = [
            share(roof, PEAKS.flops_per_s),
            *(share(r, p) for r, p in zip(shown, PEAKS.bytes_per_s, strict=True)),
        ]
        assert same(found.flops_fraction[i], shares[0])
        assert all(map(same, found.space_fraction[:, i].tolist(), shares[1:]))
        known = [one for one in shares if not math.isnan(one)]
        is_above = flops_above or bytes_above
        efficiency = max(known) if known and not is_above else math.nan
        assert same(found.efficiency[i], efficiency)
        assert bool(found.is_above[i]) == is_above
        nearest = shares.index(efficiency) if efficiency > 0 else -1
        assert int(found.nearest[i]) == nearest
        own = float(work.flops[i]) if knows_flops else math.nan
        per_space = [
            own / amount if knows_bytes and amount > 0 else math.nan
            for amount in work.space_bytes[:, i].tolist()
        ]
        total = float(work.n_bytes[i]) if knows_bytes else 0.0
        assert same(found.intensity[i], own / total if total else math.nan)
        assert all(map(same, found.space_intensity[:, i].tolist(), per_space))
        assert same(found.bound_intensity[i], per_space[max(nearest - 1, 0)])
        memory = [one for one in shares[1:] if not math.isnan(one)]
        assert same(found.memory_fraction[i], max(memory) if memory else math.nan)
        flops_rate = float(found.flops_per_s[i])
        assert same(
            found.optimal_flops_per_s[i],
            flops_rate / efficiency if efficiency and efficiency > 0 else math.nan,
        )
        text = ABOVE_PEAK if is_above else UNKNOWN if nearest < 0 else RESOURCES[nearest]
        assert found.nearest_text(i) == text
        limit = (
            ABOVE_PEAK
            if is_above
            else UNKNOWN
            if math.isnan(efficiency)
            else RESOURCES[nearest]
            if efficiency >= 0.3
            else NO_LIMIT
        )
        assert LIMITS[limits[i]] == limit
        seen.add(limit)
    assert {ABOVE_PEAK, UNKNOWN, NO_LIMIT, "Compute", "HBM", "CMEM write", "VMEM read"} <= seen
    assert set(found.limits(np.ones(len(time), np.bool_)).tolist()) == {LIMITS.index(WAITING)}


@pytest.mark.parametrize("seed", range(3))
def test_work_that_is_possible(seed: int) -> None:
    """FLOPs or bytes above a peak are unknown; the excess is how many times too many. Model FLOPs are not
    judged: a TPU states twice as many for products of 8 bits, which its peak allows.
    """
    work, time = drawn(seed)
    model = work.model_flops.copy()
    model[::7] = work.scaled_flops[::7] * 2  # products of 8 bits
    work = replace(work, model_flops=model)
    found = possible_work(work, time, PEAKS)
    for i in range(len(time)):
        seconds = float(time[i]) / S
        amounts = [work.scaled_flops[i], *work.space_bytes[:, i]]
        excess = [
            amount / (seconds * peak) if seconds and peak and amount > 1.05 * seconds * peak else 0.0
            for amount, peak in zip(amounts, (PEAKS.flops_per_s, *PEAKS.bytes_per_s), strict=True)
        ]
        assert found.excess[:, i].tolist() == pytest.approx(excess)
        assert bool(found.is_miscounted[i]) == any(excess)
        assert bool(found.knows_flops[i]) == (bool(work.knows_flops[i]) and not excess[0])
        assert bool(found.knows_bytes[i]) == (bool(work.knows_bytes[i]) and not any(excess[1:]))
        for name in ("flops", "model_flops", "scaled_flops"):
            expected = getattr(work, name)[i] if found.knows_flops[i] else 0.0
            assert getattr(found, name)[i] == expected
        assert found.n_bytes[i] == (work.n_bytes[i] if found.knows_bytes[i] else 0.0)
        for space in range(N_SPACES):
            assert found.space_bytes[space, i] == (work.space_bytes[space, i] if found.knows_bytes[i] else 0)
    again = rates(found, time, PEAKS)
    assert again.is_above.tolist() == found.is_miscounted.tolist()
    assert np.isnan(again.efficiency[found.is_miscounted]).all()


def test_work_without_an_excess_is_left_as_it_is() -> None:
    work = no_work(3)
    assert possible_work(work, np.full(3, S), PEAKS) is work
    assert work.is_miscounted.tolist() == [False] * 3


def test_excess_survives_joining_and_choosing() -> None:
    first, time = drawn(1)
    first = possible_work(first, time, PEAKS)
    both = join_work([no_work(2), first, no_work(3)])
    assert both.is_miscounted.tolist() == [False] * 2 + first.is_miscounted.tolist() + [False] * 3
    rows = np.array([5, 1, 7, 2])
    assert first.taken(rows).is_miscounted.tolist() == first.is_miscounted[rows].tolist()
    assert first.taken(rows).roof_flops.tolist() == first.roof_flops[rows].tolist()
    mask = np.arange(len(time)) % 3 == 1
    assert first.kept(mask).is_miscounted.tolist() == first.is_miscounted[mask].tolist()
    assert first.kept(np.ones(len(time), np.bool_)) is first
    twice = first.times(2.0)
    assert twice.space_bytes.tolist() == (first.space_bytes * 2).tolist()
    assert twice.roof_flops.tolist() == (first.roof_flops * 2).tolist()
    assert twice.model_flops.tolist() == (first.model_flops * 2).tolist()
    assert twice.excess.tolist() == first.excess.tolist()


def test_limits_in_words() -> None:
    for nearest, above, below in (
        ("HBM", "HBM", NO_LIMIT),
        ("Compute", "Compute", NO_LIMIT),
        (UNKNOWN, UNKNOWN, UNKNOWN),
        (ABOVE_PEAK, ABOVE_PEAK, ABOVE_PEAK),
    ):
        texts = [limit_text(nearest, value, "scope/dot.1") for value in (0.31, 0.3, 0.29)]
        assert texts == [above, above, below]
    assert limit_text("HBM", 0.9, "train/copy-done.1") == WAITING
    assert limit_text("HBM", 0.9, "copy-done.1/dot") == "HBM"
    assert [in_words(one) for one in RESOURCES[:3]] == ["compute", "HBM", "CMEM read"]


def test_ratios_without_a_denominator_are_unknown() -> None:
    found = ratio(np.array([6.0, 5.0, np.nan, 4.0]), np.array([3.0, 0.0, 2.0, -1.0]))
    assert found == pytest.approx([2.0, np.nan, np.nan, np.nan], nan_ok=True)
    assert ratio(np.ones((2, 2)), np.array([2, 0])) == pytest.approx(
        np.array([[0.5, np.nan]] * 2), nan_ok=True
    )


def test_the_first_host_with_known_peaks_counts() -> None:
    compute, memory, both = Roofs(9.0, (0.0,) * 5), Roofs(0.0, (3.0,) * 5), Roofs(7.0, (0.0, 2.0, 0, 0, 0))
    assert [one.is_known for one in (compute, memory, both)] == [False, False, True]
    assert Roofs(0.5, (0.5,)).is_known
    assert first_roofs([compute, memory, both, PEAKS]) is both
    assert first_roofs([compute, memory]) is compute
    assert PEAKS.short_sources == ("the trace", "data sheet Z")


def test_peaks_of_on_chip_memories_are_those_of_the_first_core() -> None:
    def core(i: int, *rates: float) -> DrawnPlane:
        names = ("cmem_rd", "cmem_wr", "vmem_rd", "vmem_wr")
        stats: Stats = {
            f"peak_{name}_bw_gigabytes_per_second": rate for name, rate in zip(names, rates, strict=True)
        }
        return DrawnPlane(f"/device:TPU:{i}", {"XLA Ops": [DrawnEvent("a", 0, US)]}, stats)

    host = DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, US)]})
    trace = build([host, core(0, 0.5, 0.0, 7.0, math.inf), core(1, 50.0, 60.0, 70.0, 80.0)])
    assert roofs(trace).bytes_per_s[1:] == (5e8, 0.0, 7e9, 0.0)
    assert roofs(build([host])).bytes_per_s == (0.0,) * 5
    assert roofs(trace).shared_bytes_per_s == 0.0


def test_only_gpus_have_shared_memory() -> None:
    stats: Stats = {"compute_cap_major": 9, "core_count": 3, "clock_rate": 500_000}
    gpu = build([DrawnPlane("/device:GPU:0", {"Stream #1": [DrawnEvent("k", 0, 1)]}, stats)])
    assert roofs(gpu).shared_bytes_per_s == 3 * 500_000 * 1000 * 256
    assert roofs(gpu).bytes_per_s[1:] == (0.0,) * 4


def excess(
    op: str, factor: float, resource: str = "HBM", time_us: float = 10.0, program: str = "p"
) -> Excess:
    return Excess(op, program, resource, time_us * US, time_us * US * factor)


def test_operations_by_how_far_they_exceed_the_peak() -> None:
    """Of 2, 1 and 1 runs, on a core of 1 TFLOP/s and 1 GB/s: 60 MFLOP in 50 µs, 60 kB in 20, 30 kB in 15."""
    ops = {"dot.1": (30_000_000, 0), "copy.2": (0, 60_000), "copy.3": (0, 30_000), "dot.4": (1, 1)}
    metadata: dict[str, Stats] = {
        name: {
            "program_id": 7,
            "symbol_id": i + 1,
            "hlo_category": "loop fusion",
            "flops": flops,
            "bytes_accessed": n_bytes,
        }
        for i, (name, (flops, n_bytes)) in enumerate(ops.items())
    }
    runs = (("dot.1", 20), ("copy.2", 20), ("copy.3", 15), ("dot.1", 30), ("dot.4", 40))
    events = [DrawnEvent(name, 50 * i * US, length * US) for i, (name, length) in enumerate(runs)]
    peaks: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, peaks, metadata)])
    found = roof_excesses(trace)
    assert [(one.op, one.resource, one.time_ps / US) for one in found] == [
        ("copy.2", "HBM", 20),
        ("copy.3", "HBM", 15),
        ("dot.1", "Compute", 25),
    ]
    assert [one.least_ps / US for one in found] == pytest.approx([60, 30, 30])
    assert [one.factor for one in found] == pytest.approx([3, 2, 1.2])


def test_a_notice_names_three_and_counts_the_rest() -> None:
    """By how far they exceed the peak; those too short to be measured come last, each name once."""
    found = [
        excess("a", 2.0),
        excess("b", 5.0, "Compute"),
        excess("c", 3.0, "VMEM read"),
        excess("d", 9.0, time_us=0.99),
        excess("b", 4.0, "Compute"),
    ]
    (notice,) = excess_notices(found, PEAKS)
    assert notice.message == (
        "For 4 operations more work was counted than the device can do in their time: `b` runs for 10.0 µs, "
        "but its counted FLOPs take at least 50.0 µs at peak compute (100 FLOP/s); `c` runs for 10.0 µs, but "
        "its counted VMEM read bytes take at least 30.0 µs at peak VMEM read bandwidth (40.0 B/s); `a` runs "
        "for 10.0 µs, but its counted HBM bytes take at least 20.0 µs at peak HBM bandwidth (10.0 B/s); and "
        "1 more. Their utilization is unknown and is not included in sums. Likely reason: fewer FLOPs ran "
        "than were counted (Winograd convolutions, masked attention), or the peak is too low (source: the "
        "trace)."
    )
    (three,) = excess_notices(found[:3], PEAKS)
    assert "more. Their" not in three.message
    other = excess_notices([*found[:1], excess("a", 2.0, program="q")], PEAKS)[0].message
    assert other.startswith("For 2 operations")
    assert excess_notices([], PEAKS) == ()


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        (("HBM", "HBM", "Compute"), "a cache served part of the bytes"),
        (("Compute", "Compute", "HBM"), "fewer FLOPs ran"),
        (("HBM", "Compute"), "a cache served part of the bytes"),  # of equals the worse
        (("Compute", "HBM"), "fewer FLOPs ran"),
    ],
)
def test_most_decide_about_the_reason(resources: tuple[str, ...], reason: str) -> None:
    found = [excess(f"op{i}", 9.0 - i, resource) for i, resource in enumerate(resources)]
    (notice,) = excess_notices(found, PEAKS)
    assert f"Likely reason: {reason}" in notice.message


def test_short_operations_are_no_evidence() -> None:
    short = [excess("a", 9.0, time_us=0.99), excess("b", 9.0, time_us=0.5)]
    for n, end in ((1, "Likely reason: it is too short"), (2, "Likely reason: they are too short")):
        (notice,) = excess_notices(short[:n], PEAKS)
        assert f"{end} to be measured accurately." in notice.message
    (notice,) = excess_notices([*short, excess("c", 2.0, time_us=1.0)], PEAKS)
    assert "Likely reason: a cache served" in notice.message
    assert notice.message.index("`c`") < notice.message.index("`a`")
    (one,) = excess_notices([excess("c", 2.0)], PEAKS)
    assert one.message == (
        "For 1 operation more work was counted than the device can do in its time: `c` runs for 10.0 µs, but "
        "its counted HBM bytes take at least 20.0 µs at peak HBM bandwidth (10.0 B/s). Its utilization is "
        "unknown and is not included in sums. Likely reason: a cache served part of the bytes, or the peak "
        "is too low (source: data sheet Z)."
    )
    assert excess("a", 2.0, time_us=0.0).factor == 0.0
    assert excess("a", 2.5).factor == 2.5


def test_utilization_takes_the_nearer_limit() -> None:
    one = Utilization(5, 10, 20, flops=30.0, hbm_bytes=40.0, max_flops=100.0, max_bytes=50.0)
    assert (one.flops_fraction, one.bandwidth_fraction) == (0.3, 0.8)
    assert (one.roofline_fraction, one.bound_by, one.duty_cycle) == (0.8, "memory", 0.5)
    scaled = replace(one, roof_flops=90.0)
    assert (scaled.flops_fraction, scaled.roofline_fraction, scaled.bound_by) == (0.9, 0.9, "compute")
    equal = replace(one, roof_flops=80.0)
    assert equal.bound_by == "compute"
    for missing in ("flops", "hbm_bytes", "max_flops", "max_bytes"):
        part = replace(one, **{missing: 0.0})
        assert (part.roofline_fraction, part.bound_by) == (None, "")
        assert (part.flops_fraction is None) == missing.endswith("flops")
        assert (part.bandwidth_fraction is None) == missing.endswith("bytes")
    assert replace(one, chip_ps=0).duty_cycle is None


def test_sums_of_three_hosts() -> None:
    parts = [Utilization(*(factor * value for value in range(1, 9))) for factor in (1, 10, 100)]
    total = sum_utilization(parts)
    assert total == Utilization(*(111 * value for value in range(1, 9)))
    named = Utilization(device_ps=10, max_flops=100.0, max_bytes=50.0)
    unnamed = [Utilization(device_ps=20), Utilization(device_ps=30), Utilization()]
    several = sum_utilization([unnamed[0], named, *unnamed[1:]])
    assert (several.device_ps, several.max_flops, several.max_bytes) == (60, 600.0, 300.0)
    nobody = sum_utilization(unnamed)
    assert (nobody.max_flops, nobody.max_bytes) == (0.0, 0.0)


def test_idle_time_is_a_share_of_the_profiled_time() -> None:
    def ops(idle_ps: int, span_ps: int) -> Any:
        return SimpleNamespace(idle_ps=idle_ps, span_ps=span_ps)

    assert [idle_fraction(ops(*times)) for times in ((3, 12), (0, 5), (0, 0))] == [0.25, 0.0, None]


def test_gpus_have_no_duty_cycle() -> None:
    gpu = build([DrawnPlane("/device:GPU:0", {"Stream #1": [DrawnEvent("k", 0, US)]})])
    found = utilization(gpu)
    assert (found.busy_ps, found.chip_ps, found.duty_cycle) == (0, 0, None)
    none = rates(no_work(0), np.empty(0, np.int64), PEAKS)
    assert len(none.bound_intensity) == len(none.efficiency) == 0
