"""Who allocated what a memory holds: modules by phase and operations, on a trace written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.flame.module_contents import module_contents
from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.analysis.memory.holders import allocations, holders
from tests.analysis.flame.test_modules import ENGINE, EVENTS, MAIN, call, trace_of

OUTSIDE = "(outside of modules)"


def mark(
    start: float, address: int, size: int, total: int, tid: int = MAIN, device: int = 1
) -> dict[str, Any]:
    """An allocation at an address, or with a negative size its end."""
    args = {"Bytes": size, "Device Type": device, "Device Id": 0, "Addr": address, "Total Allocated": total}
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": tid, "ts": start, "args": args}


# 1000 bytes are there before the capture, of which 400 are freed in it.
MARKS = [
    mark(23, 1, 500, 1500),  # Linear_0, freed by the optimizer
    mark(26, 2, 300, 1800),  # Linear_0, freed at once
    mark(31, 2, -300, 1500),
    mark(53, 3, 2000, 3500),  # Linear_1, freed in the backward pass
    mark(91, 4, 50, 3550),  # Net_0 itself, kept
    mark(105, 5, 7, 3557),  # outside, kept
    mark(110, 99, -400, 3157),  # from before
    mark(126, 6, 70, 3227, ENGINE),  # the gradient of Linear_1's product, kept: the peak is before
    mark(130, 3, -2000, 1227, ENGINE),
    mark(155, 7, 40, 1267, ENGINE),  # tied to nothing, kept
    mark(180, 8, 6, 1273),  # the optimizer's, freed
    mark(182, 8, -6, 1267),
    mark(184, 1, -500, 767),
    mark(24, 50, 9_999, 9_999, device=0),
]
# (module, phase): allocated, number, in use, number, kept, number, at most, in use with submodules
AT_PEAK = {
    ("Net_0/Linear_1", "forward"): (2000, 1, 2000, 1, 0, 0, 2000, 2000),
    ("Net_0/Linear_0", "forward"): (800, 2, 500, 1, 0, 0, 800, 500),
    ("Net_0", "forward"): (50, 1, 50, 1, 50, 1, 50, 2550),
    (OUTSIDE, "forward"): (7, 1, 7, 1, 7, 1, 7, 7),
    ("Net_0/Linear_1", "backward"): (70, 1, 0, 0, 70, 1, 70, 0),
    (OUTSIDE, "backward"): (40, 1, 0, 0, 40, 1, 40, 0),
    (OUTSIDE, "optimizer"): (6, 1, 0, 0, 0, 0, 6, 0),
    ("Net_0", "backward"): (0, 0, 0, 0, 0, 0, 0, 0),
}


def found(folder: Path, at_us: float) -> dict[tuple[str, str], tuple[int, ...]]:
    trace = trace_of(folder, [*EVENTS, *MARKS])
    events = memory_events(trace)
    memory = events.memories.index("cuda:0")
    span = events.of(memory)
    times = (events.start_ps[span] + 10 * 1_000_000) // 1_000_000  # the trace begins at 10 µs
    event = span.start + int((times <= at_us).sum()) - 1
    contents = module_contents(trace, events, memory, event)
    assert contents is not None
    held = contents.held
    columns = (
        held.allocated_bytes,
        held.n_allocated,
        held.at_bytes,
        held.n_at,
        held.kept_bytes,
        held.n_kept,
        held.most_bytes,
        contents.with_inner_bytes,
    )
    return {
        ("/".join(contents.layers(row)), contents.phase(row)): tuple(int(column[row]) for column in columns)
        for row in range(len(contents))
    }


def test_modules_hold_what_they_allocated(tmp_path: Path) -> None:
    rows = found(tmp_path, 105)
    assert rows == AT_PEAK
    assert sum(row[2] for row in rows.values()) == 3557 - 1000


@pytest.mark.parametrize(
    ("at_us", "in_use"),
    [
        (23, {("Net_0/Linear_0", "forward"): 500}),
        (26, {("Net_0/Linear_0", "forward"): 800}),
        (
            300,
            {
                ("Net_0", "forward"): 50,
                (OUTSIDE, "forward"): 7,
                ("Net_0/Linear_1", "backward"): 70,
                (OUTSIDE, "backward"): 40,
            },
        ),
    ],
)
def test_modules_at_other_moments(tmp_path: Path, at_us: float, in_use: dict[tuple[str, str], int]) -> None:
    rows = found(tmp_path, at_us)
    assert {key: row[2] for key, row in rows.items() if row[2]} == in_use
    with_inner = {key: row[7] for key, row in rows.items()}
    assert with_inner[("Net_0", "backward")] == in_use.get(("Net_0/Linear_1", "backward"), 0)


def test_operations_hold_what_they_allocated(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [*EVENTS, *MARKS])
    events = memory_events(trace)
    memory = events.memories.index("cuda:0")
    rows = allocations(events, memory)
    assert len(rows) == 8
    held = holders(events, rows, events.op[rows], events.of(memory).stop - 1)
    names = [events.strings.get(key) if key >= 0 else "" for key in held.key.tolist()]
    shown = dict(
        zip(
            names,
            zip(
                held.allocated_bytes.tolist(), held.kept_bytes.tolist(), held.most_bytes.tolist(), strict=True
            ),
            strict=True,
        )
    )
    assert shown["aten::mm"] == (2800, 0, 2500)
    engine = "autograd::engine::evaluate_function: "
    assert shown[f"{engine}MmBackward0/MmBackward0"] == (70, 70, 70)
    assert shown[f"{engine}AccumulateGrad"] == (40, 40, 40)
    assert sum(sizes[1] for sizes in shown.values()) == 767 - 600
    assert held.at_bytes.tolist() == held.kept_bytes.tolist()


def test_modules_three_deep_hold_what_is_inside(tmp_path: Path) -> None:
    """5 bytes in a layer of the first block, 7 in the second block itself, 11 in a layer of it, 13 in the
    net.
    """
    modules = [
        call("nn.Module: Net_0", "python_function", 10, 90),
        call("nn.Module: Block_0", "python_function", 12, 20),
        call("nn.Module: Linear_0", "python_function", 14, 10),
        call("nn.Module: Block_1", "python_function", 40, 40),
        call("nn.Module: Linear_1", "python_function", 50, 20),
        *(call("aten::mm", "cpu_op", at, 2) for at in (15, 42, 52, 85)),
    ]
    sizes = {16: 5, 43: 7, 53: 11, 86: 13}
    marks, total = [], 0
    for address, (at, size) in enumerate(sizes.items(), 1):
        total += size
        marks.append(mark(at, address, size, total))
    trace = trace_of(tmp_path, [*modules, *marks])
    events = memory_events(trace)
    contents = module_contents(trace, events, 0, 3)
    assert contents is not None
    rows = {
        "/".join(contents.layers(row)): (
            int(contents.held.at_bytes[row]),
            int(contents.with_inner_bytes[row]),
        )
        for row in range(len(contents))
    }
    assert rows == {
        "Net_0": (13, 36),
        "Net_0/Block_0": (0, 5),
        "Net_0/Block_0/Linear_0": (5, 5),
        "Net_0/Block_1": (7, 18),
        "Net_0/Block_1/Linear_1": (11, 11),
    }


def test_a_trace_without_modules_or_without_memory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    trace = trace_of(tmp_path / "a", [call("aten::mm", "cpu_op", 20, 10), *MARKS])
    events = memory_events(trace)
    assert module_contents(trace, events, 0, 0) is None
    trace = trace_of(tmp_path / "b", [*EVENTS])
    assert not len(memory_events(trace).event)


def test_an_address_that_is_allocated_again(tmp_path: Path) -> None:
    """Its first allocation has ended then, though nothing says so."""
    marks = [mark(23, 1, 500, 500), mark(53, 1, 2000, 2000), mark(91, 2, 30, 2030)]
    trace = trace_of(tmp_path, [*EVENTS, *marks])
    events = memory_events(trace)
    contents = module_contents(trace, events, 0, 2)
    assert contents is not None
    rows = {
        "/".join(contents.layers(row)): (int(contents.held.at_bytes[row]), int(contents.held.most_bytes[row]))
        for row in range(len(contents))
    }
    assert rows == {"Net_0/Linear_1": (2000, 2000), "Net_0": (30, 30), "Net_0/Linear_0": (0, 500)}
