"""Header blocks of HTTP/2: the specification's examples, and any bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.capture.headers import BadHeaders, Decoder, _codes, encoded

REQUEST = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
# RFC 7541, appendix C.3 and C.4: three requests on one connection, as plain texts and as Huffman codes.
PLAIN = (
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
)
PACKED = (
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
)
EXPECTED = [
    REQUEST,
    [*REQUEST, (b"cache-control", b"no-cache")],
    [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/index.html"),
        (b":authority", b"www.example.com"),
        (b"custom-key", b"custom-value"),
    ],
]


@pytest.mark.parametrize("blocks", [PLAIN, PACKED], ids=["plain", "packed"])
def test_the_specifications_examples(blocks: tuple[str, ...]) -> None:
    decoder = Decoder()
    assert [decoder.decode(bytes.fromhex(block)) for block in blocks] == EXPECTED


def test_what_is_encoded_is_decoded() -> None:
    headers = [(":path", "/a/b"), ("x" * 127, "y" * 126), ("x" * 128, "y" * 5000), ("empty", "")]
    assert Decoder().decode(encoded(headers)) == [(name.encode(), value.encode()) for name, value in headers]


def test_the_huffman_code() -> None:
    """Samples of each length, among them the longest, as RFC 7541's appendix B has them; and that the code
    leaves no gap.
    """
    for symbol, n_bits, code in (
        (48, 5, 0x0),
        (32, 6, 0x14),
        (88, 8, 0xFC),
        (0, 13, 0x1FF8),
        (92, 19, 0x7FFF0),
        (128, 20, 0xFFFE6),
        (9, 24, 0xFFFFEA),
        (192, 26, 0x3FFFFE0),
        (10, 30, 0x3FFFFFFC),
        (22, 30, 0x3FFFFFFE),
        (256, 30, 0x3FFFFFFF),
        (255, 26, 0x3FFFFEE),
        (249, 28, 0xFFFFFFE),
        (200, 26, 0x3FFFFE2),
        (1, 23, 0x7FFFD8),
    ):
        assert _codes()[n_bits, code] == symbol
    assert sum(2.0**-n_bits for n_bits, _ in _codes()) == 1
    assert sorted(_codes().values()) == list(range(257))


def test_entries_leave_a_full_table() -> None:
    decoder = Decoder()
    for i in range(100):
        decoder.decode(b"\x40\x01" + bytes([65 + i % 26]) + b"\x7f\x49" + b"v" * 200)
    assert sum(len(name) + len(value) + 32 for name, value in decoder._table) <= 4096
    assert decoder.decode(b"\xbe")[0][1] == b"v" * 200
    assert decoder.decode(b"\x20") == []
    with pytest.raises(BadHeaders, match="no header"):
        decoder.decode(b"\xbe")


BAD = {
    "index 0": b"\x80",
    "an index beyond": b"\xff\x80\x01",
    "a long number": b"\xff\xff\xff\xff\xff\xff\x01",
    "a cut number": b"\xff",
    "no name": b"\x40",
    "a cut value": b"\x40\x01a\x05b",
    "a large table": b"\x3f\xe2\x1f",
    "bad padding": b"\x40\x01a\x81\x00",
    "the end mark": b"\x40\x01a\x84\xff\xff\xff\xff",
    "too many": b"\x82" * 257,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_blocks(name: str) -> None:
    with pytest.raises(BadHeaders):
        Decoder().decode(BAD[name])


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_are_decoded_or_refused(blocks: list[bytes]) -> None:
    decoder = Decoder()
    with contextlib.suppress(BadHeaders):
        for block in blocks:
            decoder.decode(block)
