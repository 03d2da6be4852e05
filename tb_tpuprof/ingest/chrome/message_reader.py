"""What both kinds of Trace protobufs share: texts in messages, and the names of devices and resources.

map of devices ─ Device: 1 name, 3 map of resources ─ Resource: 1 name
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import Texts
from tb_tpuprof.native import intern, parts, spans
from tb_tpuprof.native.plain.json_events import VALUE_COLUMNS
from tb_tpuprof.trace import schema

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Values = dict[str, npt.NDArray[Any]]
DEVICES = 1
_MOST_NAME_BYTES = 1000


class NamedLine(NamedTuple):
    """The name of a device (`line` -1) or of one of its resources."""

    device: int
    line: int
    name: str


class Arguments(NamedTuple):
    """Arguments of events: the position of each event, and (name, kind, value) with ids of texts."""

    position: Ints
    key: Ints
    kind: Ints
    value: Ints


def one(value: int) -> Ints:
    """An array of one number."""
    return np.array([value], np.int64)


class MessageReader:
    """Reads texts and names from a file's bytes; `texts` collects them, `renamed` replaces some of them."""

    def __init__(self, data: Bytes, renamed: Mapping[bytes, bytes] = MappingProxyType({})) -> None:
        self.data = data
        self.renamed = renamed
        self.texts = Texts([])

    def interned(self, starts: Ints, sizes: Ints) -> Ints:
        """Ids of the texts at these positions, -1 for empty and absent ones."""
        is_absent = sizes <= 0
        starts, sizes = np.where(is_absent, 0, starts), np.maximum(sizes, 0)
        ids, first = intern(self.data, starts, sizes, int.from_bytes(os.urandom(8), "little"))
        distinct = zip(starts[first].tolist(), sizes[first].tolist(), strict=True)
        text_ids = [self._text(self.data[start : start + size].tobytes()) for start, size in distinct]
        return (
            np.where(is_absent, -1, np.array(text_ids, np.int64)[ids])
            if len(text_ids)
            else np.empty(0, np.int64)
        )

    def _text(self, text: bytes) -> int:
        return self.texts.add(self.renamed.get(text, text).decode("utf-8", "replace"))

    def decimal(self, numbers: Ints) -> Ints:
        """Ids of numbers written as texts."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return np.array([self.texts.add(str(number)) for number in distinct.tolist()], np.int64)[
            inverse.reshape(-1)
        ]

    def named_lines(self, start: int, size: int) -> list[NamedLine]:
        """All devices and resources of a Trace message that have a name."""
        lines: list[NamedLine] = []
        for device, *span in self._entries(one(start), one(size), DEVICES):
            lines.append(NamedLine(device, -1, self._name(*span)))
            lines += [
                NamedLine(device, resource, self._name(*place))
                for resource, *place in self._entries(one(span[0]), one(span[1]), 3)
            ]
        return [line for line in lines if line.name]

    def _entries(self, starts: Ints, sizes: Ints, number: int) -> list[tuple[int, int, int]]:
        """(key, position, size) of the entries of a map of messages."""
        _, entry_starts, entry_sizes = parts(self.data, starts, sizes, number)
        values, value_sizes, _, _ = spans(self.data, entry_starts, entry_sizes, np.array([1, 2], np.int64))
        keys = np.where(value_sizes[:, 0] > 0, 0, values[:, 0])
        return list(
            zip(keys.tolist(), values[:, 1].tolist(), np.maximum(value_sizes[:, 1], 0).tolist(), strict=True)
        )

    def _name(self, start: int, size: int) -> str:
        positions, name_sizes, _, _ = spans(self.data, one(start), one(size), one(1))
        position, size_bytes = int(positions[0, 0]), max(int(name_sizes[0, 0]), 0)
        return (
            self.data[position : position + min(size_bytes, _MOST_NAME_BYTES)]
            .tobytes()
            .decode("utf-8", "replace")
        )

    def with_names(self, values: Values, columns: Values, names: list[NamedLine], n: int) -> Values:
        """Fills the metadata events after the n events in `columns`; returns `values` with their one argument
        appended.
        """
        add = self.texts.add
        columns["phase"][n:] = ord("M")
        columns["pid"][n:] = [add(str(name.device)) for name in names]
        columns["tid"][n:] = [add(str(name.line)) for name in names]
        columns["name"][n:] = [add("process_name" if name.line < 0 else "thread_name") for name in names]
        name_values = {
            "value": [add(name.name) for name in names],
            "event": range(n, n + len(names)),
            "key": [add("name")] * len(names),
            "kind": [schema.TEXT] * len(names),
        }
        return {
            name: np.concatenate((values[name], np.array(name_values[name], dtype)))
            for name, dtype in VALUE_COLUMNS.items()
        }
