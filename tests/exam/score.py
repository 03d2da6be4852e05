"""Holds diagnoses against what was planted and measured, and says how many were right."""

from __future__ import annotations

import importlib
import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Answer = Mapping[str, Any]
PS_PER_S = 1e12
SMALL = 0.05  # findings of a healthy job below this share are no alarm
SUM_ERROR = 0.01
QUIET = 0.3  # a gain is asked for where its measurements differ by less than this part of it
NOTHING, NO_ANSWER = "nothing", "no answer"
_PYTHON = re.compile("python", re.IGNORECASE)
_FIRST_STEP = re.compile(r"\bfirst\b[^.]*\bstep|\bwarm", re.IGNORECASE)


@dataclass(frozen=True)
class Mark:
    """What became of one job. None: not asked of this job."""

    name: str
    label: str
    cause: str
    share: float
    tracer: int
    told: str
    is_right: bool
    why: str
    is_culprit_right: bool | None = None
    is_host_right: bool | None = None
    is_order_right: bool | None = None
    has_gain: bool | None = None
    is_gain_inside: bool | None = None
    gain_error: float | None = None
    step_error: float | None = None
    is_sum_right: bool | None = None
    is_small: bool = (
        False  # the cause took less than findings need, or removing it gained less: left out of all counts
    )
    is_unseen: bool = False  # no event of the trace belongs to the cause: counted apart
    has_verdict: bool = (
        True  # of a healthy job: whether the answer calls it healthy or not, instead of knowing nothing
    )


def mark(truth: Mapping[str, Any], answer: Answer | None) -> Mark:
    """The mark of one diagnosis; `answer` None where there is none."""
    head = {
        "name": truth["name"],
        "label": truth["label"],
        "cause": truth["cause"],
        "share": truth["target"][0],
        "tracer": truth["tracer"],
    }
    gained = truth["gain_s"] / truth["step_s"] if "gain_s" in truth else 1.0
    head["is_small"] = bool(truth["target"][0]) and min(truth.get("share", 1.0), gained) < SMALL
    head["is_unseen"] = is_unseen(truth)
    if answer is None:
        return Mark(**head, told=NO_ANSWER, is_right=False, why="no answer", has_verdict=False)
    findings = answer.get("findings") or []
    told = " or ".join(classes(findings[0])) if findings else NOTHING
    always = {"is_sum_right": sums_to_step(answer), "step_error": _step_error(answer, truth["step_s"])}
    if not truth["cause"]:
        big = [" or ".join(classes(one)) for one in findings if one["share"] >= SMALL]
        why = (
            f"alarm: {', '.join(big)}"
            if big
            else f"level {answer['level']}"
            if answer["level"] != "good"
            else ""
        )
        has_verdict = bool(findings) or answer["level"] != "unknown"
        return Mark(
            **head,
            told=big[0] if big else NOTHING,
            is_right=not why,
            why=why,
            has_verdict=has_verdict,
            **always,
        )
    place, why = 0, ""
    if truth.get("second") and truth.get("second_gain_s", 0.0) > truth.get("gain_s", 0.0):
        place = 1
    is_right = is_class_right(truth, answer, place)
    why = "" if is_right else f"told {told}"
    details = (
        _details(truth, findings, place)
        if findings and is_right and _names(findings[0], truth["accepted"][place])
        else {}
    )
    if details.get("is_culprit_right") is False:
        why = f"named {_culprit_text(findings[0])}, not {truth['culprits'][place]['function']}"
    return Mark(**head, told=told, is_right=is_right, why=why, **details, **always)


def is_unseen(truth: Mapping[str, Any]) -> bool:
    """Whether no event of the trace belongs to the cause: processors that other processes take, or threads
    without Python frames.

    A trace has no scheduling: neither how unlike the times of an operation are, nor how late a pool's tasks
    begin, nor how long waits go on after the last operation tells such jobs from healthy ones. TensorFlow
    records Python's calls for captures from outside alone.
    """
    if truth["cause"] != "contention" or truth.get("second"):
        return False
    has_frames = truth["tracer"] and truth["framework"] == "jax"
    return "other processes" in truth["mechanisms"] or not has_frames


def _details(truth: Mapping[str, Any], findings: Sequence[Mapping[str, Any]], place: int) -> dict[str, Any]:
    """Culprit, host, order and gain of a first finding whose class is right."""
    first, found = findings[0], dict[str, Any]()
    if truth["culprits"][place]["visible"]:
        found["is_culprit_right"] = is_culprit_right(truth["culprits"][place], first.get("culprit") or {})
    if truth["host"]:
        found["is_host_right"] = first.get("host") == truth["host"]
    if truth.get("second"):
        found["is_order_right"] = len(findings) > 1 and _is_told(truth, findings[1], 1 - place)
    measured = truth.get("second_gain_s" if place else "gain_s")
    if measured is not None and truth.get("gain_noise_s", 0.0) < QUIET * measured:
        found |= gain(first.get("gain_ps"), measured, truth.get("gain_noise_s", 0.0))
    return found


def is_class_right(truth: Mapping[str, Any], answer: Answer, place: int = 0) -> bool:
    """Whether the first finding has the planted cause, or says rightly that it was not recorded."""
    findings = answer.get("findings") or []
    first = findings[0] if findings else None
    if truth["cause"] == "warm_up":
        is_calm = not any(one["share"] >= SMALL for one in findings) and bool(
            _FIRST_STEP.search(answer.get("text", ""))
        )
        return (
            is_calm
            if first is None
            else first["cause"] == "warm_up" or (is_calm and first["cause"] != "compilation")
        )
    if first is None:
        return False
    return _is_told(truth, first, place)


def _is_told(truth: Mapping[str, Any], finding: Mapping[str, Any], place: int) -> bool:
    """Whether a finding names the cause of that place, or says that it was not recorded where the trace
    cannot show it.
    """
    return _names(finding, truth["accepted"][place]) or (truth["hidden"][place] and asks_for_python(finding))


def asks_for_python(finding: Mapping[str, Any]) -> bool:
    """Whether it says that the time was not recorded, and that the Python tracer would."""
    return finding["cause"] == "not_recorded" and bool(_PYTHON.search(finding.get("capture_option") or ""))


def classes(finding: Mapping[str, Any]) -> list[str]:
    """The causes that a finding names: one, or several where another program's sentence may be read in
    several ways (`also`).
    """
    return [finding["cause"], *finding.get("also", ())]


def _names(finding: Mapping[str, Any], accepted: Iterable[str]) -> bool:
    return not set(accepted).isdisjoint(classes(finding))


def is_culprit_right(truth: Mapping[str, Any], culprit: Mapping[str, Any]) -> bool:
    """Whether the name is one of those that may be given, and file and line, where given, lead to the
    function.
    """
    names = _spellings(culprit.get("name") or "") & set(truth["names"])
    if not names:
        return False
    file, line = Path(culprit.get("file") or "").name, int(culprit.get("line") or 0)
    own = [place for place in truth["places"] if place["name"] in names]
    if not file:
        return not own or not line or any(_holds(place, line) for place in own)
    if not own:
        known = [place for place in truth["places"] if place["file"] == file]
        return not known or not line or any(_holds(place, line) for place in known)
    return any(place["file"] == file and (not line or _holds(place, line)) for place in own)


def _holds(place: Mapping[str, Any], line: int) -> bool:
    return bool(place["line"] <= line <= place["last_line"])


def _spellings(name: str) -> set[str]:
    """A name as it stands, without brackets, what is in its brackets (`jit(f)`, `Thread-3 (f)`), and its last
    part.
    """
    bare = re.sub(r"\(\)$", "", name.strip())
    inner = re.search(r"\((\w+)\)$", bare)
    return {name, bare, bare.split("::")[-1], bare.split(".")[-1], inner[1] if inner else name}


def _culprit_text(finding: Mapping[str, Any]) -> str:
    culprit = finding.get("culprit") or {}
    return " ".join(str(culprit[key]) for key in ("name", "file", "line") if culprit.get(key)) or "nobody"


def gain(told_ps: Sequence[float] | None, measured_s: float, noise_s: float = 0.0) -> dict[str, Any]:
    """How the told interval lies to the gain as measured, to within its noise; the error of its middle is a
    share of the gain.
    """
    if told_ps is None:
        return {"has_gain": False}
    low, high = (bound / PS_PER_S for bound in told_ps)
    error = abs((low + high) / 2 / measured_s - 1)
    return {
        "has_gain": True,
        "is_gain_inside": low - noise_s <= measured_s <= high + noise_s,
        "gain_error": error,
    }


def sums_to_step(answer: Answer) -> bool | None:
    """Whether the causes' times make the step; None of an answer that divides no step."""
    if answer.get("causes") is None or answer["step_time_ps"] is None:
        return None
    total = sum(one["time_ps"] for one in answer["causes"])
    return bool(abs(total - answer["step_time_ps"]) <= SUM_ERROR * answer["step_time_ps"])


def _step_error(answer: Answer, measured_s: float) -> float | None:
    """How far the step's time is off, as a share of the measured one; None where the answer has none."""
    return None if answer["step_time_ps"] is None else abs(answer["step_time_ps"] / PS_PER_S / measured_s - 1)


def truths(folder: Path) -> list[dict[str, Any]]:
    """What was planted in each job of a folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*/truth.json"))]


def explained(job_folder: Path) -> Answer | None:
    """The diagnosis of this project."""
    why = importlib.import_module("tb_tpuprof.tools.why")
    (run_dir,) = (job_folder / "plugins" / "profile").iterdir()
    found: Answer = why.explain(str(run_dir))
    return found


def ready(name: str) -> Callable[[Path], Answer | None]:
    """Reads diagnoses that another program wrote into each job's folder under that name."""

    def read(job_folder: Path) -> Answer | None:
        path = job_folder / name
        return json.loads(path.read_text("utf-8")) if path.exists() else None

    return read


def marks(folder: Path, answers: Callable[[Path], Answer | None] = explained) -> list[Mark]:
    """The marks of all jobs of a folder."""
    return [mark(truth, answers(folder / truth["name"])) for truth in truths(folder)]


def report(found: Sequence[Mark]) -> str:
    """All of it as Markdown."""
    small, unseen = (
        [one for one in found if one.is_small],
        [one for one in found if one.is_unseen and not one.is_small],
    )
    found = [one for one in found if not one.is_small and not one.is_unseen]
    apart = ", ".join(f"{one.name} (told {one.told})" for one in unseen)
    planted, healthy = [one for one in found if one.cause], [one for one in found if not one.cause]
    causes = list(dict.fromkeys(one.cause for one in sorted(planted, key=lambda one: one.cause)))
    rows = [_row(cause, [one for one in planted if one.cause == cause]) for cause in causes]
    kinds = [
        (f"share {share:.0%}", [one for one in planted if one.share == share])
        for share in sorted({one.share for one in planted})
    ]
    kinds += [
        (f"Python tracer {'on' if level else 'off'}", [one for one in planted if one.tracer == level])
        for level in (0, 1)
    ]
    head = [
        "planted",
        "jobs",
        "cause",
        "culprit",
        "host",
        "order",
        "gain inside",
        "gain given",
        "gain error (median)",
    ]
    sums, errors = (
        [one.is_sum_right for one in found],
        [one.step_error for one in found if one.step_error is not None],
    )
    silent = sum(not one.has_verdict for one in healthy)
    lines = [
        f"Left out, for their cause was measured below {_percent(SMALL)}: "
        f"{', '.join(one.name for one in small) or 'none'}.",
        f"Counted apart, for no event of the trace belongs to their cause: {apart or 'none'}.",
        f"Healthy jobs: {len(healthy)}, false alarms: {sum(not one.is_right for one in healthy) - silent}, "
        f"without a verdict: {silent}.",
        f"Causes sum to the step: {count(sums)}. Step time, median error: "
        f"{_percent(statistics.median(errors)) if errors else '—'}.",
        "",
        *table(head, [*rows, _row("all", planted), *(_row(name, some) for name, some in kinds if some)]),
        "",
        "Confusion (rows: planted, columns: told first):",
        "",
        *confusion(found),
        "",
        "Misses:",
        "",
        *(f"- {one.label}: {one.why}" for one in found if one.why),
    ]
    return "\n".join(lines)


def met(found: Iterable[Mapping[str, Any]]) -> str:
    """Which shares the jobs of a folder really have, beside those they were to have, as Markdown."""
    shares: dict[tuple[str, float], list[float]] = {}
    for one in found:
        for cause, target, key in (
            (one["cause"], one["target"][0], "share"),
            (one["second"], one["target"][1], "second_share"),
        ):
            if target and key in one:
                shares.setdefault((cause, target), []).append(one[key])
    rows = [
        [
            cause,
            _percent(target),
            str(len(some)),
            _percent(min(some)),
            _percent(statistics.median(some)),
            _percent(max(some)),
        ]
        for (cause, target), some in sorted(shares.items())
    ]
    return "\n".join(table(["cause", "target", "jobs", "least", "median", "most"], rows))


def _row(title: str, some: Sequence[Mark]) -> list[str]:
    errors = [one.gain_error for one in some if one.gain_error is not None]
    return [
        title,
        str(len(some)),
        count(one.is_right for one in some),
        count(one.is_culprit_right for one in some),
        count(one.is_host_right for one in some),
        count(one.is_order_right for one in some),
        count(one.is_gain_inside for one in some),
        count(one.has_gain for one in some),
        _percent(statistics.median(errors)) if errors else "—",
    ]


def confusion(found: Iterable[Mark]) -> list[str]:
    """How often each planted cause was told as which."""
    pairs = Counter((one.cause or "healthy", one.told) for one in found)
    rows, columns = sorted({row for row, _ in pairs}), sorted({column for _, column in pairs})
    return table(
        ["", *columns], [[row, *(str(pairs[row, column] or "") for column in columns)] for row in rows]
    )


def count(values: Iterable[bool | None]) -> str:
    """How many of those that were asked for are true."""
    known = [value for value in values if value is not None]
    return f"{sum(known)} of {len(known)} ({_percent(sum(known) / len(known))})" if known else "—"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _percent(value: float) -> str:
    return f"{value:.0%}"
