"""An event's name → what such an event is, and what a long one means: the glossary in `glossary.json`.

Entries are searched in the file's order; the first one with a pattern that matches the whole name explains
the event. Entries with `tracks` explain events of these kinds of tracks only, whatever their name; they come
last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_MOST_LETTERS = 400  # of a name; names of C++ templates are longer, and their ends tell nothing


@dataclass(frozen=True)
class Entry:
    """A kind of events. `patterns` are regular expressions of whole names, `examples` names that they match;
    `text` says what such an event is; `source` is where that is documented; `tracks` are kinds of tracks,
    empty for all.
    """

    term: str
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    text: str
    source: str
    tracks: tuple[str, ...] = ()


@cache
def entries() -> tuple[Entry, ...]:
    """All entries, in the order in which they are searched."""
    listed = json.loads(files(__package__).joinpath("glossary.json").read_text("utf-8"))["entries"]
    return tuple(
        Entry(
            entry["term"],
            tuple(entry["patterns"]),
            tuple(entry["examples"]),
            entry["text"],
            entry["source"],
            tuple(entry.get("tracks", ())),
        )
        for entry in listed
    )


@cache
def _matchers() -> tuple[tuple[re.Pattern[str], Entry], ...]:
    return tuple(
        (re.compile("|".join(f"(?:{pattern})" for pattern in entry.patterns)), entry) for entry in entries()
    )


def explained(name: str, track_kind: str = "") -> Entry | None:
    """The entry that explains events of this name on a track of this kind; None if there is none."""
    start = name[:_MOST_LETTERS]
    for matcher, entry in _matchers():
        if entry.tracks and track_kind not in entry.tracks:
            continue
        if matcher.fullmatch(start):
            return entry
    return None
