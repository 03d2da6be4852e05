"""Names that a Perfetto trace stores once and refers to by number, per generation of packets."""

from __future__ import annotations

import os

import numpy as np

from tb_tpuprof.ingest.chrome.events import Texts
from tb_tpuprof.ingest.chrome.slices import hash_rows
from tb_tpuprof.ingest.perfetto.packets import INTERNED, Bytes, Ints, Packets, Spans, read_spans
from tb_tpuprof.native import intern, parts

CATEGORIES, NAMES, ARGUMENTS, VALUES = 1, 2, 3, 29  # fields of InternedData
_NUMBER, _TEXT = 1, 2  # of an entry


class Interned:
    """The texts of one field of InternedData; `ids` gives those that packets refer to."""

    def __init__(self, packets: Packets, field: int, texts: Texts) -> None:
        rows = np.flatnonzero(packets.fields[INTERNED].is_bytes)
        messages = packets.fields[INTERNED].at(rows)
        offsets, start, size = parts(packets.data, messages.value, messages.size, field)
        entries = read_spans(packets.data, Spans(start, size), (_NUMBER, _TEXT))
        generation = np.repeat(packets.generation[rows], np.diff(offsets))
        key = hash_rows(generation, entries[_NUMBER].numbers())
        self._keys, first = np.unique(key, return_index=True)
        self._texts = text_ids(packets.data, entries[_TEXT].at(first), texts)

    def ids(self, generation: Ints, number: Spans) -> Ints:
        """The id of each text, -1 for numbers that are absent or unknown in their generation."""
        if not len(self._keys):
            return np.full(len(generation), -1, np.int64)
        sought = hash_rows(generation, number.value)
        place = np.minimum(np.searchsorted(self._keys, sought), len(self._keys) - 1)
        is_known = number.is_number & (self._keys[place] == sought)
        return np.where(is_known, self._texts[place], -1)


def text_ids(data: Bytes, fields: Spans, texts: Texts) -> Ints:
    """Ids of the texts in `fields`, which are added to `texts`; -1 for absent ones."""
    is_there = fields.is_bytes
    if not is_there.any():
        return np.full(len(is_there), -1, np.int64)
    start, size = fields.value[is_there], fields.size[is_there]
    codes, first = intern(data, start, size, int.from_bytes(os.urandom(8), "little"))
    spans = zip(start[first].tolist(), size[first].tolist(), strict=True)
    known = [texts.add(data[a : a + n].tobytes().decode("utf-8", "replace")) for a, n in spans]
    ids = np.full(len(is_there), -1, np.int64)
    ids[is_there] = np.array(known, np.int64)[codes]
    return ids
