import math
import random

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.latency import histogram, percentiles, tail_rows, throughput

S = 10**12


def named(latency: list[int]) -> dict[str, tuple[int, int, int, int]]:
    """Row, latency and interval of each percentile."""
    found = percentiles(np.array(latency, np.int64))
    return {one.name: (one.row, one.latency_ps, one.low_ps, one.high_ps) for one in found}


def test_a_percentile_is_the_latency_of_a_request() -> None:
    found = named([40, 10, 30, 20])
    assert found["p50"][:2] == (3, 20)
    assert found["p75"][:2] == (2, 30)
    assert found["p90"] == (-1, -1, -1, -1)


@pytest.mark.parametrize("n", [2, 5, 10, 19, 20, 101, 1000])
def test_at_least_that_share_of_the_requests_is_no_slower(n: int) -> None:
    latency = [random.Random(n).randrange(1000) for _ in range(n)]
    for name, (row, time, _low, _high) in named(latency).items():
        share = float(name[1:]) / 100
        if row < 0:
            assert n * (1 - share) < 1
            continue
        assert latency[row] == time
        assert sum(one <= time for one in latency) >= share * n - 1e-9
        assert sum(one < time for one in latency) < share * n


def test_the_confidence_interval_is_between_order_statistics() -> None:
    latency = list(range(1, 1201))
    found = named(latency)
    # 600 ± 1.96 √300 = 566.05 … 633.95; 1188 ± 1.96 √11.88 = 1181.24 … 1194.76;
    # 1080 ± 1.96 √108 = 1059.6 … 1100.4
    assert found["p50"][2:] == (566, 635)
    assert found["p99"][2:] == (1181, 1196)
    assert found["p90"][2:] == (1059, 1102)
    # 1198.8 ± 1.96 √1.1988 = 1196.65 … 1200.95: nothing bounds it above.
    assert found["p99.9"][2:] == (1196, -1)


def test_few_requests_bound_a_percentile_on_neither_side() -> None:
    assert named([10, 20])["p50"] == (0, 10, -1, -1)
    # 4 ± 1.96 √2 = 1.23 … 6.77
    assert named([10, 20, 30, 40, 50, 60, 70, 80])["p50"][2:] == (10, 80)
    assert named([10, 20, 30, 40, 50, 60, 70])["p50"][2:] == (-1, -1)


def test_the_slowest_tenth() -> None:
    assert tail_rows(np.array([5, 9, 7])).tolist() == [1]
    latency = np.arange(29) * 7 % 29
    assert latency[tail_rows(latency)].tolist() == [28, 27]
    assert tail_rows(np.empty(0, np.int64)).tolist() == []


def test_throughput_counts_what_ends_within_a_second() -> None:
    start = np.array([0, 1, 2, 2, 3, 9]) * S // 2
    latency = np.array([1, 1, 1, 3, 1, 1]) * S // 2
    found = throughput(start, latency)
    assert found.span_ps == 5 * S
    assert found.per_s == pytest.approx(6 / 5)
    assert found.mean_in_progress == pytest.approx(4 / 5)
    assert found.max_in_progress == 2
    # Ends at 0.5, 1, 1.5, 2, 2.5 and 5 s: those of a second are two, its last moment excluded.
    assert found.peak_per_s == 2


@pytest.mark.parametrize(("span", "peak"), [(3 * S, 1), (3 * S - 1, -1)])
def test_a_short_span_has_no_peak(span: int, peak: int) -> None:
    found = throughput(np.array([0, span - 5]), np.array([5, 5]))
    assert found.peak_per_s == peak


def test_requests_that_follow_one_another_are_not_in_progress_at_once() -> None:
    found = throughput(np.array([0, 10, 20]), np.array([10, 10, 5]))
    assert found.max_in_progress == 1
    assert throughput(np.array([0, 9, 20]), np.array([10, 10, 5])).max_in_progress == 2


def counted(latency: list[int]) -> list[tuple[int, int, int]]:
    found = histogram(np.array(latency, np.int64))
    return list(zip(found.low_ps.tolist(), found.high_ps.tolist(), found.n.tolist(), strict=True))


def test_bins_of_equal_round_width() -> None:
    bins = counted([100, 149, 150, 399, 1000, 2049])
    assert {high - low for low, high, _ in bins} == {50}
    assert (bins[0][0], bins[-1][1]) == (100, 2050)
    assert {low: n for low, _, n in bins if n} == {100: 2, 150: 1, 350: 1, 1000: 1, 2000: 1}


@pytest.mark.parametrize("seed", range(6))
def test_each_request_is_in_one_bin(seed: int) -> None:
    chance = random.Random(seed)
    latency = [int(chance.lognormvariate(20, 0.2 + seed / 2)) for _ in range(200)]
    bins = counted(latency)
    assert sum(n for _, _, n in bins) == 200
    assert all(n == sum(low <= one < high for one in latency) for low, high, n in bins)
    assert [high for _, high, _ in bins[:-1]] == [low for low, _, _ in bins[1:]]


def test_wide_latencies_have_bins_that_grow() -> None:
    assert len({high - low for low, high, _ in counted([100] * 5 + [2000])}) == 1
    grown = counted([100] * 5 + [2001])
    ratios = [high / low for low, high, _ in grown]
    assert max(ratios) < 1.3
    assert min(ratios) > 1.2
    assert math.isclose(grown[0][0], 100)
    assert grown[-1][0] <= 2001 < grown[-1][1]


def test_one_latency_has_one_bin() -> None:
    assert counted([7, 7]) == [(7, 8, 2)]
    assert counted([]) == []
