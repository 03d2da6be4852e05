"""Plain twins of `numbering.py`: the same names, arguments and results, for where no extension is built and
for tests.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


def number(values: Int64s) -> tuple[Int64s, Int32s]:
    """(distinct values ascending, which of them each value is)."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(-1).astype(np.int32)


def split(code: Int32s, values: Int32s | Int64s) -> tuple[Int32s, Int64s]:
    """Groups of rows parted by their values: (the new group of each row, the first row of each group), in the
    order of appearance.

    `code` is the group that each row is in so far; empty: all are in one.

    code   0 0 1 1 0     values   7 8 7 7 7  →  0 1 2 2 0, whose first rows are 0 1 2
    """
    _, of_value = np.unique(values, return_inverse=True)
    whole = of_value.reshape(-1).astype(np.int64)
    if len(code) == len(values) and len(code):
        whole += code.astype(np.int64) * (int(whole.max()) + 1)
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[order] = np.arange(len(first), dtype=np.int32)
    return rank[group.reshape(-1)], first[order].astype(np.int64)
