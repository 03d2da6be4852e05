"""Tables, numbers and sentences of requests and tokens on both sides of their limits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.record import HostInference, host_inference
from tb_tpuprof.analysis.inference.tokens import By, Generations, Tokens
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools.inference_profile.sentences import verdict_of
from tb_tpuprof.tools.inference_profile.token_rows import (
    N_ROWS,
    token_numbers,
    token_sentence,
    token_tables,
)
from tb_tpuprof.tools.inference_profile.view import TOOL, scalars
from tb_tpuprof.tools.requests import latency_sentence, mean_working, request_scalars, throughput_by_host
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.test_loads import OPS, PEAKS
from tests.builders import PS, DrawnPlane, build, event
from tests.payload_columns import cells
from tests.tools.drawn_session import session_of
from tests.tools.inference_profile.test_words import repeated, values

S = 10**12


def generations(*first: int, token_ps: float = 4.0, longest: int = 6, start: int = 10) -> Generations:
    n = len(first)
    return Generations(
        tuple(f"r{i}" for i in range(n)),
        np.full(n, start),
        np.full(n, start + 90),
        np.array(first, np.int64),
        np.arange(n) + 2,
        np.full(n, token_ps),
        np.full(n, longest),
        np.arange(n) % 3 - 1,
        np.arange(n) % 2,
    )


def tokens(by: By, first: list[int], gap: list[int], each: Generations | None = None) -> Tokens:
    times = np.array(first, np.int64), np.array(gap, np.int64)
    models = (np.full(len(one), -1) for one in times)
    return Tokens(by, *times, *models, each or generations(), ("m0", "m1"))


def test_ten_thousand_requests_are_shown() -> None:
    n = 10_000
    assert n == N_ROWS
    exact = token_tables(tokens("request", [5], [], generations(*range(n))), ("h0", "h1"))["generations"]
    assert (len(exact.columns[0].values), exact.note) == (n, "slowest first token first")
    more = token_tables(tokens("request", [5], [], generations(*range(n + 1))), ("h0", "h1"))["generations"]
    assert (len(more.columns[0].values), more.note) == (
        n,
        "the first 10,000 of 10,001; slowest first token first",
    )
    assert values(more, "first_ps")[:2] == [10_000, 9_999]
    assert values(more, "first_ps")[-1] == 1


def test_a_time_of_zero_is_known() -> None:
    table = token_tables(tokens("request", [0, 3], [0, 0], generations(0, 3, -1, longest=0)), ("a", "b"))
    shown = table["generations"]
    assert values(shown, "first_ps") == pytest.approx([3, 0, np.nan], nan_ok=True)
    assert values(shown, "longest_ps") == [0, 0, 0]
    assert values(shown, "total_ps") == [90, 90, 90]
    assert values(shown, "n_tokens") == [3, 2, 4]
    unknown = token_tables(tokens("request", [3], [], generations(3, longest=-1)), ("a", "b"))["generations"]
    assert np.isnan(values(unknown, "longest_ps")).all()
    sums = table["tokens"]
    assert values(sums, "p50_ps") == [0, 0, 4]
    assert values(sums, "mean_ps") == [1.5, 0, 4]
    assert values(sums, "max_ps") == [3, 0, 4]
    assert token_numbers(tokens("request", [0, 3], [0, 0])).keys() == {
        "first_token_p50_ps",
        "token_gap_p50_ps",
    }


def test_only_what_was_measured_has_a_row() -> None:
    assert token_tables(tokens("", [], []), ("a",)) == {}
    only_gaps = token_tables(tokens("step", [], [7, 9, 8]), ("a",))
    assert list(only_gaps) == ["tokens"]
    assert (
        only_gaps["tokens"].note
        == "by annotation, as single requests are not known: time in the queue is unknown"
    )
    assert values(only_gaps["tokens"], "n") == [3]


@pytest.mark.parametrize(
    ("n", "note"),
    [
        (1, None),
        (2, "longest 2.00 µs"),
        (9, "longest 9.00 µs"),
        (10, "p90 9.00 µs"),
        (99, "p90 90.0 µs"),
        (100, "p99 99.0 µs"),
    ],
)
def test_the_highest_known_percentile_stands_beside_the_median(n: int, note: str | None) -> None:
    """The i-th of n times is i µs."""
    times = [i * PS for i in range(1, n + 1)]
    for by, ending in (("request", ""), ("pass", " · by pass"), ("step", " · by annotation")):
        found = token_numbers(tokens(by, [], times))  # type: ignore[arg-type]
        assert {name: number.note for name, number in found.items()} == (
            {} if note is None else {"token_gap_p50_ps": note + ending}
        )
        assert [number.value for number in found.values()] == ([] if note is None else [(n + 1) // 2 * PS])


def test_a_percentile_of_zero_is_known() -> None:
    for n, note in ((10, "p90 0 s"), (100, "p99 0 s")):
        assert token_numbers(tokens("request", [0] * n, []))["first_token_p50_ps"].note == note


@pytest.mark.parametrize(
    ("by", "first", "gap", "sentence"),
    [
        ("request", [5, 5], [2, 2], "The first token takes 5.00 µs (p50), each further one 2.00 µs."),
        ("request", [0, 0], [0, 0], "The first token takes 0 s (p50), each further one 0 s."),
        (
            "pass",
            [5, 5],
            [2, 2],
            "The first token takes 5.00 µs (p50, without time in the queue), each further one 2.00 µs.",
        ),
        ("step", [5, 5], [2], "The first token takes 5.00 µs (p50, without time in the queue)."),
        ("request", [0, 0], [], "The first token takes 0 s (p50)."),
        ("request", [5], [2, 2, 2], "2.00 µs pass between tokens (p50)."),
        ("request", [], [0, 0], "0 s pass between tokens (p50)."),
        ("request", [5], [2], ""),
    ],
)
def test_sentences_of_tokens(by: By, first: list[int], gap: list[int], sentence: str) -> None:
    one = tokens(by, [time * PS for time in first], [time * PS for time in gap])
    assert token_sentence(one) == sentence


def test_a_pass_without_tokens_counts_and_one_with_unknown_ones_makes_all_unknown() -> None:
    passes = [
        event("execute_context_0(0)_generation_4(0)", 0, 10),
        event("execute_context_0(0)_generation_6(6)", 20, 30),
    ]
    for more, value in (([], 6 / 50e-6), ([event("step[TARGET_VERIFY bs=3]", 60, 5)], None)):
        trace = build([DrawnPlane("/host:CPU", {"engine": [*passes, *more]})])
        scalars = TOOL.run(session_of(trace), None, {}).scalars
        if value is None:
            assert "tokens_per_s" not in scalars
        else:
            assert scalars["tokens_per_s"].value == pytest.approx(value)


@pytest.mark.parametrize(("lengths", "badge"), [((), ""), ((5,), ""), ((5, 9), "p50 5.00 µs")])
def test_the_menu_shows_a_known_median(lengths: tuple[int, ...], badge: str) -> None:
    known = [host_inference(requests_of(*lengths))]
    session: Any = SimpleNamespace(known=lambda *_: known, hosts=("h",))
    assert TOOL.badge(session) == badge


MILLI = 10**9


def judged(**parts_ms: int) -> HostInference:
    """Twenty requests of 100 ms whose time goes to these parts."""
    n, names = 20, {"host": Part.HOST_BEFORE, "queue": Part.QUEUE, "copies": Part.TO_HOST}
    names |= {
        "device": Part.DEVICE,
        "wait": Part.WAIT,
        "after": Part.HOST_AFTER,
        "runtime": Part.HOST_RUNTIME,
    }
    found = repeated(n, latency_ps=np.full(n, 100 * MILLI))
    part_ps = np.zeros_like(found.part_ps)
    for name, time in parts_ms.items():
        part_ps[:, names[name]] = time * MILLI
    return replace(found, part_ps=part_ps, device_kind="GPU")


@pytest.mark.parametrize(
    ("parts_ms", "text", "level"),
    [
        (
            {"host": 35, "queue": 30, "device": 26, "copies": 5, "wait": 4},
            "No single part limits the requests: of the 100 ms that the slowest tenth of the requests take, "
            "host work 35.0%, the queue 30.0%, the device's work 26.0%, copies 5.00%.",
            "unknown",
        ),
        (
            {"queue": 60, "host": 40},
            "Limited by busy devices: the slowest tenth of the requests wait 60.0 ms of their 100 ms (60.0%) "
            "while devices work for others.",
            "warn",
        ),
        (
            {"host": 20, "after": 25, "runtime": 10, "device": 45},
            "Limited by the host: the slowest tenth of the requests spend 55.0 ms of their 100 ms (55.0%) in "
            "host work.",
            "warn",
        ),
        (
            {"copies": 70, "device": 30},
            "Limited by copies: the slowest tenth of the requests spend 70.0 ms of their 100 ms (70.0%) on "
            "copies between host and device.",
            "warn",
        ),
        (
            {"device": 90, "host": 10},
            "Limited by the GPU: the slowest tenth of the requests spend 90.0 ms of their 100 ms (90.0%) in "
            "the model's operations.",
            "good",
        ),
        (
            {"wait": 80, "host": 20},
            "Limited by waiting: nothing traced happens in 80.0 ms of their 100 ms (80.0%) that the slowest "
            "tenth of the requests take.",
            "warn",
        ),
    ],
)
def test_every_limit_has_its_sentence(parts_ms: dict[str, int], text: str, level: str) -> None:
    verdict = verdict_of(judged(**parts_ms), ("more",))
    assert (verdict.text, verdict.level) == (text, level)
    assert verdict.details[-1] == "more"


def test_which_host_work_takes_the_time() -> None:
    for parts_ms, text in (
        (
            {"host": 30, "after": 20, "runtime": 10, "device": 40},
            "50.0% of that host work is before the first launch.",
        ),
        (
            {"host": 10, "after": 40, "runtime": 10, "device": 40},
            "66.7% of that host work is after the device's work.",
        ),
        (
            {"host": 10, "after": 5, "runtime": 45, "device": 40},
            "75.0% of that host work is between the first launch and the end of the device's work.",
        ),
    ):
        assert text in verdict_of(judged(**parts_ms)).details
    tools = [step.tool for step in verdict_of(judged(host=60, device=40)).next]
    assert tools == ["trace_viewer", "flame_graph"]
    device = judged(device=60, host=40)
    assert [step.tool for step in verdict_of(device).next] == ["trace_viewer", "framework_op_stats"]
    tpu = verdict_of(replace(device, device_kind="TPU"))
    assert [step.tool for step in tpu.next] == ["trace_viewer", "op_profile"]
    assert (
        "Limited by the processors, which run the model"
        in verdict_of(replace(device, device_kind="CPU")).text
    )


def test_throughputs_of_hosts_are_summed_and_peaks_if_all_are_known() -> None:
    """Three hosts: 5 s with 4, 6 and 1 requests, of which 2, 3 and 1 end within a second."""
    starts = ([0.0, 1.5, 2.0, 4.0], [0.0, 2.0, 2.2, 2.4, 3.9, 4.0], [0.0])
    latency = ([0.5, 0.5, 0.5, 1.0], [0.1, 0.1, 0.1, 0.1, 0.1, 1.0], [5.0])

    def joined(hosts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        host = np.concatenate([np.full(len(starts[i]), i) for i in hosts])
        return (
            host,
            (np.concatenate([starts[i] for i in hosts]) * S).astype(np.int64),
            (np.concatenate([latency[i] for i in hosts]) * S).astype(np.int64),
        )

    flow = throughput_by_host(*joined((0, 1, 2)))
    assert flow is not None
    assert flow.per_s == pytest.approx(4 / 5 + 6 / 5 + 1 / 5)
    assert flow.peak_per_s == 2 + 3 + 1
    assert flow.mean_in_progress == pytest.approx((2.5 + 1.5 + 5) / 5)
    # At 3.9 s host 1 has one request, at 4.0 another; host 0 never two at once.
    assert flow.max_in_progress == 1 + 1 + 1
    host, start, took = joined((0, 1, 2))
    took[host == 2] = S  # too short to have a peak
    short = throughput_by_host(host, start, took)
    assert short is not None
    assert (short.peak_per_s, short.span_ps) == (-1, 5 * S)


def test_the_note_of_the_tail_needs_a_median() -> None:
    latency = np.zeros(100, np.int64)
    latency[:60] = 1
    latency[98:] = 7 * PS
    assert request_scalars(repeated(100, latency_ps=latency))["latency_p99_ps"].note.endswith("max 7.00 µs")
    assert mean_working(np.empty(0, np.int64)) == ""
    assert mean_working(np.array([2, 3, 10]) * PS) == "15.0 µs ÷ 3 = 5.00 µs"


def test_the_first_request_may_have_the_percentile() -> None:
    latency = np.arange(1, 101) * PS
    latency[0], latency[98] = 99 * PS, 1 * PS
    found = repeated(100, latency_ps=latency)
    assert latency_sentence(found) == "100 requests took 50.0 µs at the median, and 99.0 µs at p99."
    assert request_scalars(found)["latency_p99_ps"].value == 99 * PS
    latency[0], latency[49] = 50 * PS, 99 * PS
    assert request_scalars(repeated(100, latency_ps=latency))["latency_p50_ps"].value == 50 * PS
    assert request_scalars(repeated(0)) == {}


def test_the_page_says_what_limits_its_requests() -> None:
    """60% of the peak FLOP rate of the only program, in the words of requests and of a model's."""
    host = DrawnPlane("/host:CPU", {"main": [event("predict", 0, 99)]})
    lines = {"XLA Modules": [event("jit_p(1)", 10, 50)], "XLA Ops": [event("matmul", 10, 50)]}
    trace = build([host, DrawnPlane("/device:TPU:0", lines, PEAKS, OPS)])
    for params in ({}, {"model": "predict"}):
        payload = TOOL.run(session_of(trace), None, params)
        said = "While the TPU works, requests: limited by FLOP rate (80.0% of peak; HBM bandwidth 20.0%)."
        assert payload.verdict is not None
        assert said in payload.verdict.details
        (phase,) = (column for column in payload.tables["loads"].columns if column.name == "phase")
        assert cells(phase) == ["All requests"]


def test_tokens_per_second_are_those_of_requests_or_of_all_passes() -> None:
    passes = [
        event("execute_context_2(30)_generation_3(3)", 0, 10),
        event("execute_context_0(0)_generation_4(4)", 20, 10),
        event("execute_context_1(9)_generation_0(0)", 40, 10),
        event("execute_context_0(0)_generation_6(6)", 60, 40),
    ]
    payload = TOOL.run(session_of(build([DrawnPlane("/host:CPU", {"engine": passes})])), None, {})
    rate = payload.scalars["tokens_per_s"]
    assert rate.value == pytest.approx(13 / 100e-6)
    assert rate.note == "13 tokens"
    two = TOOL.run(session_of(*[build([DrawnPlane("/host:CPU", {"engine": passes})])] * 2), None, {})
    assert "tokens_per_s" not in two.scalars


def requests_of(*lengths: int) -> Trace:
    """Requests one after another, or none."""
    host, at = [event("other", 0, 1)], 2
    for length in lengths:
        host.append(event("predict", at, length))
        at += length
    return build([DrawnPlane("/host:CPU", {"main": host})])


@pytest.mark.parametrize(("place", "is_available"), [(0, True), (2, True), (3, True), (4, False)])
def test_one_of_the_first_hosts_suffices(place: int, is_available: bool) -> None:
    """Of five hosts only one marks requests; the page itself reads all."""
    session = session_of(*(requests_of(5, 9) if i == place else requests_of() for i in range(5)))
    assert bool(TOOL.availability(session)) is is_available
    assert TOOL.run(session, None, {}).scalars["n_requests"].value == 2


def test_requests_without_a_length_have_no_shares() -> None:
    none = np.zeros(2, np.int64)
    found = repeated(2)
    found = replace(found, latency_ps=none, part_ps=np.zeros_like(found.part_ps), span_ps=0, busy_ps=0)
    shown = scalars(found, tokens("", [], []))
    for name in ("device_busy_fraction", "host_fraction", "wait_fraction", "queue_fraction"):
        assert shown[name].value is None, name
    busy = scalars(replace(found, span_ps=10, busy_ps=4), tokens("", [], []))["device_busy_fraction"]
    assert busy.value == 0.4


def test_words_and_numbers_of_one_and_of_several_hosts() -> None:
    one = TOOL.run(session_of(requests_of(5, 9, 40)), None, {}).scalars
    assert one["requests_per_s"].working == "3 ÷ 54.0 µs = 55,556 per second"
    assert one["requests_per_s"].note == "requests per second"
    assert (one["latency_max_ps"].value, one["latency_max_ps"].note) == (40 * PS, "request 3")
    assert one["latency_mean_ps"].value == 18 * PS
    assert one["mean_in_progress"].note == "at most 1"
    two = TOOL.run(session_of(requests_of(5, 9, 40), requests_of(7)), None, {}).scalars
    assert two["requests_per_s"].working == ""
    assert two["requests_per_s"].value == pytest.approx(3 / 54e-6 + 1 / 7e-6)
    long = build([DrawnPlane("/host:CPU", {"main": [event("predict", i * 500_000, 9) for i in range(8)]})])
    peak = TOOL.run(session_of(long), None, {}).scalars["requests_per_s"].note
    assert peak == "peak 2 per second"
