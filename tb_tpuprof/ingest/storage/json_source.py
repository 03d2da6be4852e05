"""A Chrome trace's file as a source of what opening left undecoded: an event's arguments and its stack
frames.
"""

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

# Kept with the stats of events and planes: where the event that ends a slice stands, and where the file's
# stack frames do.
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
    """Reads from a plain Chrome trace, as long as the file stays as it was when it was decoded."""

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All arguments of an event (of both its ends, where it has two), then its other fields and its
        stack.
        """
        positions = [int(trace.events["position"][event])]
        sparse = trace.event_stats.ints(END_POSITION)
        positions += sparse.value[sparse.owner == event].tolist()
        found: dict[str, Value] = {}
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
            found.update((name, shown(value)) for name, value in pairs)
        for fields in objects:
            for name, value in fields.items():
                if name not in _SHOWN_ELSEWHERE and value not in (None, ""):
                    found.setdefault(name, shown(value))
        for fields in objects:
            found.update(self._stacks(trace, fields))
        return list(found.items())

    def arguments(
        self, trace: Trace, events: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """(the whole file, int64[n, 6]): where the arguments of many events stand in it, of begins and of
        ends, and their categories.

        Arguments without braces, categories with quotes; -1 for arguments larger than 64 KiB or not strictly
        JSON.
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
        """The JSON object at a position of the file; what can't be read is left out."""
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
            self.state.path, position, "holds an event that cannot be read (too large, too deep or damaged)"
        )

    def _stacks(self, trace: Trace, fields: dict[str, Any]) -> list[tuple[str, Value]]:
        """The stacks that an event refers to (`sf`, `esf`) or holds (`stack`), innermost frame first."""
        found: list[tuple[str, Value]] = []
        for name in ("stack", "esstack"):
            if isinstance(fields.get(name), list):
                found.append((name, "\n".join(str(frame) for frame in fields[name][:_MAX_FRAMES])))
        wanted = [
            (title, str(fields[name]))
            for name, title in (("sf", "stack"), ("esf", "stack at the end"))
            if name in fields
        ]
        frames = self._frames(trace) if wanted else {}
        for title, number in wanted:
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
                found.append((title, "\n".join(texts)))
        return found

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
    """Reads from a gzipped Chrome trace, which has to be unpacked up to the place."""

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the unpacked file. Raises StorageError where the file is gone or has changed."""
        return read_packed_range(self.state, position, size)

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """The same as an array."""
        return np.frombuffer(self.read(position, size), np.uint8)


def shown(value: object) -> Value:
    """A JSON value as an argument's value: numbers and texts as they are, all else as compact JSON, cut where
    it is long.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return value[:_MAX_TEXT] if isinstance(value, str) else value
    try:
        return json.dumps(value, ensure_ascii=False)[:_MAX_TEXT]
    except RecursionError:
        return "(nested too deeply)"
