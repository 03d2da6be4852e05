"""Bytes → gzip by Intel's ISA-L (docs/decisions/0003-binary-columns.md has the figures)."""

from __future__ import annotations

from isal import isal_zlib

FAST = 1  # for byte planes: higher levels do not make them smaller
SMALL = 3  # for texts
_WITH_HEAD = 31  # zlib's `wbits` for gzip with the largest window


def gzipped(content: bytes, level: int = SMALL) -> bytes:
    """The content as a single gzip member."""
    return isal_zlib.compress(content, level, _WITH_HEAD)
