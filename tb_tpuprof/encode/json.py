"""Payload → the JSON object of docs/http_api.md."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import listed
from tb_tpuprof.tools.payload import Column, Payload, Table, Verdict

ColumnFields = Callable[[Column], dict[str, Any]]


def encode_json(payload: Payload) -> bytes:
    """UTF-8 JSON; unknown numbers are null. Columns of numbers are written by a loop of their own and put
    into their places.
    """
    place = secrets.token_hex(16)  # no text of a trace can be it
    lists: list[bytes] = []

    def told(column: Column) -> dict[str, Any]:
        found = _listed(column.values)
        if found is None:
            return {"values": column.values.tolist()}
        lists.append(found)
        return (
            {"values": place} if column.strings is None else {"strings": list(column.strings), "codes": place}
        )

    parts = dumps(payload_object(payload, told)).split(f'"{place}"'.encode())
    return b"".join(
        [
            parts[0],
            *(
                piece
                for pair in zip(lists, parts[1:], strict=True)
                for piece in (b"[", pair[0], b"]", pair[1])
            ),
        ]
    )


def _listed(values: npt.NDArray[Any]) -> bytes | None:
    """Numbers as text, but for the brackets; None of what are no numbers, such as truth."""
    is_whole = values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < 8)
    if not is_whole and values.dtype.kind != "f":
        return None
    found: bytes = listed(np.ascontiguousarray(values, np.int64 if is_whole else np.float64))
    return found


def dumps(value: object) -> bytes:
    """Compact UTF-8 JSON that refuses NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def payload_object(payload: Payload, column_fields: ColumnFields) -> dict[str, Any]:
    """The payload as plain dicts; `column_fields` says how a column's rows are told."""
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
            }
            for name, scalar in payload.scalars.items()
        },
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
                "table": one.table,
                "column": one.column,
                "name": one.name,
                "values": {key: number(value) for key, value in one.values.items()},
            }
            for one in verdict.subjects
        ],
    }


def _table(table: Table, column_fields: ColumnFields) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        **({"chart": table.chart} if table.chart else {}),
        "n_rows": table.n_rows,
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "unit": column.unit,
                "kind": column.kind,
                "description": column.description,
                **column_fields(column),
            }
            for column in table.columns
        ],
    }
