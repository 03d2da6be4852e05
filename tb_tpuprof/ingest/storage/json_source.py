"""Reads from a Chrome trace what opening it left undecoded: an event's arguments and its stack frames."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.ingest.storage.files import file_state, read_file, read_packed_range
from tb_tpuprof.ingest.storage.source import FileSource, Value
from tb_tpuprof.native import members
from tb_tpuprof.trace.trace import Trace

# Stored among the stats of events and planes: file offsets of the event that ends a slice, and of the file's
# stack frames.
END_POSITION = "(end)"
STACK_FRAMES = "stackFrames"

_SHOWN_ELSEWHERE = frozenset(
    ("ph", "ts", "dur", "pid", "tid", "name", "args", "sf", "esf", "stack", "esstack")
)
_READS = (1 << 12, 1 << 16, 1 << 20, 64 << 20)
_MAX_TEXT = 10_000
_MAX_FRAMES = 256
_MAX_COPIED = 64 * 2**10


class JsonSource(FileSource):
    """Reads from a plain Chrome trace, as long as the file has not changed since it was decoded."""

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All arguments of an event (from both its begin and its end, if it has two), then its other fields
        and its stacks.
        """
        positions = [int(trace.events["position"][event])]
        sparse = trace.event_stats.ints(END_POSITION)
        positions += sparse.value[sparse.owner == event].tolist()
        stats: dict[str, Value] = {}
        objects = [self._object(position) for position in positions if position]
        for fields in objects:
            arguments = fields.get("args")
            pairs = (
                arguments.items()
                if isinstance(arguments, dict)
                else [("args", arguments)]
                if arguments
                else []
            )
            stats.update((name, shown(value)) for name, value in pairs)
        for fields in objects:
            for name, value in fields.items():
                if name not in _SHOWN_ELSEWHERE and value not in (None, ""):
                    stats.setdefault(name, shown(value))
        for fields in objects:
            stats.update(self._stacks(trace, fields))
        return list(stats.items())

    def arguments(
        self, trace: Trace, events: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """(the whole file, int64[n, 6]): starts and sizes of many events' arguments in their begins, in their
        ends, and of their categories.

        Arguments come without braces, categories with quotes; -1 for arguments that exceed 64 KiB or are not
        strict JSON.
        """
        if file_state(self.state.path) != self.state:
            raise StorageError(f"{self.state.path} has changed since it was opened.", "Reload the page.")
        data, _ = read_file(self.state.path)
        begins = members(data, trace.events["position"][events].astype(np.int64), _MAX_COPIED)
        sparse = trace.event_stats.ints(END_POSITION)
        ends = np.full(trace.n_events, -1, np.int64)
        ends[sparse.owner] = sparse.value
        return data, np.concatenate(
            (begins[:, :2], members(data, ends[events], _MAX_COPIED)[:, :2], begins[:, 2:]), axis=1
        )

    def _object(self, position: int) -> dict[str, Any]:
        """The JSON object at a position of the file. Raises TraceFormatError if it cannot be read."""
        for size in _READS:
            data = self.read(position, size)
            try:
                fields, _ = json.JSONDecoder(strict=False).raw_decode(data.decode("utf-8", "replace"))
            except RecursionError:
                break
            except ValueError:
                if len(data) < size:
                    break
                continue
            return fields if isinstance(fields, dict) else {}
        raise TraceFormatError(
            self.state.path,
            position,
            "contains an event that cannot be read (too large, too deep or damaged)",
        )

    def _stacks(self, trace: Trace, fields: dict[str, Any]) -> list[tuple[str, Value]]:
        """(title, text) of the stacks that an event refers to (`sf`, `esf`) or contains (`stack`), innermost
        frame first.
        """
        stacks: list[tuple[str, Value]] = []
        for name in ("stack", "esstack"):
            if isinstance(fields.get(name), list):
                stacks.append((name, "\n".join(str(frame) for frame in fields[name][:_MAX_FRAMES])))
        references = [
            (title, str(fields[name]))
            for name, title in (("sf", "stack"), ("esf", "stack at the end"))
            if name in fields
        ]
        frames = self._frames(trace) if references else {}
        for title, number in references:
            texts: list[str] = []
            while number in frames and len(texts) < _MAX_FRAMES:
                frame = frames[number]
                if not isinstance(frame, dict):
                    break
                texts.append(
                    f"{frame.get('name', '?')} ({frame['category']})"
                    if "category" in frame
                    else str(frame.get("name", "?"))
                )
                number = str(frame.get("parent", ""))
            if texts:
                stacks.append((title, "\n".join(texts)))
        return stacks

    def _frames(self, trace: Trace) -> dict[str, Any]:
        """The file's `stackFrames` by id."""
        for _plane, position, size in trace.plane_stats.spans(STACK_FRAMES):
            try:
                frames = json.loads(self.read(position, size).decode("utf-8", "replace"), strict=False)
            except (ValueError, RecursionError):
                return {}
            return frames if isinstance(frames, dict) else {}
        return {}


class PackedJsonSource(JsonSource):
    """Reads from a gzipped Chrome trace, which must be unpacked up to the position."""

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the unpacked file. Raises StorageError if the file is gone or has changed."""
        return read_packed_range(self.state, position, size)

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns an array."""
        return np.frombuffer(self.read(position, size), np.uint8)


def shown(value: object) -> Value:
    """A JSON value as an argument's value: numbers and texts unchanged, everything else as compact JSON,
    truncated if long.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return value[:_MAX_TEXT] if isinstance(value, str) else value
    try:
        return json.dumps(value, ensure_ascii=False)[:_MAX_TEXT]
    except RecursionError:
        return "(nested too deeply)"
