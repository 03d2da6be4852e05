"""The tree of compiled operations: sums, groups, limits, and that no shape of names breaks it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.ops.hlo_record import HloOps, words_of
from tb_tpuprof.analysis.ops.tree import GROUPINGS, KINDS, OpTree, op_tree


def made(
    *ops: tuple[int, str, str, str, int], span_ps: int = 100, twins: dict[str, str] | None = None
) -> HloOps:
    """Operations (program, name, category, provenance, self time); each did 10 FLOPs and 20 bytes."""
    n = len(ops)
    time = np.array([op[4] for op in ops], np.int64)
    one, space = np.full(n, 10.0), np.zeros((len(SPACES), n))
    space[0] = 20.0
    ints, none = np.ones(n, np.int64), words_of([""] * n)
    return HloOps(
        program=np.array([op[0] for op in ops], np.int64),
        name=words_of([op[1] for op in ops]),
        category=words_of([op[2] for op in ops]),
        provenance=words_of([op[3] for op in ops]),
        source=none,
        twin=words_of([(twins or {}).get(op[1], "") for op in ops]),
        core=none,
        n_occurrences=ints,
        time_ps=time,
        self_ps=time,
        normalized_ps=time,
        stall_ps=0 * time,
        work_ps=time,
        thread_ps=0 * time - 1,
        energy_j=0 * one,
        work=Work(one, one, 2 * one, space, np.ones(n, np.bool_), np.ones(n, np.bool_)),
        instruction=ints - 2,
        metadata=ints - 2,
        host=ints - 1,
        span_ps=span_ps,
        n_devices=1,
        kind="TPU",
        programs={op[0]: f"p{op[0]}" for op in ops},
    )


def drawn(tree: OpTree) -> list[str]:
    """Each node with its way from the root and its time."""
    names: list[str] = []
    for name, parent in zip(tree.name, tree.parent.tolist(), strict=True):
        names.append(name if parent < 0 else f"{names[parent]}/{name}")
    return [f"{name} {time}" for name, time in zip(names, tree.self_ps.tolist(), strict=True)]


OPS = made(
    (1, "dot.1", "dot", "jit(f)/a/dot:", 50),
    (1, "add.1", "loop fusion", "jit(f)/a/add:", 10),
    (2, "dot.1", "dot", "", 20),
)


def test_by_program() -> None:
    assert drawn(op_tree(OPS, "program", True, 100)) == [
        "all 100",
        "all/p1 60",
        "all/IDLE 20",
        "all/p2 20",
        "all/p1/dot 50",
        "all/p2/dot 20",
        "all/p1/loop fusion 10",
        "all/p1/dot/dot.1 50",
        "all/p2/dot/dot.1 20",
        "all/p1/loop fusion/add.1 10",
    ]


def test_by_category_without_idle() -> None:
    assert drawn(op_tree(OPS, "category", False, 100)) == [
        "all 80",
        "all/dot 70",
        "all/loop fusion 10",
        "all/dot/dot.1 50",
        "all/dot/dot.1 20",
        "all/loop fusion/add.1 10",
    ]


def test_by_provenance() -> None:
    found = drawn(op_tree(OPS, "provenance", False, 100))
    assert "all/p1/jit(f)/a/dot/dot/dot.1 50" in found
    assert "all/p2/dot/dot.1 20" in found
    assert "all/p1/jit(f)/a 60" in found


def test_duplicates_are_grouped_where_there_are_several() -> None:
    ops = made(
        (1, "f.1", "x", "", 5),
        (1, "f.2", "x", "", 4),
        (1, "g", "x", "", 3),
        (2, "f.3", "x", "", 2),
        twins={"f.2": "f.1", "f.3": "f.1"},
    )
    found = drawn(op_tree(ops, "program", False, 100))
    assert "all/p1/x/f.1 and its duplicates/f.2 4" in found
    assert "all/p1/x/f.1 and its duplicates 9" in found
    assert "all/p1/x/g 3" in found
    assert "all/p2/x/f.3 2" in found


def test_containers_count_time_but_no_work() -> None:
    tree = op_tree(made((1, "while.1", "while", "", 5), (1, "f.1", "x", "", 4)), "program", False, 100)
    assert (tree.self_ps[0], tree.work.flops[0], tree.work.space_bytes[0][0]) == (9, 10, 20)


def test_the_shortest_beyond_the_limit_are_left_out_but_count() -> None:
    ops = made(*((1, f"f.{i}", "x", "", i + 1) for i in range(9)))
    tree = op_tree(ops, "program", False, 3)
    assert [name for name in tree.name if name.startswith("f.")] == ["f.8", "f.7", "f.6"]
    assert (tree.n_children[2], tree.self_ps[2]) == (9, 45)


def test_sparse_cores_are_not_in_it_and_rows_stay_those_of_the_operations() -> None:
    ops = made((1, "gather", "x", "", 9), (1, "dot", "dot", "", 5))
    ops = replace(ops, core=words_of(["SparseCore", "TensorCore"]))
    tree = op_tree(ops, "program", False, 100)
    assert tree.self_ps[0] == 5
    assert tree.op[list(tree.name).index("dot", 3)] == 1


NAMES = st.text("ab/:", max_size=8)


@given(
    st.lists(
        st.tuples(st.integers(-2, 2), NAMES, NAMES, NAMES, st.integers(0, 1000)), min_size=1, max_size=30
    ),
    st.sampled_from(GROUPINGS),
)
def test_every_node_is_the_sum_of_its_children(
    ops: list[tuple[int, str, str, str, int]], grouping: str
) -> None:
    tree = op_tree(made(*ops), grouping, True, 10_000)
    below = np.zeros(len(tree), np.int64)
    np.add.at(below, tree.parent[1:], tree.self_ps[1:])
    inner = np.array([KINDS[kind] not in ("op", "idle") for kind in tree.kind.tolist()])
    assert (below[inner] == tree.self_ps[inner]).all()
    assert (tree.parent < np.arange(len(tree))).all()
    assert sorted(tree.op[tree.op >= 0].tolist()) == list(range(len(ops)))
    assert tree.work.flops[0] == pytest.approx(10 * sum(op[2] not in ("call", "while") for op in ops))


def test_many_texts_are_looked_for_in_time_in_proportion() -> None:
    texts = [f"fusion.{i}" for i in range(100_000)]
    begin = time.process_time()
    assert words_of(texts).is_in(texts[::2]).sum() == 50_000
    assert time.process_time() - begin < 5  # what grows with the product takes a minute
