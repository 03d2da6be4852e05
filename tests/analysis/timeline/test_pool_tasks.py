"""Tasks of thread pools on the timeline: who enqueued them, how long they waited, on drawn traces."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.lines import derived_lines, facts_of
from tb_tpuprof.analysis.timeline.pool import pool_tasks
from tb_tpuprof.analysis.timeline.timeline import timeline
from tb_tpuprof.analysis.timeline.tracks import tracks
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.golden_files import demo_runs

RECORD, START, STOP = (f"ThreadpoolListener::{name}" for name in ("Record", "StartRegion", "StopRegion"))


def record(at: int, number: int) -> DrawnEvent:
    return event(RECORD, at, 0, _pt=15, _p=number)


def region(at: int, until: int, number: int) -> list[DrawnEvent]:
    return [event(START, at, 0, _ct=15, _c=number), event(STOP, until, 0)]


def drawn() -> Trace:
    """dot (10-30) hands over 1 and 2; while 1 runs (14-40) it hands over 3 itself, which runs at 45-52; add
    (60-70) uses number 1 again, and runs at 63-66. Number 9 was enqueued before the capture.
    """
    lines = {
        "python": [
            event("dot", 10, 20),
            record(12, 1),
            record(13, 2),
            event("add", 60, 10),
            record(61, 1),
        ],
        "pool/1": [*region(14, 40, 1)[:1], record(20, 3), region(14, 40, 1)[1], *region(63, 66, 1)],
        "pool/2": [*region(5, 8, 9), *region(19, 33, 2), *region(45, 52, 3)],
    }
    return build([DrawnPlane("/host:CPU", lines)])


def boxes(trace: Trace) -> list[tuple[str, int, int]]:
    """Name, start and end in µs of the tasks on the timeline."""
    lines = derived_lines(trace)
    (line,) = [i for i, each in enumerate(lines.lines) if each.kind == "pool"]
    span = range(int(lines.line_offsets[line]), int(lines.line_offsets[line + 1]))
    return [
        (
            lines.texts[lines.name[i]],
            int(lines.start_ps[i]) // PS,
            int(lines.start_ps[i] + lines.duration_ps[i]) // PS,
        )
        for i in span
    ]


def test_tasks_are_named_after_what_enqueued_them() -> None:
    assert boxes(drawn()) == [
        ("task", 5, 8),
        ("task of dot", 14, 40),
        ("task of dot", 19, 33),
        ("task of dot", 45, 52),
        ("task of add", 63, 66),
    ]


def test_how_long_they_waited_and_where() -> None:
    trace = drawn()
    tasks = pool_tasks(trace)
    assert [waited // PS if waited >= 0 else -1 for waited in tasks.waited_ps.tolist()] == [-1, 2, 6, 25, 2]
    assert facts_of(trace, 0) == [("ran_on", "pool/2")]
    assert facts_of(trace, 3) == [
        ("enqueued_by", "dot"),
        ("enqueued_on", "pool/1"),
        ("waited_us", "25.000"),
        ("ran_on", "pool/2"),
    ]
    assert facts_of(trace, 4)[1:] == [
        ("enqueued_on", "python"),
        ("waited_us", "2.000"),
        ("ran_on", "pool/1"),
    ]


def test_rows_are_the_tasks_that_ran_at_once() -> None:
    drawn_timeline = timeline(drawn())
    line = next(i for i, each in enumerate(drawn_timeline.derived_events.lines) if each.kind == "pool")
    assert drawn_timeline.derived.n_depths[line] == 2


def test_a_record_after_the_region_is_another_s() -> None:
    lines = {"python": [event("dot", 20, 9), record(22, 1)], "pool/1": region(14, 16, 1)}
    assert boxes(build([DrawnPlane("/host:CPU", lines)])) == [("task", 14, 16)]


def test_records_outside_of_any_event_have_no_name() -> None:
    lines = {"python": [record(3, 1), event("dot", 20, 9)], "pool/1": region(14, 16, 1)}
    trace = build([DrawnPlane("/host:CPU", lines)])
    assert boxes(trace) == [("task", 14, 16)]
    assert facts_of(trace, 0)[0] == ("enqueued_on", "python")


def test_without_marks_there_is_no_line() -> None:
    trace = build([DrawnPlane("/host:CPU", {"python": [event("dot", 1, 2)]})])
    assert not [each for each in derived_lines(trace).lines if each.kind == "pool"]
    assert len(pool_tasks(trace).event) == 0


@pytest.mark.parametrize("run", ["jax_train", "keras_slow_input"])
def test_a_recorded_run_by_a_plain_loop(run: str) -> None:
    """Each region's waiting time from the last record before it with its number."""
    session = Session(str(demo_runs()[run]), cache=False)
    trace = session.trace(session.hosts[0])
    names = [trace.strings[i] for i in trace.event_names.tolist()]
    start = trace.events["start_ps"].tolist()
    metadata = trace.events["metadata"].tolist()
    numbers: dict[str, dict[int, int]] = {}
    for key in ("_p", "_c"):
        sparse = trace.event_stats.ints(key)
        numbers[key] = dict(zip(sparse.owner.tolist(), sparse.value.tolist(), strict=True))
    recorded: dict[int, list[int]] = {}
    for row, number in numbers["_p"].items():
        if names[metadata[row]] == RECORD:
            recorded.setdefault(number, []).append(start[row])
    tasks = pool_tasks(trace)
    assert len(tasks.event) == sum(names[i] == START for i in metadata)
    for row, waited in zip(tasks.event.tolist(), tasks.waited_ps.tolist(), strict=True):
        before = [at for at in recorded.get(numbers["_c"].get(row, -1), ()) if at <= start[row]]
        assert waited == (start[row] - max(before) if before else -1)
    assert (np.diff(tasks.start_ps) >= 0).all()


def test_the_line_stands_above_the_pools_threads() -> None:
    trace = drawn()
    assert [track.name for track in tracks(trace)] == ["python", "Thread Pool", "pool/1", "pool/2"]
