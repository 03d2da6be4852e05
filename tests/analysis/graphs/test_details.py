"""Scopes, callers and drawings of random graphs compared with plain walks, and at both sides of
their limits.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.graphs.drawing import KINDS, MAX_CHILDREN, MAX_EDGES, Drawing, drawing
from tb_tpuprof.analysis.graphs.scopes import MAX_DEPTH, Scopes, scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import (
    REFERENCE,
    STATUSES,
    Compatibility,
    compatibility,
    type_name,
)
from tb_tpuprof.analysis.graphs.tpu_kernels import TYPE_NAMES
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tests.graph_files import FLOAT, STRING, field, graph_def, node

VALID, INVALID, UNCHECKED = 0, 1, 2
OPS = {VALID: ("Add", ""), INVALID: ("PyFunc", ""), UNCHECKED: ("PyFunc", "/cpu:0")}
Made = list[tuple[str, int]]  # name, status


def checked(nodes: list[bytes], functions: dict[str, list[bytes]] | None = None) -> Compatibility:
    data = graph_def(nodes, functions)
    return compatibility(read_graph(np.frombuffer(data, np.uint8), 0, len(data)))


def nodes_of(made: Made) -> list[bytes]:
    return [node(OPS[status][0], name, device=OPS[status][1]) for name, status in made]


def random_nodes(rng: random.Random, n: int) -> Made:
    parts = [rng.choice("abc") for _ in range(3)]
    return [
        (
            "/".join(
                [*rng.sample("abcd", rng.randint(0, 3)), *rng.sample(parts, rng.randint(0, 1)), f"n{i}"]
            ),
            rng.choice((VALID, VALID, INVALID, UNCHECKED)),
        )
        for i in range(n)
    ]


class Branch:
    """A scope of the plain tree."""

    def __init__(self, name: str, path: str, function: str) -> None:
        self.name, self.path, self.function = name, path, function
        self.children: dict[str, Branch] = {}
        self.own: list[tuple[str, int]] = []

    def child(self, name: str, path: str, function: str) -> Branch:
        return self.children.setdefault(name, Branch(name, path, function))

    def counts(self) -> list[int]:
        total = [sum(status == one for _, one in self.own) for status in range(3)]
        return [
            a + b
            for a, b in zip(
                total,
                (
                    map(sum, zip(*(c.counts() for c in self.children.values()), strict=True))
                    if self.children
                    else (0, 0, 0)
                ),
                strict=True,
            )
        ]

    def ordered(self) -> list[Branch]:
        return sorted(
            self.children.values(), key=lambda one: (-one.counts()[1], -sum(one.counts()), one.name)
        )

    def rows(self) -> list[Branch]:
        return [self, *(row for one in self.ordered() for row in one.rows())]


def plain_tree(made: Made, functions: dict[str, Made]) -> Branch:
    root = Branch("(graph)", "(graph)", "")
    for function, nodes in ({"": made} | functions).items():
        base = root
        if function and nodes:
            base = root.child("(functions)", "(functions)", "").child(function, function, function)
        for name, status in nodes:
            branch, parts = base, name.split("/")[:-1]
            for depth, part in enumerate(parts, 1):
                branch = branch.child(part, "/".join(parts[:depth]), function)
            branch.own.append((name, status))
    return root


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_random_graphs(seed: int) -> None:
    rng = random.Random(f"scopes {seed}")
    for _ in range(6):
        made = random_nodes(rng, rng.randint(0, 12))
        functions = {
            name: random_nodes(rng, rng.randint(1, 6))
            for name in rng.sample(("f", "g", "a"), rng.randint(0, 3))
        }
        found = checked(nodes_of(made), {name: nodes_of(nodes) for name, nodes in functions.items()} or None)
        tree, rows = scopes(found), plain_tree(made, functions).rows()
        assert list(zip(tree.name, tree.path, tree.function, tree.counts.tolist(), strict=True)) == [
            (row.name, row.path, row.function, row.counts()) for row in rows
        ]
        assert [tree.name[parent] if parent >= 0 else None for parent in tree.parent.tolist()] == [
            next((other.name for other in rows if row in other.children.values()), None) for row in rows
        ]
        for i, row in enumerate(tree.of_node.tolist()):
            assert found.graph.name(i) in {name for name, _ in rows[row].own}
        assert tree.n_merged == 0


def test_scopes_up_to_forty_deep_have_their_rows() -> None:
    for depth, n_merged in ((MAX_DEPTH - 1, 0), (MAX_DEPTH, 0), (MAX_DEPTH + 1, 1)):
        tree = scopes(checked([node("Add", "/".join([*(f"s{i}" for i in range(depth)), "x"]))]))
        assert (len(tree.name), tree.n_merged) == (1 + min(depth, MAX_DEPTH), n_merged)
        assert tree.of_node.tolist() == [min(depth, MAX_DEPTH)]
        assert tree.name[-1] == f"s{min(depth, MAX_DEPTH) - 1}"


@pytest.mark.parametrize("seed", range(8))
def test_functions_are_checked_if_a_path_of_calls_leads_to_them(seed: int) -> None:
    """Random calls between six functions, some from the host, some marked as TPU computations."""
    rng = random.Random(f"callers {seed}")
    reasons: Counter[str] = Counter()
    for _ in range(30):
        names, is_marked = [f"f{i}" for i in range(6)], rng.random() < 0.5
        calls: dict[str, list[tuple[str, bool, bool]]] = {  # callee, from the host, in a TPU computation
            caller: [
                (rng.choice(names), rng.random() < 0.3, is_marked and rng.random() < 0.3)
                for _ in range(rng.choice((0, 1, 2)))
            ]
            for caller in ("", *names)
        }
        leaf_marks = {caller: is_marked and rng.random() < 0.2 for caller in calls}
        bodies = {
            caller: [
                node("PyFunc", f"leaf_{caller}", marks=["_tpu_replicate"] * leaf_marks[caller]),
                *(
                    node(
                        callee if rng.random() < 0.3 else "PartitionedCall",
                        f"c{i}_{caller}",
                        calls=[callee],
                        device="/cpu:0" * on_host,
                        marks=["_tpu_replicate"] * on_tpu,
                    )
                    for i, (callee, on_host, on_tpu) in enumerate(own)
                ),
            ]
            for caller, own in calls.items()
        }
        uses_marks = any(leaf_marks.values()) or any(on_tpu for own in calls.values() for _, _, on_tpu in own)
        called = {callee for caller, own in calls.items() for callee, _, _ in own if callee != caller}
        reached = {("", False), *((name, False) for name in names if name not in called)}
        border = list(reached)
        while border:
            caller, is_tpu = border.pop()
            for callee, on_host, on_tpu in calls[caller]:
                state = callee, is_tpu or on_tpu or not uses_marks
                if not on_host and state not in reached:
                    reached.add(state)
                    border.append(state)
        found = checked(bodies[""], {name: bodies[name] for name in names})
        graph = found.graph
        for i in range(len(graph)):
            if graph.name(i).startswith("leaf_"):
                caller = graph.name(i).removeprefix("leaf_")
                if not {(caller, False), (caller, True)} & reached:
                    expected = "called only by the host"
                elif uses_marks and (caller, True) not in reached and not leaf_marks[caller]:
                    expected = "outside the TPU computation"
                else:
                    expected = "no kernel for TPUs"
                assert found.reasons[found.reason[i]] == expected
                assert STATUSES[found.status[i]] == (
                    "incompatible" if expected.startswith("no") else "not checked"
                )
                reasons[expected] += 1
    assert min(reasons.values()) > 3


def test_types_of_several_attributes() -> None:
    nodes = [
        node("Cast", "both", SrcT=FLOAT, DstT=STRING),
        node("Cast", "good", SrcT=FLOAT, DstT=FLOAT),
        node("Cast", "first", SrcT=STRING, DstT=FLOAT),
        node("Identity", "resource", T=20),
        node("Identity", "list", T=[FLOAT, STRING]),
        node("Identity", "ref", T=101),
        node("Identity", "hundred", T=100),
        node("Identity", "zero", T=0),
        node("Identity", "beyond", T=254),
        node("Identity", "last", T=255),
        node("PlaceholderV2", "input", dtype=STRING),
        node("Placeholder", "fine", dtype=FLOAT),
    ]
    found = checked(nodes)
    reasons = {found.graph.name(i): found.reasons[found.reason[i]] for i in range(len(found.graph))}
    assert reasons == {
        "both": "no kernel for string",
        "good": "has a kernel",
        "first": "no kernel for string",
        "resource": "has a kernel",
        "list": "no kernel for string",
        "ref": REFERENCE,
        "hundred": "no kernel for type 100",
        "zero": "no kernel for type 255",
        "beyond": REFERENCE,
        "last": "no kernel for type 255",
        "input": "no kernel for string",
        "fine": "resolved before XLA compiles",
    }
    n = len(TYPE_NAMES)
    assert [type_name(number) for number in (0, 1, n, n + 1)] == [
        "type 0",
        TYPE_NAMES[0],
        TYPE_NAMES[-1],
        f"type {n + 1}",
    ]


def test_only_the_graph_s_own_saver_is_left_out() -> None:
    saver = [
        node("Placeholder", "saver_filename", dtype=STRING),
        node("StringLower", "save_1/low"),
        node("StringLower", "save"),
        node("StringLower", "saved/low"),
    ]
    function = {"f": [node("StringLower", "save/inner"), node("Placeholder", "saver_filename", dtype=STRING)]}
    for nodes, is_saver in (([*saver, node("SaveV2", "save/op")], True), (saver, False)):
        found = checked(nodes, function)
        reasons = [(found.graph.name(i), found.reasons[found.reason[i]]) for i in range(len(found.graph))]
        host, low = "saves or restores, on the host", "no kernel for TPUs"
        assert [reason for name, reason in reasons if name == "saver_filename"] == [
            host,
            "no kernel for string",
        ]
        assert dict(reasons)["save_1/low"] == (host if is_saver else low)
        assert {dict(reasons)[name] for name in ("save", "saved/low", "save/inner")} == {low}


def drawn(
    nodes: list[bytes], functions: dict[str, list[bytes]] | None = None, opened: tuple[str, ...] = ()
) -> tuple[Compatibility, Scopes, Drawing]:
    found = checked(nodes, functions)
    tree = scopes(found)
    return found, tree, drawing(found, tree, [], {tree.path.index(path): True for path in opened})


def items(found: Compatibility, tree: Scopes, picture: Drawing) -> list[tuple[str, str, str]]:
    """(kind, name, name of the frame) of each item."""
    assert min(picture.frame.tolist(), default=-1) == -1
    assert min(picture.node.tolist(), default=-1) >= -1
    names = [
        found.graph.name(n) if n >= 0 else tree.path[s]
        for n, s in zip(picture.node.tolist(), picture.scope.tolist(), strict=True)
    ]
    return [
        (KINDS[k], name, names[f] if f >= 0 else "")
        for k, name, f in zip(picture.kind.tolist(), names, picture.frame.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("n", "n_rest"), [(39, 0), (40, 0), (41, 1), (43, 3)])
def test_forty_children_are_drawn_separately(n: int, n_rest: int) -> None:
    """Of the children the incompatible ones first, then the largest, then in order; the rest is one item."""
    big = [node("Add", f"big/{i}") for i in range(3)]
    bad = [node("PyFunc", "bad/x"), node("PyFunc", "worse")]
    small = [node("Add", f"s{i:02}") for i in range(n - 4)]
    found, tree, picture = drawn([*small, *big, *bad, node("Add", "one/x")])
    at_top = [(kind, name) for kind, name, frame in items(found, tree, picture) if not frame]
    scopes_drawn = [("scope", "bad"), ("scope", "big"), ("scope", "one")]
    n_small = n - 4 - n_rest
    assert at_top == [
        *scopes_drawn,
        *(("operation", f"s{i:02}") for i in range(n_small)),
        ("operation", "worse"),
        *[("rest", "(graph)")] * bool(n_rest),
    ]
    if n_rest:
        rest = picture.kind.tolist().index(2)
        assert (picture.counts[rest].tolist(), int(picture.node[rest]), picture.is_open[rest]) == (
            [n_rest, 0, 0],
            -1,
            False,
        )
    assert picture.counts[picture.frame < 0].sum(0).tolist() == [n - 4 + 3 + 1, 2, 0]


def test_edges_to_the_rest_lead_to_its_item() -> None:
    hub = field(3, "a000")
    nodes = [node("Add", "a000"), *(node("Add", f"b{i:02}") + hub for i in range(MAX_CHILDREN + 4))]
    _found, _tree, picture = drawn(nodes)
    rest = picture.kind.tolist().index(2)
    assert picture.edges[0].tolist() == [0, rest, 5]
    assert sorted(picture.edges[1:, 2].tolist()) == [1] * (MAX_CHILDREN - 1)
    assert picture.n_cut == 0


@pytest.mark.parametrize(("n_inside", "is_open"), [(38, True), (39, True), (40, False)])
def test_incompatible_scopes_open_while_at_most_forty_items_are_drawn(n_inside: int, is_open: bool) -> None:
    nodes = [node("PyFunc", f"bad/{i}") for i in range(n_inside)]
    _found, _tree, picture = drawn(nodes)
    assert picture.is_open.tolist()[0] == is_open
    assert len(picture) == (1 + n_inside if is_open else 1)


@pytest.mark.parametrize(("n_scopes", "n_open"), [(5, 5), (6, 5)])
def test_no_scope_opens_beyond_240_items(n_scopes: int, n_open: int) -> None:
    """Six scopes of 39 operations each make 6 + 6 × 39 = 240 items; with one operation more the last one
    stays closed.
    """
    nodes = [
        node("Add", f"s{s}/{i}")
        for s in range(n_scopes)
        for i in range(39 if n_scopes == 5 else 39 + (s == 0))
    ]
    _found, _tree, picture = drawn(nodes, None, tuple(f"s{s}" for s in range(n_scopes)))
    assert int(picture.is_open.sum()) == n_open
    _whole, _tree_of_whole, full = drawn(
        [node("Add", f"s{s}/{i}") for s in range(6) for i in range(39)],
        None,
        tuple(f"s{s}" for s in range(6)),
    )
    assert (int(full.is_open.sum()), len(full)) == (6, 240)


def test_the_thickest_eight_hundred_edges_are_kept() -> None:
    """Forty operations that read each other once, but the last one reads two of them several times."""
    n = MAX_CHILDREN
    times = {(n - 2, n - 1): 3, (n - 3, n - 1): 2}
    nodes = [
        node("Add", f"a{j:02}")
        + b"".join(field(3, f"a{i:02}") * times.get((i, j), 1) for i in range(n) if i != j)
        for j in range(n)
    ]
    _, _, picture = drawn(nodes)
    once = [[i, j, 1] for i in range(n) for j in range(n) if i != j and (i, j) not in times]
    assert picture.edges.tolist() == [[n - 2, n - 1, 3], [n - 3, n - 1, 2], *once[: MAX_EDGES - 2]]
    assert picture.n_cut == n * (n - 1) - MAX_EDGES


def test_calls_lead_to_the_closed_box_around_a_function() -> None:
    functions = {
        "f": [node("Add", "x"), node("PartitionedCall", "again", calls=["g"])],
        "g": [node("Add", "s/y"), node("Add", "z")],
    }
    calls: list[bytes] = [
        node("PartitionedCall", "one", calls=["f", "g"]),
        node("PartitionedCall", "two", calls=["g"]),
    ]
    found, tree, picture = drawn(calls, functions)
    names = [name for _, name, _ in items(found, tree, picture)]
    box = names.index("(functions)")
    assert sorted(picture.calls.tolist()) == sorted(
        [[names.index("one"), box, 2], [names.index("two"), box, 1]]
    )
    found, tree, picture = drawn(calls, functions, ("(functions)",))
    names = [name for _, name, _ in items(found, tree, picture)]
    f, g = names.index("f"), names.index("g")
    assert sorted(picture.calls.tolist()) == sorted(
        [[names.index("one"), f, 1], [names.index("one"), g, 1], [names.index("two"), g, 1], [f, g, 1]]
    )
    found, tree, picture = drawn(calls, functions, ("(functions)", "g"))
    names = [name for _, name, _ in items(found, tree, picture)]
    assert picture.calls.tolist() == [[names.index("one"), names.index("f"), 1]], (
        "an open function has no box"
    )


@pytest.mark.parametrize(
    ("wrong", "to"),
    [
        ("float64", "float32 or bfloat16"),
        ("complex128", "float32 or bfloat16"),
        ("int16", "int32"),
        ("qint8", "int32"),
        ("bool", "int32"),
    ],
)
def test_types_are_cast_to_what_a_tpu_has(wrong: str, to: str) -> None:
    found = advice("MatMul", f"no kernel for {wrong}")
    assert (found.kind, found.text) == (
        "type",
        f"Cast to {to} before it: TPUs have the operation, but not for {wrong}.",
    )


def test_a_string_operation_of_another_kind_is_advised_as_a_string() -> None:
    expected: dict[tuple[str, str], str] = {
        ("RandomShuffle", "no kernel for string"): "string",
        ("StringSplit", "no kernel for string"): "string",
        ("Add", "no kernel for variant"): "handle",
        ("Add", "no kernel for resource"): "handle",
        ("Add", "other reason"): "other",
        ("RandomGamma", "no kernel for float64"): "random numbers",
        ("PyFunc", REFERENCE): "variable of TensorFlow 1",
    }
    assert {pair: advice(*pair).kind for pair in expected} == expected


def test_an_empty_graph_has_one_scope() -> None:
    found: Any = checked([])
    tree = scopes(found)
    assert (tree.name, tree.counts.tolist(), tree.of_node.tolist()) == (("(graph)",), [[0, 0, 0]], [])
    assert found.valid_fraction is None
