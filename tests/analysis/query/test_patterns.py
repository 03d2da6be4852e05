"""Regular expressions of queries: the same answers as Python's engine, in linear time; errors in
plain words.
"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.query import patterns
from tb_tpuprof.analysis.query.patterns import MAX_PATTERN, BadPattern, Pattern, TookTooLong

ATOMS = (
    "a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "(a|b)", "(ab|c)", "(?:bc)", "a*", "b+", "c?", "a*?", "(a|bc)*",
    "(a*)*", "(a+b?){1,3}", "a{2}", "b{0,2}", "c{1,}", "^", "$", r"\d", r"\W", r"\.", "(|a)", "(a|^b)", "1", r"\b",
    "é", "[é-ü]",
)  # fmt: skip


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5), st.text("abcABé1. ", max_size=8), st.booleans()
)
def test_it_finds_what_pythons_engine_finds(atoms: list[str], text: str, ignores_case: bool) -> None:
    source = "(?i)" * ignores_case + "".join(atoms)
    # Python's $ also matches before a last line break; RE2's \d, \W and \b are about ASCII.
    expected = re.search(
        source.replace("$", r"\Z").replace(r"\W", "[^0-9A-Za-z_]").replace(r"\b", r"(?a:\b)"), text
    )
    assert Pattern(source).is_in(text) == bool(expected)


def test_case_matters_unless_it_is_switched_off() -> None:
    assert not Pattern("DOT").is_in("dot.1")
    assert Pattern("(?i)DOT").is_in("a Dot.1")
    assert Pattern("(?i)É").is_in("café")


def test_the_ends_are_those_of_the_text_not_of_its_lines() -> None:
    assert not Pattern("^b").is_in("a\nb")
    assert not Pattern("a$").is_in("a\nb")
    assert not Pattern("a.b").is_in("a\nb")


def test_texts_that_are_no_unicode_are_matched_too() -> None:
    assert Pattern("a.c").is_in("a\ud800c")
    assert Pattern("\udcff").are_in(["x\udcff", "x\udcfe"]) == [True, False]


def test_patterns_of_one_text_are_equal() -> None:
    assert Pattern("a.c") == Pattern("a.c")
    assert Pattern("a.c") != Pattern("a.d")
    assert Pattern("a.c") != "a.c"
    assert len({Pattern("a.c"), Pattern("a.c"), Pattern("a.d")}) == 2


@pytest.mark.parametrize("source", ["(a+)+$", "(a|a)*b", "(.*.*.*.*)x", "(a?){50}a{50}b", "(a*)*c?$b"])
def test_patterns_that_stop_pythons_engine_take_linear_time(source: str) -> None:
    pattern = Pattern(source)
    begin = time.perf_counter()
    assert not pattern.is_in("a" * 20_000 + "c")
    assert time.perf_counter() - begin < 5  # Python's engine would take years


def test_it_gives_up_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = Pattern("(?:[ab]*a[ab]{300})c")  # more states than RE2 keeps: 12 µs for each character
    texts = ["ab" * 2000 + "b"] * 10_000
    monkeypatch.setattr(patterns, "BUDGET_S", 0.05)
    begin = time.perf_counter()
    with pytest.raises(TookTooLong, match="300"):
        pattern.are_in(texts)
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    ("source", "position", "message"),
    [
        ("a)", 1, "the bracket ) was not opened"),
        ("(a))b", 3, "the bracket ) was not opened"),
        ("))", 0, "the bracket ) was not opened"),
        ("(a", 0, "the bracket ( is not closed"),
        (r"x(a)[(]\((b|(c)", 9, "the bracket ( is not closed"),
        ("é[b", 1, "the bracket [ is not closed"),
        ("*a", 0, "* repeats nothing"),
        ("a|b|+", 4, "+ repeats nothing"),
        ("ba{3,1}", 2, "{3,1} repeats too often"),
        ("a**", 1, "two repetitions follow one another"),
        ("a\\", 1, "a backslash at the end"),
        (r"éa\1", 2, r"\1 is not known here"),
        ("(?=a)", 0, "groups that begin with (?= are not known here"),
        ("ab(?<=a)", 2, "groups that begin with (?<= are not known here"),
        ("x[z-a]", 2, "the class z-a cannot be read"),
        ("a[[:word:]][[:none:]]", 12, "the class [:none:] cannot be read"),
        ("(?P<n", 0, "the name of the group (?P<n cannot be read"),
        ("a" * 600, MAX_PATTERN, "more than 500 characters"),
        ("((a{100}){100}){100}", 9, "{100} repeats too often"),
        (r"\pL{20}", 0, "the expression is too large"),
    ],
)
def test_an_error_has_its_place_its_reason_and_a_remedy(source: str, position: int, message: str) -> None:
    with pytest.raises(BadPattern) as caught:
        Pattern(source)
    assert caught.value.position == position
    assert message in caught.value.message
    assert caught.value.remedy.endswith(".")
    assert "{}" not in caught.value.message + caught.value.remedy


@settings(deadline=None, max_examples=300)
@given(st.text("ab()[]{}*+?|\\^$.-,019:P<>=!é", max_size=24))
def test_no_pattern_is_refused_without_a_place_in_it(source: str) -> None:
    try:
        Pattern(source)
    except BadPattern as error:
        refusal = error
    else:
        return
    assert 0 <= refusal.position < max(len(source), 1)
    assert "RE2" not in refusal.remedy, refusal.message  # every message of RE2 has words of its own
