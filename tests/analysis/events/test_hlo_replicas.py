"""Devices that programs are spread over, and framework names of instructions, from the HLO in a trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.events.hlo_names import Instruction, Instructions, replicas
from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.ops.ran_programs import ran_programs
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PlaneWriter, write_run

BLOCK = array(8)


def program(*assignments: dict[int, int]) -> bytes:
    entry = [
        instruction(1, "parameter", BLOCK),
        instruction(2, "negate", BLOCK, [1], f7={2: "jit(f)/neg"}),
    ]
    return proto([computation(1, "main", entry, 2)], **({"f15": list(assignments)} if assignments else {}))


def trace_of(*programs: bytes, key: str = "Hlo Proto") -> Trace:
    names = [f"jit_f({i})" for i in range(len(programs))]
    stats = {name: {key: data} for name, data in zip(names, programs, strict=True)}
    return build(
        [
            DrawnPlane(
                "/host:metadata", {"x": [DrawnEvent(name, 0, 0) for name in names]}, metadata_stats=stats
            )
        ]
    )


def written(folder: Path, *programs: bytes, key: str = "Hlo Proto") -> Trace:
    """The trace of a file with these programs."""
    space = xspace_class()()
    plane = PlaneWriter(space, "/host:metadata")
    for i, data in enumerate(programs):
        plane.metadata(f"jit_f({i})", {key: data})
    run = write_run(folder / "run", {"h": space.SerializeToString()})
    return Session(str(run), cache=False).trace("h")


@pytest.mark.parametrize("key", ["Hlo Proto", "HLO Proto"])
def test_the_program_on_most_devices_counts(key: str, tmp_path: Path) -> None:
    programs = program({1: 4, 2: 1}), program({1: 2, 2: 3}), program({1: 5}), program()
    assert replicas(written(tmp_path, *programs, key=key)) == (2, 3)


def test_programs_that_state_no_devices(tmp_path: Path) -> None:
    assert replicas(written(tmp_path / "a", program(), program())) == (0, 0)
    assert replicas(trace_of()) == (0, 0)
    damaged = b"\xff\xff", program({1: 8, 2: 2}), program({2: 99})
    assert replicas(written(tmp_path / "b", *damaged)) == (8, 2)


def test_instructions_by_name() -> None:
    trace = trace_of(program(), program())
    found = Instructions(trace, 1)
    assert found.get("negate.2") == Instruction("negate", "jit(f)/neg")
    assert found.get("parameter.1") == Instruction("parameter", "")
    assert found.get("negate") is None
    assert Instructions(trace, -1).get("negate.2") is None
    assert Instructions(trace, 2).get("negate.2") is None


def test_texts_of_operations_that_events_name() -> None:
    events = [
        DrawnEvent("a", 0, 1, {"hlo_op": "x"}),
        DrawnEvent("a", 5, 1),
        DrawnEvent("a", 9, 1, {"hlo_op": "y"}),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": events})])
    texts = hlo_op_texts(trace)
    found = texts.at(np.array([2, 1, 0]))
    assert [texts.strings[i] if i >= 0 else "" for i in found.tolist()] == ["y", "", "x"]


def test_programs_of_one_name_are_told_apart() -> None:
    """Two of the three ran, and one whose HLO is not in the trace."""
    events = [
        DrawnEvent("k", 10 * i, 5, {"hlo_op": "negate.2", "program_id": number})
        for i, number in enumerate((0, 2, 7))
    ]
    names = [DrawnEvent(f"jit_f({i})", 0, 0) for i in range(3)]
    stats = {f"jit_f({i})": {"Hlo Proto": program()} for i in range(3)}
    metadata = DrawnPlane("/host:metadata", {"x": names}, metadata_stats=stats)
    trace = build([metadata, DrawnPlane("/device:GPU:0", {"Stream #1": events})])
    assert ran_programs(trace) == {"jit_f(0)", "jit_f(2)", "7"}
