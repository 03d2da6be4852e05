"""The history in PyTorch's memory snapshot (`_record_memory_history`) → a Recording.

    {"segments": [{"device", "total_size", "address",
                   "blocks": [{"size", "requested_size", "address", "state", "frames"}]}],
     "device_traces": [[{"action", "addr", "size", "stream", "time_us", "frames"}], one list per device]}

    alloc              the program gets a block; `size` is what it requested
    free_requested     it gives it back; a stream may still use it
    free_completed     it can be used again
    segment_alloc/map, segment_free/unmap     the allocator takes memory from the device, and returns it
    oom                an allocation of `size` failed; `device_free` is what the device had left
    snapshot, annotate, user_defined          notes: left out

As in c10/core/CachingDeviceAllocator.h and torch/csrc/cuda/Module.cpp. The history is a ring: of a long run
only the last entries are there.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import compress, islice
from typing import Any, NamedTuple

import numpy as np

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.heap.torch_values import MOST_BYTES, StackTable, dicts, whole
from tb_tpuprof.trace.heap_history import (
    ALLOC,
    COMPLETED,
    GROW,
    OOM,
    REQUESTED,
    SHRINK,
    DeviceHistory,
    Recording,
    Survivors,
)
from tb_tpuprof.trace.stacks import Int64s

MAX_ENTRIES, MAX_FRAMES, MAX_DEVICES = 3_000_000, 20_000_000, 1024
_FREE, _PENDING = "inactive", ("active_pending_free", "active_awaiting_free")
_NOTE = -2  # of no event
_CODES = {
    "alloc": ALLOC,
    "free_requested": REQUESTED,
    "free_completed": COMPLETED,
    "segment_alloc": GROW,
    "segment_map": GROW,
    "segment_free": SHRINK,
    "segment_unmap": SHRINK,
    "oom": OOM,
    **dict.fromkeys(("snapshot", "annotate", "user_defined"), _NOTE),
}
_PS_PER_US = 1_000_000
_LONGEST_US = 2**62 // _PS_PER_US  # as picoseconds it fits into 64 bits
_LATEST_US = 2**53


def read_history(snapshot: dict[str, Any], path: str) -> Recording | None:
    """The histories of all devices; None if the snapshot has none. Raises TraceFormatError for one that is
    too long.
    """
    traces = snapshot.get("device_traces")
    if not isinstance(traces, list):
        return None
    reader = _Reader(path)
    for device, entries in enumerate(traces[:MAX_DEVICES]):
        reader.read(device, entries)
    return reader.recording(snapshot.get("segments"))


class _Columns(NamedTuple):
    """A device's entries: µs, action, address, size and stack of each."""

    time_us: Int64s
    action: Int64s
    address: Int64s
    size: Int64s
    stack: Int64s


class _Reader:
    """What was read of the devices' entries so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stacks = StackTable(path, MAX_FRAMES)
        self.entries: dict[int, _Columns] = {}
        self.n_entries = self.n_skipped = 0

    def read(self, device: int, entries: Any) -> None:
        """Add a device's entries; those of no known form are counted."""
        listed = list(islice(dicts(entries), MAX_ENTRIES - self.n_entries + 1))
        self.n_entries += len(listed)
        if self.n_entries > MAX_ENTRIES:
            raise self._too_large(f"has a history of more than {MAX_ENTRIES:,} entries")
        actions = (entry.get("action") for entry in listed)
        codes = [_CODES.get(action, -1) if isinstance(action, str) else -1 for action in actions]
        times = [_microseconds(entry.get("time_us")) for entry in listed]
        code, time_us = np.array(codes, np.int64), np.array(times, np.int64)
        is_usable = (code >= 0) & (time_us >= 0)
        self.n_skipped += int(np.count_nonzero(~is_usable & (code != _NOTE)))
        if is_usable.any():
            used = list(compress(listed, is_usable.tolist()))
            self.entries[device] = self._columns(used, code[is_usable], time_us[is_usable])

    def _columns(self, entries: list[dict[str, Any]], code: Int64s, time_us: Int64s) -> _Columns:
        places = [
            _address(entry.get("device_free"), absent=-1) if is_oom else _address(entry.get("addr"))
            for entry, is_oom in zip(entries, (code == OOM).tolist(), strict=True)
        ]
        sizes = [whole(entry.get("size")) for entry in entries]
        stacks = self.stacks.numbers([entry.get("frames") for entry in entries])
        return _Columns(time_us, code, *(np.array(column, np.int64) for column in (places, sizes, stacks)))

    def recording(self, segments: Any) -> Recording | None:
        """All histories, with the blocks that are in use at their end."""
        if not self.entries:
            return Recording((), self.stacks.columns(), self.n_skipped) if self.n_skipped else None
        start_us = min(int(columns.time_us[0]) for columns in self.entries.values())
        ends = _Ends(self.stacks)
        for segment in dicts(segments):
            ends.read(segment, self.entries)
        devices = tuple(self._history(device, start_us, ends) for device in self.entries)
        return Recording(devices, self.stacks.columns(), self.n_skipped)

    def _history(self, device: int, start_us: int, ends: _Ends) -> DeviceHistory:
        time_us, action, address, size, stack = self.entries[device]
        elapsed = np.clip(time_us - start_us, 0, _LONGEST_US) * _PS_PER_US
        blocks = ends.blocks.get(device, [])
        reserved = ends.reserved.get(device, 0)
        if float(size.sum(dtype=np.float64)) + reserved + sum(row[1] for row in blocks) > MOST_BYTES:
            raise self._too_large("has sizes that add up to more than 64 bits")
        addresses, requested, of_stack = np.array(blocks, np.int64).reshape(-1, 3).T
        return DeviceHistory(
            f"GPU {device}",
            np.maximum.accumulate(elapsed),
            action.astype(np.uint8),
            address,
            size,
            stack.astype(np.int32),
            reserved,
            ends.pending.get(device, 0),
            Survivors(addresses, requested, of_stack.astype(np.int32)),
        )

    def _too_large(self, what: str) -> TraceFormatError:
        remedy = "Record a shorter one: `torch.cuda.memory._record_memory_history(max_entries=…)`."
        return TraceFormatError(self.path, -1, what, remedy)


class _Ends:
    """What the allocator holds when the snapshot is saved, by device."""

    def __init__(self, stacks: StackTable) -> None:
        self.stacks = stacks
        self.blocks: dict[int, list[tuple[int, int, int]]] = {}
        self.reserved: dict[int, int] = {}
        self.pending: dict[int, int] = {}

    def read(self, segment: dict[str, Any], devices: Container[int]) -> None:
        """Add a segment's blocks in use, if its device has a history."""
        device = whole(segment.get("device"))
        if device not in devices:
            return
        self.reserved[device] = self.reserved.get(device, 0) + whole(segment.get("total_size"))
        address = _address(segment.get("address"))
        for block in dicts(segment.get("blocks")):
            size, state = whole(block.get("size")), block.get("state")
            if isinstance(state, str) and state != _FREE:
                requested = whole(block.get("requested_size", size))
                block_address = _address(block.get("address", address))
                row = (block_address, requested, self.stacks.number(block.get("frames")))
                self.blocks.setdefault(device, []).append(row)
                if state in _PENDING:
                    self.pending[device] = self.pending.get(device, 0) + requested
            address += size


def _microseconds(value: Any) -> int:
    """A time in µs since 1970; -1 if there is none."""
    if type(value) is float and 0 <= value < _LATEST_US:
        return int(value)
    return value if type(value) is int and 0 <= value < _LATEST_US else -1


def _address(value: Any, absent: int = 0) -> int:
    """An address, or bytes that are free; `absent` for anything else."""
    return value if type(value) is int and 0 <= value < 2**62 else absent
