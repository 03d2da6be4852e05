"""Plain twins of `selection.py`: the same names, arguments and results, for where no extension is built and for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
Classes = npt.NDArray[np.uint8]


def classes_of(metadata: Int32s, klass: Classes) -> Classes:
    """Class of each event: that of its metadata row, 0 for a row out of range."""
    known = (metadata >= 0) & (metadata < len(klass))
    return np.where(known, klass[np.where(known, metadata, 0)], 0).astype(np.uint8) if len(klass) else np.zeros(len(metadata), np.uint8)


def rows_of(metadata: Int32s, wanted: Classes) -> Rows:
    """Events whose metadata row is wanted (not 0), ascending."""
    return np.flatnonzero(classes_of(metadata, wanted)).astype(np.int64)


def outermost(klass: Classes, group: Int32s, parent: Int32s, limit: int) -> Rows:
    """Events of a class below the limit that do not lie directly inside one of their group and of the same or a higher such class.

    class 1   ├───a────────────┤     a and c are found: b adds nothing to a,
    class 1     ├─b──┤               c is of a higher class
    class 2             ├─c──┤
    """
    counted = np.flatnonzero(klass < limit)
    above = parent[counted]
    inside = above >= 0
    around = klass[above]
    hidden = inside & (around < limit) & (around >= klass[counted]) & (group[above] == group[counted])
    found: Rows = counted[~hidden].astype(np.int64)
    return found
