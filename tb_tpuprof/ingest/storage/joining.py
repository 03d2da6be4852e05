"""Folders of one job whose hosts were captured by separate commands, seconds apart → one run, where somebody
chooses it.

    plugins/profile/2026_11_20_22_13_05/worker-0.xplane.pb   ─┐
    plugins/profile/2026_11_20_22_13_07/worker-1.xplane.pb   ─┴─▶ the run 2026_11_20_22_13_05+07

A joined run's name is the first folder's, then `+` and how each further one's name ends. It is offered beside
the folders themselves, and only where nothing speaks against it: folders side by side, names within 30 s, no
host in two of them.
"""

from __future__ import annotations

import os
import re
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
    """Names (or paths) of the runs that a joined run's name puts together; empty for a name that joins
    nothing.
    """
    above, slash, last = name.rpartition("/")
    first, *further = last.split(MARK)
    if not first or not further or not all(further) or len(further) >= _MOST_FOLDERS:
        return []
    return [
        f"{above}{slash}{part}"
        for part in (first, *(first[: max(0, len(first) - len(part))] + part for part in further))
    ]


def joined(name: str, path: str, parts: Sequence[RunInfo]) -> RunInfo:
    """The run that others make together. Raises RunNotFound where they are not one run."""
    why = _objection(parts)
    if why:
        raise RunNotFound(name, why)
    message = f"Captured by {len(parts)} commands within {NEAR_SECONDS} s, and joined."
    files = tuple(file for part in parts for file in part.files)
    return replace(parts[0], name=name, path=path, files=files, message=message)


def lookup(name: str, find: Callable[[str], RunInfo]) -> RunInfo:
    """The run of a joined name; `find` finds its parts by theirs. Raises RunNotFound, or what
    `find` raises.
    """
    parts = [find(part) for part in parts_of(name)]
    if not parts:
        raise RunNotFound(name)
    return joined(name, os.path.dirname(parts[0].path) + "/" + name.rpartition("/")[2], parts)


def offers(runs: Iterable[RunInfo]) -> list[RunInfo]:
    """Joined runs that runs of a logdir allow: of each row of folders that fit together, all."""
    by_place: dict[tuple[str, str], list[RunInfo]] = {}
    for run in runs:
        if _time_of(run) and run.state == "ok":
            by_place.setdefault((os.path.dirname(run.path), run.name.rpartition("/")[0]), []).append(run)
    found = []
    for (place, _), here in by_place.items():
        rows: list[list[RunInfo]] = []
        for run in sorted(here, key=lambda run: run.name):
            if rows and not _objection([*rows[-1], run]):
                rows[-1].append(run)
            else:
                rows.append([run])
        for row in rows:
            if len(row) > 1:
                name = _joined_name([run.name for run in row])
                found.append(joined(name, f"{place}/{name.rpartition('/')[2]}", row))
    return found


def _objection(parts: Sequence[RunInfo]) -> str:
    """Why runs are not parts of one; empty where nothing speaks against it."""
    if len({os.path.dirname(part.path) for part in parts}) > 1:
        return "its parts do not lie side by side"
    times = [_time_of(part) for part in parts]
    known = [time for time in times if time]
    if len(known) < len(parts) or (max(known) - min(known)).total_seconds() > NEAR_SECONDS:
        return f"the names of its parts are not times within {NEAR_SECONDS} s"
    hosts = [file.host for part in parts for file in part.files]
    twice = sorted({host for host in hosts if hosts.count(host) > 1}) if len(set(hosts)) < len(hosts) else []
    return f"{twice[0]} is in more than one of its parts" if twice else ""


def _time_of(run: RunInfo) -> datetime | None:
    """When a run was captured, if its name is that time and nothing else."""
    name = run.name.rpartition("/")[2]
    if not _NAMED_BY_TIME.fullmatch(name):
        return None
    try:
        return datetime(*(int(part) for part in re.split("[_-]", name)))  # type: ignore[arg-type]
    except ValueError:
        return None


def _joined_name(names: Sequence[str]) -> str:
    """The first name, then of each other what follows the fields that are the first one's too."""
    first, *others = names
    ends = []
    for other in others:
        same = next((i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), len(first))
        field = max(first.rfind("_", 0, same), first.rfind("-", 0, same), first.rfind("/", 0, same)) + 1
        ends.append(other[field:])
    return MARK.join([first, *ends])
