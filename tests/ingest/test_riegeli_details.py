"""Riegeli/records files: limits on both sides, and every way in which a transposed chunk's header is
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from tb_tpuprof.ingest.riegeli import records as records_module
from tb_tpuprof.ingest.riegeli import transposed as transposed_module
from tb_tpuprof.ingest.riegeli.codecs import unpacked
from tb_tpuprof.ingest.riegeli.layout import chunk_data, without_block_headers
from tb_tpuprof.ingest.riegeli.transposed import _has_loop, _state, transposed_records
from tb_tpuprof.ingest.riegeli.varints import Damaged, VarintReader
from tb_tpuprof.native.plain import riegeli as plain
from tests.ingest.riegeli_files import BLOCK, BROTLI, NONE, RiegeliFile, packed, simple_data, varint
from tests.ingest.test_riegeli import chunk_of, layout_of, part, records_in


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


# Layout


def test_chunks_with_more_records_than_bytes() -> None:
    """Records without bytes: the next chunk begins after as many bytes as there are records."""
    file = RiegeliFile().records([b""] * 70_000).records([b"a", b"", b"bc"]).records([b""] * 300)
    file.records([b"last"])
    data = file.closed()
    assert file.begins[2] - file.begins[1] == 70_000
    assert file.begins[4] - file.begins[3] == 300
    found = layout_of(data)
    assert [chunk.begin for chunk in found.chunks] == file.begins[1:5]
    assert [chunk.n_records for chunk in found.chunks] == [70_000, 3, 300, 1]
    assert records_in(data)[70_000:70_003] == [b"a", b"", b"bc"]
    assert records_in(data)[-1] == b"last"
    whole, cut = layout_of(data[: file.begins[4]]), layout_of(data[: file.begins[4] - 1])
    assert (len(whole.chunks), whole.cut_at) == (3, -1)
    assert (len(cut.chunks), cut.cut_at) == (2, file.begins[3])


@pytest.mark.parametrize("n_records", [BLOCK - 64 - 1, BLOCK - 64, BLOCK - 64 + 1, BLOCK - 64 + 24, BLOCK])
def test_a_chunk_does_not_end_in_a_block_s_header(n_records: int) -> None:
    """The chunk after the signature begins at 64: its records end around the header of the second block."""
    file = RiegeliFile().records([b""] * n_records).records([b"next"])
    end = 64 + n_records
    expected = BLOCK + 25 if BLOCK < end < BLOCK + 25 else end
    assert file.begins[2] == expected
    assert [chunk.begin for chunk in layout_of(file.closed()).chunks] == [64, expected]
    assert records_in(file.closed())[-1] == b"next"


def test_headers_of_blocks_are_cut_out_wherever_the_bytes_begin() -> None:
    data = bytes(i % 251 for i in range(3 * BLOCK + 100))
    for position, size in (
        (0, 24),
        (0, 30),
        (10, 20),
        (23, 2),
        (24, 5),
        (BLOCK - 3, 40),
        (5, 2 * BLOCK + 60),
    ):
        expected = bytes(data[at] for at in range(position, position + size) if at % BLOCK >= 24)
        found = without_block_headers(array(data[position : position + size]), position)
        assert found.tobytes() == expected, (position, size)


def test_bytes_of_all_records_of_a_file() -> None:
    assert layout_of(RiegeliFile().closed()).n_bytes == 0
    file = RiegeliFile()
    for content in (b"abc", b"", b"defgh", b"ij"):
        file.records([content, b"x"])
    found = layout_of(file.closed())
    assert found.bases.tolist() == [0, 4, 5, 11]
    assert found.n_bytes == 14


def test_a_chunk_of_a_file_that_became_shorter_has_no_data() -> None:
    data = RiegeliFile().records([b"abc"], NONE).closed()
    (chunk,) = layout_of(data).chunks
    assert chunk_data(partial(part, data), chunk).tobytes() == simple_data([b"abc"], NONE)
    shorter = data[: chunk.begin + 40 + chunk.data_size - 1]
    assert len(chunk_data(partial(part, shorter), chunk)) == 0


# Records


def test_the_number_of_records_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MOST_RECORDS", 3)
    assert chunk_of(simple_data([b"a", b"b", b"c"]), 3, 3)(100) == [b"a", b"b", b"c"]
    with pytest.raises(Damaged, match="it states 4 records"):
        chunk_of(simple_data([b"a", b"b", b"c", b"d"]), 4, 4)(100)


def simple(sizes: bytes, values: bytes, codec: int = NONE) -> bytes:
    """The data of a simple chunk with these bytes in place of its sizes."""
    listed = packed(codec, sizes)
    return bytes([codec]) + varint(len(listed)) + listed + packed(codec, values)


@pytest.mark.parametrize("codec", [NONE, BROTLI])
def test_sizes_of_records_that_contradict_the_header(codec: int) -> None:
    assert chunk_of(simple(bytes((1, 0, 5)), b"abcdef", codec), 3, 6)(100) == [b"a", b"", b"bcdef"]
    for sizes in (bytes((1, 0, 6)), bytes((1, 0, 4)), bytes((1, 0, 5, 0)), varint(7) + varint(2**63 - 1) * 2):
        with pytest.raises(Damaged, match="the sizes of its records contradict its header"):
            chunk_of(simple(sizes, b"abcdef", codec), 3, 6)(100)
    with pytest.raises(Damaged, match="a list of numbers is cut off"):
        chunk_of(simple(bytes((1, 5)), b"abcdef", codec), 3, 6)(100)
    with pytest.raises(Damaged, match="its records do not have the size that its header says"):
        chunk_of(simple(bytes((1, 0, 5)), b"abcde", codec), 3, 6)(100)


def test_a_part_that_is_not_compressed_is_bounded() -> None:
    assert unpacked(NONE, array(b"abc"), 3).tobytes() == b"abc"
    with pytest.raises(Damaged, match="a part has 3 bytes instead of at most 2"):
        unpacked(NONE, array(b"abc"), 2)


def test_a_brotli_stream_that_has_all_bytes_but_no_end_is_damaged() -> None:
    import brotli

    compressor = brotli.Compressor()
    body = compressor.process(b"abc" * 100) + compressor.flush()
    with pytest.raises(Damaged, match="its Brotli data does not end"):
        unpacked(BROTLI, array(varint(300) + body), 1000)
    whole = array(varint(300) + body + compressor.finish())
    assert unpacked(BROTLI, whole, 1000).tobytes() == b"abc" * 100


@pytest.mark.parametrize("stated", [0, 1, 500])
def test_no_more_is_unpacked_than_a_part_states(monkeypatch: pytest.MonkeyPatch, stated: int) -> None:
    """A megabyte of zeros in a few bytes: its reader asks for the stated size, and for one byte more."""
    import brotli

    asked: list[int] = []
    own = brotli.Decompressor

    class Counted:
        def __init__(self) -> None:
            self.stream = own()
            self.is_finished = self.stream.is_finished

        def process(self, data: bytes, output_buffer_limit: int) -> bytes:
            asked.append(output_buffer_limit)
            assert len(asked) < 10
            made: bytes = self.stream.process(data, output_buffer_limit=output_buffer_limit)
            return made

    monkeypatch.setattr(brotli, "Decompressor", Counted)
    with pytest.raises(Damaged, match=r"does not end|do not have the size that the"):
        unpacked(BROTLI, array(varint(stated) + brotli.compress(bytes(10**6))), 10**9)
    assert max(asked) <= max(stated, 1)


# Transposed chunks


@dataclass(frozen=True)
class Header:
    """A chunk's header; by default of the record 08 05: a state for the field, which leads to the record's
    start.
    """

    buckets: Sequence[int] = (1,)
    buffers: Sequence[int] = (1,)
    n_states: int = 2
    tags: Sequence[int] = (8, 3)
    following: Sequence[int] = (3, 0)
    subtypes: Sequence[int] = (0,)
    numbers: Sequence[int] = (0,)
    first: int = 0
    rest: bytes = b""

    @property
    def content(self) -> bytes:
        """Its bytes."""
        lists = (varint(value) for part in (self.buckets, self.buffers) for value in part)
        states = b"".join(varint(value) for part in (self.tags, self.following) for value in part)
        numbers = b"".join(varint(number) for number in self.numbers)
        sizes = varint(len(self.buckets)) + varint(len(self.buffers)) + b"".join(lists)
        states = varint(self.n_states) + states + bytes(self.subtypes) + numbers
        return sizes + states + varint(self.first) + self.rest


def chunk(header: Header, buckets: bytes = b"\x05", transitions: bytes = b"") -> bytes:
    head = header.content
    return bytes([NONE]) + varint(len(head)) + head + buckets + transitions


def read(data: bytes, n_records: int = 1, size: int = 2) -> list[bytes]:
    values, ends = transposed_records(array(data), n_records, size)
    return [values[a:b].tobytes() for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def test_a_transposed_chunk_written_by_hand() -> None:
    assert read(chunk(Header())) == [b"\x08\x05"]
    inline = Header(buckets=(), buffers=(), subtypes=(10 + 7,), numbers=())
    assert read(chunk(inline, b"")) == [b"\x08\x07"]
    # Three records, the last one first: the start leads back to the field by three transitions.
    back = Header(buckets=(3,), buffers=(3,))
    assert read(chunk(back, b"\x07\x06\x05", b"\x00\x00"), 3, 6) == [b"\x08\x05", b"\x08\x06", b"\x08\x07"]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (Header(buckets=(1, 0)), "it states 2 buckets with 1 buffers"),
        (Header(first=2), "its header has no first state, or more than that"),
        (Header(rest=b"\0"), "its header has no first state, or more than that"),
        (Header(n_states=0, tags=(), following=(), subtypes=(), numbers=()), "it states 0 states"),
        (Header(following=(4, 0)), "a state has an impossible tag or next state"),
        (Header(tags=(2**32, 3)), "a state has an impossible tag or next state"),
        (Header(following=(3, 2)), "its states form a circle"),
        (Header(following=(2, 0)), "its states form a circle"),
        (Header(numbers=(1,)), "a state has a buffer that is not there"),
        (Header(tags=(5, 3), subtypes=(), numbers=()), "a state has the impossible tag 5"),
        (Header(tags=(15, 3), subtypes=(), numbers=()), "a state has the impossible tag 15"),
        (Header(tags=(6, 3), subtypes=(), numbers=()), "a state has the impossible tag 2"),
        (Header(subtypes=(138,), numbers=()), "a state has the impossible subtype 138"),
        (Header(buffers=(2,)), "the sizes of its buffers contradict its buckets"),
        (Header(buffers=(0,)), "the sizes of its buffers contradict its buckets"),
        (Header(buckets=(2,), buffers=(2,)), "a part is cut off"),
    ],
)
def test_headers_that_are_wrong(head: Header, words: str) -> None:
    with pytest.raises(Damaged, match=words):
        read(chunk(head))


def test_states_buffers_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit, words in (
        ("MOST_STATES", 2, "it states 2 states"),
        ("MOST_BUFFERS", 1, "it states 1 buckets with 1 buffers"),
        ("_MOST_HEADER_BYTES", len(Header().content), "bytes instead of at most"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(transposed_module, name, limit)
            assert read(chunk(Header())) == [b"\x08\x05"]
            patched.setattr(transposed_module, name, limit - 1)
            with pytest.raises(Damaged, match=words):
                read(chunk(Header()))


def test_buffers_hold_no_more_than_the_records_can() -> None:
    """Of records with 2 bytes in all, buffers hold at most 7: a record that is no message has its length."""
    assert read(chunk(Header(buckets=(7,), buffers=(7,)), bytes(range(7)))) == [b"\x08\x00"]
    with pytest.raises(Damaged, match="a part has 8 bytes instead of at most 7"):
        read(chunk(Header(buckets=(8,), buffers=(8,)), bytes(8)))
    several = Header(buckets=(4, 4), buffers=(4, 4))
    with pytest.raises(Damaged, match="a part has 4 bytes instead of at most 3"):
        read(chunk(several, bytes(8)))


def test_transitions_are_bounded() -> None:
    most = plain.STEPS_PER_BYTE * (2 + 1 + 256)
    with pytest.raises(Damaged, match="a buffer ends too early"):
        read(chunk(Header(), b"\x05", bytes(most)))
    with pytest.raises(Damaged, match=f"a part has {most + 1:,} bytes instead of at most {most:,}"):
        read(chunk(Header(), b"\x05", bytes(most + 1)))


@pytest.mark.parametrize("number", [1, 15, 16, 2047, 2048, 300_000, 2**29 - 1])
def test_states_have_the_bytes_of_their_tags(number: int) -> None:
    def word(wire: int, added: bytes = b"") -> tuple[int, int]:
        written = varint(number << 3 | wire) + added
        return int.from_bytes(written, "little"), len(written)

    for wire, kind, size in (
        (1, plain.FIXED, 8),
        (2, plain.TEXT, 0),
        (3, plain.TAG_ONLY, 0),
        (4, plain.TAG_ONLY, 0),
        (5, plain.FIXED, 4),
    ):
        assert _state(number << 3 | wire, -1) == (kind, *word(wire), size)
    assert _state(number << 3 | 6, -1) == (plain.MESSAGE_END, *word(2), 0)
    for subtype in (0, 4, 9):
        assert _state(number << 3, subtype) == (plain.VARINT, *word(0), subtype + 1)
    for value in (0, 1, 100, 127):
        assert _state(number << 3, 10 + value) == (plain.TAG_ONLY, *word(0, bytes([value])), 0)


@pytest.mark.parametrize(
    ("following", "implicit", "expected"),
    [
        ([1, 2, 0], [1, 1, 1], True),
        ([1, 2, 0], [1, 1, 0], False),
        ([1, 2, 2], [1, 1, 1], True),
        ([2, 2, 3, 0], [1, 1, 1, 0], False),
        ([3, 3, 1, 4, 0], [1, 1, 1, 1, 0], False),
        ([0, 1], [0, 1], True),
        ([0], [0], False),
    ],
)
def test_circles_of_states(following: list[int], implicit: list[int], expected: bool) -> None:
    assert _has_loop(np.array(following), np.array(implicit, np.bool_)) is expected


# Numbers


def test_numbers_of_at_most_nine_bytes() -> None:
    largest = varint(2**63 - 1)
    assert len(largest) == 9
    reader = VarintReader(array(b"\x05" + largest + b"\x07"))
    assert [reader.number() for _ in range(3)] == [5, 2**63 - 1, 7]
    assert VarintReader(array(largest * 2 + b"\x01")).numbers(3).tolist() == [2**63 - 1, 2**63 - 1, 1]
    too_long = b"\x80" * 9 + b"\x01"
    for n, data in ((1, too_long), (2, b"\x01" + too_long)):
        with pytest.raises(Damaged, match="too large"):
            VarintReader(array(data)).numbers(n)
    with pytest.raises(Damaged, match="a number is cut off or too large"):
        VarintReader(array(too_long)).number()


def test_reading_goes_on_behind_what_was_read() -> None:
    reader = VarintReader(array(b"\x81\x01" + b"\x02\x83\x01\x04" + b"xyz" + b"rest"))
    assert reader.number() == 129
    assert reader.numbers(3).tolist() == [2, 131, 4]
    assert reader.bytes(3).tobytes() == b"xyz"
    assert reader.bytes(0).tobytes() == b""
    assert reader.rest().tobytes() == b"rest"
    assert reader.rest().tobytes() == b""
    with pytest.raises(Damaged, match="a part is cut off"):
        reader.bytes(1)
