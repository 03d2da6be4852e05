"""inference_profile on a planted server and on drawn ones."""

import math
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.inference_profile.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.units import format_time
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnPlane, build, event
from tests.payload_columns import table
from tests.synthetic_serving import Server, Serving, serving
from tests.tools.drawn_session import session_of
from tests.tools.inference_profile.request_loop import loop

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
