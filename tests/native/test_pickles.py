"""The compiled reader of pickles against its plain twin: the same value, or the same reason at the same byte,
of whatever opcodes follow one another.
"""

from __future__ import annotations

import pickle
import random
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED, Unreadable
from tb_tpuprof.native.plain import pickles as plain
from tb_tpuprof.parallel.turns import Turns
from tests.ingest.heap_files import torch_snapshot
from tests.ingest.torch_allocator import MIB, Allocator, snapshot_of, train

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)

ALONE = b"()N]}aestu.\x85\x86\x87\x88\x89\x94"
BYTES_OF_ARGUMENT = {
    **dict.fromkeys(b"hKq\x80", 1),
    ord("M"): 2,
    **dict.fromkeys(b"Jjr", 4),
    **dict.fromkeys(b"G\x95", 8),
}
SMALL = st.integers(0, 5).map(lambda number: bytes([number]))
TEXTS = st.sampled_from(("", "a", "ä", "size", "\ud800")).map(
    lambda text: text.encode("utf-8", "surrogatepass")
)


def argument(n: int) -> st.SearchStrategy[bytes]:
    """An argument of n bytes: small, so that the memo has it, or of any kind."""
    return SMALL.map(lambda byte: byte.ljust(n, b"\0")) | st.binary(min_size=n, max_size=n)


def sized(data: bytes) -> st.SearchStrategy[bytes]:
    """A text with its size, of one, four or eight bytes."""
    n = len(data)
    return st.sampled_from(
        (
            b"\x8c" + bytes([n]) + data,
            b"X" + struct.pack("<I", n) + data,
            b"\x8d" + struct.pack("<Q", n) + data,
        )
    )


OPCODES = st.one_of(
    st.sampled_from(ALONE).map(lambda opcode: bytes([opcode])),
    st.sampled_from(sorted(BYTES_OF_ARGUMENT)).flatmap(
        lambda opcode: argument(BYTES_OF_ARGUMENT[opcode]).map(lambda rest: bytes([opcode]) + rest)
    ),
    TEXTS.flatmap(sized),
    st.binary(max_size=10).map(lambda number: b"\x8a" + bytes([len(number)]) + number),
    # A dict that is stored, opened and filled, as in every entry of a history.
    st.tuples(TEXTS.flatmap(sized), SMALL).map(lambda pair: b"}\x94(" + pair[0] + b"\x94K" + pair[1] + b"u"),
    st.binary(max_size=3),
)


def outcome(read: Callable[[bytes, int], Any], data: bytes, most: int) -> tuple[Any, ...]:
    """The value, of which parts may contain themselves, or why there is none."""
    try:
        return ("value", repr(read(data, most)))
    except Unreadable as error:
        return (error.what, error.position)


def compare(data: bytes, most: int = 10**6) -> str:
    """The kind of outcome, which is that of both."""
    from tb_tpuprof.native.compiled.pickles import unpickled

    found = outcome(unpickled, data, most)
    assert found == outcome(plain.unpickled, data, most), data
    return str(found[0])


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.lists(OPCODES, max_size=40), st.integers(0, 60))
def test_any_opcodes(parts: list[bytes], most: int) -> None:
    data = b"\x80\x04" + b"".join(parts) + b"."
    compare(data)
    compare(data, most)


def snapshots() -> list[bytes]:
    recorded = Allocator(1, 8 * MIB)
    train(recorded, 5, 1)
    values = (torch_snapshot(), snapshot_of([recorded]))
    return [pickle.dumps(value, protocol) for value in values for protocol in (2, 3, 4, 5)]


@pytest.mark.slow
def test_snapshots_damaged_and_cut_off() -> None:
    chance = random.Random(5)
    kinds = set()
    for data in snapshots():
        assert compare(data) == "value"
        for _ in range(300):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                damaged[chance.randrange(len(data))] = chance.randrange(256)
            cut = damaged[: chance.randrange(len(data))] if chance.random() < 0.3 else damaged
            kinds.add(compare(bytes(cut)).split(" (")[0])
    assert kinds >= {"value", "is damaged", "is cut off", "holds more than plain data"}


def test_parts_that_are_counted_and_those_that_are_not_there() -> None:
    data = snapshots()[2]
    kinds = {compare(data, most).partition(" ")[0] for most in range(0, 6000, 97)}
    assert kinds == {"has", "value"}
    for opcode in range(256):
        for rest in (b"", b"\0", b"\0" * 4, b"\xff" * 8, b"\x09" + b"\x80" * 9):
            compare(b"\x80\x04N}" + bytes([opcode]) + rest)
            compare(b"\x80\x04](" + bytes([opcode]) + rest + b".")


def test_another_thread_runs_meanwhile() -> None:
    """Reading lets other threads take turns, as often as requests need it."""
    from tb_tpuprof.native.compiled.pickles import unpickled

    data = b"\x80\x04](" + b"K\x01" * 15_000_000 + b"e."
    is_done = threading.Event()
    turns = []

    def count() -> None:
        while not is_done.is_set():
            turns.append(None)
            is_done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(turns)
    with Turns().short():
        value = unpickled(data, 10**8)
    during = len(turns) - before
    is_done.set()
    thread.join()
    assert len(value) == 15_000_000
    assert during >= 10
