"""Memory that was in use at one moment, by what allocated it: columns, as a snapshot's file has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Stacks:
    """Stacks of calls, each with its innermost frame first. Stack i has the frames
    `frames[first[i]:first[i + 1]]`, rows of `function`, `file` and `line` (0: unknown).
    """

    first: Int64s
    frames: Int32s
    function: tuple[str, ...]
    file: tuple[str, ...]
    line: Int64s

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def size_bytes(self) -> int:
        """Memory of the columns, and about that of the texts."""
        columns = self.first.nbytes + self.frames.nbytes + self.line.nbytes
        return columns + sum(50 + len(text) for text in (*self.function, *self.file))


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

    @property
    def kept_bytes(self) -> int:
        """About the memory that it takes."""
        rows = (self.device, self.kind, self.stack, self.n_blocks, self.size_bytes)
        return sum(column.nbytes for column in rows) + self.stacks.size_bytes


def stacks_of(stacks: Sequence[Sequence[int]], frames: Sequence[tuple[str, str, int]]) -> Stacks:
    """Stacks from the frames' numbers in each, and (function, file, line) of each frame."""
    sizes = np.array([len(stack) for stack in stacks], np.int64)
    numbers = np.fromiter((frame for stack in stacks for frame in stack), np.int32, int(sizes.sum()))
    return Stacks(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        numbers,
        tuple(function for function, _, _ in frames),
        tuple(file for _, file, _ in frames),
        np.array([line for _, _, line in frames], np.int64),
    )
