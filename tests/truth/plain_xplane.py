"""Counts events of an XSpace file in the plainest way: field by field, with lists and loops, and no code of
this project.

`python -m tests.truth.plain_xplane FILE…` prints the number of events and their time, by plane and name.
"""

from __future__ import annotations

import gzip
import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.plain_protobuf import plain_fields

Value = int | float | str | bytes


@dataclass
class Event:
    """Times in ps; stats by name."""

    name: str
    start_ps: int
    duration_ps: int
    stats: dict[str, Value] = field(default_factory=dict)

    @property
    def end_ps(self) -> int:
        """End in ps."""
        return self.start_ps + self.duration_ps


@dataclass
class Line:
    """A line's events in the file's order; `plane`: the name of its plane."""

    plane: str
    name: str
    events: list[Event]


def lines_of(path: Path) -> list[Line]:
    """All lines of a file."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return [line for number, value in plain_fields(data) if number == 1 for line in _plane(value)]


def _plane(data: bytes) -> list[Line]:
    """XPlane: 2 name, 3 lines, 4 event metadata, 5 stat metadata."""
    fields = list(plain_fields(data))
    name = next((value.decode() for number, value in fields if number == 2), "")
    events = _names([value for number, value in fields if number == 4])
    stats = _names([value for number, value in fields if number == 5])
    return [_line(name, value, events, stats) for number, value in fields if number == 3]


def _names(entries: list[bytes]) -> dict[int, str]:
    """Names by id, of a map to metadata (1 key, 2 value with 1 id and 2 name)."""
    found = {}
    for entry in entries:
        pair = dict(plain_fields(entry))
        metadata = dict(plain_fields(pair.get(2, b"")))
        found[int(pair.get(1, 0))] = metadata.get(2, b"").decode("utf-8", "replace")
    return found


def _line(plane: str, data: bytes, events: dict[int, str], stats: dict[int, str]) -> Line:
    """XLine: 2 name, 3 timestamp_ns, 4 events."""
    fields = list(plain_fields(data))
    name = next((value.decode() for number, value in fields if number == 2), "")
    begin_ps = 1000 * next((value for number, value in fields if number == 3), 0)
    return Line(
        plane, name, [_event(value, begin_ps, events, stats) for number, value in fields if number == 4]
    )


def _event(data: bytes, begin_ps: int, events: dict[int, str], stats: dict[int, str]) -> Event:
    """XEvent: 1 metadata_id, 2 offset_ps, 3 duration_ps, 4 stats."""
    fields = list(plain_fields(data))
    numbers = {number: value for number, value in fields if number != 4}
    found = dict(_stat(value, stats) for number, value in fields if number == 4)
    name = events.get(numbers.get(1, 0), "")
    return Event(name, begin_ps + numbers.get(2, 0), numbers.get(3, 0), found)


def _stat(data: bytes, stats: dict[int, str]) -> tuple[str, Value]:
    """XStat: 1 metadata_id, 2 double, 3 uint64, 4 int64, 5 text, 6 bytes, 7 reference to a name."""
    fields = dict(plain_fields(data))
    name = stats.get(fields.pop(1, 0), "")
    for number, value in fields.items():
        if number == 2:
            return name, float(struct.unpack("<d", value)[0])
        if number == 5:
            return name, value.decode("utf-8", "replace")
        if number == 7:
            return name, stats.get(value, "")
        return name, value
    return name, 0


def union_ps(spans: list[tuple[int, int]]) -> int:
    """Time covered by any of the spans."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def main() -> None:
    """Print the counts of files."""
    for name in sys.argv[1:]:
        found: dict[str, dict[str, list[int]]] = {}
        for line in lines_of(Path(name)):
            for event in line.events:
                row = found.setdefault(line.plane, {}).setdefault(event.name, [0, 0])
                row[0] += 1
                row[1] += event.duration_ps
        print(name, json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
