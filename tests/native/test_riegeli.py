"""The compiled loops of Riegeli files against their plain twins: hashes, the walk through states,
interning.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import riegeli as plain
from tb_tpuprof.native.plain import wire as plain_wire

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)


def test_hashes_of_every_length() -> None:
    from tb_tpuprof.native.compiled.riegeli import record_hash

    rng = np.random.default_rng(1)
    values = set()
    for n in range(130):
        data = rng.integers(0, 256, n).astype(np.uint8)
        assert record_hash(data) == plain.record_hash(data)
        values.add(record_hash(data))
        if n:
            data[n - 1] ^= 1
            values.add(record_hash(data))
    assert len(values) == 259


@st.composite
def walks(draw: st.DrawFn) -> tuple[Any, ...]:
    """States, buffers and transitions of any kind, few of which fit together."""
    n = draw(st.integers(1, 7))
    n_buffers = draw(st.integers(1, 3))
    states = [
        (
            draw(st.integers(0, 8)),
            draw(st.integers(0, 2**16 - 1)),
            draw(st.integers(0, 2)),
            draw(st.integers(0, n_buffers - 1)),
            draw(st.integers(0, n - 1)),
            draw(st.integers(0, 1)),
            draw(st.integers(0, 4)),
        )
        for _ in range(n)
    ]
    contents = [draw(st.binary(max_size=12)) for _ in range(n_buffers)]
    ends = np.cumsum([len(content) for content in contents]).astype(np.int64)
    buffers = (
        np.frombuffer(b"".join(contents), np.uint8),
        np.append(0, ends[:-1]).astype(np.int64),
        ends,
    )
    transitions = np.array(draw(st.lists(st.integers(0, 31), max_size=9)), np.uint8)
    first = draw(st.integers(0, n - 1))
    return (
        np.array(states, np.int64),
        first,
        buffers,
        transitions,
        draw(st.integers(0, 3)),
        draw(st.integers(0, 9)),
    )


def outcome(function: Any, walk: tuple[Any, ...]) -> Any:
    try:
        values, ends = function(*walk)
    except ValueError as error:
        return str(error)
    return values.tolist(), ends.tolist()


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(walks())
def test_walks_end_alike(walk: tuple[Any, ...]) -> None:
    from tb_tpuprof.native.compiled.riegeli import untransposed

    assert outcome(untransposed, walk) == outcome(plain.untransposed, walk)


def walk_of(
    *states: tuple[int, ...], moves: bytes = b"", buffer: bytes = b"", n: int = 1, size: int = 0
) -> Any:
    """A walk that begins at the first state, with one buffer."""
    places = (np.frombuffer(buffer, np.uint8), np.zeros(1, np.int64), np.array([len(buffer)], np.int64))
    return np.array(states, np.int64), 0, places, np.frombuffer(moves, np.uint8), n, size


RECORD = (plain.RECORD_START, 0, 0, -1, 0, 0, 0)
END, START = (plain.MESSAGE_END, 0x0A, 1, -1, 1, 0, 0), (plain.MESSAGE_START, 0, 0, -1, 2, 0, 0)
WALKS: dict[str, tuple[Any, Any]] = {
    "an empty record": (walk_of(RECORD), ([], [0])),
    "two empty records": (walk_of(RECORD, moves=b"\0", n=2), ([], [0, 0])),
    "four by one byte": (walk_of(RECORD, moves=b"\2", n=4), ([], [0, 0, 0, 0])),
    "five by one byte": (
        walk_of(RECORD, moves=b"\2", n=5),
        "its records are fewer or shorter than the header says",
    ),
    "an empty message": (walk_of(END, START, RECORD, moves=b"\0\0", size=2), ([0x0A, 0], [2])),
    "too many records": (walk_of(RECORD, moves=b"\0\0", n=2), "it has more records than the header says"),
    "no space": (
        walk_of(END, START, RECORD, moves=b"\0\0", size=1),
        "its records are longer than the header says",
    ),
    "too much space": (
        walk_of(END, START, RECORD, moves=b"\0\0", size=3),
        "its records are fewer or shorter than the header says",
    ),
    "no end": (
        walk_of((*START[:4], 1, 0, 0), RECORD, moves=b"\0", size=2),
        "a message starts that did not end",
    ),
    "no start": (walk_of(END, RECORD, moves=b"\0", size=0), "a record starts within a message"),
    "nowhere": (walk_of(RECORD, moves=b"\4"), "a transition leads to no state"),
    "a number": (
        walk_of((plain.VARINT, 0x08, 1, 0, 1, 0, 2), RECORD, moves=b"\0", buffer=b"\x16\x01", size=3),
        ([0x08, 0x96, 0x01], [3]),
    ),
    "half a number": (
        walk_of((plain.VARINT, 0x08, 1, 0, 1, 0, 2), RECORD, moves=b"\0", buffer=b"\x16", size=3),
        "a buffer ends too early",
    ),
    "a text": (
        walk_of((plain.TEXT, 0x12, 1, 0, 1, 0, 0), RECORD, moves=b"\0", buffer=b"\2hi", size=4),
        ([0x12, 2, 104, 105], [4]),
    ),
    "a text cut off": (
        walk_of((plain.TEXT, 0x12, 1, 0, 1, 0, 0), RECORD, moves=b"\0", buffer=b"\3hi", size=4),
        "a buffer ends too early",
    ),
    "a circle": (walk_of((plain.NOTHING, 0, 0, -1, 0, 1, 0)), "its states lead nowhere"),
    "no such kind": (walk_of((9, 0, 0, -1, 0, 0, 0)), "a transition leads to no state"),
    "no such state": (
        walk_of((*RECORD[:4], 1, 0, 0)),
        "a state refers to a buffer or state that is not there",
    ),
    "no such buffer": (
        walk_of((plain.TEXT, 0x12, 1, 1, 0, 0, 0)),
        "a state refers to a buffer or state that is not there",
    ),
    "no buffer": (
        walk_of((plain.FIXED, 0x12, 1, -1, 0, 0, 4)),
        "a state refers to a buffer or state that is not there",
    ),
    "a long tag": (
        walk_of((plain.TAG_ONLY, 0x12, 9, -1, 0, 0, 0)),
        "a state has a tag or a value of impossible size",
    ),
}


@pytest.mark.parametrize("what", WALKS)
def test_a_walk(what: str) -> None:
    from tb_tpuprof.native.compiled.riegeli import untransposed

    walk, expected = WALKS[what]
    assert outcome(plain.untransposed, walk) == expected
    assert outcome(untransposed, walk) == expected


@pytest.mark.parametrize(("n", "fits"), [(plain.MOST_OPEN, True), (plain.MOST_OPEN + 1, False)])
def test_messages_within_messages(n: int, fits: bool) -> None:
    from tb_tpuprof.native.compiled.riegeli import untransposed

    # Ends one after another by repeats of the state, then starts, then the record.
    end, start = (plain.MESSAGE_END, 0x0A, 1, -1, 0, 0, 0), (plain.MESSAGE_START, 0, 0, -1, 1, 0, 0)
    record = (plain.RECORD_START, 0, 0, -1, 0, 0, 0)
    moves = b"\0" * (n - 1) + b"\4" + b"\0" * (n - 1) + b"\4"
    size = 0
    for _ in range(n):
        size += 1 + len(plain._varint(size))
    walk = walk_of(end, start, record, moves=moves, size=size)
    for function in (untransposed, plain.untransposed):
        result = outcome(function, walk)
        assert result == "its messages are nested too deeply" if not fits else result[1] == [size]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.lists(st.one_of(st.sampled_from([b"", b"a", b"\0", b"aa"]), st.binary(max_size=40)), max_size=9)
    )
)
def test_interners_agree(batches: list[list[bytes]]) -> None:
    from tb_tpuprof.native.compiled.interning import Interner

    interners = (Interner(7), plain_wire.Interner(7))
    seen: dict[bytes, int] = {}
    for batch in batches:
        sizes = np.array([len(text) for text in batch], np.int64)
        starts = np.cumsum(sizes) - sizes
        data = np.frombuffer(b"".join(batch), np.uint8)
        expected = [seen.setdefault(text, len(seen)) for text in batch]
        for interner in interners:
            assert interner.add(data, starts, sizes).tolist() == expected
            blob, offsets = interner.strings()
            assert [blob[a:b].tobytes() for a, b in itertools.pairwise(offsets)] == list(seen)
            assert len(interner) == len(seen)


def test_an_interner_grows() -> None:
    from tb_tpuprof.native.compiled.interning import Interner

    numbers = np.arange(5000, dtype=np.int64)
    data = numbers.view(np.uint8)
    interner = Interner(3)
    for rows in (numbers[:511], numbers[:513], numbers[::-1]):
        sizes = np.full(len(rows), 8, np.int64)
        ids = interner.add(data, rows * 8, sizes)
        assert len(np.unique(ids)) == len(rows)
    assert np.array_equal(interner.add(data, numbers[:513] * 8, np.full(513, 8, np.int64)), numbers[:513])
    assert len(interner) == 5000
    assert len(interner.strings()[0]) == 40000


@pytest.mark.parametrize("wrong", [(-1, 1), (0, 4), (3, 1), (0, -1)])
def test_an_interner_refuses_spans_outside_of_its_data(wrong: tuple[int, int]) -> None:
    from tb_tpuprof.native.compiled.interning import Interner

    start, size = (np.array([value], np.int64) for value in wrong)
    for interner in (Interner(3), plain_wire.Interner(3)):
        with pytest.raises(ValueError, match="outside"):
            interner.add(np.zeros(3, np.uint8), start, size)
