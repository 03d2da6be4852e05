"""Programs that no compiler wrote, through every page that shows programs: an answer or an error with a
remedy, in bounded time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.hlo.graph import MOST_NODES
from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.ingest.opening import trace_of_bytes
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.ingest.hlo_protos import array, computation, instruction, proto, small_proto, varint
from tests.synthetic import PlaneWriter
from tests.tools.drawn_session import session_of

US = 1_000_000
MAX_LINES = 50_000
HUGE = 2**63 - 1
WINDOW = {1: HUGE, 2: -1, 3: -HUGE, 4: HUGE, 5: HUGE, 6: -1}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("graph_viewer", {}),
    ("graph_viewer", {"op": "add.1", "radius": 50, "fusions": "opened", "most_nodes": MOST_NODES}),
    ("graph_viewer/search", {"text": "add"}),
    ("graph_viewer/text", {"style": "long", "op": "add.1"}),
    *(("memory_viewer", {"space": space}) for space in (0, 1)),
    *(("op_profile", {"group_by": grouping}) for grouping in ("program", "category", "provenance")),
    ("op_profile/op", {"op": "add.1", "program": "jit_f(7)"}),
    ("hlo_stats", {}),
    ("roofline_model", {}),
)
FILES = ("proto", "hlo", "dot", "graph")


def session_with(program: bytes, names: tuple[str, ...] = ("add.1", "fusion.1", "while.1")) -> Session:
    """A run of the program on a CPU; the cost model computes its operations."""
    space = xspace_class()()
    PlaneWriter(space, "/host:metadata").metadata("jit_f(7)", {"Hlo Proto": program})
    plane = PlaneWriter(space, "/host:CPU")
    line = plane.line("thread", 1, 1)
    for i, name in enumerate(names):
        plane.event(line, name, 2 * i * US, US, {"hlo_op": name, "program_id": 7})
    return session_of(trace_of_bytes(space.SerializeToString(), "host"))


def look_at_all(session: Session) -> int:
    """Send all requests to every tool; returns the number of answers."""
    n = 0
    for tool_name, params in ASKED:
        tool, _, question = tool_name.partition("/")
        with contextlib.suppress(ProfilerError):
            encode_json(get_tool(tool).run(session, None, params, question))
            n += 1
    for file in get_tool("graph_viewer").files:
        with contextlib.suppress(ProfilerError):
            _, parts = get_tool("graph_viewer").file(session, None, {}, file.format)
            n += sum(1 for _ in zip(range(MAX_LINES), parts, strict=False)) > 0
    return n


def entry(*instructions: Any, **more: Any) -> bytes:
    return proto([computation(1, "main", instructions, 1)], **more)


def loop_without_end() -> bytes:
    """A loop of 2^63 trips around itself."""
    trips = b'{"known_trip_count":{"n":"99999999999999999999"}}'
    shape = array(2**40)
    body = [
        instruction(1, "add", shape, [1, 1]),
        instruction(2, "while", shape, [1], f38=(1, 1), f43=trips) | {1: "while.1"},
    ]
    return proto([computation(1, "main", body, 2)])


def buffers_of_negative_size() -> bytes:
    places = [
        {1: i, 2: size, 3: {4: 1}, 4: color}
        for i, (size, color) in enumerate(((-1, 0), (HUGE, 0), (HUGE, 1), (-HUGE, -3)))
    ]
    heap = {
        1: [
            {1: kind, 2: buffer, 4: "add.1", 5: other}
            for kind, buffer, other in ((1, 0, 0), (0, 1, 0), (2, 0, 1), (2, 1, 0), (0, 99, -7))
        ]
    }
    allocations = [
        {1: -5, 2: -1, 8: 0, 9: [{1: 0, 2: -9, 3: -9}, {1: 1, 2: HUGE, 3: HUGE}, {1: 77, 2: 1, 3: 1}]},
        {1: 0, 2: HUGE, 8: 0},
    ]
    return entry(
        instruction(1, "add", array(2), [1]),
        buffers={1: places, 3: allocations, 4: [heap, heap, {3: 99, 1: []}]},
    )


HOSTILE: dict[str, Callable[[], bytes]] = {
    "operands in a circle": lambda: entry(
        instruction(1, "add", array(2), [2, 1]), instruction(2, "add", array(2), [1, 2])
    ),
    "a computation that calls itself": lambda: entry(
        instruction(1, "fusion", array(2), [1], f38=(1,)), instruction(2, "add", array(2), [1])
    ),
    "computations that call each other": lambda: proto(
        [
            computation(k, f"c{k}", [instruction(k, "fusion", array(2), [], f38=(3 - k,), f11="kLoop")], k)
            for k in (1, 2)
        ]
    ),
    "ids of nothing": lambda: proto(
        [
            computation(
                5, "main", [instruction(1, "add", array(2), [98, 99, -1], f38=(97, -4), f37=(96,))], 95
            )
        ],
        entry=94,
    ),
    "one id for all": lambda: entry(*(instruction(1, "add", array(2), [1]) for _ in range(50))),
    "sizes that are negative": lambda: entry(
        instruction(1, "add", array(-4, -8), [1]), instruction(2, "dot", array(-1), [1, 1])
    ),
    "shapes whose product overflows": lambda: entry(
        instruction(1, "add", array(HUGE, HUGE, HUGE), [1, 1]),
        instruction(2, "dot", array(HUGE, HUGE), [1, 1], f30={1: (0, -3, 99), 2: (1,)}),
    ),
    "a window without end": lambda: entry(
        instruction(1, "add", array(2**31)),
        instruction(
            2,
            "convolution",
            array(HUGE),
            [1, 1],
            f15={1: [{1: HUGE, 2: -1, 3: -HUGE, 4: HUGE, 5: HUGE, 6: -1}]},
            f16={7: 9, 8: -9},
        ),
    ),
    "a loop without end": loop_without_end,
    "buffers of negative size": buffers_of_negative_size,
    "frames in a circle": lambda: entry(
        instruction(1, "add", array(2), f7={15: 1}),
        f17={1: ["a"], 2: ["f"], 3: [{1: 1, 2: 1, 3: -3}], 4: [{1: 1, 2: 2}, {1: 1, 2: 1}]},
    ),
    "numbers that point nowhere": lambda: entry(
        instruction(1, "get-tuple-element", array(2), [1], f13=-5, f26=HUGE),
        instruction(2, "parameter", array(2), f9=-HUGE),
    ),
    "no instructions": lambda: proto([computation(1, "main", [], 1)]),
    "names that are no text": lambda: entry(
        {**instruction(1, "add", array(2), [1]), 1: b"\xff\xfe\n%", 2: b"\x80", 7: {2: b"\xc3", 3: b"\xff"}}
    ),
    "nothing but zeros": lambda: bytes(1000),
    "cut off": lambda: small_proto()[:-70],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_programs_are_answered_or_refused(case: str) -> None:
    start = time.process_time()
    look_at_all(session_with(HOSTILE[case]()))
    assert time.process_time() - start < 10


def test_a_sound_program_is_answered_by_all() -> None:
    shape = array(8, 16)
    program = entry(
        instruction(1, "add", shape, f9=0), instruction(2, "add", shape, [1, 1]), buffers=_buffers()
    )
    assert look_at_all(session_with(program, ("add.1", "add.2"))) == len(ASKED) - 1 + len(
        FILES
    )  # the second space is empty


def _buffers() -> dict[int, Any]:
    return {1: [{1: 0, 2: 512, 3: {4: 1}, 4: 0}], 3: [{1: 0, 2: 512, 5: 1, 6: 0, 9: [{1: 0, 2: 0, 3: 512}]}]}


def raw(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def chain_of_operands(n: int) -> Iterator[bytes]:
    """One computation in which each instruction reads the one before."""
    common = raw(2, b"add") + raw(3, b"\x10\x0b\x1a\x01\x04")
    for i in range(1, n + 1):
        yield raw(2, raw(1, b"add.%d" % i) + common + b"\x98\x02" + varint(i) + raw(36, varint(i - 1)))


def chain_of_calls(n: int) -> Iterator[bytes]:
    """Computations each of which calls the next one."""
    common = raw(2, b"fusion") + raw(3, b"\x10\x0b\x1a\x01\x04")
    for i in range(1, n + 1):
        body = raw(2, raw(1, b"add.%d" % i) + common + b"\x98\x02" + varint(i) + raw(38, varint(i + 1)))
        yield raw(3, raw(1, b"c%d" % i) + body + b"\x28" + varint(i))


@pytest.mark.parametrize(
    ("nested", "n", "seconds"),
    [
        ("operands", 10**5, 10),
        ("calls", 10**4, 10),
        # What descends once per level runs out of stack only here.
        pytest.param("operands", 10**6, 60, marks=pytest.mark.slow),
        pytest.param("calls", 10**5, 60, marks=pytest.mark.slow),
    ],
)
def test_deep_nesting_takes_time_in_proportion(nested: str, n: int, seconds: float) -> None:
    module = raw(1, b"jit_f") + (
        raw(3, raw(1, b"main") + b"".join(chain_of_operands(n)) + b"\x28\x01")
        if nested == "operands"
        else b"".join(chain_of_calls(n))
    )
    session = session_with(raw(1, module + b"\x30\x01"), (f"add.{n}", "add.1"))
    start = time.process_time()
    assert look_at_all(session) > 5
    assert (
        time.process_time() - start < seconds
    )  # takes a tenth; what grew with the square, minutes and hours


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 60),
)
def test_changed_bytes_are_answered_or_refused(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(small_proto())
    for offset, byte in changes:
        data[offset % len(data)] = byte
    look_at_all(session_with(bytes(data[: len(data) - cut]), ("dot.3", "fusion.4", "add.13")))
