# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Begins and ends, apart in the file → pairs. Compiled; the twin is `plain_pairing.py`, which says what the functions do."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t

REACH = cython.declare(int64_t, 256)


def pair_up(key: cython.const[int32_t][::1], kind: cython.const[uint8_t][::1], name: cython.const[int32_t][::1]):
    """See the twin."""
    n: int64_t = key.shape[0]
    partners = np.full(n, -1, np.int32)
    roots = np.arange(n, dtype=np.int32)
    if n == 0:
        return partners, roots
    partner: int32_t[::1] = partners
    root: int32_t[::1] = roots
    stack: int32_t[::1] = np.empty(n, np.int32)
    top: int64_t = 0
    i: int64_t
    j: int64_t
    k: int64_t
    with cython.nogil:
        for i in range(n):
            if i > 0 and key[i] != key[i - 1]:
                top = 0
            if top > 0:
                root[i] = root[stack[0]]
            if kind[i] == 0:
                stack[top] = cython.cast(int32_t, i)
                top += 1
            elif kind[i] == 1:
                j = top - 1
                while j >= 0 and name[i] >= 0 and name[stack[j]] != name[i]:
                    j = j - 1 if top - j < REACH else -1
                if j >= 0:
                    partner[i] = stack[j]
                    partner[stack[j]] = cython.cast(int32_t, i)
                    for k in range(j, top - 1):
                        stack[k] = stack[k + 1]
                    top -= 1
    return partners, roots
