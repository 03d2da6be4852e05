"""The rule about rates above a peak, on both sides of its limit."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.device.attainable import excess_of, is_above, known_share, share_of_peak

RATES = np.array([0.0, 40.0, 80.0, 80.1, 83.9, 84.1, 400.0, np.nan])


def test_shares_up_to_the_peak_then_all_of_it_then_unknown() -> None:
    expected = [0.0, 0.5, 1.0, 1.0, 1.0, np.nan, np.nan, np.nan]
    assert share_of_peak(RATES, 80.0) == pytest.approx(expected, nan_ok=True)
    assert [known_share(float(rate), 80.0) for rate in RATES] == [0.0, 0.5, 1.0, 1.0, 1.0, None, None, None]
    assert known_share(None, 80.0) is None


def test_exactly_five_percent_more_are_at_the_peak() -> None:
    rates = np.array([84.0])
    assert share_of_peak(rates, 80.0).tolist() == [1.0]
    assert is_above(rates, 80.0).tolist() == [False]
    assert excess_of(rates, np.ones(1), 80.0).tolist() == [0.0]


def test_peaks_may_be_small() -> None:
    rates = np.array([0.2, 0.5, 0.6])
    assert share_of_peak(rates, 0.5) == pytest.approx([0.4, 1.0, np.nan], nan_ok=True)
    assert is_above(rates, 0.5).tolist() == [False, False, True]
    assert excess_of(rates, np.array([1.0, 0.5, 0.25]), 0.5) == pytest.approx([0.0, 2.0, 4.8])


def test_without_a_peak_nothing_is_above_it() -> None:
    assert np.isnan(share_of_peak(RATES, 0.0)).all()
    assert known_share(40.0, 0.0) is None
    assert not is_above(RATES, 0.0).any()
    assert not excess_of(RATES, np.ones(len(RATES)), 0.0).any()


def test_each_memory_has_its_own_peak() -> None:
    rates = np.array([[10.0, 22.0], [10.0, 22.0], [10.0, 22.0]])
    peaks = np.array([[20.0], [0.0], [5.0]])
    assert is_above(rates, peaks).tolist() == [[False, True], [False, False], [True, True]]
    expected = [[0.5, np.nan], [np.nan, np.nan], [np.nan, np.nan]]
    assert share_of_peak(rates, peaks) == pytest.approx(np.array(expected), nan_ok=True)


def test_the_excess_is_how_many_times_too_much_was_counted() -> None:
    amount, seconds = np.array([104.0, 106.0, 600.0, 50.0, 7.0]), np.array([1.0, 1.0, 2.0, 1.0, 0.0])
    assert excess_of(amount, seconds, 100.0) == pytest.approx([0.0, 1.06, 3.0, 0.0, 0.0])
