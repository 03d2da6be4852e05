"""HTTP/2 header blocks → names and values, and a request's headers → a block (HPACK, RFC 7541).

Requests are written as plain literals, which every server can read. The decoder supports the whole format,
since servers choose the encoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

MAX_TABLE_BYTES = 4096
MAX_HEADERS = 256
_MAX_RESIZES = 2  # of the table per block, before its first header (RFC 7541, 4.2)
_ENTRY_BYTES = 32
_NAMES = (
    ":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status "
    ":status accept-charset accept-encoding accept-language accept-ranges accept "
    "access-control-allow-origin age allow authorization cache-control content-disposition content-encoding "
    "content-language content-length content-location content-range content-type cookie date etag expect "
    "expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified "
    "link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after "
    "server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate"
)
_STATIC_NAMES = _NAMES.split()
_STATIC_VALUES = (
    "",
    "GET",
    "POST",
    "/",
    "/index.html",
    "http",
    "https",
    "200",
    "204",
    "206",
    "304",
    "400",
    "404",
    "500",
    "",
    "gzip, deflate",
)
# Lengths of the Huffman codes of each byte and of the end mark, as ASCII characters that start at 0 for
# 5 bits; the code is the canonical one for these lengths.
_CODE_LENGTHS = (
    "8BGGGGGGGCIGGIGGGGGGGGIGGGGGGGGG1557813655363111000111111123:1758122222222222222222222223238>891:010"
    "10111022111012100122222:698G?A??AAABABBBBBCBCCABCBBBB@ABABBCA@?AABB@BAAC@ABB@@A@BABB?AAABAABEE?>ABAD"
    "EEEFFECD>@EFFEFC@@EEGFFF?C?@A@@BAADDCCEBEFEEFFFFFGFFFFFEI"
)
_END = 256

Header = tuple[bytes, bytes]


class BadHeaders(ValueError):
    """Bytes that are not a header block."""


def encoded(headers: Iterable[tuple[str, str]]) -> bytes:
    """A header block of literals."""
    parts = [
        b"\0" + _length(name) + name.encode() + _length(value) + value.encode() for name, value in headers
    ]
    return b"".join(parts)


def _length(text: str) -> bytes:
    size = len(text.encode())
    if size < 127:
        return bytes([size])
    rest, parts = size - 127, [127]
    while rest >= 128:
        parts.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*parts, rest])


class Decoder:
    """Decodes a connection's blocks in their order: later ones refer to headers of earlier ones."""

    def __init__(self) -> None:
        self._table: list[Header] = []  # newest first
        self._limit = MAX_TABLE_BYTES

    def decode(self, block: bytes) -> list[Header]:
        """The block's headers. Raises BadHeaders."""
        headers: list[Header] = []
        position = 0
        n_resizes = 0
        while position < len(block):
            first = block[position]
            if first & 0xE0 == 0x20:
                n_resizes += 1
                if headers or n_resizes > _MAX_RESIZES:
                    raise BadHeaders("an unexpected change of the table's size")
                limit, position = _integer(block, position, 5)
                self._resize(limit)
                continue
            header, position = self._header(block, position, first)
            headers.append(header)
            if len(headers) > MAX_HEADERS:
                raise BadHeaders("too many headers")
        return headers

    def _header(self, block: bytes, position: int, first: int) -> tuple[Header, int]:
        if first & 0x80:
            index, position = _integer(block, position, 7)
            return self._entry(index), position
        is_indexed = bool(first & 0x40)
        index, position = _integer(block, position, 6 if is_indexed else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, position = _text(block, position)
        value, position = _text(block, position)
        if is_indexed:
            self._table.insert(0, (name, value))
            self._resize(self._limit)
        return (name, value), position

    def _entry(self, index: int) -> Header:
        if 1 <= index <= len(_STATIC_NAMES):
            value = _STATIC_VALUES[index - 1] if index <= len(_STATIC_VALUES) else ""
            return _STATIC_NAMES[index - 1].encode(), value.encode()
        if 0 < index <= len(_STATIC_NAMES) + len(self._table):
            return self._table[index - len(_STATIC_NAMES) - 1]
        raise BadHeaders(f"no header {index}")

    def _resize(self, limit: int) -> None:
        if limit > MAX_TABLE_BYTES:
            raise BadHeaders("a table larger than allowed")
        self._limit = limit
        while sum(len(name) + len(value) + _ENTRY_BYTES for name, value in self._table) > limit:
            self._table.pop()


def _integer(block: bytes, position: int, n_bits: int) -> tuple[int, int]:
    mask = (1 << n_bits) - 1
    value = block[position] & mask
    position += 1
    if value < mask:
        return value, position
    for shift in range(0, 28, 7):
        if position >= len(block):
            raise BadHeaders("a number is cut off")
        value += (block[position] & 127) << shift
        position += 1
        if block[position - 1] < 128:
            return value, position
    raise BadHeaders("a number is too large")


def _text(block: bytes, position: int) -> tuple[bytes, int]:
    if position >= len(block):
        raise BadHeaders("a text is missing")
    is_packed = bool(block[position] & 0x80)
    size, position = _integer(block, position, 7)
    if position + size > len(block):
        raise BadHeaders("a text is cut off")
    content = block[position : position + size]
    return (_unpacked(content) if is_packed else content), position + size


@cache
def _codes() -> dict[tuple[int, int], int]:
    """(bits, code) → byte."""
    lengths = [ord(letter) - ord("0") + 5 for letter in _CODE_LENGTHS]
    symbol_of_code: dict[tuple[int, int], int] = {}
    code, last = 0, 0
    for symbol in sorted(range(len(lengths)), key=lambda symbol: (lengths[symbol], symbol)):
        code <<= lengths[symbol] - last
        last = lengths[symbol]
        symbol_of_code[last, code] = symbol
        code += 1
    return symbol_of_code


def _unpacked(content: bytes) -> bytes:
    codes, decoded = _codes(), bytearray()
    n_bits = code = 0
    for byte in content:
        for shift in range(7, -1, -1):
            code, n_bits = code << 1 | (byte >> shift & 1), n_bits + 1
            symbol = codes.get((n_bits, code))
            if symbol == _END or n_bits > 30:
                raise BadHeaders("a bad code")
            if symbol is not None:
                decoded.append(symbol)
                n_bits = code = 0
    if n_bits > 7 or code != (1 << n_bits) - 1:
        raise BadHeaders("bad padding")
    return bytes(decoded)
