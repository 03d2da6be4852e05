"""Files that follow from the code are what `make golden` writes."""

from __future__ import annotations

from tb_tpuprof.trace import schema
from tests.golden_files import FORMAT_DOCUMENT, TABLES, TABLES_MARK, format_tables


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
    assert all(spec in TABLES.values() for spec in specs)
