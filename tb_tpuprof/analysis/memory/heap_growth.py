"""Two snapshots of memory → what has grown between them, by place in the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.heap import Totals, frame_text, places
from tb_tpuprof.trace.heap import Heap

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Growth:
    """Places whose memory differs between the snapshots, the largest growth first."""

    place: tuple[str, ...]
    before_bytes: Int64s
    after_bytes: Int64s
    n_more_blocks: Int64s


def growth(before: Heap, after: Heap) -> Growth:
    """What has changed. Places are the same if function, file and line are."""
    sides = (_by_text(before, places(before)), _by_text(after, places(after)))
    names = dict.fromkeys((*sides[1], *sides[0]))
    rows = [(name, *sides[0].get(name, (0, 0)), *sides[1].get(name, (0, 0))) for name in names]
    changed = [row for row in rows if row[1:3] != row[3:5]]
    changed.sort(key=lambda row: (row[2] - row[4], row[0]))
    numbers = np.array([row[1:] for row in changed], np.int64).reshape(-1, 4).T
    return Growth(tuple(row[0] for row in changed), numbers[1], numbers[3], numbers[2] - numbers[0])


def _by_text(heap: Heap, totals: Totals) -> dict[str, tuple[int, int]]:
    """(blocks, bytes) of each place, by its text."""
    found: dict[str, tuple[int, int]] = {}
    columns = zip(totals.frame.tolist(), totals.n_blocks.tolist(), totals.size_bytes.tolist(), strict=True)
    for frame, n_blocks, size in columns:
        text = frame_text(heap.stacks, frame)
        n_other, other = found.get(text, (0, 0))
        found[text] = (n_other + n_blocks, other + size)
    return found
