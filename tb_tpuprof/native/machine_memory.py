"""How much memory this process may use: that of the machine, or of its container."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
_UNKNOWN = 8 * 2**30
MEMORY_VARIABLE = "TPUPROF_MEMORY_MB"
_LEAST_KEPT, _MOST_KEPT = 256 * 2**20, 16 * 2**30
_SHARE_KEPT = 4
_BYTES_PER_EVENT = 64  # of columns, while they are sorted
_SHARE_FOR_EVENTS = 0.75


@cache
def machine_memory() -> int:
    """Bytes of memory that this process may use: the least of the machine's and its control groups'."""
    limits = [*_group_limits(_GROUPS, _ROOT), _physical()]
    return min(limits)


def memory_budget() -> int:
    """Bytes that a server keeps of traces, programs, results and graphs, and that a capture's replies take
    at once: TPUPROF_MEMORY_MB, else a quarter of the memory, but at least 256 MiB and at most 16 GiB.
    """
    text = os.environ.get(MEMORY_VARIABLE, "")
    if text.isdecimal():
        return int(text) * 2**20
    return min(max(machine_memory() // _SHARE_KEPT, _LEAST_KEPT), _MOST_KEPT)


def max_events() -> int:
    """How many events fit into the memory while a trace is decoded."""
    return int(machine_memory() * _SHARE_FOR_EVENTS / _BYTES_PER_EVENT)


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return _UNKNOWN


def _group_limits(groups: Path, root: Path) -> list[int]:
    """Limits of this process's control groups and those above them, of version 2 and 1."""
    try:
        lines = groups.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    limits = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        folder = root / "memory" if controllers else root
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        inner = folder / path.lstrip("/")
        for place in (inner, *inner.parents):
            limits += _limit(place / name)
            if place == folder:
                break
    return limits


def _limit(file: Path) -> list[int]:
    """The limit in a file, if it has one: `max` is none."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return []
    return [int(text)] if text.isdecimal() else []
