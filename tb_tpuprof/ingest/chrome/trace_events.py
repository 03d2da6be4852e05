"""TensorFlow's Trace protobuf (`.trace`, TensorFlow 1.x and 2.1, Cloud TPU) → raw events, as its later
trace.json would give them.

    Trace: 1 map of devices ─ Device: 1 name, 3 map of resources ─ Resource: 1 name
           4 events ─ TraceEvent: 1 device, 2 resource, 3 name, 9 timestamp (ps), 10 duration (ps), 11 map of
           arguments

The same events were written as trace.json from TensorFlow 2.2 on, so all behind this module treats both
alike. An event's position is that of its tag; 0 where its length is written in more bytes than it needs, and
its arguments cannot be found again.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.chrome.decoder import EventFile, trace_of
from tb_tpuprof.ingest.chrome.events import MAX_EVENTS, WANTED, RawEvents, Texts, times_of
from tb_tpuprof.ingest.storage.source import event_arguments
from tb_tpuprof.native import fields, intern, parts, spans
from tb_tpuprof.native.plain.json_events import COLUMNS, HAS_ARGS, HAS_DURATION, HAS_TIME, VALUE_COLUMNS
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace, TraceSource
from tb_tpuprof.trace.wire import read_varint

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_DEVICES, _EVENTS, _ARGUMENTS = 1, 4, 11
_EVENT_TAG = _EVENTS << 3 | 2
_MOST_PS = 2**61
_MOST_HEADER_BYTES = 11
# Arguments as TensorFlow 2.1 calls them → as trace.json and analyses do.
_RENAMED = {b"long name": b"long_name"}


def decode_trace_events(data: Bytes, path: str, host: str, source: TraceSource) -> Trace:
    """Decode a whole file. Raises TraceFormatError where it is cut off before its first event, or holds too
    many.
    """
    _, starts, sizes = parts(data, _one(0), _one(len(data)), _EVENTS)
    if len(starts) > MAX_EVENTS:
        raise TraceFormatError(
            path,
            -1,
            f"holds {len(starts)} events, more than can be opened at once",
            "Profile for a shorter time.",
        )
    raw = _Reader(data, starts, sizes).raw()
    if raw.bad >= 0 and not len(starts):
        raise TraceFormatError(path, raw.bad, "is cut off or damaged")
    return trace_of(
        raw, EventFile(data, path, host, source, lambda at: event_arguments(_message(data, at)) if at else {})
    )


def _one(value: int) -> Ints:
    return np.array([value], np.int64)


class _Reader:
    """Columns of all events, and of what the devices and resources are called."""

    def __init__(self, data: Bytes, starts: Ints, sizes: Ints) -> None:
        self.data = data
        self.starts = starts
        self.sizes = sizes
        self.texts = Texts([])

    def raw(self) -> RawEvents:
        """The events, then a metadata event for each device and resource that has a name."""
        numbers, found, _, broken = spans(
            self.data, self.starts, self.sizes, np.array([1, 2, 3, 9, 10], np.int64)
        )
        n = len(self.starts)
        device, resource, _, start, duration = np.where(
            found > 0, 0, numbers
        ).T  # bytes where a number belongs
        is_timed = (broken == 0) & (start >= 0)
        names = self._named_lines()
        columns: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(n + len(names), kind) for name, kind in COLUMNS.items()
        }
        columns["at"][:n] = self._positions()
        columns["us"][:n], columns["rest_ps"][:n] = start // 10**6, start % 10**6
        columns["duration_ps"][:n] = np.where((duration >= 0) & (duration < _MOST_PS), duration, 0)
        columns["name"][:n] = self._interned(numbers[:, 2], found[:, 2])
        columns["cat"][:] = -1
        columns["pid"][:n], columns["tid"][:n] = self._decimal(device), self._decimal(resource)
        columns["phase"][:n] = ord("X")
        columns["flags"][:n] = np.where(is_timed, HAS_TIME | HAS_DURATION | HAS_ARGS, 0)
        values = self._with_names(self._arguments(), columns, names, n)
        start_ps, usable, start_us = times_of(columns)
        _, bad = fields(self.data, 0, len(self.data))
        n_left_out = int((~usable[:n]).sum())
        return RawEvents(
            columns, values, self.texts, {}, start_ps, usable, start_us * 1000, int(bad), n_left_out
        )

    def _positions(self) -> Ints:
        """Of each event's tag, 0 where it does not stand where a length of the fewest bytes would put it."""
        n_digits = 1 + sum((self.sizes >= 1 << 7 * i).astype(np.int64) for i in range(1, 9))
        at = self.starts - n_digits - 1
        found: Ints = np.where((at >= 0) & (self.data[np.maximum(at, 0)] == _EVENT_TAG), at, 0)
        return found

    def _interned(self, starts: Ints, sizes: Ints) -> Ints:
        """Ids of the texts at these places, -1 for empty and absent ones."""
        is_absent = sizes <= 0
        starts, sizes = np.where(is_absent, 0, starts), np.maximum(sizes, 0)
        ids, first = intern(self.data, starts, sizes, int.from_bytes(os.urandom(8), "little"))
        places = zip(starts[first].tolist(), sizes[first].tolist(), strict=True)
        known = [self._text(self.data[start : start + size].tobytes()) for start, size in places]
        return (
            np.where(is_absent, -1, np.array(known, np.int64)[ids]) if len(known) else np.empty(0, np.int64)
        )

    def _text(self, text: bytes) -> int:
        return self.texts.add(_RENAMED.get(text, text).decode("utf-8", "replace"))

    def _decimal(self, numbers: Ints) -> Ints:
        """Ids of numbers as texts."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return np.array([self.texts.add(str(number)) for number in distinct.tolist()], np.int64)[
            inverse.reshape(-1)
        ]

    def _arguments(self) -> dict[str, npt.NDArray[Any]]:
        """Those arguments that analyses read, as texts."""
        offsets, starts, sizes = parts(self.data, self.starts, self.sizes, _ARGUMENTS)
        places, found, _, _ = spans(self.data, starts, sizes, np.array([1, 2], np.int64))
        owner = np.repeat(np.arange(len(self.starts), dtype=np.int64), np.diff(offsets))
        key = self._interned(places[:, 0], found[:, 0])
        wanted = np.isin(key, [self.texts.find(name) for name in WANTED])
        value = self._interned(places[wanted, 1], found[wanted, 1])
        kind = np.full(len(value), schema.TEXT)
        columns = {"value": value, "event": owner[wanted], "key": key[wanted], "kind": kind}
        return {name: columns[name].astype(dtype) for name, dtype in VALUE_COLUMNS.items()}

    def _named_lines(self) -> list[tuple[int, int, str]]:
        """(device, resource or -1 for the device itself, name) of all that have a name."""
        found: list[tuple[int, int, str]] = []
        for key, start, size in self._entries(_one(0), _one(len(self.data))):
            found.append((key, -1, self._name(start, size)))
            found += [
                (key, resource, self._name(*place))
                for resource, *place in self._entries(_one(start), _one(size), 3)
            ]
        return [(device, resource, name) for device, resource, name in found if name]

    def _entries(self, starts: Ints, sizes: Ints, number: int = _DEVICES) -> list[tuple[int, int, int]]:
        """(key, position, size) of the entries of a map of messages."""
        _, at, length = parts(self.data, starts, sizes, number)
        values, found, _, _ = spans(self.data, at, length, np.array([1, 2], np.int64))
        keys = np.where(found[:, 0] > 0, 0, values[:, 0])
        return list(
            zip(keys.tolist(), values[:, 1].tolist(), np.maximum(found[:, 1], 0).tolist(), strict=True)
        )

    def _name(self, start: int, size: int) -> str:
        places, found, _, _ = spans(self.data, _one(start), _one(size), _one(1))
        at, length = int(places[0, 0]), max(int(found[0, 0]), 0)
        return self.data[at : at + min(length, 1000)].tobytes().decode("utf-8", "replace")

    def _with_names(
        self,
        values: dict[str, npt.NDArray[Any]],
        columns: dict[str, npt.NDArray[Any]],
        names: list[tuple[int, int, str]],
        n: int,
    ) -> dict[str, npt.NDArray[Any]]:
        """Metadata events behind the n events, and their one argument."""
        add = self.texts.add
        columns["phase"][n:] = ord("M")
        for name, ids in (
            ("pid", [add(str(device)) for device, _, _ in names]),
            ("tid", [add(str(line)) for _, line, _ in names]),
        ):
            columns[name][n:] = ids
        columns["name"][n:] = [add("process_name" if line < 0 else "thread_name") for _, line, _ in names]
        more = {
            "value": [add(name) for _, _, name in names],
            "event": range(n, n + len(names)),
            "key": [add("name")] * len(names),
            "kind": [schema.TEXT] * len(names),
        }
        return {
            name: np.concatenate((values[name], np.array(more[name], dtype)))
            for name, dtype in VALUE_COLUMNS.items()
        }


def _message(data: Bytes, at: int) -> bytes:
    """The event whose tag stands at a position."""
    head = data[at : at + _MOST_HEADER_BYTES].tobytes()
    size, length = read_varint(head, 1)
    return data[at + length : at + length + size].tobytes()
