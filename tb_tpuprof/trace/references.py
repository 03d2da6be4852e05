"""Checks that the row numbers in a trace's columns refer to rows that exist.

The compiled loops follow them without bounds checks, so columns from a file must pass here first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace import schema
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table

_OWNERS = {"event_stats": "events", "metadata_stats": "metadata", "plane_stats": "planes"}
_TABLES = {"plane": "planes", "line": "lines", "event": "events", "metadata": "metadata", "sample": "samples"}
_RANGES = {
    "lines": ("first_event", "n_events", "events"),
    "counters": ("first_sample", "n_samples", "samples"),
}


def check_references(tables: Mapping[str, Table], strings: Strings) -> None:
    """Raises ValueError for a row number, string id or range of rows that does not exist; -1 means none."""
    _check_strings(strings)
    sizes = {unit: len(tables[name]) for unit, name in _TABLES.items()} | {"string": len(strings)}
    for name, table in tables.items():
        for column in schema.TABLES[name]:
            n_rows = len(tables[_OWNERS[name]]) if column.unit == "row" else sizes.get(column.unit)
            if n_rows is not None and column.name not in ("first_event", "first_sample"):
                _check(f"{name}.{column.name}", table[column.name], n_rows)
        if name in _OWNERS:
            texts = table["value"][table["kind"] == schema.TEXT]
            _check(f"{name}.value", texts, len(strings))
            if len(table) and (np.diff(table["key"]) < 0).any():
                raise ValueError(f"{name} is not sorted by key")
    for name, (first, count, rows) in _RANGES.items():
        _check_ranges(name, tables[name][first], tables[name][count], len(tables[rows]))


def _check_strings(strings: Strings) -> None:
    offsets = strings.offsets
    if (
        not len(offsets)
        or int(offsets[0]) < 0
        or int(offsets[-1]) > len(strings.blob)
        or (np.diff(offsets) < 0).any()
    ):
        raise ValueError("the strings' offsets do not ascend within their bytes")


def _check(name: str, values: npt.NDArray[np.integer], n_rows: int) -> None:
    if len(values) and not -1 <= int(values.min()) <= int(values.max()) < n_rows:
        raise ValueError(f"{name} refers to rows {int(values.min())} to {int(values.max())} of {n_rows}")


def _check_ranges(name: str, first: npt.NDArray[np.int64], count: npt.NDArray[np.int64], n_rows: int) -> None:
    if len(first) and (int(first.min()) < 0 or int(count.min()) < 0 or int(first.max()) > n_rows):
        raise ValueError(f"{name} has rows that do not exist")
    if len(first) and int((first + np.minimum(count, n_rows + 1)).max()) > n_rows:
        raise ValueError(f"{name} has rows that do not exist")
