"""Halves of asynchronous operations: which done ends which start, and how long each pair is in flight."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

P7: Stats = {"program_id": 7}
P8: Stats = {"program_id": 8}


def trace_of(*cores: list[tuple[str, int, int]], stats: dict[str, Stats]) -> Trace:
    """Cores with operations (name, start, duration)."""
    return build(
        [
            DrawnPlane(
                f"/device:TPU:{i}",
                {"XLA Ops": [DrawnEvent(*one) for one in events]},
                metadata_stats=stats,
            )
            for i, events in enumerate(cores)
        ]
    )


def names_of(trace: Trace) -> list[str]:
    return [trace.strings[i].partition(" = ")[0] for i in trace.metadata["name"].tolist()]


FIRST, FIRST_DONE = (
    "%copy-start.1 = f32[2] copy-start(%p)",
    "%copy-done.8 = f32[2] copy-done(f32[2] %copy-start.1)",
)
SAME, SAME_DONE = "slice-start.2.clone", "slice-done.2.clone"
OTHER_PROGRAM = "send-start.3"
DONE_ALONE, START_ALONE = "recv-done.3", "all-reduce-start.4"
NO_PROGRAM, NO_PROGRAM_DONE = "copy-start.5", "copy-done.5"
NOT_HALVES = ("a-starting.1", "my fusion-start", "done-start", "copy-start.6(x)")
STATS = dict.fromkeys(
    (FIRST, FIRST_DONE, SAME, SAME_DONE, DONE_ALONE, START_ALONE, "send-done.3", *NOT_HALVES), P7
) | {OTHER_PROGRAM: P8}


def test_dones_find_their_starts() -> None:
    """By the operand in the text, else by the own name; on the same core and in the same program."""
    events = [
        (FIRST, 0, 1),
        (SAME, 10, 1),
        (OTHER_PROGRAM, 20, 1),
        (DONE_ALONE, 30, 1),
        (START_ALONE, 40, 1),
        (NO_PROGRAM, 50, 1),
        (NO_PROGRAM_DONE, 60, 1),
        ("send-done.3", 70, 1),
        (SAME_DONE, 80, 1),
        (FIRST_DONE, 90, 5),
        *((name, 100 + i, 1) for i, name in enumerate(NOT_HALVES)),
    ]
    trace = trace_of(events, [(SAME, 0, 1)], stats=STATS)
    found, names = async_ops(trace), names_of(trace)
    pairs = {names[done]: names[start] for done, start in enumerate(found.start_of.tolist()) if start >= 0}
    assert pairs == {"%copy-done.8": "%copy-start.1", SAME_DONE: SAME}
    assert set(found.start_of[found.start_of < 0].tolist()) == {-1}
    assert set(found.done_of[found.done_of < 0].tolist()) == {-1}
    for done, start in enumerate(found.start_of.tolist()):
        if start >= 0:
            assert found.done_of[start] == done
            assert trace.metadata["plane"][done] == trace.metadata["plane"][start] == 0
    orphans = [names[row] for row in np.flatnonzero(found.is_orphan).tolist()]
    assert sorted(orphans) == sorted(
        [OTHER_PROGRAM, DONE_ALONE, START_ALONE, "send-done.3", "done-start", SAME]
    )
    assert not found.is_offload.any()


def test_times_in_flight_are_summed_over_matched_occurrences() -> None:
    """The first core has a done whose start was not captured, two pairs, and a start that has not ended; the
    second one has two copies in flight at once. A start may take no time, and begin when the last done ends.
    """
    stats = {SAME: P7, SAME_DONE: P7}
    first = [
        (SAME_DONE, 3, 2),
        (SAME, 10, 1),
        (SAME_DONE, 20, 4),
        (SAME, 30, 0),
        (SAME_DONE, 30, 7),
        (SAME, 50, 1),
    ]
    second = [(SAME, 0, 1), (SAME, 5, 1), (SAME_DONE, 10, 1), (SAME_DONE, 21, 2)]
    trace = trace_of(first, second, stats=stats)
    found, names = async_ops(trace), names_of(trace)
    times = {
        (int(trace.metadata["plane"][row]), names[row]): (
            int(found.elapsed_ps[row]),
            int(found.n_matched[row]),
        )
        for row in range(len(names))
    }
    assert times == {
        (0, SAME): (0, 0),
        (0, SAME_DONE): (14 + 7, 2),
        (1, SAME): (0, 0),
        (1, SAME_DONE): (11 + 18, 2),
    }


def test_a_trace_without_halves() -> None:
    found = async_ops(trace_of([("add", 0, 1)], stats={"add": P7}))
    assert (found.start_of.tolist(), found.done_of.tolist(), found.is_orphan.tolist()) == (
        [-1],
        [-1],
        [False],
    )
