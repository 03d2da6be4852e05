"""Rates, intensities and what binds, on work made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.ops.roofline import Roofs, rates, total_work

PEAKS = Roofs(100.0, (10.0, 0.0, 0.0, 40.0, 0.0))
S = 10**12


def work(*ops: tuple[float, float, float], known: bool = True) -> Work:
    """Operations (FLOPs, bytes in HBM, bytes read from VMEM)."""
    space = np.zeros((len(SPACES), len(ops)))
    space[0], space[3] = [op[1] for op in ops], [op[2] for op in ops]
    flops = np.array([op[0] for op in ops], np.float64)
    return Work(flops, flops, space.sum(axis=0), space, np.full(len(ops), known), np.full(len(ops), known))


def test_the_resource_closest_to_its_peak_binds() -> None:
    found = rates(work((50, 1, 1), (10, 5, 1), (10, 1, 32), (0, 0, 0)), np.full(4, S), PEAKS)
    assert [found.nearest_text(i) for i in range(4)] == ["Compute", "HBM", "VMEM read", "Unknown"]
    assert found.efficiency[:3].tolist() == [0.5, 0.5, 0.8]
    assert found.optimal_flops_per_s[:3].tolist() == [100, 20, 12.5]
    assert found.bound_intensity[:3].tolist() == [50, 2, 10 / 32]
    assert found.intensity[:2].tolist() == [25, 10 / 6]


def test_what_is_not_known_is_nan() -> None:
    unknown = rates(work((50, 1, 1), known=False), np.array([S]), PEAKS)
    assert np.isnan([unknown.flops_per_s[0], unknown.intensity[0], unknown.efficiency[0]]).all()
    no_peaks = rates(work((50, 1, 1)), np.array([S]), Roofs(0.0, (0.0,) * 5))
    assert np.isnan([no_peaks.efficiency[0], no_peaks.flops_fraction[0], no_peaks.memory_fraction[0]]).all()
    assert no_peaks.flops_per_s[0] == 50
    assert np.isnan(rates(work((50, 1, 1)), np.array([0]), PEAKS).flops_per_s[0])


def test_sums() -> None:
    two = work((1, 2, 3), (4, 5, 6))
    both = Work(
        two.flops,
        two.model_flops,
        two.n_bytes,
        two.space_bytes,
        np.array([True, True]),
        np.array([True, True]),
    )
    total = total_work(both, np.array([True, True]))
    assert total.is_known.tolist() == [True]
    assert total.flops == pytest.approx(5)
