"""Sums of operations over occurrences, devices and hosts; ratios, roofs and shares of peaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.metrics import (
    Occurrences,
    add_up,
    by_framework_op,
    no_ops,
    sum_by,
    sum_occurrences,
)
from tb_tpuprof.analysis.ops.roofline import (
    ABOVE_PEAK,
    LIMITS,
    Roofs,
    first_roofs,
    in_words,
    limit_text,
    ratio,
)
from tb_tpuprof.analysis.ops.utilization import Utilization, _core_of, idle_fraction, sum_utilization
from tests.analysis.ops.examples import MS, OPS, ops_of


def test_exact_sums_of_large_and_negative_times() -> None:
    key = np.array([2, 0, 2, 2, 0])
    value = np.array([2**60 + 1, -5, 2**53 + 1, 3, 2])
    assert sum_by(key, value, 4).tolist() == [-3, 0, 2**60 + 2**53 + 5, 0]


def test_occurrences_are_summed_by_operation() -> None:
    """Of five occurrences of three of four operations, two are eager; the second operation never occurs."""
    occurrences = Occurrences(
        np.array([3, 0, 3, 2, 3]),
        np.array([10, 20, 30, 40, 50]),
        np.array([1, 2, 3, 4, 5]),
        np.array([True, False, True, True, False]),
    )
    found = sum_occurrences([("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")], occurrences, 77)
    assert (found.name, found.type, found.span_ps) == (("a", "c", "d"), ("A", "C", "D"), 77)
    assert found.n_occurrences.tolist() == [1, 1, 3]
    assert (found.time_ps.tolist(), found.self_ps.tolist()) == ([20, 40, 90], [2, 4, 9])
    assert found.is_eager.tolist() == [False, True, True]
    assert np.isnan([found.flops, found.model_flops, found.n_bytes]).all()


def test_devices_without_operations_keep_their_span() -> None:
    idle = replace(no_ops(), span_ps=40)
    assert add_up([idle, no_ops()]) is idle
    assert len(add_up([no_ops(), no_ops()])) == 0
    assert add_up([idle, replace(OPS, span_ps=0), OPS]).span_ps == 40 + 150 * MS


def test_operations_of_three_devices_add_up() -> None:
    """By program, name and mode; the first known type and origin count."""
    other = ops_of(name=("b", "a", "c"), type=("B", "x", "y"), provenance=("p", "", "q"), program=(0, 0, 1))
    third = ops_of(span_ps=7, self_ps=np.array([1, 2, 3]))
    total = add_up([OPS, no_ops(), other, third])
    assert total.name == ("a", "b", "c", "b", "a", "c")
    assert total.is_eager.tolist() == [True, False, False, True, False, False]
    assert total.program == (0, 0, 0, 0, 0, 1)
    assert total.type == ("A", "", "C", "B", "x", "y")
    assert total.provenance == ("", "", "s/c:C", "p", "", "q")
    assert total.n_occurrences.tolist() == [2, 4, 10, 1, 2, 5]
    assert total.time_ps.tolist() == [80 * MS, 120 * MS, 60 * MS, 40 * MS, 60 * MS, 30 * MS]
    assert total.self_ps.tolist() == [10 * MS + 1, 60 * MS + 2, 30 * MS + 3, 10 * MS, 60 * MS, 30 * MS]
    assert total.flops.tolist() == [2, 4, 8, 1, 2, 4]
    assert total.model_flops.tolist() == [2, 4, 6, 1, 2, 3]
    assert np.array_equal(total.n_bytes, [10, 12, np.nan, 5, 6, np.nan], equal_nan=True)
    assert total.span_ps == 300 * MS + 7
    assert add_up([no_ops(), OPS]) is OPS
    assert (OPS.busy_ps, OPS.idle_ps) == (100 * MS, 50 * MS)
    assert ops_of(span_ps=99 * MS).idle_ps == 0
    assert (idle_fraction(OPS), idle_fraction(no_ops())) == (pytest.approx(1 / 3), None)


def test_operations_by_framework_operation() -> None:
    """Two instructions of one operation: it occurred as often as the more frequent one. A kernel of no
    operation is not merged with an operation of its name.
    """
    ops = ops_of(
        name=("x", "y", "d"),
        provenance=("s/d:D", "s/d:D", ""),
        type=("fusion", "dot", "(no operation)"),
        n_occurrences=np.array([3, 2, 9]),
    )
    found = by_framework_op(ops)
    assert found.name == ("s/d", "d")
    assert found.type == ("D", "(no operation)")
    assert found.n_occurrences.tolist() == [3, 9]
    assert found.self_ps.tolist() == [70 * MS, 30 * MS]
    assert found.time_ps.tolist() == [100 * MS, 30 * MS]
    assert found.flops.tolist() == [3, 4]
    assert found.model_flops.tolist() == [3, 3]
    assert found.n_bytes[0] == 11
    assert found.is_eager.tolist() == [True, False]
    assert found.span_ps == 150 * MS
    unknown = by_framework_op(
        ops_of(name=("s/d", "d", "d"), provenance=("", "s/d:D", ""), type=("", "z", "(no operation)"))
    )
    assert (unknown.name, unknown.type) == (("s/d", "d"), ("Unknown", "(no operation)"))


def test_ratios_and_limits() -> None:
    found = ratio(np.array([1.0, 2.0, np.nan, -3.0]), np.array([2.0, 0.0, 1.0, 2.0]))
    assert np.array_equal(found, [0.5, np.nan, np.nan, -1.5], equal_nan=True)
    assert [limit_text("HBM", share, "add") for share in (0.3, 0.29)] == ["HBM", "Below every limit"]
    assert limit_text("Unknown", 0.9, "add") == "Unknown"
    assert limit_text("HBM", 0.9, "a/copy-done.3") == "Waiting"
    assert [in_words(resource) for resource in ("Compute", "HBM")] == ["compute", "HBM"]
    assert LIMITS[:5] == ("Unknown", ABOVE_PEAK, "Waiting", "Below every limit", "Compute")
    assert limit_text(ABOVE_PEAK, 0.0, "add") == ABOVE_PEAK
    assert limit_text(ABOVE_PEAK, 0.0, "a/copy-done.3") == "Waiting"


def test_the_first_known_roofs_count() -> None:
    none, compute, both = (
        Roofs(0.0, (0.0,) * 5),
        Roofs(1.0, (0.0,) * 5),
        Roofs(1.0, (0.0, 2.0, 0.0, 0.0, 0.0)),
    )
    assert [one.is_known for one in (none, compute, both)] == [False, False, True]
    assert first_roofs([none, compute, both]) is both
    assert first_roofs([none, compute]) is none
    sources = Roofs(1.0, (1.0,), 0.0, ("a https://x.org/y (p. 3)", "https://z")).short_sources
    assert sources == ("a (p. 3)", "")


def test_shares_of_peaks() -> None:
    used = Utilization(30, 120, 5, 20.0, 6.0, 100.0, 20.0)
    assert (used.duty_cycle, used.flops_fraction, used.bandwidth_fraction) == (0.25, 0.2, 0.3)
    assert (used.roofline_fraction, used.bound_by) == (0.3, "memory")
    compute = replace(used, flops=30.0)
    assert (compute.roofline_fraction, compute.bound_by) == (0.3, "compute")
    for unknown in (replace(used, flops=0.0), replace(used, max_flops=0.0), replace(used, hbm_bytes=0.0)):
        assert (unknown.roofline_fraction, unknown.bound_by) == (None, "")
    assert Utilization().duty_cycle is None
    assert sum_utilization([used, used, compute]) == Utilization(90, 360, 15, 70.0, 18.0, 300.0, 60.0)


def test_the_core_of_a_sparse_core() -> None:
    named = {"/device:TPU:0": 3, "/device:TPU:0 x": 2}
    assert _core_of("/device:TPU:0 SparseCore 1", named, 9) == 3
    assert _core_of("/device:TPU:0 x SparseCore 1", named, 9) == 2
    assert _core_of("/device:TPU:1 SparseCore 1", named, 9) == 9
    assert _core_of("/device:TPU:0", named, 9) == 9
