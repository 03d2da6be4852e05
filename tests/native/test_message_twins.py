"""Compiled loops that read messages and pack answers, each against its plain twin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import packing as plain_packing
from tb_tpuprof.native.plain import timeline as plain_timeline
from tb_tpuprof.native.plain import wire as plain_wire
from tests.native.event_lines import same

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)


@settings(deadline=None, max_examples=300)
@given(
    st.binary(max_size=60),
    st.lists(st.tuples(st.integers(-2, 70), st.integers(-2, 70)), max_size=6),
    st.data(),
)
def test_wire(data: bytes, messages: list[tuple[int, int]], draw: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import interning, wire
    from tests.ingest.hlo_protos import message

    if draw.draw(st.booleans()):
        data = message({1: 5, 2: (1, 300, 2**40), 3: [{1: 1}, "text"], 4: data[:20], 5: [7, 8]})
    block = np.frombuffer(data, np.uint8)
    starts, sizes = (np.array([pair[i] for pair in messages], np.int64) for i in (0, 1))
    numbers = np.array([1, 2, 3, 5], np.int64)
    for counted in (-1, 1, 3):
        assert same(
            wire.spans(block, starts, sizes, numbers, counted),
            plain_wire.spans(block, starts, sizes, numbers, counted),
        )
    for start, size in [(0, len(data)), *messages]:
        assert same(wire.fields(block, start, start + size), plain_wire.fields(block, start, start + size))
    for number in (2, 3, 4):
        assert same(wire.ints(block, starts, sizes, number), plain_wire.ints(block, starts, sizes, number))
        assert same(wire.parts(block, starts, sizes, number), plain_wire.parts(block, starts, sizes, number))
    inside = (starts >= 0) & (sizes >= 0) & (starts + sizes <= len(data))
    assert same(
        interning.intern(block, starts[inside], sizes[inside], 1),
        plain_wire.intern(block, starts[inside], sizes[inside], 1),
    )
    rows = np.array([draw.draw(st.integers(-1, len(messages))) for _ in messages], np.int32)
    assert same(
        *(
            twin.alike(block, starts, sizes, rows, (starts[::-1].copy(), sizes))
            for twin in (interning, plain_wire)
        )
    )
    assert (
        interning.alike(
            block, starts, sizes, np.arange(len(messages), dtype=np.int32), (starts, sizes)
        ).tolist()
        == inside.tolist()
    )
    assert same(
        interning.joined(block, starts[inside], sizes[inside]),
        plain_wire.joined(block, starts[inside], sizes[inside]),
    )
    if not inside.all():
        for twin in (interning, plain_wire):
            with pytest.raises(ValueError, match="outside"):
                twin.joined(block, starts, sizes)


RECORD = st.dictionaries(
    st.integers(1, 4), st.one_of(st.integers(0, 5), st.just(2**62), st.just("text")), max_size=4
)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(RECORD, max_size=4), max_size=5),
    st.binary(max_size=6),
    st.lists(st.integers(-1, 1), min_size=12, max_size=12),
)
def test_records(records: list[list[dict[int, Any]]], damage: bytes, rows: list[int]) -> None:
    from tb_tpuprof.native.compiled import wire
    from tests.ingest.hlo_protos import message

    parts = [message({1: own, 2: 3}) + damage for own in records]
    sizes = np.array([len(part) for part in parts] + [5, -1], np.int64)
    starts = np.append(np.cumsum([0] + [len(part) for part in parts])[:-1], [2**40, 0]).astype(np.int64)
    block = np.frombuffer(b"".join(parts), np.uint8)
    sums = np.zeros((2, 2, len(sizes)))
    for total, twin in zip(sums, (wire, plain_wire), strict=True):
        twin.add_records(
            block, starts, sizes, np.arange(len(sizes)), np.array(rows, np.int64).reshape(4, 3), total
        )
    assert same(sums[0], sums[1])


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 9))),
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 9))),
    st.integers(1, 4),
)
def test_match(made: list[tuple[int, int]], used: list[tuple[int, int]], crowd: int) -> None:
    from tb_tpuprof.native.compiled import selection
    from tb_tpuprof.native.plain import selection as plain_selection

    keys = [np.array([(block << 32) + low for block, low in side], np.int64) for side in (made, used)]
    found = selection.match(*keys, crowd)
    assert found is None if not made or not used else same(found, plain_selection.match(*keys, crowd))


def test_scattered_keys_are_not_counted() -> None:
    from tb_tpuprof.native.compiled import selection

    assert selection.match(np.array([0, 2**31], np.int64), np.array([2**31], np.int64), 64) is None
    assert selection.match(np.array([-(2**63), 2**63 - 1], np.int64), np.array([1], np.int64), 64) is None


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(-(10**6), 10**6), max_size=30),
    st.integers(1, 10**9),
    st.integers(0, 10**9),
    st.booleans(),
)
def test_packing(values: list[int], scale: int, base: int, is_delta: bool) -> None:
    from tb_tpuprof.native.compiled import packing

    numbers = np.array(values, np.int64) * (scale if abs(base) % 2 else 1) + base
    assert packing.packed(numbers, is_delta) == plain_packing.packed(numbers, is_delta)
    for far in ([2**53], [-(2**53), 1]):
        for packed in (packing.packed, plain_packing.packed):
            with pytest.raises(OverflowError):
                packed(np.array(far), is_delta)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 2**32),
    st.integers(1, 1500),
    st.integers(1, 5),
    st.sampled_from([1, 7, 90_585_943, 2**20, 3 * 2**33]),
    st.booleans(),
    st.booleans(),
)
def test_packing_parts(
    seed: int, n: int, n_parts: int, scale: int, is_delta: bool, has_lengths: bool
) -> None:
    from tb_tpuprof.native.compiled import packing

    chance = np.random.default_rng(seed)
    parts = chance.choice(chance.choice(256, n_parts, replace=False), n).astype(np.uint8)
    lengths = chance.integers(0, chance.choice([2, 40, 10**6]), n) * scale
    gaps = chance.integers(chance.choice([-5, 0]), chance.choice([1, 9, 2000]) + 1, n) * scale
    values = chance.integers(-(10**6), 10**6) + np.cumsum(gaps + np.append(0, lengths[:-1]))
    if chance.random() < 0.3:
        values[chance.integers(0, n)] += 1
    numbers, order, offsets = packing.divided(parts)
    assert same((numbers, order, offsets), plain_packing.divided(parts))
    assert np.array_equal(np.unique(parts)[numbers], parts)
    given_lengths = lengths if has_lengths else None
    found = []
    for twin in (packing, plain_packing):
        try:
            found.append(twin.packed_parts(values, order, offsets, is_delta, given_lengths))
        except OverflowError:
            found.append("overflow")
    assert found[0] == found[1]
    assert (found[0] == "overflow") == bool((abs(values) >= 2**53).any())
    for part, (a, b) in zip(found[0], itertools.pairwise(offsets.tolist()), strict=True):
        if found[0] == "overflow":
            break
        rows = order[a:b]
        before = lengths[rows].cumsum() - lengths[rows] if part[4] else 0
        assert part[:4] == plain_packing.packed(values[rows] - before, is_delta)


def test_packing_parts_of_other_rows_is_refused() -> None:
    from tb_tpuprof.native.compiled import packing

    _, order, offsets = packing.divided(np.zeros(3, np.uint8))
    for twin in (packing, plain_packing):
        for values, lengths in ((2, None), (4, None), (3, 2), (3, 4)):
            with pytest.raises(IndexError):
                twin.packed_parts(
                    np.zeros(values, np.int64),
                    order,
                    offsets,
                    True,
                    None if lengths is None else np.zeros(lengths, np.int64),
                )
        none = np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64)
        assert twin.packed_parts(*none, True) == []


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5000), st.integers(0, 20_000))
def test_looks(seed: int, pixel_ps: int, origin_ps: int) -> None:
    from tb_tpuprof.native.compiled import timeline

    rng = np.random.default_rng(seed)
    n = 40
    boxes = np.zeros(n, plain_timeline.BOX)
    boxes["n_merged"] = rng.integers(1, 4, n)
    pair = origin_ps + 2 * pixel_ps * rng.integers(
        0, 9, n
    )  # what is merged begins within two pixels, or before the window
    boxes["start"] = pair + rng.integers(-1 if pixel_ps > 1 else 0, 2 * pixel_ps, n)
    boxes["duration"] = rng.integers(2, 2 * pixel_ps + 2, n)
    boxes["longest"] = rng.integers(0, 2**40, n)
    boxes["row"], boxes["event"] = rng.integers(0, 6, n), rng.integers(0, 50, n)
    of_row = tuple(rng.integers(0, 4, 6).astype(np.int32) for _ in range(2))
    of_key = (
        rng.integers(0, 99, 8).astype(np.int32),
        rng.integers(0, 9, 8).astype(np.uint8),
        rng.integers(0, 2, 8).astype(np.uint8),
    )
    key, of_line = rng.integers(0, 8, 50).astype(np.int32), rng.choice([3, 255], 4).astype(np.uint8)
    own_event = np.flatnonzero(rng.random(50) < 0.4).astype(np.int32)
    own = own_event, rng.integers(99, 120, len(own_event)).astype(np.int32), 8
    found = []
    for twin in (timeline, plain_timeline):
        columns = np.zeros((5, n), np.int64), np.zeros((3, n), np.int32), np.zeros(n, np.uint8)
        seen = np.zeros(120, np.uint8)
        looks = twin.BoxStyles(of_row, key, of_key, of_line, own)
        looks.fill(columns, boxes, (origin_ps, pixel_ps), (7, 1000, 2**40), seen)
        found.append((*columns, seen))
    assert same(*found)
    (line, start, duration, longest, event), (depth, name, n_merged), family, seen = found[0]
    merged = boxes["n_merged"] > 1
    assert (abs(longest - boxes["longest"]) <= boxes["longest"] / 128)[merged].all()
    assert (longest == 0)[~merged].all()
    assert np.array_equal((start - 1000)[~merged], boxes["start"][~merged])
    assert np.array_equal(duration[~merged], boxes["duration"][~merged])
    assert ((start - 1000 - origin_ps) % pixel_ps == 0)[merged].all()
    assert np.array_equal(np.flatnonzero(seen), np.unique(name))
    for i in range(n):
        has_own = bool(of_key[2][key[event[i] - 2**40]]) and event[i] - 2**40 in own_event
        assert (name[i] >= 99) == has_own
        assert family[i] == (
            3 if of_line[line[i] - 7] == 3 else 8 if has_own else of_key[1][key[event[i] - 2**40]]
        )
    assert np.array_equal(depth, of_row[1][boxes["row"]])
    assert np.array_equal(n_merged, boxes["n_merged"])
