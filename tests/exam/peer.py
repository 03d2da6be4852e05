"""What xprof says of the exam's jobs, in the form that the scorer reads: `python -m tests.exam.peer FOLDER
[--name NAME]`.

Runs under the peer's Python and imports nothing of this project. Each job's answer becomes FOLDER/<job>/NAME.
Marking is generous:

- What the peer says of the run (the sentences of its overview, the tips that it derives from the run) counts
as naming each cause that it
  may be read as (SENTENCES); one sentence may be right in several ways (`also`). Tips that every run gets
  name nothing.
- Where one part of its step time is larger than all others and is called by a cause's name (PARTS), that
counts, too, and so does the
  operation that takes most time (OPERATIONS), though a reader finds it two pages further on.
- Findings stand in the order of their shares; below 5 % they are no alarm. "NOT input-bound" is a calm
verdict, "No step time measured"
  is none.
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
# What its sentences contain, and what they may be read as.
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
# Averages of its step table: called by a cause's name, or not.
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
# What the peer calls moderate: the least that is an alarm, and that an operation must take to be looked at
LEAST = 0.05
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_STATEMENTS = ("statement", "kernel_launch_statement", "all_other_statement", "device_collectives_statement")
_PS_PER_MS = 1e9


def answer(pages: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    """The scorer's answer of what the pages say; `pages`: the peer's tables by the tool's name, a missing one
    is empty.
    """
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
    """What the peer says of this run, the first sentence of the overview first."""
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
    """A finding for each sentence that may be read as a cause; its share is the first percentage in it."""
    for text in texts:
        causes = next((causes for phrase, causes in SENTENCES if phrase in text), ())
        if causes:
            share = _PERCENT.search(text)
            yield _finding(causes, float(share[1]) / 100 if share else LEAST, text)


def _largest_part(averages: Mapping[str, Any], step_ms: float) -> Iterator[dict[str, Any]]:
    """The largest part of the mean step, if a cause has its name."""
    times = {key: float(averages.get(key) or 0.0) for key in PARTS}
    key = max(times, key=lambda one: times[one])
    if step_ms and times[key] and PARTS[key]:
        yield _finding(PARTS[key], times[key] / step_ms, f"{key} is the largest part of the step.")


def _largest_operation(page: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """The operation that takes most time of all that is not idle, if it speaks of a cause."""
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


def asked(run_dir: Path) -> dict[str, list[Table]]:
    """The peer's tables of a run; the run's folder stays as it is, for the peer writes beside the files that
    it reads.
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
    """Write the answers of a folder's jobs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.exam.peer", description="what xprof says of the exam's jobs"
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="peer.json", help="the file that each job's answer is written to")
    options = parser.parse_args()
    for truth in sorted(options.folder.glob("*/truth.json")):
        (run_dir,) = (truth.parent / "plugins" / "profile").iterdir()
        found = answer(asked(run_dir))
        (truth.parent / options.name).write_text(json.dumps(found, indent=1), "utf-8")
        print(
            f"{truth.parent.name}: {', '.join(one['cause'] for one in found['findings']) or found['level']}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
