"""More tracing never makes a diagnosis worse: compares profiles with and without their Python frames.

Two runs of a job differ in more than their tracing. So each profile with Python frames is diagnosed twice, as
recorded and with the frames removed; an answer that is right without them must be right with them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.why import diagnosis, plain
from tests.exam.jobs import PLANTED
from tests.exam.score import Answer, Mark, asks_for_python, is_culprit_right, mark, truths

_HOST, _FRAME = b"/host:", b"$"
_PARTS = {part.name: part for part in PLANTED}


@dataclass(frozen=True)
class Pair:
    """The two answers about one job with their marks, and the aspects in which the one with frames
    is worse.
    """

    label: str
    frames: Mark
    none: Mark
    frames_text: str
    none_text: str
    worse: tuple[str, ...]


def without_frames(data: bytes) -> tuple[bytes, int]:
    """An XSpace without the events of Python functions, and how many those were. All else stays, the
    functions' empty lines too.
    """
    space, n_dropped = xspace_class().FromString(data), 0
    for plane in space.planes:
        if not plane.name.startswith(_HOST):
            continue
        frames = {entry.key for entry in plane.event_metadata if entry.value.name.startswith(_FRAME)}
        for line in plane.lines:
            kept = [event for event in line.events if event.metadata_id not in frames]
            if len(kept) < len(line.events):
                n_dropped += len(line.events) - len(kept)
                _replace(line.events, kept)
        if frames:
            _replace(
                plane.event_metadata, [entry for entry in plane.event_metadata if entry.key not in frames]
            )
    return space.SerializeToString(), n_dropped


def _replace(field: Any, kept: Sequence[Any]) -> None:
    del field[:]
    field.extend(kept)


def diagnosed(run_dir: Path) -> Answer:
    """This project's diagnosis, without the cache on disk."""
    return plain(diagnosis(Session(str(run_dir), cache=False)))


def compared(truth: Mapping[str, Any], job_folder: Path) -> Pair | None:
    """A job's profile with and without its frames; None where it has none."""
    (run_dir,) = (job_folder / "plugins" / "profile").iterdir()
    with tempfile.TemporaryDirectory() as space:
        n_dropped, profile = 0, b""
        for path in sorted(run_dir.glob("*.xplane.pb")):
            data, n = without_frames(path.read_bytes())
            (Path(space) / path.name).write_bytes(data)
            n_dropped, profile = n_dropped + n, profile + data
        if not n_dropped:
            return None
        return pair(truth, diagnosed(run_dir), unseen(truth, profile), diagnosed(Path(space)))


def unseen(truth: Mapping[str, Any], profile: bytes) -> dict[str, Any]:
    """The truth of a job judged by this profile alone: the culprits that it shows, and which causes it
    cannot show.
    """
    culprits = [
        {**one, "visible": one["visible"] and any(name.encode() in profile for name in one["names"])}
        for one in truth["culprits"]
    ]
    hidden = [
        old or _is_hidden(name, truth, profile)
        for old, name in zip(truth["hidden"], truth["mechanisms"], strict=True)
    ]
    return {**truth, "culprits": culprits, "hidden": hidden}


def _is_hidden(mechanism: str, truth: Mapping[str, Any], profile: bytes) -> bool:
    """Whether the profile hides the cause, as in the runner for jobs without the Python tracer."""
    part = _PARTS.get(mechanism)
    if "tf.data" in mechanism and b"Iterator::" not in profile:
        return True
    return part is not None and (part.needs_python or (part.is_async and not truth["annotated"]))


def pair(truth: Mapping[str, Any], frames: Answer, blind: Mapping[str, Any], none: Answer) -> Pair:
    """Both answers, each compared with what its profile can show."""
    marks = mark(truth, frames), mark(blind, none)
    worse = []
    if rank(marks[0], frames) < rank(marks[1], none):
        worse.append("cause")
    elif marks[1].is_right and truth["cause"] and specificity(truth, frames) < specificity(truth, none):
        worse.append("culprit")
    worse += [what for what, before, after in _more(*marks) if before and not after]
    return Pair(truth["label"], *marks, first_finding(frames), first_finding(none), tuple(worse))


def _more(frames: Mark, none: Mark) -> Iterator[tuple[str, bool | None, bool | None]]:
    """Other aspects that may become worse: (name, without frames, with frames)."""
    yield "host", none.is_host_right, frames.is_host_right
    yield "order", none.is_order_right, frames.is_order_right


def rank(result: Mark, answer: Answer) -> int:
    """2: the cause is right; 1: the job has a cause, and the answer requests the Python tracer instead of
    guessing; 0: the cause is wrong.
    """
    first = next(iter(answer.get("findings") or ()), None)
    if result.is_right:
        return 2
    return int(bool(result.cause) and first is not None and asks_for_python(first))


def specificity(truth: Mapping[str, Any], answer: Answer) -> int:
    """How specific the first finding is about a visible culprit.

    1 for the right name, plus 1 each for file and line; 0 without a culprit, -1 for a wrong one.
    """
    first = next(iter(answer.get("findings") or ()), {})
    culprit, visible = first.get("culprit") or {}, [one for one in truth["culprits"] if one["visible"]]
    if not visible or not culprit.get("name"):
        return 0
    return (
        sum(bool(culprit.get(key)) for key in ("name", "file", "line"))
        if any(is_culprit_right(one, culprit) for one in visible)
        else -1
    )


def first_finding(answer: Answer) -> str:
    """The first finding as text; `nothing (LEVEL)` without one."""
    findings = answer.get("findings") or []
    if not findings:
        return f"nothing ({answer['level']})"
    first = findings[0]
    culprit = first.get("culprit") or {}
    title = " ".join(str(culprit[key]) for key in ("name", "file", "line") if culprit.get(key))
    return f"{first['cause']}{f' by `{title}`' if title else ''} ({first['share']:.0%})"


def pairs(folder: Path) -> list[Pair]:
    """The pairs of all jobs of a folder that have frames."""
    compared_jobs = (compared(truth, folder / truth["name"]) for truth in truths(folder))
    return [one for one in compared_jobs if one is not None]


def report(all_pairs: Iterable[Pair]) -> str:
    """The comparison as Markdown. Like the score, it leaves out jobs whose cause turned out small."""
    counted = [one for one in all_pairs if not one.frames.is_small]
    worse = [one for one in counted if one.worse]
    right = [
        sum(mark.is_right for mark in marks)
        for marks in ([one.frames for one in counted], [one.none for one in counted])
    ]
    lines = [
        f"Jobs with Python frames: {len(counted)}. Right with them: {right[0]}, without them: {right[1]}. "
        f"Worse with them: {len(worse)}."
    ]
    for one in worse:
        lines += [
            f"- {one.label}: worse {' and '.join(one.worse)}",
            f"  - without: {one.none_text}",
            f"  - with: {one.frames_text}",
        ]
    return "\n".join(lines)
