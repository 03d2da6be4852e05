"""The language of queries: what each form means, and where and why a text is refused."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.query.grammar import MAX_CONDITIONS, MAX_DEPTH, MAX_LENGTH, Condition, Term, parse
from tb_tpuprof.errors import BadQuery

MS, US = 10**9, 10**6
Read = tuple[str, str, tuple[str, str] | None, tuple[float | None, float | None] | None, bool]


def read(text: str) -> list[Read]:
    """(field, argument, (how, text), (low, high), is excluded) of each condition."""
    return [
        (
            one.field,
            one.argument,
            (one.text.how, one.text.text) if one.text else None,
            (one.bounds.low, one.bounds.high) if one.bounds else None,
            one.is_excluded,
        )
        for one in parse(text).conditions
    ]


def name(text: str, is_excluded: bool = False) -> Read:
    return ("name", "", ("contains", text), None, is_excluded)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("", []),
        ("MatMul", [name("matmul")]),
        ("load  batch", [name("load  batch")]),  # words in a row are one text
        ("Iterator::Map", [name("iterator::map")]),
        ("a=b foo<int>", [name("a=b foo<int>")]),  # no fields of the language
        ('"dur>1ms" x', [name("dur>1ms"), name("x")]),
        (r'"a\"b\\c"', [name(r"a\"b\c".replace("\\", "", 1))]),
        ("-copy -'a b'", [name("copy", True), name("a b", True)]),
        ("name=Dot", [("name", "", ("equals", "Dot"), None, False)]),
        ("name~^Dot", [("name", "", ("pattern", "^Dot"), None, False)]),
        ("-track:Stream", [("track", "", ("contains", "stream"), None, True)]),
        ("dur>1ms", [("dur", "", None, (MS, None), False)]),
        ("dur > 1.5 us x", [("dur", "", None, (1_500_000, None), False), name("x")]),
        ("dur:1..2ms", [("dur", "", None, (MS, 2 * MS), False)]),
        ("self<=10us", [("self", "", None, (None, 10 * US), False)]),
        ("start:1s..", [("start", "", None, (10**12, None), False)]),
        ("step:34..40", [("step", "", None, (34, 40), False)]),
        ("step:34", [("step", "", ("contains", "34"), (34, 34), False)]),
        ("step:warm", [("step", "", ("contains", "warm"), None, False)]),
        ("arg.shape=[17888, 1,1]", [("arg", "shape", ("equals", "[17888, 1,1]"), None, False)]),
        (
            'arg."Input Dims":[[1, 2]] k',
            [("arg", "Input Dims", ("contains", "[[1, 2]]"), None, False), name("k")],
        ),
        ("arg.flops>=2GFLOP", [("arg", "flops", None, (2 * 10**9, None), False)]),
        ("arg.bytes:1KiB..2MiB", [("arg", "bytes", None, (2**10, 2**21), False)]),
        ("arg.flops=5", [("arg", "flops", ("equals", "5"), (5, 5), False)]),
        ("arg.stall_us>1ms", [("arg", "stall_us", None, (MS, None), False)]),
        ("arg:17888", [("arg", "", ("contains", "17888"), None, False)]),
        ("any:x", [("any", "", ("contains", "x"), None, False)]),
        ("name~[ab]+$ y", [("name", "", ("pattern", "[ab]+$"), None, False), name("y")]),
    ],
)
def test_each_form_has_its_meaning(text: str, meaning: list[Read]) -> None:
    assert read(text) == meaning


def test_comparisons_leave_their_limit_out_unless_it_is_equal_too() -> None:
    bounds = [condition.bounds for condition in parse("dur>1us dur>=1us dur<1us dur<=1us").conditions]
    assert [(one.is_low_open, one.is_high_open) for one in bounds if one] == [
        (True, False),
        (False, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("text", "position", "reason", "remedy"),
    [
        ("x durr>1ms", 2, "no field 'durr'", "Did you mean dur?"),
        ("tracks:a", 0, "no field 'tracks'", "Did you mean track?"),
        ("name>3", 4, "cannot be compared with >", "name: (contains)"),
        ("dur>abc", 4, "'abc' is not a number", "dur>1ms"),
        ("dur>5", 4, "'5' has no unit of time", "units are"),
        ("dur>1MiB", 4, "no unit of time", "units are"),
        ("dur~1", 3, "dur is a number", "dur>1ms"),
        ("a name:", 7, "lacks a value", "name:dot"),
        ('a "bc', 2, "is not closed", 'Add "'),
        ("dur:2ms..1us", 4, "the range 2ms..1us is empty", "smaller number first"),
        ("step>1ms", 5, "no unit", "step:34"),
        ("arg.foo>1ms", 8, "does not say in which unit", "plain number"),
        ("name~a(b", 6, "( is not closed", "Add )"),
        ("name~a**", 6, "two repetitions", "Remove one"),
        (r"name~\1", 5, "not known here", "Known are"),
        ("OR a", 0, "OR lacks a condition before it", "name:dot OR name:copy"),
        ("a | | b", 4, "| lacks a condition before it", "name:dot | name:copy"),
        ("x (a OR ) b", 5, "OR lacks a condition after it", "quotes look for the text OR"),
        ("x (a OR b", 2, "the bracket ( is not closed", "Add )"),
        ("(a OR dur>x)", 10, "'x' is not a number", "units are"),
        ("x" * (MAX_LENGTH + 1), MAX_LENGTH, "more than 2,000 characters", "Shorten"),
        ("-a " * (MAX_CONDITIONS + 1), 3 * MAX_CONDITIONS, "more than 32 conditions", "Shorten"),
    ],
)
def test_an_error_names_place_reason_and_remedy(text: str, position: int, reason: str, remedy: str) -> None:
    with pytest.raises(BadQuery) as caught:
        parse(text)
    assert caught.value.position == position
    assert reason in caught.value.message
    assert remedy in caught.value.remedy


def shape(terms: tuple[Term, ...]) -> str:
    """Conditions as their text or lower bound, joined as they were read."""
    return " & ".join(
        "-" * term.is_excluded
        + (
            term.text.text
            if isinstance(term, Condition) and term.text
            else str(term.bounds.low)
            if isinstance(term, Condition) and term.bounds
            else "{" + " | ".join(shape(option) for option in getattr(term, "options", ())) + "}"
        )
        for term in terms
    )


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("a b OR c", "{a b | c}"),  # words side by side bind closer
        ("a dur>1ps OR c -d", "{a & 1 | c & -d}"),
        ("a | b|c | d", "{a | b|c | d}"),
        ("a AND b", "a & b"),
        ("a or b ORe", "a or b ore"),
        ('a "OR" b', "a & or & b"),
        ("x (name:a OR name~^(p|q)$) -copy", "x & {a | ^(p|q)$} & -copy"),
        ("-(a OR b) c", "-{a | b} & c"),
        ("(a OR (b | c) d) e", "{a | {b | c} & d} & e"),
        ("wait (wait for completion)", "wait (wait for completion)"),
        ("(name:f(x) OR b)", "{f(x) | b}"),
        ("('a)b' OR name~\\))", "{a)b | \\)}"),
        ("(dur>1 ps OR b)", "{1 | b}"),
    ],
)
def test_or_and_brackets_join_terms(text: str, read_as: str) -> None:
    assert shape(parse(text).terms) == read_as


def test_conditions_are_those_of_all_brackets_in_order() -> None:
    assert [one.position for one in parse("a dur>1s (b OR -(c OR d)) e").conditions] == [0, 2, 10, 17, 22, 26]


def test_brackets_are_bounded() -> None:
    parse("(" * MAX_DEPTH + "a OR b" + ")" * MAX_DEPTH)
    with pytest.raises(BadQuery, match="more than 8 brackets") as caught:
        parse("(" * (MAX_DEPTH + 1) + "a OR b" + ")" * (MAX_DEPTH + 1))
    assert caught.value.position == MAX_DEPTH
