"""Memory that was in use at one moment, by what allocated it: columns, as a snapshot's file has them.
PyTorch's also record its history (`Recording`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.trace.heap_history import Recording
from tb_tpuprof.trace.stacks import Int32s, Int64s, Stacks


@dataclass(frozen=True)
class Pool:
    """What an allocator holds of a device's memory: `reserved_bytes`, of which `used_bytes` are in blocks
    that are in use, and `requested_bytes` of these are what the program asked for.
    """

    device: str
    reserved_bytes: int
    used_bytes: int
    requested_bytes: int
    largest_free_bytes: int


@dataclass(frozen=True)
class Heap:
    """Memory in use. A row stands for the blocks that have device, kind and stack in common; `device` and
    `kind` are rows of `devices` and `kinds`. `maker` is the framework that wrote it, empty if unknown.
    """

    maker: str
    device: Int32s
    kind: Int32s
    stack: Int32s
    n_blocks: Int64s
    size_bytes: Int64s
    devices: tuple[str, ...]
    kinds: tuple[str, ...]
    stacks: Stacks
    pools: tuple[Pool, ...] = ()
    recording: Recording | None = None

    @property
    def kept_bytes(self) -> int:
        """About the memory that it takes."""
        rows = (self.device, self.kind, self.stack, self.n_blocks, self.size_bytes)
        recorded = self.recording.kept_bytes if self.recording else 0
        return sum(column.nbytes for column in rows) + self.stacks.size_bytes + recorded
