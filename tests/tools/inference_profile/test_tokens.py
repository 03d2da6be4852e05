"""Tokens and loads on the page of requests: tables, numbers and sentences, against planted ones."""

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.loads import HostLoads, Load
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.tools.inference_profile.load_rows import load_sentence, reason
from tb_tpuprof.tools.inference_profile.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import server
from tests.analysis.inference.test_loads import engine, load
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.payload_columns import table
from tests.tools.drawn_session import session_of


def conversations(n: int) -> Trace:
    """Requests of unlike lengths: the i-th takes 20 + i µs to its first token, then 3, 4 and 5 + i µs."""
    events: list[DrawnEvent] = []
    for i in range(n):
        start = 100 * i
        events.append(event("generate", start, 60 + i))
        events.append(event("prefill", start + 1, 19 + i))
        at = start + 20 + i
        for length in (3, 4, 5 + i):
            events.append(event("decode", at, length))
            at += length
    return build([DrawnPlane("/host:CPU", {"main": events})])


def test_tokens_by_request() -> None:
    payload = TOOL.run(session_of(conversations(10)), None, {})
    rows = table(payload, "tokens")
    assert payload.tables["tokens"].note == "by request"
    assert rows["measure"] == ["To first token", "Between tokens", "Per token of a request"]
    assert rows["n"] == [10, 30, 10]
    assert rows["p50_ps"] == [24 * PS, 4 * PS, 5_333_333]
    assert rows["p90_ps"][:2] == [28 * PS, 11 * PS]
    assert rows["max_ps"] == [29 * PS, 14 * PS, 7 * PS]
    assert all(np.isnan(np.array(rows["p99_ps"], float)))
    each = table(payload, "generations")
    assert each["request"] == [str(i) for i in range(10, 0, -1)]
    assert each["n_tokens"] == [4] * 10
    assert (each["first_ps"][0], each["longest_ps"][0], each["total_ps"][0]) == (29 * PS, 14 * PS, 50 * PS)
    values = {name: payload.scalars[name].value for name in ("first_token_p50_ps", "token_gap_p50_ps")}
    assert values == {"first_token_p50_ps": 24 * PS, "token_gap_p50_ps": 4 * PS}
    span = 900 * PS + 69 * PS
    assert payload.scalars["tokens_per_s"].value == pytest.approx(40 / (span / 1e12))
    assert payload.verdict is not None
    assert "The first token takes 24.0 µs (p50), each further one 4.00 µs." in payload.verdict.details


def test_passes_say_that_queues_are_unknown() -> None:
    payload = TOOL.run(session_of(engine()), None, {})
    note = "by forward pass, as single requests are not known: time in the queue is unknown"
    assert payload.tables["tokens"].note == note
    assert table(payload, "tokens")["measure"] == ["To first token", "Between tokens"]
    assert "generations" not in payload.tables


def test_no_tokens_without_phases() -> None:
    payload = TOOL.run(session_of(server()), None, {})
    assert not {"tokens", "generations"} & set(payload.tables)
    assert "first_token_p50_ps" not in payload.scalars


def test_limits_by_phase() -> None:
    payload = TOOL.run(session_of(engine()), None, {})
    rows = table(payload, "loads")
    assert rows["phase"] == ["All passes", "Prefill", "Decode", "Mixed"]
    assert rows["bound_by"] == [None, "Compute", "HBM", None]
    assert rows["reason"][1:3] == [None, None]
    assert rows["reason"][3] == "the FLOPs or bytes of 50.0% of the operations' time are unknown"
    assert rows["bytes_per_s"][2] == pytest.approx(24e6 / 30e-6)
    assert rows["hbm_fraction"][2] == pytest.approx(0.8)
    assert payload.verdict is not None
    assert (
        "While the TPU works, prefill: limited by FLOP rate (50.0% of peak; HBM bandwidth 16.3%); decode: "
        "limited by HBM bandwidth (80.0% of peak; FLOP rate 1.67%); mixed: unknown."
        in payload.verdict.details
    )


def test_limits_of_one_model() -> None:
    payload = TOOL.run(session_of(server()), None, {"model": "dog:2"})
    rows = table(payload, "loads")
    assert (rows["n"], rows["device_ps"]) == ([1], [30 * PS])
    assert payload.tables["loads"].note.startswith("unknown: the trace states neither the HLO nor")


def loads_of(one: Load, kind: str = "GPU", knows_peaks: bool = True) -> HostLoads:
    return HostLoads({("", Phase.NONE): one}, kind, knows_peaks)


NO_PEAKS = "the device's peak rates are unknown; set them in your own file (TPUPROF_PEAKS)"


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        (loads_of(load(0.5, 0.1)), ""),
        (loads_of(Load(1, 0)), "no device works for them"),
        (
            loads_of(Load(1, 5, 5.0)),
            "the trace states neither the HLO nor the input shapes of their operations, so no "
            "FLOPs and bytes",
        ),
        (
            loads_of(Load(1, 10, 10.0, 8.5, 8.5, 20.0, 20.0, 0.0, 100.0, 100.0)),  # in on-chip memory alone
            "the FLOPs or bytes of 15.0% of the operations' time are unknown",
        ),
        (loads_of(load(0.5, 0.1), "CPU", knows_peaks=False), ""),
        (
            loads_of(Load(1, 5, 5.0, 5.0, 5.0, 1.0, 1.0, 1.0), "CPU", False),
            "the peak rates of CPUs are unknown",
        ),
        (
            loads_of(Load(1, 5, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0), "GPU", False),
            f"{NO_PEAKS}; the FLOPs or bytes of 80.0% of the operations' time are unknown",
        ),
        (
            loads_of(load(0.5, 1.2)),
            "their work exceeds a peak of the device, which is impossible; see the roofline page",
        ),
    ],
)
def test_reasons(loads: HostLoads, expected: str) -> None:
    assert reason(loads.of(""), loads) == expected


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        (
            loads_of(load(0.1, 0.2)),
            "While the GPU works, requests: below both limits (HBM bandwidth 20.0% of peak, FLOP "
            "rate 10.0%).",
        ),
        (
            loads_of(load(0.05, 0.7, 0.4)),
            "While the GPU works, requests: limited by HBM bandwidth (at least 70.0% of peak; "
            "FLOP rate 5.00%).",
        ),
        (loads_of(Load(1, 5, 5.0, 5.0, 5.0, 1.0, 1.0, 1.0), "CPU", False), ""),
        (loads_of(Load()), ""),
    ],
)
def test_sentences(loads: HostLoads, expected: str) -> None:
    assert load_sentence(loads, "", "requests") == expected
