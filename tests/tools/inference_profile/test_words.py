"""Words and limits of the page of requests, on drawn servers and on rows made from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.record import HostInference, host_inference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.inference_profile.rows import (
    batch_tables,
    group_table,
    percentiles_table,
    phases_table,
    requests_table,
    sizes_table,
)
from tb_tpuprof.tools.inference_profile.tables import MODELS
from tb_tpuprof.tools.inference_profile.view import TOOL
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.requests import counted_requests, request_scalars, throughput_of
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import server
from tests.builders import PS, DrawnPlane, build, event
from tests.payload_columns import cells
from tests.tools.drawn_session import session_of
from tests.tools.inference_profile.request_loop import loop


def repeated(n: int, **columns: Any) -> HostInference:
    """The same request of 7 µs `n` times, with other values in some columns."""
    return replace(host_inference(loop(1, 7)).take(np.zeros(n, np.int64)), **columns)


def values(found: Table, name: str) -> list[float]:
    return [float(value) for column in found.columns if column.name == name for value in column.values]


def test_with_ten_thousand_requests_all_percentiles_are_known() -> None:
    assert percentiles_table(repeated(9_999)).note == (
        "there are 9,999 requests, and p99.99 needs at least 10,000"
    )
    assert percentiles_table(repeated(10_000)).note == ""
    assert percentiles_table(repeated(0)).note == ""


@pytest.mark.parametrize(
    ("prefill", "decode", "has_tokens"),
    [
        ([-1, -1], [-1, -1], False),
        ([0, -1], [-1, -1], True),
        ([-1, -1], [0, -1], True),
        ([5, 5], [-1, -1], True),
    ],
)
def test_tokens_are_shown_if_one_pass_states_them(
    prefill: list[int], decode: list[int], has_tokens: bool
) -> None:
    found = repeated(2, prefill_tokens=np.array(prefill), decode_tokens=np.array(decode))
    names = {column.name for column in requests_table(found).columns}
    assert ({"prefill_tokens", "decode_tokens"} <= names) is has_tokens


def test_one_pass_without_its_tokens_makes_the_sum_unknown() -> None:
    phase = np.full(2, Phase.PREFILL, np.uint8)
    zero = np.zeros(2, np.int64)
    known = repeated(2, phase=phase, prefill_tokens=np.array([5, 6]), decode_tokens=zero)
    assert values(phases_table(known)["phases"], "tokens") == [11]
    partly = replace(known, prefill_tokens=np.array([5, -1]))
    assert np.isnan(values(phases_table(partly)["phases"], "tokens")).all()


def test_a_batch_may_be_all_padding() -> None:
    found = host_inference(server())
    batches = replace(found.batches, size=np.array([0, -1]), padded_size=np.array([8, 4]))
    shown = batch_tables(replace(found, batches=batches))["batches"]
    by_number = dict(zip(values(shown, "batch"), values(shown, "efficiency"), strict=True))
    assert by_number[1] == 0
    assert np.isnan(by_number[2])


def test_the_average_efficiency_is_of_all_slots() -> None:
    """As the page's padding: 2 + 3 + 9 of 8 + 4 + 16 slots, not the mean of 1/4, 3/4 and 9/16."""
    found = host_inference(server())
    batches = found.batches.take(np.array([0, 1, 1]))
    batches = replace(batches, size=np.array([2, 3, 9]), padded_size=np.array([8, 4, 16]))
    shown = replace(found, batches=batches)
    average = values(batch_tables(shown)["batch_percentiles"], "efficiency")[0]
    assert average == pytest.approx(14 / 28)


def test_small_parts_of_mixed_requests_are_not_named() -> None:
    calls = {"k": (62, 33), "MemcpyHToD": (58, 4), "encode": (1, 30), "cudaStreamSynchronize": (31, 67)}
    verdict = TOOL.run(session_of(loop(20, 100, calls)), None, {}).verdict
    assert verdict is not None
    assert verdict.level == "unknown"
    assert verdict.text.endswith("take, host work 33.0%, the device's work 33.0%, waiting 30.0%.")


def passes(names: list[str]) -> Trace:
    host, stream = [], []
    for i, name in enumerate(names):
        host += [event(name, 100 * i, 50), event("cudaLaunchKernel", 100 * i + 5, 2, correlation_id=i + 1)]
        stream.append(event("k", 100 * i + 10, 10 * (i + 1), correlation_id=i + 1))
    return build([DrawnPlane("/host:CPU", {"main": host}), DrawnPlane("/device:GPU:0", {"s": stream})])


PREFILL, DECODE = "execute_context_2(300)_generation_0(0)", "execute_context_0(0)_generation_4(4)"


def test_the_phase_with_most_time_is_named_where_there_are_several() -> None:
    several = TOOL.run(session_of(passes([PREFILL, DECODE, DECODE, DECODE])), None, {}).verdict
    assert several is not None
    assert "Decode passes take 90.0% of the device's time, 30.0 µs each." in several.details
    one = TOOL.run(session_of(passes([DECODE, DECODE])), None, {}).verdict
    assert one is not None
    assert not any("passes take" in text for text in one.details)


def test_words_of_the_numbers() -> None:
    payload = TOOL.run(session_of(server()), None, {})
    busy = payload.scalars["device_busy_fraction"]
    assert (busy.title, busy.note) == ("GPU busy", "of the 140 µs with requests")
    assert payload.scalars["requests_per_s"].working == "3 ÷ 140 µs = 21,429 per second"
    assert payload.scalars["n_requests"].note == "in 140 µs and 2 batches"
    host_only = TOOL.run(session_of(loop(2, 10)), None, {})
    assert host_only.scalars["n_requests"].note == "in 30.0 µs"
    assert host_only.scalars["device_busy_fraction"].title == "Compute busy"
    assert TOOL.badge(session_of(server())) == ""  # nothing is known yet


def test_one_of_a_kind_is_singular() -> None:
    found = host_inference(server())
    assert [counted_requests(found, n) for n in (0, 1, 1200)] == ["0 requests", "1 request", "1,200 requests"]
    one = TOOL.run(
        session_of(build([DrawnPlane("/host:CPU", {"b": [event("ProcessBatch", 0, 9)]})])), None, {}
    )
    assert one.diagnostics[-1].message.startswith("The trace has 1 batch of a model server")


def test_devices_are_busy_for_all_models_and_on_all_hosts() -> None:
    """The server's span is 140 µs, that of the loop 70 µs."""
    one = TOOL.run(session_of(server()), None, {"model": "cat:1"})
    assert one.scalars["device_busy_fraction"].note == "of the 140 µs with requests of any model"
    assert one.verdict is not None
    assert "of the 140 µs from the first request to the last of any model." in one.verdict.details[0]
    many = TOOL.run(session_of(server(), loop(4, 10), server()), None, {})
    assert many.scalars["device_busy_fraction"].note == "of the 350 µs with requests, summed over 3 hosts"


def test_hosts_are_summed_and_the_longest_span_counts() -> None:
    payload = TOOL.run(session_of(loop(4, 10), loop(2, 10)), None, {})
    assert payload.scalars["n_requests"].note == "in 70.0 µs on the longest host"
    assert payload.scalars["mean_in_progress"].value == pytest.approx(40 / 70 + 20 / 30)
    assert payload.scalars["mean_in_progress"].note == "at most 2"
    assert throughput_of(repeated(0)) is None


def test_the_tail_is_compared_with_the_median() -> None:
    latency = np.full(100, 2 * PS)
    latency[98:] = 9 * PS
    scalars = request_scalars(repeated(100, latency_ps=latency))
    assert scalars["latency_p50_ps"].note == "average 2.14 µs"
    note = scalars["latency_p99_ps"].note
    assert note == "4.50 times p50 · max 9.00 µs"
    shortest = request_scalars(repeated(100, latency_ps=np.ones(100, np.int64)))["latency_p99_ps"].note
    assert shortest.startswith("1.00 times p50")
    none = request_scalars(repeated(100, latency_ps=np.zeros(100, np.int64)))["latency_p99_ps"].note
    assert none.startswith("max")


@pytest.mark.parametrize(("n", "ending"), [(20, "m19"), (21, "m19 and 1 more"), (25, "m19 and 5 more")])
def test_an_unknown_model_names_twenty_others(n: int, ending: str) -> None:
    host = [event("BatchingSessionRun", 20 * i, 10, model_id=f"m{i:02}") for i in range(n)]
    session = session_of(build([DrawnPlane("/host:CPU", {"main": host})]))
    with pytest.raises(BadParameter) as raised:
        TOOL.run(session, None, {"model": "other"})
    assert raised.value.remedy.rstrip(".").endswith(ending)


def test_a_request_outside_of_the_phases_has_none() -> None:
    found = repeated(3, phase=np.array([Phase.DECODE, Phase.NONE, Phase.PREFILL], np.uint8))
    (phase,) = [column for column in requests_table(found).columns if column.name == "phase"]
    assert cells(phase) == [Phase.DECODE.label, None, Phase.PREFILL.label]
    assert "phase" not in {column.name for column in requests_table(repeated(3)).columns}


def test_requests_alone_have_no_tables_of_batches_or_phases() -> None:
    assert batch_tables(repeated(2)) == phases_table(repeated(2)) == {}
    assert percentiles_table(repeated(0)).n_rows == 0


def test_a_mean_has_no_interval_and_is_no_request() -> None:
    found = percentiles_table(repeated(20))
    for name in ("low_ps", "high_ps", "request", "start_ps"):
        cell = dict(zip(percentile_names(found), values(found, name), strict=True))
        assert np.isnan([cell["Average"], cell["Slowest 10%"]]).all()
    assert [values(found, "start_ps")[1]] == [float(repeated(1).start_ps[0])]


def percentile_names(found: Table) -> list[object]:
    return next(cells(column) for column in found.columns if column.name == "percentile")


def test_sizes_are_means_of_their_requests() -> None:
    """Three requests of 4 examples, one of 2: the device works 60 and 20 ps for them."""
    parts = np.zeros((4, len(Part)), np.int64)
    parts[:, Part.DEVICE] = 100, 20, 50, 30
    sized = repeated(4, size=np.array([4, 2, 4, 4]), part_ps=parts, latency_ps=np.array([300, 70, 200, 400]))
    found = sizes_table(sized)["sizes"]
    assert (values(found, "size"), values(found, "n"), values(found, "examples")) == ([2, 4], [1, 3], [2, 12])
    assert values(found, "mean_ps") == [70, 300]
    assert values(found, "device_ps") == [20, 60]
    assert found.title == "Batch size"
    assert sizes_table(host_inference(server()))["sizes"].title == "Batch size and padding"


def test_passes_without_tokens_have_no_time_per_token() -> None:
    phase = np.array([Phase.PREFILL, Phase.DECODE, Phase.DECODE], np.uint8)
    parts = np.zeros((3, len(Part)), np.int64)
    parts[:, Part.DEVICE] = 60, 30, 10
    tokens = {"prefill_tokens": np.array([12, 0, 0]), "decode_tokens": np.zeros(3, np.int64)}
    found = phases_table(repeated(3, phase=phase, part_ps=parts, **tokens))["phases"]
    assert values(found, "tokens") == [12, 0]
    per_token = values(found, "device_per_token_ps")
    assert (per_token[0], np.isnan(per_token[1])) == (5, True)
    assert values(found, "fraction") == [0.6, 0.4]


def test_groups_count_requests() -> None:
    found = host_inference(server())
    by_model = group_table(MODELS, found, found.model, found.models)
    (title,) = [column.title for column in by_model.columns if column.name == "n_requests"]
    assert title == "Requests"
