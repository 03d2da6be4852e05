"""What the trace viewer draws in addition to plain events: counters of XSpaces, and lines that it adds
itself.

Each on a hand-made trace with an obvious answer, then on a real one, compared with what xprof 2.24.2 draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.timeline.counters import counter_samples, counter_unit
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table, table_from_rows
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, drawing
from tests.ingest.xspaces import native, plain
from tests.synthetic import PS_PER_US, PlaneWriter
from tests.tools.trace_viewer.questions import ask, line_named, needs_corpus, real, rows


def read_counters() -> bytes:
    """A TPU with an operation and a line of performance counters: one read twice, one read once, one without
    a number.
    """
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:TPU:0")
    plane.event(plane.line("XLA Ops", 1, 1000), "fusion.1", 0, 8 * PS_PER_US, {})
    line = plane.line("counters_fusion.1", 2, 1000)
    for time_ps, value in ((0, 7), (4 * PS_PER_US, 12)):
        plane.event(line, "CYCLES", time_ps, 0, {"counter_value": value, "performance_counter_id": 3})
    plane.event(line, "STALLS", 0, 0, {"counter_value": 5, "performance_counter_id": 4})
    plane.event(line, "NAMED", 0, 0, {"performance_counter_description": "no number"})
    data: bytes = space.SerializeToString()
    return data


@pytest.mark.parametrize("decode", [native, plain])
def test_performance_counters_are_no_events(decode: Any) -> None:
    trace = decode(read_counters())
    assert [trace.strings[trace.event_names[row]] for row in trace.events["metadata"]] == ["fusion.1"]
    payload = ask(trace)
    tracks = [(track["name"], track["kind"], track["n_events"]) for track in rows(payload, "tracks")]
    assert tracks == [("XLA Ops", "hlo_ops", 1), ("CYCLES", "counter", 2)]
    assert [(row["time_ps"], row["value"]) for row in rows(payload, "counters")] == [
        (0, 7.0),
        (4 * PS_PER_US, 12.0),
    ]
    messages = " ".join(item.message for item in payload.diagnostics)
    assert "1 performance counters were read only once" in messages
    assert "1 counter samples have no number" in messages


# --- counters ---


def sampled() -> bytes:
    """A GPU with a kernel and a line of samples: one counter of one value, one of two, one event without a
    number.
    """
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:GPU:0")
    plane.event(
        plane.line("Stream #1(Compute)", 1, 1000),
        "kernel",
        0,
        8 * PS_PER_US,
        {"correlation_id": 5, "kernel_details": "x"},
    )
    line = plane.line("_counters_", 2, 1000)
    for i, value in enumerate((10.0, 55.5, 20.0)):
        plane.event(
            line,
            "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
            i * 2 * PS_PER_US,
            0,
            {"sm_active": value},
        )
        plane.event(line, "Memory traffic (GB/s)", i * 2 * PS_PER_US, 0, {"read": i, "written": 2 * i + 1})
    plane.event(
        line,
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
        7 * PS_PER_US,
        0,
        {"sm_active": float("nan")},
    )
    data: bytes = space.SerializeToString()
    return data


@pytest.mark.parametrize("decode", [native, plain])
def test_a_line_of_samples_becomes_counters(decode: Any) -> None:
    trace = decode(sampled())
    assert trace.n_events == 1
    payload = ask(trace)
    tracks = [track for track in rows(payload, "tracks") if track["kind"] == "counter"]
    arguments = {
        track["name"]: (track["n_events"], track["min_value"], track["max_value"], track["unit"])
        for track in tracks
    }
    assert arguments == {
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed": (3, 10.0, 55.5, "%"),
        "Memory traffic (GB/s): read": (3, 0.0, 2.0, "GB/s"),
        "Memory traffic (GB/s): written": (3, 1.0, 5.0, "GB/s"),
    }
    assert {track["section"] for track in tracks} == {"GPU:0"}
    active = next(track["track"] for track in tracks if track["unit"] == "%")
    samples = [(row["time_ps"], row["value"]) for row in rows(payload, "counters") if row["track"] == active]
    assert samples == [(0, 10.0), (2_000_000, 55.5), (4_000_000, 20.0)]
    assert "1 counter samples have no number" in payload.diagnostics[0].message
    (box,) = [row for row in rows(payload, "boxes") if row["family"] == 4]
    assert box["name"] == "kernel"  # samples are no kernels


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=200),
    st.integers(0, 300),
    st.integers(1, 300),
    st.integers(1, 40),
    st.randoms(),
)
def test_of_two_pixels_the_lowest_and_the_highest_value_are_kept(
    times: list[int], start: int, length: int, pixel: int, random: Any
) -> None:
    times = sorted(times)
    values = [float(random.randint(-50, 50)) for _ in times]
    trace = _counter(np.array(times), np.array(values))
    kept_ps, kept_values = counter_samples(trace, 0, start, start + length, pixel)
    pairs = list(zip(kept_ps.tolist(), kept_values.tolist(), strict=True))
    assert set(pairs) <= set(zip(times, values, strict=True))
    assert len(pairs) <= 3 * (length // (2 * pixel) + 2)
    before = [value for time, value in zip(times, values, strict=True) if time <= start]
    inside = [
        (time, value) for time, value in zip(times, values, strict=True) if start <= time < start + length
    ]
    for bucket in {(time - start) // (2 * pixel) for time, _ in inside}:
        in_bucket = [value for time, value in inside if (time - start) // (2 * pixel) == bucket]
        shown = [value for time, value in pairs if time >= start and (time - start) // (2 * pixel) == bucket]
        assert (min(shown), max(shown), shown[-1]) == (min(in_bucket), max(in_bucket), in_bucket[-1])
    if before and times[0] < start and not any(time == start for time in times):
        assert pairs[0][1] == before[-1]


def _counter(times: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Trace:
    from dataclasses import replace

    trace = drawing("main [a]")
    counters = table_from_rows(schema.COUNTERS, [(0, trace.strings.find("a"), -1, 0, len(times))])
    return replace(
        trace,
        counters=counters,
        samples=Table(schema.SAMPLES, {"time_ps": times.astype(np.int64), "value": values}),
    )


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("SM Active (%)", "%"),
        ("dram__bytes_read.sum.per_second", "bytes_per_s"),
        ("Bytes In Use", "bytes"),
        ("Power (W)", "W"),
        ("Wavefronts Launched (Count)", ""),
        ("ctr[0xbeef]", ""),
        ("sm__warps_active.avg.pct_of_peak", "%"),
        ("occupancy", ""),
        ("Free [MiB]", "MiB"),
        ("specpct_", ""),
        ("counter[b]", ""),
    ],
)
def test_a_counters_name_tells_its_unit(name: str, unit: str) -> None:
    assert counter_unit(name) == unit


# --- lines that are added ---


LAUNCHED = """
    python     [train    ][train              ]
    python      [l1][l2]    [l3]
    /device:GPU:0:
    Stream #1(Compute)  [k1]   <k2>  <k3>
    /device:GPU:1:
    Stream #2(Compute)         [k4]
"""


def launched() -> Trace:
    stats: dict[str, Any] = {"train": [{"_r": 1, "step_num": i} for i in range(2)]}
    stats |= {f"{kind}{i}": {"correlation_id": i} for i in (1, 2, 3) for kind in "lk"}
    return drawing(LAUNCHED, {**stats, "k4": {"correlation_id": 2}})


def test_launches_of_a_step_are_summed_up_by_device() -> None:
    payload = ask(launched())
    boxes = line_named(payload, "Launch Stats")
    assert [(box["section"], box["name"], box["duration_ps"] // PS) for box in boxes] == [
        ("GPU:0", "Launch Stats for train 0", 8),
        ("GPU:0", "Launch Stats for train 1", 4),
        ("GPU:1", "Launch Stats for train 0", 4),
    ]
    arguments = {
        row["name"]: row["value"]
        for row in rows(ask(launched(), question="event", event=boxes[0]["event"]), "arguments")
    }
    # l1 ends as its kernel's fourth character begins; l2's kernel waits longer.
    launch_end = {name: LAUNCHED.splitlines()[2].index(f"[{name}]") + 4 for name in ("l1", "l2")}
    kernel_start = {name: LAUNCHED.splitlines()[4].index(name) - 1 for name in ("k1", "k2")}
    waits = [kernel_start["k1"] - launch_end["l1"], kernel_start["k2"] - launch_end["l2"]]
    assert arguments["num_launches"] == "2"
    assert arguments["max_launch_time_us"] == arguments["avg_launch_time_us"] == "4.000"
    assert arguments["max_launch_latency_us"] == f"{max(waits):.3f}"
    assert arguments["avg_launch_latency_us"] == f"{sum(waits) / 2:.3f}"
    order = [track["name"] for track in rows(payload, "tracks") if track["section"] == "GPU:0"]
    assert order[:2] == ["Steps", "Launch Stats"]


@needs_corpus
def test_launches_of_a_real_step_are_those_of_its_kernels() -> None:
    session = real("xprof_gpu_multi_worker/plugins/profile/GPU-multi-worker")
    host = session.hosts[0]
    boxes = line_named(TOOL.run(session, [host], {}), "Launch Stats")
    assert [(box["section"], box["name"]) for box in boxes] == [
        ("GPU:4", "Launch Stats for 0"),
        ("GPU:6", "Launch Stats for 0"),
    ]
    for box in boxes:
        arguments = {
            row["name"]: row["value"]
            for row in rows(TOOL.run(session, [host], {"event": box["event"]}, "event"), "arguments")
        }
        kernels = [
            event
            for event, kind in zip(
                *_kernels_of_step(session.trace(host), f"/device:{box['section']}"), strict=True
            )
            if kind
        ]
        assert arguments["num_launches"] == str(len(kernels)) == "671"


def _kernels_of_step(trace: Trace, plane: str) -> tuple[list[int], list[bool]]:
    """Events of a device's streams that have a host event with their correlation id, and whether that is in a
    step.
    """
    owner, value = trace.event_stats.ints("correlation_id")
    group = dict(zip(*(column.tolist() for column in trace.event_stats.ints("group_id")), strict=True))
    plane_of = [trace.plane_names[i] for i in trace.lines["plane"][trace.event_line[owner]].tolist()]
    launch = {
        key: event
        for event, key, name in zip(owner.tolist(), value.tolist(), plane_of, strict=True)
        if name == "/host:CPU"
    }
    in_step = [
        (e, k)
        for e, k, name in zip(owner.tolist(), value.tolist(), plane_of, strict=True)
        if name == plane and k in launch
    ]
    return [event for event, _ in in_step], [launch[key] in group for _, key in in_step]


def offloading() -> Trace:
    """One core: transfers 5 (twice, at once with 0) and one whose start is before the capture;
    `copy-start.9` stays on the device.
    """
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:TPU:0")
    host = "= (f32[8]{0:S(5)}, f32[8]{0}) copy-start(...)"
    for name in ("copy-start.5", "copy-done.5", "dynamic-slice-start", "dynamic-slice-done", "copy-done.7"):
        size: dict[str, Any] = (
            {"raw_bytes_accessed": 4096} if "done" in name else {"shape_with_layout": "f32[8]{0:S(5)}"}
        )
        plane.metadata(f"%{name} {host}", size, name)
    plane.metadata("%copy-start.9 = (f32[8]{0})", {}, "copy-start.9")
    modules, ops = plane.line("XLA Modules", 1, 1000), plane.line("XLA Ops", 2, 1000)
    plane.event(modules, "jit_step", 0, 100 * PS_PER_US)
    for name, start, duration in (
        ("copy-done.7", 0, 4),
        ("copy-start.5", 5, 1),
        ("dynamic-slice-start", 6, 0),
        ("copy-start.9", 8, 2),
        ("copy-done.5", 20, 5),
        ("dynamic-slice-done", 25, 1),
        ("copy-start.5", 40, 1),
        ("copy-done.5", 50, 50),
    ):
        text = "%copy-start.9 = (f32[8]{0})" if name == "copy-start.9" else f"%{name} {host}"
        plane.event(ops, text, start * PS_PER_US, duration * PS_PER_US)
    return native(space.SerializeToString())


def test_transfers_to_the_hosts_memory_span_from_start_to_done() -> None:
    payload = ask(offloading())
    boxes = line_named(payload, "Host Offload Ops")
    assert [
        (box["name"], box["start_ps"] // PS_PER_US, box["duration_ps"] // PS_PER_US, box["depth"])
        for box in boxes
    ] == [
        ("offload-copy.5", 5, 20, 0),
        ("offload-copy.5", 40, 60, 0),
        ("offload-dynamic-slice.0", 6, 20, 1),
    ]
    arguments = {
        row["name"]: row["value"]
        for row in rows(ask(offloading(), question="event", event=boxes[0]["event"]), "arguments")
    }
    names = [
        row["name"] for row in rows(ask(offloading(), question="event", event=boxes[0]["event"]), "arguments")
    ]
    assert len(names) == len(set(names))  # those of the start are not reported twice
    assert (arguments["shape_with_layout"], arguments["raw_bytes_accessed"], arguments["waited_for_us"]) == (
        "f32[8]{0:S(5)}",
        "4096",
        "5.000",
    )


def test_stretches_of_a_program_without_an_operation_are_its_overhead() -> None:
    boxes = line_named(ask(offloading()), "XLA Overhead")
    assert [
        (box["name"], box["start_ps"] // PS_PER_US, (box["start_ps"] + box["duration_ps"]) // PS_PER_US)
        for box in boxes
    ] == [
        ("no operation of jit_step", start, end)
        for start, end in ((4, 5), (6, 8), (10, 20), (26, 40), (41, 50))
    ]


@needs_corpus
def test_transfers_and_gaps_of_a_real_tpu() -> None:
    session = real("xprof_tpu_inference_2_old/plugins/profile/run")
    payload = TOOL.run(session, None, {"width_px": 20_000})
    sizes = {(track["section"], track["name"]): track["n_events"] for track in rows(payload, "tracks")}
    # xprof 2.24.2 draws the same 2,400 transfers, on four lines a core (the times of all but one agree to the
    # nanosecond).
    assert [sizes[f"TPU:{core}", "Host Offload Ops"] for core in range(4)] == [600] * 4
    # Cores that came first to a collective waited for the last one before their first operation: 341 ms on
    # core 2.
    longest = max(line_named(payload, "XLA Overhead"), key=lambda box: box["duration_ps"])
    assert (longest["section"], longest["name"].partition("(")[0]) == ("TPU:2", "no operation of jit__psum")
    assert longest["duration_ps"] == 340_977_878_672


def test_a_line_that_the_file_has_is_not_made_again() -> None:
    trace = drawing(
        "/device:TPU:0:\nXLA Modules [jit_step       ]\nXLA Ops [a]    [b]\nXLA Overhead      <own>"
    )
    assert [box["name"] for box in line_named(ask(trace), "XLA Overhead")] == ["own"]


def test_what_of_a_chip_is_no_core_stands_below_its_cores() -> None:
    space = xspace_class()()
    for name, line in (
        ("#Chip TPU:0 HBM", "_counters_"),
        ("/device:TPU:1", "XLA Ops"),
        ("/device:TPU:0", "XLA Ops"),
        ("/host:CPU", "main"),
    ):
        plane = PlaneWriter(space, name)
        plane.event(plane.line(line, 1, 1000), "HBM utilization (%)", 0, PS, {"value": 4})
    payload = ask(native(space.SerializeToString()))
    assert [(track["section"], track["kind"]) for track in rows(payload, "tracks")] == [
        ("TPU:0", "hlo_ops"), ("Chip TPU:0 HBM", "counter"), ("TPU:1", "hlo_ops"), ("Host threads", "thread"),
    ]  # fmt: skip


def test_a_step_that_is_called_by_its_number_is_not_numbered_twice() -> None:
    trace = drawing("/device:TPU:0:\nSteps [7  ][x  ]", {"7": {"step_num": 7}, "x": {"step_num": 8}})
    assert [box["name"] for box in rows(ask(trace), "boxes")] == ["7", "x 8"]
