"""XLA:CPU's operations on drawn traces: three devices, threads and executions that differ, with and without
HLO.
"""

from collections import Counter

import numpy as np

from tb_tpuprof.analysis.cpu.runs import CpuRuns, cpu_runs
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.host import host_ops
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build
from tests.graph_files import field

PROGRAM = 7
MAIN, BODY = 1, 2


def instruction(
    number: int, name: str, opcode: str, reads: tuple[int, ...] = (), calls: tuple[int, ...] = ()
) -> bytes:
    """An HloInstructionProto: name 1, opcode 2, id 35, operand_ids 36, called_computation_ids 38."""
    parts = [field(1, name), field(2, opcode), field(35, number)]
    return b"".join([*parts, *(field(36, one) for one in reads), *(field(38, one) for one in calls)])


def computation(number: int, name: str, *instructions: bytes) -> bytes:
    return field(1, name) + b"".join(field(2, one) for one in instructions) + field(5, number)


# main: tanh reads dot (through a bitcast); add reads it in a tuple's other half only; the loop runs mul and
# sort.1; sort reads the loop.
HLO = field(
    1,
    field(1, "jit_f")
    + field(
        3,
        computation(
            BODY, "body", instruction(10, "mul", "multiply"), instruction(11, "sort.1", "sort", (10,))
        ),
    )
    + field(
        3,
        computation(
            MAIN,
            "main",
            instruction(1, "dot", "dot"),
            instruction(2, "bitcast", "bitcast", (1,)),
            instruction(3, "tanh", "tanh", (2,)),
            instruction(4, "x", "negate"),
            instruction(5, "both", "tuple", (1, 4)),
            instruction(6, "half", "get-tuple-element", (5,)),
            instruction(7, "add", "add", (6,)),
            instruction(8, "while", "while", (3,), (BODY,)),
            instruction(9, "sort", "sort", (8,)),
        ),
    )
    + field(6, MAIN),
)


def op(name: str, start: int, length: int, number: int = 0, run: int = 1, device: int = 0) -> DrawnEvent:
    """A launch; `number` ties it to its end mark."""
    stats: dict[str, int | str] = {
        "hlo_op": name,
        "program_id": PROGRAM,
        "run_id": run,
        "device_ordinal": device,
    }
    return DrawnEvent(
        name, start * PS, length * PS, {**stats, **({"_pt": 0, "_p": number} if number else {})}
    )


def end(name: str, at: int, number: int) -> DrawnEvent:
    return DrawnEvent(f"end: {name}", at * PS, 0, {"_ct": 0, "_c": number})


def record(at: int, task: int) -> DrawnEvent:
    return DrawnEvent("ThreadpoolListener::Record", at * PS, 0, {"_pt": 15, "_p": task})


def region(first: int, last: int, task: int) -> list[DrawnEvent]:
    start = DrawnEvent("ThreadpoolListener::StartRegion", first * PS, 0, {"_ct": 15, "_c": task})
    return [start, DrawnEvent("ThreadpoolListener::StopRegion", last * PS, 0)]


def trace_of(with_hlo: bool = True, **lines: list[DrawnEvent]) -> Trace:
    host = DrawnPlane(
        "/host:CPU",
        {name: sorted(events, key=lambda e: (e.start_ps, -e.duration_ps)) for name, events in lines.items()},
    )
    names = {"Filler": [DrawnEvent(f"module({i})", 0, 0) for i in range(PROGRAM + 1)]}
    metadata = DrawnPlane("/host:metadata", names, metadata_stats={f"module({PROGRAM})": {"Hlo Proto": HLO}})
    return build([metadata, host] if with_hlo else [host])


def told(trace: Trace, runs: CpuRuns) -> dict[str, list[tuple[float, float, float]]]:
    """Elapsed, self and thread time (in columns) of the runs of each operation."""
    result: dict[str, list[tuple[float, float, float]]] = {}
    columns = (runs.text, runs.elapsed_ps, runs.self_ps, np.where(runs.thread_ps < 0, -PS, runs.thread_ps))
    for text, *times in zip(*(column.tolist() for column in columns), strict=True):
        one, own, thread = (time / PS for time in times)
        result.setdefault(trace.strings[text], []).append((one, own, thread))
    return result


def test_an_operation_lasts_until_its_last_task_has_ended() -> None:
    """dot's launch covers 5 of 40; its mark comes 10 too late. A task that begins after the end counts for
    nothing.
    """
    trace = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100), record(2, 101), record(3, 102)],
        second=[*region(3, 40, 100), end("dot", 50, 21)],
        third=[*region(10, 25, 101), *region(60, 61, 102)],
    )
    assert told(trace, cpu_runs(trace)) == {"dot": [(50, 50, 5 + 37 + 15 + 1)]}
    quick = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)], second=[*region(3, 40, 100), end("dot", 50, 21)]
    )
    assert told(quick, cpu_runs(quick)) == {"dot": [(40, 40, 5 + 37)]}


def test_a_task_ends_where_the_program_goes_on_in_it() -> None:
    """Who finishes dot goes on with add, which does not read dot, and marks dot's end when all is over."""
    trace = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[*region(3, 95, 100), op("add", 30, 50, 22), end("add", 79, 22), end("dot", 90, 21)],
    )
    assert told(trace, cpu_runs(trace)) == {"dot": [(30, 30, 5 + 27)], "add": [(49, 49, 50)]}


def test_tasks_that_tasks_record_belong_to_the_operation() -> None:
    trace = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[*region(3, 10, 100), record(4, 101), end("dot", 33, 21)],
        third=[*region(8, 30, 101), record(9, 102)],
        fourth=[*region(11, 20, 102)],
    )
    assert told(trace, cpu_runs(trace)) == {"dot": [(30, 30, 5 + 7 + 22 + 9)]}


def test_waiting_on_a_thread_is_no_work_of_it() -> None:
    wait = DrawnEvent("SlinkyThreadPool::Await", 10 * PS, 25 * PS)
    trace = trace_of(
        first=[op("dot", 0, 40, 21), record(1, 100), wait, end("dot", 39, 21)], second=region(3, 35, 100)
    )
    assert told(trace, cpu_runs(trace)) == {"dot": [(39, 39, 15 + 32)]}


def test_an_operation_has_ended_when_one_that_reads_it_starts() -> None:
    """Tasks whose run was not traced: only mark and readers tell. A bitcast between hands the value on."""
    trace = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[op("tanh", 30, 20, 22), end("tanh", 49, 22), end("dot", 60, 21)],
    )
    assert told(trace, cpu_runs(trace))["dot"][0][0] == 30
    unread = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[op("add", 30, 20, 22), end("add", 49, 22), end("dot", 60, 21)],
    )
    assert told(unread, cpu_runs(unread))["dot"][0][0] == 60
    blind = trace_of(
        False,
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[op("tanh", 30, 20, 22), end("tanh", 49, 22), end("dot", 60, 21)],
    )
    assert told(blind, cpu_runs(blind))["dot"][0][0] == 60


def test_a_reader_in_another_execution_says_nothing() -> None:
    trace = trace_of(
        first=[op("dot", 0, 5, 21), record(1, 100)],
        second=[op("tanh", 30, 20, 22, run=2), end("tanh", 49, 22), end("dot", 60, 21)],
    )
    assert told(trace, cpu_runs(trace))["dot"][0][0] == 60


def test_the_end_of_the_program_s_run_is_the_end_of_its_last_operation() -> None:
    wait = DrawnEvent(
        "ThunkExecutor::Execute (wait for completion)", 6 * PS, 44 * PS, {"run_id": 1, "device_ordinal": 0}
    )
    trace = trace_of(first=[op("dot", 0, 5, 21), record(1, 100), wait], second=[end("dot", 60, 21)])
    assert told(trace, cpu_runs(trace))["dot"][0][0] == 50


def test_a_loop_s_own_time_is_without_what_it_runs_on_any_thread() -> None:
    """Three trips on two threads; the launching thread leaves after 12. The mark at 80 is 20 too late: sort,
    which reads it, has begun.
    """
    trace = trace_of(
        first=[
            op("while", 0, 12, 30),
            op("mul", 1, 4, 31),
            end("mul", 5, 31),
            op("sort.1", 5, 6, 32),
            end("sort.1", 11, 32),
        ],
        second=[
            op("mul", 15, 10, 33),
            end("mul", 25, 33),
            op("sort.1", 25, 5, 34),
            end("sort.1", 30, 34),
            op("mul", 32, 10, 35),
            end("mul", 42, 35),
            op("sort.1", 42, 9, 36),
            end("sort.1", 51, 36),
            op("sort", 60, 7, 37),
            end("sort", 67, 37),
            end("while", 80, 30),
        ],
    )
    found = told(trace, cpu_runs(trace))
    assert found["while"] == [(51, 51 - 24 - 20, 12 - 4 - 6)]
    assert [one for one, _, _ in found["mul"]] == [4, 10, 10]
    assert [one for one, _, _ in found["sort.1"]] == [6, 5, 9]


def test_thunks_of_one_instruction_are_one_run_on_each_device() -> None:
    """sort: a copy and a sort, per run and device. In the loop, sort.1 starts twice as often as mul."""
    events: dict[str, list[DrawnEvent]] = {}
    for device in range(3):
        line = events.setdefault(f"device{device}", [])
        for run in (1, 2):
            at = 1000 * run + 100 * device
            line += [
                op("sort", at, 3, run=run, device=device),
                op("sort", at + 4, 10 + device, run=run, device=device),
            ]
            line += [op("mul", at + 20 + 20 * trip, 2, run=run, device=device) for trip in range(device + 2)]
            line += [
                op("sort.1", at + 23 + 20 * trip + 5 * half, 4, run=run, device=device)
                for trip in range(device + 2)
                for half in (0, 1)
            ]
    trace = trace_of(**events)
    runs = cpu_runs(trace)
    counts = Counter(trace.strings[text] for text in runs.text.tolist())
    assert counts == {"sort": 6, "mul": 18, "sort.1": 18}
    assert sorted(time[0] for time in told(trace, runs)["sort"]) == [13, 13, 14, 14, 15, 15]
    assert {time[0] for time in told(trace, runs)["sort.1"]} == {8}
    assert runs.n_devices == hlo_ops(trace).n_devices == 3
    last = {0: 52, 1: 72, 2: 92}
    assert runs.span_ps == sum(1000 + trip for trip in last.values()) * PS
    found = hlo_ops(trace)
    assert found.total_ps == found.busy_ps == int(runs.self_ps.sum())
    assert host_ops(trace).busy_ps == found.busy_ps


def test_an_older_xla_that_marks_no_ends_has_events_only() -> None:
    trace = trace_of(first=[op("dot", 0, 5), op("tanh", 10, 20)])
    assert told(trace, cpu_runs(trace)) == {"dot": [(5, 5, -1)], "tanh": [(20, 20, -1)]}
    assert hlo_ops(trace).thread_ps.tolist() == [-1, -1]


def test_operations_belong_to_the_step_that_called_their_run() -> None:
    """Three steps on three devices. A task of step 0 goes on with the next step's operations: its region ends
    in step 1.
    """
    main: list[DrawnEvent] = []
    lines: dict[str, list[DrawnEvent]] = {"main": main}
    for step in range(3):
        at = 100 * step
        main.append(DrawnEvent("train", at * PS, 90 * PS, {"_r": 1, "step_num": step}))
        main.append(
            DrawnEvent("CommonPjRtLoadedExecutable::Execute", (at + 1) * PS, 10 * PS, {"run_id": 50 + step})
        )
        for device in range(3):
            lines.setdefault(f"device{device}", []).append(
                op("dot", at + 20 + device, 50, run=50 + step, device=device)
            )
    main.append(record(5, 100))
    lines["device1"] += region(15, 195, 100)
    trace = trace_of(**lines)
    runs = cpu_runs(trace)
    assert groups(trace).group[runs.event].tolist() == (runs.start_ps // (100 * PS)).tolist()
    assert Counter(groups(trace).group[runs.event].tolist()) == {0: 3, 1: 3, 2: 3}
