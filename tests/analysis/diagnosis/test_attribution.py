"""Origins, claims and names of nested events, compared with walks from each event outward."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import Origin
from tb_tpuprof.analysis.diagnosis.parts import (
    _call,
    _culprit,
    _is_entry,
    _is_operation,
    _is_program,
    _strongest,
    are_nameless,
    origins,
    program_of,
)
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build

SEEDS = range(20)
FRAMES_OF_LIBRARIES = (Origin.LIBRARY, Origin.FRAMEWORK)


def random_forest(rng: random.Random) -> list[int]:
    """The parent of each event, which comes before it; -1 for none."""
    return [rng.randint(-1, i - 1) if i else -1 for i in range(rng.randint(1, 30))]


def outward(parent: list[int], event: int) -> list[int]:
    """An event and those around it, from the inside."""
    chain = []
    while event >= 0:
        chain.append(event)
        event = parent[event]
    return chain


@pytest.mark.parametrize("seed", SEEDS)
def test_a_common_file_belongs_to_the_frame_around_it(seed: int) -> None:
    rng = random.Random(f"origins {seed}")
    parent = random_forest(rng)
    origin = [rng.choice(list(Origin)) for _ in parent]
    expected = []
    for event, own in enumerate(origin):
        if own != Origin.COMMON:
            expected.append(own)
            continue
        around = [origin[one] for one in outward(parent, event)]
        frames = [one for one in around if one in (Origin.USER, *FRAMES_OF_LIBRARIES)]
        expected.append(frames[0] if frames and frames[0] in FRAMES_OF_LIBRARIES else Origin.USER)
    found = origins(np.array(origin, np.uint8), np.array(parent, np.int32))
    assert found.tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_entries_are_what_users_and_annotations_call_or_nobody(seed: int) -> None:
    rng = random.Random(f"entries {seed}")
    parent = random_forest(rng)
    origin = [rng.choice(list(Origin)[:-1]) for _ in parent]
    callers = (Origin.USER, Origin.ANNOTATION)
    expected = [
        own != Origin.USER and (above < 0 or origin[above] in callers)
        for own, above in zip(origin, parent, strict=True)
    ]
    found = _is_entry(np.array(origin, np.uint8), np.array(parent, np.int32))
    assert found.tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_the_strongest_claim_around_an_event_is_the_innermost_of_its_strength(seed: int) -> None:
    rng = random.Random(f"claims {seed}")
    parent = random_forest(rng)
    claim = [rng.choice((0, 0, 1, 5)) for _ in parent]
    strength = [rng.randint(1, 4) if one else rng.randint(0, 4) for one in claim]
    expected = []
    for event in range(len(parent)):
        claiming = [one for one in outward(parent, event) if claim[one]]
        most = max((strength[one] for one in claiming), default=0)
        expected.append(next((one for one in claiming if strength[one] == most), -1))
    arrays = np.array(claim, np.uint8), np.array(strength, np.uint8), np.array(parent, np.int32)
    assert _strongest(*arrays).tolist() == expected


def named(*names: str, op: str = "") -> Trace:
    """A trace of one event for each name."""
    stats = {"hlo_op": op}
    events = [DrawnEvent(name, 10 * i, 5, stats if op and name == op else {}) for i, name in enumerate(names)]
    return build([DrawnPlane("/host:CPU", {"main": events})])


NAMES = (
    "$mine.py:4 update",
    "PjitFunction(step)",
    "dot.3",
    "cudaMalloc",
    "anneal",
    "$",
    "a/MatMul:MatMul",
    "$mine.py:5 <lambda>",
    "$mine.py:6 <module>",
    "$mine.py:7 <genexpr>",
)


def test_culprits_and_calls_by_the_name_of_an_event() -> None:
    trace = named(*NAMES, op="dot.3")
    assert [_culprit(trace, row) for row in range(-1, 6)] == [
        Culprit(),
        Culprit("function", "update", "mine.py", 4),
        Culprit("program", "step"),
        Culprit("operation", "dot.3"),
        Culprit("call", "cudaMalloc"),
        Culprit("annotation", "anneal"),
        Culprit(),
    ]
    assert [_call(trace, row) for row in range(-1, 5)] == [
        "",
        "update",
        "step",
        "dot.3",
        "cudaMalloc",
        "anneal",
    ]


def test_frames_without_a_name_of_their_own() -> None:
    trace = named(*NAMES)
    rows = np.array([9, 0, 7, 8, 1])
    assert are_nameless(trace, rows).tolist() == [True, False, True, False, False]


def test_programs_and_operations_by_name() -> None:
    trace = named(*NAMES)
    rows = np.array([1, 6, 0, 1, 3])
    assert _is_program(trace, rows).tolist() == [True, False, False, True, False]
    assert _is_operation(trace, rows).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("PjitFunction(step)", "step"),
        ("PjitFunction(f(x))", "f(x)"),
        ("PjitFunction()", ""),
        ("PjitFunction(step", ""),
        ("step)", ""),
        ("XPjitFunction(step)", ""),
    ],
)
def test_the_program_of_a_call(name: str, program: str) -> None:
    assert program_of(name) == program
