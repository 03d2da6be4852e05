"""The numbers of an inference job's requests: the same on every page that shows them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.inference.latency import Percentile, Throughput, throughput
from tb_tpuprof.analysis.inference.record import HostInference
from tb_tpuprof.tools.payload import Scalar
from tb_tpuprof.tools.spec import Number, ScalarSpec, fill_scalars
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import counted, format_time, three_digits

REQUEST_SCALARS = (
    ScalarSpec(
        "n_requests",
        "Requests",
        "count",
        "Number of requests in the trace; of an engine that marks forward passes, the number of these",
        is_optional=True,
    ),
    ScalarSpec(
        "latency_p50_ps",
        "Latency p50",
        "ps",
        "Half of the requests take at most this long, from their start to their end or to the end of their "
        "last work on a device",
        is_optional=True,
        formula="latency of the request at rank ⌈0.5 × n⌉",
    ),
    ScalarSpec(
        "latency_p99_ps",
        "Latency p99",
        "ps",
        "99 of 100 requests take at most this long; known from 100 requests on",
        is_optional=True,
        formula="latency of the request at rank ⌈0.99 × n⌉",
    ),
)
_PLURALS = {"request": "requests", "pass": "passes", "batch": "batches"}


def unit_word(found: HostInference, n: int) -> str:
    """What `n` rows are: `request`, `passes` …"""
    return found.unit if n == 1 else _PLURALS[found.unit]


def counted_requests(found: HostInference, n: int) -> str:
    """`1,200 requests`."""
    return counted(n, found.unit, _PLURALS[found.unit])


def too_few(found: HostInference, one: Percentile) -> str:
    """Why a percentile is not given."""
    verb = "is" if len(found) == 1 else "are"
    return f"there {verb} {counted_requests(found, len(found))}, and {one.name} needs at least {one.least:,}"


def span_of(found: HostInference) -> str:
    """Whose time it is in which devices are busy, where it is not that of these requests on one host:
    ` of any model, summed over 3 hosts`. Devices work for all models at once.
    """
    is_part = len(found.models) > 1 and len(set(found.model.tolist())) == 1
    n_hosts = len(set(found.host.tolist()))
    return " of any model" * is_part + (f", summed over {n_hosts:,} hosts" if n_hosts > 1 else "")


def latency_sentence(found: HostInference) -> str:
    """How long these requests took: `1,200 requests took 9.91 ms at the median, and 90.1 ms at p99.`"""
    by_name = {one.name: one for one in found.percentiles}
    median, late = by_name["p50"], by_name["p99"]
    longest = format_time(int(found.latency_ps.max()))
    took = f"{counted_requests(found, len(found))} took"
    if median.row < 0:
        return f"{took} {longest}."
    tail = f"{format_time(late.latency_ps)} at p99" if late.row >= 0 else f"{longest} at most"
    return f"{took} {format_time(median.latency_ps)} at the median, and {tail}."


def throughput_of(found: HostInference) -> Throughput | None:
    """The throughput of all hosts together; None without requests."""
    return throughput_by_host(found.host, found.start_ps, found.latency_ps)


def throughput_by_host(
    host: npt.NDArray[np.int64], start_ps: npt.NDArray[np.int64], latency_ps: npt.NDArray[np.int64]
) -> Throughput | None:
    """The throughput of requests or batches of several hosts: each by its own clock, summed. None without
    any.
    """
    parts = [
        throughput(start_ps[rows], latency_ps[rows])
        for number in np.flatnonzero(np.bincount(host)).tolist()
        for rows in (np.flatnonzero(host == number),)
    ]
    if not parts:
        return None
    return Throughput(
        sum(part.per_s for part in parts),
        max(part.span_ps for part in parts),
        sum(part.peak_per_s for part in parts) if all(part.peak_per_s >= 0 for part in parts) else -1,
        sum(part.mean_in_progress for part in parts),
        sum(part.max_in_progress for part in parts),
    )


def request_scalars(found: HostInference) -> dict[str, Scalar]:
    """REQUEST_SCALARS of some requests; none if there are no requests."""
    if not len(found):
        return {}
    by_name = {one.name: one for one in found.percentiles}
    flow = throughput_of(found)
    batches = f" and {counted(len(found.batches), 'batch', 'batches')}" if len(found.batches) else ""
    where = " on the longest host" if len(found.hosts) > 1 else ""
    span = f"in {format_time(flow.span_ps)}{where}{batches}" if flow else ""
    mean = f"average {format_time(float(found.latency_ps.mean()))}"
    longest = f"max {format_time(int(found.latency_ps.max()))}"
    median = by_name["p50"].latency_ps
    times = f"{three_digits(by_name['p99'].latency_ps / median)} times p50 · " if median > 0 else ""
    return fill_scalars(
        REQUEST_SCALARS,
        {
            "n_requests": Number(len(found), span, unit_word(found, 2).capitalize()),
            "latency_p50_ps": _percentile(found, by_name["p50"], mean),
            "latency_p99_ps": _percentile(found, by_name["p99"], f"{times}{longest}"),
        },
    )


def _percentile(found: HostInference, one: Percentile, note: str) -> Number:
    if one.row < 0:
        return Number(None, too_few(found, one))
    return Number(one.latency_ps, note)


def mean_working(values: npt.NDArray[np.int64]) -> str:
    """`sum ÷ number = mean` of times."""
    total = float(values.sum(dtype=np.float64))
    return quotient((total, len(values)), ("ps", "count"), total / len(values), "ps") if len(values) else ""
