"""Windows of steps are split into groups that do not overlap."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.pieces import non_overlapping


@pytest.mark.parametrize(
    ("windows", "groups"),
    [
        ([(0, 5), (5, 9), (9, 12)], [[0, 1, 2]]),
        ([(9, 12), (0, 5), (5, 9)], [[1, 2, 0]]),
        ([(0, 5), (5, 9), (8, 12)], [[0, 1], [2]]),  # only the last two overlap
        ([(0, 5), (3, 9), (5, 7), (9, 12), (10, 11)], [[0, 2, 3], [1, 4]]),  # touching windows share a group
        ([(0, 9), (1, 3), (2, 4), (3, 5)], [[0], [1, 3], [2]]),
        ([], [[]]),
    ],
)
def test_windows_go_to_the_first_group_that_is_free(
    windows: list[tuple[int, int]], groups: list[list[int]]
) -> None:
    opens, closes = np.array(windows, np.int64).reshape(-1, 2).T
    assert [rows.tolist() for rows in non_overlapping(opens, closes)] == groups
