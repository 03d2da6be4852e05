"""The JSON of the overview page and the input pipeline analyzer: arrays of tables, each with columns
(`cols`), rows (`rows`) and properties (`p`), as google.visualization.DataTable has them.

A table is recognized by the names of its columns, since their order changed over the years.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tb_tpuprof.ingest.pages.page import (
    GIGA,
    MOST_ROWS,
    PS_PER_MS,
    SavedPage,
    columns_of,
    number_of,
    text_of,
    time_of,
)

Row = dict[str, Any]
# The columns of times of a step, by their names in all versions.
_STEP_TIMES = {
    "computeTimeMs": "compute_ps",
    "noninfeedTimeMs": "compute_ps",
    "inputTimeMs": "input_ps",
    "infeedTimeMs": "input_ps",
    "idleTimeMs": "idle_ps",
    "deviceComputeTimeMs": "device_compute_ps",
    "deviceToDeviceTimeMs": "device_to_device_ps",
    "deviceCollectivesTimeMs": "collectives_ps",
    "hostComputeTimeMs": "host_compute_ps",
    "kernelLaunchTimeMs": "host_prepare_ps",
    "compileTimeMs": "host_compile_ps",
    "outfeedTimeMs": "output_ps",
    "otherTimeMs": "other_ps",
}
_STATEMENTS = ("statement", "summary_conclusion", "remark_text")
_UNSAID = ("remark_color", "summary_color", *_STATEMENTS)


def page_of_tables(page: str, content: Any) -> SavedPage:
    """What the tables state. Entries of any other shape are left out."""
    listed = [table for table in content if isinstance(table, dict)] if isinstance(content, list) else []
    facts: list[tuple[str, str]] = []
    statements: list[str] = []
    advice: list[str] = []
    tables: dict[str, Any] = {}
    for table in listed:
        properties = table.get("p")
        properties = properties if isinstance(properties, dict) else {}
        texts = {str(name): text_of(value) for name, value in properties.items()}
        statements += [texts[name] for name in _STATEMENTS if texts.get(name)]
        facts += [(name, text) for name, text in texts.items() if text and _is_fact(name)]
        rows = list(_rows(table))
        names = set(rows[0]) if rows else set()
        for key, kind in _KINDS.items():
            if kind.columns <= names and key not in tables:
                tables[key] = kind.read(rows)
        if "link" in names:
            advice += [text for row in rows if (text := text_of(row["link"]))]
    return SavedPage(
        page, tuple(facts), tuple(dict.fromkeys(statements)), tuple(dict.fromkeys(advice)), tables
    )


def _is_fact(name: str) -> bool:
    """Whether a property is about the job: not a color, a sentence or a link of the page."""
    return name not in _UNSAID and "_link" not in name and "_line_" not in name and name != "hostnames"


def _rows(table: Mapping[str, Any]) -> Iterator[Row]:
    """The rows by the names of their columns."""
    columns = table.get("cols")
    columns = columns if isinstance(columns, list) else []
    names = [str(column.get("id")) if isinstance(column, dict) else "" for column in columns]
    rows = table.get("rows")
    for row in rows[:MOST_ROWS] if isinstance(rows, list) else []:
        cells = row.get("c") if isinstance(row, dict) else None
        if isinstance(cells, list) and len(cells) == len(names):
            yield {
                name: cell.get("v") if isinstance(cell, dict) else None
                for name, cell in zip(names, cells, strict=True)
            }


def _steps(rows: Sequence[Row]) -> dict[str, Any]:
    times = {name: title for name, title in _STEP_TIMES.items() if name in rows[0]}
    shown: list[dict[str, float | str]] = [
        {"step": text_of(row["stepnum"])}
        | {title: time_of(row[name], PS_PER_MS) for name, title in times.items()}
        | {"input_fraction": number_of(row.get("infeedPercentAverage"), 0.01)}
        for row in rows
    ]
    return columns_of(shown, ["step", *dict.fromkeys(times.values()), "input_fraction"])


def _top_operations(rows: Sequence[Row]) -> dict[str, Any]:
    shown: list[dict[str, float | str]] = [
        {
            "operation": text_of(row["operation"]),
            "type": text_of(row["category"]),
            "time_fraction": number_of(row["selfTimePercent"]),
            "cumulative_fraction": number_of(row.get("cumulativeTimePercent")),
            "flop_rate": number_of(row.get("flopRate"), GIGA),
        }
        for row in rows
    ]
    return columns_of(shown, ["operation", "type", "time_fraction", "cumulative_fraction", "flop_rate"])


def _input_operations(rows: Sequence[Row]) -> dict[str, Any]:
    shown: list[dict[str, float | str]] = [
        {
            "operation": text_of(row["opName"]),
            "category": text_of(row.get("category")),
            "occurrences": number_of(row["count"]),
            "total_time_ps": time_of(row["timeInMs"], PS_PER_MS),
            "total_fraction": number_of(row.get("timeInPercent")),
            "self_time_ps": time_of(row.get("selfTimeInMs"), PS_PER_MS),
            "self_fraction": number_of(row.get("selfTimeInPercent")),
        }
        for row in rows
    ]
    return columns_of(shown, list(shown[0]))


class _Kind:
    """A kind of table: the columns that identify it, and how its rows are read."""

    def __init__(self, read: Callable[[Sequence[Row]], dict[str, Any]], *columns: str) -> None:
        self.read = read
        self.columns = set(columns)


_KINDS = {
    "steps": _Kind(_steps, "stepnum"),
    "top_operations": _Kind(_top_operations, "selfTimePercent", "operation", "category"),
    "input_operations": _Kind(_input_operations, "opName", "count", "timeInMs"),
}
