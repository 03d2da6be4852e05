"""Texts of a trace in CSV files, which spreadsheets open."""

from __future__ import annotations

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def cell_text(text: str) -> str:
    """The text, with an apostrophe in front if a spreadsheet would run it as a formula: names in a trace are
    untrusted input.
    """
    return "'" + text if text.startswith(_FORMULA_STARTS) else text
