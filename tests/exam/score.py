"""Compares diagnoses with the planted and measured causes, and counts the right ones."""

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
QUIET = 0.3  # a gain is scored if its measurements differ by less than this fraction of it
NOTHING, NO_ANSWER = "nothing", "no answer"
_PYTHON = re.compile("python", re.IGNORECASE)
_FIRST_STEP = re.compile(r"\bfirst\b[^.]*\bstep|\bwarm", re.IGNORECASE)


@dataclass(frozen=True)
class Mark:
    """The score of one job. None: not scored for this job."""

    name: str
    label: str
    cause: str
    share: float
    tracer: int
    answered: str
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
        False  # the cause, or the gain of removing it, is below the threshold of findings: not counted
    )
    is_unseen: bool = False  # no event of the trace belongs to the cause: counted separately
    has_verdict: bool = True  # of a healthy job: whether the answer judges it at all


def mark(truth: Mapping[str, Any], answer: Answer | None) -> Mark:
    """The mark of one diagnosis; `answer` is None without one."""
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
        return Mark(**head, answered=NO_ANSWER, is_right=False, why="no answer", has_verdict=False)
    findings = answer.get("findings") or []
    answered = " or ".join(classes(findings[0])) if findings else NOTHING
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
            answered=big[0] if big else NOTHING,
            is_right=not why,
            why=why,
            has_verdict=has_verdict,
            **always,
        )
    place, why = 0, ""
    if truth.get("second") and truth.get("second_gain_s", 0.0) > truth.get("gain_s", 0.0):
        place = 1
    is_right = is_class_right(truth, answer, place)
    why = "" if is_right else f"answered {answered}"
    details = (
        _details(truth, findings, place)
        if findings and is_right and _names(findings[0], truth["accepted"][place])
        else {}
    )
    if details.get("is_culprit_right") is False:
        why = f"named {_culprit_text(findings[0])}, not {truth['culprits'][place]['function']}"
    return Mark(**head, answered=answered, is_right=is_right, why=why, **details, **always)


def is_unseen(truth: Mapping[str, Any]) -> bool:
    """Whether no event of the trace belongs to the cause: other processes that take processors, or threads
    without Python frames.

    A trace has no scheduling: such jobs cannot be distinguished from healthy ones by the variance of
    operation times, late starts of a pool's tasks, or waits after the last operation. TensorFlow records
    Python calls only in captures from outside.
    """
    if truth["cause"] != "contention" or truth.get("second"):
        return False
    has_frames = truth["tracer"] and truth["framework"] == "jax"
    return "other processes" in truth["mechanisms"] or not has_frames


def _details(truth: Mapping[str, Any], findings: Sequence[Mapping[str, Any]], place: int) -> dict[str, Any]:
    """Marks for culprit, host, order and gain of a first finding with the right cause."""
    first, result = findings[0], dict[str, Any]()
    if truth["culprits"][place]["visible"]:
        result["is_culprit_right"] = is_culprit_right(truth["culprits"][place], first.get("culprit") or {})
    if truth["host"]:
        result["is_host_right"] = first.get("host") == truth["host"]
    if truth.get("second"):
        result["is_order_right"] = len(findings) > 1 and _is_told(truth, findings[1], 1 - place)
    measured = truth.get("second_gain_s" if place else "gain_s")
    if measured is not None and truth.get("gain_noise_s", 0.0) < QUIET * measured:
        result |= gain(first.get("gain_ps"), measured, truth.get("gain_noise_s", 0.0))
    return result


def is_class_right(truth: Mapping[str, Any], answer: Answer, place: int = 0) -> bool:
    """Whether the first finding has the planted cause, or correctly reports it as not recorded."""
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
    """Whether a finding names the cause of that place, or reports it as not recorded if the trace cannot show
    it.
    """
    return _names(finding, truth["accepted"][place]) or (truth["hidden"][place] and asks_for_python(finding))


def asks_for_python(finding: Mapping[str, Any]) -> bool:
    """Whether the finding reports unrecorded time and recommends the Python tracer."""
    return finding["cause"] == "not_recorded" and bool(_PYTHON.search(finding.get("capture_option") or ""))


def classes(finding: Mapping[str, Any]) -> list[str]:
    """The causes that a finding names: one, or several if another program's sentence is ambiguous
    (`also`).
    """
    return [finding["cause"], *finding.get("also", ())]


def _names(finding: Mapping[str, Any], accepted: Iterable[str]) -> bool:
    return not set(accepted).isdisjoint(classes(finding))


def is_culprit_right(truth: Mapping[str, Any], culprit: Mapping[str, Any]) -> bool:
    """Whether the name is one of the accepted names, and file and line, if present, locate the function."""
    names = _spellings(culprit.get("name") or "") & set(truth["names"])
    if not names:
        return False
    file, line = Path(culprit.get("file") or "").name, int(culprit.get("line") or 0)
    named_places = [place for place in truth["places"] if place["name"] in names]
    if not file:
        return not named_places or not line or any(_holds(place, line) for place in named_places)
    if not named_places:
        places_in_file = [place for place in truth["places"] if place["file"] == file]
        return not places_in_file or not line or any(_holds(place, line) for place in places_in_file)
    return any(place["file"] == file and (not line or _holds(place, line)) for place in named_places)


def _holds(place: Mapping[str, Any], line: int) -> bool:
    return bool(place["line"] <= line <= place["last_line"])


def _spellings(name: str) -> set[str]:
    """Spellings of a name: unchanged, without brackets, the content of its brackets (`jit(f)`, `Thread-3
    (f)`), and its last part.
    """
    bare = re.sub(r"\(\)$", "", name.strip())
    inner = re.search(r"\((\w+)\)$", bare)
    return {name, bare, bare.split("::")[-1], bare.split(".")[-1], inner[1] if inner else name}


def _culprit_text(finding: Mapping[str, Any]) -> str:
    culprit = finding.get("culprit") or {}
    return " ".join(str(culprit[key]) for key in ("name", "file", "line") if culprit.get(key)) or "nobody"


def gain(answered_ps: Sequence[float] | None, measured_s: float, noise_s: float = 0.0) -> dict[str, Any]:
    """The answered interval compared with the measured gain, allowing for noise; the error of its middle is a
    fraction of the gain.
    """
    if answered_ps is None:
        return {"has_gain": False}
    low, high = (bound / PS_PER_S for bound in answered_ps)
    error = abs((low + high) / 2 / measured_s - 1)
    return {
        "has_gain": True,
        "is_gain_inside": low - noise_s <= measured_s <= high + noise_s,
        "gain_error": error,
    }


def sums_to_step(answer: Answer) -> bool | None:
    """Whether the causes' times add up to the step; None for an answer without causes or step time."""
    if answer.get("causes") is None or answer["step_time_ps"] is None:
        return None
    total = sum(one["time_ps"] for one in answer["causes"])
    return bool(abs(total - answer["step_time_ps"]) <= SUM_ERROR * answer["step_time_ps"])


def _step_error(answer: Answer, measured_s: float) -> float | None:
    """Relative error of the step time; None if the answer has none."""
    return None if answer["step_time_ps"] is None else abs(answer["step_time_ps"] / PS_PER_S / measured_s - 1)


def truths(folder: Path) -> list[dict[str, Any]]:
    """The truths of a folder's jobs: what was planted in each."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*/truth.json"))]


def explained(job_folder: Path) -> Answer | None:
    """The diagnosis of this project."""
    why = importlib.import_module("tb_tpuprof.tools.why")
    (run_dir,) = (job_folder / "plugins" / "profile").iterdir()
    answer: Answer = why.explain(str(run_dir))
    return answer


def ready(name: str) -> Callable[[Path], Answer | None]:
    """A reader of diagnoses that another program wrote into each job's folder under that name."""

    def read(job_folder: Path) -> Answer | None:
        path = job_folder / name
        return json.loads(path.read_text("utf-8")) if path.exists() else None

    return read


def marks(folder: Path, answers: Callable[[Path], Answer | None] = explained) -> list[Mark]:
    """The marks of all jobs of a folder."""
    return [mark(truth, answers(folder / truth["name"])) for truth in truths(folder)]


def report(all_marks: Sequence[Mark]) -> str:
    """The score as Markdown."""
    small, unseen = (
        [one for one in all_marks if one.is_small],
        [one for one in all_marks if one.is_unseen and not one.is_small],
    )
    all_marks = [one for one in all_marks if not one.is_small and not one.is_unseen]
    apart = ", ".join(f"{one.name} (answered {one.answered})" for one in unseen)
    planted, healthy = [one for one in all_marks if one.cause], [one for one in all_marks if not one.cause]
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
        [one.is_sum_right for one in all_marks],
        [one.step_error for one in all_marks if one.step_error is not None],
    )
    silent = sum(not one.has_verdict for one in healthy)
    lines = [
        f"Left out because their cause was measured below {_percent(SMALL)}: "
        f"{', '.join(one.name for one in small) or 'none'}.",
        f"Counted separately because no event of the trace belongs to their cause: {apart or 'none'}.",
        f"Healthy jobs: {len(healthy)}, false alarms: {sum(not one.is_right for one in healthy) - silent}, "
        f"without a verdict: {silent}.",
        f"Causes sum to the step: {count(sums)}. Step time, median error: "
        f"{_percent(statistics.median(errors)) if errors else '—'}.",
        "",
        *table(head, [*rows, _row("all", planted), *(_row(name, some) for name, some in kinds if some)]),
        "",
        "Confusion (rows: planted, columns: answered first):",
        "",
        *confusion(all_marks),
        "",
        "Misses:",
        "",
        *(f"- {one.label}: {one.why}" for one in all_marks if one.why),
    ]
    return "\n".join(lines)


def met(all_truths: Iterable[Mapping[str, Any]]) -> str:
    """The measured shares of a folder's jobs next to the target shares, as Markdown."""
    shares: dict[tuple[str, float], list[float]] = {}
    for one in all_truths:
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


def confusion(all_marks: Iterable[Mark]) -> list[str]:
    """How often each planted cause was answered with each cause."""
    pairs = Counter((one.cause or "healthy", one.answered) for one in all_marks)
    rows, columns = sorted({row for row, _ in pairs}), sorted({column for _, column in pairs})
    return table(
        ["", *columns], [[row, *(str(pairs[row, column] or "") for column in columns)] for row in rows]
    )


def count(values: Iterable[bool | None]) -> str:
    """The number of true values among those that were scored."""
    applicable = [value for value in values if value is not None]
    return (
        f"{sum(applicable)} of {len(applicable)} ({_percent(sum(applicable) / len(applicable))})"
        if applicable
        else "—"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _percent(value: float) -> str:
    return f"{value:.0%}"
