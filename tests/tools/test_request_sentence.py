"""What the overview says first about a job that serves requests: as much as their number allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.record import host_inference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools.inference_profile.sentences import limit_sentence
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
