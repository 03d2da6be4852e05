"""What requests may ask of a tool: its questions, the parameters that each requires, and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools import tool as tool_module
from tb_tpuprof.tools.arguments import validate_params
from tb_tpuprof.tools.base import Param, Question
from tests.builders import DrawnPlane, build, event
from tests.tools.drawn_session import session_of

# Without these a question means nothing; all other parameters of all tools may be left out.
REQUIRED = {
    "trace_viewer: event": ["event"],
    "trace_viewer: neighbour": ["event"],
    "trace_viewer: chain": ["event"],
    "trace_viewer: compare": ["a_start_ps", "a_end_ps", "b_start_ps", "b_end_ps"],
    "trace_viewer: dependencies": ["event"],
    "trace_viewer: places": ["events"],
    "flame_graph: function": ["function"],
    "op_profile: op": ["op"],
    "graph_viewer: search": ["text"],
    "tpu_compatibility: node": ["node"],
    "pod_viewer: channel": ["channel"],
}


def questions() -> Iterator[tuple[str, Question]]:
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            yield f"{tool.name}: {question.name}", question


def params_of(place: str) -> Sequence[Param]:
    return dict(questions())[place].params


def test_what_each_question_requires() -> None:
    required = {
        place: [param.name for param in question.params if param.is_required]
        for place, question in questions()
    }
    assert {place: names for place, names in required.items() if names} == REQUIRED
    assert not [
        param for tool in all_tools() for file in tool.files for param in file.params if param.is_required
    ]


@pytest.mark.parametrize(("place", "names"), REQUIRED.items())
def test_a_required_parameter_that_is_missing_is_named(place: str, names: list[str]) -> None:
    params = params_of(place)
    given = dict.fromkeys(names, "1")
    validate_params(params, given)
    for name in names:
        with pytest.raises(BadParameter, match=name):
            validate_params(params, {key: value for key, value in given.items() if key != name})


@pytest.mark.parametrize(("name", "most"), [("limit", 100_000), ("offset", 2**31)])
def test_most_rows_of_a_query(name: str, most: int) -> None:
    params = params_of("trace_viewer: slices")
    assert validate_params(params, {name: str(most)})[name] == most
    with pytest.raises(BadParameter, match=name):
        validate_params(params, {name: str(most + 1)})


def test_an_unknown_question_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadParameter) as caught:
        get_tool("kernel_stats").question("chain")
    assert caught.value.remedy == "Allowed: empty: this tool has only its page."
    with pytest.raises(BadParameter) as caught:
        get_tool("flame_graph").question("nothing")
    assert caught.value.remedy.startswith("Allowed: ")
    assert "function" in caught.value.remedy
    assert "only its page" not in caught.value.remedy


@pytest.mark.parametrize(("question", "waits", "awaits"), [("", True, 1), ("", False, 0), ("one", True, 0)])
def test_only_the_page_waits_for_its_verdict(
    monkeypatch: pytest.MonkeyPatch, question: str, waits: bool, awaits: int
) -> None:
    awaited: list[Any] = []
    monkeypatch.setattr(tool_module, "await_limits", lambda *arguments: awaited.append(arguments))
    tool = get_tool("framework_op_stats")
    tool = replace(tool, questions=(replace(tool.page, name="one"),))
    trace = build([DrawnPlane("/host:CPU", {"main": [event("a:MatMul", 0, 9)]})])
    tool.run(session_of(trace), None, {}, question, waits=waits)
    assert len(awaited) == awaits
