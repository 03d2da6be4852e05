"""The payloads of all pages of one run, read cell by cell: columns, shares, sentences; and violations of
rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.payload import Column, Payload, Scalar, Table

Pages = Mapping[str, Payload]
EQUAL = 1e-6
NAMED = re.compile(r"`([^`]+)`")
_UNITS = {"ps": 1, "ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12, "min": 6e13, "h": 3.6e15}


@dataclass(frozen=True)
class Violation:
    """A contradiction: which rule, which page (or pages) and what they say."""

    rule: str
    pages: str
    text: str

    def __str__(self) -> str:
        return f"[{self.rule}] {self.pages}: {self.text}"


def all_near(values: list[Any]) -> bool:
    """Whether the values are known and equal, apart from rounding."""
    return all(value is not None for value in values) and max(values) - min(values) <= EQUAL * max(
        map(abs, values)
    )


def fractions(pages: Pages) -> Iterator[tuple[str, str, float, float]]:
    """(page, name, largest, smallest) of every share: scalars and columns."""
    for page, payload in pages.items():
        for name, scalar in payload.scalars.items():
            if scalar.unit == "fraction" and scalar.value is not None:
                yield page, name, float(scalar.value), float(scalar.value)
        for table_name, table in payload.tables.items():
            for column in table.columns:
                numbers = numbers_of(column) if column.unit == "fraction" else np.empty(0)
                if np.isfinite(numbers).any():
                    yield page, f"{table_name}.{column.name}", largest_of(numbers), float(np.nanmin(numbers))


def largest_of(numbers: npt.NDArray[np.float64]) -> float:
    """The largest known number; 0 without any."""
    return float(np.nanmax(numbers)) if np.isfinite(numbers).any() else 0.0


def sentences_of(payload: Payload) -> Iterator[str]:
    """Everything that a page says in words: verdict, advice, diagnostics."""
    if payload.verdict is not None:
        yield from (
            payload.verdict.text,
            *payload.verdict.details,
            *(step.text for step in payload.verdict.next),
        )
    for diagnostic in payload.diagnostics:
        yield from (diagnostic.message, diagnostic.remedy)
    for name in ("advice", "recommendations"):
        for column in payload.tables[name].columns if name in payload.tables else ():
            if column.name == "text":
                yield from column.strings or ()


def column_of(table: Table, name: str) -> Column:
    """The column of that name."""
    return next(column for column in table.columns if column.name == name)


def numbers_of(column: Column) -> npt.NDArray[np.float64]:
    """A column's numbers; empty for texts."""
    return column.values.astype(np.float64) if column.strings is None else np.empty(0)


def texts_of(column: Column) -> list[str]:
    """A column's texts; unknown ones are empty."""
    assert column.strings is not None
    return [column.strings[code] if code >= 0 else "" for code in column.values.tolist()]


def row_of(table: Table, column: str, name: str) -> int:
    """The first row with that text; -1 without any."""
    return next((i for i, text in enumerate(texts_of(column_of(table, column))) if text == name), -1)


def value_of(scalar: Scalar | None) -> float:
    """The number; 0 if it is unknown."""
    return float(scalar.value) if scalar is not None and scalar.value is not None else 0.0


def time_of(text: str) -> float | None:
    """The picoseconds that a text states; None if it states no time."""
    match = re.match(r"([\d.,]+)\s(\S+)", text)
    unit = _UNITS.get(match[2]) if match else None
    return float(match[1].replace(",", "")) * unit if match and unit else None


def with_scalar(payload: Payload, name: str, value: float | None) -> Payload:
    """The same payload with another value of a scalar: what tests of these rules break."""
    return replace(payload, scalars={**payload.scalars, name: replace(payload.scalars[name], value=value)})
