"""Who allocated what in a Kineto file, counted in the plainest way: Python's JSON parser, lists and loops.

`python plain_modules.py FILE` prints, per memory, bytes by phase and path of modules at the peak.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Key = tuple[str, str]
OUTSIDE = "(outside of modules)"


def events_of(path: Path) -> list[Event]:
    """All events of a file."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    whole = json.loads(data, strict=False)
    return [event for event in whole["traceEvents"] if isinstance(event, dict)]


def spans_of(events: list[Event]) -> dict[tuple[str, str], list[Event]]:
    """Complete events with a name by thread, outer before inner."""
    result: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "python_function", "user_annotation"):
            result[str(event["pid"]), str(event["tid"])].append(event)
    for spans in result.values():
        spans.sort(key=lambda event: (float(event["ts"]), -float(event.get("dur", 0))))
    return result


def stacks_at(spans: list[Event], times: list[float]) -> list[list[Event]]:
    """The events around each of some ascending times, outermost first."""
    result, open_ones, i = [], list[Event](), 0
    for time in times:
        while i < len(spans) and float(spans[i]["ts"]) <= time:
            start = float(spans[i]["ts"])
            open_ones = [one for one in open_ones if float(one["ts"]) + float(one.get("dur", 0)) > start]
            open_ones.append(spans[i])
            i += 1
        open_ones = [one for one in open_ones if float(one["ts"]) + float(one.get("dur", 0)) >= time]
        result.append([*open_ones])
    return result


def forward_of(events: list[Event], spans: dict[tuple[str, str], list[Event]]) -> dict[int, Event]:
    """For each backward operation (by its id()) at the end of an arrow, the forward operation at its
    start.
    """
    begins = {event["id"]: event for event in events if event.get("cat") == "fwdbwd" and event["ph"] == "s"}
    result: dict[int, Event] = {}
    at: dict[tuple[str, str, float], list[Event]] = defaultdict(list)
    for thread, listed in spans.items():
        for span in listed:
            if span["cat"] == "cpu_op":
                at[(*thread, float(span["ts"]))].append(span)
    for event in events:
        if event.get("cat") == "fwdbwd" and event["ph"] == "f" and event["id"] in begins:
            begin = begins[event["id"]]
            targets = at.get((str(event["pid"]), str(event["tid"]), float(event["ts"])), [])
            sources = at.get((str(begin["pid"]), str(begin["tid"]), float(begin["ts"])), [])
            if targets and sources:
                for target in targets:
                    result[id(target)] = sources[0]
    return result


def modules_of(stack: list[Event]) -> str:
    """The path of the modules in a stack."""
    names = [
        event["name"].removeprefix("nn.Module: ")
        for event in stack
        if event["name"].startswith("nn.Module: ")
    ]
    return " › ".join(names)


def keys_of(events: list[Event]) -> dict[int, Key]:
    """(phase, modules) of each allocation, by the event's id()."""
    spans = spans_of(events)
    arrows = forward_of(events, spans)
    marks: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event.get("name") == "[memory]" and event["args"].get("Bytes", 0) > 0:
            marks[str(event["pid"]), str(event["tid"])].append(event)
    result: dict[int, Key] = {}
    for thread, listed in marks.items():
        listed.sort(key=lambda event: float(event["ts"]))
        for mark, stack in zip(
            listed, stacks_at(spans[thread], [float(one["ts"]) for one in listed]), strict=True
        ):
            result[id(mark)] = _key(stack, arrows, spans)
    return result


def _key(stack: list[Event], arrows: dict[int, Event], spans: dict[tuple[str, str], list[Event]]) -> Key:
    if any(event["name"].startswith("Optimizer.step#") for event in stack):
        return "optimizer", OUTSIDE
    tied = [arrows[id(event)] for event in stack if id(event) in arrows]
    is_backward = bool(tied) or any(
        event["name"].startswith("autograd::engine::evaluate_function") for event in stack
    )
    path = modules_of(stack)
    if is_backward and not path and tied:
        source = tied[-1]
        (around,) = stacks_at(spans[str(source["pid"]), str(source["tid"])], [float(source["ts"])])
        path = modules_of(around)
    return "backward" if is_backward else "forward", path or OUTSIDE


def memories(path: Path) -> dict[str, dict[str, Any]]:
    """By device: the peak, and by (phase, modules) bytes allocated, in use at the peak, and kept."""
    events = events_of(path)
    keys = keys_of(events)
    marks = [event for event in events if event.get("name") == "[memory]" and event["args"].get("Bytes")]
    result = {}
    for device in {(one["args"]["Device Type"], one["args"]["Device Id"]) for one in marks}:
        own = [one for one in marks if (one["args"]["Device Type"], one["args"]["Device Id"]) == device]
        own.sort(key=lambda event: float(event["ts"]))
        result[f"{device[0]}:{device[1]}"] = _one_memory(own, keys)
    return result


def _one_memory(marks: list[Event], keys: dict[int, Key]) -> dict[str, Any]:
    levels = [one["args"].get("Total Allocated", 0) for one in marks]
    peak = max(range(len(marks)), key=lambda i: (levels[i], i))
    allocated, n = Counter[Key](), Counter[Key]()
    there: dict[int, tuple[Key, int]] = {}
    at_peak: dict[Key, int] = {}
    for i, mark in enumerate(marks):
        size, address = mark["args"]["Bytes"], mark["args"].get("Addr", 0)
        if size > 0:
            key = keys[id(mark)]
            allocated[key] += size
            n[key] += 1
            there[address] = key, size
        else:
            there.pop(address, None)
        if i == peak:
            at_peak = _summed(there)
    return {
        "peak": levels[peak],
        "allocated": dict(allocated),
        "n": dict(n),
        "at_peak": at_peak,
        "kept": _summed(there),
        "older": levels[peak] - sum(at_peak.values()),
    }


def _summed(there: dict[int, tuple[Key, int]]) -> dict[Key, int]:
    sizes = Counter[Key]()
    for key, size in there.values():
        sizes[key] += size
    return dict(sizes)


if __name__ == "__main__":
    for memory, facts in memories(Path(sys.argv[1])).items():
        print(memory, facts["peak"], facts["older"])
        for key, size in sorted(facts["at_peak"].items(), key=lambda pair: -pair[1])[:20]:
            print(f"  {size:>14,} {key[0]:9} {key[1]}")
