"""Stats of events as sparse columns: joins, codes, and indices of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.events.stat_rows import (
    consecutive,
    distinct,
    distinct_codes,
    events_named,
    events_with,
    first_ints,
    marked,
    metadata_named,
    mix,
    values_at,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.table import table_from_rows
from tests.builders import drawing


def test_events_that_have_all_stats_and_one_number_for_equal_values() -> None:
    trace = drawing(
        """
        main  [a ][a ][a ][a ][b ][a ]
        """,
        {
            "a": [
                {"x": 1, "y": 2},
                {"x": 2, "y": 1},
                {"x": 1},
                {"x": 1, "y": 2},
                {"y": 2, "x": 3},
            ],
            "b": {"y": 2},
        },
    )
    rows, keys = events_with(trace, "x", "y")
    assert rows.tolist() == [0, 1, 3, 5]
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
    alone, values = events_with(trace, "x")
    assert (alone.tolist(), values.tolist()) == ([0, 1, 2, 3, 5], [1, 2, 1, 1, 3])
    assert events_with(trace, "x", "z")[0].tolist() == []


def test_events_that_all_have_both_stats() -> None:
    trace = drawing("main  [a ][a ][a ]", {"a": [{"x": 5, "y": 1}, {"x": 5, "y": 2}, {"x": 5, "y": 1}]})
    rows, keys = events_with(trace, "x", "y")
    assert rows.tolist() == [0, 1, 2]
    assert keys.tolist() == mix(np.array([5, 5, 5]), np.array([1, 2, 1])).tolist()
    assert keys[0] == keys[2] != keys[1]


def test_the_order_of_two_numbers_matters_and_small_ones_never_meet() -> None:
    first, second = np.meshgrid(np.arange(-20, 20), np.arange(-20, 20))
    assert len(np.unique(mix(first.ravel(), second.ravel()))) == 1600


def test_values_of_rows_and_a_stand_in_for_the_others() -> None:
    owner, value = np.array([2, 5, 9], np.int32), np.array([20, 50, 90])
    assert values_at(np.array([5, 0, 9, 2, 7]), owner, value, -3).tolist() == [50, -3, 90, 20, -3]
    assert values_at(np.array([2, 5, 9]), owner, value, -3).tolist() == [20, 50, 90]
    assert values_at(np.array([2, 5, 8]), owner, value, -3).tolist() == [20, 50, -3]
    assert values_at(np.array([2, 5]), owner, value, -3).tolist() == [20, 50]


@pytest.mark.parametrize("seed", range(4))
def test_distinct_values_ascend_and_codes_give_them_back(seed: int) -> None:
    values = np.random.default_rng(seed).integers(-5, 6, 12 * seed)
    assert distinct(values).tolist() == sorted(set(values.tolist()))
    ordered, codes = distinct_codes(values)
    assert ordered.tolist() == sorted(set(values.tolist()))
    assert ordered[codes].tolist() == values.tolist()


def test_marked_rows_are_distinct_and_ascend() -> None:
    assert marked(np.array([4, 1, 4, 0]), 6).tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([3, 4, 5], slice(3, 6)),
        ([7], slice(7, 8)),
        ([], None),
        ([3, 5], None),
        ([3, 5, 4, 6], None),  # as many as a run, but not in its order
        ([3, 3, 5], None),
        ([5, 4, 3], None),
    ],
)
def test_only_a_run_of_rows_is_a_slice(rows: list[int], expected: slice | None) -> None:
    index = consecutive(np.array(rows, np.int32))
    if expected is None:
        assert isinstance(index, np.ndarray)
        assert index.tolist() == rows
    else:
        assert index == expected


def test_events_by_name() -> None:
    trace = drawing("""
        main   [load ][step ][load ]
        other  [save ][load ]
        """)
    assert events_named(trace, ("load", "absent")).tolist() == [0, 2, 4]
    assert events_named(trace, frozenset(("save", "step"))).tolist() == [1, 3]
    assert events_named(trace, ("absent",)).tolist() == []
    assert metadata_named(trace, ("step",)).tolist() == [False, True, False]


def test_the_first_of_several_values_counts() -> None:
    trace = drawing("main  [a ][a ][a ]", {"a": [{"x": 7}, {"x": 8}, {"x": 9}]})
    key = trace.strings.find("x")
    values = ((0, 4), (0, 3), (2, 9), (2, 11), (2, 1))
    table = table_from_rows(schema.STATS, [(row, key, schema.INT, value, 0) for row, value in values])
    rows, firsts = first_ints(replace(trace, event_stats=StatTable(table, trace.strings)), "x")
    assert (rows.tolist(), firsts.tolist()) == ([0, 2], [4, 9])
