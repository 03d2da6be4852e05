"""The line of source code of XLA:CPU programs, on a real run: each box is called as the HLO of its own
operation tells.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.derived import SOURCE_LINE, _Columns, _fill, derived
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace

DEMO = Path(__file__).resolve().parents[3] / "demo_logs"


@pytest.fixture(scope="module")
def trace() -> Trace:
    (path,) = (DEMO / "jax_train").rglob("*.xplane.pb")
    return open_trace(str(path))


def told_by_hlo(trace: Trace, event: int) -> str:
    """`file:line` of the innermost frame of the instruction that an event names, by way of the event's own
    stats.
    """
    stats = dict(trace.source.event_stats(trace, event))
    program = trace.programs.find(str(stats["hlo_module"]))
    module = trace.programs.module(program) if program else None
    if module is None:
        return ""
    row = module.find(str(stats["hlo_op"]))
    stack = module.frames.stack(int(module.instructions["stack_frame"][row])) if row >= 0 else []
    return f"{stack[0].file}:{stack[0].line}" if stack else ""


def test_boxes_are_called_by_the_source_of_their_operations(trace: Trace) -> None:
    lines = derived(trace)
    (own,) = [i for i, line in enumerate(lines.lines) if line.name == SOURCE_LINE]
    assert lines.lines[own].plane in {
        int(trace.lines["plane"][line]) for line in trace.event_line[lines.source].tolist()
    }
    boxes = range(int(lines.line_offsets[own]), int(lines.line_offsets[own + 1]))
    names = {lines.texts[int(lines.name[box])] for box in boxes}
    assert len(names) > 3
    for box in boxes:
        event = int(lines.source[box])
        assert lines.texts[int(lines.name[box])] == told_by_hlo(trace, event)
        assert int(lines.start_ps[box]) == int(trace.events["start_ps"][event])
    ops = np.unique(trace.event_stats.texts("hlo_op").owner).tolist()
    assert names == {told_by_hlo(trace, event) for event in ops} - {""}


def test_boxes_lie_in_order_of_start_the_longest_first(trace: Trace) -> None:
    lines = derived(trace)
    for first, last in pairwise(lines.line_offsets.tolist()):
        start, duration = lines.start_ps[first:last], lines.duration_ps[first:last]
        np.testing.assert_array_equal(np.lexsort((-duration, start)), np.arange(last - first))


@pytest.mark.parametrize("ascends", [True, False])
def test_boxes_that_begin_together_are_sorted_by_length_and_keep_what_belongs_to_them(ascends: bool) -> None:
    rng = np.random.default_rng(3)
    start, duration = rng.integers(0, 200, 400), rng.integers(0, 5, 400)
    if ascends:
        start.sort()
    numbers = np.arange(400, dtype=np.int32)
    room = _Columns(
        np.empty(500, np.int64), np.empty(500, np.int64), np.empty(500, np.int32), np.empty(500, np.int32)
    )

    def fill(columns: _Columns) -> None:
        columns.start_ps[:], columns.duration_ps[:], columns.name[:], columns.source[:] = (
            start,
            duration,
            numbers,
            -numbers,
        )

    _fill(fill, room, (50, 450))
    order = np.lexsort((-duration, start))
    np.testing.assert_array_equal(room.start_ps[50:450], start[order])
    np.testing.assert_array_equal(room.duration_ps[50:450], duration[order])
    np.testing.assert_array_equal(room.name[50:450], order)
    np.testing.assert_array_equal(room.source[50:450], -order)
