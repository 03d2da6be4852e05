"""Stats gathered in chunks are those that the events hold, whatever breaks a chunk of plain values: gaps,
kinds, malformed events.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.ingest.xspace.stat_columns import GatheredStats
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.schema import INT, TEXT, UINT
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tests.synthetic import varint

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")

KEY, NAMES = 0, ("key", "a text", "another text")
N = 40_000  # more than the largest chunk holds
Stats = list[tuple[int, int]]  # (field of the value, value)


def event(stats: Stats, is_whole: bool = True) -> bytes:
    return event_of([(1, number, value) for number, value in stats], is_whole)


def event_of(stats: list[tuple[int, int, int]], is_whole: bool = True) -> bytes:
    """Stats as (id, field of the value, value)."""
    parts = [b"\x08" + varint(i) + bytes([number << 3]) + varint(value) for i, number, value in stats]
    body = b"\x08\x05" + b"".join(b"\x22" + varint(len(part)) + part for part in parts)
    body += b"" if is_whole else b"\x22\x7f"  # a stat that runs past the event's end
    return b"\x22" + varint(len(body)) + body


def gathered(
    stats_of: Callable[[int], Stats], is_whole: Callable[[int], bool]
) -> tuple[GatheredStats, list[tuple[int, int, int]]]:
    """What a decoder gathers of N events, and what it should have: (owner, kind, value)."""
    from tb_tpuprof.native.compiled.events import Decoder
    from tb_tpuprof.native.compiled.gathering import IdMap

    columns = tuple(np.zeros(N, dtype) for dtype in (np.int64, np.int64, np.int32, np.uint32))
    decoder = Decoder(columns, 1)
    ids = np.array([1, 2, 3], np.int64)
    keep = np.array([KEY, -1, -1], np.int32)
    decoder.open_plane(
        IdMap(ids, ids.astype(np.int32)), IdMap(ids, keep), IdMap(ids, np.arange(3, dtype=np.int32))
    )
    data = b"".join(event(stats_of(i), is_whole(i)) for i in range(N))
    decoder.read_piece(np.frombuffer(data, np.uint8), 0, 0, len(data), 0, 0, N)
    expected, row = [], 0
    for i in range(N):
        if is_whole(i):
            expected += [
                (row, TEXT if number == 7 else number, value - 1 if number == 7 else value)
                for number, value in stats_of(i)
            ]
            row += 1
    return GatheredStats([decoder.stats], np.arange(3, dtype=np.int32), [np.empty(0, np.int32)]), expected


CASES: dict[str, tuple[Callable[[int], Stats], Callable[[int], bool]]] = {
    "each one number": (lambda i: [(INT, i * 7)], lambda i: True),
    "each one text": (lambda i: [(7, 2 + i % 2)], lambda i: True),
    "numbers from an event on": (lambda i: [(UINT, 2**40 + i)] if i > 100 else [], lambda i: True),
    "a gap where a chunk is half full": (lambda i: [(INT, i)] if i != 64 else [], lambda i: True),
    "a gap right after": (lambda i: [(INT, i)] if i != 65 else [], lambda i: True),
    "a gap where a chunk is full": (lambda i: [(INT, i)] if i != 128 else [], lambda i: True),
    "gaps here and there": (lambda i: [(INT, i)] if i % 1000 not in (3, 5, 7) else [], lambda i: True),
    "every other": (lambda i: [(INT, i)] if i % 2 else [], lambda i: True),
    "two of an event": (lambda i: [(INT, i), (INT, i + 1)] if i % 999 == 0 else [(INT, i)], lambda i: True),
    "another kind": (lambda i: [(INT if i % 5000 else UINT, i)], lambda i: True),
    "texts among numbers": (lambda i: [(INT, i) if i % 3000 else (7, 3)], lambda i: True),
    "malformed events": (lambda i: [(INT, i)], lambda i: i % 128 != 0),
    "malformed events of many stats": (
        lambda i: [(INT, i)] * (300 if i % 9000 == 0 else 1),
        lambda i: i % 9000 != 0,
    ),
    "malformed events among gaps": (lambda i: [(INT, i)] if i % 5 else [], lambda i: i % 64 != 1),
}


@pytest.mark.parametrize("name", CASES)
def test_chunks_hold_what_events_say(name: str) -> None:
    found, expected = gathered(*CASES[name])
    columns = found.columns(KEY)
    assert columns is not None
    assert (
        list(zip(columns.owner.tolist(), columns.kind.tolist(), columns.value.tolist(), strict=True))
        == expected
    )
    assert not columns.size.any()


@pytest.mark.parametrize("name", CASES)
def test_few_rows_are_told_without_columns_as_with_them(name: str) -> None:
    some, every = (
        StatTable(gathered(*CASES[name])[0], Strings.of([text.encode() for text in NAMES])) for _ in range(2)
    )
    rows = np.array([0, 63, 64, 65, 128, 129, 100, 3, N - 1, 32_767, 32_768, 3, 10**6], np.int64)
    every.has("key")  # makes columns
    for ask in ("ints_at", "texts_at"):
        assert getattr(some, ask)("key", rows).tolist() == getattr(every, ask)("key", rows).tolist()
    assert np.array_equal(some.floats_at("key", rows), every.floats_at("key", rows), equal_nan=True)


def test_a_key_of_one_kind_without_gaps_is_looked_into_where_it_stands() -> None:
    found, _ = gathered(*CASES["each one text"])
    kind, values, is_there = found.at(KEY, np.array([5, N], np.int64)) or (0, np.zeros(0), np.zeros(0))
    assert (kind, values.tolist()[0], is_there.tolist()) == (TEXT, 2, [True, False])
    found.columns(KEY)
    assert found.at(KEY, np.array([5], np.int64)) is None
    for key in (-1, 99):
        for rows in ([], [5]):
            assert found.at(key, np.array(rows, np.int64)) is None


IDS = (1, 2, 127, 128, 200, 20_000)  # of one, two and three bytes
VALUES = st.sampled_from((0, 1, 2, 127, 128, 300, 2**35, 2**56 - 1, 2**56, 2**63))
SORTS = st.lists(
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from((UINT, INT, 7)), VALUES), max_size=5),
    min_size=1,
    max_size=4,
)


@given(
    SORTS,
    st.lists(st.integers(0, 3), max_size=30),
    st.sets(st.integers(0, 29)),
    st.tuples(*[st.permutations((*range(5), -1))] * 2),
)
def test_what_is_expected_of_the_next_stats_changes_nothing(
    sorts: list[list[tuple[int, int, int]]],
    order: list[int],
    malformed: set[int],
    keeps: tuple[list[int], list[int]],
) -> None:
    """Events of a few sorts in any order, some malformed, of two planes in which the same ids are of
    different keys.
    """
    from tb_tpuprof.native.compiled.events import Decoder
    from tb_tpuprof.native.compiled.gathering import IdMap

    columns = tuple(np.zeros(len(order), dtype) for dtype in (np.int64, np.int64, np.int32, np.uint32))
    decoder, ids, rows = Decoder(columns, 5), np.array(IDS, np.int64), np.arange(len(IDS), dtype=np.int32)
    expected: dict[int, list[tuple[int, int, int]]] = {}
    row = 0
    for keep, numbers in zip(
        keeps, (range(len(order) // 2), range(len(order) // 2, len(order))), strict=True
    ):
        decoder.open_plane(IdMap(ids, rows), IdMap(ids, np.array(keep, np.int32)), IdMap(ids, rows))
        data = (
            b"\0" * 20
            + b"".join(event_of(sorts[order[i] % len(sorts)], i not in malformed) for i in numbers)
            + b"\0" * 20
        )
        decoder.read_piece(np.frombuffer(data, np.uint8), 0, 20, len(data) - 20, 0, row, len(numbers))
        for i in numbers:
            if i in malformed:
                continue
            for stat, number, value in sorts[order[i] % len(sorts)]:
                key, value = keep[IDS.index(stat)], value - 2**64 if value == 2**63 else value
                if key >= 0 and (number != 7 or value in IDS):
                    kind, value = (TEXT, IDS.index(value)) if number == 7 else (number, value)
                    expected.setdefault(key, []).append((row, kind, value))
            row += 1
    found = GatheredStats([decoder.stats], np.arange(len(IDS), dtype=np.int32), [np.empty(0, np.int32)])
    for key in range(5):
        told = found.columns(key)
        kept = list(zip(*(column.tolist() for column in told[:3]), strict=True)) if told else []
        assert kept == expected.get(key, [])
