"""Hosts and parameters of a request: what is chosen, what is refused, and which values a refusal names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter, HostNotFound, ToolUnavailable
from tb_tpuprof.tools.arguments import ChosenHosts, lacks_trace, validate_hosts, validate_params
from tb_tpuprof.tools.base import Declaration, Param
from tb_tpuprof.tools.payload import Payload

MANY = Declaration("page", "Page", "group", "summary", lambda *_: Payload("page", "run", (), {}))
ONE = replace(MANY, hosts="one")
SIZE = Param("size", "Size", "int", None, "the size", minimum=-3, maximum=2**60 + 1)
SHARE = Param("share", "Share", "float", 0.5, "the share", minimum=0, maximum=1)
IS_OPEN = Param("is_open", "Open", "bool", False, "whether it is open")
KIND = Param("kind", "Kind", "choice", "b", "the kind", choices=("a", "b"))
NAME = Param("name", "Name", "text", None, "the name", is_required=True)


def run_of(*hosts: str, state: str = "ok", message: str = "") -> Any:
    return SimpleNamespace(hosts=hosts, info=SimpleNamespace(state=state, message=message))


@pytest.mark.parametrize(
    ("tool", "requested", "chosen"),
    [
        (MANY, None, ChosenHosts(("a", "b", "c"), is_default=True)),
        (MANY, [], ChosenHosts(("a", "b", "c"), is_default=True)),
        (MANY, ["ALL_HOSTS"], ChosenHosts(("a", "b", "c"), is_default=True)),
        (MANY, ["b", "all"], ChosenHosts(("a", "b", "c"), is_default=True)),
        (ONE, None, ChosenHosts(("a",), is_default=True)),
        (ONE, ["c"], ChosenHosts(("c",))),
        (ONE, ["c", "c"], ChosenHosts(("c",))),
        (ONE, ["z", "c"], ChosenHosts(("c",), ("z",))),
        (MANY, ["c", "z", "a", "y", "z"], ChosenHosts(("a", "c"), ("z", "y"))),
    ],
)
def test_chosen_hosts(tool: Declaration, requested: list[str] | None, chosen: ChosenHosts) -> None:
    """In the run's order, each once; what the run does not have is reported in the request's order."""
    assert validate_hosts(tool, run_of("a", "b", "c"), requested) == chosen


def test_a_host_may_be_called_all() -> None:
    assert validate_hosts(MANY, run_of("a", "all"), ["all"]) == ChosenHosts(("all",))


def refusal(declared: Sequence[Param], given: Mapping[str, object]) -> BadParameter:
    """The error for values that are not allowed."""
    with pytest.raises(BadParameter) as refused:
        validate_params(declared, given)
    return refused.value


def test_refused_hosts() -> None:
    run = run_of("a", "b")
    with pytest.raises(HostNotFound, match="z1"):
        validate_hosts(MANY, run, ["z1", "z2"])
    with pytest.raises(BadParameter) as refused:
        validate_hosts(ONE, run, ["b", "a"])
    assert refused.value.parameter == "hosts"
    assert "one host at a time for page" in refused.value.remedy
    with pytest.raises(ToolUnavailable) as unavailable:
        validate_hosts(MANY, run_of(message="The folder is empty."), None)
    assert unavailable.value.remedy == "The folder is empty."


def test_only_tools_that_need_a_trace_lack_it() -> None:
    programs = run_of("a", state="hlo")
    assert lacks_trace(MANY, programs).short == "no trace"
    assert lacks_trace(MANY, run_of("a")).reason == ""
    assert lacks_trace(replace(MANY, needs_trace=False), programs).reason == ""
    with pytest.raises(ToolUnavailable, match="only the HLO of compiled programs"):
        validate_hosts(MANY, programs, None)


def test_defaults_stand_for_what_is_not_given() -> None:
    declared = (SIZE, SHARE, IS_OPEN, KIND)
    defaults = {"share": 0.5, "is_open": False, "kind": "b"}
    assert validate_params(declared, {}) == defaults
    assert validate_params(declared, dict.fromkeys(("size", "share", "is_open", "kind"), "")) == defaults
    given = {"size": "7", "share": "0.25", "is_open": "1", "kind": "a"}
    assert validate_params(declared, given) == {"size": 7, "share": 0.25, "is_open": True, "kind": "a"}
    assert validate_params((SIZE, replace(SIZE, name="other")), {"other": 0}) == {"other": 0}


def test_required_parameters_must_be_given() -> None:
    assert validate_params((NAME,), {"name": "x"}) == {"name": "x"}
    for given in ({}, {"name": ""}, {"name": None}):
        assert "the name" in refusal((NAME,), given).remedy


def test_unknown_parameters_are_refused_with_those_there_are() -> None:
    error = refusal((SIZE, SHARE), {"size": "1", "sise": "1"})
    assert error.parameter == "sise"
    assert "one of size, share" in error.remedy
    assert "no parameters" in refusal((), {"size": "1"}).remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3", -3),
        ("0", 0),
        (" 12 ", 12),
        ("+4", 4),
        ("1e3", 1000),
        ("2.0", 2),
        (str(2**60 + 1), 2**60 + 1),  # exactly, though no float holds it
    ],
)
def test_whole_numbers(text: str, value: int) -> None:
    read = validate_params((SIZE,), {"size": text})["size"]
    assert (read, type(read)) == (value, int)


@pytest.mark.parametrize("text", ["-4", str(2**60 + 2), "1.5", "inf", "-inf", "nan", "x", "-", "²", "1 2"])
def test_other_whole_numbers_are_refused_with_the_range(text: str) -> None:
    assert f"a whole number from -3 to {2**60 + 1}" in refusal((SIZE,), {"size": text}).remedy


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1", 1.0), ("1e-3", 0.001), (0.75, 0.75)])
def test_numbers(text: object, value: float) -> None:
    read = validate_params((SHARE,), {"share": text})["share"]
    assert (read, type(read)) == (value, float)


@pytest.mark.parametrize("text", ["-0.001", "1.001", "inf", "nan", "half"])
def test_other_numbers_are_refused_with_the_range(text: str) -> None:
    assert "a number from 0 to 1" in refusal((SHARE,), {"share": text}).remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("TRUE", True), ("yes", True), (True, True), ("0", False), ("False", False), ("no", False)],
)
def test_yes_and_no(text: object, value: bool) -> None:
    assert validate_params((replace(IS_OPEN, default=not value),), {"is_open": text}) == {"is_open": value}


def test_other_words_are_refused() -> None:
    assert "true or false" in refusal((IS_OPEN,), {"is_open": "2"}).remedy
    assert "one of a, b" in refusal((KIND,), {"kind": "c"}).remedy
    assert refusal((KIND,), {"kind": "A"}).parameter == "kind"
