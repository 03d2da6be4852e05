"""SYNTHETIC changes of real GPU traces: what is planted here was never measured on a device; the trace around
it was.

`stretched` is what a step would be like if something took longer: later events move, events around the moment
grow.

    before   ├ step ─────────────────┤        after   ├ step ───────────────────────────┤
             ├ op ─┤ ├ op ─┤                          ├ op ─┤            ├ op ─┤
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.why import diagnosis
from tests.synthetic import Parts, TpuJob, tpu_hosts, tpu_xspace, write_run

GPU = Path(__file__).parents[1] / "data" / "gpu"
PLANTED = Path(__file__).parents[1] / "data" / "gpu_planted"
Event = dict[str, Any]
US = 1e6


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def complete(trace: dict[str, Any]) -> list[Event]:
    return [event for event in trace["traceEvents"] if event.get("ph") == "X"]


def markers(trace: dict[str, Any]) -> list[Event]:
    found = [
        event
        for event in complete(trace)
        if event["name"].startswith("ProfilerStep") and event.get("cat") == "user_annotation"
    ]
    return sorted(found, key=lambda event: float(event["ts"]))


def stretched(trace: dict[str, Any], at: list[float], by: float) -> None:
    """Insert `by` µs at each moment: what begins later moves, what is on then lasts longer."""
    at = sorted(at)
    for event in trace["traceEvents"]:
        if "ts" not in event:
            continue
        start, end = float(event["ts"]), float(event["ts"]) + float(event.get("dur", 0))
        moved = sum(moment <= start for moment in at)
        event["ts"] = start + by * moved
        if event.get("ph") == "X":
            event["dur"] = end - start + by * sum(start < moment < end for moment in at)


def diagnosed(folder: Path, *traces: dict[str, Any]) -> Diagnosis:
    for i, trace in enumerate(traces):
        (folder / f"synthetic-{i}.pt.trace.json").write_text(json.dumps(trace), "utf-8")
    one = folder / "synthetic-0.pt.trace.json" if len(traces) == 1 else folder
    return diagnosis(Session(str(one), cache=False))


def time(why: Diagnosis, cause: Cause) -> float:
    return sum(one.time_ps for one in why.causes if one.cause == cause)


def ends_of(trace: dict[str, Any], name: str) -> list[float]:
    """In each step the end of the last host event of a name, and a little more."""
    rows = [event for event in complete(trace) if event["name"] == name]
    result = []
    for step in markers(trace):
        inside = [
            float(e["ts"]) + float(e["dur"])
            for e in rows
            if float(step["ts"]) <= float(e["ts"]) < float(step["ts"]) + float(step["dur"])
        ]
        result.append(max(inside) + 0.5)
    return result


def test_a_gap_that_nothing_records_is_said_to_be_unknown_and_where_it_is(tmp_path: Path) -> None:
    trace = read(GPU / "torch_loader0.pt.trace.json.gz")
    (tmp_path / "before").mkdir()
    before = diagnosed(tmp_path / "before", trace)
    stretched(trace, ends_of(trace, "aten::item"), 60_000)
    why = diagnosed(tmp_path, trace)
    assert why.top is not None
    assert why.top.cause == Cause.UNRECORDED
    assert "`aten::item`" in why.text
    assert why.top.capture_option == "with_stack=True"
    assert time(why, Cause.UNRECORDED) - time(before, Cause.UNRECORDED) == pytest.approx(
        60_000 * US, rel=0.03
    )


def calls(trace: dict[str, Any], function: str) -> list[Event]:
    return sorted(
        (e for e in complete(trace) if e["name"].endswith(f": {function}")),
        key=lambda event: float(event["ts"]),
    )


def test_the_same_gap_is_the_functions_own_where_python_is_recorded(tmp_path: Path) -> None:
    """Just before `train_step` returns, after all its calls, when the GPU has nothing to do."""
    trace = read(PLANTED / "torch_item.pt.trace.json.gz")
    stretched(trace, [float(e["ts"]) + float(e["dur"]) - 0.2 for e in calls(trace, "train_step")], 30_000)
    why = diagnosed(tmp_path, trace)
    assert why.top is not None
    assert (why.top.cause, why.top.culprit.name) == (Cause.PYTHON, "train_step")
    assert why.top.time_ps == pytest.approx(30_000 * US, rel=0.12)


def test_slow_launches_are_dispatch(tmp_path: Path) -> None:
    """Only those at which no kernel runs, since a kernel would last longer with them."""
    trace = read(GPU / "torch_loader0.pt.trace.json.gz")
    kernels = [
        (float(e["ts"]), float(e["ts"]) + float(e["dur"]))
        for e in complete(trace)
        if e.get("cat") == "kernel"
    ]
    moments = [
        float(e["ts"]) + float(e["dur"]) / 2 for e in complete(trace) if e["name"] == "cudaLaunchKernel"
    ]
    moments = [moment for moment in moments if not any(start <= moment <= end for start, end in kernels)]
    assert len(moments) > 10 * len(markers(trace))
    stretched(trace, moments, 5000)
    why = diagnosed(tmp_path, trace)
    assert why.top is not None
    assert why.top.cause == Cause.DISPATCH
    assert "kernels" in why.text or "`cudaLaunchKernel`" in why.text
    assert time(why, Cause.DISPATCH) == pytest.approx(5000 * US * len(moments) / len(markers(trace)), rel=0.1)


def test_an_exposed_copy_is_a_transfer_of_who_asked_for_it(tmp_path: Path) -> None:
    """At the start of `train_step`, when the GPU has nothing to do since the step before read its loss."""
    trace = read(PLANTED / "torch_item.pt.trace.json.gz")
    kernel = next(e for e in complete(trace) if e.get("cat") == "kernel")
    stretched(trace, [float(e["ts"]) + 0.3 for e in calls(trace, "train_step")], 20_000)
    for i, frame in enumerate(calls(trace, "train_step")):
        at, number = float(frame["ts"]) + 1, 900_000 + i
        host, stream = (
            {key: frame[key] for key in ("pid", "tid")},
            {key: kernel[key] for key in ("pid", "tid")},
        )
        about = {"correlation": number, "device": 0, "stream": kernel["args"]["stream"], "bytes": 1 << 28}
        name = "Memcpy HtoD (Pageable -> Device)"
        call = {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaMemcpyAsync",
            "ts": at,
            "dur": 10,
            "args": {"correlation": number},
            **host,
        }
        copy = {
            "ph": "X",
            "cat": "gpu_memcpy",
            "name": name,
            "ts": at + 20,
            "dur": 19_000,
            "args": about,
            **stream,
        }
        trace["traceEvents"] += [call, copy]
    why = diagnosed(tmp_path, trace)
    assert why.top is not None
    assert (why.top.cause, why.top.culprit.name) == (Cause.TRANSFERS, "train_step")
    assert time(why, Cause.TRANSFERS) == pytest.approx(19_000 * US, rel=0.03)


def test_a_slow_host_is_named_with_what_it_does_longer(tmp_path: Path) -> None:
    """Four ranks with the same steps; one waits longer for its data."""
    traces = []
    for rank in range(4):
        trace = read(GPU / "torch_loader0.pt.trace.json.gz")
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 4}
        traces.append(trace)
    loader = [e for e in complete(traces[2]) if "DataLoaderIter.__next__" in e["name"]]
    stretched(traces[2], [float(e["ts"]) + float(e["dur"]) - 1 for e in loader], 25_000)
    why = diagnosed(tmp_path, *traces)
    slow = [one for one in why.findings if one.culprit.kind == "host"]
    assert len(slow) == 1
    assert "synthetic-2" in slow[0].culprit.name
    assert slow[0].cause == Cause.INPUT
    assert slow[0].time_ps == pytest.approx(25_000 * US, rel=0.05)
    assert slow[0].gain_ps is not None
    assert slow[0].gain_ps[1] <= slow[0].time_ps
    assert "waits for data" in slow[0].sentence


def test_alike_hosts_are_not_told_apart(tmp_path: Path) -> None:
    traces = [read(GPU / "torch_loader0.pt.trace.json.gz") for _ in range(4)]
    assert not [one for one in diagnosed(tmp_path, *traces).findings if one.culprit.kind == "host"]


def test_a_tpu_whose_bytes_fill_its_bandwidth_is_memory_bound(tmp_path: Path) -> None:
    """90% of 819 GB/s for the 950 µs that each step of 1 ms computes, at a tenth of the peak compute."""
    job = TpuJob(
        parts=Parts(compute=0.95), n_bytes=round(0.9 * 819e9 * 950e-6), flops=round(0.1 * 197e12 * 950e-6)
    )
    session = Session(str(write_run(tmp_path, {"synthetic-tpu": tpu_xspace(job)})), cache=False)
    why = diagnosis(session)
    assert why.top is not None
    assert why.top.cause == Cause.COMPUTE
    assert "HBM bandwidth" in why.text
    assert why.top.gain_ps is not None
    assert why.top.gain_ps[1] <= 0.5 * 950 * US * 1.001
    verdict = get_tool("overview_page").run(session, None, {}).verdict
    assert verdict is not None
    assert verdict.text == why.text


def test_a_tpu_that_only_computes_is_healthy(tmp_path: Path) -> None:
    job = TpuJob(
        parts=Parts(compute=0.985), n_bytes=round(0.3 * 819e9 * 985e-6), flops=round(0.6 * 197e12 * 985e-6)
    )
    why = diagnosis(Session(str(write_run(tmp_path, {"synthetic-tpu": tpu_xspace(job)})), cache=False))
    assert (why.level, why.findings) == ("good", ())


def test_a_tpu_host_that_computes_longer_holds_the_others_up(tmp_path: Path) -> None:
    hosts = tpu_hosts(TpuJob(parts=Parts(compute=0.7, collective=0.1), n_steps=8), (1.0, 1.4, 1.0, 1.0))
    why = diagnosis(Session(str(write_run(tmp_path, hosts)), cache=False))
    (slow,) = [one for one in why.findings if one.culprit.kind == "host"]
    assert slow.culprit.name == "synthetic-tpu-1"
    assert slow.sentence.endswith("most of it in compute.")
    assert slow.gain_ps is not None
    assert 0 < slow.gain_ps[1] <= slow.time_ps <= why.step_time_ps
