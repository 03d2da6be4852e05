"""Files that follow from the code are what `make golden` writes."""

from __future__ import annotations

import json
from functools import cache

import jsonschema_rs
import pytest

from tb_tpuprof.encode import encode_json
from tb_tpuprof.encode.schema import payload_schema
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.trace import schema
from tests.golden_files import FORMAT_DOCUMENT, TABLES_MARK, demo_runs, format_tables
from tests.published_files import (
    API_DOCUMENT,
    GLOSSARY_DOCUMENT,
    TYPESCRIPT,
    document,
    glossary,
    typescript,
)


def test_trace_format_tells_every_column() -> None:
    assert FORMAT_DOCUMENT.read_text("utf-8").partition(TABLES_MARK)[2] == format_tables(), (
        "run `make golden`"
    )


def test_trace_format_has_every_table_of_the_schema() -> None:
    specs = [
        value
        for name, value in vars(schema).items()
        if name.isupper() and isinstance(value, tuple) and isinstance(value[0], schema.ColumnSpec)
    ]
    assert all(spec in schema.TABLES.values() for spec in specs)


def test_typescript_reads_what_tools_declare() -> None:
    wanted = typescript()
    assert {path.name for path in TYPESCRIPT.iterdir()} == {path.name for path in wanted}, "run `make golden`"
    for path, text in wanted.items():
        assert path.read_text("utf-8") == text, "run `make golden`"


def test_the_http_document_lists_every_field() -> None:
    assert API_DOCUMENT.read_text("utf-8") == document(), "run `make golden`"


def test_the_glossary_lists_every_event() -> None:
    assert GLOSSARY_DOCUMENT.read_text("utf-8") == glossary(), "run `make golden`"


@cache
def demo_sessions() -> tuple[Session, ...]:
    """The demo's runs, read once for all tools."""
    return tuple(Session(str(folder), cache=False) for folder in demo_runs().values())


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_answers_follow_their_schema(tool: Tool) -> None:
    """Checked by a library that reads JSON Schema, not by what wrote it."""
    schema = payload_schema(tool, tool.page)
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.Draft202012Validator(schema)
    for session in demo_sessions():
        if tool.availability(session):
            payload = json.loads(encode_json(tool.run(session, None, {})))
            validator.validate(payload)
            lacking = {**payload, "tables": {}}
            if any(not spec.is_optional for spec in tool.tables):
                with pytest.raises(jsonschema_rs.ValidationError):
                    validator.validate(lacking)
