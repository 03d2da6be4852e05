"""LevelDB tables: which block is read for a key or a position, and which tables are refused, on tables of
three blocks.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.storage.leveldb import KEY_BYTES, Entries, Table
from tests.ingest.hlo_protos import varint
from tests.ingest.tables import Entry, block_of, finished, masked, plain_crc32c, plain_table, stored, table_of

# Keys share prefixes; values of unlike lengths, one of them empty.
ENTRIES: list[Entry] = [
    (b"/trace", b"described"),
    (b"1aa", b"x"),
    (b"1ab", b""),
    (b"1abc", b"yy" * 40),
    (b"2", b"two"),
    (b"2\0\0", b"two and zeros"),
    (b"9" * KEY_BYTES, b"longest"),
]


def table(data: bytes) -> Table:
    return Table(np.frombuffer(data, np.uint8), "h.SSTABLE")


def listed(entries: Entries) -> list[Entry]:
    return [(entries.key(row), entries.value(row)) for row in range(len(entries.keys))]


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("per_block", [1, 3, 7])
def test_all_entries_and_those_of_one_block(is_packed: bool, per_block: int) -> None:
    data = table_of(ENTRIES, is_packed, per_block)
    assert list(plain_table(data)) == ENTRIES
    whole = table(data).entries()
    assert listed(whole) == ENTRIES
    assert (whole.base, whole.n_damaged) == (0, 0)
    assert len(whole.data) == table(data).size_bytes
    for row, (key, value) in enumerate(ENTRIES):
        assert whole.row_of(key) == row
        position = int(whole.starts[row])
        first = row - row % per_block
        at = table(data).entries_at(position)
        assert listed(at) == ENTRIES[first : first + per_block]
        assert at.value(row - first) == value
        if value:
            assert at.row_at(position) == row - first
            assert whole.row_at(position) == row
        assert listed(table(data).entries_near(key)) == ENTRIES[first : first + per_block]
    assert whole.row_of(b"1a") == whole.row_of(b"2\0") == whole.row_of(b"9" * (KEY_BYTES + 1)) == -1
    assert whole.row_at(1) == -1


def test_keys_and_positions_beyond_the_table_are_in_no_block() -> None:
    read = table(table_of(ENTRIES, False, 3))
    assert listed(read.entries_near(b"z")) == []
    assert listed(read.entries_at(-1)) == []
    assert listed(read.entries_at(read.size_bytes)) == []
    assert listed(read.entries_at(read.size_bytes - 1)) == ENTRIES[6:]
    assert listed(read.entries_near(b"1ac")) == ENTRIES[3:6]


def test_a_damaged_block_is_counted_and_the_others_keep_their_positions() -> None:
    data = bytearray(table_of(ENTRIES, False, 3))
    starts = table(bytes(data)).entries().starts.tolist()
    data[data.index(b"two and zeros")] ^= 1
    read = table(bytes(data))
    whole = read.entries()
    assert listed(whole) == [*ENTRIES[:3], ENTRIES[6]]
    assert whole.n_damaged == 1
    assert whole.starts.tolist() == [*starts[:3], starts[6]]
    assert not whole.data[starts[3] : starts[3] + 80].any()
    assert (len(read.entries_at(starts[4]).keys), read.entries_at(starts[4]).n_damaged) == (0, 1)
    assert read.entries_at(starts[6]).n_damaged == 0


def test_entries_before_a_malformed_one_count_and_the_block_is_damaged() -> None:
    """The checksum is right: its writer was not."""
    good = block_of(ENTRIES[:2])
    bad = varint(9) + varint(1) + varint(1) + b"kv"  # shares 9 bytes with a key of 3
    end = good.rindex(struct.pack("<II", 0, 1))
    block = good[:end] + bad + good[end:]
    first, second = stored(block, False), stored(block_of(ENTRIES[4:5]), True)
    index = [
        (ENTRIES[1][0], varint(0) + varint(len(first) - 5)),
        (ENTRIES[4][0], varint(len(first)) + varint(len(second) - 5)),
    ]
    whole = table(finished(first + second, index)).entries()
    assert listed(whole) == [*ENTRIES[:2], ENTRIES[4]]
    assert whole.n_damaged == 1


def test_more_restart_points_than_fit_are_damage() -> None:
    """A block of one entry has one restart point; 2 of them would begin in the entry, 9 before the block."""
    block = block_of(ENTRIES[:1])
    for n, is_whole in ((1, True), (2, False), (9, False)):
        changed = stored(block[:-4] + struct.pack("<I", n), False)
        whole = table(finished(changed, [(ENTRIES[0][0], varint(0) + varint(len(changed) - 5))])).entries()
        assert (listed(whole) == ENTRIES[:1], whole.n_damaged == 0) == (is_whole, is_whole), n


@pytest.mark.parametrize(
    "place",
    [
        varint(10**6) + varint(5),  # outside the file
        varint(0) + varint(0),  # nothing
        varint(0),  # no size
        b"\x80" * 11,  # no number
    ],
)
def test_places_of_blocks_that_lead_nowhere_are_damaged_blocks(place: bytes) -> None:
    first = stored(block_of(ENTRIES[:2]), True)
    index = [(ENTRIES[1][0], varint(0) + varint(len(first) - 5)), (b"z", place)]
    whole = table(finished(first, index)).entries()
    assert listed(whole) == ENTRIES[:2]
    assert whole.n_damaged == 1


def test_an_unknown_compression_is_a_damaged_block() -> None:
    block = block_of(ENTRIES[:2]) + b"\x02"
    first = block + struct.pack("<I", masked(plain_crc32c(block)))
    second = stored(block_of(ENTRIES[3:]), True)
    index = [
        (ENTRIES[1][0], varint(0) + varint(len(first) - 5)),
        (ENTRIES[-1][0], varint(len(first)) + varint(len(second) - 5)),
    ]
    read = table(finished(first + second, index))
    whole = read.entries()
    assert listed(whole) == ENTRIES[3:]
    assert whole.n_damaged == 1
    assert read.size_bytes == len(block_of(ENTRIES[3:]))  # the size of the first one is not known


def test_a_block_that_states_more_than_snappy_can_pack_is_not_unpacked() -> None:
    """At most 22 bytes of each, and 16 more; the block after it keeps its place."""
    literal = bytes([19 << 2]) + b"a" * 20
    for stated, size in ((22 * 22 + 16, 22 * 22 + 16), (22 * 22 + 17, 0)):
        content = varint(stated)[:1] + varint(stated)[1:] + literal[: 22 - len(varint(stated))] + b"\x01"
        assert len(content) == 23
        first = content + struct.pack("<I", masked(plain_crc32c(content)))
        second = stored(block_of(ENTRIES[:1]), False)
        index = [
            (b"/a", varint(0) + varint(len(first) - 5)),
            (ENTRIES[0][0], varint(len(first)) + varint(len(second) - 5)),
        ]
        read = table(finished(first + second, index))
        assert read.size_bytes == size + len(second) - 5
        assert listed(read.entries()) == ENTRIES[:1]
        assert read.entries().n_damaged == 1


def test_a_table_without_an_index_is_refused_by_name() -> None:
    data = table_of(ENTRIES, False, 3)
    for damaged in (data[:-48] + b"\xff" * 40 + data[-8:], data[:10] + data[-48:], b"\0" * 10):
        with pytest.raises(TraceFormatError, match=r"^h\.SSTABLE is a LevelDB table whose index is damaged"):
            table(damaged)
