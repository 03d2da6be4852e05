import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.inference_profile.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time
from tests.analysis.inference.serving import batch, request, server
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.synthetic_serving import Server, Serving, serving
from tests.tools.drawn_session import session_of
from tests.tools.test_kernel_stats import table

SIDES = ("host_ps", "queue_ps", "transfer_ps", "device_ps", "wait_ps")
COLUMN_OF = {"queue": "queue_ps", "device": "device_ps", "wait": "wait_ps"}


@pytest.fixture(scope="module")
def planted() -> Serving:
    return serving()


@pytest.fixture(scope="module")
def served(planted: Serving, tmp_path_factory: pytest.TempPathFactory) -> Payload:
    folder = tmp_path_factory.mktemp("serving")
    (folder / "synthetic-server.xplane.pb").write_bytes(planted.data)
    return TOOL.run(Session(str(folder), cache=False), None, {})


def test_every_request_has_its_planted_parts(planted: Serving, served: Payload) -> None:
    rows = table(served, "requests")
    assert sorted(rows["request"]) == list(range(1, len(planted.requests) + 1))  # type: ignore[type-var]
    start = sorted(request.start * PS for request in planted.requests)
    assert sorted(rows["start_ps"]) == start  # type: ignore[type-var]
    by_number = {
        (request.start * PS, (request.end - request.start) * PS): request for request in planted.requests
    }
    names = ("host_before", "host_runtime", "host_after", "to_device", "to_host", *COLUMN_OF)
    for i in range(len(planted.requests)):
        request = by_number[rows["start_ps"][i], rows["latency_ps"][i]]  # type: ignore[index]
        found = {name: rows[COLUMN_OF.get(name, f"{name}_ps")][i] for name in names}
        assert found == {name: request.parts.get(name, 0) * PS for name in names}
        assert sum(rows[side][i] for side in SIDES) == rows["latency_ps"][i]  # type: ignore[misc]
        assert (rows["model"][i], rows["size"][i]) == (request.model, 1)
        assert rows["batch"][i] == request.batch + 1


def test_requests_are_sorted_slowest_first(served: Payload) -> None:
    latency = table(served, "requests")["latency_ps"]
    assert latency == sorted(latency, reverse=True)  # type: ignore[type-var]


def test_percentiles_are_those_of_the_planted_latencies(planted: Serving, served: Payload) -> None:
    latency = sorted((request.end - request.start) * PS for request in planted.requests)
    n = len(latency)
    rows = table(served, "percentiles")
    at = dict(zip(rows["percentile"], rows["latency_ps"], strict=True))
    for name in ("p50", "p75", "p90", "p95", "p99", "p99.9"):
        share = float(name[1:]) / 100
        assert at[name] == latency[math.ceil(share * n) - 1]
    assert list(at) == ["Average", "p50", "p75", "p90", "p95", "p99", "p99.9", "Slowest 10%"]
    assert at["Average"] == pytest.approx(sum(latency) / n)
    assert at["Slowest 10%"] == pytest.approx(sum(latency[-(n // 10) :]) / (n // 10))
    for i in range(len(at)):
        total = sum(rows[side][i] for side in SIDES)  # type: ignore[misc]
        assert total == pytest.approx(rows["latency_ps"][i])
    assert served.tables["percentiles"].note == "there are 1,200 requests, and p99.99 needs at least 10,000"
    assert served.scalars["latency_p50_ps"].value == at["p50"]
    assert served.scalars["latency_p99_ps"].value == at["p99"]
    assert served.scalars["latency_max_ps"].value == latency[-1]


def test_throughput_and_padding_are_planted(planted: Serving, served: Payload) -> None:
    first = min(request.start for request in planted.requests)
    last = max(request.end for request in planted.requests)
    assert served.scalars["requests_per_s"].value == pytest.approx(1200 / ((last - first) / 1e6))
    total = sum(request.end - request.start for request in planted.requests)
    assert served.scalars["mean_in_progress"].value == pytest.approx(total / (last - first))
    device = sum(batch.device for batch in planted.batches)
    assert served.scalars["device_busy_fraction"].value == pytest.approx(device / (last - first))
    slots = sum(batch.padded for batch in planted.batches)
    padding = slots - sum(batch.size for batch in planted.batches)
    assert served.scalars["padding_fraction"].value == pytest.approx(padding / slots)
    assert served.scalars["padding_fraction"].note == f"{padding:,} of {slots:,} batch slots"
    shares = [served.scalars[f"{side[:-3]}_fraction"].value for side in SIDES]
    assert sum(shares) == pytest.approx(1)  # type: ignore[arg-type]
    of_queue = sum(request.parts["queue"] for request in planted.requests) / total
    assert served.scalars["queue_fraction"].value == pytest.approx(of_queue)


def test_batches_are_planted(planted: Serving, served: Payload) -> None:
    rows = table(served, "batches")
    found = sorted(
        zip(
            *(rows[name] for name in ("start_ps", "duration_ps", "delay_ps", "n_requests", "size")),
            *(rows[name] for name in ("padding", "padded_size", "efficiency", "device_ps", "model")),
            strict=True,
        )
    )
    expected = [
        (
            batch.start * PS,
            (batch.end - batch.start) * PS,
            batch.delay * PS,
            batch.size,
            batch.size,
            batch.padded - batch.size,
            batch.padded,
            batch.size / batch.padded,
            batch.device * PS,
            batch.model,
        )
        for batch in planted.batches
    ]
    assert found == expected
    assert set(rows["pattern"]) == {"jit_chat-7b(1)", "jit_embed(1)"}
    of_requests = table(served, "requests")
    assert all(
        pattern == f"jit_{str(model).partition(':')[0]}(1)"
        for pattern, model in zip(of_requests["pattern"], of_requests["model"], strict=True)
    )
    span = max(batch.end for batch in planted.batches) - min(batch.start for batch in planted.batches)
    assert served.scalars["batches_per_s"].value == pytest.approx(len(planted.batches) / (span / 1e6))
    longest = sorted(batch.end - batch.start for batch in planted.batches)
    marks = table(served, "batch_percentiles")
    at = dict(zip(marks["percentile"], marks["duration_ps"], strict=True))
    assert at["p90"] == longest[math.ceil(0.9 * len(longest)) - 1] * PS
    assert at["Average"] == pytest.approx(sum(longest) * PS / len(longest))


def test_sizes_add_up_the_batches(planted: Serving, served: Payload) -> None:
    rows = table(served, "sizes")
    for i, size in enumerate(rows["size"]):
        batches = [batch for batch in planted.batches if batch.size == size]
        assert rows["n"][i] == len(batches)
        assert rows["examples"][i] == len(batches) * size  # type: ignore[operator]
        assert rows["padding"][i] == sum(batch.padded - batch.size for batch in batches)
        mean = sum(batch.end - batch.start for batch in batches) / len(batches)
        assert rows["mean_ps"][i] == pytest.approx(mean * PS)
    assert len(rows["size"]) == len({batch.size for batch in planted.batches})


def test_the_histogram_counts_every_request_once(planted: Serving, served: Payload) -> None:
    rows = table(served, "histogram")
    latency = [(request.end - request.start) * PS for request in planted.requests]
    for low, high, n in zip(rows["low_ps"], rows["high_ps"], rows["n_requests"], strict=True):
        assert n == sum(low <= time < high for time in latency)  # type: ignore[operator]
    assert rows["low_ps"][1:] == rows["high_ps"][:-1]
    assert sum(rows["n_requests"]) == 1200  # type: ignore[arg-type]


def test_the_verdict_names_the_queue_and_a_better_size(planted: Serving, served: Payload) -> None:
    assert served.verdict is not None
    slowest = sorted(planted.requests, key=lambda request: request.start - request.end)[:120]
    wait = sum(request.parts["queue"] for request in slowest) / 120
    whole = sum(request.end - request.start for request in slowest) / 120
    assert served.verdict.level == "warn"
    assert served.verdict.category == "input"
    assert served.verdict.text == (
        f"Limited by batching: the slowest tenth of the requests wait {wait / 1e3:.1f} ms of their "
        f"{whole / 1e3:.1f} ms ({wait / whole:.1%}) in the queue."
    )
    rows = table(served, "percentiles")
    assert rows["percentile"][-1] == "Slowest 10%"
    assert rows["queue_ps"][-1] == pytest.approx(wait * PS)
    sentence = next(text for text in served.verdict.details if "padding" in text)
    assert sentence.endswith(better_size(planted))
    link = served.verdict.next[0]
    assert (int(link.params["end_ps"]) - int(link.params["start_ps"])) == max(
        request.end - request.start for request in planted.requests
    ) * PS


def better_size(planted: Serving) -> str:
    """The sentence about the further size that leaves the fewest slots, by trying all of them."""

    def slots(sizes: tuple[int, ...]) -> int:
        return sum(min(size for size in sizes if size >= batch.size) for batch in planted.batches)

    allowed = Server().allowed_sizes
    best = min(range(1, 9), key=lambda size: slots((*allowed, size)))
    n = sum(batch.size for batch in planted.batches)
    left = slots((*allowed, best))
    return f"Allowing batches of {best} as well would cut padding to {(left - n) / left:.1%}."


def test_one_model_and_all_of_them(planted: Serving, tmp_path: Path) -> None:
    (tmp_path / "s.xplane.pb").write_bytes(planted.data)
    session = Session(str(tmp_path), cache=False)
    chosen = TOOL.run(session, None, {"model": "embed:1"})
    expected = [request for request in planted.requests if request.model == "embed:1"]
    assert chosen.scalars["n_requests"].value == len(expected)
    assert set(table(chosen, "requests")["model"]) == {"embed:1"}
    assert len(table(chosen, "batches")["batch"]) == sum(
        batch.model == "embed:1" for batch in planted.batches
    )
    models = table(chosen, "models")
    assert models["model"] == ["chat-7b:3", "embed:1"]
    assert models["n_requests"] == [1200 - len(expected), len(expected)]
    latency = sorted((request.end - request.start) * PS for request in expected)
    assert models["p50_ps"][1] == latency[math.ceil(len(latency) / 2) - 1]
    assert models["max_ps"][1] == latency[-1]
    with pytest.raises(BadParameter) as raised:
        TOOL.run(session, None, {"model": "dog"})
    assert "chat-7b:3, embed:1" in raised.value.remedy


def test_a_drawn_server() -> None:
    payload = TOOL.run(session_of(server()), None, {})
    rows = table(payload, "requests")
    assert rows["request"] == [3, 1, 2]
    assert rows["batch"] == [2, 1, 1]
    assert rows["n_in_batch"] == [1, 2, 2]
    assert rows["model"] == ["dog:2", "cat:1", "cat:1"]
    assert rows["size"] == [4, 2, 3]
    batches = table(payload, "batches")
    assert (batches["size"], batches["padding"], batches["delay_ps"]) == ([4, 5], [0, 3], [35 * PS, 25 * PS])
    assert batches["model"] == ["dog:2", "cat:1"]


def test_hosts_are_added_up() -> None:
    payload = TOOL.run(session_of(server(), loop(4, 10), server()), None, {})
    assert payload.scalars["n_requests"].value == 10
    rows = table(payload, "requests")
    assert sorted(zip(rows["host"], rows["model"], strict=True)) == sorted(  # type: ignore[type-var]
        [
            *[(host, model) for host in ("worker-0", "worker-2") for model in ("cat:1", "cat:1", "dog:2")],
            *[("worker-1", "predict")] * 4,
        ]
    )
    assert rows["batch"].count(None) == 0
    assert sum(np.isnan(np.array(rows["batch"], float))) == 4
    assert len(table(payload, "batches")["batch"]) == 4
    alone = [
        float(TOOL.run(session_of(one), None, {}).scalars["requests_per_s"].value or 0)
        for one in (server(), loop(4, 10))
    ]
    assert payload.scalars["requests_per_s"].value == pytest.approx(2 * alone[0] + alone[1])
    # The sum of several rates is no quotient of two numbers.
    assert not payload.scalars["requests_per_s"].working


def loop(
    n: int, length: int, calls: Mapping[str, tuple[int, int]] | None = None, name: str = "predict"
) -> Trace:
    """Requests one after another, each with kernels and calls of unlike kinds at given times (start,
    length).
    """
    host, stream = [], []
    for i in range(n):
        start = 2 * length * i
        host.append(event(name, start, length, _r=1, step_num=i))
        for what, (begin, time) in (calls or {}).items():
            if what.startswith("k"):
                host.append(event("cudaLaunchKernel", start, 1, correlation_id=i + 1))
                stream.append(event(what, start + begin, time, correlation_id=i + 1))
            elif what.startswith("Memcpy"):
                stream.append(event(what, start + begin, time, correlation_id=i + 1))
            else:
                host.append(event(what, start + begin, time))
    host.sort(key=lambda one: (one.start_ps, -one.duration_ps))
    planes = [DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", {"stream": stream})]
    return build([plane for plane in planes if any(plane.lines.values())])


WAIT = {"cudaStreamSynchronize": (1, 97)}


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


def test_rates_of_tokens_are_of_one_host() -> None:
    one = build([DrawnPlane("/host:CPU", {"main": [event("step[DECODE bs=3]", 0, 50)]})])
    assert TOOL.run(session_of(one), None, {}).scalars["tokens_per_s"].value == pytest.approx(60_000)
    assert "tokens_per_s" not in TOOL.run(session_of(one, one), None, {}).scalars


def test_passes_by_phase() -> None:
    names = [
        "execute_context_2(300)_generation_0(0)",
        "execute_context_0(0)_generation_4(4)",
        "execute_context_0(0)_generation_6(6)",
        "execute_context_1(50)_generation_3(3)",
    ]
    host, stream = [], []
    for i, name in enumerate(names):
        host += [event(name, 100 * i, 50), event("cudaLaunchKernel", 100 * i + 5, 2, correlation_id=i + 1)]
        stream.append(event("k", 100 * i + 10, 10 * (i + 1), correlation_id=i + 1))
    trace = build([DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", {"s": stream})])
    payload = TOOL.run(session_of(trace), None, {})
    rows = table(payload, "phases")
    assert rows["phase"] == ["Prefill", "Decode", "Mixed"]
    assert rows["n_passes"] == [1, 2, 1]
    assert rows["device_ps"] == [10 * PS, 50 * PS, 40 * PS]
    assert rows["fraction"] == [0.1, 0.5, 0.4]
    assert rows["mean_device_ps"] == [10 * PS, 25 * PS, 40 * PS]
    assert rows["mean_sequences"] == [2, 5, 4]
    assert rows["tokens"] == [300, 10, 53]
    assert rows["device_per_token_ps"] == pytest.approx([10 * PS / 300, 5 * PS, 40 * PS / 53])
    assert payload.verdict is not None
    assert "Decode passes take 50.0% of the device's time, 25.0 µs each." in payload.verdict.details
    assert payload.scalars["n_requests"].title == "Passes"
    # 13 new tokens in 350 µs: the last pass begins at 300 µs.
    assert payload.scalars["tokens_per_s"].value == pytest.approx(13 / 350e-6)
    assert payload.tables["percentiles"].title == "Where a pass’s time goes"
    rows = table(payload, "requests")
    assert rows["size"] == [2, 4, 6, 4]
    assert rows["prefill_tokens"] == [300, 0, 0, 50]
    assert rows["phase"] == ["Prefill", "Decode", "Decode", "Mixed"]


def test_tokens_that_are_not_stated_are_unknown() -> None:
    names = ["execute_new_1_cached_0", "execute_new_0_cached_2"]
    host = [event(name, 100 * i, 50) for i, name in enumerate(names)]
    payload = TOOL.run(session_of(build([DrawnPlane("/host:CPU", {"main": host})])), None, {})
    assert "tokens_per_s" not in payload.scalars
    assert np.isnan(np.array(table(payload, "phases")["tokens"], float)).all()
    assert "prefill_tokens" not in table(payload, "requests")


def test_batches_without_requests_are_shown_as_such() -> None:
    trace = build(
        [DrawnPlane("/host:CPU", {"b": [event("ProcessBatch", 0, 10), event("ProcessBatch", 20, 30)]})]
    )
    payload = TOOL.run(session_of(trace), None, {})
    assert payload.scalars["n_requests"].title == "Batches"
    assert payload.diagnostics[-1].message == (
        "The trace has 2 batches of a model server, but not the requests in them, so the "
        "time in queues is unknown."
    )


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


def test_the_overview_has_the_same_numbers(planted: Serving, tmp_path: Path) -> None:
    (tmp_path / "s.xplane.pb").write_bytes(planted.data)
    session = Session(str(tmp_path), cache=False)
    overview, own = get_tool("overview_page").run(session, None, {}), TOOL.run(session, None, {})
    for name in ("n_requests", "latency_p50_ps", "latency_p99_ps"):
        assert overview.scalars[name] == own.scalars[name]
    assert {"latency_p50_ps", "latency_p99_ps"} <= set(overview.tiles)
    assert overview.verdict is not None
    assert any(step.tool == TOOL.name for step in overview.verdict.next)
    assert TOOL.badge(session) == f"p50 {format_time(float(own.scalars['latency_p50_ps'].value or 0))}"


def test_other_jobs_have_no_requests_on_the_overview() -> None:
    session = session_of(build([DrawnPlane("/host:CPU", {"main": [event("train", 0, 10)]})]))
    assert "n_requests" not in get_tool("overview_page").run(session, None, {}).scalars
