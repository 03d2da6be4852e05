"""Conditions on texts and arguments: which texts pass, and which events and names have an argument
that does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tb_tpuprof.analysis.query.arguments import (
    FULL_NAME,
    Owners,
    argument_names,
    argument_of,
    owners_in,
    owners_of,
    passing,
)
from tb_tpuprof.analysis.query.grammar import Condition, TextTest, parse
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.schema import DOUBLE, INT, UINT
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import table_from_rows
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build


class Source:
    """All arguments of drawn traces are decoded; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def argument(self, trace: Trace, name: str) -> StatTable:
        self.asked.append(name)
        return trace.event_stats

    def all_arguments(self, trace: Trace) -> Iterator[StatTable]:
        self.asked.append("*")
        yield trace.event_stats

    def names_of(self, trace: Trace) -> list[str]:
        self.asked.append("names")
        return trace.event_stats.names()


def text_of(query: str) -> TextTest:
    (condition,) = parse(query).conditions
    assert condition.text is not None
    return condition.text


TEXTS = (
    "[1,2]",
    "[1, 2]",
    "[ 1 ,2 ]",
    "f32[1, 2]",
    "f32[1,2]",
    "F32 [1,2]",
    "1,2",
    "1, 2",
    "F(A, B)",
    "(a,b)",
    "{x: 1}",
    "{ x :1 }",
    "dot",
    "DOT.3",
    "",
)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("name=[1,2]", ["[1,2]", "[1, 2]", "[ 1 ,2 ]"]),
        ("name=[1, 2]", ["[1,2]", "[1, 2]", "[ 1 ,2 ]"]),
        ("name:[1,2]", ["[1,2]", "[1, 2]", "[ 1 ,2 ]", "f32[1, 2]", "f32[1,2]", "F32 [1,2]"]),
        ("name:(a,b)", ["F(A, B)", "(a,b)"]),
        ("name=(a,b)", ["(a,b)"]),
        ("name={x:1}", ["{x: 1}", "{ x :1 }"]),
        ("name=1,2", ["1,2"]),
        ("name:1,2", ["[1,2]", "f32[1,2]", "F32 [1,2]", "1,2"]),
        ("name=dot", ["dot"]),
        ("name:dot", ["dot", "DOT.3"]),
        ("name:F32", ["f32[1, 2]", "f32[1,2]", "F32 [1,2]"]),
        ("name~^dot", ["dot"]),
        ("name=DOT.3", ["DOT.3"]),
        ("name=x", []),
    ],
)
def test_texts_that_pass(query: str, texts: list[str]) -> None:
    """Lists are compared without their spaces, other texts with them; only `:` ignores case."""
    passes = passing(text_of(query), TEXTS).tolist()
    assert [text for text, is_match in zip(TEXTS, passes, strict=True) if is_match] == texts


def test_no_texts_pass_nothing() -> None:
    for query in ("name=[1]", "name:[1]", "name:a", "name~a"):
        assert passing(text_of(query), []).tolist() == []


TRACE = build(
    [
        DrawnPlane(
            "/host:CPU",
            {
                "main": [
                    DrawnEvent("a", 0, 5, {"shape": "[8,128]", "bytes": 700, "load": 0.5}),
                    DrawnEvent("b", 10, 5, {"shape": "[1, 2]", "bytes": 7, "stall_us": 3}),
                    DrawnEvent("c", 20, 5, {"bytes": -1, "load": 2.0, "note": "7"}),
                    DrawnEvent("d", 30, 5, {"raw": b"700", "stall_us": "2500"}),
                    DrawnEvent("a", 40, 5),
                ]
            },
            metadata_stats={"a": {"flops": 700, "kind": "copy"}, "d": {"kind": "Copy"}},
        )
    ]
)


def owners(query: str) -> tuple[list[int], list[str]]:
    """Events, and names of the metadata rows, that pass a condition on arguments."""
    (condition,) = parse(query).conditions
    found = owners_of(TRACE, condition, Source())
    texts = [TRACE.strings[int(row)] for row in TRACE.metadata["name"][found.metadata].tolist()]
    return sorted(set(found.events.tolist())), texts


@pytest.mark.parametrize(
    ("query", "events", "names"),
    [
        ("arg.shape=[8, 128]", [0], []),
        ("arg.shape:128", [0], []),
        ("arg.bytes>7", [0], []),
        ("arg.bytes>=7", [0, 1], []),
        ("arg.bytes<0", [2], []),
        ("arg.bytes=700", [0], []),
        ("arg.bytes:7", [0, 1], []),
        ("arg.bytes:7..8", [1], []),
        ("arg.load<1", [0], []),
        ("arg.load>0.5", [2], []),
        ("arg.load=0.5", [0], []),
        ("arg.note=7", [2], []),
        ("arg.note>6", [2], []),
        ("arg.note>7", [], []),
        ("arg.stall_us>=3us", [1, 3], []),
        ("arg.stall_us>2ms", [3], []),
        ("arg.stall_us>2", [1, 3], []),
        ("arg.flops>1", [], ["a"]),
        ("arg.flops=700", [], ["a"]),
        ("arg.kind=copy", [], ["a"]),
        ("arg.kind:copy", [], ["a", "d"]),
        ("arg.kind~^C", [], ["d"]),
        ("arg.kind>1", [], []),
        ("arg.raw=700", [], []),
        ("arg.nothing:a", [], []),
        ("arg:700", [0], ["a"]),
        ("arg:copy", [], ["a", "d"]),
        ("arg:128", [0], []),
        ("arg=b", [], ["b"]),
        ("any:d", [], ["d"]),
        (f"arg.{FULL_NAME}=c", [], ["c"]),
        (f"arg.{FULL_NAME}>1", [], []),
    ],
)
def test_events_and_names_with_an_argument(query: str, events: list[int], names: list[str]) -> None:
    assert owners(query) == (events, names)


def test_keys_that_no_event_has_and_numbers_beyond_all_integers() -> None:
    (many,) = parse(f"arg.bytes>={2**63}").conditions
    for key in ("bytes", "nothing", "raw"):
        assert owners_in(TRACE.event_stats, key, many).tolist() == []


def test_an_argument_is_read_once_and_all_arguments_only_if_none_is_named() -> None:
    trace = build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, 5, {"x": 1, "y": 2})]})])
    source = Source()

    def ask(query: str) -> Owners:
        (condition,) = parse(query).conditions
        return owners_of(trace, condition, source)

    for query in ("arg.x=1", "arg.x=2", "arg.x>1"):
        ask(query)
    assert source.asked == ["x"]
    ask("arg.y=1")
    assert source.asked == ["x", "y"]
    ask("arg:1")
    assert source.asked == ["x", "y", "*"]
    assert argument_of(trace, "x", Source()) is trace.event_stats  # whoever reads it
    assert argument_names(trace, source) == ["x", "y"]
    assert argument_names(trace, source) == ["x", "y"]
    assert source.asked == ["x", "y", "*", "names"]
    assert argument_names(trace, Source()) == ["x", "y"]


def test_conditions_without_any_name_or_event() -> None:
    empty = build([])
    condition = Condition("arg", "", TextTest("contains", "a"), None, False, 0)
    found = owners_of(empty, condition, Source())
    assert (found.events.tolist(), found.metadata.tolist()) == ([], [])


def test_numbers_are_those_of_their_kind() -> None:
    """The same bits as signed, as unsigned and as a double; and unsigned ones below 2^63."""
    half = int(np.array([0.5]).view(np.int64)[0])
    rows = [
        (0, 0, INT, -1, 0),
        (1, 0, UINT, -1, 0),
        (2, 0, UINT, 5, 0),
        (3, 0, DOUBLE, half, 0),
        (4, 0, INT, half, 0),
    ]
    table = StatTable(table_from_rows(schema.STATS, rows), Strings.of([b"n"]))

    def passing_owners(query: str) -> list[int]:
        (condition,) = parse(query).conditions
        return owners_in(table, "n", condition).tolist()  # type: ignore[no-any-return]

    assert passing_owners("arg.n<0") == [0]
    assert passing_owners(f"arg.n>={2**63}") == [1]
    assert passing_owners("arg.n>=1") == [1, 2, 4]
    assert passing_owners("arg.n:0..1") == [3]
    assert passing_owners("arg.n=5") == [2]
    assert passing_owners("arg.n:18446744073709551615") == [1]
    assert passing_owners("arg.n:0.5") == [3]
    assert passing_owners("arg.n:-1") == [0]
