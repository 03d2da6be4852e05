"""Arrows between the operations of a compiled program, from its operands: in drawn runs, and compared with a
plain reading of a recorded one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.timeline.dependencies import Dependencies, dependencies
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.plain_protobuf import plain_fields
from tests.synthetic import PlaneWriter, Stat, write_run

US = 10**6
(RECORDED,) = (Path(__file__).resolve().parents[3] / "demo_logs/jax_train/plugins/profile").iterdir()
F = array(8)
# dot.5 reads copy-done.3 and, through a tuple, fusion.4; add.8 and the all-reduce read dot.5.
MAIN = [
    instruction(1, "parameter", F),
    instruction(2, "copy-start", F, [1]),
    instruction(3, "copy-done", F, [2]),
    instruction(4, "fusion", F, [1]),
    instruction(6, "tuple", F, [4, 1]),
    instruction(7, "get-tuple-element", F, [6]),
    instruction(5, "dot", F, [3, 7]),
    instruction(8, "add", F, [5, 5]),
    instruction(9, "all-reduce", F, [5]),
]
# A run of the program: (operation, start, length) in µs.
RUN = [
    ("copy-start.2", 0, 1),
    ("fusion.4", 2, 6),
    ("copy-done.3", 9, 1),
    ("dot.5", 10, 5),
    ("add.8", 16, 2),
    ("all-reduce.9", 19, 8),
]


def tpu_trace(
    folder: Path,
    runs: list[tuple[int, list[tuple[str, int, int]]]],
    has_modules: bool | Collection[int],
    stats: dict[str, Stat] | None = None,
) -> Trace:
    """Runs (start in µs, operations) on two cores, the second 3 µs later; with the span of the copy on the
    line of asynchronous operations. `has_modules`: whether the trace has the spans of the program, or of
    which runs; `stats`: of all events.
    """
    modules = range(len(runs) if has_modules is True else 0) if isinstance(has_modules, bool) else has_modules
    space = xspace_class()()
    for core in range(2):
        plane = PlaneWriter(space, f"/device:TPU:{core}")
        lines = [plane.line(name, i, 0) for i, name in enumerate(("XLA Modules", "XLA Ops", "Async XLA Ops"))]
        for symbol, (name, *_) in enumerate(RUN, 1):
            plane.metadata(f"%{name} = x()", {"program_id": 7, "symbol_id": symbol}, name)
        for number, (start, ops) in enumerate(runs):
            begin = start + 3 * core
            if number in modules:
                plane.event(lines[0], "jit_f(7)", begin * US, 30 * US, stats)
            for name, at, length in ops:
                plane.event(lines[1], f"%{name} = x()", (begin + at) * US, length * US, stats)
            plane.event(lines[2], "%copy-done.3 = x()", begin * US, 9 * US, {"hlo_op": "copy-done.3"})
    PlaneWriter(space, "/host:metadata").metadata(
        "jit_f(7)", {"Hlo Proto": proto([computation(1, "f", MAIN, 8)])}
    )
    run = write_run(folder, {"tpu": bytes(space.SerializeToString())})
    return Session(str(run), cache=False).trace("tpu")


def at(trace: Trace, name: str, core: int, nth: int = 0) -> int:
    """The row of the nth event of an operation on a core's line of operations."""
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    lines = [
        (trace.plane_names[trace.lines["plane"][line]], trace.line_names[line]) for line in trace.event_line
    ]
    return [
        row
        for row, (each, line) in enumerate(zip(names, lines, strict=True))
        if each == name and line == (f"/device:TPU:{core}", "XLA Ops")
    ][nth]


def told(trace: Trace, found: Dependencies) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Operations and their starts in µs: those that it reads, those that read it."""
    sides = []
    for rows in (found.producers, found.consumers):
        names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"][rows]].tolist()]
        sides.append(list(zip(names, (trace.events["start_ps"][rows] // US).tolist(), strict=True)))
    return sides[0], sides[1]


@pytest.mark.parametrize("has_modules", [True, False])
def test_operands_and_readers_of_the_same_run_and_core(tmp_path: Path, has_modules: bool) -> None:
    trace = tpu_trace(tmp_path / "run", [(0, RUN), (100, RUN), (200, RUN)], has_modules)
    assert told(trace, dependencies(trace, at(trace, "dot.5", 0, 1), 50)) == (
        [("fusion.4", 102), ("copy-done.3", 109)],
        [("add.8", 116), ("all-reduce.9", 119)],
    )
    assert told(trace, dependencies(trace, at(trace, "copy-done.3", 1, 2), 50)) == (
        [("copy-start.2", 203)],
        [("dot.5", 213)],
    )
    # fusion.4 reads only a parameter; nothing reads add.8.
    assert told(trace, dependencies(trace, at(trace, "fusion.4", 0), 50)) == ([], [("dot.5", 10)])
    assert told(trace, dependencies(trace, at(trace, "add.8", 0, 2), 50)) == ([("dot.5", 210)], [])


def test_what_a_run_lacks_is_not_taken_from_another(tmp_path: Path) -> None:
    cut = [op for op in RUN if op[0] not in ("fusion.4", "add.8")]
    trace = tpu_trace(tmp_path / "run", [(0, RUN), (100, cut), (200, RUN)], True)
    found = dependencies(trace, at(trace, "dot.5", 0, 1), 50)
    assert told(trace, found) == ([("copy-done.3", 109)], [("all-reduce.9", 119)])
    assert (found.n_producers, found.n_consumers) == (1, 1)


def test_runs_of_one_step_are_apart(tmp_path: Path) -> None:
    """Three runs in a step: what the second one lacks is not taken from the others, nor is the third's."""
    cut = [op for op in RUN if op[0] not in ("fusion.4", "all-reduce.9")]
    runs = [(0, RUN), (40, cut), (80, RUN)]
    trace = tpu_trace(tmp_path / "run", runs, True, {"group_id": 5})
    for core in (0, 1):
        found = told(trace, dependencies(trace, at(trace, "dot.5", core, 1), 50))
        assert found == ([("copy-done.3", 49 + 3 * core)], [("add.8", 56 + 3 * core)])
    without = tpu_trace(tmp_path / "without", runs, False, {"group_id": 5})
    assert told(without, dependencies(without, at(without, "dot.5", 0, 1), 50)) == (
        [("fusion.4", 2), ("copy-done.3", 49)],
        [("add.8", 56), ("all-reduce.9", 99)],
    )


def test_operations_outside_of_all_runs_are_those_of_any(tmp_path: Path) -> None:
    """The trace has the span of the second run alone; the first one's operations are before it, the third's
    behind it.
    """
    cut = [op for op in RUN if op[0] not in ("fusion.4", "add.8")]
    trace = tpu_trace(tmp_path / "run", [(0, RUN), (40, cut), (80, RUN)], {1}, {"group_id": 5})
    assert told(trace, dependencies(trace, at(trace, "dot.5", 0, 1), 50)) == (
        [("fusion.4", 2), ("copy-done.3", 49)],
        [("all-reduce.9", 59), ("add.8", 96)],
    )
    assert told(trace, dependencies(trace, at(trace, "dot.5", 0, 2), 50)) == (
        [("fusion.4", 82), ("copy-done.3", 89)],
        [("add.8", 96), ("all-reduce.9", 99)],
    )


def test_the_nearest_stay_when_there_are_too_many(tmp_path: Path) -> None:
    trace = tpu_trace(tmp_path / "run", [(0, RUN)], True)
    dot = at(trace, "dot.5", 0)
    found = dependencies(trace, dot, 1)
    assert told(trace, found) == ([("copy-done.3", 9)], [("add.8", 16)])
    assert (found.n_producers, found.n_consumers) == (2, 2)
    assert len(dependencies(trace, dot, 2).producers) == 2


def test_other_events_have_none(tmp_path: Path) -> None:
    trace = tpu_trace(tmp_path / "run", [(0, RUN)], True)
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    for row in (names.index("jit_f(7)"), -1, len(names)):
        assert told(trace, dependencies(trace, row, 50)) == ([], [])


PASSED = {b"tuple", b"get-tuple-element", b"bitcast", b"optimization-barrier", b"after-all", b"async-update"}


def plain_program(data: bytes) -> dict[str, tuple[bytes, list[str]]]:
    """Opcode and operands of each instruction by name, from the bytes of an HloProto."""
    found: dict[str, tuple[bytes, list[str]]] = {}
    for _, module in (each for each in plain_fields(data) if each[0] == 1):
        for _, one in (each for each in plain_fields(module) if each[0] == 3):
            parts = [dict(plain_fields(raw)) for number, raw in plain_fields(one) if number == 2]
            raws = [raw for number, raw in plain_fields(one) if number == 2]
            by_id = {part[35]: part[1].decode() for part in parts}
            for part, raw in zip(parts, raws, strict=True):
                operands = [by_id[i] for i in plain_operands(raw)]
                found[part[1].decode()] = (part[2], operands)
    return found


def plain_operands(raw: bytes) -> Iterator[int]:
    """Ids of an instruction's operands: packed varints, or one per field."""
    for number, value in plain_fields(raw):
        if number == 36 and isinstance(value, bytes):
            shift = total = 0
            for byte in value:
                total |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    yield total
                    shift = total = 0
        elif number == 36:
            yield value


def plain_reads(program: dict[str, tuple[bytes, list[str]]], name: str, ran: set[str]) -> set[str]:
    """The instructions that ran and that one reads, through those that never run."""
    reads: set[str] = set()
    for operand in program[name][1]:
        if operand in ran:
            reads.add(operand)
        elif program[operand][0] in PASSED:
            reads |= plain_reads(program, operand, ran)
    return reads


def test_a_recorded_run_read_plainly() -> None:
    """XLA:CPU: launches of operations in some runs of each program, their producers by a loop over the
    launches of the same run.
    """
    session = Session(str(RECORDED), cache=False)
    trace = session.trace(session.hosts[0])
    texts = {key: trace.event_stats.texts(key) for key in ("hlo_op", "hlo_module")}
    ints = {key: trace.event_stats.ints(key) for key in ("run_id", "program_id", "device_ordinal")}
    stats: dict[int, dict[str, Any]] = {}
    for key, sparse in texts.items():
        for row, value in zip(sparse.owner.tolist(), sparse.value.tolist(), strict=True):
            stats.setdefault(row, {})[key] = trace.strings[value]
    for key, sparse in ints.items():
        for row, value in zip(sparse.owner.tolist(), sparse.value.tolist(), strict=True):
            stats.setdefault(row, {})[key] = value
    launches = {
        row: each
        for row, each in stats.items()
        if "hlo_op" in each
        and trace.events["duration_ps"][row] > 0
        and not trace.strings[int(trace.event_names[trace.events["metadata"][row]])].startswith("end: ")
    }
    checked = 0
    for program in trace.programs:
        module = trace.programs.module(program)
        if module is None:
            continue
        plain = plain_program(module.data.tobytes())
        of_program = {
            row: each for row, each in launches.items() if each.get("program_id") == program.program_id
        }
        ran = {each["hlo_op"] for each in of_program.values()} & set(plain)
        by_run: dict[Any, list[int]] = {}
        for row, each in of_program.items():
            by_run.setdefault((each.get("run_id"), each.get("device_ordinal")), []).append(row)
        for rows in list(by_run.values())[:3]:
            for row in rows:
                name = launches[row]["hlo_op"]
                expected = set()
                for operand in plain_reads(plain, name, ran):
                    before = [
                        (int(trace.events["start_ps"][other]), other)
                        for other in rows
                        if launches[other]["hlo_op"] == operand
                        and trace.events["start_ps"][other] <= trace.events["start_ps"][row]
                        and other != row
                    ]
                    if before:
                        expected.add(max(before)[1])
                found = dependencies(trace, row, 1000).producers.tolist()
                assert set(found) == expected, (name, row)
                checked += len(expected)
    assert checked > 100
