"""Plain twin of `compiled/numbering.py`: the same names, arguments and results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


def number(values: Int64s) -> tuple[Int64s, Int32s]:
    """(distinct values ascending, the index of each value among them)."""
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, index.reshape(-1).astype(np.int32)


def split(code: Int32s, values: Int32s | Int64s) -> tuple[Int32s, Int64s]:
    """Subdivides groups of rows by value: (the new group of each row, the first row of each group), groups in
    order of appearance.

    `code` is each row's group so far; if empty, all rows are in one group.

        code   0 0 1 1 0     values   7 8 7 7 7  →  0 1 2 2 0, with the first rows 0 1 2
    """
    _, of_value = np.unique(values, return_inverse=True)
    combined = of_value.reshape(-1).astype(np.int64)
    if len(code) == len(values) and len(code):
        combined += code.astype(np.int64) * (int(combined.max()) + 1)
    _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[order] = np.arange(len(first), dtype=np.int32)
    return rank[group.reshape(-1)], first[order].astype(np.int64)
