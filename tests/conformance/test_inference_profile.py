"""Requests and batches of a synthetic server as xprof finds them in the same file, where an interpreter that
has it is at hand.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.environments import peer_if_any
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.payload_columns import table
from tests.synthetic import write_run
from tests.synthetic_serving import serving

MS = 10**9
# The call that puts a request into the queue: host work here, for the peer part of the queue.
SCHEDULE_MS = 0.006


def rows_of(peer_table: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table of the peer, by column."""
    names = [column["id"] for column in peer_table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in peer_table["rows"]]


@pytest.mark.slow
def test_the_peer_finds_the_same_requests_and_batches(tmp_path: Path) -> None:
    python = peer_if_any()
    if not python:
        pytest.skip("*** NOT RUN: no interpreter has xprof; `make conformance` makes one. ***")
    run = write_run(tmp_path / "runs" / "requests_server", {"server": serving().data})
    script = Path(__file__).with_name("live_peer.py")
    subprocess.run(
        [python, str(script), str(run.parent), str(tmp_path / "out.json")], check=True, capture_output=True
    )
    _models, requests, batches = json.loads((tmp_path / "out.json").read_text())["requests_server"][
        "inference_profile"
    ]
    ours = get_tool("inference_profile").run(Session(str(run), cache=False), None, {})
    numbers = {name: float(scalar.value or 0) for name, scalar in ours.scalars.items()}
    rows, late_ps = table(ours, "requests"), lateness(ours)
    mean_ps = numbers["latency_mean_ps"] + sum(late_ps) / len(late_ps)
    assert float(requests["p"]["averageLatencyMs"]) == pytest.approx(mean_ps / MS, abs=6e-4)
    assert float(requests["p"]["throughput"]) == pytest.approx(numbers["requests_per_s"], abs=0.06)
    assert float(batches["p"]["throughput"]) == pytest.approx(numbers["batches_per_s"], abs=0.06)
    check_requests(rows_of(requests), rows, late_ps)
    check_batches(rows_of(batches), table(ours, "batches"))


def lateness(ours: Payload) -> list[float]:
    """How much longer the batch of each request goes on after the request has ended: for the peer the request
    lasts until then.
    """
    batches, requests = table(ours, "batches"), table(ours, "requests")
    ends = {
        number: start + duration
        for number, start, duration in zip(
            *(batches[name] for name in ("batch", "start_ps", "duration_ps")), strict=True
        )
    }
    columns = (requests[name] for name in ("batch", "start_ps", "latency_ps"))
    return [
        max(0.0, float(ends[number] - start - latency))  # type: ignore[operator]
        for number, start, latency in zip(*columns, strict=True)
    ]


def check_requests(peer: list[dict[str, Any]], ours: dict[str, list[Any]], late_ps: list[float]) -> None:
    """Each request that the peer samples is one of ours. What its batch does before and between is idle time
    there.
    """

    def ms(row: int, *columns: str) -> float:
        return sum(ours[f"{column}_ps"][row] for column in columns) / MS

    all_of_ours = {
        (
            round(ms(i, "latency") + late_ps[i] / MS, 3),
            round(ms(i, "queue") + SCHEDULE_MS, 3),
            round(ms(i, "device"), 3),
        ): i
        for i in range(len(ours["request"]))
    }
    sampled = [row for row in peer if row["percentile"][0].isdigit()]
    assert len(sampled) >= 30
    n_equal = 0
    for row in sampled:
        at = all_of_ours.get((row["latency_ms"], row["host_batch_formation"], row["device_compute"]))
        if at is None:
            continue
        n_equal += 1
        rest = ms(at, "host_before", "host_runtime", "to_device", "to_host", "wait") - SCHEDULE_MS
        assert row["idle time"] == pytest.approx(rest, abs=0.0015)
        assert row["host_postprocess"] == pytest.approx(ms(at, "host_after") + late_ps[at] / MS, abs=0.0015)
        assert row["batching_request_size"] == ours["size"][at]
    assert n_equal == len(sampled), f"{n_equal} of {len(sampled)}"


def check_batches(peer: list[dict[str, Any]], ours: dict[str, list[Any]]) -> None:
    """Each batch that the peer samples is one of ours."""
    found = {
        (round(ours["duration_ps"][i] / MS, 3), ours["padding"][i], ours["padded_size"][i]): ours[
            "device_ps"
        ][i]
        for i in range(len(ours["batch"]))
    }
    sampled = [row for row in peer if row["percentile"][0].isdigit()]
    assert len(sampled) >= 10
    for row in sampled:
        key = row["latency"], row["padding_amount"], row["batch_size_after_padding"]
        assert row["device_compute"] == pytest.approx(found[key] / MS, abs=0.0006)
        efficiency = 1 - row["padding_amount"] / row["batch_size_after_padding"]
        assert row["batching_efficiency"] == pytest.approx(efficiency)
