"""Declared tables and numbers → a JSON Schema (2020-12) of a question's answer in the format `json`."""

from __future__ import annotations

from typing import Any

from tb_tpuprof.tools.base import Question
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec
from tb_tpuprof.tools.tool import Tool

Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_CELLS: dict[str, Schema] = {
    "number": {"values": {"type": "array", "items": {"type": ["number", "null"]}}},
    "bool": {"values": {"type": "array", "items": {"type": "boolean"}}},
    "text": {"codes": {"type": "array", "items": {"type": "integer", "minimum": -1}}, "strings": _TEXTS},
}
_NEXT: Schema = {
    "type": "object",
    "required": ["text", "tool", "params"],
    "properties": {"text": _TEXT, "tool": _TEXT, "params": {"type": "object", "additionalProperties": _TEXT}},
}
_VERDICT: Schema = {
    "type": ["object", "null"],
    "required": ["level", "category", "text", "details", "next", "subjects"],
    "properties": {
        "level": {"enum": ["good", "warn", "bad", "unknown"]},
        "category": _TEXT,
        "text": _TEXT,
        "details": _TEXTS,
        "next": {"type": "array", "items": _NEXT},
        "subjects": {"type": "array", "items": {"type": "object"}},
    },
}
_DIAGNOSTIC: Schema = {
    "type": "object",
    "required": ["severity", "message", "remedy"],
    "properties": {"severity": {"enum": ["info", "warning", "error"]}, "message": _TEXT, "remedy": _TEXT},
}


def payload_schema(tool: Tool, question: Question) -> Schema:
    """The schema of the JSON that answers a tool's question."""
    title = tool.title if not question.name else f"{tool.title}: {question.summary}"
    properties = {
        "tool": {"const": tool.name},
        "run": _TEXT,
        "hosts": _TEXTS,
        "verdict": _VERDICT,
        "is_diagnosed": {"type": "boolean"},
        "scalars": _members(question.scalars, _scalar),
        "tiles": _TEXTS,
        "tables": _members(question.tables, _table),
        "diagnostics": {"type": "array", "items": _DIAGNOSTIC},
    }
    return {
        "$schema": _DIALECT,
        "title": title,
        "type": "object",
        "required": list(properties),
        "properties": properties,
    }


def _members(specs: Any, schema_of: Any) -> Schema:
    return {
        "type": "object",
        "required": [spec.name for spec in specs if not spec.is_optional],
        "properties": {spec.name: schema_of(spec) for spec in specs},
        "additionalProperties": False,
    }


def _scalar(spec: ScalarSpec) -> Schema:
    properties = {
        "value": {"type": ["number", "boolean", "null"]},
        "unit": {"const": spec.unit},
        "title": _TEXT,
        "note": _TEXT,
        "description": _TEXT,
        "formula": _TEXT,
        "working": _TEXT,
    }
    return _described(spec.title, _definition(spec), properties)


def _table(spec: TableSpec) -> Schema:
    columns = {
        "type": "array",
        "items": {"anyOf": [_column(column) for column in spec.columns]},
        "allOf": [
            {"contains": {"properties": {"name": {"const": column.name}}}}
            for column in spec.columns
            if not column.is_optional
        ],
    }
    properties = {
        "title": _TEXT,
        "note": _TEXT,
        "description": _TEXT,
        "columns": columns,
        "n_rows": {"type": "integer"},
    }
    return _described(spec.title, spec.description, properties)


def _column(spec: ColumnSpec) -> Schema:
    properties = {
        "name": {"const": spec.name},
        "title": _TEXT,
        "unit": {"const": spec.unit},
        "kind": {"const": spec.kind},
        "description": _TEXT,
        "formula": _TEXT,
        "unknown": _TEXT,
        **_CELLS[spec.kind],
    }
    return _described(spec.title, _definition(spec), properties)


def _definition(spec: ColumnSpec | ScalarSpec) -> str:
    """The sentence, the formula, and what an unknown value means."""
    formula = f"Formula: {spec.formula}" if spec.formula else ""
    unknown = f"null: {spec.unknown}" if spec.unknown else ""
    return ". ".join(part for part in (spec.description, formula, unknown) if part)


def _described(title: str, description: str, properties: Schema) -> Schema:
    """An object with all these properties; later versions may add more."""
    sentence = {"description": description} if description else {}
    return {
        "title": title,
        **sentence,
        "type": "object",
        "required": list(properties),
        "properties": properties,
    }
