"""What is drawn of hand-made graphs: boxes, operations and the edges between them, with scopes open and
closed.
"""

from __future__ import annotations

import time

import numpy as np

from tb_tpuprof.analysis.graphs.drawing import (
    KINDS,
    MAX_CHILDREN,
    MAX_EDGES,
    MAX_ITEMS,
    OPERATION,
    REST,
    SCOPE,
    Drawing,
    drawing,
)
from tb_tpuprof.analysis.graphs.scopes import Scopes, scopes
from tb_tpuprof.analysis.graphs.tpu_compatibility import Compatibility, compatibility
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tests.graph_files import field, graph_def, node


def reads(data: bytes, *inputs: str) -> bytes:
    """The node with inputs."""
    return data + b"".join(field(3, name) for name in inputs)


def drawn(
    nodes: list[bytes], functions: dict[str, list[bytes]] | None = None, toggled: tuple[str, ...] = ()
) -> tuple[Compatibility, Scopes, Drawing]:
    data = graph_def(nodes, functions)
    found = compatibility(read_graph(np.frombuffer(data, np.uint8), 0, len(data)))
    tree = scopes(found)
    return found, tree, drawing(found, tree, [tree.path.index(path) for path in toggled])


def items(found: Compatibility, tree: Scopes, picture: Drawing) -> list[str]:
    """Kind and name of each item, with its frame's name before it."""

    def name(i: int) -> str:
        return (
            found.graph.name(int(picture.node[i]))
            if picture.kind[i] == OPERATION
            else tree.name[picture.scope[i]]
        )

    return [
        f"{name(int(picture.frame[i])) + ' > ' if picture.frame[i] >= 0 else ''}{KINDS[picture.kind[i]]} "
        f"{name(i)}"
        for i in range(len(picture))
    ]


CHAIN = [
    node("Placeholder", "x", dtype=1),
    reads(node("Relu", "a/b/one", T=1), "x"),
    reads(node("Relu", "a/b/two", T=1), "a/b/one:0"),
    reads(node("Relu", "a/top", T=1), "a/b/two", "a/b/one"),
    reads(node("Relu", "y", T=1), "a/top:0", "^x"),
]


def test_closed_scopes_are_boxes_and_edges_go_between_them() -> None:
    found, tree, picture = drawn(CHAIN)
    assert items(found, tree, picture) == ["scope a", "operation x", "operation y"]
    assert picture.counts.tolist() == [[3, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert sorted(picture.edges.tolist()) == [[0, 2, 1], [1, 0, 1], [1, 2, 1]]


def test_an_open_scope_frames_what_is_in_it() -> None:
    found, tree, picture = drawn(CHAIN, toggled=("a",))
    assert items(found, tree, picture) == [
        "scope a",
        "operation x",
        "operation y",
        "a > scope b",
        "a > operation a/top",
    ]
    assert picture.is_open.tolist() == [True, False, False, False, False]
    # two edges of operations between b and top are drawn as one
    assert sorted(picture.edges.tolist()) == [[1, 2, 1], [1, 3, 1], [3, 4, 2], [4, 2, 1]]
    _, _, closed = drawn(CHAIN, toggled=("a/b",))  # what is in a closed scope stays closed
    assert len(closed) == 3


def test_scopes_are_open_as_told_whatever_they_would_be() -> None:
    found, tree, _ = drawn([*CHAIN, reads(node("PyFunc", "bad/inner/call"), "y")])
    row = tree.path.index
    picture = drawing(found, tree, [], {row("a"): True, row("a/b"): True, row("bad"): False})
    is_open = {
        tree.name[scope]: told
        for scope, told, node_ in zip(picture.scope, picture.is_open, picture.node, strict=True)
        if node_ < 0
    }
    assert is_open == {"a": True, "b": True, "bad": False}
    twice = drawing(
        found, tree, [row("a"), row("bad")], {row("a"): False, row("bad"): True}
    )  # what is told counts, not the toggle
    assert [tree.name[scope] for scope, told in zip(twice.scope, twice.is_open, strict=True) if told] == [
        "bad",
        "inner",
    ]


def test_scopes_with_incompatible_operations_open_by_themselves() -> None:
    nodes = [*CHAIN, reads(node("PyFunc", "bad/inner/call"), "y")]
    found, tree, picture = drawn(nodes)
    assert "inner > operation bad/inner/call" in items(found, tree, picture)
    found, tree, picture = drawn(nodes, toggled=("bad",))
    assert not picture.is_open.any()
    bad = items(found, tree, picture).index("scope bad")
    assert picture.counts[bad].tolist() == [0, 1, 0]
    assert [
        one[1] for one in picture.edges.tolist() if one[0] == items(found, tree, picture).index("operation y")
    ] == [bad]


def test_names_are_looked_up_in_their_function_and_calls_lead_to_it() -> None:
    functions = {
        "f": [node("Relu", "x", T=1), reads(node("Relu", "s/x2", T=1), "x:activations:0", "argument")],
        "g": [node("PyFunc", "p")],
    }
    found, tree, picture = drawn(
        [node("Placeholder", "x", dtype=1), reads(node("PartitionedCall", "call", calls=["f", "g"]), "x")],
        functions,
    )
    assert found.graph.edges.tolist() == [[0, 1], [2, 3]]
    names = items(found, tree, picture)
    call, f = names.index("operation call"), names.index("(functions) > scope f")
    assert [call, f, 1] in picture.calls.tolist()
    found, tree, picture = drawn(
        [node("PartitionedCall", "call", calls=["f"])], {"f": [node("Relu", "x", T=1)]}
    )
    assert picture.calls.tolist() == [
        [
            items(found, tree, picture).index("operation call"),
            items(found, tree, picture).index("scope (functions)"),
            1,
        ]
    ]


def test_a_call_of_an_empty_function_leads_nowhere() -> None:
    """It has no operations, so nothing is drawn of it."""
    nodes = [node("Placeholder", "x", dtype=1), reads(node("PartitionedCall", "call", calls=["empty"]), "x")]
    _found, _tree, picture = drawn(nodes, {"empty": [], "full": [node("Relu", "y", T=1)]})
    assert picture.calls.tolist() == []


def test_of_many_children_the_incompatible_and_large_ones_are_drawn() -> None:
    many = [node("Relu", f"r{i}", T=1) for i in range(100)]
    found, tree, picture = drawn(
        [*many, node("PyFunc", "zz"), node("Relu", "scope/a", T=1), node("Relu", "scope/b", T=1)]
    )
    names = items(found, tree, picture)
    assert len(picture) == MAX_CHILDREN + 1
    assert {"operation zz", "scope scope"} <= set(names)
    assert picture.kind.tolist().count(REST) == 1
    assert picture.counts[picture.kind == REST].tolist() == [[100 - (MAX_CHILDREN - 2), 0, 0]]
    assert picture.counts.sum(0).tolist() == [102, 1, 0]  # nothing is lost


def test_the_drawing_is_bounded_and_fast() -> None:
    nodes = [
        reads(
            node("PyFunc", f"s{i % 50}/t{i % 7}/n{i}"),
            *(f"s{j % 50}/t{j % 7}/n{j}" for j in range(max(0, i - 3), i)),
        )
        for i in range(60_000)
    ]
    data = graph_def(nodes)
    found = compatibility(read_graph(np.frombuffer(data, np.uint8), 0, len(data)))
    tree = scopes(found)
    start = time.process_time()
    picture = drawing(found, tree, [row for row in range(len(tree.name)) if tree.path[row].count("/") < 2])
    assert time.process_time() - start < 3
    assert len(picture) <= MAX_ITEMS + MAX_CHILDREN + 1
    assert len(picture.edges) <= MAX_EDGES
    whole = picture.counts[(picture.frame < 0)].sum()
    assert whole == 60_000
    assert all(
        picture.kind[frame] == SCOPE and picture.is_open[frame] and frame < i
        for i, frame in enumerate(picture.frame.tolist())
        if frame >= 0
    )


def test_hostile_inputs_are_left_out() -> None:
    nodes = [
        reads(node("Relu", "a", T=1), "", "^", ":0", "a", "missing", "b:9:9:9", "^^b"),
        node("Relu", "b", T=1),
        node("Relu", "b", T=1),
    ]
    found, _, picture = drawn(nodes)
    assert found.graph.edges.tolist() == [[0, 0], [1, 0]]  # of equal names the first
    assert picture.edges.tolist() == [[1, 0, 1]]
    assert len(drawn([])[2]) == 0
