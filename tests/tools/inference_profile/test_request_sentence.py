"""What the overview says first about a job that serves requests: as much as their number allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.record import host_inference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.inference_profile.sentences import limit_level, limit_sentence
from tb_tpuprof.tools.requests import latency_sentence
from tb_tpuprof.trace.trace import Trace
from tests.analysis.inference.serving import request, server
from tests.builders import DrawnEvent, DrawnPlane, build, event
from tests.payload_columns import table
from tests.tools.drawn_session import session_of

US = 10**6


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (1, "1 request took 1.00 µs."),
        (2, "2 requests took 1.00 µs at the median, and 2.00 µs at most."),
        (99, "99 requests took 50.0 µs at the median, and 99.0 µs at most."),
        (100, "100 requests took 50.0 µs at the median, and 99.0 µs at p99."),
    ],
)
def test_latency_in_a_sentence(n: int, sentence: str) -> None:
    """The i-th of n requests takes i µs."""
    requests = [
        DrawnEvent("predict", i * 1000 * US, i * US, {"_r": 1, "step_num": i}) for i in range(1, n + 1)
    ]
    trace = build([DrawnPlane("/host:CPU", {"python": requests})])
    assert latency_sentence(host_inference(trace)) == sentence


@pytest.mark.parametrize(("n", "start"), [(19, ""), (20, "Limited by the host: the slowest tenth")])
def test_the_limit_comes_first_where_requests_suffice(n: int, start: str) -> None:
    requests = [
        DrawnEvent("predict", i * 1000 * US, i * US, {"_r": 1, "step_num": i}) for i in range(1, n + 1)
    ]
    sentence = limit_sentence(host_inference(build([DrawnPlane("/host:CPU", {"python": requests})])))
    assert sentence.startswith(start)
    assert bool(sentence) == bool(start)


@pytest.mark.parametrize(
    ("host", "queue", "device", "start"),
    [
        (40, 35, 25, "Limited by the host"),
        (25, 40, 35, "Limited by busy devices"),
        (35, 25, 40, "Limited by the TPU"),
        (39, 36, 25, ""),
        (25, 39, 36, ""),
        (36, 25, 39, ""),
    ],
)
def test_a_limit_takes_two_fifths_of_the_time(host: int, queue: int, device: int, start: str) -> None:
    """30 requests of 100 µs."""
    requests = [DrawnEvent("predict", i * 1000 * US, 100 * US, {"_r": 1, "step_num": i}) for i in range(30)]
    found = host_inference(build([DrawnPlane("/host:CPU", {"python": requests})]))
    part_ps = np.zeros_like(found.part_ps)
    for part, time in ((Part.HOST_BEFORE, host), (Part.QUEUE, queue), (Part.DEVICE, device)):
        part_ps[:, part] = time * US
    sentence = limit_sentence(replace(found, part_ps=part_ps, device_kind="TPU"))
    assert sentence.startswith(start)
    assert bool(sentence) == bool(start)


@pytest.mark.parametrize(
    ("host", "queue", "device", "level"),
    [(40, 35, 25, "warn"), (25, 30, 45, "good"), (34, 33, 33, "unknown")],
)
def test_the_overview_rates_a_server_as_the_page_of_requests(
    host: int, queue: int, device: int, level: str
) -> None:
    """A model server of 30 requests of 100 µs: its overview has their number and both percentiles."""
    events: list[DrawnEvent] = []
    modules: list[DrawnEvent] = []
    for i in range(30):
        at = i * 1000 * US
        events.append(DrawnEvent("BatchingSessionRun", at, 100 * US, {"model_id": "m:1"}))
        modules.append(DrawnEvent("jit_f(1)", at + (host + queue) * US, device * US, {}))
    trace = build(
        [DrawnPlane("/host:CPU", {"caller": events}), DrawnPlane("/device:TPU:0", {"XLA Modules": modules})]
    )
    found = host_inference(trace)
    shared = found.part_ps * 0
    for part, time in ((Part.HOST_BEFORE, host), (Part.QUEUE, queue), (Part.DEVICE, device)):
        shared[:, part] = time * US
    assert limit_level(replace(found, part_ps=shared)) == level
    payload = get_tool("overview_page").run(session_of(trace), None, {})
    requests = get_tool("inference_profile").run(session_of(trace), None, {})
    assert payload.verdict is not None
    assert requests.verdict is not None
    assert payload.verdict.level == requests.verdict.level
    assert payload.tiles[:2] == ("n_requests", "latency_p50_ps")
    assert payload.scalars["n_requests"].value == 30
    assert {one.severity for one in payload.diagnostics if "no step time" in one.message} == {"info"}


def passes(*names: str) -> Trace:
    """Forward passes of an LLM engine."""
    host = [event(name, 200 * i, 100) for i, name in enumerate(names)]
    return build([DrawnPlane("/host:CPU", {"main": host})])


def called(*sizes: int) -> Trace:
    """Requests with sizes, whose batches were not traced."""
    return build(
        [
            DrawnPlane(
                "/host:CPU",
                {f"caller-{i}": request(100 * i, 60, 7 + i, size) for i, size in enumerate(sizes)},
            )
        ]
    )


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (server(), "4 to 5 examples per batch, mean 4.50"),  # 8 − 3 and 4 − 0
        (called(2, 9, 4), "2 to 9 examples per request, mean 5.00"),
        (called(6, 6, 6), "6 examples per request"),
        (
            passes(*(f"execute_context_0(0)_generation_{n}({n})" for n in (1, 3, 8))),
            "1 to 8 sequences per pass, mean 4.00",
        ),
    ],
)
def test_sizes_that_a_server_states_are_the_batch_size(trace: Trace, text: str) -> None:
    facts = table(get_tool("overview_page").run(session_of(trace), None, {}), "environment")
    assert dict(zip(facts["name"], facts["value"], strict=True))["Batch size (derived)"] == text


def test_requests_without_sizes_leave_the_reason() -> None:
    requests = [DrawnEvent("predict", i * 1000 * US, 10 * US, {"_r": 1, "step_num": i}) for i in range(3)]
    payload = get_tool("overview_page").run(
        session_of(build([DrawnPlane("/host:CPU", {"python": requests})])), None, {}
    )
    facts = table(payload, "environment")
    size = dict(zip(facts["name"], facts["value"], strict=True))["Batch size (derived)"]
    assert str(size).startswith("unknown: no shapes in the trace show it")
