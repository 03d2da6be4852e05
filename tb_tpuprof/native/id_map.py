# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ids of a plane's metadata → rows of a table. Compiled; `id_map.pxd` declares it to the decoder."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t


@cython.final
@cython.cclass
class IdMap:
    """id → row for ids of metadata: a dense table for small ids, binary search for the rest."""

    def __init__(self, ids, rows, default: int32_t = -1):
        """`ids` int64[n] with `rows` int32[n]; of equal ids the last counts; other ids give `default`."""
        self.default = default
        order = np.argsort(ids, kind="stable")
        ids, rows = ids[order], rows[order]
        if len(ids):
            last = np.append(ids[1:] != ids[: len(ids) - 1], True)
            ids, rows = ids[last], rows[last]
        size = 4 * len(ids) + 1024
        small = (ids >= 0) & (ids < size)
        dense = np.full(size, default, np.int32)
        dense[ids[small]] = rows[small]
        self.dense = dense
        self.keys = np.ascontiguousarray(ids[~small], np.int64)
        self.rows = np.ascontiguousarray(rows[~small], np.int32)

    def find(self, key: int64_t) -> int32_t:
        if 0 <= key < self.dense.shape[0]:
            return self.dense[key]
        lo: int64_t = 0
        hi: int64_t = self.keys.shape[0]
        mid: int64_t
        while lo < hi:
            mid = (lo + hi) // 2
            if self.keys[mid] < key:
                lo = mid + 1
            else:
                hi = mid
        if lo < self.keys.shape[0] and self.keys[lo] == key:
            return self.rows[lo]
        return self.default
