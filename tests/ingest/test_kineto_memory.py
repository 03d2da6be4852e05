"""PyTorch's `[memory]` marks fill the memory profile: levels, operations, devices, leaks; with and without
totals and addresses.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.memory.events import MemoryEvents, memory_events
from tb_tpuprof.analysis.memory.peak import active_allocations, memory_peak
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.conformance.peer import corpus
from tests.ingest.chrome_files import opened

KIB = 1024
CPU, CUDA, HIP = 0, 1, 6
CAPTURED = Path(__file__).parent.parent / "data" / "kineto" / "memory.pt.trace.json.gz"
HOST = {"pid": 100, "tid": 100}
# Real ones: H100 and MI300X with totals and addresses, V100 of 2021 without.
REAL = (
    "tracelens_torch/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens_torch/traces/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "tracelens_torch/traces/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens_torch/traces/inference/sglang_decode/capture_traces/bs_32_rank0.json.gz",
    "kineto_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
)
Event = dict[str, Any]


def op(name: str, ts: float, dur: float, **where: int) -> Event:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "ts": ts,
        "dur": dur,
        **(HOST | where),
        "args": {"External id": 1},
    }


def mark(ts: float, size: int, device: tuple[int, int] = (CUDA, 0), **args: int) -> Event:
    facts = {
        "Device Type": device[0],
        "Device Id": device[1],
        "Bytes": size,
        **{key.replace("_", " "): value for key, value in args.items()},
    }
    return {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "ts": ts,
        **HOST,
        "args": facts,
    }


def payload_of(folder: Path, content: Any) -> Payload:
    run = folder / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    (run / "host.pt.trace.json").write_text(json.dumps(content))
    return get_tool("memory_profile").run(Session(str(run), cache=False), None, {})


def one_job() -> Event:
    """Two allocations of a linear layer on the first GPU, one of them freed outside of any operation."""
    events = [
        op("aten::linear", 0, 50), op("aten::addmm", 5, 40), op("aten::empty", 6, 2),
        mark(7, 512, Total_Allocated=1024, Total_Reserved=4096, Addr=64),
        op("aten::empty", 10, 2), mark(11, 256, Total_Allocated=1280, Total_Reserved=4096, Addr=128),
        mark(60, -512, Total_Allocated=768, Total_Reserved=4096, Addr=64),
    ]  # fmt: skip
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 8192}],
        "traceEvents": events,
    }


def test_levels_capacity_and_operations(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, one_job())
    told = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert (told["peak_bytes"], told["heap_bytes"], told["free_bytes"], told["capacity_bytes"]) == (
        1280,
        1280,
        8192 - 1280,
        8192,
    )
    assert told["fragmentation_fraction"] == pytest.approx((4096 - 1280) / 4096)
    assert told["lifetime_peak_bytes"] is None
    assert (told["n_allocations"], told["n_deallocations"]) == (2, 1)
    active = {
        c.name: [c.strings[i] for i in c.values.tolist()] if c.strings else c.values.tolist()
        for c in payload.tables["active"].columns
    }
    assert sorted(zip(active["op"], active["total_bytes"], strict=True)) == [
        ("(allocated before the capture)", 512),
        ("aten::linear/aten::addmm", 256),
        ("aten::linear/aten::addmm", 512),
    ]
    held = next(column for column in payload.tables["timeline"].columns if column.name == "held_bytes")
    assert held.values.tolist() == [4096] * 3


def test_the_viewer_shows_the_marks_as_the_file_calls_them(tmp_path: Path) -> None:
    trace = opened(tmp_path, one_job())
    shown = [trace.strings[i] for i in trace.event_names.tolist()]
    assert "[memory]" in shown
    assert not any(name.startswith("Memory") for name in shown)


def test_devices_are_told_apart_by_type_and_number(tmp_path: Path) -> None:
    devices = [(CPU, -1), (CUDA, 0), (CUDA, 1), (HIP, 0), (77, 2)]
    events = [
        op("aten::mm", 0, 9),
        *(mark(10 + i, 100 * (i + 1), device, Addr=1) for i, device in enumerate(devices)),
    ]
    found = memory_events(opened(tmp_path, events))
    peaks = {name: memory_peak(found, m).used_bytes for m, name in enumerate(found.memories)}
    assert peaks == {"cpu": 100, "cuda:0": 200, "cuda:1": 300, "hip:0": 400, "device type 77:2": 500}
    assert (found.op[:] == -1).all()  # no operation was running


def test_what_the_file_does_not_tell_is_unknown(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, [op("aten::mm", 0, 9), mark(1, 64, (CPU, -1), Addr=1)])
    assert payload.verdict
    assert payload.verdict.text == "`cpu` peaks at 64 B, 1.00 µs after the trace's start."
    assert payload.verdict.level == "unknown"
    assert all(
        payload.scalars[name].value is None
        for name in ("capacity_bytes", "free_bytes", "fragmentation_fraction", "lifetime_peak_bytes")
    )


def test_totals_that_are_all_zero_are_replaced_by_the_sums_of_the_sizes(tmp_path: Path) -> None:
    """Of each memory for itself: the CPU's marks have no totals, those of the second GPU zeros."""
    events = [op("aten::mm", 0, 9)]
    for i, size in enumerate((100, 300, -100)):
        events += [
            mark(10 + i, size, (CPU, -1), Addr=i % 2),
            mark(20 + i, size, (CUDA, 0), Addr=i % 2, Total_Allocated=5000 + i),
            mark(30 + i, size, (CUDA, 1), Addr=i % 2, Total_Allocated=0),
        ]
    found = memory_events(opened(tmp_path, events))
    levels = {name: found.heap_bytes[found.of(i)].tolist() for i, name in enumerate(found.memories)}
    assert levels == {"cpu": [100, 400, 300], "cuda:0": [5000, 5001, 5002], "cuda:1": [100, 400, 300]}


@pytest.mark.parametrize(("size", "is_known"), [(0, False), (1, True), (2**53 - 1, True), (2**53, False)])
def test_a_memory_has_a_size_that_a_number_can_hold(tmp_path: Path, size: int, is_known: bool) -> None:
    """Sizes are floats on the page, which hold whole numbers below 2⁵³."""
    content = {
        "traceEvents": [op("aten::mm", 0, 9), mark(1, 1, Addr=1, Total_Allocated=1)],
        "deviceProperties": [{"id": 0, "totalGlobalMem": size}],
    }
    capacity = payload_of(tmp_path, content).scalars["capacity_bytes"].value
    assert capacity == (size if is_known else None)


def test_damaged_marks_do_no_harm(tmp_path: Path) -> None:
    bad = [
        {"ph": "i", "s": "t", "name": "[memory]", "ts": 3, **HOST},
        {"ph": "i", "s": "t", "name": "[memory]", "ts": 3, **HOST, "args": {"Bytes": "many", "Addr": [1]}},
        mark(4, 0),
        mark(5, 7, (2**40, -5), Addr=2**63, Total_Allocated=-3),
        mark(6, 2**62, Total_Allocated=2**70),
    ]
    content = {
        "traceEvents": [op("aten::mm", 0, 9), *bad],
        "deviceProperties": [3, {"id": [1]}, {"id": 0, "totalGlobalMem": "big"}],
    }
    events = memory_events(opened(tmp_path, content))
    assert len(events.start_ps) == 2
    assert (events.heap_bytes >= 0).all()


def test_the_captured_job_leaks_what_was_planted(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    shutil.copyfile(CAPTURED, run / "host.pt.trace.json.gz")
    payload = get_tool("memory_profile").run(Session(str(run), cache=False), None, {})
    rise = next(column for column in payload.tables["memories"].columns if column.name == "floor_rise_bytes")
    assert rise.values.tolist() == [256 * KIB]
    assert payload.verdict
    assert payload.verdict.level == "warn"
    assert "256 KiB per step" in payload.verdict.text
    assert "`aten::zeros`: 2.00 MiB in 8 allocations" in payload.verdict.details[0]
    assert "full after" not in payload.verdict.text  # the capacity of the host is not known


def replay(path: Path) -> dict[str, list[tuple[float, int, int, int]]]:
    """Marks of each memory in the order of time, read in the plainest way: (time, address, bytes, level)."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    names = {CPU: "cpu", CUDA: "cuda", HIP: "hip"}
    found = defaultdict(list)
    for event in events:
        args = event.get("args") or {}
        if event.get("name") == "[memory]" and args.get("Bytes"):
            device = names[args["Device Type"]] + (f":{args['Device Id']}" if args["Device Id"] >= 0 else "")
            found[device].append(
                (event["ts"], args.get("Addr", -1), args["Bytes"], args.get("Total Allocated", -1))
            )
    return {device: sorted(rows, key=lambda row: row[0]) for device, rows in found.items()}


def check(events: MemoryEvents, replayed: dict[str, list[tuple[float, int, int, int]]]) -> None:
    """Peak, number and bytes of what is in use at the peak are those of a direct replay."""
    assert set(events.memories) == set(replayed)
    for m, memory in enumerate(events.memories):
        history = replayed[memory]
        sums = np.cumsum([size for _, _, size, _ in history])
        has_totals = max(level for *_, level in history) > 0
        levels = np.array([level for *_, level in history]) if has_totals else sums - min(0, int(sums.min()))
        mine = memory_peak(events, m)
        assert mine.used_bytes == levels.max()
        at = len(levels) - 1 - int(levels[::-1].argmax())
        live: dict[Any, list[int]] = defaultdict(list)
        for _, address, size, _ in history[: at + 1]:
            key = address if address >= 0 else abs(size)
            if size > 0:
                live[key] = [*(live[key] if address < 0 else []), size]
            elif live[key]:
                live[key].pop()
        active = active_allocations(events, m, mine.at)
        assert int(active.n_occurrences.sum()) == sum(map(len, live.values()))
        assert int(active.total_bytes.sum()) == sum(map(sum, live.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_captures_are_those_of_a_direct_replay(name: str) -> None:
    path = corpus() / name
    check(memory_events(open_trace(str(path))), replay(path))


STEP = st.tuples(st.integers(0, 5), st.sampled_from([64, 128, 4096]), st.booleans(), st.integers(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=60), st.booleans())
def test_any_history_is_that_of_a_direct_replay(
    drawn: list[tuple[int, int, bool, int]], has_addresses: bool
) -> None:
    """Also frees of what nobody saw allocated, and addresses used anew."""
    events: list[Event] = [op("aten::mm", 0, 1)]
    level: dict[int, int] = defaultdict(lambda: 10_000)
    for i, (slot, size, is_new, device) in enumerate(drawn):
        level[device] = max(0, level[device] + (size if is_new else -size))
        told = (
            {"Addr": 1000 + slot, "Total_Allocated": level[device], "Total_Reserved": 2**20}
            if has_addresses
            else {}
        )
        events.append(mark(1 + i, size if is_new else -size, (CUDA, device), **told))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "h.pt.trace.json.gz")
        path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
        check(memory_events(open_trace(str(path))), replay(path))
