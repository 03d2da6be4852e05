"""Our answers on random tf.data pipelines against what was planted and measured: the stage named, the
verdict, the estimated gain.

    python -m tests.truth.tf_data_evaluation [--seed N] [--cases N] [--keep FOLDER]

Runs two sets: the one that the model's margin was set on (its seed is fixed), and one of a fresh seed, which
the model has never seen. Prints both tables. A run whose unprofiled repeats differ by more than 10% was not
quiet: it is counted, and left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_tpuprof.analysis.ops.recommend import THRESHOLDS
from tb_tpuprof.analysis.tf_data.advice import waiting
from tb_tpuprof.analysis.tf_data.finding import by_weight
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, pipelines
from tb_tpuprof.analysis.tf_data.what_if import what_if
from tb_tpuprof.ingest.opening import open_trace
from tests.integration.jobs import environment, python_with

PROGRAM = Path(__file__).parent / "programs" / "tf_data_pairs.py"
CALIBRATION_SEED = 1
CASES = 64
PS_PER_MS = 1e9
_QUIET = 0.1
_NEAR = 0.05  # how far a share may be from the measured one where a threshold lies between them
_NAMED_FROM = 0.1  # share of waiting from which a stage is named
_S_PER_CASE = 60


@dataclass(frozen=True)
class Answer:
    """What was planted in a case, and what we say of it. `error`: of the estimate's middle, as a share of the
    measured time.
    """

    name: str
    is_quiet: bool
    is_named: bool | None
    has_verdict: bool
    is_flagged: bool | None
    refused: str
    error: float | None
    is_inside: bool | None
    text: str


def generated(out: Path, seed: int, cases: int, name: str = "") -> list[dict[str, Any]]:
    """Run the program; what it planted and measured, case by case."""
    out.mkdir(parents=True, exist_ok=True)
    command = [
        python_with("tensorflow"),
        str(PROGRAM),
        str(out),
        str(seed),
        str(cases),
        *([name] if name else []),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=_S_PER_CASE * cases, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    found: list[dict[str, Any]] = json.loads((out / "truth.json").read_text("utf-8"))
    return found


def answer(out: Path, case: Mapping[str, Any]) -> Answer:
    """Our answers for a case."""
    (path,) = (out / case["name"]).rglob("*.xplane.pb")
    trace = open_trace(str(path))
    pipeline = next(one for one in by_weight(trace) if one.kind == "Host")
    assert len(pipelines(trace)) >= 1
    measured = case["profiled"]
    share = max(0.0, measured["latency_ms"] - case["bare_ms"]) / measured["step_ms"]
    waits = waiting(trace, pipeline)
    # Where elements are ready and the caller waits for a processor, no stage is named.
    is_named = _names(pipeline, case["stage"]) if share >= _NAMED_FROM and not waits.is_contended else None
    told = waits.fraction
    has_verdict = told is not None and (waits.severity == _severity(share) or abs(told - share) <= _NEAR)
    is_flagged = bool(waits.severity) if share < THRESHOLDS["input"][0] else None
    refused, error, is_inside, text = "", None, None, ""
    if case["after"] and is_named:
        refused, error, is_inside, text = _gain(trace, pipeline, case)
    told_text = "—" if told is None else f"{told:.0%}"
    text = f"waits {share:.0%}, told {told_text}; {text}"
    return Answer(
        case["name"], _is_quiet(case), is_named, has_verdict, is_flagged, refused, error, is_inside, text
    )


def _names(pipeline: Pipeline, stage: str) -> bool:
    found = pipeline.bottleneck_stage
    return bool(found and re.search(stage, found.long_name))


def _severity(share: float) -> int:
    moderate, high = THRESHOLDS["input"]
    return (share >= moderate) + (share >= high)


def _is_quiet(case: Mapping[str, Any]) -> bool:
    """Whether the repeats without the profiler agree."""
    repeats = ([one["step_ms"] for one in case[key]] for key in ("before", "after"))
    return all(not times or max(times) <= min(times) * (1 + _QUIET) for times in repeats)


def _gain(
    trace: Any, pipeline: Pipeline, case: Mapping[str, Any]
) -> tuple[str, float | None, bool | None, str]:
    """Why there is no estimate; or the error of its middle and whether the measured step lies within it."""
    first, *others = what_if(trace, pipeline)
    if first.kind == "none":
        return first.note, None, None, f"cannot estimate: {first.note}"
    found = next((estimate for estimate in others if estimate.kind == case["change"]), None)
    if found is None or found.step_ps is None:
        why = "the change is not offered" if found is None else "no steps"
        return why, None, None, why
    low, high = (bound / PS_PER_MS for bound in found.step_ps)
    after = statistics.mean(one["step_ms"] for one in case["after"])
    error = (low + high) / 2 / after - 1
    text = f"{case['change']}: {low:.1f} to {high:.1f} ms, measured {after:.1f} ({error:+.0%})"
    return "", abs(error), low <= after <= high, text


def table(title: str, answers: Iterable[Answer]) -> str:
    """The score of a set."""
    found = list(answers)
    quiet = [one for one in found if one.is_quiet]
    errors = [one.error for one in quiet if one.error is not None]
    inside = [one.is_inside for one in quiet if one.is_inside is not None]
    rows = [
        ("pipelines", f"{len(found)}, of these {len(found) - len(quiet)} not quiet and left out below"),
        ("slow stage named", _count(one.is_named for one in quiet)),
        ("verdict right", _count(one.has_verdict for one in quiet)),
        ("healthy ones flagged", _count(one.is_flagged for one in quiet)),
        ("estimates", f"{len(errors)}, {sum(bool(one.refused) for one in quiet)} refused"),
        ("median error", f"{statistics.median(errors):.1%}" if errors else "—"),
        ("measured step inside the interval", _count(inside)),
    ]
    return "\n".join([title, *(f"  {name:36}{value}" for name, value in rows)])


def _count(values: Iterable[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known)} of {len(known)} ({sum(known) / len(known):.0%})" if known else "—"


def evaluated(out: Path, seed: int, cases: int) -> list[Answer]:
    """Run a set and answer it; says each case."""
    found = [answer(out, case) for case in generated(out, seed, cases)]
    for one in found:
        bad = {
            "NOT QUIET": not one.is_quiet,
            "WRONG STAGE": one.is_named is False,
            "WRONG VERDICT": not one.has_verdict,
            "OUTSIDE": one.is_inside is False,
        }
        marks = " ".join(mark for mark, is_bad in bad.items() if is_bad)
        print(f"  {one.name:40}{one.text} {marks}", flush=True)
    return found


def main() -> None:
    """Run both sets and print their tables."""
    parser = argparse.ArgumentParser(description="tf.data answers against planted pipelines")
    parser.add_argument("--seed", type=int, default=None, help="of the fresh set; drawn if left out")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--keep", type=Path, default=None, help="where the profiles are kept")
    options = parser.parse_args()
    fresh = options.seed if options.seed is not None else random.SystemRandom().randrange(10_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        root = options.keep or Path(folder)
        tables = [
            table(f"{title} (seed {seed})", evaluated(root / str(seed), seed, options.cases))
            for title, seed in (("Calibration set", CALIBRATION_SEED), ("Fresh set", fresh))
        ]
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    sys.exit(main())
