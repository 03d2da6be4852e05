# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Values → the distinct ones, and the index of each value among them; rows → groups of equal values.
Compiled; the twins in `plain/numbering.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint64_t

from tb_tpuprof.native.plain import numbering as plain_numbering

Whole = cython.fused_type(int32_t, int64_t)
GOLDEN = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
FIRST_BITS = cython.declare(cython.int, 12)
PROBES_EACH = cython.declare(int64_t, 16)


def number(values: cython.const[int64_t][::1]):
    """Distinct values, and the index of each value among them; see `plain.numbering.number`."""
    n: int64_t = values.shape[0]
    indexes = np.empty(n, np.int32)
    bits: cython.int = FIRST_BITS
    keys = np.empty(1 << (bits - 1), np.int64)
    m: int64_t = 0
    i: int64_t = 0
    budget: int64_t = PROBES_EACH * n + (1 << 20)
    while True:
        slots = np.full(1 << bits, -1, np.int32)
        budget -= _rehash(keys, m, slots, bits)
        i, m, budget = _place(values, i, keys, m, slots, bits, indexes, budget)
        if budget < 0:  # values chosen to collide
            distinct, inverse = np.unique(np.asarray(values), return_inverse=True)
            return distinct, inverse.reshape(-1).astype(np.int32)
        if i == n:
            break
        bits += 1
        keys = np.concatenate([keys, np.empty_like(keys)])
    distinct_keys = keys[:m]
    order = np.argsort(distinct_keys)
    if (order[1:] > order[:-1]).all():
        return distinct_keys.copy(), indexes
    rank = np.empty(m, np.int32)
    rank[order] = np.arange(m, dtype=np.int32)
    return distinct_keys[order], rank[indexes]


@cython.cfunc
def _rehash(keys: cython.const[int64_t][::1], m: int64_t, slots: int32_t[::1], bits: cython.int) -> int64_t:
    """Put the known keys into empty slots; returns the number of collisions."""
    k: int64_t
    slot: uint64_t
    mask: uint64_t = (cython.cast(uint64_t, 1) << bits) - 1
    n_collisions: int64_t = 0
    with cython.nogil:
        for k in range(m):
            slot = (cython.cast(uint64_t, keys[k]) * GOLDEN) >> (64 - bits)
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
                n_collisions += 1
            slots[slot] = cython.cast(int32_t, k)
    return n_collisions


@cython.cfunc
def _place(
    values: cython.const[int64_t][::1],
    i: int64_t,
    keys: int64_t[::1],
    m: int64_t,
    slots: int32_t[::1],
    bits: cython.int,
    indexes: int32_t[::1],
    budget: int64_t,
):
    """Continue at value i until all are placed, the keys are full or the budget of probes is used up."""
    n: int64_t = values.shape[0]
    capacity: int64_t = keys.shape[0]
    slot: uint64_t
    value: int64_t
    mask: uint64_t = (cython.cast(uint64_t, 1) << bits) - 1
    with cython.nogil:
        while i < n and budget >= 0:
            value = values[i]
            slot = (cython.cast(uint64_t, value) * GOLDEN) >> (64 - bits)
            while slots[slot] >= 0 and keys[slots[slot]] != value:
                slot = (slot + 1) & mask
                budget -= 1
            if slots[slot] < 0:
                if m == capacity:
                    break
                slots[slot] = cython.cast(int32_t, m)
                keys[m] = value
                m += 1
            indexes[i] = slots[slot]
            i += 1
    return i, m, budget


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash_pair(first: int64_t, second: int64_t) -> uint64_t:
    return (cython.cast(uint64_t, first) * GOLDEN ^ cython.cast(uint64_t, second)) * GOLDEN


def split(code: cython.const[int32_t][::1], values: cython.const[Whole][::1]):
    """Subdivides groups of rows by value; see `plain.numbering.split`."""
    n: int64_t = values.shape[0]
    has_code: cython.bint = code.shape[0] == n
    capacity: int64_t = 1 << (FIRST_BITS - 1)
    bits: cython.int = FIRST_BITS
    new_groups = np.empty(n, np.int32)
    out: int32_t[::1] = new_groups
    first_rows = np.empty(capacity, np.int64)
    first: int64_t[::1] = first_rows
    slots: int32_t[::1] = np.full(1 << bits, -1, np.int32)
    m: int64_t = 0
    i: int64_t
    k: int64_t
    slot: uint64_t
    mask: uint64_t = (1 << bits) - 1
    shift: cython.int = 64 - bits
    budget: int64_t = PROBES_EACH * n + (1 << 20)
    with cython.nogil:
        for i in range(n):
            if i > 0 and values[i] == values[i - 1] and (not has_code or code[i] == code[i - 1]):
                out[i] = out[i - 1]
                continue
            if m == capacity:  # half of the slots are taken
                with cython.gil:
                    capacity *= 2
                    bits += 1
                    first_rows = np.concatenate([first_rows, np.empty_like(first_rows)])
                    first = first_rows
                    slots = np.full(1 << bits, -1, np.int32)
                    mask = (cython.cast(uint64_t, 1) << bits) - 1
                    shift = 64 - bits
                for k in range(m):
                    slot = _hash_pair(values[first[k]], code[first[k]] if has_code else 0) >> shift
                    while slots[slot] >= 0:
                        slot = (slot + 1) & mask
                        budget -= 1
                    slots[slot] = cython.cast(int32_t, k)
            slot = _hash_pair(values[i], code[i] if has_code else 0) >> shift
            while slots[slot] >= 0:
                k = first[slots[slot]]
                if values[k] == values[i] and (not has_code or code[k] == code[i]):
                    break
                slot = (slot + 1) & mask
                budget -= 1
            if budget < 0:  # values chosen to collide
                break
            if slots[slot] < 0:
                slots[slot] = cython.cast(int32_t, m)
                first[m] = i
                m += 1
            out[i] = slots[slot]
    return (
        (new_groups, first_rows[:m].copy())
        if budget >= 0
        else plain_numbering.split(np.asarray(code), np.asarray(values))
    )
