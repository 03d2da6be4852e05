"""Payload → text for a terminal: the verdict, the key numbers, then each table, numbers scaled
and aligned.
"""

from __future__ import annotations

import unicodedata

from tb_tpuprof.tools.payload import Column, Payload, Table
from tb_tpuprof.units import format_value

MAX_ROWS = 40
MAX_CELL = 64


def encode_text(payload: Payload) -> str:
    """The whole payload as text; tables are cut after 40 rows, with a note."""
    parts = [f"{payload.tool} · {payload.run} · {', '.join(payload.hosts)}"]
    if payload.verdict:
        lines = [payload.verdict.text, *payload.verdict.details]
        lines += [f"→ {step.text}" for step in payload.verdict.next]
        parts.append("\n".join(lines))
    if payload.scalars:
        width = max(len(scalar.title) for scalar in payload.scalars.values())
        parts.append(
            "\n".join(
                f"{scalar.title:<{width}}  "
                f"{format_value(scalar.value, scalar.unit)}{'  ' + scalar.note if scalar.note else ''}"
                for scalar in payload.scalars.values()
            )
        )
    parts += [_table(table) for table in payload.tables.values() if table.n_rows]
    parts += [f"{d.severity}: {d.message} {d.remedy}".rstrip() for d in payload.diagnostics]
    return "\n\n".join(printable(part) for part in parts) + "\n"


def printable(text: str) -> str:
    """The text without control characters, which could steer a terminal; line breaks stay."""
    return "".join(
        c if c == "\n" or unicodedata.category(c)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _table(table: Table) -> str:
    text = table_text(table, MAX_ROWS)
    more = table.n_rows - MAX_ROWS
    return f"{text}\n… and {more:,} more rows (--format csv shows all)" if more > 0 else text


def table_text(table: Table, max_rows: int) -> str:
    """A table's title, header and first rows, aligned."""
    columns = [_cells(column, max_rows) for column in table.columns]
    headers = [column.title for column in table.columns]
    widths = [max([len(header), *map(len, cells)]) for header, cells in zip(headers, columns, strict=True)]
    is_text = [column.strings is not None for column in table.columns]
    rows = [headers, *map(list, zip(*columns, strict=True))]
    lines = [
        "  ".join(_aligned(*cell) for cell in zip(row, widths, is_text, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join([f"{table.title}{'  (' + table.note + ')' if table.note else ''}", *lines])


def _cells(column: Column, max_rows: int) -> list[str]:
    values = column.values[:max_rows].tolist()
    if column.strings is None:
        return [format_value(value, column.unit) for value in values]
    texts = [column.strings[code] if code >= 0 else "—" for code in values]
    return [text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…" for text in texts]


def _aligned(text: str, width: int, is_text: bool) -> str:
    return f"{text:<{width}}" if is_text else f"{text:>{width}}"
