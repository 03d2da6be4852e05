"""That the live comparison of real runs sees each cell: whatever is changed in the peer's answer shows as a
difference.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance import live_corpus_compiled, live_corpus_memory
from tests.conformance.live import Compared
from tests.conformance.live_devices import Field
from tests.conformance.peer import answer, open_session
from tests.conformance.test_memory_viewer import answers  # noqa: F401

TPU = "xprof_tpu_inference_2_old__run"
Answers = dict[str, Any]

pytestmark = pytest.mark.slow


def unequal(found: Iterator[Field] | list[Field]) -> set[Field]:
    return {field for field in found if not Compared("x", *field, floor=1e-9).is_equal}


def changed(value: Any) -> Any:
    """Something else of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return type(value)(value * 1.5) + 1
    if isinstance(value, str):
        return f"{value}x" if not value.replace(".", "").isdigit() else f"9{value}"
    if isinstance(value, list):
        return [changed(value[0]), *value[1:]] if value else ["x"]
    assert isinstance(value, dict)
    return (
        {**value, "x": 1}
        if not value
        else {key: changed(one) if i == 0 else one for i, (key, one) in enumerate(value.items())}
    )


def compiled(tool: str, said: Answers) -> set[Field]:
    known = {
        "hlo_stats": answer(TPU, "hlo_stats"),
        "roofline_model": answer(TPU, "roofline_model"),
        "op_profile": answer(TPU, "op_profile"),
    } | said
    compare: dict[str, Callable[[], Iterator[Field]]] = {
        "hlo_stats": lambda: live_corpus_compiled.stats(open_session(TPU), known["hlo_stats"]),
        "roofline_model": lambda: live_corpus_compiled.roofline(open_session(TPU), known["roofline_model"]),
        "op_profile": lambda: live_corpus_compiled.tree(
            open_session(TPU), "tree", known["op_profile"]["byProgram"], "program", with_idle=True
        ),
    }
    return unequal(compare[tool]())


@pytest.mark.parametrize("tool", ["hlo_stats", "roofline_model"])
def test_each_cell_of_a_table_is_compared(tool: str) -> None:
    before = compiled(tool, {})
    said = answer(TPU, tool)
    whole = said[0] if tool == "roofline_model" else said
    for row in (0, 8):
        for column, about in enumerate(whole["cols"]):
            other = copy.deepcopy(said)
            table = other[0] if tool == "roofline_model" else other
            cell = table["rows"][row]["c"][column]
            cell["v"] = changed(cell["v"])
            assert compiled(tool, {tool: other}) - before, (row, about["id"])


def test_each_property_of_the_roofline_is_compared() -> None:
    before = compiled("roofline_model", {})
    said = answer(TPU, "roofline_model")
    for name in said[0]["p"]:
        other = copy.deepcopy(said)
        other[0]["p"][name] = changed(other[0]["p"][name])
        assert compiled("roofline_model", {"roofline_model": other}) - before, name


def test_each_part_of_an_operation_in_the_tree_is_compared() -> None:
    before = compiled("op_profile", {})
    said = answer(TPU, "op_profile")

    def leaf(tree: Answers) -> Answers:
        node: Answers = tree["byProgram"]["children"][0]["children"][0]["children"][0]
        return node

    assert "xla" in leaf(said)
    for part in ("metrics", "xla"):
        for name in leaf(said)[part]:
            other = copy.deepcopy(said)
            leaf(other)[part][name] = changed(leaf(other)[part][name])
            assert compiled("op_profile", {"op_profile": other}) - before, name


def test_each_part_of_a_program_s_memory_is_compared(answers: Answers) -> None:  # noqa: F811
    title = "jit_f(12190760917235803885)"
    said = answers[TPU]
    before = unequal(live_corpus_memory.fields(open_session(TPU), said))
    for name in said[title]["0"]:
        other = copy.deepcopy(said)
        other[title]["0"][name] = changed(other[title]["0"][name])
        assert unequal(live_corpus_memory.fields(open_session(TPU), other)) - before, name
    lists = {"maxHeap": 0, "bufferBlocks": 1, "indefiniteLifetimes": 0}
    for name, at in lists.items():
        for part in said[title]["0"][name][at]:
            other = copy.deepcopy(said)
            item = other[title]["0"][name][at]
            item[part] = changed(item[part])
            assert unequal(live_corpus_memory.fields(open_session(TPU), other)) - before, (name, part)
