"""What the overview says first about a job that serves requests: as much as their number allows."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.inference.record import host_inference
from tb_tpuprof.tools.requests import latency_sentence
from tests.builders import DrawnEvent, DrawnPlane, build

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
