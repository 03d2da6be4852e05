"""xprof's answers about the exam's jobs, in the scorer's format: `python -m tests.exam.peer FOLDER
[--name NAME]`.

Runs under the peer's Python and imports nothing from this project. Writes each answer to FOLDER/<job>/NAME.
The marking is generous:

- Sentences of the peer's overview, and tips that it derives from the run, name every cause that they may be
read as (SENTENCES); an ambiguous sentence may be right in several ways (`also`). Tips that every run gets
name nothing. - The largest part of the peer's step time also counts if it has a cause's name (PARTS), and so
does the operation that takes most time (OPERATIONS), although a reader finds it two pages further on. -
Findings are sorted by share; below 5% they are no alarm. "NOT input-bound" is a calm verdict, "No step time
measured" is none.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Table = Mapping[str, Any]
TOOLS = ("overview_page", "input_pipeline_analyzer", "framework_op_stats")
# Phrases in the peer's sentences, and the causes that they may mean.
SENTENCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("HIGHLY input-bound", ("input",)),
    ("MODERATELY input-bound", ("input",)),
    ("COULD be input-bound", ("input",)),
    ("could be due to I/O or Python execution", ("input", "python")),
    ("could be due to Python execution", ("python",)),
    ("on 'Kernel Launch'", ("dispatch",)),
    ("on 'Device Collective Communication'", ("communication",)),
    ("HIGHLY output-bound", ("synchronization", "transfers", "dispatch")),
    ("MODERATELY output-bound", ("synchronization", "transfers", "dispatch")),
    ("retracing or eager execution", ("compilation", "dispatch")),
    ("used eager execution", ("dispatch", "compilation")),
    ("for outside compilation", ("dispatch", "callbacks")),
)
# Averages of the peer's step table, and the causes that they name.
PARTS: dict[str, tuple[str, ...]] = {
    "infeed_time_ms_avg": ("input",),
    "compile_time_ms_avg": ("compilation",),
    "kernel_launch_time_ms_avg": ("dispatch",),
    "device_collectives_time_ms_avg": ("communication",),
    "outfeed_time_ms_avg": ("synchronization", "transfers", "dispatch"),
    "device_compute_time_ms_avg": (),
    "device_to_device_time_ms_avg": (),
    "host_compute_time_ms_avg": (),
    "other_time_ms_avg": (),
}
OPERATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Dataset", ("input",)),
    ("Iterator", ("input",)),
    ("PyFunc", ("callbacks", "python")),
    ("EagerPyFunc", ("callbacks", "python")),
)
# The peer's threshold for "moderate": the least share of an alarm and of an operation that counts
LEAST = 0.05
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_STATEMENTS = ("statement", "kernel_launch_statement", "all_other_statement", "device_collectives_statement")
_PS_PER_MS = 1e9


def answer(pages: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    """The peer's pages in the scorer's format. `pages`: tables by tool name, a missing one is empty."""
    overview, pipeline = pages.get("overview_page") or [], pages.get("input_pipeline_analyzer") or []
    averages = _properties(overview, 1)
    texts = list(dict.fromkeys(text for text in sentences(overview, pipeline) if text))
    step_ms = float(averages.get("steptime_ms_average") or 0.0)
    findings = [
        *_said(texts),
        *_largest_part(averages, step_ms),
        *_largest_operation(pages.get("framework_op_stats") or []),
    ]
    findings.sort(key=lambda one: -one["share"])
    is_alarm = any(one["share"] >= LEAST for one in findings)
    is_calm = bool(findings) or any("NOT input-bound" in text for text in texts)
    return {
        "level": "bad" if is_alarm else "good" if is_calm else "unknown",
        "text": " ".join(texts),
        "step_time_ps": step_ms * _PS_PER_MS or None,
        "n_steps": len(overview[1]["rows"]) if len(overview) > 1 and overview[1] else 0,
        "findings": [{**one, "time_ps": one["share"] * step_ms * _PS_PER_MS} for one in findings],
        "causes": None,
    }


def sentences(overview: Sequence[Table], pipeline: Sequence[Table]) -> Iterator[str]:
    """The peer's sentences about this run, beginning with the first one of the overview."""
    recommendation = _properties(overview, 3)
    for key in _STATEMENTS:
        yield str(recommendation.get(key) or "")
    for key in ("input_conclusion", "output_conclusion", *_STATEMENTS[1:]):
        yield str(_properties(pipeline, 1).get(key) or "")
    yield str(_properties(overview, 0).get("remark_text") or "")
    for row in _rows(overview, 3):
        yield str(row.get("link") or "")
        yield str(row.get("description") or "")


def _properties(page: Sequence[Table], place: int) -> dict[str, Any]:
    return dict(page[place].get("p") or {}) if len(page) > place and page[place] else {}


def _rows(page: Sequence[Table], place: int) -> Iterator[dict[str, Any]]:
    """Rows by the columns' ids."""
    if len(page) > place and page[place]:
        ids = [column["id"] for column in page[place]["cols"]]
        for row in page[place]["rows"]:
            yield dict(zip(ids, (cell["v"] for cell in row["c"]), strict=True))


def _finding(causes: Sequence[str], share: float, sentence: str, name: str = "") -> dict[str, Any]:
    return {
        "cause": causes[0],
        "also": list(causes[1:]),
        "share": share,
        "culprit": {"name": name},
        "host": "",
        "gain_ps": None,
        "capture_option": "",
        "sentence": sentence,
    }


def _said(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A finding per sentence that names a cause; its share is the first percentage in the sentence."""
    for text in texts:
        causes = next((causes for phrase, causes in SENTENCES if phrase in text), ())
        if causes:
            share = _PERCENT.search(text)
            yield _finding(causes, float(share[1]) / 100 if share else LEAST, text)


def _largest_part(averages: Mapping[str, Any], step_ms: float) -> Iterator[dict[str, Any]]:
    """A finding for the largest part of the mean step, if it names a cause."""
    times = {key: float(averages.get(key) or 0.0) for key in PARTS}
    key = max(times, key=lambda one: times[one])
    if step_ms and times[key] and PARTS[key]:
        yield _finding(PARTS[key], times[key] / step_ms, f"{key} is the largest part of the step.")


def _largest_operation(page: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """A finding for the longest operation that is not idle, if it names a cause."""
    rows = [row for row in _rows(page, 0) if row.get("total_self_time")]
    total = sum(row["total_self_time"] for row in rows)
    busy = [row for row in rows if row.get("type") != "IDLE"]
    if busy:
        first = max(busy, key=lambda row: float(row["total_self_time"]))
        causes = next((causes for kind, causes in OPERATIONS if str(first["type"]).startswith(kind)), ())
        if causes and first["total_self_time"] >= LEAST * total:
            yield _finding(
                causes, first["total_self_time"] / total, "It takes most time.", str(first["operation"])
            )


def peer_tables(run_dir: Path) -> dict[str, list[Table]]:
    """The peer's tables of a run. Copies the files first, because the peer writes next to the files that it
    reads.
    """
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    pages = {}
    with tempfile.TemporaryDirectory() as space:
        files = [
            shutil.copyfile(path, Path(space) / path.name) for path in sorted(run_dir.glob("*.xplane.pb"))
        ]
        for tool in TOOLS:
            data, _ = xspace_to_tool_data([str(file) for file in files], tool, {"use_saved_result": False})
            pages[tool] = json.loads(data) if data else []
    return pages


def main() -> int:
    """Write the answers about a folder's jobs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.exam.peer", description="write xprof's answers about the exam's jobs"
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="peer.json", help="file name for each job's answer")
    options = parser.parse_args()
    for truth in sorted(options.folder.glob("*/truth.json")):
        (run_dir,) = (truth.parent / "plugins" / "profile").iterdir()
        result = answer(peer_tables(run_dir))
        (truth.parent / options.name).write_text(json.dumps(result, indent=1), "utf-8")
        print(
            f"{truth.parent.name}: {', '.join(one['cause'] for one in result['findings']) or result['level']}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
