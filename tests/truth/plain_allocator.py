"""PyTorch's memory snapshots counted by plain loops over the pickle, for comparison with the page. Reads only
files that the tests have written themselves.
"""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

LIBRARIES = ("/site-packages/", "??")
_GROWS, _SHRINKS = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")


def place(frames: list[dict[str, Any]]) -> str:
    """The innermost frame of the program."""
    own = [frame for frame in frames if not any(part in frame["filename"] for part in LIBRARIES)]
    return "{name} {filename}:{line}".format(**(own or frames)[0]) if frames else "(no stack recorded)"


def history(path: Path, device: int) -> dict[str, Any]:
    """Levels backwards from the blocks in the segments; contents forwards, block by block."""
    snapshot = pickle.loads(path.read_bytes())
    entries = [one for one in snapshot["device_traces"][device] if one["action"] != "snapshot"]
    segments = [one for one in snapshot["segments"] if one["device"] == device]
    blocks = [block for one in segments for block in one["blocks"] if block["state"] != "inactive"]
    used = sum(block["requested_size"] for block in blocks)
    reserved = sum(one["total_size"] for one in segments)
    levels: list[tuple[int, int, int]] = []
    for entry in reversed(entries):
        levels.append((entry["time_us"] - entries[0]["time_us"], used, reserved))
        size, action = entry["size"], entry["action"]
        used += (action == "free_completed") * size - (action == "alloc") * size
        reserved += (action in _SHRINKS) * size - (action in _GROWS) * size
    levels.reverse()
    peak = max(range(len(levels)), key=lambda i: (levels[i][1], i))
    return {
        "levels": levels,
        "peak": peak,
        "at_peak": _contents(entries[: peak + 1], used),
        "end": _contents(entries, used),
        "kept": _kept(entries),
        "failures": [
            (entry["size"], entry["device_free"], place(entry["frames"]), levels[i][1], levels[i][2])
            for i, entry in enumerate(entries)
            if entry["action"] == "oom"
        ],
    }


def _contents(entries: list[dict[str, Any]], before: int) -> dict[str, int]:
    """Bytes by place after the entries; `before` bytes were there at their start."""
    there: dict[int, tuple[str, int]] = {}
    for entry in entries:
        if entry["action"] == "alloc":
            there[entry["addr"]] = place(entry["frames"]), entry["size"]
        elif entry["action"] == "free_completed":
            if entry["addr"] in there:
                del there[entry["addr"]]
            else:
                before -= entry["size"]
    sizes = Counter[str]()
    for where, size in there.values():
        sizes[where] += size
    if before:
        sizes["before"] = before
    return dict(sizes)


def _kept(entries: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """(bytes, blocks) by place that the program has not freed."""
    there: dict[int, tuple[str, int]] = {}
    for entry in entries:
        if entry["action"] == "alloc":
            there[entry["addr"]] = place(entry["frames"]), entry["size"]
        elif entry["action"] == "free_requested":
            there.pop(entry["addr"], None)
    sizes, numbers = Counter[str](), Counter[str]()
    for where, size in there.values():
        sizes[where] += size
        numbers[where] += 1
    return {where: (size, numbers[where]) for where, size in sizes.items()}
