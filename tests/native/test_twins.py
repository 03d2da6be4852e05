"""Each compiled loop against its plain twin, on random lines of events."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import intervals as plain_intervals
from tb_tpuprof.native.plain import numbering as plain_numbering
from tb_tpuprof.native.plain import sequences as plain_sequences
from tb_tpuprof.native.plain import tallies as plain_tallies
from tb_tpuprof.native.plain import timeline as plain_timeline
from tests.native.event_lines import NUMBERS, lines, same

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_intervals(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import intervals

    start, duration, offsets = events
    n = len(start)
    assert same(
        intervals.nest(start, start + duration, offsets),
        plain_intervals.nest(start, start + duration, offsets),
    )
    order = np.argsort(start, kind="stable")
    spans = start[order], (start + duration)[order]
    assert same(intervals.ending_first(*spans), plain_intervals.ending_first(*spans))
    take = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), np.uint8)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=n))), np.int64)
    longer = (
        rows,
        start[rows]
        + np.array(data.draw(st.lists(st.integers(0, 40), min_size=len(rows), max_size=len(rows))), np.int64),
    )
    for taken in (None, take):
        parents = np.full((2, n), 7, np.int32)
        for found, enclose in zip(parents, (intervals.enclose, plain_intervals.enclose), strict=True):
            enclose(start, duration, offsets, longer, found, taken)
        assert same(parents[0], parents[1])
    parent, _ = plain_intervals.nest(start, start + duration, offsets)
    entry = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)), np.int32)
    flooded = plain_intervals.flood(parent, entry)
    assert same(intervals.flood(parent, entry), flooded)
    for in_place in (intervals.flood, plain_intervals.flood):
        over = entry.copy()
        assert in_place(parent, over, over) is over
        assert same(over, flooded)
    label = np.array(data.draw(st.lists(st.integers(-1, 9), max_size=4)), np.int32)
    for twin in (intervals, plain_intervals):
        relabelled = entry.copy()
        twin.relabel(relabelled, label)
        assert relabelled.tolist() == [
            label[number] if 0 <= number < len(label) else -1 for number in entry.tolist()
        ]
    depth = np.full((2, n), 7, np.uint16)
    found = [
        twin.lanes(start, duration, offsets, depth[i]) for i, twin in enumerate((intervals, plain_intervals))
    ]
    assert same(found[0], found[1])
    assert same(depth[0], depth[1])
    assert found[0][2] == (start + np.maximum(duration, 1)).max(initial=0)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), max_size=20))
def test_repeated(pairs: list[tuple[int, int]]) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    values, counts = np.array(pairs, np.int64).reshape(-1, 2).T
    for typed in (values.astype(np.int32), values.astype(np.uint8), values > 0, (values > 0)[::-1]):
        found = selection.repeated(typed, counts)
        assert same(found, plain_selection.repeated(typed, counts))
        assert found.dtype == typed.dtype


@pytest.mark.parametrize("counts", [[1], [1, -1], [1, 1, 1]])
def test_repeated_refuses_counts_that_do_not_fit(counts: list[int]) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    for module in (selection, plain_selection):
        with pytest.raises(ValueError, match="count"):
            module.repeated(np.array([7, 8], np.int32), np.array(counts))
        for wide in (np.int64, np.int16, np.float64):
            with pytest.raises(ValueError, match="int32"):
                module.repeated(np.array([7, 8], wide), np.array([1, 1]))


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_selection(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    start, duration, offsets = events
    n = len(start)
    parent, _ = plain_intervals.nest(start, start + duration, offsets)
    klass = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), np.uint8)
    group = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n)), np.int32)
    assert same(
        selection.outermost(klass, group, parent, 3), plain_selection.outermost(klass, group, parent, 3)
    )
    metadata = np.array(data.draw(st.lists(st.integers(-1, 6), min_size=n, max_size=n)), np.int32)
    of_row = np.array(data.draw(st.lists(st.integers(0, 2), max_size=5)), np.uint8)
    assert same(selection.classes_of(metadata, of_row), plain_selection.classes_of(metadata, of_row))
    for dtype in (np.int32, np.int64):
        assert same(
            selection.rows_of(metadata, of_row, dtype), plain_selection.rows_of(metadata, of_row, dtype)
        )
    for values in (metadata, np.cumsum(np.abs(metadata) + 1, dtype=np.int32), metadata[:1], metadata[:0]):
        assert selection.ascends(values) == plain_selection.ascends(values)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.one_of(st.integers(0, 12), NUMBERS), max_size=12),
    st.lists(st.one_of(st.integers(0, 12), NUMBERS), max_size=12),
)
def test_ids(known: list[int], sought: list[int]) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    ids, wanted = np.array(known, np.int64), np.array([*sought, *known], np.int64)
    order = np.argsort(ids, kind="stable")
    found = selection.find_ids(ids[order], order, wanted)
    assert same(found, plain_selection.find_ids(ids[order], order, wanted))
    assert found.tolist() == [known.index(one) if one in known else -1 for one in wanted.tolist()]


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_informative_hubs(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    start, duration, offsets = events
    n, n_hubs = max(len(start), 1), data.draw(st.integers(1, 5))
    parent = np.append(plain_intervals.nest(start, start + duration, offsets)[0], np.int32(-1))[:n]
    heads = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), np.uint8)
    ties = []
    for _ in range(2):
        pairs = data.draw(
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n_hubs - 1)), min_size=1, max_size=8)
        )
        ties += [np.array(column, np.int32) for column in zip(*pairs, strict=True)]
    found = selection.informative_hubs(tuple(ties), n_hubs, parent, heads)
    assert same(found, plain_selection.informative_hubs(tuple(ties), n_hubs, parent, heads))


@settings(deadline=None, max_examples=200)
@given(lines())
def test_last_end(events: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from tb_tpuprof.native.compiled import tallies
    from tb_tpuprof.native.plain import tallies as plain_tallies

    start, duration, _ = events
    expected = max((a + max(d, 1) for a, d in zip(start.tolist(), duration.tolist(), strict=True)), default=0)
    assert tallies.last_end(start, duration) == plain_tallies.last_end(start, duration) == expected


@st.composite
def dense_lines(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Like `lines`, with hundreds of mostly short events: whole blocks of them merge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = [int(rng.integers(0, 900)) for _ in range(draw(st.integers(1, 3)))]
    longest = draw(st.sampled_from([1, 3, 40]))
    parts = []
    for n in counts:
        starts = np.sort(rng.integers(0, draw(st.sampled_from([60, 2_000])), n))
        durations = np.where(
            rng.random(n) < 0.05, rng.integers(0, 3 * longest + 1, n), rng.integers(0, longest, n)
        )
        order = np.lexsort((-durations, starts))
        parts.append((starts[order], durations[order]))
    start, duration = (np.concatenate([part[i] for part in parts]).astype(np.int64) for i in (0, 1))
    return start, duration, np.cumsum([0, *counts]).astype(np.int64)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.one_of(lines(), dense_lines()), st.integers(-5, 2_000), st.integers(1, 2_000), st.integers(1, 200))
def test_boxes(
    events: tuple[np.ndarray, np.ndarray, np.ndarray], begin: int, length: int, pixel: int
) -> None:
    from tb_tpuprof.native.compiled import timeline

    start, duration, offsets = events
    depth = np.empty(len(start), np.uint16)
    n_depths, sizes, _ = plain_intervals.lanes(start, duration, offsets, depth)
    compiled, plain = (twin.Rows(start, duration, sizes) for twin in (timeline, plain_timeline))
    first_rows = np.cumsum(n_depths, dtype=np.int64) - n_depths
    for rows in (compiled, plain):
        for line in range(len(n_depths)):
            rows.place(offsets[line : line + 2], first_rows[line : line + 1], depth)
        rows.finish()
    assert same(compiled.order, plain.order)
    assert same(compiled.offsets, plain.offsets)
    rows = np.arange(len(plain.offsets) - 1, dtype=np.int32)
    found = compiled.boxes(rows, begin, begin + length, pixel)
    assert same(found, plain.boxes(rows, begin, begin + length, pixel))
    assert same(compiled.first_ending_after(rows, begin), plain.first_ending_after(rows, begin))
    n_pixels = min(length // pixel, 200)
    assert same(compiled.busy(rows, begin, pixel, n_pixels), plain.busy(rows, begin, pixel, n_pixels))
    seen = (start < begin + length) & (start + np.maximum(duration, 1) > begin)
    assert found["n_merged"].sum() == seen.sum()
    exact = found[found["n_merged"] == 1]
    assert same(exact["duration"], duration[exact["event"]])
    assert same(found["longest"], duration[found["event"]])


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_runs(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import sequences

    start, duration, _ = events
    n, n_labels = len(start), 4
    rows = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=n))) if n else [], np.int32
    )
    group = np.array(
        data.draw(st.lists(st.integers(-1, 1), min_size=len(rows), max_size=len(rows))), np.int32
    )
    for of_rows in (group, np.empty(0, np.int32)):
        assert same(
            sequences.sequence(start, duration, rows, of_rows, 3),
            plain_sequences.sequence(start, duration, rows, of_rows, 3),
        )
    made = *plain_sequences.sequence(start, duration, rows, group, 3), rows
    label = np.array(
        data.draw(st.lists(st.integers(0, n_labels - 1), min_size=len(rows), max_size=len(rows))), np.int32
    )
    n_levels = data.draw(st.integers(1, 3))
    keys = np.array(
        data.draw(st.lists(st.integers(-1, 2), min_size=n_labels * n_levels, max_size=n_labels * n_levels)),
        np.int32,
    )
    keys = keys.reshape(n_labels, n_levels)
    n_found = sequences.n_runs(made[2], label, keys)
    assert n_found == plain_sequences.n_runs(made[2], label, keys)
    found = [
        tuple(np.zeros(n_found, kind) for kind in (np.int64, np.int64, np.int32, np.int32)) for _ in range(2)
    ]
    sequences.runs(made, label, keys, found[0])
    plain_sequences.runs(made, label, keys, found[1])
    assert same(found[0], found[1])


def test_runs_of_scopes() -> None:
    from tb_tpuprof.native.compiled import sequences

    events = (
        np.array([0, 10, 20, 30]),
        np.array([8, 18, 28, 38]),
        np.array([1, 0, 0, 0], np.uint8),
        np.arange(100, 104, dtype=np.int32),
    )
    keys = np.array([[0, 2], [0, 3], [1, 3], [-1, -1]], np.int32)  # a/x a/y b/y and none
    out = tuple(np.zeros(5, kind) for kind in (np.int64, np.int64, np.int32, np.int32))
    sequences.runs(events, np.array([0, 0, 1, 2], np.int32), keys, out)
    assert [column.tolist() for column in out] == [
        [0, 0, 20, 30, 30],
        [28, 18, 8, 8, 8],
        [0, 2, 3, 1, 3],
        [100, 100, 102, 103, 103],
    ]
    assert sequences.n_runs(events[2], np.array([0, 3, 3, 0], np.int32), keys) == 4


@settings(deadline=None, max_examples=200)
@given(st.lists(NUMBERS, max_size=60), st.integers(0, 9000))
def test_number(few: list[int], n_more: int) -> None:
    from tb_tpuprof.native.compiled import numbering

    values = np.array([*few, *range(n_more), *few], np.int64)
    assert same(numbering.number(values), plain_numbering.number(values))


def test_number_of_values_that_collide() -> None:
    from tb_tpuprof.native.compiled import numbering

    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)  # all of these fall into the first slots of the table
    values = np.array([i * inverse % 2**64 for i in range(40_000)], np.uint64).view(np.int64)
    assert same(numbering.number(values), plain_numbering.number(values))


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_by_start(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import sequences

    start, _, offsets = events
    n = len(start)
    rows = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=n))) if n else [], np.int32
    )
    chosen = np.searchsorted(rows, offsets).astype(np.int64)
    assert same(sequences.by_start(start, rows, chosen), plain_sequences.by_start(start, rows, chosen))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 4), st.integers(-1, 4)), max_size=25), st.data())
def test_replay(events: list[tuple[int, int, int]], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import sequences
    from tb_tpuprof.native.plain import sequences as plain_sequences

    columns = tuple(
        np.array([event[i] for event in events], dtype)
        for i, dtype in enumerate((np.int64, np.int32, np.int32))
    )
    root, size, unpadded = (
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=5, max_size=5)), np.int64) for _ in range(3)
    )
    assert same(
        sequences.replay(columns, root, size, unpadded), plain_sequences.replay(columns, root, size, unpadded)
    )


@settings(deadline=None, max_examples=200)
@given(lines())
def test_in_order(events: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from tb_tpuprof.native.compiled import sequences

    start, duration, offsets = events
    for first, last in itertools.pairwise(offsets.tolist()):
        assert sequences.in_order(start[first:last], duration[first:last])
        assert plain_sequences.in_order(start[first:last], duration[first:last])
    assert sequences.in_order(start, duration) == plain_sequences.in_order(start, duration)
    assert sequences.in_order(duration, start) == plain_sequences.in_order(duration, start)


@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_tallies(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import tallies

    start, duration, offsets = events
    n = len(start)
    metadata = np.array(data.draw(st.lists(st.integers(-1, 6), min_size=n, max_size=n)), np.int32)
    wanted = np.array(data.draw(st.lists(st.integers(0, 1), max_size=5)), np.uint8)
    assert same(tallies.tally(metadata, duration, 5), plain_tallies.tally(metadata, duration, 5))
    edges = np.array(sorted(data.draw(st.lists(st.integers(0, 32), max_size=6))), np.int64)
    assert same(
        tallies.histogram(metadata, duration, wanted, edges),
        plain_tallies.histogram(metadata, duration, wanted, edges),
    )
    bounds = np.stack((offsets[:-1], offsets[1:]), axis=1)
    depth = np.empty(n, np.uint16)
    plain_intervals.lanes(start, duration, offsets, depth)
    begin, length = data.draw(st.integers(-5, 80)), data.draw(st.integers(1, 80))
    low, high = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
    columns = start, duration, metadata, depth
    found = tallies.range_totals(columns, bounds, begin, begin + length, low, high, 5)
    assert same(found, plain_tallies.range_totals(columns, bounds, begin, begin + length, low, high, 5))
    assert (found[2] <= found[1]).all()
