"""Random damage to bytes, as transfers, disks and attackers do it. Equal seeds give equal mutants."""

from __future__ import annotations

import random
from collections.abc import Callable

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 2**31 - 1, 2**31, 2**32 - 1, 2**60, 2**63 - 1, 2**63, 2**64 - 1)
_MOST_CHANGES = 6


def mutated(data: bytes, rng: random.Random, donors: tuple[bytes, ...] = ()) -> bytes:
    """A copy of the data with one to six changes. `donors`: files from which parts are spliced in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, _MOST_CHANGES)):
        if not out:
            break
        rng.choice(_CHANGES)(out, rng)
    if donors and rng.random() < 0.2:
        donor = rng.choice(donors)
        start = rng.randrange(max(len(donor), 1))
        at = rng.randrange(len(out) + 1)
        out[at:at] = donor[start : start + rng.randint(1, 200)]
    return bytes(out)


def varint(value: int) -> bytes:
    """A protobuf number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _flip_bit(out: bytearray, rng: random.Random) -> None:
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)


def _overwrite(out: bytearray, rng: random.Random) -> None:
    at, size = rng.randrange(len(out)), rng.choice((1, 1, 2, 4, 8, 64))
    out[at : at + size] = bytes([rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))]) * len(
        out[at : at + size]
    )


def _delete(out: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(out))
    del out[at : at + rng.choice((1, 2, 8, 100, 5000))]


def _repeat(out: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(out))
    out[at:at] = out[at : at + rng.choice((1, 3, 16, 200))] * rng.choice((1, 1, 2, 30))


def _number(out: bytearray, rng: random.Random) -> None:
    at, value = rng.randrange(len(out)), varint(rng.choice(_NUMBERS))
    out[at : at + rng.choice((0, 1, len(value)))] = value


def _cut(out: bytearray, rng: random.Random) -> None:
    if rng.random() < 0.3:
        del out[rng.randrange(len(out)) :]


def _swap(out: bytearray, rng: random.Random) -> None:
    size = rng.choice((1, 8, 64))
    a, b = (rng.randrange(max(len(out) - size, 1)) for _ in range(2))
    out[a : a + size], out[b : b + size] = out[b : b + size], out[a : a + size]


def _digits(out: bytearray, rng: random.Random) -> None:
    """JSON: another number, bracket or escape."""
    at = rng.randrange(len(out))
    texts = (b"1e999", b"-0", b"{", b"]", b'"', b"\\ud800", b"null", b"[" * 300, b"123456789" * 5)
    out[at : at + 1] = rng.choice(texts)


_CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip_bit,
    _flip_bit,
    _overwrite,
    _delete,
    _repeat,
    _number,
    _number,
    _cut,
    _swap,
    _digits,
)
