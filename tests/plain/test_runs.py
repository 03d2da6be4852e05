"""Runs of programs on random threads: when each call's run ends, and which events a call ran, compared with
loops.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.cpu.ties import run_ties
from tb_tpuprof.analysis.events.handed_over import handed_over
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.program_runs import run_ends
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.plain.plain_threads import Event, events_of

CALL = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"


def numbers(trace: Trace, key: str) -> dict[int, int]:
    sparse = trace.event_stats.ints(key)
    return dict(zip(sparse.owner.tolist(), sparse.value.tolist(), strict=True))


def random_runs(rng: random.Random) -> Trace:
    """Calls on one thread and operations of several runs on two others, nested and in any order; some calls
    or operations lie outside of the capture, some calls name their run.
    """
    n_calls, n_runs = rng.randint(0, 4), rng.randint(0, 4)
    names_run = rng.random() < 0.2
    main = [
        DrawnEvent(CALL, (10 * i) * PS, 4 * PS, {"run_id": 50 + i} if names_run else {})
        for i in range(n_calls)
    ]
    pools: list[list[DrawnEvent]] = [[], []]
    for pool in pools:
        at = rng.randint(0, 3)
        while at < 60 and n_runs:
            end = at + rng.randint(2, 12)
            run = {"run_id": 90 - rng.randrange(n_runs)}
            op = {"hlo_op": "dot"} if rng.random() < 0.4 else {}
            pool.append(DrawnEvent("work", at * PS, (end - at) * PS, {**run, **op}))
            if rng.random() < 0.5:
                inner = run if rng.random() < 0.7 else {"run_id": 90 - rng.randrange(n_runs)}
                pool.append(DrawnEvent("inner", at * PS, (end - at - 1) * PS, inner))
            at = end + rng.randint(0, 3)
    lines = {"pool 1": pools[0], "pool 2": pools[1], "main": main}
    if rng.random() < 0.3:
        lines = {"main": main, "pool 1": pools[0], "pool 2": pools[1]}
    planes = [DrawnPlane("/host:CPU", lines)]
    if rng.random() < 0.1:
        planes.append(DrawnPlane("/device:GPU:0", {"stream": [DrawnEvent("gemm", 0, PS)]}))
    return build(planes)


def plain_ends(events: list[Event], run_of: dict[int, int]) -> list[tuple[int, int]]:
    """(call, end of its run): runs in the order of their starts; the last ones if there are more
    than calls.
    """
    calls = sorted(
        (row for row, one in enumerate(events) if one.name == CALL), key=lambda row: events[row].start
    )
    if any(row in run_of for row in calls):
        return []
    runs: dict[int, list[Event]] = {}
    for row, run in run_of.items():
        runs.setdefault(run, []).append(events[row])
    ordered = sorted(runs.items(), key=lambda pair: (min(one.start for one in pair[1]), pair[0]))
    ends = [max(one.end for one in of_run) for _, of_run in ordered]
    n = min(len(calls), len(ends))
    return list(zip(calls[:n], ends[len(ends) - n :] if len(ends) > len(calls) else ends[:n], strict=True))


def plain_ties(events: list[Event], run_of: dict[int, int], ops: set[int]) -> set[tuple[int, int]]:
    """(call, event) of each run: from its first outermost event, unless that is an operation, to
    the others.
    """
    row_of = {id(one): row for row, one in enumerate(events)}
    result = set()
    for run in set(run_of.values()):
        rows = [row for row, other in run_of.items() if other == run]
        outer = [
            row
            for row in rows
            if (above := events[row].above) is None or run_of.get(row_of[id(above)]) != run
        ]
        first = min(outer, key=lambda row: (events[row].start, row))
        result |= {(first, row) for row in outer if row != first and first not in ops}
    return result


@pytest.mark.parametrize("seed", range(6))
def test_runs_of_calls(seed: int) -> None:
    rng = random.Random(f"runs {seed}")
    n_ends = n_ties = 0
    for _ in range(60):
        trace = random_runs(rng)
        events, run_of = events_of(trace), numbers(trace, "run_id")
        has_device = len(trace.planes) > 1
        calls, ends = run_ends(trace)
        expected = [] if has_device else plain_ends(events, run_of)
        assert list(zip(calls.tolist(), ends.tolist(), strict=True)) == expected
        ops = set(trace.event_stats.texts("hlo_op").owner.tolist())
        ties = set() if has_device else plain_ties(events, run_of, ops)
        assert {(call, row) for call, row in run_ties(trace).tolist()} == ties
        n_ends, n_ties = n_ends + len(expected), n_ties + len(ties)
    assert min(n_ends, n_ties) > 30


def test_work_is_handed_over_when_its_region_was_recorded() -> None:
    """Three regions: one that a record on the main thread scheduled, one whose record is missing,
    and none.
    """
    text = """
        main  [ThreadpoolListener::Record]
        pool                                 [ThreadpoolListener::StartRegion]
        pool                                                                      [work ]
        late                [ThreadpoolListener::StartRegion]
        late                                                     [other ]
        free       [alone ]
        """
    context = {"ThreadpoolListener::StartRegion": [{"_ct": 15, "_c": 9}, {"_ct": 15, "_c": 7}]}
    record = {"ThreadpoolListener::Record": {"_pt": 15, "_p": 7}}
    for stats, is_recorded in (({**context, **record}, True), (context, False)):
        trace = drawing(text, stats)
        events = events_of(trace)
        rows = [row for row, one in enumerate(events) if one.name in ("work", "other", "alone")]
        made = handed_over(trace, np.array(rows), np.array([-1, -2, -3]))
        assert made.tolist() == [events[0].start if is_recorded else -1, -2, -3]
    without = drawing(text.replace("[ThreadpoolListener::Record]", "[anything                  ]"), context)
    rows = [row for row, one in enumerate(events_of(without)) if one.name in ("work", "other", "alone")]
    assert handed_over(without, np.array(rows), np.array([4, 5, 6])).tolist() == [4, 5, 6]


def test_metadata_without_a_name_has_an_empty_one() -> None:
    trace = drawing("main  [a  ][b  ][c  ]")
    ids = trace.metadata["name"].copy()
    ids[1] = -1
    columns = {name: trace.metadata[name] for name in trace.metadata.columns} | {"name": ids}
    assert metadata_names(replace(trace, metadata=type(trace.metadata)(trace.metadata.spec, columns))) == [
        "a",
        "",
        "c",
    ]


def test_an_event_that_names_its_operation_twice_is_linked_once() -> None:
    """Its own stat counts; of the others one has only its metadata's, one only its own, and one none."""
    both = DrawnEvent("both", 0, PS, {"hlo_op": "dot.1", "program_id": 3})
    own = DrawnEvent("own", 2 * PS, PS, {"hlo_op": "dot.2", "program_id": 4})
    kind = DrawnEvent("kind", 4 * PS, PS)
    plane = DrawnPlane(
        "/host:CPU",
        {"main": [both, own, kind, DrawnEvent("none", 6 * PS, PS)]},
        metadata_stats={
            "both": {"hlo_op": "add.9", "program_id": 5},
            "kind": {"hlo_op": "mul.7", "program_id": 5},
        },
    )
    links = hlo_links(build([plane]))
    assert links.events.tolist() == [0, 1, 2]
    named = [(links.program[op], links.strings[int(links.string[op])]) for op in links.op.tolist()]
    assert named == [(3, "dot.1"), (4, "dot.2"), (5, "mul.7")]
    assert links.n_unknown == 3
    assert hlo_links(drawing("main  [a  ]")).n_unknown == 0
