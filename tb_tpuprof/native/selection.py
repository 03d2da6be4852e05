# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Choosing events by what their metadata says, in one pass over all of them. Compiled; twins in `plain_selection.py`."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t


def classes_of(metadata: cython.const[int32_t][::1], klass: cython.const[uint8_t][::1]):
    """Class of each event by its metadata row; see `plain_selection.classes_of`."""
    n: int64_t = metadata.shape[0]
    found = np.empty(n, np.uint8)
    out: uint8_t[::1] = found
    i: int64_t
    with cython.nogil:
        for i in range(n):
            out[i] = klass[metadata[i]] if 0 <= metadata[i] < klass.shape[0] else 0
    return found


def rows_of(metadata: cython.const[int32_t][::1], wanted: cython.const[uint8_t][::1]):
    """Events whose metadata row is wanted, ascending; see `plain_selection.rows_of`."""
    n: int64_t = metadata.shape[0]
    n_found: int64_t = 0
    i: int64_t
    with cython.nogil:
        for i in range(n):
            n_found += 1 if 0 <= metadata[i] < wanted.shape[0] and wanted[metadata[i]] != 0 else 0
    rows = np.empty(n_found, np.int64)
    out: int64_t[::1] = rows
    n_found = 0
    if out.shape[0]:
        with cython.nogil:
            for i in range(n):
                if 0 <= metadata[i] < wanted.shape[0] and wanted[metadata[i]] != 0:
                    out[n_found] = i
                    n_found += 1
    return rows


def outermost(
    klass: cython.const[uint8_t][::1],
    group: cython.const[int32_t][::1],
    parent: cython.const[int32_t][::1],
    limit: cython.int,
):
    """Events of a class below the limit that lie inside none of their group and of the same or a higher such class."""
    n: int64_t = klass.shape[0]
    chosen = np.empty(n, np.uint8)
    keep: uint8_t[::1] = chosen
    n_found: int64_t = 0
    i: int64_t
    above: int64_t
    with cython.nogil:
        for i in range(n):
            keep[i] = 0
            if klass[i] < limit:
                above = parent[i]
                if not (0 <= above < n and klass[above] < limit and klass[above] >= klass[i] and group[above] == group[i]):
                    keep[i] = 1
                    n_found += 1
    rows = np.empty(n_found, np.int64)
    out: int64_t[::1] = rows
    n_found = 0
    if out.shape[0]:
        with cython.nogil:
            for i in range(n):
                if keep[i]:
                    out[n_found] = i
                    n_found += 1
    return rows
