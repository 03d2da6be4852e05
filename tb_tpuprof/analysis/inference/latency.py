"""Percentiles of latency, throughput and the histogram of some requests.

A percentile is the latency of a request: the shortest one that at least this share of the requests do not
exceed (nearest rank). So its parts are those of a request that happened, and add up. It is given only where
at least one request is expected beyond it: p99 needs 100 requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.units import PS_PER_S

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
# Percentiles as fractions: (name, numerator, denominator).
PERCENTILES = (
    ("p50", 50, 100),
    ("p75", 75, 100),
    ("p90", 90, 100),
    ("p95", 95, 100),
    ("p99", 99, 100),
    ("p99.9", 999, 1000),
    ("p99.99", 9999, 10000),
)
_CONFIDENCE = 1.959964  # standard deviations on both sides of 95% of a normal distribution
TAIL = 10  # the slowest one in ten
_N_BINS = 40
_WIDE = 20  # times the median: from this longest latency on, bins grow with the latency
_BINS_PER_DECADE = 10
_NICE = (1, 2, 2.5, 5)


@dataclass(frozen=True)
class Percentile:
    """A percentile of `n` requests: `row` of the request that has it, -1 if there are too few; `least`: how
    many it takes. `low_ps`, `high_ps`: its 95% confidence interval, -1 where the requests do not bound it.
    """

    name: str
    row: int
    latency_ps: int
    low_ps: int
    high_ps: int
    least: int


def percentiles(latency_ps: Int64s, order: Rows | None = None) -> tuple[Percentile, ...]:
    """All of PERCENTILES. `order`: rows by latency, if it is known."""
    order = np.argsort(latency_ps, kind="stable") if order is None else order
    return tuple(_percentile(latency_ps, order, *one) for one in PERCENTILES)


def _percentile(latency_ps: Int64s, order: Rows, name: str, numerator: int, denominator: int) -> Percentile:
    n, beyond = len(order), denominator - numerator
    least = -(-denominator // beyond)
    if n < least:
        return Percentile(name, -1, -1, -1, -1, least)
    rank = -(-numerator * n // denominator)
    share = numerator / denominator
    margin = _CONFIDENCE * math.sqrt(n * share * (1 - share))
    low, high = math.floor(n * share - margin), math.ceil(n * share + margin) + 1
    row = int(order[rank - 1])
    return Percentile(
        name,
        row,
        int(latency_ps[row]),
        int(latency_ps[order[low - 1]]) if low >= 1 else -1,
        int(latency_ps[order[high - 1]]) if high <= n else -1,
        least,
    )


def tail_rows(latency_ps: Int64s) -> Rows:
    """The slowest tenth of the requests, at least one, slowest first."""
    n_tail = max(1, len(latency_ps) // TAIL) if len(latency_ps) else 0
    rows: Rows = np.argsort(-latency_ps, kind="stable")[:n_tail]
    return rows


@dataclass(frozen=True)
class Throughput:
    """Requests per second over `span_ps` (from the first start to the last end); the most that ended within
    one second, -1 if the span is shorter than 3 s; and how many were in progress at once, on average and
    at most.
    """

    per_s: float
    span_ps: int
    peak_per_s: int
    mean_in_progress: float
    max_in_progress: int


def throughput(start_ps: Int64s, latency_ps: Int64s) -> Throughput:
    """The throughput of at least one request, of one host's clock."""
    end = np.sort(start_ps + latency_ps)
    span = int(end[-1] - start_ps.min())
    # At one moment ends come before starts: requests that follow one another are not in progress at once.
    moment = np.concatenate((end, start_ps))
    change = np.repeat([-1, 1], len(end))
    order = np.lexsort((change, moment))
    most = int(np.cumsum(change[order]).max())
    peak = -1
    if span >= 3 * PS_PER_S:
        until = np.searchsorted(end, end + PS_PER_S, side="left")
        peak = int((until - np.arange(len(end))).max())
    total = float(latency_ps.astype(np.float64).sum())
    per_s = len(end) / (span / PS_PER_S) if span else float("nan")
    return Throughput(per_s, span, peak, total / span if span else float("nan"), most)


@dataclass(frozen=True)
class Histogram:
    """Bins of latency: from, to (exclusive, of the last bin inclusive) in ps, and the number of requests."""

    low_ps: Int64s
    high_ps: Int64s
    n: Int64s


def histogram(latency_ps: Int64s) -> Histogram:
    """Bins of equal, round width; where the longest latency is 20 times the median or more, bins of which
    each is wider than the one before by the same factor.
    """
    if not len(latency_ps):
        empty = np.empty(0, np.int64)
        return Histogram(empty, empty, empty)
    shortest, longest = int(latency_ps.min()), int(latency_ps.max())
    edges = (
        _growing(shortest, longest)
        if longest > _WIDE * max(float(np.median(latency_ps)), 1.0)
        else _equal(shortest, longest)
    )
    place = np.clip(np.searchsorted(edges, latency_ps, side="right") - 1, 0, len(edges) - 2)
    return Histogram(edges[:-1], edges[1:], np.bincount(place, minlength=len(edges) - 1).astype(np.int64))


def _equal(shortest: int, longest: int) -> Int64s:
    least = max((longest - shortest) / _N_BINS, 1.0)
    power = 10.0 ** math.floor(math.log10(least))
    width = max(1, int(next((nice * power for nice in _NICE if nice * power >= least), 10 * power)))
    first, last = shortest // width, longest // width + 1
    edges: Int64s = np.arange(first, last + 1, dtype=np.int64) * width
    return edges


def _growing(shortest: int, longest: int) -> Int64s:
    low = math.floor(math.log10(max(shortest, 1)) * _BINS_PER_DECADE)
    high = math.ceil(math.log10(max(longest, 1)) * _BINS_PER_DECADE)
    while round(10 ** (high / _BINS_PER_DECADE)) <= longest:
        high += 1
    edges = np.unique([round(10 ** (step / _BINS_PER_DECADE)) for step in range(low, high + 1)])
    return edges.astype(np.int64)
