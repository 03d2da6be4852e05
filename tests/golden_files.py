"""Writes the files that follow from the code: `tests/golden/<log>/<tool>.json` and the tables in `docs/trace_format.md`.

`make golden` runs it; tests compare. What changed is reviewed as a diff.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from tb_tpuprof.trace import schema

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
FORMAT_DOCUMENT = ROOT / "docs" / "trace_format.md"
TABLES_MARK = "<!-- tables -->\n"

TABLES = {
    "planes": schema.PLANES,
    "lines": schema.LINES,
    "events": schema.EVENTS,
    "metadata": schema.METADATA,
    "aggregates": schema.AGGREGATES,
    "stat_names": schema.STAT_NAMES,
    "event_stats, metadata_stats, plane_stats": schema.STATS,
}
# Goldens stay small enough to read: of longer tables only the first rows are kept, and how many there are.
ROWS_KEPT = 40
STRINGS_KEPT = 40
DIGITS = 9


def demo_runs() -> dict[str, Path]:
    """Folders of the demo runs that hold traces, by the demo log's name."""
    files = sorted((ROOT / "demo_logs").glob("*/**/*.xplane.pb"))
    return {file.relative_to(ROOT / "demo_logs").parts[0]: file.parent for file in files}


def golden_of(payload: bytes) -> str:
    """A payload's JSON in the form that is kept: indented, numbers rounded, long tables cut."""
    return json.dumps(_shortened(json.loads(payload)), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _shortened(value: object, key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _shortened(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        kept = STRINGS_KEPT if key == "strings" else ROWS_KEPT
        rest = [f"… {len(value) - kept} more"] if len(value) > kept and key in ("values", "codes", "strings") else []
        return [_shortened(inner) for inner in (value[:kept] if rest else value)] + rest
    if isinstance(value, float) and value and math.isfinite(value):
        return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
    return value


def goldens() -> Iterator[tuple[Path, str]]:
    """Path and text of every golden file, made anew."""
    from tb_tpuprof.encode import encode_json
    from tb_tpuprof.errors import ToolUnavailable
    from tb_tpuprof.session import Session
    from tb_tpuprof.tools import TOOLS

    for log, run_dir in demo_runs().items():
        session = Session(str(run_dir), cache=False)
        for tool in TOOLS:
            try:
                text = golden_of(encode_json(tool.run(session, None, {})))
            except ToolUnavailable as error:
                text = json.dumps({"unavailable": {"reason": error.reason, "remedy": error.remedy}}, indent=1) + "\n"
            yield GOLDEN / log / f"{tool.name}.json", text


def format_tables() -> str:
    """The tables of the trace as Markdown, from the schema."""
    lines = []
    for name, columns in TABLES.items():
        lines += ["", f"### {name}", "", "| column | dtype | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{column.name}` | {column.dtype} | {column.unit} | {column.meaning} |" for column in columns]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write everything; goldens of tools and logs that are gone are removed."""
    head, mark, _ = FORMAT_DOCUMENT.read_text("utf-8").partition(TABLES_MARK)
    FORMAT_DOCUMENT.write_text(head + mark + format_tables(), "utf-8")
    made = dict(goldens())
    for stale in set(GOLDEN.glob("*/*.json")) - set(made):
        stale.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
