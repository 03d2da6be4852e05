"""Folders of one job whose hosts were captured by separate commands, seconds apart → one run, if the user
chooses it.

    plugins/profile/2026_11_20_22_13_05/worker-0.xplane.pb   ─┐
    plugins/profile/2026_11_20_22_13_07/worker-1.xplane.pb   ─┴─▶ the run 2026_11_20_22_13_05+07

A joined run's name is the first folder's, then `+` and the end of each further folder's name. It is listed
next to the folders themselves, and only if they fit together: the folders are siblings, their names are times
within 30 s, and no host is in two of them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from tb_tpuprof.errors import RunNotFound

if TYPE_CHECKING:
    from tb_tpuprof.ingest.storage.run_info import RunInfo

NEAR_SECONDS = 30
MARK = "+"
_MOST_FOLDERS = 1024
_NAMED_BY_TIME = re.compile(r"\d{4}[_-]\d\d[_-]\d\d[_-]\d\d[_-]\d\d[_-]\d\d")


def parts_of(name: str) -> list[str]:
    """Names (or paths) of the runs that a joined run's name combines, all different; empty for any other
    name.
    """
    above, slash, last = name.rpartition("/")
    first, *further = last.split(MARK)
    if not first or not further or not all(further) or len(further) >= _MOST_FOLDERS:
        return []
    names = (first, *(first[: max(0, len(first) - len(part))] + part for part in further))
    return [f"{above}{slash}{part}" for part in names] if len(set(names)) == len(names) else []


def joined(name: str, path: str, parts: Sequence[RunInfo]) -> RunInfo:
    """The run that `parts` form together. Raises RunNotFound if they are not one run."""
    objection = _objection(parts)
    if objection:
        raise RunNotFound(name, objection)
    message = f"Captured by {len(parts)} commands within {NEAR_SECONDS} s and joined."
    files = tuple(file for part in parts for file in part.files)
    return replace(parts[0], name=name, path=path, files=files, message=message)


def lookup(name: str, find: Callable[[str], RunInfo]) -> RunInfo:
    """The run of a joined name; `find` returns a part by its name. Raises RunNotFound, or whatever `find`
    raises.
    """
    parts = [find(part) for part in parts_of(name)]
    if not parts:
        raise RunNotFound(name)
    return joined(name, os.path.dirname(parts[0].path) + "/" + name.rpartition("/")[2], parts)


def offers(runs: Iterable[RunInfo]) -> list[RunInfo]:
    """Joined runs of a logdir: one for each longest sequence of folders that fit together."""
    by_folder: dict[tuple[str, str], list[RunInfo]] = {}
    for run in runs:
        if _time_of(run) and run.state == "ok":
            by_folder.setdefault((os.path.dirname(run.path), run.name.rpartition("/")[0]), []).append(run)
    joined_runs = []
    for (folder, _), siblings in by_folder.items():
        for group in _groups(sorted(siblings, key=lambda run: (_time_of(run) or datetime.min, run.name))):
            if len(group) > 1:
                name = _joined_name([run.name for run in group])
                joined_runs.append(joined(name, f"{folder}/{name.rpartition('/')[2]}", group))
    return joined_runs


def _groups(runs: Sequence[RunInfo]) -> list[list[RunInfo]]:
    """Longest sequences of siblings, given in order of time, that form one run. Looks at each host once."""
    groups: list[list[RunInfo]] = []
    hosts: set[str] = set()
    for run in runs:
        names = [file.host for file in run.files]
        group = groups[-1] if groups else []
        is_near = 0 < len(group) < _MOST_FOLDERS and not _objection_to_times([group[0], run])
        if is_near and len(set(names)) == len(names) and hosts.isdisjoint(names):
            group.append(run)
        else:
            groups.append([run])
            hosts = set()
        hosts.update(names)
    return groups


def _objection(parts: Sequence[RunInfo]) -> str:
    """Why runs are not parts of one run; empty if they are."""
    if len({os.path.dirname(part.path) for part in parts}) > 1:
        return "its parts are not in the same folder"
    return _objection_to_times(parts) or _repeated_host(parts)


def _objection_to_times(parts: Sequence[RunInfo]) -> str:
    times = [time for part in parts if (time := _time_of(part))]
    if len(times) < len(parts) or (max(times) - min(times)).total_seconds() > NEAR_SECONDS:
        return f"the names of its parts are not times within {NEAR_SECONDS} s"
    return ""


def _repeated_host(parts: Sequence[RunInfo]) -> str:
    counts = Counter(file.host for part in parts for file in part.files)
    repeated_host = min((host for host, count in counts.items() if count > 1), default=None)
    return "" if repeated_host is None else f"{repeated_host} is in more than one of its parts"


def _time_of(run: RunInfo) -> datetime | None:
    """When a run was captured, if its name is a time and nothing else."""
    name = run.name.rpartition("/")[2]
    if not _NAMED_BY_TIME.fullmatch(name):
        return None
    try:
        return datetime(*(int(part) for part in re.split("[_-]", name)))  # type: ignore[arg-type]
    except ValueError:
        return None


def _joined_name(names: Sequence[str]) -> str:
    """The first name, then of each other name the part that differs, from the start of that field."""
    first, *others = names
    ends = []
    for other in others:
        n_same = next((i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), len(first))
        field_start = (
            max(first.rfind("_", 0, n_same), first.rfind("-", 0, n_same), first.rfind("/", 0, n_same)) + 1
        )
        ends.append(other[field_start:])
    return MARK.join([first, *ends])
