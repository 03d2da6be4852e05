"""Lines, constants and drawings of HLO modules written by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.dot import dot_text, json_text
from tb_tpuprof.analysis.hlo.graph import HUB, MOST_NODES, Edge, GraphOptions, HloGraph, Node, neighborhood
from tb_tpuprof.analysis.hlo.text.literals import literal_text, small_float
from tb_tpuprof.analysis.hlo.text.printer import LONG, SHORT, instruction_text, module_text
from tb_tpuprof.analysis.hlo.text.window import text_index
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import Literal
from tb_tpuprof.trace.hlo_shape import Shape
from tests.ingest.hlo_protos import array, computation, instruction, proto, small_proto

F32, TUPLE = 11, 13


def module_of(instructions: list[Any], *others: Any, **more: Any) -> HloModule:
    main = computation(1, "main", instructions, instructions[-1][35])
    return decode_hlo(proto([*others, main], **more), "f", 7)


# Element type → bits of exponent and mantissa, bias, whether the largest exponent is for infinity and NaN
# (IEEE), and the encodings of NaN otherwise (OCP's formats for 8 and 4 bits, and their variants without
# negative zero).
FORMATS: dict[int, tuple[int, int, int, bool, set[int]]] = {
    19: (5, 2, 15, True, set()),
    28: (4, 3, 7, True, set()),
    29: (3, 4, 3, True, set()),
    20: (4, 3, 7, False, {0x7F, 0xFF}),
    23: (4, 3, 11, False, {0x80}),
    24: (5, 2, 16, False, {0x80}),
    25: (4, 3, 8, False, {0x80}),
    32: (2, 1, 1, False, set()),
}


@pytest.mark.parametrize("code", list(FORMATS))
def test_every_encoding_of_the_small_formats(code: int) -> None:
    n_exponent, n_mantissa, bias, is_ieee, nans = FORMATS[code]
    n_bits = 1 + n_exponent + n_mantissa
    for bits in range(2**n_bits):
        digits = f"{bits:0{n_bits}b}"
        sign, exponent, mantissa = (
            -1 if digits[0] == "1" else 1,
            int(digits[1 : 1 + n_exponent], 2),
            int(digits[1 + n_exponent :], 2),
        )
        value = small_float(bits, code)
        if bits in nans or (is_ieee and exponent == 2**n_exponent - 1 and mantissa):
            assert math.isnan(value), bits
        elif is_ieee and exponent == 2**n_exponent - 1:
            assert value == sign * math.inf
        elif exponent:
            assert value == math.ldexp(sign * (2**n_mantissa + mantissa), exponent - bias - n_mantissa)
        else:
            assert value == math.ldexp(sign * mantissa, 1 - bias - n_mantissa)
            assert math.copysign(1, value) == sign


def test_powers_of_two_in_eight_bits() -> None:
    assert [small_float(bits, 33) for bits in (0, 1, 126, 127, 128, 254)] == [
        2.0**n for n in (-127, -126, -1, 0, 1, 127)
    ]
    assert math.isnan(small_float(255, 33))


def text_of(code: int, values: Any, dims: tuple[int, ...] | None = None, limit: int = 100) -> str:
    made = np.asarray(values)
    return literal_text(Literal(Shape(code, made.shape if dims is None else dims), made), limit)


@pytest.mark.parametrize(
    ("code", "values", "text"),
    [
        (10, np.array([0.1, 1 / 3, 65504], np.float64), "{0.1, 0.33333, 65504}"),
        (16, np.array([0x3DCD, 0x3EAB, 0xC000, 0x7F80, 0xFF80], np.uint16), "{0.1001, 0.334, -2, inf, -inf}"),
        (
            11,
            np.array([0.1, 1 / 3, 16777216, 123456.7], np.float32),
            "{0.1, 0.333333343, 16777216, 123456.703}",
        ),
        (12, np.array([0.1, 1 / 3, 0.1 + 0.2]), "{0.1, 0.33333333333333331, 0.30000000000000004}"),
        (15, np.array([1 / 3 + 2j], np.complex64), "{(0.333333343, 2)}"),
        (18, np.array([1 / 3 - 0.1j]), "{(0.33333333333333331, -0.1)}"),
        (11, np.array([np.nan, np.copysign(np.nan, -1)], np.float32), "{nan, -nan}"),
        (19, np.array([0x35, 0x3F], np.uint8), "{0.31, 1.8}"),
        (20, np.array([0x29, 0x7E], np.uint8), "{0.281, 448}"),
        (4, np.array([-5, 7], np.int32), "{-5, 7}"),
        (1, np.array([[True], [False]]), "{ { 1 }, { 0 } }"),
    ],
)
def test_elements_of_constants(code: int, values: Any, text: str) -> None:
    assert text_of(code, values) == text


def test_constants_by_their_dimensions() -> None:
    assert text_of(1, np.array(True)) == "true"
    assert text_of(1, np.array(False)) == "false"
    assert text_of(4, np.array(1)) == "1"
    assert text_of(4, np.arange(3)) == "{0, 1, 2}"
    assert text_of(4, np.arange(4).reshape(2, 2)) == "{ { 0, 1 }, { 2, 3 } }"
    assert text_of(4, np.arange(4).reshape(2, 1, 2)) == "{ { { 0, 1 } }, { { 2, 3 } } }"
    assert [text_of(4, np.empty(dims)) for dims in ((0,), (0, 2), (2, 0), (0, 2, 3))] == [
        "{}",
        "{ {} }",
        "{ {} }",
        "{...}",
    ]
    assert [text_of(4, np.arange(3), limit=limit) for limit in (2, 3)] == ["{...}", "{0, 1, 2}"]
    assert text_of(4, np.empty(0), ()) == "{...}"
    assert literal_text(Literal(Shape(F32, (3,))), 9) == "{...}"
    parts = (Literal(Shape(4), np.array(1)), Literal(Shape(TUPLE)), Literal(Shape(4, (2,)), np.arange(2)))
    assert literal_text(Literal(Shape(TUPLE), elements=parts), 9) == "( 1, (  ), {0, 1} )"


def windowed() -> HloModule:
    """A wrapped asynchronous operation, a partial schedule, a thread of its own, computations of 1, 2 and 5
    lines.
    """
    shape = array(2)
    wrapped = computation(
        2, "wrapped", [instruction(20, "parameter", shape, f9=0), instruction(21, "negate", shape, [20])], 21
    )
    own = {**computation(3, "own", [instruction(30, "add", shape)], 30), 13: "sparse"}
    entry = [
        instruction(1, "parameter", shape, f9=0),
        instruction(2, "async-start", {2: TUPLE, 4: [shape, shape]}, [1], f38=(2,)),
        instruction(3, "async-done", shape, [2]),
        instruction(4, "call", shape, [3], f38=(3,)),
        instruction(5, "add", shape, [4, 4]),
    ]
    return module_of(
        entry,
        wrapped,
        own,
        f7={1: [{1: 1, 2: {1: (1, 2, 3, 5)}}]},
        f17={1: ["a.py"], 2: ["f"], 3: [{1: 1, 2: 1, 3: 3}], 4: [{1: 1}]},
    )


@pytest.mark.parametrize("options", [LONG, SHORT])
def test_any_range_of_lines(options: Any) -> None:
    for module in (windowed(), decode_hlo(small_proto(), "f", 7)):
        whole, index = list(module_text(module, options)), text_index(module, options)
        assert index.n_lines == len(whole)
        for start in range(len(whole) + 2):
            for count in range(len(whole) + 2):
                assert index.lines(start, count) == whole[start : start + count], (start, count)
        for row in range(module.n_instructions):
            text = f"  {instruction_text(module, row, options)}"
            assert index.line_of(row) == (whole.index(text) if text in whole else -1)
    module = windowed()
    names = [
        module.name(row)
        for row in range(module.n_instructions)
        if text_index(module, options).line_of(row) < 0
    ]
    assert set(names) >= {"parameter.20", "negate.21", "call.4"}
    assert {text_index(module, options).line_of(module.find(name)) for name in names} == {-1}


def nodes_of(module: HloModule, graph: HloGraph) -> dict[str, Node]:
    return {module.name(node.row): node for node in graph.nodes}


def around(module: HloModule, name: str, **options: Any) -> HloGraph:
    return neighborhood(module, module.find(name), GraphOptions(**options))


def star(n_operands: int) -> HloModule:
    """end.900 reads the hub 500, which reads so many parameters."""
    parameters = [instruction(i, "parameter", array(2), f9=i - 1) for i in range(1, n_operands + 1)]
    return module_of(
        [
            *parameters,
            instruction(500, "tuple", array(2), range(1, n_operands + 1)),
            instruction(900, "negate", array(2), [500]),
        ]
    )


def test_the_walk_continues_through_nodes_with_up_to_24_neighbors() -> None:
    for n_operands in (HUB - 2, HUB - 1, HUB):
        module = star(n_operands)
        graph = around(module, "negate.900", radius=2)
        is_small = n_operands + 1 <= 24
        assert len(graph.nodes) == (2 + n_operands if is_small else 2)
        hub = nodes_of(module, graph)["tuple.500"]
        assert (hub.n_hidden_operands, hub.n_hidden_users) == (0 if is_small else n_operands, 0)
        assert {node.depth for node in graph.nodes} == ({0, 1, 2} if is_small else {0, 1})


def test_the_heaviest_nodes_are_kept() -> None:
    module = star(20)
    heavy = {f"parameter.{i}": float(i % 7) for i in range(1, 21)}
    graph = neighborhood(
        module, module.find("tuple.500"), GraphOptions(1, 8), lambda row: heavy.get(module.name(row), 9.0)
    )
    kept = set(nodes_of(module, graph))
    assert (len(kept), graph.n_cut) == (8, 21 - 7)
    assert {"tuple.500", "negate.900", "parameter.6", "parameter.13", "parameter.20"} <= kept
    assert {heavy.get(name, 9.0) for name in kept} == {9.0, 6.0, 5.0}
    assert around(module, "tuple.500", radius=1, most_nodes=22).n_cut == 0
    assert around(module, "tuple.500", radius=1, most_nodes=21).n_cut == 1
    assert len(around(module, "tuple.500", radius=1, most_nodes=0).nodes) == 1


def opened(n_body: int, root: int = 11) -> HloModule:
    """fusion.4 reads x twice and y; its body: parameters 0 and 2, and a chain of so many instructions."""
    shape = array(2)
    chain = [instruction(20 + i, "negate", shape, [19 + i if i else 10]) for i in range(n_body - 3)]
    body = [
        instruction(10, "parameter", shape, f9=0),
        instruction(12, "parameter", shape, f9=2),
        *chain,
        instruction(11, "add", shape, [10, 12, 10]),
    ]
    entry = [
        instruction(1, "parameter", shape, f9=0),
        instruction(2, "parameter", shape, f9=1),
        instruction(4, "fusion", shape, [1, 1, 2, 88], f38=(2,), f11="kLoop"),
        instruction(5, "negate", shape, [4]),
    ]
    return module_of(entry, computation(2, "body", body, root))


def test_an_opened_fusion_with_values_that_are_handed_over_and_not() -> None:
    module = opened(4)
    graph = around(module, "fusion.4", radius=1, opened=frozenset({module.find("fusion.4")}))
    names = nodes_of(module, graph)
    assert set(names) == {"fusion.4", "parameter.1", "parameter.2", "negate.5", "negate.20", "add.11"}
    assert names["fusion.4"].is_frame
    assert {node.frame for node in graph.nodes} == {-1, module.find("fusion.4")}
    assert {name for name, node in names.items() if node.frame == module.find("fusion.4")} == {
        "negate.20",
        "add.11",
    }
    assert {node.depth for node in graph.nodes if node.frame >= 0} == {0}
    links = sorted((module.name(edge.source), module.name(edge.target), edge.operand) for edge in graph.edges)
    assert links == [
        ("add.11", "negate.5", 0),
        ("parameter.1", "add.11", 0),
        ("parameter.1", "add.11", 2),
        ("parameter.1", "negate.20", 0),
        ("parameter.2", "add.11", 1),
    ]
    alone = around(module, "fusion.4", radius=0, opens_all=True)
    assert set(nodes_of(module, alone)) == {"fusion.4", "parameter.10", "parameter.12", "negate.20", "add.11"}
    assert (
        nodes_of(module, alone)["fusion.4"].n_hidden_operands,
        nodes_of(module, alone)["fusion.4"].n_hidden_users,
    ) == (2, 1)
    assert not any(node.is_frame for node in around(module, "fusion.4", radius=1).nodes)


def test_a_body_without_a_known_root_ends_with_its_last_instruction() -> None:
    module = opened(4, root=77)
    graph = around(module, "negate.5", radius=1, opens_all=True)
    assert {
        (module.name(edge.source), edge.operand)
        for edge in graph.edges
        if module.name(edge.target) == "negate.5"
    } == {("add.11", 0)}


def test_bodies_open_while_there_is_room() -> None:
    for n_body, is_open in ((MOST_NODES - 4, True), (MOST_NODES - 3, False)):
        module = opened(n_body)
        graph = around(module, "fusion.4", radius=1, opens_all=True)
        assert any(node.is_frame for node in graph.nodes) == is_open
        assert graph.n_cut == (0 if is_open else n_body)


@pytest.mark.parametrize("seed", range(12))
def test_a_neighborhood_is_what_a_plain_walk_reaches(seed: int) -> None:
    draw, n = np.random.default_rng(seed), 25
    reads = {
        i: draw.integers(1, i, int(draw.integers(0, 4))).tolist() if i > 1 else [] for i in range(1, n + 1)
    }
    module = module_of([instruction(i, "add", array(2), reads[i]) for i in reads])
    neighbors = {i: {*reads[i], *(j for j in reads if i in reads[j])} for i in reads}
    center, radius = int(draw.integers(1, n + 1)), int(draw.integers(0, 4))
    depth, border = {center: 0}, {center}
    for distance in range(1, radius + 1):
        border = {other for one in border for other in neighbors[one]} - set(depth)
        depth |= dict.fromkeys(border, distance)
    graph = around(module, f"add.{center}", radius=radius)
    found = {
        name: (node.depth, node.n_hidden_operands, node.n_hidden_users)
        for name, node in nodes_of(module, graph).items()
    }
    users = {i: {j for j in reads if i in reads[j]} for i in reads}
    assert found == {
        f"add.{i}": (d, len(set(reads[i]) - set(depth)), len(users[i] - set(depth))) for i, d in depth.items()
    }
    assert sorted((module.name(e.source), module.name(e.target), e.operand) for e in graph.edges) == sorted(
        (f"add.{source}", f"add.{i}", k)
        for i in depth
        for k, source in enumerate(reads[i])
        if source in depth
    )
    assert graph.n_cut == 0


def test_a_drawing_marks_its_center_and_frames() -> None:
    """The fusion is row 0: its frame has the lowest number. Long shapes are cut after 80 characters."""
    long = array(*range(100, 140))
    body = computation(2, "body", [instruction(10, "dot", array(2))], 10)
    entry = computation(
        1, "main", [instruction(1, "fusion", long, f38=(2,)), instruction(2, "all-reduce", array(2), [1])], 2
    )
    module = decode_hlo(proto([entry, body]), "f", 7)
    fusion, reduce, dot = (module.find(name) for name in ("fusion.1", "all-reduce.2", "dot.10"))
    assert fusion == 0
    graph = HloGraph(
        reduce,
        (Node(fusion, 1, is_frame=True), Node(reduce, 0), Node(dot, 1, fusion)),
        (Edge(fusion, reduce, 0), Edge(dot, reduce, 0)),
        3,
    )
    lines = list(dot_text(module, graph))
    text = module.shape(fusion).text(with_layout=False)
    assert len(text) > 160
    assert lines[0] == 'digraph "jit_f" {'
    assert lines[3:] == [
        f'  n{reduce} [label="all-reduce.2\\nf32[2]", fillcolor="#eadcf8", penwidth=3];',
        '  subgraph "cluster_0" { label="fusion.1";',
        f'    n{dot} [label="dot.10\\nf32[2]", fillcolor="#cfe0f5"];',
        "  }",
        f'  n{fusion} -> n{reduce} [label="{text[:80]}"];',
        f'  n{dot} -> n{reduce} [label="f32[2]"];',
        "}",
    ]
    closed = list(dot_text(module, HloGraph(fusion, (Node(fusion, 0),), (), 0)))
    assert closed[3] == f'  n0 [label="fusion.1\\n{text[:80]}", fillcolor="#cfe0f5", penwidth=3];'
    whole = json.loads(json_text(module, graph))
    assert [(node["name"], node["fusion"], node["depth"], node["class"]) for node in whole["nodes"]] == [
        ("fusion.1", None, 1, "matrix"),
        ("all-reduce.2", None, 0, "collective"),
        ("dot.10", "fusion.1", 1, "matrix"),
    ]
    assert [node["computation"] for node in whole["nodes"]] == ["main", "main", "body"]
    assert (whole["n_cut"], whole["module"]) == (3, "jit_f")
    assert json_text(module, graph).startswith('{\n "module": "jit_f"')


@pytest.mark.parametrize(
    ("n_times", "n_edges", "n_hidden"), [(3900, 3900, 0), (4000, 4000, 0), (4100, 4000, 4099)]
)
def test_at_most_four_thousand_edges_are_drawn(n_times: int, n_edges: int, n_hidden: int) -> None:
    """Beyond that many users they are counted with repetitions."""
    module = module_of([instruction(1, "add", array(2)), instruction(2, "tuple", array(2), [1] * n_times)])
    graph = around(module, "tuple.2", radius=1)
    assert len(graph.edges) == n_edges
    assert nodes_of(module, graph)["add.1"].n_hidden_users == n_hidden
