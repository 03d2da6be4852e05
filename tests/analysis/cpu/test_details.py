"""XLA:CPU's operations and eager ones: what depends on what, which launch contains which, and the first of
several marks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.cpu.bounds import structure
from tb_tpuprof.analysis.cpu.eager import eager_runs
from tb_tpuprof.analysis.cpu.events import NEVER, cpu_events, host_texts, named_like
from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.cpu.tasks import pool_work
from tb_tpuprof.analysis.cpu.ties import run_ties
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.ingest.hlo_protos import array, computation, instruction, proto


def made(
    key: int, name: str, opcode: str, operands: tuple[int, ...] = (), calls: tuple[int, ...] = ()
) -> Any:
    return {**instruction(key, opcode, array(2), operands, **({"f38": calls} if calls else {})), 1: name}


def metadata_plane(programs: dict[int, bytes]) -> DrawnPlane:
    titles = {f"module({number})": data for number, data in programs.items()}
    return DrawnPlane(
        "/host:metadata",
        {"m": [DrawnEvent(title, 0, 0) for title in titles]},
        metadata_stats={title: {"Hlo Proto": data} for title, data in titles.items()},
    )


def op(name: str, start: int, length: int, program: int = 7, run: int = 1, **stats: Any) -> DrawnEvent:
    return DrawnEvent(
        name,
        start * PS,
        length * PS,
        {"hlo_op": name, "program_id": program, "run_id": run, "device_ordinal": 0, **stats},
    )


def trace_of(programs: dict[int, bytes], *lines: list[DrawnEvent]) -> Trace:
    return build(
        [
            metadata_plane(programs),
            DrawnPlane("/host:CPU", {f"t{i}": events for i, events in enumerate(lines)}),
        ]
    )


# Computations in the file's order: a body that `loop` runs, one that `call` (untraced) runs inside it, one
# that two calls run, and the entry. `first` is the file's first instruction.
PROGRAM = proto(
    [
        computation(
            2,
            "body",
            [
                made(20, "first", "add"),
                made(21, "inner call", "call", (20,), (3,)),
                made(22, "last", "negate", (21,)),
            ],
            22,
        ),
        computation(3, "called", [made(30, "deep", "multiply"), made(31, "deeper", "negate", (30,))], 31),
        computation(4, "shared", [made(40, "twice", "add"), made(41, "map", "map", (40,), (5,))], 40),
        computation(5, "below shared", [made(50, "below", "add")], 50),
        computation(
            1,
            "main",
            [
                made(1, "dot", "dot"),
                made(2, "cast", "bitcast", (1,)),
                made(3, "cast again", "bitcast", (2,)),
                made(4, "tanh", "tanh", (3, 1)),
                made(5, "pair", "tuple", (1, 4)),
                made(6, "half", "get-tuple-element", (5,)),
                made(7, "add", "add", (6, 4, 99)),
                made(8, "loop", "while", (7,), (2,)),
                made(9, "one", "call", (8,), (4,)),
                made(10, "two", "call", (8,), (4,)),
                made(11, "end", "add", (9, 10)),
            ],
            11,
        ),
    ],
    entry=1,
)
TRACED = (
    "first",
    "last",
    "deep",
    "deeper",
    "twice",
    "below",
    "dot",
    "tanh",
    "add",
    "loop",
    "one",
    "two",
    "end",
)


def names_of(trace: Trace) -> list[str]:
    links = hlo_links(trace)
    return [links.strings[int(i)] for i in links.string]


def test_dependencies_of_the_traced_operations() -> None:
    events = [op(name, 10 * i, 5) for i, name in enumerate((*TRACED, "unknown"))]
    other = proto([computation(1, "main", [made(1, "first", "add"), made(2, "next", "negate", (1,))], 2)])
    second = [op(name, 500 + 10 * i, 5, program=8) for i, name in enumerate(("first", "next"))]
    trace = trace_of({7: PROGRAM, 8: other}, [*events, *second, op("no program", 900, 5, program=9)])
    links, names = hlo_links(trace), names_of(trace)
    labels = [
        f"{name}{'' if program == 7 else f' of {program}'}"
        for name, program in zip(names, links.program.tolist(), strict=True)
    ]
    found = structure(trace, links, np.arange(len(links)))
    pairs = sorted(
        (labels[a], labels[b]) for a, b in zip(found.producer.tolist(), found.consumer.tolist(), strict=True)
    )
    assert pairs == sorted(
        [
            ("dot", "tanh"),
            ("dot", "tanh"),
            ("tanh", "add"),
            ("add", "loop"),
            ("loop", "one"),
            ("loop", "two"),
            ("one", "end"),
            ("two", "end"),
            ("deep", "deeper"),
            ("first", "last"),
            ("first of 8", "next of 8"),
        ]
    )
    container = {labels[i]: labels[row] for i, row in enumerate(found.container.tolist()) if row >= 0}
    assert container == {"first": "loop", "last": "loop", "deep": "loop", "deeper": "loop"}
    entry = {labels[i] for i in np.flatnonzero(found.is_entry)}
    assert entry == {"dot", "tanh", "add", "loop", "one", "two", "end", "first of 8", "next of 8"}
    single = {labels[i] for i in np.flatnonzero(found.runs_once_at_a_time)}
    assert single == entry | {"first", "last", "deep", "deeper"}
    by_computation: dict[int, set[str]] = {}
    for label, number in zip(labels, found.computation.tolist(), strict=True):
        by_computation.setdefault(number, set()).add(label)
    unknown = by_computation.pop(-1)
    assert unknown == {"unknown", "no program of 9"}
    assert sorted(map(sorted, by_computation.values())) == sorted(
        map(
            sorted,
            (
                {"first", "last"},
                {"deep", "deeper"},
                {"twice"},
                {"below"},
                {"dot", "tanh", "add", "loop", "one", "two", "end"},
                {"first of 8", "next of 8"},
            ),
        )
    )


def test_operations_that_are_not_used_depend_on_nothing() -> None:
    trace = trace_of({7: PROGRAM}, [op(name, 10 * i, 5) for i, name in enumerate(TRACED)])
    links, names = hlo_links(trace), names_of(trace)
    used = np.array([i for i, name in enumerate(names) if name in ("dot", "add", "deep", "first")])
    found = structure(trace, links, used)
    assert found.producer.tolist() == []
    assert (found.container == -1).all()
    assert {names[i] for i in np.flatnonzero(found.computation >= 0)} == {"dot", "add", "deep", "first"}
    nothing = structure(trace, links, used[:0])
    assert (nothing.consumer.tolist(), (nothing.computation == -1).all()) == ([], True)


def test_launches_and_the_first_of_their_marks() -> None:
    """Instants, marks and events of other planes are no launches; ids that are used again name the wrong
    mark.
    """

    def end(name: str, at: int, key: int) -> DrawnEvent:
        return DrawnEvent(f"end: {name}", at * PS, 0, {"_ct": 0, "_c": key, "hlo_op": name})

    main = [
        op("a", 0, 5, _pt=0, _p=1),
        op("b", 10, 5, _pt=0, _p=2),
        op("c", 20, 0),
        op("d", 30, 4, run=2, _pt=0, _p=3),
        op("e", 40, 4),
    ]
    marks = [
        end("a", 2, 1),
        end("a", 8, 1),
        end("a", 30, 1),
        end("b", 17, 2),
        end("b", 19, 2),
        end("d", 29, 3),
        DrawnEvent("x", 50 * PS, PS, {"_ct": 0, "_c": 2}),
    ]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": main, "pool": marks}), DrawnPlane("/other", {"o": [op("z", 0, 3)]})]
    )
    found = cpu_events(trace)
    names = [trace.strings[i] for i in found.text.tolist()]
    assert names == ["a", "b", "d", "e"]
    assert (found.start_ps // PS).tolist() == [0, 10, 30, 40]
    assert (found.stop_ps // PS).tolist() == [5, 15, 34, 44]
    assert [mark // PS if mark < NEVER else None for mark in found.marked_ps.tolist()] == [2, 17, None, None]
    assert found.n_executions == len(set(found.execution.tolist())) == 2
    assert found.execution[0] == found.execution[1] == found.execution[3] != found.execution[2]
    assert (found.device.tolist(), found.op.tolist() != [], len(found)) == ([0] * 4, True, 4)
    unnumbered = build(
        [DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, PS, {"hlo_op": "a"}), op("b", 2, 1)]})]
    )
    assert cpu_events(unnumbered).execution.tolist() == [-1, 0]
    gpu = build([DrawnPlane("/host:CPU", {"main": main}), DrawnPlane("/device:GPU:0", {"s": []})])
    assert len(cpu_events(gpu)) == 0
    assert cpu_events(gpu).n_executions == 0
    unstated = [
        DrawnEvent("a", 9 * i * PS, PS, {"hlo_op": "a", "run_id": 5, **more})
        for i, more in enumerate(({"program_id": 1}, {}, {"program_id": 1}))
    ]
    runs = cpu_events(build([DrawnPlane("/host:CPU", {"main": unstated})])).execution.tolist()
    assert runs[0] == runs[2] != runs[1]
    assert [
        len(column)
        for column in host_texts(
            build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 1)]})]), "hlo_op"
        )
    ] == [0, 0]
    assert named_like(trace, "end: ", "x").tolist().count(True) == 4


def test_executions_differ_by_run_device_and_program() -> None:
    keys = [(1, 0, 7), (1, 1, 7), (2, 0, 7), (1, 0, 8), (1, 0, 7), (2, 0, 7)]
    events = [
        op("a", 10 * i, 5, program=program, run=run, device_ordinal=device)
        for i, (run, device, program) in enumerate(keys)
    ]
    found = cpu_events(trace_of({}, events))
    assert found.n_executions == 4
    for i, one in enumerate(keys):
        for j, other in enumerate(keys):
            assert (found.execution[i] == found.execution[j]) == (one == other)
    assert found.device.tolist() == [device for _, device, _ in keys]


NESTED = proto(
    [
        computation(
            2, "outer body", [made(20, "inner", "while", (), (3,)), made(21, "after", "negate", (20,))], 21
        ),
        computation(3, "inner body", [made(30, "mul", "multiply"), made(31, "sub", "subtract", (30,))], 31),
        computation(1, "main", [made(1, "outer", "while", (), (2,)), made(2, "done", "add", (1,))], 2),
    ],
    entry=1,
)


def test_an_operation_belongs_to_the_latest_launch_of_its_loop() -> None:
    """The inner loop runs three times, on two threads; its trips take 5, 9 and 20 of it, one of which began
    before all of them.
    """
    main = [
        op("outer", 0, 200),
        op("inner", 10, 30),
        op("mul", 12, 5),
        op("after", 45, 3),
        op("inner", 50, 40),
        op("after", 95, 2),
        op("inner", 100, 50),
        op("after", 160, 4),
        op("outer", 300, 100, run=2),
        op("inner", 310, 50, run=2),
    ]
    pool = [
        op("mul", 4, 2),
        op("mul", 52, 4),
        op("sub", 60, 5),
        op("mul", 101, 20),
        op("mul", 320, 7, run=2),
        op("mul", 400, 6, run=3),
    ]
    trace = trace_of({7: NESTED}, main, pool)
    runs = cpu_runs(trace)
    rows = {
        (trace.strings[text], start // PS): (elapsed // PS, own // PS)
        for text, start, elapsed, own in zip(
            runs.text.tolist(),
            runs.start_ps.tolist(),
            runs.elapsed_ps.tolist(),
            runs.self_ps.tolist(),
            strict=True,
        )
    }
    assert {key: rows[key] for key in rows if key[0] == "inner"} == {
        ("inner", 10): (30, 25),
        ("inner", 50): (40, 31),
        ("inner", 100): (50, 30),
        ("inner", 310): (50, 43),
    }
    assert rows["outer", 0] == (200, 200 - 30 - 40 - 50 - 3 - 2 - 4)
    assert rows["outer", 300] == (100, 50)
    assert rows["mul", 4] == (2 + 5 + 4 + 20,) * 2, "sub ran once, so these are four thunks of one run"


def eager(text: dict[str, list[DrawnEvent]]) -> list[tuple[str, int]]:
    """(operation, start of its execution) of each dispatch, in the order of the executions."""
    trace = build([DrawnPlane("/host:CPU", text)])
    rows, metadata = eager_runs(trace)
    names = [
        trace.strings[trace.metadata["name"][row]].removeprefix("EagerLocalExecute: ")
        for row in metadata.tolist()
    ]
    assert rows.tolist() == sorted(rows.tolist())
    return list(zip(names, (trace.events["start_ps"][rows] // PS).tolist(), strict=True))


KERNEL = "EagerKernelExecute"


def dispatch(name: str, start: int, length: int) -> DrawnEvent:
    return event(f"EagerLocalExecute: {name}", start, length)


def test_an_eager_operation_runs_in_its_kernel() -> None:
    main = [
        event("EagerExecute", 0, 20, is_func=0),
        dispatch("MatMul", 1, 18),
        event(KERNEL, 5, 10),
        event("EagerExecute", 30, 30, is_func=1),
        dispatch("Add", 31, 20),
        event(KERNEL, 35, 5),
        dispatch("__inference_step_1", 70, 20),
        event(KERNEL, 75, 5),
        dispatch("__forward_x", 100, 5),
        dispatch("Mul", 110, 9),
        event(KERNEL, 111, 5),
        dispatch("Sub", 130, 9),
    ]
    assert eager({"main": main}) == [("MatMul", 5), ("Mul", 111), ("Sub", 130)]
    assert eager({"main": [event(KERNEL, 0, 5)]}) == []


@pytest.mark.parametrize(
    ("kernels", "starts"),
    [
        ([event(KERNEL, 12, 5), event(KERNEL, 25, 5), event(KERNEL, 40, 5)], [12, 25, 40]),
        (
            [event(KERNEL, 12, 5), event(KERNEL, 19, 5), event(KERNEL, 40, 5)],
            [10, 20, 30],
        ),  # one before its dispatch
        ([event(KERNEL, 10, 5), event(KERNEL, 20, 5), event(KERNEL, 30, 5)], [10, 20, 30]),
        ([event(KERNEL, 12, 5), event(KERNEL, 25, 5)], [10, 20, 30]),
    ],
)
def test_queued_operations_run_in_their_order(kernels: list[DrawnEvent], starts: list[int]) -> None:
    main = [dispatch(name, 10 * i, 4) for i, name in enumerate("ABC", 1)]
    found = eager({"main": main, "runner": kernels})
    assert found == list(zip("ABC", starts, strict=True))
    assert eager({"runner": kernels, "main": main}) == list(zip("ABC", starts, strict=True))


def test_kernels_of_several_queues_or_inside_calls_are_not_assigned() -> None:
    main, kernels = [dispatch("A", 10, 4), dispatch("B", 20, 4)], [event(KERNEL, 12, 5), event(KERNEL, 25, 5)]
    alone = [("A", 10), ("B", 20)]
    assert eager({"main": main, "one": kernels[:1], "two": kernels[1:]}) == alone
    assert eager({"main": main[:1], "more": main[1:], "one": kernels}) == alone
    call = [event("EagerExecute", 11, 9, is_func=1), kernels[0]]
    assert eager({"call": call, "main": main[:1]}) == alone[:1]
    derived = build([DrawnPlane("/host:CPU", {"main": main[:1]}), DrawnPlane("/other", {"main": main[1:]})])
    assert len(eager_runs(derived)[0]) == 1


def test_a_call_ties_the_outermost_events_of_its_run() -> None:
    main = [event("Execute", 5, 3, run_id=0), event("x", 6, 1), event("Execute", 30, 3, run_id=4)]
    pool = [
        event("work", 10, 9, run_id=0),
        event("inner", 11, 5, run_id=0),
        event("other", 12, 3, run_id=4),
        event("free", 50, 9),
        event("below free", 51, 3, run_id=0),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": main, "pool": pool})])
    names = [
        (trace.strings[trace.metadata["name"][trace.events["metadata"][row]]])
        for row in range(trace.n_events)
    ]
    ties = [(names[a], names[b]) for a, b in run_ties(trace).tolist()]
    assert ties == [("Execute", "work"), ("Execute", "below free"), ("other", "Execute")]
    lone = build([DrawnPlane("/host:CPU", {"main": [op("a", 0, 5), op("b", 9, 5)]})])
    assert len(run_ties(lone)) == 0, "operations cause no others"


def test_tasks_of_three_launches() -> None:
    """a: two tasks, one of which was never started; b: a task that waits and hands on; c: none."""

    def record(at: int, task: int) -> DrawnEvent:
        return event("ThreadpoolListener::Record", at, 0, _pt=15, _p=task)

    def region(first: int, last: int, task: int) -> list[DrawnEvent]:
        return [
            event("ThreadpoolListener::StartRegion", first, 0, _ct=15, _c=task),
            event("ThreadpoolListener::StopRegion", last, 0),
        ]

    main = [
        op("a", 0, 10),
        record(1, 1),
        record(2, 2),
        op("b", 20, 10),
        record(21, 3),
        op("c", 40, 10),
        event("Wait", 42, 3),
        event("Wait2", 43, 1),
        record(60, 55),
    ]
    second = [*region(5, 25, 1), *region(60, 70, 77)]
    third = [
        event("ThreadpoolListener::StartRegion", 30, 0, _ct=15, _c=3),
        event("WaitForX", 31, 4),
        record(36, 4),
        event("ThreadpoolListener::StopRegion", 38, 0),
    ]
    fourth = region(37, 50, 4)
    trace = build([DrawnPlane("/host:CPU", {"main": main, "p2": second, "p3": third, "p4": fourth})])
    work = pool_work(trace, cpu_events(trace))
    assert (work.end_ps // PS).tolist() == [25, 50, 0]
    assert work.n_tasks.tolist() == [2, 2, 0]
    assert work.n_lost.tolist() == [1, 0, 0]
    assert (work.thread_ps // PS).tolist() == [10 + 20, 10 + 4 + 13, 7]


def test_a_value_passes_through_twenty_instructions_without_events() -> None:
    """So does the search for the operation that runs a computation: through twenty calls."""
    n = 20
    casts = [made(10 + i, f"cast{i}", "bitcast", (9 + i if i else 1,)) for i in range(n)]
    calls = [
        computation(100 + i, f"c{i}", [made(1000 + i, f"call{i}", "call", (), (101 + i,))], 1000 + i)
        for i in range(n)
    ]
    last = computation(100 + n, "last", [made(2000, "inside", "add")], 2000)
    main = computation(
        1,
        "main",
        [
            made(1, "dot", "dot"),
            *casts,
            made(2, "tanh", "tanh", (9 + n,)),
            made(3, "loop", "while", (2,), (100,)),
        ],
        3,
    )
    trace = trace_of(
        {7: proto([*calls, last, main], entry=1)},
        [op(name, 10 * i, 5) for i, name in enumerate(("dot", "tanh", "loop", "inside"))],
    )
    links, names = hlo_links(trace), names_of(trace)
    found = structure(trace, links, np.arange(len(links)))
    assert {
        (names[a], names[b]) for a, b in zip(found.producer.tolist(), found.consumer.tolist(), strict=True)
    } == {("dot", "tanh"), ("tanh", "loop")}
    assert names[found.container[names.index("inside")]] == "loop"
    assert found.runs_once_at_a_time.all()
