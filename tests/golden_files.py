"""Writes the files that follow from the code: `tests/golden/<log>/<tool>.json` and the tables in
`docs/trace_format.md`.

`make golden` runs it; tests compare. What changed is reviewed as a diff.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.trace import schema

ROOT = Path(__file__).resolve().parent.parent
DEMO_LOGS = ROOT / "demo_logs"
GOLDEN = ROOT / "tests" / "golden"
FORMAT_DOCUMENT = ROOT / "docs" / "trace_format.md"
TABLES_MARK = "<!-- tables -->\n"

# Goldens stay small enough to read: of longer tables only the first rows are kept, and how many there are.
ROWS_KEPT = 60
DIGITS = 9


def demo_runs() -> dict[str, Path]:
    """Folders of the demo runs that hold traces, by the demo log's name."""
    files = sorted(DEMO_LOGS.glob("*/**/*.xplane.pb"))
    return {file.relative_to(DEMO_LOGS).parts[0]: file.parent for file in files}


def golden_of(payload: bytes) -> str:
    """A payload's JSON in the form that is kept: a table's row on a line, numbers rounded, long
    tables cut.
    """
    answer = json.loads(payload)
    for scalar in answer["scalars"].values():
        if isinstance(scalar["value"], float):
            scalar["value"] = float(rounded(scalar["value"]))
        for declared in ("description", "formula"):  # the same in every run
            del scalar[declared]
        if not scalar["working"]:
            del scalar["working"]
    answer["tables"] = {name: table_of(table, ROWS_KEPT) for name, table in answer["tables"].items()}
    return json.dumps(answer, indent=1, ensure_ascii=False) + "\n"


def table_of(table: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """A table as texts: heads, sums, and the first rows."""
    columns = [_texts(column, n_rows) for column in table["columns"]]
    names = [
        f"{column['name']} [{column['unit']}]" if column["unit"] else column["name"]
        for column in table["columns"]
    ]
    rows = [" | ".join(row) for row in zip(*columns, strict=True)]
    heads = {
        "title": table["title"],
        "note": table["note"],
        "n_rows": table["n_rows"],
        "columns": " | ".join(names),
    }
    return {**heads, "sums": " | ".join(_sum(column) for column in table["columns"]), "rows": rows}


def _sum(column: dict[str, Any]) -> str:
    """What stands for the rows that are not kept: the sum of numbers, the number of different texts."""
    if column["kind"] == "text":
        return f"{len(set(column['codes']))} texts"
    return rounded(sum(value for value in column["values"] if value is not None))


def _texts(column: dict[str, Any], n_rows: int) -> list[str]:
    if column["kind"] == "text":
        return [column["strings"][code] if code >= 0 else "–" for code in column["codes"][:n_rows]]
    return [rounded(value) for value in column["values"][:n_rows]]


def rounded(value: float | bool | None) -> str:
    """A number as it stands in goldens."""
    if value is None:
        return "–"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


@cache
def _session(log: str) -> Session:
    return Session(str(demo_runs()[log]), cache=False)


def golden_text(log: str, tool: str) -> str:
    """A golden file's content, made anew: the payload with the tool's defaults, or why there is none."""
    try:
        return golden_of(encode_json(get_tool(tool).run(_session(log), None, {})))
    except ToolUnavailable as error:
        return (
            json.dumps(
                {"unavailable": {"reason": error.reason, "remedy": error.remedy}},
                indent=1,
                ensure_ascii=False,
            )
            + "\n"
        )


def format_tables() -> str:
    """The tables of the trace as Markdown, from the schema."""
    names: dict[tuple[schema.ColumnSpec, ...], list[str]] = {}
    for name, columns in schema.TABLES.items():
        names.setdefault(columns, []).append(name)
    lines = []
    for columns, alike in names.items():
        lines += [
            "",
            f"### {', '.join(alike)}",
            "",
            "| column | dtype | unit | meaning |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| `{column.name}` | {column.dtype} | {column.unit} | {column.meaning} |" for column in columns
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write everything."""
    head, mark, _ = FORMAT_DOCUMENT.read_text("utf-8").partition(TABLES_MARK)
    FORMAT_DOCUMENT.write_text(head + mark + format_tables(), "utf-8")
    write_goldens(
        GOLDEN,
        {
            GOLDEN / log / f"{tool.name}.json": golden_text(log, tool.name)
            for log in demo_runs()
            for tool in all_tools()
        },
    )


def write_goldens(folder: Path, texts: dict[Path, str]) -> None:
    """Write the goldens of a folder, and remove those of tools and runs that no longer exist."""
    for stale in set(folder.glob("*/*.json")) - set(texts):
        stale.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
