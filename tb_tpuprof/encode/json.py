"""Payload → the JSON object of docs/http_api.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from tb_tpuprof.tools.payload import Column, Payload, Table, Verdict

ColumnFields = Callable[[Column], dict[str, Any]]


def encode_json(payload: Payload) -> bytes:
    """UTF-8 JSON; unknown numbers are null."""
    return dumps(payload_object(payload, _rows))


def _rows(column: Column) -> dict[str, Any]:
    values = _written(column.values)
    return (
        {"values": values} if column.strings is None else {"strings": list(column.strings), "codes": values}
    )


def _written(values: npt.NDArray[Any]) -> npt.NDArray[Any] | list[Any]:
    """An array that orjson writes as a list. Narrow floats are widened to double: their shortest text would
    read back as a different double.
    """
    if values.dtype.kind in "iub":
        return np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return np.ascontiguousarray(values, np.float64) if values.dtype.kind == "f" else values.tolist()


def dumps(value: object) -> bytes:
    """Compact UTF-8 JSON; arrays are lists, numbers that are not finite are null, and a lone surrogate, which
    UTF-8 cannot hold, is a question mark.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:  # a surrogate or an integer of more than 64 bits: rare enough to be slow
        text = json.dumps(value, default=_listed, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _listed(values: npt.NDArray[Any]) -> list[Any]:
    """An array as plain numbers for the standard library."""
    numbers: list[Any] = values.tolist()
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in numbers]


def payload_object(payload: Payload, column_fields: ColumnFields) -> dict[str, Any]:
    """The payload as plain dicts; `column_fields` encodes a column's rows."""
    return {
        "tool": payload.tool,
        "run": payload.run,
        "hosts": list(payload.hosts),
        "verdict": _verdict(payload.verdict),
        "is_diagnosed": payload.is_diagnosed,
        "scalars": {
            name: {
                "value": number(scalar.value),
                "unit": scalar.unit,
                "title": scalar.title,
                "note": scalar.note,
                "description": scalar.description,
                "formula": scalar.formula,
                "working": scalar.working,
            }
            for name, scalar in payload.scalars.items()
        },
        "tiles": list(payload.tiles),
        "tables": {name: _table(table, column_fields) for name, table in payload.tables.items()},
        "diagnostics": [
            {"severity": d.severity, "message": d.message, "remedy": d.remedy} for d in payload.diagnostics
        ],
    }


def number(value: object) -> int | float | bool | None:
    """A Python number that JSON can hold: NumPy's are converted, NaN and infinities are None."""
    if isinstance(value, (np.bool_, bool)):
        return bool(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    if isinstance(value, (np.floating, float)):
        return float(value) if math.isfinite(value) else None
    return None


def _verdict(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "level": verdict.level,
        "category": verdict.category,
        "text": verdict.text,
        "details": list(verdict.details),
        "next": [
            {"text": step.text, "tool": step.tool, "params": dict(step.params)} for step in verdict.next
        ],
        "subjects": [
            {
                "table": subject.table,
                "column": subject.column,
                "name": subject.name,
                "values": {key: number(value) for key, value in subject.values.items()},
            }
            for subject in verdict.subjects
        ],
    }


def _table(table: Table, column_fields: ColumnFields) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        "description": table.description,
        **({"chart": table.chart} if table.chart else {}),
        "n_rows": table.n_rows,
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "unit": column.unit,
                "kind": column.kind,
                "description": column.description,
                "formula": column.formula,
                "unknown": column.unknown,
                **column_fields(column),
            }
            for column in table.columns
        ],
    }
