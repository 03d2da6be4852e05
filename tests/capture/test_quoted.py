"""Texts of servers, as messages show them."""

from __future__ import annotations

import pytest

from tb_tpuprof.capture.failures import quoted


@pytest.mark.parametrize("letter", ["x", "é", "が", "😀"])
def test_long_texts_say_that_they_are_cut(letter: str) -> None:
    for n in (300, 301, 1000, 5000):
        text = letter * n
        shown = text if n == 300 else letter * 299 + "…"
        assert quoted(text) == quoted(text.encode()) == shown


def test_texts_are_one_printable_line() -> None:
    assert quoted(b" a\r\n\tb\x00c\xff. ") == "a b c\N{REPLACEMENT CHARACTER}"
    assert quoted("\x1b[31mred..") == "[31mred"
    assert quoted(b"") == quoted(" . ") == ""
