"""Distinct rows of a table of whole numbers, compared with a sorted set of tuples."""

import numpy as np
import pytest

from tb_tpuprof.trace.distinct_rows import distinct_rows


def check(rows: list[tuple[int, ...]], n_columns: int) -> None:
    """The distinct rows ascend, and the inverse gives back each row."""
    columns = np.array(rows, np.int64).reshape(-1, n_columns).T
    distinct, inverse = distinct_rows(*columns)
    assert distinct.shape == (len(set(rows)), n_columns)
    assert [tuple(row) for row in distinct.tolist()] == sorted(set(rows))
    assert [tuple(row) for row in distinct[inverse].tolist()] == rows


def test_no_rows() -> None:
    check([], 3)


@pytest.mark.parametrize("seed", range(5))
def test_small_numbers(seed: int) -> None:
    draw = np.random.default_rng(seed)
    check([tuple(row) for row in draw.integers(-3, 4, (60, 3)).tolist()], 3)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_whose_ranges_do_not_fit_into_one(seed: int) -> None:
    """Rows of few distinct values that span 2^60 in each of four columns."""
    draw = np.random.default_rng(seed)
    values = np.array([-(2**59), -7, 0, 1, 2**59], np.int64)
    check([tuple(row) for row in values[draw.integers(0, 5, (80, 4))].tolist()], 4)


def test_rows_that_would_be_equal_in_64_bits_stay_apart() -> None:
    low, high = 2**32, 2**32 - 1  # 2^32 · 2^32 is 0 in 64 bits
    check([(0, 0), (low, 0), (0, high), (1, 5), (low, high), (0, 0)], 2)
    top = 2**22 - 1  # 2^20 · 2^44 is, too
    check([(0, 0, 0), (2**20, 0, 0), (top, top, top), (2**20, 0, 1), (0, 0, 1)], 3)


@pytest.mark.parametrize("seed", range(5))
def test_columns_with_the_smallest_and_the_largest_number(seed: int) -> None:
    """Their range has no place in 64 bits."""
    draw = np.random.default_rng(seed)
    values = np.array([-(2**63), -1, 0, 5, 2**62, 2**63 - 1], np.int64)
    check([tuple(row) for row in values[draw.integers(0, 6, (70, 3))].tolist()], 3)


def test_columns_of_unlike_types() -> None:
    columns = np.array([1, 0, 1]), np.array([7, 7, 7], np.int32), np.array([True, False, True])
    distinct, inverse = distinct_rows(*columns)
    assert (distinct.tolist(), inverse.tolist()) == ([[0, 7, 0], [1, 7, 1]], [1, 0, 1])
