from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_profile.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.units import format_bytes
from tests.builders import DrawnEvent, DrawnPlane, build, drawing
from tests.payload_columns import table
from tests.synthetic import write_run
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace
from tests.tools.drawn_session import session_of

KIB, MS = 1024, 1_000_000_000


def run_of(folder: Path, **hosts: MemoryJob) -> Session:
    files = {
        host.replace("_", "-"): memory_xspace(job, host.replace("_", "-")) for host, job in hosts.items()
    }
    return Session(str(write_run(folder / "run", files)), cache=False)


def value(payload: Payload, name: str) -> object:
    return payload.scalars[name].value


def test_numbers_are_those_that_were_planted(tmp_path: Path) -> None:
    payload = TOOL.run(run_of(tmp_path, host=MemoryJob()), None, {})
    used = (4096 + 3 * 256) * KIB
    assert (value(payload, "peak_bytes"), value(payload, "heap_bytes"), value(payload, "stack_bytes")) == (
        used,
        used,
        0,
    )
    assert (value(payload, "n_allocations"), value(payload, "n_deallocations")) == (60, 60)
    assert value(payload, "capacity_bytes") == 64 * 1024 * KIB
    assert value(payload, "free_bytes") == 64 * 1024 * KIB - used
    assert value(payload, "lifetime_peak_bytes") == used
    assert value(payload, "fragmentation_fraction") == pytest.approx(used / (64 * 1024 * KIB), abs=1e-6)
    assert value(payload, "peak_ps") == 19 * MS + 140 * MS // 1000  # the last of 20 equal peaks
    assert "in train 19" in payload.scalars["peak_bytes"].note


def test_the_table_of_the_peak(tmp_path: Path) -> None:
    active = table(TOOL.run(run_of(tmp_path, host=MemoryJob()), None, {}), "active")
    assert active["op"] == ["(allocated before the capture)", "model/dense/MatMul"]
    assert active["total_bytes"] == [4096 * KIB, 768 * KIB]
    assert active["n_occurrences"][1] == 3
    assert np.isnan(active["n_occurrences"][0])  # type: ignore[call-overload]
    assert [
        active[key][1] for key in ("allocation_bytes", "requested_bytes", "dtype", "shape", "region", "step")
    ] == [
        256 * KIB,
        256 * KIB - 6,
        "float32",
        "[65536]",
        "output",
        "train 19",
    ]
    assert sum(active["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]


def test_another_moment(tmp_path: Path) -> None:
    session = run_of(tmp_path, host=MemoryJob())
    payload = TOOL.run(session, None, {"at_ps": 5 * MS + 130 * MS // 1000})
    active = table(payload, "active")
    assert active["n_occurrences"][1] == 2
    assert payload.tables["active"].title == "In use at 5.13 ms"
    assert value(payload, "peak_bytes") == value(TOOL.run(session, None, {}), "peak_bytes")


def test_stack_is_a_row_and_part_of_the_peak(tmp_path: Path) -> None:
    payload = TOOL.run(
        run_of(tmp_path, host=MemoryJob(stack_bytes=16 * 1024 * KIB, is_tpu=True, n_memories=2)), None, {}
    )
    assert value(payload, "peak_bytes") == (16 * 1024 + 4096 + 768) * KIB
    assert table(payload, "active")["op"][0] == "(stack)"
    assert table(payload, "memories")["memory"] == ["device 0", "device 1"]


def test_windows_are_read_anew_and_keep_the_peak(tmp_path: Path) -> None:
    session = run_of(tmp_path, host=MemoryJob(n_steps=400))
    whole_trace = TOOL.run(session, None, {"width_px": 50})
    n_all = value(whole_trace, "n_events_in_window")
    assert n_all == 400 * 6
    shown = whole_trace.tables["timeline"]
    assert shown.n_rows <= 151
    assert "of 2,400 events" in shown.note
    assert max(table(whole_trace, "timeline")["heap_bytes"]) == value(whole_trace, "peak_bytes")  # type: ignore[type-var]
    part = TOOL.run(session, None, {"start_ps": 100 * MS, "end_ps": 102 * MS, "width_px": 50})
    history = table(part, "timeline")
    assert value(part, "n_events_in_window") == 12
    assert len(history["start_ps"]) == 13  # the level before the window, too
    assert history["activity"][1:4] == ["Allocation"] * 3
    assert history["op"][1:7] == ["model/dense/MatMul"] * 6
    assert part.tables["timeline"].note == "12 events"


def test_all_hosts_and_devices_stand_side_by_side(tmp_path: Path) -> None:
    session = run_of(
        tmp_path, worker_0=MemoryJob(n_memories=2), worker_1=MemoryJob(n_memories=2, weights_bytes=9000 * KIB)
    )
    payload = TOOL.run(session, None, {})
    memories = table(payload, "memories")
    assert list(zip(memories["host"], memories["memory"], strict=True)) == [
        ("worker-1", "GPU_0_bfc"),
        ("worker-1", "GPU_1_bfc"),
        ("worker-0", "GPU_0_bfc"),
        ("worker-0", "GPU_1_bfc"),
    ]
    small = table(payload, "history")
    assert set(small["row"]) == {0, 1, 2, 3}
    for row, peak in enumerate(memories["peak_bytes"]):
        assert (
            max(used for r, used in zip(small["row"], small["used_bytes"], strict=True) if r == row) == peak
        )  # type: ignore[type-var]
    assert value(payload, "row") == 0
    chosen = TOOL.run(session, None, {"memory": "worker-0/GPU_1_bfc"})
    assert (value(chosen, "row"), value(chosen, "peak_bytes")) == (3, (4096 + 768) * KIB)
    assert value(TOOL.run(session, ["worker-0"], {}), "peak_bytes") == (4096 + 768) * KIB


def test_a_planted_leak_is_told_per_step_with_what_leaks(tmp_path: Path) -> None:
    payload = TOOL.run(run_of(tmp_path, host=MemoryJob(leak_bytes=64 * KIB)), None, {})
    assert payload.verdict
    assert payload.verdict.level == "warn"
    assert payload.verdict.text.startswith(
        "Possible leak: what stays in use in `GPU_0_bfc` rises by 64.0 KiB per step over the last 14 steps; "
        "at this rate the memory is full after"
    )
    assert "`cache/Append`: 896 KiB in 14 allocations" in payload.verdict.details[0]
    assert payload.verdict.details[1].startswith("`GPU_0_bfc` peaks at ")
    assert table(payload, "memories")["floor_rise_bytes"] == [64 * KIB]
    floor = table(payload, "floor")
    assert floor["is_warm_up"] == [True] * 4 + [False] * 14  # the first and the last of 20 steps are left out
    assert np.diff(floor["floor_bytes"][4:]).tolist() == [64 * KIB] * 13  # type: ignore[arg-type]


def test_steps_that_no_device_ran_are_the_annotations(tmp_path: Path) -> None:
    space = (
        memory_xspace(MemoryJob(leak_bytes=64 * KIB)) + kernels_xspace()
    )  # messages put together: planes of both
    payload = TOOL.run(Session(str(write_run(tmp_path / "run", {"h": space})), cache=False), None, {})
    assert table(payload, "floor")["step"] == [f"train {i}" for i in (0, *range(20))]
    assert payload.verdict
    assert "64.0 KiB per step" in payload.verdict.text


def test_a_leak_of_another_memory_is_told_too(tmp_path: Path) -> None:
    session = run_of(
        tmp_path, good=MemoryJob(weights_bytes=20_000 * KIB), leaks=MemoryJob(leak_bytes=64 * KIB)
    )
    verdict = TOOL.run(session, None, {}).verdict
    assert verdict
    assert verdict.details == ("The floor also rises in `leaks/GPU_0_bfc`.",)


def test_a_steady_job_is_not_accused(tmp_path: Path) -> None:
    payload = TOOL.run(run_of(tmp_path, host=MemoryJob()), None, {})
    assert payload.verdict
    assert payload.verdict.level == "good"
    (sentence,) = payload.verdict.details
    peak, capacity = (payload.scalars[name].value for name in ("lifetime_peak_bytes", "capacity_bytes"))
    assert (
        sentence
        == f"Memory is not a constraint: at least {format_bytes(capacity - peak)} was free at all times since the "
        "process started."
    )
    assert table(payload, "memories")["floor_rise_bytes"] == [0]


def test_a_full_memory_is_a_warning(tmp_path: Path) -> None:
    payload = TOOL.run(run_of(tmp_path, host=MemoryJob(weights_bytes=60 * 1024 * KIB)), None, {})
    assert payload.verdict
    assert payload.verdict.level == "warn"
    assert any("Little memory is left" in text for text in payload.verdict.details)


@pytest.mark.parametrize("params", [{"memory": "GPU_9_bfc"}, {"start_ps": 5, "end_ps": 5}, {"width_px": 0}])
def test_bad_parameters_are_refused(tmp_path: Path, params: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        TOOL.run(run_of(tmp_path, host=MemoryJob(n_steps=1)), None, params)


def test_an_unknown_memory_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    session = run_of(tmp_path, b=MemoryJob(), a=MemoryJob(), c=MemoryJob())
    with pytest.raises(BadParameter) as refused:
        TOOL.run(session, None, {"memory": "nowhere"})
    names = refused.value.remedy.partition("one of ")[2].rstrip(".").split(", ")
    assert [name.partition("/")[0] for name in names] == ["a", "b", "c"]


def two_allocations(levels: tuple[int, int]) -> Session:
    """Of 70 bytes each, with the levels that the allocator reports after them."""
    events = [
        DrawnEvent(
            "MemoryAllocation",
            10 * i,
            0,
            {"allocator_name": "x", "addr": i, "allocation_bytes": 70, "bytes_allocated": level},
        )
        for i, level in enumerate(levels)
    ]
    return session_of(build([DrawnPlane("/host:CPU", {"main": events})]))


def test_missing_deallocations_are_named() -> None:
    assert not TOOL.run(two_allocations((100, 170)), None, {}).diagnostics
    (diagnostic,) = TOOL.run(two_allocations((100, 100)), None, {}).diagnostics
    assert diagnostic.severity == "warning"
    assert "exceed the heap by 40 B at the peak: deallocations are missing" in diagnostic.message


def test_without_events_it_says_why() -> None:
    session = session_of(drawing("main [x ]"))
    assert "no memory allocations" in TOOL.available(session).reason
    with pytest.raises(ToolUnavailable):
        TOOL.run(session, None, {})
