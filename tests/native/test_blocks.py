"""Checksums, Snappy and entries of tables: known values, both sides of each limit, and compiled against
plain.
"""

from __future__ import annotations

import random
from types import ModuleType

import numpy as np
import pytest

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import blocks as plain
from tests.ingest.tables import block_of, plain_crc32c, plain_unsnap, snappy

if IS_COMPILED:
    from tb_tpuprof.native.compiled import blocks as compiled

    TWINS: list[ModuleType] = [plain, compiled]
else:
    TWINS = [plain]

twins = pytest.mark.parametrize("blocks", TWINS, ids=[module.__name__.split(".")[-2] for module in TWINS])


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def unsnapped(blocks: ModuleType, elements: bytes, room: int) -> bytes | None:
    out = np.zeros(room, np.uint8)
    n = blocks.unsnap(array(elements), out)
    return None if n < 0 else out[:n].tobytes()


@twins
def test_checksums_are_those_of_the_standard(blocks: ModuleType) -> None:
    """RFC 3720, B.4, and the usual check of CRC catalogs."""
    known = {
        b"123456789": 0xE3069283,
        bytes(32): 0x8A9136AA,
        b"\xff" * 32: 0x62A8AB43,
        bytes(range(32)): 0x46DD794E,
        b"": 0,
    }
    for data, crc in known.items():
        assert blocks.crc32c(array(data)) == crc
        assert plain_crc32c(data) == crc


@twins
@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ("08616263", b"abc"),  # a literal
        ("0461620902", b"abababab"),  # a copy of six bytes that overlaps itself
        ("08616263 0903", b"abcabcabc"),  # of six bytes, three back
        ("0c61626364 1e0200", b"abcdcdcdcdcd"),  # a copy of eight with two bytes of offset
        ("0c61626364 0f04000000", b"abcdabcd"),  # and with four
        ("f03d" + "78" * 62, b"x" * 62),  # a literal whose length takes one more byte
        ("f43d00" + "79" * 62, b"y" * 62),  # two more
        ("fc3d000000" + "7a" * 62, b"z" * 62),  # four more
        ("", b""),
    ],
)
def test_elements_of_snappy(blocks: ModuleType, elements: str, text: bytes) -> None:
    data = bytes.fromhex(elements)
    assert unsnapped(blocks, data, len(text)) == text
    assert unsnapped(blocks, data, len(text) + 1) == text
    if text:
        assert unsnapped(blocks, data, len(text) - 1) is None  # no room


@twins
@pytest.mark.parametrize(
    "elements",
    [
        "086162",  # a literal that is cut off
        "046162 0900",  # a copy from nowhere
        "046162 0903",  # from before the start
        "046162 09",  # without its offset
        "046162 1e02",
        "046162 0f020000",
        "f0",  # a literal without its length
        "fcffffffff61",
        "0902",
    ],
)
def test_malformed_elements_are_refused(blocks: ModuleType, elements: str) -> None:
    assert unsnapped(blocks, bytes.fromhex(elements), 100) is None


@twins
def test_random_data_comes_back(blocks: ModuleType) -> None:
    rng = random.Random(3)
    for size in (1, 59, 60, 61, 64, 300, 5000):
        words = [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9))) for _ in range(12)]
        data = b"".join(rng.choice(words) for _ in range(size))
        packed = snappy(data)
        assert plain_unsnap(packed) == data
        header = next(i for i, byte in enumerate(packed) if byte < 128) + 1
        assert unsnapped(blocks, packed[header:], len(data)) == data


ENTRIES = [(b"/trace", b"t" * 200), (b"1abc", b""), (b"1abd", b"v"), (b"1b", b"w" * 3), (b"2", b"xy")]


@twins
def test_entries_of_a_block(blocks: ModuleType) -> None:
    data = block_of(ENTRIES, 3)
    end = len(data) - 4 - 4 * 2
    prefix = b"before"
    keys, rows, bad = blocks.entries(array(prefix + data), len(prefix), len(prefix) + end, 8)
    assert bad == -1
    assert [key[:size].tobytes() for key, size in zip(keys, rows[:, 0].tolist(), strict=True)] == [
        key for key, _ in ENTRIES
    ]
    whole = prefix + data
    assert [whole[start : start + size] for _, start, size in rows.tolist()] == [
        value for _, value in ENTRIES
    ]
    assert all(not key[size:].any() for key, size in zip(keys, rows[:, 0].tolist(), strict=True))


@twins
def test_a_block_is_read_up_to_its_damage(blocks: ModuleType) -> None:
    data = block_of(ENTRIES, 1)
    end = len(data) - 4 - 4 * len(ENTRIES)
    starts = [0]
    for key, value in ENTRIES:
        starts.append(starts[-1] + (3 if len(value) < 128 else 4) + len(key) + len(value))
    assert starts[-1] == end
    assert blocks.entries(array(data), 0, end, 6)[2] == -1
    keys, _, bad = blocks.entries(array(data), 0, end, 5)  # "/trace" has six bytes
    assert (len(keys), bad) == (0, 0)
    for cut in range(1, end):
        n = sum(start <= cut for start in starts[1:])
        keys, rows, bad = blocks.entries(array(data), 0, cut, 16)
        assert len(keys) == len(rows) == n
        assert bad == (-1 if cut in starts else starts[n])
    shares_too_much = b"\x00\x01\x00a" + b"\x02\x01\x00b"
    assert blocks.entries(array(shares_too_much), 0, 8, 16)[2] == 4
    assert blocks.entries(array(b"\x00\x01\x00a" + b"\x01\x01\x00b"), 0, 8, 16)[2] == -1


@pytest.mark.skipif(len(TWINS) < 2, reason="nothing is compiled")
def test_damaged_bytes_read_alike_compiled_and_plain() -> None:
    rng = random.Random(11)
    whole = block_of(ENTRIES * 3, 2)
    elements = snappy(b"abcabcabcdefdefdef" * 9)[2:]
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        mutant = array(bytes(data))
        a, b = (module.entries(mutant, 0, len(mutant) - 8, 9) for module in TWINS)
        assert np.array_equal(a[0], b[0])
        assert np.array_equal(a[1], b[1])
        assert a[2] == b[2]
        assert TWINS[0].crc32c(mutant) == TWINS[1].crc32c(mutant)
        packed = bytearray(elements)
        packed[rng.randrange(len(packed))] = rng.randrange(256)
        assert unsnapped(TWINS[0], bytes(packed), 170) == unsnapped(TWINS[1], bytes(packed), 170)
