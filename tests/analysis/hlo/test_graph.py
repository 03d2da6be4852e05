"""The neighborhood of an instruction, its text by the line, classes, search and files, on drawn modules and
on recorded ones.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.classes import class_of
from tb_tpuprof.analysis.hlo.dot import dot_text, json_text
from tb_tpuprof.analysis.hlo.graph import HUB, GraphOptions, HloGraph, neighborhood
from tb_tpuprof.analysis.hlo.search import matching_rows
from tb_tpuprof.analysis.hlo.text.printer import LONG, SHORT, module_text
from tb_tpuprof.analysis.hlo.text.window import text_index
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tests.analysis.hlo.programs import recorded
from tests.ingest.hlo_protos import array, computation, instruction, proto, small_proto


def module_of(instructions: list[Any], *others: Any) -> HloModule:
    return decode_hlo(proto([*others, computation(1, "main", instructions, instructions[-1][35])]), "f", 7)


def chain(n: int) -> HloModule:
    """add.1 → add.2 → …"""
    return module_of([instruction(i, "add", array(2), [i - 1] if i > 1 else []) for i in range(1, n + 1)])


def names(module: HloModule, graph: HloGraph) -> set[str]:
    return {module.name(node.row) for node in graph.nodes}


def links(module: HloModule, graph: HloGraph) -> set[tuple[str, str, int]]:
    return {(module.name(edge.source), module.name(edge.target), edge.operand) for edge in graph.edges}


def around(module: HloModule, name: str, **options: Any) -> HloGraph:
    return neighborhood(module, module.find(name), GraphOptions(**options))


def test_so_many_hops_in_both_directions() -> None:
    module = chain(9)
    graph = around(module, "add.5", radius=2)
    assert names(module, graph) == {f"add.{i}" for i in (3, 4, 5, 6, 7)}
    assert links(module, graph) == {(f"add.{i}", f"add.{i + 1}", 0) for i in (3, 4, 5, 6)}
    hidden = {module.name(node.row): (node.n_hidden_operands, node.n_hidden_users) for node in graph.nodes}
    assert hidden == {"add.3": (1, 0), "add.4": (0, 0), "add.5": (0, 0), "add.6": (0, 0), "add.7": (0, 1)}
    assert {module.name(node.row): node.depth for node in graph.nodes}["add.7"] == 2
    assert names(module, around(module, "add.5", radius=0)) == {"add.5"}


def test_an_opened_fusion_reads_a_parameter_once_per_operand() -> None:
    body = [
        instruction(11, "parameter", array(2), f9=0),
        instruction(12, "parameter", array(2), f9=1),
        instruction(13, "select", array(2), [12, 11, 12]),
    ]
    entry = [instruction(i, "parameter", array(2), f9=i - 1) for i in (1, 2)]
    entry.append(instruction(3, "fusion", array(2), [1, 2], f38=(2,)))
    module = module_of(entry, computation(2, "body", body, 13))
    graph = around(module, "fusion.3", opens_all=True)
    assert sorted((module.name(edge.source), edge.operand) for edge in graph.edges) == [
        ("parameter.1", 1),
        ("parameter.2", 0),
        ("parameter.2", 2),
    ]


def test_a_value_that_all_read_ends_the_walk_unless_it_is_the_middle() -> None:
    n = HUB + 6
    instructions = [instruction(1, "constant", array())] + [
        instruction(i, "add", array(), [1, 1]) for i in range(2, n)
    ]
    module = module_of(instructions)
    assert names(module, around(module, "add.5", radius=9)) == {"constant.1", "add.5"}
    whole = around(module, "constant.1", radius=1, most_nodes=400)
    assert len(whole.nodes) == n - 1
    few = around(module, "constant.1", radius=1, most_nodes=10)
    assert (len(few.nodes), few.n_cut) == (10, n - 11)
    hot = neighborhood(
        module, module.find("constant.1"), GraphOptions(1, 2), lambda row: float(module.name(row) == "add.9")
    )
    assert names(module, hot) == {"constant.1", "add.9"}


def test_an_opened_fusion_is_a_frame_with_straight_edges() -> None:
    module = decode_hlo(small_proto(), "f", 7)
    merged = around(module, "dot.3", radius=1)
    assert links(module, merged) == {
        ("parameter.1", "dot.3", 0),
        ("parameter.2", "dot.3", 1),
        ("dot.3", "fusion.4", 0),
    }
    for opened in (
        around(module, "dot.3", radius=1, opens_all=True),
        around(module, "dot.3", radius=1, opened=frozenset({module.find("fusion.4")})),
    ):
        assert links(module, opened) - links(module, merged) == {
            ("dot.3", "exponential.12", 0),
            ("dot.3", "add.13", 1),
            ("exponential.12", "add.13", 0),
        }
        frames = {module.name(node.row): node.frame for node in opened.nodes if node.frame >= 0}
        assert frames == {name: module.find("fusion.4") for name in ("exponential.12", "add.13")}


def test_values_leave_an_opened_fusion_from_its_root() -> None:
    body = computation(
        20,
        "body",
        [instruction(11, "parameter", array(2), f9=0), instruction(12, "exponential", array(2), [11])],
        12,
    )
    module = module_of(
        [
            instruction(1, "iota", array(2)),
            instruction(2, "fusion", array(2), [1], f38=(20,)),
            instruction(3, "add", array(2), [2, 2]),
        ],
        body,
    )
    graph = around(module, "add.3", radius=1, opens_all=True)
    assert ("exponential.12", "add.3", 0) in links(module, graph)
    # Its producer is not shown, so the parameter stands for it.
    assert ("parameter.11", "exponential.12", 0) in links(module, graph)


def test_hostile_modules_end() -> None:
    circle = module_of([instruction(1, "add", array(2), [2, 99]), instruction(2, "add", array(2), [1])])
    assert links(circle, around(circle, "add.1", radius=40)) == {("add.2", "add.1", 0), ("add.1", "add.2", 0)}
    itself = computation(1, "main", [instruction(1, "fusion", array(2), [1], f38=(1,))], 1)
    module = decode_hlo(proto([itself]), "f", 7)
    assert len(around(module, "fusion.1", radius=40, opens_all=True).nodes) == 1


@pytest.mark.parametrize("options", [SHORT, LONG])
def test_lines_by_number_are_those_of_the_whole_text(options: Any) -> None:
    n_lines = 0
    for program in list(recorded().values())[::9]:
        module = decode_hlo(program.proto, program.name, 7)
        whole = list(module_text(module, options))
        index = text_index(module, options)
        assert index.n_lines == len(whole)
        for start, count in ((0, 5), (3, 40), (len(whole) // 2, 17), (len(whole) - 3, 10), (0, len(whole))):
            assert index.lines(start, count) == whole[start : start + count], (program.name, start)
        for row in range(0, module.n_instructions, 7):
            line = index.line_of(row)
            assert line < 0 or f"{module.name(row)} = " in whole[line]
        n_lines += len(whole)
    assert n_lines > 500


def test_classes() -> None:
    module = decode_hlo(small_proto(), "f", 7)
    found = {
        name: class_of(module, module.find(name))
        for name in ("dot.3", "fusion.4", "parameter.1", "exponential.12")
    }
    assert found == {
        "dot.3": "matrix",
        "fusion.4": "fusion",
        "parameter.1": "input",
        "exponential.12": "elementwise",
    }
    body = computation(20, "body", [instruction(11, "dot", array(2))], 11)
    inside = module_of(
        [
            instruction(2, "fusion", array(2), f38=(20,)),
            instruction(3, "custom-call", array(2), f28="__cublas$gemm"),
        ],
        body,
    )
    assert [class_of(inside, inside.find(name)) for name in ("fusion.2", "custom-call.3")] == [
        "matrix",
        "matrix",
    ]


def test_search_looks_at_names_opcodes_and_framework_ops() -> None:
    module = decode_hlo(small_proto(), "f", 7)
    found = {
        text: [module.name(row) for row in matching_rows(module, text).tolist()]
        for text in ("%DOT", "jit(f)", "fus", "nothing")
    }
    assert found == {"%DOT": ["dot.3"], "jit(f)": ["dot.3"], "fus": ["fusion.4"], "nothing": []}


def test_dot_and_json_tell_the_same_graph() -> None:
    module = decode_hlo(small_proto(), "f", 7)
    graph = around(module, "dot.3", radius=1, opens_all=True)
    text = "\n".join(dot_text(module, graph))
    assert text.count(" -> ") == len(graph.edges)
    assert f'subgraph "cluster_{module.find("fusion.4")}"' in text
    whole = json.loads(json_text(module, graph))
    assert whole["center"] == "dot.3"
    assert {(edge["from"], edge["to"], edge["operand"]) for edge in whole["edges"]} == links(module, graph)
    odd = module_of([{**instruction(1, "add", array(2)), 1: 'a"]; evil\\'}])
    assert '[label="a\\"]; evil\\\\\\nf32[2]"' in "\n".join(
        dot_text(odd, neighborhood(odd, 0, GraphOptions()))
    )
    named = module_of([{**instruction(1, "add", array(2)), 1: "größe"}])
    assert '"größe"' in json_text(named, neighborhood(named, 0, GraphOptions()))


def test_a_large_module_is_walked_at_once() -> None:
    n = 50_000
    module = module_of(
        [
            instruction(i, "add", array(2), [max(1, i - 1), max(1, i // 2)] if i > 1 else [])
            for i in range(1, n + 1)
        ]
    )
    assert len(module.users) == n  # made once for a module
    begun = time.process_time()
    graph = around(module, f"add.{n // 2}", radius=6)
    assert time.process_time() - begun < 0.3
    assert len(graph.nodes) > 20
    assert np.unique([node.row for node in graph.nodes]).size == len(graph.nodes)
