"""Matching events → their totals by name, track, step, argument …: what a pivot table shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.query.arguments import FULL_NAME, ArgumentSource, argument_of
from tb_tpuprof.analysis.query.facts import event_categories, event_modules, event_steps
from tb_tpuprof.analysis.query.matching import HostTimeline
from tb_tpuprof.analysis.query.spans import Parts
from tb_tpuprof.native import sums
from tb_tpuprof.trace.schema import BYTES
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Events = npt.NDArray[np.integer]
KEYS = ("name", "track", "thread", "section", "kind", "host", "step", "category", "module")
ARGUMENT = "arg."
MOST_GROUPS = 100_000  # per host; beyond, those of the least total time are left out


@dataclass(frozen=True)
class Values:
    """A text for each of some events: `of` are codes of `text`, -1 is none."""

    of: Int32s
    n_codes: int
    text: Callable[[int], str]


@dataclass(frozen=True)
class Groups:
    """Groups by text: the number of events, their total and self time, the shortest and longest in ps, and
    the longest event.
    """

    texts: list[str]
    n: Int64s
    total_ps: Int64s
    self_ps: Int64s
    min_ps: Int64s
    max_ps: Int64s
    longest: Int64s
    n_left_out: int = 0


def grouped(host: HostTimeline, parts: Parts, key: str) -> Groups:
    """Totals of the events' parts by a key: one of KEYS, or `arg.NAME`."""
    values = _group_values(host, parts.events, key)
    code = values.of + 1 if (values.of < 0).any() else values.of
    has_none = code is not values.of
    n_codes = values.n_codes + has_none
    found = sums(np.ascontiguousarray(code, np.int32), n_codes, np.arange(len(code)), parts.part_ps)
    self_ps = _summed(code, parts.self_ps, n_codes)
    used = np.flatnonzero(found[0])
    n_left_out = max(len(used) - MOST_GROUPS, 0)
    if n_left_out:
        used = np.sort(used[np.argpartition(-found[1][used], MOST_GROUPS)[:MOST_GROUPS]])
    texts = [values.text(i - has_none) if i >= has_none else "" for i in used.tolist()]
    n, total, low, high, last = (found[row][used] for row in range(5))
    longest = parts.events[last].astype(np.int64) if len(parts.events) else last
    return Groups(texts, n, total, self_ps[used], low, high, longest, n_left_out)


def are_in_group(host: HostTimeline, events: Events, key: str, text: str) -> npt.NDArray[np.bool_]:
    """Whether each of ascending events belongs to the group of this text; the empty one has no value."""
    values = _group_values(host, events, key)
    codes = [
        code for code in np.unique(values.of).tolist() if (values.text(code) if code >= 0 else "") == text
    ]
    return np.isin(values.of, codes)


def _group_values(host: HostTimeline, events: Events, key: str) -> Values:
    return _plain_names(host, events) if key == "name" else values_of(host, events, key)


def _summed(code: Int32s, values: Int64s, n_codes: int) -> Int64s:
    """Exact sums by code: as doubles, sums beyond 2^53 would round."""
    high, low = values >> 26, values & ((1 << 26) - 1)
    parts = [np.bincount(code, weights=part, minlength=n_codes).astype(np.int64) for part in (high, low)]
    result: Int64s = (parts[0] << 26) + parts[1]
    return result


def values_of(host: HostTimeline, events: Events, key: str) -> Values:
    """What a key says of ascending events: a text each."""
    trace, drawn = host.trace, host.drawn
    if key == "name":
        return Values(columns.names(trace, drawn, events), drawn.names.n_names, drawn.names.text)
    if key in ("track", "thread", "section", "kind", "host"):
        return _of_tracks(host, events, key)
    if key in ("step", "category", "module"):
        facts = {"step": event_steps, "category": event_categories, "module": event_modules}[key](trace)
        return Values(columns.codes(drawn, events, facts), len(facts.texts), facts.texts.__getitem__)
    code, texts = argument_values(
        trace, columns.file_rows(drawn, events), key.removeprefix(ARGUMENT), host.source
    )
    return Values(code, len(texts), texts.__getitem__)


def _plain_names(host: HostTimeline, events: Events) -> Values:
    """Names without the number of a step: `train` for `train 7`."""
    trace, drawn = host.trace, host.drawn
    if columns.are_recorded(drawn, events):
        code = trace.event_names[trace.events["metadata"][events]]
    else:
        code = columns.names(trace, drawn, events)
        is_file = events < drawn.derived.first_event
        code[is_file] = trace.event_names[trace.events["metadata"][events[is_file]]]
    return Values(code, drawn.names.n_names, drawn.names.text)


def _of_tracks(host: HostTimeline, events: Events, key: str) -> Values:
    texts: dict[str, int] = {}
    of_line = np.full(max((track.line for track in host.tracks), default=0) + 2, -1, np.int32)
    for track in host.tracks:
        text = {
            "track": f"{host.host} · {track.section} · {track.name}",
            "thread": track.name,
            "section": track.section,
            "kind": track.kind,
            "host": host.host,
        }[key]
        of_line[track.line] = texts.setdefault(text, len(texts))
    names = list(texts)
    return Values(of_line[columns.lines(host.drawn, events)], len(names), names.__getitem__)


def argument_values(
    trace: Trace, rows: Int64s, name: str, source: ArgumentSource
) -> tuple[Int32s, Sequence[str]]:
    """(code of each event's value of an argument, -1 none; the texts): the event's own, else its name's."""
    texts: dict[str, int] = {}
    of_metadata = np.full(len(trace.metadata) + 1, -1, np.int32)
    if name == FULL_NAME:
        ids = trace.metadata["name"].tolist()
        of_metadata[:-1] = [texts.setdefault(trace.strings.get(i), len(texts)) for i in ids]
    else:
        owner, code = _coded(trace.metadata_stats, name, texts)
        of_metadata[owner[::-1]] = code[::-1]
    code = of_metadata[trace.events["metadata"][rows]] if len(rows) else np.empty(0, np.int32)
    if name != FULL_NAME:
        owner, own = _coded(argument_of(trace, name, source), name, texts)
        if len(owner):
            of_event = np.full(trace.n_events, -1, np.int32)
            of_event[owner[::-1]] = own[::-1]
            has_own = of_event[rows] >= 0
            code = np.where(has_own, of_event[rows], code)
    return code.astype(np.int32), list(texts)


def _coded(stats: StatTable, name: str, texts: dict[str, int]) -> tuple[Int32s, Int32s]:
    """Owners of a stat and the code of each value's text."""
    owner, kind, value, size = stats.columns(name)
    code = np.zeros(len(owner), np.int32)
    # Bytes are shown as their size.
    shown = np.where(kind == BYTES, size, value).astype(np.int64)
    for one in np.unique(kind).tolist():
        rows = np.flatnonzero(kind == one)
        distinct, position = np.unique(shown[rows], return_inverse=True)
        codes = [
            texts.setdefault(stats.value_text(number, one, int(number)), len(texts)) for number in distinct
        ]
        code[rows] = np.array(codes, np.int32)[position.reshape(-1)]
    return owner, code
