"""What inference_profile says of requests, at both sides of each limit."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.tools.inference_profile.view import TOOL
from tests.analysis.inference.serving import batch, request, server
from tests.builders import DrawnEvent, DrawnPlane, build, event
from tests.payload_columns import table
from tests.tools.drawn_session import session_of
from tests.tools.inference_profile.request_loop import WAIT, loop


@pytest.mark.parametrize(
    ("calls", "level", "text"),
    [
        (
            {},
            "warn",
            (
                "Limited by the host: the slowest tenth of the requests spend 100 µs of their 100 µs "
                "(100%) in host work."
            ),
        ),
        (
            {"k": (10, 80), **WAIT},
            "good",
            (
                "Limited by the GPU: the slowest tenth of the requests spend 80.0 µs of their 100 µs "
                "(80.0%) in the model's operations."
            ),
        ),
        (
            {"k": (90, 2), "MemcpyHToD": (10, 60), **WAIT},
            "warn",
            (
                "Limited by copies: the slowest tenth of the requests spend 60.0 µs of their 100 µs "
                "(60.0%) on copies between host and device."
            ),
        ),
        (
            {"k": (90, 2), **WAIT},
            "warn",
            (
                "Limited by waiting: nothing traced happens in 95.0 µs of their 100 µs (95.0%) that the "
                "slowest tenth of the requests take."
            ),
        ),
        (
            {"k": (62, 36), "encode": (1, 30), "cudaStreamSynchronize": (31, 67)},
            "unknown",
            (
                "No single part limits the requests: of the 100 µs that the slowest tenth of the "
                "requests take, the device's work 36.0%, host work 33.0%, waiting 31.0%."
            ),
        ),
    ],
)
def test_verdicts(calls: Mapping[str, tuple[int, int]], level: str, text: str) -> None:
    verdict = TOOL.run(session_of(loop(20, 100, calls)), None, {}).verdict
    assert verdict is not None
    assert (verdict.level, verdict.text) == (level, text)


def test_busy_devices_limit_requests_without_batches() -> None:
    """Twenty threads at once; one kernel after the other."""
    lines, stream = {}, []
    for i in range(20):
        lines[f"t{i}"] = [
            event("predict", 0, 30 + 10 * i, _r=1, step_num=i),
            event("cudaLaunchKernel", 1, 1, correlation_id=i + 1),
            event("cudaStreamSynchronize", 2, 28 + 10 * i),
        ]
        stream.append(event("k", 15 + 10 * i, 10, correlation_id=i + 1))
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:GPU:0", {"s": stream})])
    verdict = TOOL.run(session_of(trace), None, {}).verdict
    assert verdict is not None
    # The slowest wait for the 19 kernels before theirs; the second slowest for 18, and at its end for one
    # more.
    assert verdict.text == (
        "Limited by busy devices: the slowest tenth of the requests wait 188 µs of their 215 µs "
        "(87.2%) while "
        "devices work for others."
    )
    # The kernels run from 15 to 215 µs, the requests from 0 to 220 µs.
    assert verdict.details[0] == (
        "The GPU works in 90.9% of the 220 µs from the first request to the last. It has little room left, "
        "so requests queue for it: make batches cheaper, or serve on more devices."
    )


def test_a_busy_device_is_no_reason_to_queue_where_no_request_queues() -> None:
    """Kernels nearly back to back, each running on after its request."""
    verdict = TOOL.run(session_of(loop(20, 100, {"k": (10, 185), **WAIT})), None, {}).verdict
    assert verdict is not None
    assert verdict.text.startswith("Limited by the GPU")
    assert verdict.details[0].endswith("from the first request to the last.")


def test_too_few_requests_to_judge() -> None:
    nineteen, twenty = (TOOL.run(session_of(loop(n, 100)), None, {}).verdict for n in (19, 20))
    assert nineteen is not None
    assert twenty is not None
    assert nineteen.level == "unknown"
    assert nineteen.text == (
        "Too few requests to say what limits them: the trace has 19; at least 20 are needed. "
        "They took 100 µs on "
        "average: 100% host work."
    )
    assert twenty.text.startswith("Limited by the host")


@pytest.mark.parametrize(
    ("n", "known"),
    [
        (1, []),
        (2, ["p50"]),
        (9, ["p50", "p75"]),
        (10, ["p50", "p75", "p90"]),
        (99, 4),
        (100, 5),
        (999, 5),
        (1000, 6),
    ],
)
def test_percentiles_need_enough_requests(n: int, known: list[str] | int) -> None:
    payload = TOOL.run(session_of(loop(n, 7)), None, {})
    names = [name for name in table(payload, "percentiles")["percentile"] if str(name).startswith("p")]
    assert names == known if isinstance(known, list) else len(names) == known
    if n == 99:
        assert payload.scalars["latency_p99_ps"].value is None
        assert payload.scalars["latency_p99_ps"].note == "there are 99 requests, and p99 needs at least 100"
    if n == 1:
        assert payload.scalars["latency_p50_ps"].note == "there is 1 request, and p50 needs at least 2"


@pytest.mark.parametrize(("n", "has_row"), [(19, False), (20, True)])
def test_the_slowest_tenth_takes_twenty_requests(n: int, has_row: bool) -> None:
    payload = TOOL.run(session_of(loop(n, 7)), None, {})
    assert ("Slowest 10%" in table(payload, "percentiles")["percentile"]) is has_row


@pytest.mark.parametrize(("busy", "says"), [(80, True), (179, True), (181, False)])
def test_idle_devices_have_room_for_more_requests(busy: int, says: bool) -> None:
    """Each request of 100 µs begins 200 µs after the one before; its kernel runs on after it."""
    verdict = TOOL.run(session_of(loop(20, 100, {"k": (10, busy), **WAIT})), None, {}).verdict
    assert verdict is not None
    assert ("There is room for more requests" in verdict.details[0]) is says


def test_passes_of_an_idle_engine_say_nothing_of_more_requests() -> None:
    """An engine works on its passes one after the other: what it could serve is unknown."""
    names = [f"execute_context_0(0)_generation_{1 + i % 3}({1 + i % 3})" for i in range(20)]
    host = [event(name, 200 * i, 100) for i, name in enumerate(names)]
    modules = [event("jit_d(2)", 200 * i + 10, 80) for i in range(20)]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})]
    )
    payload = TOOL.run(session_of(trace), None, {})
    assert payload.verdict is not None
    assert payload.verdict.details[0].startswith("The TPU works in 41.0% of the 3.90 ms from the first pass")
    assert "room" not in payload.verdict.details[0]
    titles = {column.name: column.title for column in payload.tables["requests"].columns}
    assert titles["request"] == "Pass"
    sizes = {column.name: column.title for column in payload.tables["sizes"].columns}
    assert (sizes["n"], sizes["examples"]) == ("Passes", "Sequences")


@pytest.mark.parametrize(("slow", "says"), [(199, False), (200, True)])
def test_a_long_tail_is_said(slow: int, says: bool) -> None:
    host = [event("predict", 1000 * i, slow if i > 97 else 100) for i in range(100)]
    verdict = TOOL.run(session_of(build([DrawnPlane("/host:CPU", {"main": host})])), None, {}).verdict
    assert verdict is not None
    assert any(text.startswith("p99 is 2.00 times p50: 200 ") for text in verdict.details) is says


@pytest.mark.parametrize(("nobodys", "says"), [(4, False), (6, True)])
def test_a_little_work_of_nobody_is_not_said(nobodys: int, says: bool) -> None:
    host = [event("predict", 0, 100), event("predict", 200, 100)]
    modules = [event("jit_f(1)", 0, 100 - nobodys), event("jit_g(1)", 150, nobodys)]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})]
    )
    assert bool(TOOL.run(session_of(trace), None, {}).diagnostics) is says


@pytest.mark.parametrize(("padded", "says"), [(11, False), (12, True)])
def test_little_padding_is_not_said(padded: int, says: bool) -> None:
    """Batches of 10: 1 of 11 slots is 9%, 2 of 12 are 17%."""
    lines: dict[str, list[DrawnEvent]] = {"batches": [], "caller": []}
    for i in range(20):
        lines["batches"] += batch(100 * i + 20, 30, i + 1, padded - 10, padded)
        lines["caller"] += request(100 * i, 60, i + 1, 10)
    verdict = TOOL.run(session_of(build([DrawnPlane("/host:CPU", lines)])), None, {}).verdict
    assert verdict is not None
    assert any("slots are padding" in text for text in verdict.details) is says


def test_work_that_belongs_to_nobody_is_said() -> None:
    lines = {f"t{i}": [event("predict", 10 * i, 60)] for i in range(3)}
    modules = {"XLA Modules": [event("jit_f(1)", 5, 20), event("jit_f(1)", 40, 20)]}
    trace = build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:TPU:0", modules)])
    (notice,) = TOOL.run(session_of(trace), None, {}).diagnostics
    assert notice.message.startswith("100% of the device's work belongs to no request that the trace shows")


def test_a_run_without_requests_says_what_to_do(tmp_path: Path) -> None:
    session = session_of(build([DrawnPlane("/host:CPU", {"main": [event("train", 0, 10)]})]))
    availability = TOOL.availability(session)
    assert availability.reason == "No event in the trace marks a request or a forward pass."
    assert "StepTraceAnnotation" in availability.remedy
    assert "record_function" in availability.remedy
    with pytest.raises(ToolUnavailable, match="marks a request"):
        TOOL.run(session, None, {})
    assert TOOL.availability(session_of(server()))
