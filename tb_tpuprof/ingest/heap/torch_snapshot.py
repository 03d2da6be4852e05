"""PyTorch's memory snapshot (`torch.cuda.memory._dump_snapshot`) → a Heap.

    {"segments": [{"device", "total_size", "blocks": [{"size", "requested_size", "state", "frames"}]}]}

A segment is a piece of a device's memory that the allocator holds; its blocks are `active_allocated`,
`active_pending_free` (freed, but still used by a stream) or `inactive` (free). Frames, innermost first, are
{"name", "filename", "line"} and only there if the history was recorded. Versions before 2.1 have them in the
first entry of the block's "history".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.heap.pickles import Unreadable, read_pickle
from tb_tpuprof.trace.heap import Heap, Pool, stacks_of

MAX_BLOCKS, MAX_FRAMES, MAX_DEPTH = 5_000_000, 5_000_000, 1000
_MOST_BYTES = 2**60
_KINDS = {"active_allocated": "allocated", "active_pending_free": "freed, in use by a stream"}
_FREE = "inactive"
_SNAPSHOTS = (
    "Save it with torch.cuda.memory._dump_snapshot. Pickles of anything but plain data are never opened."
)


def read_torch_snapshot(data: bytes, path: str) -> Heap:
    """The memory in a snapshot's bytes. Raises TraceFormatError, and NotATrace for other pickles."""
    try:
        snapshot = read_pickle(data)
    except Unreadable as error:
        if error.what.startswith("holds more"):
            raise NotATrace(path, "a Python pickle that holds more than plain data", _SNAPSHOTS) from None
        raise TraceFormatError(path, error.position, error.what, "Save the snapshot again.") from None
    segments = snapshot.get("segments") if isinstance(snapshot, dict) else None
    if not isinstance(segments, list):
        raise NotATrace(path, "a Python pickle, but not PyTorch's memory snapshot", _SNAPSHOTS)
    reader = _Reader(path)
    for segment in segments:
        reader.read(segment)
    return reader.heap()


class _Reader:
    """What was read of the segments so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: dict[tuple[int, str, int], list[int]] = {}
        self.pools: dict[int, list[int]] = {}
        self.frames: dict[tuple[str, str, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.stack_of_list: dict[int, int] = {}
        self.n_blocks = self.n_frames = 0

    def read(self, segment: Any) -> None:
        """Count a segment and its blocks; parts that are not of the expected form are left out."""
        if not isinstance(segment, dict):
            return
        device = _whole(segment.get("device"))
        pool = self.pools.setdefault(device, [0, 0, 0, 0])
        pool[0] += _whole(segment.get("total_size"))
        for block in _dicts(segment.get("blocks")):
            self.n_blocks += 1
            if self.n_blocks > MAX_BLOCKS:
                raise TraceFormatError(self.path, -1, f"has more than {MAX_BLOCKS:,} blocks")
            size, state = _whole(block.get("size")), block.get("state")
            if state == _FREE:
                pool[3] = max(pool[3], size)
            elif isinstance(state, str):
                pool[1] += size
                pool[2] += _whole(block.get("requested_size", size))
                row = (device, _KINDS.get(state, state[:100]), self._stack(block))
                counted = self.rows.setdefault(row, [0, 0])
                counted[0] += 1
                counted[1] += size

    def _stack(self, block: dict[str, Any]) -> int:
        frames = block.get("frames")
        if not isinstance(frames, list):
            history = next(_dicts(block.get("history")), {})
            frames = history.get("frames")
        if not isinstance(frames, list):
            frames = []
        # Blocks share their lists of frames, which live as long as the snapshot.
        if id(frames) not in self.stack_of_list:
            self.n_frames += len(frames)
            if self.n_frames > MAX_FRAMES:
                raise TraceFormatError(self.path, -1, f"has more than {MAX_FRAMES:,} stack frames")
            stack = tuple(self._frame(frame) for frame in _dicts(frames[:MAX_DEPTH]))
            number = self.stacks.setdefault(stack, len(self.stacks))
            if not frames:
                return number
            self.stack_of_list[id(frames)] = number
        return self.stack_of_list[id(frames)]

    def _frame(self, frame: dict[str, Any]) -> int:
        key = (_text(frame.get("name")), _text(frame.get("filename")), _whole(frame.get("line")))
        return self.frames.setdefault(key, len(self.frames))

    def heap(self) -> Heap:
        """The memory of all segments."""
        devices = {device: i for i, device in enumerate(sorted(self.pools))}
        kinds = {kind: i for i, kind in enumerate(dict.fromkeys(kind for _, kind, _ in self.rows))}
        columns = ((devices[device], kinds[kind], stack) for device, kind, stack in self.rows)
        device, kind, stack = np.array([*columns], np.int32).reshape(-1, 3).T
        counts = [(n, min(size, 2 * _MOST_BYTES)) for n, size in self.rows.values()]
        n_blocks, size = np.array(counts, np.int64).reshape(-1, 2).T
        return Heap(
            "PyTorch",
            device,
            kind,
            stack,
            n_blocks,
            size,
            tuple(f"GPU {number}" for number in devices),
            tuple(kinds),
            stacks_of(list(self.stacks), list(self.frames)),
            tuple(
                Pool(f"GPU {number}", *(min(size, 2 * _MOST_BYTES) for size in self.pools[number]))
                for number in devices
            ),
        )


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    entries: Iterable[Any] = values if isinstance(values, list) else ()
    return (entry for entry in entries if isinstance(entry, dict))


def _whole(value: Any) -> int:
    """A number of bytes, a line or a device; 0 for anything else."""
    return value if type(value) is int and 0 <= value < _MOST_BYTES else 0


def _text(value: Any) -> str:
    return value[:1000] if isinstance(value, str) else ""
