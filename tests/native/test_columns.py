"""Looking up, parting, summing and tying: the compiled loops against their plain twins, on random columns and
on ones chosen to be slow.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import numbering as plain_numbering
from tb_tpuprof.native.plain import pairing as plain_pairing
from tb_tpuprof.native.plain import selection as plain_selection
from tb_tpuprof.native.plain import tallies as plain_tallies
from tests.native.event_lines import same

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)
INVERSE = pow(0x9E3779B97F4A7C15, -1, 2**64)  # multiples of it fall into the first slots of a table


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(0, 60), max_size=40),
    st.lists(st.integers(-3, 63), max_size=60),
    st.booleans(),
    st.booleans(),
)
def test_look_up(owner: list[int], rows: list[int], ascends: bool, is_wide: bool) -> None:
    from tb_tpuprof.native.compiled import selection

    owners, values = np.array(sorted(owner), np.int32), np.arange(len(owner), dtype=np.int64) * 2**40
    wanted = np.array(sorted(rows) if ascends else rows, np.int64 if is_wide else np.int32)
    found = selection.look_up(owners, values, wanted, -7)
    assert same(found, plain_selection.look_up(owners, values, wanted, -7))
    assert found.tolist() == [
        owners.tolist().index(row) * 2**40 if row in owner else -7 for row in wanted.tolist()
    ]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)))),
    st.integers(0, 3000),
)
def test_split(drawn: list[tuple[int, int]], n_more: int) -> None:
    from tb_tpuprof.native.compiled import numbering

    code = np.array([c for c, _ in drawn] + [i % 2 for i in range(n_more)], np.int32)
    values = np.array([v for _, v in drawn] + [i // 2 for i in range(n_more)], np.int64)
    for codes in (code, np.empty(0, np.int32)):
        for of_values in (values, (values % 5).astype(np.int32)):
            assert same(numbering.split(codes, of_values), plain_numbering.split(codes, of_values))


def test_split_of_values_that_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_tpuprof.native.compiled import numbering

    values = np.array([i * INVERSE * INVERSE % 2**64 for i in range(20_000)], np.uint64).view(np.int64)
    code = np.zeros(len(values), np.int32)
    wanted = plain_numbering.split(code, values)
    asked = []
    monkeypatch.setattr(plain_numbering, "split", lambda *arguments: asked.append(arguments) or wanted)
    assert same(numbering.split(code, values), wanted)
    assert asked


def test_split_says_which_rows_are_alike() -> None:
    code, first = plain_numbering.split(np.array([0, 0, 1, 1, 0], np.int32), np.array([7, 8, 7, 7, 7]))
    assert (code.tolist(), first.tolist()) == ([0, 1, 2, 2, 0], [0, 1, 2])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 3)), max_size=40))
def test_sums(drawn: list[tuple[int, int, int]]) -> None:
    from tb_tpuprof.native.compiled import tallies

    code = np.array([c for c, _, _ in drawn], np.int32)
    rows = np.cumsum([1 + gap for _, _, gap in drawn]).astype(np.int64)
    duration = np.zeros(int(rows[-1]) + 1 if len(rows) else 0, np.int64)
    duration[rows] = [d for _, d, _ in drawn]
    found = tallies.sums(code, 5, rows, duration)
    assert same(found, tallies.sums(code, 5, rows.astype(np.int32), duration))
    assert same(found, plain_tallies.sums(code, 5, rows, duration))
    for g in range(5):
        mine = [(d, row) for (c, d, _), row in zip(drawn, rows.tolist(), strict=True) if c == g]
        lengths = [d for d, _ in mine]
        wanted = [len(mine), sum(lengths), min(lengths), *max(mine), mine[0][1]] if mine else [0] * 6
        assert found[:, g].tolist() == wanted


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=6))
def test_extremes(stretches: list[list[int]]) -> None:
    from tb_tpuprof.native.compiled import tallies

    values = np.array([value for stretch in stretches for value in stretch], np.int64)
    cuts = np.cumsum([0, *map(len, stretches)]).astype(np.int64)
    least, most = tallies.extremes(values, cuts)
    assert same((least, most), plain_tallies.extremes(values, cuts))
    for k, stretch in enumerate(stretches):
        low, high = int(least[k] - cuts[k]), int(most[k] - cuts[k])
        wanted = (
            (stretch.index(min(stretch)), len(stretch) - 1 - stretch[::-1].index(max(stretch)))
            if stretch
            else (0, 0)
        )
        assert (low, high) == wanted


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.lists(st.tuples(st.booleans(), st.integers(-1, 12)), max_size=60), max_size=3),
    st.integers(0, 600),
)
def test_tie(memories: list[list[tuple[bool, int]]], n_kept: int) -> None:
    from tb_tpuprof.native.compiled import pairing

    kept = [(True, 100 + i) for i in range(n_kept)]  # blocks that stay, so that the slots grow
    drawn = [*memories, kept + [(not is_new, address) for is_new, address in reversed(kept)]]
    first = np.cumsum([0, *map(len, drawn)]).astype(np.int64)
    events = [event for memory in drawn for event in memory]
    is_allocation = np.array([is_new for is_new, _ in events], np.uint8)
    address = np.array(
        [plain_pairing.NOWHERE if at < 0 else at * INVERSE % 2**62 for _, at in events], np.int64
    )
    found = pairing.tie(first, is_allocation, address)
    assert same(found, plain_pairing.tie(first, is_allocation, address))
    for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        latest: dict[int, int] = {}
        partner = {i: len(events) if is_allocation[i] else -1 for i in range(a, b)}
        for i in range(a, b):
            before = latest.get(int(address[i]), -1)
            if address[i] != plain_pairing.NOWHERE:
                if before >= 0 and is_allocation[before]:
                    partner[before] = i
                    partner[i] = partner[i] if is_allocation[i] else before
                latest[int(address[i])] = i
        assert found[a:b].tolist() == list(partner.values())


def test_tie_of_addresses_that_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_tpuprof.native.compiled import pairing

    address = np.array([i * INVERSE % 2**64 for i in range(20_000)] * 2, np.uint64).view(np.int64)
    is_allocation = np.repeat(np.array([1, 0], np.uint8), 20_000)
    first = np.array([0, len(address)], np.int64)
    wanted = plain_pairing.tie(first, is_allocation, address)
    asked = []
    monkeypatch.setattr(plain_pairing, "tie", lambda *arguments: asked.append(arguments) or wanted)
    assert same(pairing.tie(first, is_allocation, address), wanted)
    assert asked
    assert (wanted[:20_000] == np.arange(20_000, 40_000)).all()
