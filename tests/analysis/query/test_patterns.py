"""Regular expressions of queries: the same answers as Python's engine, in linear time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.query.patterns import MAX_PATTERN, BadPattern, Pattern

ATOMS = (
    "a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "(a|b)", "(ab|c)", "(?:bc)", "a*", "b+", "c?", "a*?", "(a|bc)*",
    "(a*)*", "(a+b?){1,3}", "a{2}", "b{0,2}", "c{1,}", "^", "$", r"\d", r"\W", r"\.", "(|a)", "(a|^b)", "1",
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5), st.text("abc1. ", max_size=8))
def test_it_finds_what_pythons_engine_finds(atoms: list[str], text: str) -> None:
    source = "".join(atoms)
    try:
        pattern = Pattern(source)
    except BadPattern:
        return  # two repetitions in a row
    # Python's $ also matches before a last line break; here texts have none.
    assert pattern.is_in(text) == bool(re.search(source.replace("$", r"\Z"), text))


def test_case_matters_unless_it_is_switched_off() -> None:
    assert not Pattern("DOT").is_in("dot.1")
    assert Pattern("(?i)DOT").is_in("a Dot.1")


@pytest.mark.parametrize("source", ["(a+)+$", "(a|a)*b", "(.*.*.*.*)x", "(a?){50}a{50}b"])
def test_patterns_that_stop_pythons_engine_take_linear_time(source: str) -> None:
    pattern = Pattern(source)
    begin = time.perf_counter()
    assert not pattern.is_in("a" * 20_000 + "c")
    assert time.perf_counter() - begin < 20  # Python's engine would take years


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("a)", 1),
        ("(a", 0),
        ("a[b", 1),
        ("*a", 0),
        ("a{3,1}", 1),
        ("a\\", 2),
        ("(?=a)", 1),
        ("a" * 600, MAX_PATTERN),
    ],
)
def test_an_error_has_its_place(source: str, position: int) -> None:
    with pytest.raises(BadPattern) as caught:
        Pattern(source)
    assert abs(caught.value.position - position) <= 1
    assert caught.value.remedy


def test_repetitions_of_repetitions_are_bounded() -> None:
    with pytest.raises(BadPattern, match="too large"):
        Pattern("((a{100}){100}){100}")
