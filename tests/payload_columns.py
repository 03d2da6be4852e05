"""Columns of payloads: made by hand, and read as lists of cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.tools.payload import Column, Payload


def text_column(name: str, title: str, texts: Sequence[str]) -> Column:
    """A column of texts, interned."""
    strings = list(dict.fromkeys(texts))
    code = {text: i for i, text in enumerate(strings)}
    return Column(
        name,
        title,
        np.array([code[text] for text in texts], np.int32),
        strings=strings,
    )


def cells(column: Column) -> list[object]:
    """A column's cells; an unknown text is None."""
    if column.strings is None:
        return column.values.tolist()
    return [column.strings[code] if code >= 0 else None for code in column.values.tolist()]


def table(payload: Payload, name: str) -> dict[str, list[object]]:
    """The cells of a table, by column."""
    return {column.name: cells(column) for column in payload.tables[name].columns}


def scalar(payload: Payload, name: str) -> float:
    """A number that is known."""
    value = payload.scalars[name].value
    assert value is not None
    return float(value)
