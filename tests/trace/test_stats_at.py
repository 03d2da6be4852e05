"""Looking up stats of given rows: the first of its kind counts, whatever else the row has."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.trace import schema
from tb_tpuprof.trace.schema import DOUBLE, INT, TEXT, UINT
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import table_from_rows

KEY = 1


def bits(value: float) -> int:
    """A double as the table holds it."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def table_of(stats: list[tuple[int, int, float]]) -> StatTable:
    """(owner, kind, value) of one key."""
    rows = [
        (owner, KEY, kind, bits(value) if kind == DOUBLE else int(value), 0)
        for owner, kind, value in sorted(stats, key=lambda s: s[0])
    ]
    return StatTable(table_from_rows(schema.STATS, rows), Strings.of([b"other", b"key"]))


stats = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from([DOUBLE, UINT, INT, TEXT]),
        st.integers(-8, 8).map(lambda n: n / 2),
    ),
    max_size=14,
)


@given(
    st.one_of(
        stats, st.lists(st.integers(0, 12), unique=True).map(lambda rows: [(row, INT, row) for row in rows])
    ),
    st.lists(st.integers(0, 13)),
)
def test_the_first_value_of_its_kind(drawn: list[tuple[int, int, float]], asked: list[int]) -> None:
    table = table_of(drawn)
    for wanted in (
        asked,
        sorted({owner for owner, _, _ in drawn}),
    ):  # all that there are, too: then the column itself is the answer
        rows = np.array(wanted, np.int64)
        told = [next(((k, v) for owner, k, v in drawn if owner == row and k != TEXT), None) for row in wanted]
        whole = [-7 if one is None else int(one[1]) for one in told]
        floats = [
            math.nan if one is None else one[1] if one[0] == DOUBLE else float(int(one[1])) for one in told
        ]
        texts = [
            next((int(value) for owner, kind, value in drawn if owner == row and kind == TEXT), -1)
            for row in wanted
        ]
        assert table.ints_at("key", rows, -7).tolist() == whole
        assert np.array_equal(table.floats_at("key", rows), np.array(floats, np.float64), equal_nan=True)
        assert table.texts_at("key", rows.astype(np.int32)).tolist() == texts


def test_a_key_that_no_row_has() -> None:
    table = table_of([])
    rows = np.array([3, 1])
    assert table.ints_at("nothing", rows).tolist() == [-1, -1]
    assert np.isnan(table.floats_at("nothing", rows)).all()
    assert table.texts_at("nothing", rows).tolist() == [-1, -1]
