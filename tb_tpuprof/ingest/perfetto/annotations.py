"""Debug annotations of track events → arguments as columns.

    DebugAnnotation: 1 number of the name, 2 bool, 3 uint, 4 int, 5 double, 6 text, 7 pointer, 9 JSON,
        10 name, 11 entries, 12 elements, 17 number of the text

Entries of a dict are named `name.key`, elements of an array `name[i]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.ingest.chrome.events import Texts
from tb_tpuprof.ingest.perfetto.interned import Interned, text_ids
from tb_tpuprof.ingest.perfetto.packets import Bytes, Ints, Spans, fixed, read_spans
from tb_tpuprof.native import parts
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.distinct_rows import distinct_rows

_NAME_NUMBER, _BOOL, _UINT, _INT, _DOUBLE, _TEXT, _POINTER, _JSON, _NAME, _TEXT_NUMBER = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    9,
    10,
    17,
)
_ENTRIES, _ELEMENTS = 11, 12
_FIELDS = (_NAME_NUMBER, _BOOL, _UINT, _INT, _DOUBLE, _TEXT, _POINTER, _JSON, _NAME, _TEXT_NUMBER)
_DEEPEST = 8
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Arguments:
    """A row per value: the event, its name and kind, and the value as 64 bits or as the id of a text."""

    event: Ints
    key: Ints
    kind: Ints
    value: Ints


class AnnotationReader:
    """Reads the arguments of events; `generation` is that of each event."""

    def __init__(
        self, data: Bytes, generation: Ints, names: Interned, values: Interned, texts: Texts
    ) -> None:
        self.data = data
        self.generation = generation
        self.names = names
        self.values = values
        self.texts = texts

    def read(self, events: Spans, field: int) -> Arguments:
        """All values of the annotations in a repeated field of the events."""
        event, messages = self._parts(events, np.arange(len(events.size)), field)
        fields = read_spans(self.data, messages, _FIELDS)
        key = self._names(event, fields)
        rows = [self._values(event, key, fields)]
        for _ in range(_DEEPEST):
            event, key, messages = self._inner(event, key, messages)
            if not len(event):
                break
            rows.append(self._values(event, key, read_spans(self.data, messages, _FIELDS)))
        joined = (
            np.concatenate([getattr(part, name) for part in rows])
            for name in ("event", "key", "kind", "value")
        )
        return Arguments(*joined)

    def _parts(self, messages: Spans, owner: Ints, field: int) -> tuple[Ints, Spans]:
        is_there = messages.size >= 0
        start, size = np.where(is_there, messages.value, 0), np.maximum(messages.size, 0)
        offsets, starts, sizes = parts(self.data, start, size, field)
        return np.repeat(owner, np.diff(offsets)), Spans(starts, sizes)

    def _names(self, event: Ints, fields: dict[int, Spans]) -> Ints:
        written = text_ids(self.data, fields[_NAME], self.texts)
        interned = self.names.ids(self.generation[event], fields[_NAME_NUMBER])
        return np.where(written >= 0, written, interned)

    def _inner(self, event: Ints, key: Ints, messages: Spans) -> tuple[Ints, Ints, Spans]:
        """The entries and elements of dicts and arrays, with their whole names."""
        owner = np.arange(len(event))
        of_entry, entries = self._parts(messages, owner, _ENTRIES)
        of_element, elements = self._parts(messages, owner, _ELEMENTS)
        entry_names = self._names(event[of_entry], read_spans(self.data, entries, (_NAME_NUMBER, _NAME)))
        place = np.arange(len(of_element)) - np.searchsorted(of_element, of_element)
        names = [
            self._joined(key[of_entry], entry_names, lambda name: f".{self.texts.get(name)}"),
            self._joined(key[of_element], place, lambda number: f"[{number}]"),
        ]
        both = np.concatenate((of_entry, of_element)).astype(np.int64)
        spans = Spans(
            *(
                np.concatenate(pair)
                for pair in ((entries.value, elements.value), (entries.size, elements.size))
            )
        )
        return event[both], np.concatenate(names), spans

    def _joined(self, above: Ints, part: Ints, text: Callable[[int], str]) -> Ints:
        """Ids of names, each with the part that follows it."""
        pairs, inverse = distinct_rows(above, part)
        ids = [
            self.texts.add((self.texts.get(name) + text(number))[:_LONGEST_NAME])
            for name, number in pairs.tolist()
        ]
        return np.array(ids, np.int64)[inverse]

    def _values(self, event: Ints, key: Ints, fields: dict[int, Spans]) -> Arguments:
        n = len(event)
        kind, value = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        for number, to_kind in ((_UINT, schema.UINT), (_POINTER, schema.UINT), (_INT, schema.INT)):
            is_set = fields[number].is_number
            kind[is_set], value[is_set] = to_kind, fields[number].value[is_set]
        is_set = fields[_DOUBLE].size == 8
        kind[is_set], value[is_set] = schema.DOUBLE, fixed(self.data, fields[_DOUBLE].value[is_set])
        texts = [text_ids(self.data, fields[number], self.texts) for number in (_TEXT, _JSON)]
        texts.append(self.values.ids(self.generation[event], fields[_TEXT_NUMBER]))
        is_set = fields[_BOOL].is_number
        words = np.array([self.texts.add(word) for word in ("false", "true")], np.int64)
        texts.append(np.where(is_set, words[(fields[_BOOL].value != 0).astype(np.intp)], -1))
        for ids in texts:
            kind[ids >= 0], value[ids >= 0] = schema.TEXT, ids[ids >= 0]
        rows = np.flatnonzero((kind >= 0) & (key >= 0))
        return Arguments(event[rows], key[rows], kind[rows], value[rows])
