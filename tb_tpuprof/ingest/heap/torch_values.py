"""Values of PyTorch's snapshots, which may have any type, and their stacks as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.trace.stacks import Stacks, stacks_of

MAX_DEPTH = 1000
MOST_BYTES = 2**60
MOST_CHARACTERS = 1000


def dicts(values: Any) -> Iterator[dict[str, Any]]:
    """The dicts in a list; nothing for other values."""
    entries: Iterable[Any] = values if isinstance(values, list) else ()
    return (entry for entry in entries if isinstance(entry, dict))


def whole(value: Any) -> int:
    """A number of bytes, a line or a device; 0 for anything else."""
    return value if type(value) is int and 0 <= value < MOST_BYTES else 0


def short_text(value: Any) -> str:
    """A text, cut where it is long; empty for anything else."""
    return value[:MOST_CHARACTERS] if isinstance(value, str) else ""


class StackTable:
    """Numbers of the stacks that were read so far.

    Entries share their lists of frames and these their frames, so what was read is recognized by its
    identity: the snapshot must outlive the table.
    """

    def __init__(self, path: str, max_frames: int) -> None:
        self.path = path
        self.max_frames = max_frames
        self.n_frames = 0
        self.frames: dict[tuple[str, str, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.stack_of_list: dict[int, int] = {}
        self.number_of_frame: dict[int, int] = {}

    def numbers(self, lists: list[Any]) -> list[int]:
        """The number of each list of frames. Raises TraceFormatError beyond the limit."""
        read = self.stack_of_list
        return [read[id(frames)] if id(frames) in read else self.number(frames) for frames in lists]

    def number(self, frames: Any) -> int:
        """The number of a list of frames, innermost first. Raises TraceFormatError beyond the limit."""
        if not isinstance(frames, list) or not frames:
            return self.stacks.setdefault((), len(self.stacks))
        number = self.stack_of_list.get(id(frames))
        if number is None:
            self.n_frames += min(len(frames), MAX_DEPTH)
            if self.n_frames > self.max_frames:
                raise TraceFormatError(
                    self.path,
                    -1,
                    f"has more than {self.max_frames:,} stack frames",
                    "Record a shorter history (`max_entries`), or stacks of Python only (`stacks='python'`).",
                )
            stack = self._stack(frames[:MAX_DEPTH])
            number = self.stacks.setdefault(stack, len(self.stacks))
            self.stack_of_list[id(frames)] = number
        return number

    def _stack(self, frames: list[Any]) -> tuple[int, ...]:
        """The numbers of frames; those that are no dicts are left out."""
        try:
            return tuple(map(self.number_of_frame.__getitem__, map(id, frames)))
        except KeyError:  # not all of them were read before
            return tuple(self._frame(frame) for frame in dicts(frames))

    def _frame(self, frame: dict[str, Any]) -> int:
        number = self.number_of_frame.get(id(frame))
        if number is None:
            key = (short_text(frame.get("name")), short_text(frame.get("filename")), whole(frame.get("line")))
            number = self.frames.setdefault(key, len(self.frames))
            self.number_of_frame[id(frame)] = number
        return number

    def columns(self) -> Stacks:
        """The stacks by number."""
        return stacks_of(list(self.stacks), list(self.frames))
