"""Riegeli/records files: what google/riegeli's own encoder wrote, what the tests' writer writes, and damage
of every kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.ingest.riegeli import layout as layouts
from tb_tpuprof.ingest.riegeli.codecs import MissingCodec, unpacked
from tb_tpuprof.ingest.riegeli.layout import Layout, begins_as_riegeli, file_layout
from tb_tpuprof.ingest.riegeli.records import MOST_RATIO, chunk_records
from tb_tpuprof.ingest.riegeli.varints import Damaged, VarintReader
from tests.ingest.riegeli_files import (
    BLOCK,
    BROTLI,
    CODECS,
    NONE,
    SNAPPY,
    ZSTANDARD,
    RiegeliFile,
    hashed,
    packed,
    simple_data,
    transposed_data,
    varint,
)

DATA = Path(__file__).resolve().parents[1] / "data" / "riegeli"
SIGNATURE = bytes.fromhex(
    "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"
    "0000000000000000e19f13c0e9b1c37273000000000000000000000000000000"
)
MESSAGE = bytes.fromhex("0801120361626312020801") + b"\x1d1234\x19" + b"12345678" + b"\x20\x96\x01"
RECORDS = [MESSAGE, b"\xff\xfe no message", b"", MESSAGE * 3]


def part(data: bytes, position: int, size: int) -> np.ndarray:
    return np.frombuffer(data[position : position + size], np.uint8)


def layout_of(data: bytes) -> Layout:
    return file_layout(partial(part, data), len(data))


def records_in(data: bytes, most_bytes: int = 2**31) -> list[bytes]:
    """The records of all chunks that can be read."""
    found = []
    for chunk in layout_of(data).chunks:
        try:
            values, ends = chunk_records(partial(part, data), chunk, most_bytes)
        except Damaged:
            continue
        found += [values[a:b].tobytes() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return found


def test_a_file_begins_as_the_format_says() -> None:
    assert RiegeliFile().out == SIGNATURE
    assert begins_as_riegeli(SIGNATURE)
    assert begins_as_riegeli(SIGNATURE[:24] + bytes(40))
    assert begins_as_riegeli(bytes(24) + SIGNATURE[24:])
    assert not begins_as_riegeli(bytes(24) + SIGNATURE[24:47])
    assert not begins_as_riegeli(SIGNATURE[:23])
    assert not begins_as_riegeli(b"\x0a\x00" + SIGNATURE)


@pytest.mark.parametrize("codec", ["uncompressed", "brotli", "zstd", "snappy"])
def test_what_the_formats_own_encoder_wrote(codec: str) -> None:
    """The uncompressed simple file holds the records as they are, so it shows what they must be."""
    raw = (DATA / "simple_uncompressed.riegeli").read_bytes()
    first, second = records_in(raw)[:3], records_in(raw)[3:]
    assert [len(record) for record in (*first, *second)] == [193, 7977, 8018, 19, 0, 8074]
    assert b"".join(first) in raw
    assert b"".join(second) in raw
    assert second[0] == b"not a protobuf: \xff\xff\xff"
    for kind in ("simple", "transposed"):
        data = (DATA / f"{kind}_{codec}.riegeli").read_bytes()
        found = layout_of(data)
        assert records_in(data) == [*first, *second]
        assert [(chunk.n_records, chunk.size, chunk.base) for chunk in found.chunks] == [
            (3, 16188, 0),
            (3, 8093, 16188),
        ]
        assert (found.n_bytes, found.n_lost, found.cut_at) == (24281, 0, -1)
        assert not found.is_closed  # the index of array_record has been cut away
    assert sys.getsizeof(data) < len(raw) or codec == "uncompressed"


def test_a_file_of_jax_is_closed_and_has_no_loss() -> None:
    data = (DATA / "jax_small.xplane.riegeli").read_bytes()
    found = layout_of(data)
    assert (found.is_closed, found.n_lost, found.cut_at, found.n_unknown) == (True, 0, -1, 0)
    assert [len(record) for record in records_in(data)] == [193, 74161]
    assert len(data) == BLOCK


def records() -> st.SearchStrategy[list[bytes]]:
    """Messages, texts that are none, and empty records."""
    values = st.one_of(
        st.integers(0, 2**64 - 1).map(lambda n: (0, varint(n))),
        st.binary(min_size=8, max_size=8).map(lambda b: (1, b)),
        st.binary(min_size=4, max_size=4).map(lambda b: (5, b)),
        st.binary(max_size=9).map(lambda b: (2, varint(len(b)) + b)),
    )
    fields = st.tuples(st.sampled_from([1, 2, 3, 15, 16, 3000, 2**29 - 1]), values)
    message = st.lists(fields, max_size=5).map(
        lambda rows: b"".join(varint(number << 3 | wire) + value for number, (wire, value) in rows)
    )
    inner = message.map(lambda m: b"\x0a" + varint(len(m)) + m)
    nested = st.lists(
        st.one_of(message, inner, inner.map(lambda m: b"\x22" + varint(len(m)) + m)), max_size=4
    )
    return st.lists(st.one_of(nested.map(b"".join), st.binary(max_size=20)), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(records(), st.sampled_from(CODECS), st.booleans(), st.booleans())
def test_written_records_are_read_again(
    contents: list[bytes], codec: int, transposed: bool, breaks_up: bool
) -> None:
    file, size = RiegeliFile(), sum(map(len, contents))
    if transposed:
        file.chunk("t", transposed_data(contents, codec, breaks_up), len(contents), size)
    else:
        file.records(contents, codec)
    assert records_in(file.records([b"another"], codec).closed()) == [*contents, b"another"]


def test_many_states_take_several_transitions() -> None:
    """More fields than one transition can choose among."""
    fields = [varint(number << 3) + b"\x7f" for number in range(1, 300)]
    rng = np.random.default_rng(5)
    contents = [b"".join(fields[i] for i in rng.permutation(len(fields))) for _ in range(3)]
    assert records_in(RiegeliFile().records(contents, BROTLI, transposed=True).closed()) == contents


def long_file() -> tuple[bytes, list[bytes], list[int]]:
    """A file of five blocks: (its bytes, records of its five chunks, where all chunks begin). One chunk spans
    two headers of blocks, one header of a chunk is interrupted by that of a block.
    """
    rng = np.random.default_rng(3)
    sizes = (100, BLOCK + 80_000, 60_000, 0, 17_000)
    contents = [rng.integers(0, 256, size).astype(np.uint8).tobytes() for size in sizes]
    file = RiegeliFile()
    for content in contents[:3]:
        file.records([content], NONE)
    left = -len(file.out) % BLOCK
    file.chunk("p", bytes(left - 40 - 20), 0, 0)  # 20 bytes are left in the block: half a header
    for content in contents[3:]:
        file.records([content], NONE)
    return file.closed(), contents, file.begins


def test_chunks_that_blocks_interrupt() -> None:
    data, contents, begins = long_file()
    assert records_in(data) == contents
    assert begins[5] % BLOCK == BLOCK - 20
    found = layout_of(data)
    assert [chunk.begin for chunk in found.chunks] == [begins[i] for i in (1, 2, 3, 5, 6)]
    assert found.is_closed


def test_a_file_may_end_anywhere() -> None:
    """Every chunk that is whole is read, and the one that is not is reported."""
    data, contents, begins = long_file()
    begins = [*begins, len(data)]
    with_records = [1, 2, 3, 5, 6]
    cuts = {cut for begin in begins for cut in range(begin - 70, begin + 70) if 0 < cut <= len(data)}
    for cut in sorted(cuts | set(range(1, len(data), 4099))):
        found = layout_of(data[:cut])
        whole = [i for i in range(len(begins) - 1) if begins[i + 1] <= cut]
        read = records_in(data[:cut])
        assert read == contents[: sum(i in whole for i in with_records)] or (
            # A chunk needs no more than its data: what follows them is padding.
            len(read) == sum(i in whole for i in with_records) + 1 and read == contents[: len(read)]
        ), cut
        assert found.n_lost == 0
        assert (found.cut_at >= 0) == (cut not in begins), cut
        if found.cut_at >= 0:
            assert found.cut_at == max(begin for begin in begins if begin < cut), cut
    assert not layout_of(data[: begins[6]]).is_closed


def damaged(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]


def test_damage_costs_the_chunk_that_has_it() -> None:
    data, contents, begins = long_file()
    within = {1: 0, 2: 1, 3: 2, 5: 3, 6: 4}  # chunk → record
    for number, record in within.items():
        kept = [content for i, content in enumerate(contents) if i != record]
        header = begins[number] + (24 if begins[number] % BLOCK == 0 else 0)
        spoiled = damaged(data, header + 3)
        if number == 1:  # no header of a block before the next chunk's end knows where that begins
            assert records_in(spoiled) == contents[2:]
        else:
            assert records_in(spoiled) == kept, number
        found = layout_of(spoiled)
        assert found.n_lost == 1
        assert found.lost_bytes > 0
        assert found.cut_at == -1
    spoiled = damaged(data, begins[2] + 45)  # the data: the header knows where the next chunk begins
    assert records_in(spoiled) == [contents[0], *contents[2:]]
    assert layout_of(spoiled) == layout_of(data)
    for block in range(0, len(data), BLOCK):  # headers of blocks are needed only after damage
        assert records_in(damaged(data, block + 9)) == contents


def test_two_stretches_are_lost_apart() -> None:
    data, contents, begins = long_file()
    spoiled = damaged(damaged(data, begins[2] + 3), begins[6] + 3)
    found = layout_of(spoiled)
    assert found.n_lost == 2
    assert found.lost_bytes == (begins[3] - begins[2]) + (len(data) - begins[6])
    assert records_in(spoiled) == [contents[0], contents[2], contents[3]]


def test_headers_of_blocks_are_not_believed_where_they_lead_nowhere() -> None:
    """After a damaged chunk, a header of a block that is damaged itself, or points into a header, is
    passed.
    """
    data, contents, begins = long_file()
    spoiled = damaged(damaged(data, begins[2] + 3), BLOCK + 9)
    assert records_in(spoiled) == [contents[0], *contents[2:]]  # the next block knows it as well
    places = (BLOCK).to_bytes(8, "little") + (BLOCK + 10).to_bytes(8, "little")  # into a block's header
    wrong = hashed(places).to_bytes(8, "little") + places
    spoiled = damaged(data, begins[2] + 3)
    spoiled = spoiled[:BLOCK] + wrong + spoiled[BLOCK + 24 :]
    assert records_in(spoiled) == [contents[0], *contents[2:]]


def test_chunks_without_records_are_passed() -> None:
    file = RiegeliFile().chunk("m", b"whatever", 0, 5).chunk("s", b"", 0, 0).chunk("x", b"later kind", 0, 0)
    file.records([b"one"]).chunk("y", b"later kind", 2, 9).records([b"two"])
    found = layout_of(file.closed())
    assert records_in(file.closed()) == [b"one", b"two"]
    assert found.n_unknown == 1
    assert [chunk.base for chunk in found.chunks] == [0, 3]


def chunk_of(data: bytes, n_records: int, size: int, kind: str = "r") -> Callable[[int], list[bytes]]:
    """Reads a file with one chunk, whose header need not tell the truth."""
    whole = RiegeliFile().chunk(kind, data, n_records, size).closed()

    def read(most_bytes: int) -> list[bytes]:
        (chunk,) = layout_of(whole).chunks
        values, ends = chunk_records(partial(part, whole), chunk, most_bytes)
        return [values[a:b].tobytes() for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    return read


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("codec", CODECS)
def test_a_header_that_lies_about_its_records(codec: int, transposed: bool) -> None:
    make, kind = (transposed_data, "t") if transposed else (simple_data, "r")
    data, size = make(RECORDS, codec), sum(map(len, RECORDS))
    assert chunk_of(data, 4, size, kind)(size) == RECORDS
    for n_records, wrong in ((3, size), (5, size), (4, size - 1), (4, size + 1), (1, 0), (4, 2**40)):
        with pytest.raises(Damaged):
            chunk_of(data, n_records, wrong, kind)(2**62)
    with pytest.raises(Damaged, match="would unpack to"):
        chunk_of(data, 4, size, kind)(size - 1)


def test_no_more_than_a_ratio_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.riegeli.records._RATIO_COUNTS_FROM", 0)
    for n in (MOST_RATIO - 1, MOST_RATIO):
        data = simple_data([bytes(5000)], BROTLI)
        size = len(data) * n + (n == MOST_RATIO)
        with pytest.raises(Damaged, match="would unpack to" if n == MOST_RATIO else "size"):
            chunk_of(data, 1, size)(2**40)


@pytest.mark.parametrize("codec", [BROTLI, ZSTANDARD, SNAPPY])
def test_a_part_unpacks_to_the_size_that_it_states(codec: int) -> None:
    content = b"abc" * 1000
    whole = packed(codec, content)
    body = whole[len(varint(len(content))) :]
    assert unpacked(codec, np.frombuffer(whole, np.uint8), len(content)).tobytes() == content
    with pytest.raises(Damaged, match="instead of at most 2,999"):
        unpacked(codec, np.frombuffer(whole, np.uint8), len(content) - 1)
    for stated in (0, 1, 2999, 3001, 10**6):
        with pytest.raises(Damaged):
            unpacked(codec, np.frombuffer(varint(stated) + body, np.uint8), 10**7)
    for wrong in (body[:-3], body[: len(body) // 2], b"", b"\xff" * 30):
        with pytest.raises(Damaged):
            unpacked(codec, np.frombuffer(varint(len(content)) + wrong, np.uint8), 10**7)


def test_an_empty_part() -> None:
    for codec in (BROTLI, ZSTANDARD, SNAPPY):
        assert not len(unpacked(codec, np.frombuffer(packed(codec, b""), np.uint8), 0))


def test_an_unknown_codec() -> None:
    with pytest.raises(Damaged, match=r"unknown way \(0x71\)"):
        unpacked(ord("q"), np.frombuffer(varint(1) + b"a", np.uint8), 10)


@pytest.mark.parametrize(
    ("codec", "module", "package"),
    [
        (BROTLI, "brotli", "brotli"),
        (ZSTANDARD, "cramjam", "tb-tpuprof[riegeli]"),
        (SNAPPY, "cramjam", "tb-tpuprof[riegeli]"),
    ],
)
def test_a_codec_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, codec: int, module: str, package: str
) -> None:
    part_ = np.frombuffer(packed(codec, b"abc"), np.uint8)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingCodec) as caught:
        unpacked(codec, part_, 3)
    assert (caught.value.package, len(caught.value.name)) == (package, {98: 6, 122: 9, 115: 6}[codec])


def test_numbers() -> None:
    values = [0, 1, 127, 128, 300, 2**32, 2**62, 2**63 - 1]
    data = np.frombuffer(b"".join(map(varint, values)), np.uint8)
    reader = VarintReader(data)
    assert [reader.number() for _ in values] == values
    assert not len(reader.rest())
    reader = VarintReader(data)
    assert reader.numbers(3).tolist() == values[:3]
    assert reader.numbers(5).tolist() == values[3:]
    assert reader.numbers(0).tolist() == []
    for wrong in (b"", b"\x80", b"\x80" * 9 + b"\x01"):
        with pytest.raises(Damaged):
            VarintReader(np.frombuffer(wrong, np.uint8)).number()
        with pytest.raises(Damaged):
            VarintReader(np.frombuffer(wrong, np.uint8)).numbers(1)
    with pytest.raises(Damaged):
        VarintReader(data).numbers(9)
    with pytest.raises(Damaged):
        VarintReader(data).bytes(len(data) + 1)
    assert VarintReader(data).bytes(len(data)).tobytes() == data.tobytes()


def mutants(data: bytes, n: int, seed: int) -> Sequence[bytes]:
    """Copies with one to three bytes changed, cut or doubled."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        copy = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, len(copy)))
            how = rng.integers(0, 4)
            if how == 0:
                copy[at] = rng.integers(0, 256)
            elif how == 1:
                copy[at] ^= 1 << rng.integers(0, 8)
            elif how == 2:
                del copy[at : at + int(rng.integers(1, 4))]
            else:
                copy[at:at] = copy[at : at + int(rng.integers(1, 9))]
            copy = copy or bytearray(b"\0")
        made.append(bytes(copy))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
def test_hostile_data_of_chunks_are_refused_or_read(transposed: bool) -> None:
    """With correct hashes, so that everything behind them is reached."""
    make, kind = (transposed_data, "t") if transposed else (simple_data, "r")
    data, size = make(RECORDS, NONE), sum(map(len, RECORDS))
    n_read = 0
    for mutant in mutants(data, 3000, 11):
        try:
            got = chunk_of(mutant, 4, size, kind)(2**20)
        except Damaged:
            continue
        n_read += 1
        assert len(got) == 4
        assert sum(map(len, got)) == size
    assert 0 < n_read < 2900


def test_a_file_of_countless_chunks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a moment to pass, even without records."""
    file = RiegeliFile()
    for _ in range(4):
        file.chunk("p", b"", 0, 0)
    monkeypatch.setattr("tb_tpuprof.ingest.riegeli.layout.MOST_CHUNKS", 5)
    assert layout_of(bytes(file.out)).chunks == ()
    monkeypatch.setattr("tb_tpuprof.ingest.riegeli.layout.MOST_CHUNKS", 4)
    with pytest.raises(Damaged, match="more than 4 chunks"):
        layout_of(bytes(file.out))


def test_positions_of_chunks_stay_numbers_of_64_bits() -> None:
    """A header that states more bytes than that is damage."""
    limit = layouts.MOST_BYTES
    for size, n_chunks in ((limit, 1), (limit + 1, 0)):
        data = RiegeliFile().chunk("r", b"abc", 1, size).closed()
        found = layout_of(data)
        assert len(found.chunks) == n_chunks
        assert found.n_lost == 1 - n_chunks
