"""What PyTorch's caching allocator did, event by event: columns, as a snapshot's file has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.stacks import Int32s, Int64s, Stacks

# Codes of actions. ALLOC … COMPLETED are of blocks, GROW and SHRINK of segments.
ALLOC, REQUESTED, COMPLETED, GROW, SHRINK, OOM = range(6)
ACTIONS = (
    "allocated",
    "freed by the program",
    "free for reuse",
    "segment taken from the device",
    "segment returned to the device",
    "out of memory",
)


@dataclass(frozen=True)
class Survivors:
    """Blocks in use when the snapshot was saved: address, bytes requested, and stack."""

    address: Int64s
    size_bytes: Int64s
    stack: Int32s


@dataclass(frozen=True)
class DeviceHistory:
    """What the allocator of one device did, in the order of the file.

    `time_ps` never falls and counts from the first event of all devices. `size_bytes` are what the program
    requested of blocks, and what segments grew or shrank by. `address` of an OOM is the memory that the
    device reported as free, −1 if it did not. `end_reserved_bytes`: total size of the segments when the
    snapshot was saved, `end_pending_bytes`: the part of the survivors that the program has freed and a stream
    still uses.
    """

    device: str
    time_ps: Int64s
    action: npt.NDArray[np.uint8]
    address: Int64s
    size_bytes: Int64s
    stack: Int32s
    end_reserved_bytes: int
    end_pending_bytes: int
    survivors: Survivors

    def __len__(self) -> int:
        return len(self.action)

    @property
    def size_in_memory(self) -> int:
        """Bytes of the columns."""
        events = (self.time_ps, self.action, self.address, self.size_bytes, self.stack)
        rest = (self.survivors.address, self.survivors.size_bytes, self.survivors.stack)
        return sum(column.nbytes for column in (*events, *rest))


@dataclass(frozen=True)
class Recording:
    """The histories of all devices that have one, with their stacks. `n_skipped`: entries of no known action
    or without a time.
    """

    devices: tuple[DeviceHistory, ...]
    stacks: Stacks
    n_skipped: int = 0

    @property
    def kept_bytes(self) -> int:
        """About the memory that it takes."""
        return self.stacks.size_bytes + sum(device.size_in_memory for device in self.devices)
