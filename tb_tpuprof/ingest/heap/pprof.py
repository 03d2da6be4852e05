"""A pprof profile (`profile.proto`) → a Heap.

    Profile   1 sample_type* {1 type, 2 unit}   2 sample*   4 location*   5 function*   6 string_table*
    Sample    1 location_id*   2 value*, one per sample type   3 label* {1 key, 2 text}
    Location  1 id   4 line* {1 function_id, 2 line}, the innermost first
    Function  1 id   2 name   4 filename

JAX writes the sample types allocations (count) and space (bytes), and the labels kind (buffer, executable)
and device. Texts are numbers of the string table.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.xspace.descriptors import Field, message_classes
from tb_tpuprof.trace.heap import Heap
from tb_tpuprof.trace.stacks import stacks_of

MAX_SAMPLES, MAX_FRAMES, MAX_DEPTH = 1_000_000, 5_000_000, 1000
_IN_USE = ("inuse_space", "space")  # of several sizes, the one of what is in use
_MESSAGES: dict[str, tuple[Field, ...]] = {
    "ValueType": ((1, "type", "int64", False), (2, "unit", "int64", False)),
    "Label": ((1, "key", "int64", False), (2, "str", "int64", False)),
    "Sample": (
        (1, "location_id", "uint64", True),
        (2, "value", "int64", True),
        (3, "label", "Label", True),
    ),
    "Line": ((1, "function_id", "uint64", False), (2, "line", "int64", False)),
    "Location": ((1, "id", "uint64", False), (4, "line", "Line", True)),
    "Function": ((1, "id", "uint64", False), (2, "name", "int64", False), (4, "filename", "int64", False)),
    "Profile": (
        (1, "sample_type", "ValueType", True),
        (2, "sample", "Sample", True),
        (4, "location", "Location", True),
        (5, "function", "Function", True),
        # As bytes: a text that is not UTF-8 would fail the whole profile.
        (6, "string_table", "bytes", True),
    ),
}


@cache
def _profile_class() -> Any:
    return message_classes("tb_tpuprof.pprof", _MESSAGES)["Profile"]


def read_pprof(data: bytes, path: str) -> Heap:
    """The memory in a profile's bytes, unpacked. Raises TraceFormatError, also for profiles that are too
    large, and NotATrace for profiles of something else than memory.
    """
    from google.protobuf.message import DecodeError

    try:
        profile = _profile_class().FromString(data)
    except DecodeError:
        raise TraceFormatError(path, -1, "is damaged: it is not a pprof profile") from None
    if len(profile.sample) > MAX_SAMPLES:
        raise TraceFormatError(path, -1, f"has more than {MAX_SAMPLES:,} samples")
    return _Reader(profile, path).heap()


class _Reader:
    """The profile's tables by number."""

    def __init__(self, profile: Any, path: str) -> None:
        self.profile = profile
        self.path = path
        self.texts = [text.decode("utf-8", "replace") for text in profile.string_table]
        self.frames: dict[tuple[str, str, int], int] = {}

    def heap(self) -> Heap:
        size_at, count_at = self._values()
        places = self._places()
        rows: dict[tuple[str, str, tuple[int, ...]], list[int]] = {}
        n_frames = 0
        is_jax = False
        for sample in self.profile.sample:
            values = sample.value
            if len(values) <= size_at:
                continue
            labels = {self.text(label.key): self.text(label.str) for label in sample.label}
            is_jax = is_jax or "device" in labels
            n_frames += len(sample.location_id)
            if n_frames > MAX_FRAMES:
                raise TraceFormatError(self.path, -1, f"has more than {MAX_FRAMES:,} stack frames")
            stack = tuple(
                frame for location in sample.location_id[:MAX_DEPTH] for frame in places.get(location, ())
            )
            row = rows.setdefault((labels.get("device", ""), labels.get("kind", ""), stack), [0, 0])
            row[0] += values[count_at] if 0 <= count_at < len(values) else 1
            row[1] += values[size_at]
        return self._columns(rows, "JAX" if is_jax else "")

    def _columns(self, rows: dict[tuple[str, str, tuple[int, ...]], list[int]], maker: str) -> Heap:
        devices = {device: i for i, device in enumerate(dict.fromkeys(device for device, _, _ in rows))}
        kinds = {kind: i for i, kind in enumerate(dict.fromkeys(kind for _, kind, _ in rows))}
        stacks = {stack: i for i, stack in enumerate(dict.fromkeys(stack for _, _, stack in rows))}
        limit = 2**62
        return Heap(
            maker,
            np.array([devices[device] for device, _, _ in rows], np.int32),
            np.array([kinds[kind] for _, kind, _ in rows], np.int32),
            np.array([stacks[stack] for _, _, stack in rows], np.int32),
            np.array([max(0, min(n, limit)) for n, _ in rows.values()], np.int64),
            np.array([max(0, min(size, limit)) for _, size in rows.values()], np.int64),
            tuple(devices),
            tuple(kinds),
            stacks_of(list(stacks), list(self.frames)),
        )

    def _values(self) -> tuple[int, int]:
        """Positions of the size and of the count in a sample's values; −1: there is no count."""
        types = [(self.text(one.type), self.text(one.unit)) for one in self.profile.sample_type]
        sizes = [i for i, (_, unit) in enumerate(types) if unit == "bytes"]
        if not sizes:
            names = ", ".join(name for name, _ in types[:4] if name) or "nothing"
            raise NotATrace(
                self.path,
                f"a pprof profile of {names[:100]}, not of memory",
                "Open it with pprof. Profiles of memory can be opened here, such as those of "
                "jax.profiler.save_device_memory_profile.",
            )
        size_at = next((i for i in sizes if types[i][0] in _IN_USE), sizes[-1])
        counts = [i for i, (_, unit) in enumerate(types[:size_at]) if unit == "count"]
        return size_at, counts[-1] if counts else -1

    def _places(self) -> dict[int, tuple[int, ...]]:
        """The frames of each location, innermost first: more than one where calls were inlined."""
        functions = {
            function.id: (self.text(function.name), self.text(function.filename))
            for function in self.profile.function
        }
        unknown = ("", "")
        return {
            location.id: tuple(
                self._frame((*functions.get(line.function_id, unknown), max(0, line.line)))
                for line in location.line[:MAX_DEPTH]
            )
            for location in self.profile.location
        }

    def _frame(self, frame: tuple[str, str, int]) -> int:
        return self.frames.setdefault(frame, len(self.frames))

    def text(self, number: int) -> str:
        """A text of the string table; empty if there is none of that number."""
        return self.texts[number] if 0 <= number < len(self.texts) else ""
