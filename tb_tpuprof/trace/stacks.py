"""Stacks of calls that share their frames, as columns."""

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
