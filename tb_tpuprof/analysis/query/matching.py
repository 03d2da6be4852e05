"""A query and a host's timeline → the events that match, recorded and derived ones apart.

Each condition is tested once for each name, line, step or argument's value, which are few, and then looked up
for all events at once. Derived tracks (those that the viewer or a profiler's back end makes of others) tell
the same time again, so their events are never added to the recorded ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.query.arguments import ArgumentSource, Owners, owners_of, passing
from tb_tpuprof.analysis.query.facts import (
    Codes,
    event_categories,
    event_modules,
    event_steps,
    step_numbers,
)
from tb_tpuprof.analysis.query.grammar import Alternatives, Condition, Query, Term
from tb_tpuprof.analysis.query.patterns import TookTooLong
from tb_tpuprof.analysis.query.quantities import Bounds
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline
from tb_tpuprof.analysis.timeline.tracks import Track
from tb_tpuprof.errors import BadQuery
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_KEPT = 4  # selections kept per trace: the page asks several questions about each
_LINE_FIELDS = frozenset(("track", "section", "thread", "kind", "host"))
_THREADS = frozenset(("python", "thread", "tf_data"))


@dataclass(frozen=True)
class HostTimeline:
    """What a query is applied to: a host's trace with its timeline and tracks, its name, the offset of its
    times in the view, and where further arguments come from.
    """

    host: str
    offset_ps: int
    trace: Trace
    drawn: Timeline
    tracks: Sequence[Track]
    source: ArgumentSource


@dataclass(frozen=True)
class Selection:
    """Events that match, ascending, as numbered in the timeline: those on recorded tracks and those on
    derived ones.
    """

    recorded: Int32s
    derived: Int64s


class _Recent:
    """The last few selections of a trace, each computed once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, threading.Lock] = OrderedDict()
        self._results: dict[Hashable, Selection] = {}

    def get(self, key: Hashable, make: Callable[[], Selection]) -> Selection:
        """The kept selection, or a new one."""
        with self._lock:
            lock = self._entries.setdefault(key, threading.Lock())
            self._entries.move_to_end(key)
            while len(self._entries) > _KEPT:
                self._results.pop(self._entries.popitem(last=False)[0], None)
        with lock:
            result = self._results.get(key)
            if result is None:
                result = make()
                with self._lock:
                    if key in self._entries:
                        self._results[key] = result
        return result


@once
def _recent(_trace: Trace) -> _Recent:
    return _Recent()


def select(host: HostTimeline, query: Query, lines: frozenset[int] | None = None) -> Selection:
    """All matching events, or those on some lines. Raises BadQuery for an expression that takes too long."""
    key = (query.terms, host.host, host.offset_ps, lines)
    try:
        return _recent(host.trace).get(key, lambda: _Matcher(host, query, lines).selection())
    except TookTooLong as error:
        condition = next(
            one for one in query.conditions if one.text and one.text.pattern and one.text.text == str(error)
        )
        raise BadQuery(
            query.text,
            condition.position,
            "the expression takes too long on this trace",
            "Look for a part of the text with : instead, or begin the expression with fixed characters.",
        ) from None


class _Matcher:
    def __init__(self, host: HostTimeline, query: Query, lines: frozenset[int] | None) -> None:
        self.host, self.query, self.lines = host, query, lines
        self.trace, self.drawn = host.trace, host.drawn
        self.owners: dict[Condition, Owners] = {}

    def selection(self) -> Selection:
        is_chosen = self._lines(self.query.terms)
        derived_line = np.zeros(len(is_chosen), np.bool_)
        derived_line[[track.line for track in self.host.tracks if track.is_derived]] = True
        n_file_lines = len(self.trace.lines)
        terms = self.query.terms
        recorded = self._events_of(self.drawn.file, terms, is_chosen & ~derived_line)
        of_file = (
            self._events_of(self.drawn.file, terms, is_chosen & derived_line)
            if derived_line[:n_file_lines].any()
            else recorded[:0]
        )
        made = self._events_of(self.drawn.derived, terms, is_chosen)
        return Selection(
            recorded.astype(np.int32),
            np.concatenate((of_file, made + self.drawn.derived.first_event), dtype=np.int64),
        )

    def _lines(self, terms: tuple[Term, ...]) -> Flags:
        """Whether each line, as numbered in the timeline, may have matches."""
        layers = self.drawn.layers
        flags = np.zeros(layers[1].first_line + layers[1].n_lines, np.bool_)
        tracks = [track for track in self.host.tracks if self.lines is None or track.line in self.lines]
        passes = np.ones(len(tracks), np.bool_)
        for condition in filter(_is_of_line, terms):
            assert isinstance(condition, Condition)
            assert condition.text is not None
            texts = [_text_of(condition.field, track, self.host.host) for track in tracks]
            result = passing(condition.text, texts)
            if condition.field == "thread":
                result &= np.array([track.kind in _THREADS for track in tracks], np.bool_)
            passes &= ~result if condition.is_excluded else result
        flags[[track.line for track, is_match in zip(tracks, passes.tolist(), strict=True) if is_match]] = (
            True
        )
        return flags

    def _events_of(self, layer: Layer, terms: tuple[Term, ...], is_chosen: Flags) -> Int64s:
        """Events of the chosen lines of a layer, numbered within it, for which all terms hold."""
        mask = self._holding(layer, terms, is_chosen)
        return np.empty(0, np.int64) if mask is None else np.flatnonzero(mask)

    def _holding(self, layer: Layer, terms: tuple[Term, ...], is_chosen: Flags) -> Flags | None:
        """Whether each event of a layer is on a chosen line and all terms hold; None: there is none."""
        chosen = is_chosen[layer.first_line : layer.first_line + layer.n_lines]
        if not chosen.any() or not layer.n_events:
            return None
        mask = _spread(chosen, layer)
        of_metadata = np.ones(len(self.trace.metadata), np.bool_)
        for term in terms:
            if _is_of_line(term):
                continue
            result = (
                self._tested(term, layer, of_metadata)
                if isinstance(term, Condition)
                else self._any(term, layer, is_chosen)
            )
            if result is not None:
                mask &= ~result if term.is_excluded else result
        if layer is self.drawn.file and not of_metadata.all():
            mask &= self._looked_up(of_metadata)
        return mask

    def _any(self, alternatives: Alternatives, layer: Layer, is_chosen: Flags) -> Flags:
        """Whether each event of the layer, where its line is chosen, passes one of the options."""
        result = np.zeros(layer.n_events, np.bool_)
        for terms in alternatives.options:
            holding = self._holding(layer, terms, is_chosen & self._lines(terms))
            if holding is not None:
                result |= holding
        return result

    def _tested(self, condition: Condition, layer: Layer, of_metadata: Flags) -> Flags | None:
        """Whether each event of the layer passes, before exclusion; None if it was enough to narrow
        `of_metadata`.
        """
        is_file = layer is self.drawn.file
        if condition.field in ("dur", "start", "self"):
            assert condition.bounds is not None
            return _within(condition.bounds, *self._times(condition.field, layer))
        if condition.field in ("step", "category", "module"):
            return self._fact(condition, is_file)
        if not is_file and condition.field == "name":
            return self._derived_names(condition)
        owners = self._owners(condition)
        if not is_file:
            result = self._of_sources(owners)
            return result | self._derived_names(condition) if condition.field == "any" else result
        if not len(owners.events):
            of_metadata &= ~owners.metadata if condition.is_excluded else owners.metadata
            return None
        flags = self._looked_up(owners.metadata)
        flags[owners.events] = True
        return flags

    def _looked_up(self, of_metadata: Flags) -> Flags:
        """The flag of each event's metadata row."""
        classes: npt.NDArray[np.uint8] = classes_of(self.trace.events["metadata"], of_metadata.view(np.uint8))
        return classes.view(np.bool_)

    def _times(self, field: str, layer: Layer) -> tuple[Int64s, int]:
        """The numbers that a condition is about, and what is added to them."""
        if field == "dur":
            return layer.duration_ps, 0
        if field == "start":
            return layer.start_ps, self.host.offset_ps
        events = np.arange(layer.first_event, layer.first_event + layer.n_events)
        return columns.self_times(self.trace, self.drawn, events), 0

    def _fact(self, condition: Condition, is_file: bool) -> Flags:
        if condition.field == "step":
            facts = event_steps(self.trace)
            passes = _steps_pass(facts, condition)
        else:
            facts = (event_categories if condition.field == "category" else event_modules)(self.trace)
            assert condition.text is not None
            passes = passing(condition.text, facts.texts)
        of = facts.of if is_file else facts.of[self.drawn.derived_events.source]
        return classes_of(of, passes.view(np.uint8)).view(np.bool_)  # type: ignore[no-any-return]

    def _owners(self, condition: Condition) -> Owners:
        """What has the name, or the argument, that a condition asks for."""
        if condition not in self.owners:
            names = self._names(condition) if condition.field in ("name", "any") else None
            if condition.field == "name":
                assert names is not None
                self.owners[condition] = names
            else:
                owners = owners_of(self.trace, condition, self.host.source)
                if names is not None:
                    owners = Owners(
                        np.concatenate((owners.events, names.events)), owners.metadata | names.metadata
                    )
                self.owners[condition] = owners
        return self.owners[condition]

    def _names(self, condition: Condition) -> Owners:
        """Metadata rows by their name, and further events by a name of their own (`train 7`)."""
        assert condition.text is not None
        ids, of_row, texts = _names_of_metadata(self.trace)
        passes = passing(condition.text, texts)
        metadata = passes[of_row] if len(ids) else np.zeros(len(self.trace.metadata), np.bool_)
        names = self.drawn.names
        if not len(names.own_event):
            return Owners(np.empty(0, np.int64), metadata)
        own = passing(condition.text, names.more)[names.own_name - len(self.trace.strings)]
        events = names.own_event[own].astype(np.int64)
        return Owners(events[~metadata[self.trace.events["metadata"][events]]], metadata)

    def _derived_names(self, condition: Condition) -> Flags:
        assert condition.text is not None
        made = self.drawn.derived_events
        passes = passing(condition.text, made.texts)
        return np.take(passes, made.name) if len(passes) else np.zeros(len(made.name), np.bool_)

    def _of_sources(self, owners: Owners) -> Flags:
        """Whether the first event of each derived one passes."""
        flags = np.zeros(self.trace.n_events, np.bool_)
        flags[owners.events] = True
        source = self.drawn.derived_events.source
        return flags[source] | owners.metadata[self.trace.events["metadata"][source]]


def _is_of_line(term: Term) -> bool:
    return isinstance(term, Condition) and term.field in _LINE_FIELDS


def _text_of(field: str, track: Track, host: str) -> str:
    if field == "section":
        return track.section
    if field == "kind":
        return track.kind
    return host if field == "host" else track.name


def _spread(chosen: Flags, layer: Layer) -> Flags:
    """Marks the events of the chosen lines."""
    if chosen.all():
        return np.ones(layer.n_events, np.bool_)
    mask = np.zeros(layer.n_events, np.bool_)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        mask[layer.line_offsets[first] : layer.line_offsets[last]] = True
    return mask


def _within(bounds: Bounds, values: Int64s, offset: int) -> Flags:
    shifted = replace(
        bounds,
        low=None if bounds.low is None else bounds.low - offset,
        high=None if bounds.high is None else bounds.high - offset,
    )
    return shifted.contain(values)


def _steps_pass(steps: Codes, condition: Condition) -> Flags:
    """Whether each step passes: by its number, else by its name."""
    result = np.zeros(len(steps.texts), np.bool_)
    numbers = step_numbers(steps.texts)
    if condition.bounds:
        return condition.bounds.contain(numbers) & (numbers >= 0)
    if condition.text:
        result |= passing(condition.text, steps.texts)
    return result


@once
def _names_of_metadata(trace: Trace) -> tuple[Int64s, Int64s, list[str]]:
    """(distinct names of events, the name of each metadata row as an index into these, their texts)."""
    ids, position = np.unique(trace.event_names, return_inverse=True)
    return ids.astype(np.int64), position.reshape(-1), [trace.strings.get(i) for i in ids.tolist()]
