"""Wasted time of operations: self time × (1 − utilization of the limiting resource), summed over the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import Roofs
from tb_tpuprof.analysis.ops.tree import GROUPINGS, op_tree
from tb_tpuprof.analysis.ops.wasted import wasted_ps
from tests.analysis.hlo.test_op_tree import made

US = 10**6
PEAKS = Roofs(flops_per_s=1e12, bytes_per_s=(1e11, 0, 0, 1e12, 0))  # 1 FLOP, 0.1 HBM, 1 VMEM byte per ps
UNKNOWN = None


def ops_with(*works: tuple[str, str, int, float | None, float | None, float]) -> HloOps:
    """Operations (name, category, self time in µs, share of peak FLOPS, of HBM, of VMEM reads)."""
    ops = made(*((1, name, category, "", time * US) for name, category, time, *_ in works))
    time = ops.self_ps.astype(np.float64)
    flops = np.array([work[3] or 0.0 for work in works]) * time
    hbm = np.array([work[4] or 0.0 for work in works]) * time / 10
    vmem = np.array([work[5] for work in works]) * time
    space = np.zeros((len(SPACES), len(works)))
    space[0], space[3] = hbm, vmem
    knows = [np.array([work[i] is not None for work in works]) for i in (3, 4)]
    return replace(ops, work=Work(flops, flops, hbm + vmem, space, *knows))


OPS = ops_with(
    ("memory.1", "loop fusion", 10, 0.2, 0.9, 0.0),  # HBM limits it: 1 µs
    ("dot.2", "dot", 20, 0.6, 0.15, 0.0),  # compute limits it: 8 µs
    ("vmem.3", "dot", 40, 0.1, 0.2, 0.7),  # VMEM limits it: 12 µs
    ("call.4", "custom-call", 5, UNKNOWN, UNKNOWN, 0.0),
    ("copy-done.5", "copy-done", 3, UNKNOWN, 0.0, 0.0),  # known to have moved nothing: 3 µs
    ("zero.6", "loop fusion", 7, 0.0, UNKNOWN, 0.0),  # no FLOPs, bytes unknown: unknown
    ("while.7", "while", 2, 0.5, 0.5, 0.0),  # only runs others
    ("fast.8", "dot", 6, 1.3, 0.5, 0.0),  # counted above the peak: unknown
    ("infeed.9", "infeed", 9, UNKNOWN, UNKNOWN, 0.0),  # the device waits for the host: 9 µs
)


def test_the_limiting_resource_counts() -> None:
    expected = [1.0, 8.0, 12.0, np.nan, 3.0, np.nan, np.nan, np.nan, 9.0]
    assert wasted_ps(OPS, PEAKS) / US == pytest.approx(expected, nan_ok=True)


def test_what_is_known_to_do_nothing_wastes_all_of_its_time() -> None:
    """Unless only its FLOPs are known, or its work is, and none of the peaks is that of its memory."""
    ops = ops_with(
        ("nothing.1", "loop fusion", 4, UNKNOWN, 0.0, 0.0),
        ("nothing.2", "loop fusion", 5, 0.0, 0.0, 0.0),
        ("zero.3", "loop fusion", 6, 0.0, UNKNOWN, 0.0),
        ("full.4", "dot", 7, 1.0, 0.5, 0.0),
    )
    assert wasted_ps(ops, PEAKS) / US == pytest.approx([4, 5, np.nan, 0], nan_ok=True)


@pytest.mark.parametrize(
    "peaks", [Roofs(0.5, (0.0,) * 5), Roofs(0.0, (0.0, 0.0, 3.0, 0.0, 0.0)), Roofs(1e12, (1e11,) * 5)]
)
def test_waiting_is_wasted_where_any_peak_is_known(peaks: Roofs) -> None:
    waits = ops_with(
        ("infeed.1", "infeed", 9, UNKNOWN, UNKNOWN, 0.0), ("x.2", "dot", 5, UNKNOWN, UNKNOWN, 0.0)
    )
    assert wasted_ps(waits, peaks) / US == pytest.approx([9, np.nan], nan_ok=True)


def test_without_peaks_nothing_is_known() -> None:
    assert np.isnan(wasted_ps(OPS, Roofs(0.0, (0.0,) * len(SPACES)))).all()


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_group_wastes_what_its_operations_do(grouping: str) -> None:
    ops = replace(OPS, span_ps=int(OPS.self_ps.sum()) + 4 * US)
    tree = op_tree(ops, grouping, True, 100, wasted_ps(ops, PEAKS))
    wasted = {name: value / US for name, value in zip(tree.name, tree.wasted_ps.tolist(), strict=True)}
    assert wasted["all"] == pytest.approx(1 + 8 + 12 + 3 + 9 + 4)  # with 4 µs of idle time
    assert wasted["IDLE"] == pytest.approx(4)
    assert wasted["dot"] == pytest.approx(8 + 12 + 0)
    assert wasted["loop fusion"] == pytest.approx(1)  # the unknown one adds nothing
    assert np.isnan(wasted["custom-call"])


def test_children_beyond_the_limit_are_in_the_sum() -> None:
    tree = op_tree(OPS, "category", False, 1, wasted_ps(OPS, PEAKS))
    names = list(tree.name)
    assert "vmem.3" in names
    assert "dot.2" not in names
    assert tree.wasted_ps[names.index("dot")] / US == pytest.approx(20)


def test_idle_time_is_unknown_where_all_else_is() -> None:
    ops = replace(OPS, span_ps=int(OPS.self_ps.sum()) + 4 * US)
    tree = op_tree(ops, "program", True, 100)
    assert "IDLE" in list(tree.name)
    assert np.isnan(tree.wasted_ps).all()


def test_rows_of_sparse_cores_are_left_out_of_the_sum() -> None:
    ops = ops_with(("a.1", "dot", 10, 0.5, 0.0, 0.0), ("b.2", "dot", 30, 0.2, 0.0, 0.0))
    sparse = replace(ops, core=replace(ops.core, codes=np.array([0, 1]), strings=("", "SparseCore")))
    assert sparse.is_sparse.tolist() == [False, True]
    tree = op_tree(sparse, "program", False, 100, wasted_ps(sparse, PEAKS))
    assert tree.wasted_ps[0] / US == pytest.approx(5)
