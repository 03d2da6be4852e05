"""What pages say first about recorded runs on a TPU, V100 and MI300X, against sums over the files' own
events.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.plain_protobuf import plain_fields
from tests.tools.test_hlo_stats import cells

V100 = "xprof_gpu_multi_worker/plugins/profile/GPU-multi-worker"
MI300X = "tracelens_mi300_jax/plugins/profile/jax08_attention"
TPU_JSON = "tpu_inference_480b/plugins/profile/2026_01_11_21_26_41"


def run_of(path: str) -> Path:
    folder = Path(os.environ.get("TPUPROF_CORPUS", "")) / path
    if not os.environ.get("TPUPROF_CORPUS") or not folder.exists():
        pytest.skip("TPUPROF_CORPUS is not set")
    return folder


def answer(tool: str, path: str) -> Payload:
    return get_tool(tool).run(Session(str(run_of(path)), cache=False), None, {})


def stream_events(file: Path, plane_name: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end in ps) of each event on a GPU's streams, from the file's bytes."""
    for number, plane in plain_fields(file.read_bytes()):
        parts: dict[int, list[bytes]] = {2: [], 3: [], 4: []}
        for key, value in plain_fields(plane) if number == 1 else ():
            if key in parts:
                parts[key].append(value)
        if parts[2] != [plane_name.encode()]:
            continue
        metadata = [dict(plain_fields(dict(plain_fields(entry))[2])) for entry in parts[4]]
        names = {one.get(1, 0): one.get(2, b"").decode() for one in metadata}
        for line in parts[3]:
            of_line = dict(plain_fields(line))
            if b"Stream" not in of_line.get(2, b""):
                continue
            for event in (dict(plain_fields(value)) for key, value in plain_fields(line) if key == 4):
                start = of_line.get(3, 0) * 1000 + event.get(2, 0)
                yield names[event[1]], start, start + event.get(3, 0)


def test_the_longest_idle_stretch_of_a_gpu_without_steps_is_linked() -> None:
    payload = answer("overview_page", MI300X)
    spans = sorted(
        (start, end) for _, start, end in stream_events(run_of(MI300X) / "tw003.xplane.pb", "/device:GPU:0")
    )
    longest, covered = 0, spans[0][1]
    for start, end in spans[1:]:
        longest, covered = max(longest, start - covered), max(covered, end)
    assert payload.verdict is not None
    link = payload.verdict.next[0]
    assert link.text == "Look at the longest idle stretch (20.7 ms) in the trace viewer"
    assert int(link.params["end_ps"]) - int(link.params["start_ps"]) == longest
    assert ["Hardware", "MI300X (AMD GPU gfx942)"] in [list(row) for row in _rows(payload, "environment")]


def _rows(payload: Payload, table: str) -> Iterator[tuple[object, ...]]:
    return zip(*cells(payload, table).values(), strict=True)


def test_the_largest_kernel_is_not_added_to_its_launches() -> None:
    payload = answer("flame_graph", V100)
    kernels: Counter[str] = Counter()
    file = run_of(V100) / "34.83.195.179_6003.xplane.pb"
    for name, start, end in stream_events(file, "/device:GPU:6"):
        kernels[name] += end - start
    name, time_ps = kernels.most_common(1)[0]
    shown = {
        (row["name"], row["family"]): row["self_ps"]
        for row in (
            dict(zip(cells(payload, "functions"), values, strict=True))
            for values in _rows(payload, "functions")
        )
    }
    assert "FillPhiloxRandomKernelLaunch" in name
    assert shown[name, "operation"] == pytest.approx(time_ps)  # both hosts' files are the same: their mean
    assert shown[name, "runtime"] != pytest.approx(time_ps)
    assert payload.verdict is not None
    assert payload.verdict.text.startswith(
        "The largest operation on GPU:6 is `void tensorflow::functor::FillPhiloxRandomKernelLaunch<…>`:"
        " 3.96 ms"
    )


def test_a_graph_that_waits_for_no_data_gets_advice_on_its_launches_only() -> None:
    overview = answer("overview_page", V100).verdict
    assert overview is not None
    assert any("The step already runs as a graph." in text for text in overview.details)
    assert cells(answer("tf_data_bottleneck_analysis", V100), "advice")["text"] == [
        "No change is needed here: the steps do not wait for data, and something else limits the job."
    ]
    note = answer("input_pipeline_analyzer", V100).scalars["host_input_ps"].note
    assert note == "the traced stages only wait for others; no work on input was traced"


def test_operations_and_programs_of_a_json_trace_have_names_and_types() -> None:
    (file,) = run_of(TPU_JSON).glob("*.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    events = [event for event in events if "name" in event]
    lines = {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in events
        if e["name"] == "thread_name" and e["args"]
    }
    ops = [e for e in events if e["ph"] == "X" and lines.get((e["pid"], e["tid"])) == "XLA Ops"]
    runs = {e["name"] for e in events if e["ph"] == "X" and lines.get((e["pid"], e["tid"])) == "XLA Modules"}
    mean_us = sum(e["dur"] for e in ops if e["args"].get("tf_op", "").endswith("/aten::mean.dim/reduce_sum:"))
    assert set(cells(answer("hlo_stats", TPU_JSON))["program"]) == runs
    stats = cells(answer("framework_op_stats", TPU_JSON))
    row = stats["operation"].index("jit(step_fun)/aten::mean.dim/reduce_sum")
    assert stats["type"][row] == "reduce_sum"
    assert stats["total_self_time_ps"][row] == pytest.approx(1e6 * mean_us, rel=1e-3)
    overview = answer("overview_page", TPU_JSON).verdict
    assert overview is not None
    assert any(
        "only 67.2 ms (2.90%) are between the TPU's first and last" in text for text in overview.details
    )
