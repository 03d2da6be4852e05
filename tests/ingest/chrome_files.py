"""Chrome traces for tests: written as JSON, read by the project, and read once more in the plainest way."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace

Event = dict[str, Any]
US = 10**6  # ps


def x(name: str, ts: Any, dur: Any, tid: Any = 1, **more: Any) -> Event:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": tid, **more}


def meta(what: str, tid: int = 0, pid: int = 7, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def written(folder: Path, content: Any, name: str = "h.trace.json") -> Path:
    """A file of JSON (or of the bytes or text given)."""
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def opened(folder: Path, content: Any, name: str = "h.trace.json") -> Trace:
    """The trace of such a file."""
    return open_trace(str(written(folder, content, name)))


def rows(trace: Trace) -> list[tuple[str, str, str, int, int]]:
    """(plane, line, name, start, duration) of each event, in the trace's order."""
    lines = [trace.plane_names[plane] for plane in trace.lines["plane"]]
    found = []
    for event, line in enumerate(trace.event_line.tolist()):
        name = trace.strings.get(int(trace.event_names[trace.events["metadata"][event]]))
        start, duration = int(trace.events["start_ps"][event]), int(trace.events["duration_ps"][event])
        found.append((lines[line], trace.line_names[line], name, start, duration))
    return found


def loaded(path: Path) -> tuple[list[Event], dict[str, Any]]:
    """(events, the other members) as Python's own parser reads them; numbers with a point are exact."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    whole = json.loads(data, parse_float=Decimal, strict=False)
    if isinstance(whole, list):
        return [event for event in whole if event], {}
    return [event for event in whole.get("traceEvents", []) if event], whole


def ps(value: Any) -> int:
    """Microseconds as picoseconds, to the nearest."""
    return int((Decimal(str(value)) * 10**6 + Decimal("0.5")).to_integral_value(ROUND_FLOOR))


def plain_durations(events: list[Event]) -> dict[str, list[int]]:
    """Durations (ps) of all complete slices (X) and of B … E pairs by name, in the plainest way."""
    found: dict[str, list[int]] = defaultdict(list)
    open_ones: dict[Any, list[Event]] = defaultdict(list)
    last: dict[Any, int] = defaultdict(lambda: -(10**40))
    timed = [event for event in events if event.get("ph") in tuple("XBEiIRP") and "ts" in event]
    for event in sorted(timed, key=lambda event: Decimal(str(event["ts"]))):
        thread = (str(event.get("pid")), str(event.get("tid")))
        end = ps(event["ts"]) + (ps(event.get("dur", 0)) if event["ph"] == "X" else 0)
        last[thread] = max(last[thread], end)
        if event["ph"] == "X":
            found[event["name"]].append(ps(event.get("dur", 0)))
        elif event["ph"] == "B":
            open_ones[thread].append(event)
        elif event["ph"] == "E" and open_ones[thread]:
            begin = open_ones[thread].pop()
            found[begin["name"]].append(ps(event["ts"]) - ps(begin["ts"]))
    for thread, stack in open_ones.items():
        for begin in stack:
            found[begin["name"]].append(last[thread] - ps(begin["ts"]))
    return {name: sorted(values) for name, values in found.items()}


def phases(events: list[Event]) -> Counter[str]:
    """How many events of each phase."""
    return Counter(str(event.get("ph", "")) for event in events)
