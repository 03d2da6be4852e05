"""Plain twins of `numbering.py`: the same names, arguments and results, for where no extension is built and for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


def number(values: Int64s) -> tuple[Int64s, Int32s]:
    """(distinct values ascending, which of them each value is)."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(-1).astype(np.int32)


def number_pairs(first: Int64s, second: Int64s) -> tuple[Int64s, Int32s]:
    """(where each distinct pair (first[i], second[i]) occurs first, the pairs ascending; which of them each pair is)."""
    _, one = np.unique(first, return_inverse=True)
    others, other = np.unique(second, return_inverse=True)
    _, at, places = np.unique(one.reshape(-1) * len(others) + other.reshape(-1), return_index=True, return_inverse=True)
    return at.astype(np.int64), places.reshape(-1).astype(np.int32)
