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
        ("dur>1us ms", [("dur", "", None, (1_000_000, None), False), name("ms")]),
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


def test_the_longest_query_and_the_most_conditions_are_read() -> None:
    assert (MAX_LENGTH, MAX_CONDITIONS) == (2000, 32)
    assert read("x" * MAX_LENGTH) == [name("x" * MAX_LENGTH)]
    assert read("-a " * MAX_CONDITIONS) == [name("a", True)] * MAX_CONDITIONS


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("-", [name("-")]),
        ("- a", [name("- a")]),
        ("a -", [name("a -")]),
        ("a-b", [name("a-b")]),
        ("--a", [name("-a", True)]),
        ("-name:a", [name("a", True)]),
        ("name:[a b] c", [name("[a b]"), name("c")]),
        ("name:[a (b c] d", [name("[a (b c]"), name("d")]),
        ("name:[[a b] c] d", [name("[[a b] c]"), name("d")]),
        ("name:{a b} c", [name("{a b}"), name("c")]),
        ("name:[a b", [name("[a"), name("b")]),  # a bracket that nothing closes
        ("name:a]b c", [name("a]b"), name("c")]),
        ("name~[ab] c", [("name", "", ("pattern", "[ab]"), None, False), name("c")]),
        (r'name:"a\"b"', [name('a"b')]),
        (r"name:'a\'b\\c\d'", [name(r"a'b\c\d")]),
        ('name:"a b"c', [name("a b"), name("c")]),
        ("step=7", [("step", "", ("equals", "7"), (7, 7), False)]),
        ("step:..7", [("step", "", None, (None, 7), False)]),
        ("step:7..", [("step", "", None, (7, None), False)]),
        ("step:a..b", [("step", "", ("contains", "a..b"), None, False)]),
        ('step:"7"', [("step", "", ("contains", "7"), None, False)]),
        ("step>3", [("step", "", None, (3, None), False)]),
        ("dur:0..2us", [("dur", "", None, (0, 2 * US), False)]),
        ("dur:..2us", [("dur", "", None, (None, 2 * US), False)]),
        ("dur=2us", [("dur", "", None, (2 * US, 2 * US), False)]),
        ("dur:2us..3ms", [("dur", "", None, (2 * US, 3 * MS), False)]),
        ("dur:2e0..3e0us", [("dur", "", None, (2 * US, 3 * US), False)]),
        ("dur:2us..2us", [("dur", "", None, (2 * US, 2 * US), False)]),
        ('dur>"1 ms" x', [("dur", "", None, (MS, None), False), name("x")]),
        ("dur>0", [("dur", "", None, (0, None), False)]),
        ("self < 1   us", [("self", "", None, (None, US), False)]),
        ("dur>1us x ms", [("dur", "", None, (US, None), False), name("x ms")]),
        ("arg.x:1..2", [("arg", "x", None, (1, 2), False)]),
        ("arg.x:1KiB..2MiB", [("arg", "x", None, (2**10, 2**21), False)]),
        ("arg.x:a..2", [("arg", "x", ("contains", "a..2"), None, False)]),
        ("arg.x:..", [("arg", "x", ("contains", ".."), None, False)]),
        ("arg.x=abc", [("arg", "x", ("equals", "abc"), None, False)]),
        ('arg.x="5"', [("arg", "x", ("equals", "5"), None, False)]),
        ("arg:1..2", [("arg", "", ("contains", "1..2"), None, False)]),
        ("arg=5", [("arg", "", ("equals", "5"), None, False)]),
        ("arg.x~a", [("arg", "x", ("pattern", "a"), None, False)]),
        ("arg.t_us:1us..2ms", [("arg", "t_us", None, (US, 2 * MS), False)]),
        ("zz:a", [name("zz:a")]),
        ("a::b::c", [name("a::b::c")]),
        ("host::x", [name("host::x")]),
        ("width>1", [name("width>1")]),
    ],
)
def test_forms_at_their_limits(text: str, meaning: list[Read]) -> None:
    assert read(text) == meaning


def test_conditions_know_where_they_begin() -> None:
    text = "  ab cd  -dur>1ms  x 'y z'  name:q"
    assert [one.position for one in parse(text).conditions] == [2, 9, 19, 21, 28]


def test_kinds_of_numbers() -> None:
    kinds = [
        one.bounds.kind
        for one in parse("dur>1us arg.x>1KiB arg.x>1 arg.x:1KiB..2KiB dur:..1us").conditions
        if one.bounds
    ]
    assert kinds == ["time", "amount", "plain", "amount", "time"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("arg>5 dur>x", 3),
        ("dur:1us..abc", 9),
        ("dur:abc..1us", 4),
        ("arg.x>abc", 6),
        ("arg.x>=abc", 7),
        ("step>=1ms", 6),
        ("name>=3", 4),
        ("x dur~1", 5),
        ("name:'ab", 5),
        ("name~(", 5),
        ("name~ab(", 7),
        ("dur:1..2KiB", 4),
        ("arg.x:2..1", 6),
        ("name=", 5),
        ("dur > ", 6),
    ],
)
def test_errors_point_at_what_cannot_be_read(text: str, position: int) -> None:
    with pytest.raises(BadQuery) as caught:
        parse(text)
    assert caught.value.position == position


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
