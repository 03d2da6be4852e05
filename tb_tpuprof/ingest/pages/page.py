"""What a saved page states: facts by name, sentences, and tables of columns.

Times are in ps, rates per second, shares from 0 to 1, whatever the page's units. An unknown number is NaN, an
unknown text empty.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, Sequence[str] | npt.NDArray[np.float64]]
PS_PER_MS, PS_PER_US, PS_PER_NS, GIGA = 1e9, 1e6, 1e3, 1e9
# Profilers wrote the largest int64 (in ps) where they knew no time.
_MOST_PS = 2.0**62
MOST_ROWS = 100_000
_MOST_TEXT = 2_000
_LINK = re.compile(r"<[^<>]{0,500}>")


@dataclass(frozen=True)
class SavedPage:
    """One file. `page`: the page's name; `facts`: (name, value) in the file's order; `statements`: its
    verdicts; `advice`: its tips; `tables`: columns by table. Tables that the page lacks are missing.
    """

    page: str
    facts: tuple[tuple[str, str], ...] = ()
    statements: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    tables: Mapping[str, Columns] = field(default_factory=dict)


def number_of(value: Any, scale: float = 1.0) -> float:
    """A number, also one written as text (`48.8%` is 48.8), times `scale`; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        result = float(value.rstrip("% ") if isinstance(value, str) else value) * scale
    except (ValueError, OverflowError):
        return math.nan
    return result if math.isfinite(result) else math.nan


def time_of(value: Any, scale: float) -> float:
    """A time in ps; NaN for what is none, or is the largest number."""
    result = number_of(value, scale)
    return result if 0 <= result < _MOST_PS else math.nan


def text_of(value: Any) -> str:
    """A text without HTML tags and without control characters, at most 2,000 characters; empty for what is
    neither a text nor a number.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return "".join(c if c.isprintable() else " " for c in _LINK.sub("", str(value)[:_MOST_TEXT])).strip()


def columns_of(rows: Iterable[Mapping[str, float | str]], names: Sequence[str]) -> dict[str, Any]:
    """Columns of rows, of which each has the same names with values of the same kind."""
    listed = list(rows)[:MOST_ROWS]
    columns: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row in listed]
        columns[name] = values if any(isinstance(v, str) for v in values) else np.array(values, np.float64)
    return columns
