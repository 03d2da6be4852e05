"""When regions of thread pools were recorded by the threads that handed them over."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.events.handed_over import handed_over
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

RECORD, START, STOP = (f"ThreadpoolListener::{word}" for word in ("Record", "StartRegion", "StopRegion"))


def record(start: int, number: int, kind: int = 1) -> DrawnEvent:
    return DrawnEvent(RECORD, start, 1, {"_pt": kind, "_p": number})


def region(start: int, end: int, stats: Stats) -> list[DrawnEvent]:
    return [DrawnEvent(START, start, 0, stats), DrawnEvent(STOP, end, 0)]


def test_an_event_has_the_time_at_which_its_region_was_recorded() -> None:
    """Three regions, recorded in another order than they run; the last one's record was not captured."""
    pool = [
        *region(1000, 1100, {"_ct": 1, "_c": 3}),
        *region(1200, 1400, {"_ct": 1, "_c": 1}),
        *region(1500, 1600, {"_ct": 1, "_c": 9}),
        *region(1700, 1800, {"_ct": 2, "_c": 1}),  # another type of context with the same number
        DrawnEvent("work", 1210, 100),
        DrawnEvent("inner", 1220, 10),
        DrawnEvent("early", 1010, 50),
        DrawnEvent("lost", 1510, 50),
        DrawnEvent("typed", 1710, 50),
        DrawnEvent("outside", 1900, 50),
    ]
    pool.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    main = [record(100, 1), record(200, 2), record(300, 3), record(400, 1, kind=2)]
    trace = build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})])
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    asked = np.array([names.index(name) for name in ("outside", "inner", "early", "lost", "work", "typed")])
    otherwise = -np.arange(1, 7)
    assert handed_over(trace, asked, otherwise).tolist() == [-1, 100, 300, -4, 100, 400]
    assert otherwise.tolist() == [-1, -2, -3, -4, -5, -6]


def test_the_first_region_of_a_trace() -> None:
    """Its start mark is the trace's first event."""
    pool = [*region(1000, 1100, {"_ct": 1, "_c": 3})[:1], DrawnEvent("work", 1010, 5)]
    trace = build([DrawnPlane("/host:CPU", {"pool": pool, "main": [record(100, 3)]})])
    assert handed_over(trace, np.array([1, 0]), np.array([7, 8])).tolist() == [100, 100]


def test_nothing_was_recorded_or_nothing_ran_in_a_region() -> None:
    work = DrawnEvent("work", 1010, 5)
    pool = [*region(1000, 1100, {"_ct": 1, "_c": 3})[:1], work]
    unrecorded = build([DrawnPlane("/host:CPU", {"pool": pool})])
    assert handed_over(unrecorded, np.array([1]), np.array([7])).tolist() == [7]
    without = build([DrawnPlane("/host:CPU", {"main": [record(100, 3)], "pool": [work]})])
    assert handed_over(without, np.array([1]), np.array([7])).tolist() == [7]
    assert handed_over(without, np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
