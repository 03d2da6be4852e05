# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Byte strings scattered over one file or many → one id per distinct string, or all of them end to end.
Compiled; the twin in `plain/wire.py` uses a dict.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcmp, memcpy

from tb_tpuprof.native.memory import new_array


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(p: cython.pointer(cython.const[uint8_t]), size: int64_t, seed: uint64_t) -> uint64_t:
    """Multiply and mix eight bytes at a time. The seed differs between processes, so that no file can provoke
    collisions.
    """
    prime: uint64_t = 0xFF51AFD7ED558CCD
    x: uint64_t = seed ^ (cython.cast(uint64_t, size) * prime)
    word: uint64_t
    j: int64_t = 0
    while j + 8 <= size:
        memcpy(cython.address(word), p + j, 8)
        x = (x ^ word) * prime
        x ^= x >> 32
        j += 8
    while j < size:
        x = (x ^ p[j]) * prime
        x ^= x >> 32
        j += 1
    return x


def intern(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    seed: uint64_t,
):
    """Give equal byte strings equal ids: (ids int32[n], first int64[k]: an index of each distinct string, in
    order of id).

    Raises ValueError if a span is outside the data.
    """
    n: int64_t = starts.shape[0]
    ids = new_array(n, np.int32)
    first = new_array(n, np.int64)
    if n == 0:
        return ids, first
    slots: int64_t = 16
    while slots < 2 * n:
        slots *= 2
    slot_ids: int32_t[::1] = new_array(slots, np.int32)
    hashes: uint64_t[::1] = new_array(n, np.uint64)
    out: int32_t[::1] = ids
    first_view: int64_t[::1] = first
    limit: int64_t = data.shape[0]
    p: cython.pointer(cython.const[uint8_t]) = cython.NULL
    if limit:
        p = cython.address(data[0])
    i: int64_t
    j: int64_t
    slot: int64_t
    k: int32_t = 0
    hashed: uint64_t
    with cython.nogil:
        for i in range(slots):
            slot_ids[i] = -1
        for i in range(n):
            if sizes[i] < 0 or starts[i] < 0 or sizes[i] > limit - starts[i]:
                with cython.gil:
                    raise ValueError("a span is outside the data")
            hashed = _hash(p + starts[i], sizes[i], seed)
            slot = cython.cast(int64_t, hashed & cython.cast(uint64_t, slots - 1))
            while slot_ids[slot] >= 0:
                j = first_view[slot_ids[slot]]
                if (
                    hashes[slot_ids[slot]] == hashed
                    and sizes[j] == sizes[i]
                    and memcmp(p + starts[j], p + starts[i], sizes[i]) == 0
                ):
                    break
                slot = (slot + 1) & (slots - 1)
            if slot_ids[slot] < 0:
                slot_ids[slot] = k
                hashes[k] = hashed
                first_view[k] = i
                k += 1
            out[i] = slot_ids[slot]
    return ids, first[:k].copy()


def alike(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    rows: cython.const[int32_t][::1],
    references: tuple,
):
    """Whether each byte string equals the reference string of its row; see `plain.wire.alike`."""
    reference_starts: cython.const[int64_t][::1] = references[0]
    reference_sizes: cython.const[int64_t][::1] = references[1]
    n: int64_t = starts.shape[0]
    limit: int64_t = data.shape[0]
    result = np.zeros(n, np.uint8)
    out: uint8_t[::1] = result
    i: int64_t
    a: int64_t
    b: int64_t
    size: int64_t
    p: cython.pointer(cython.const[uint8_t]) = cython.NULL
    if limit:
        p = cython.address(data[0])
    with cython.nogil:
        for i in range(n):
            if rows[i] < 0 or rows[i] >= reference_starts.shape[0]:
                continue
            a = starts[i]
            b = reference_starts[rows[i]]
            size = sizes[i]
            if (
                size != reference_sizes[rows[i]]
                or a < 0
                or b < 0
                or size < 0
                or size > limit - a
                or size > limit - b
            ):
                continue
            out[i] = size == 0 or memcmp(p + a, p + b, size) == 0
    return result.view(np.bool_)


def joined(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
):
    """The byte strings end to end: (uint8[sum of sizes], offsets int64[n + 1]). Raises ValueError if a span
    is outside the data.
    """
    n: int64_t = starts.shape[0]
    limit: int64_t = data.shape[0]
    offsets = np.zeros(n + 1, np.int64)
    o: int64_t[::1] = offsets
    i: int64_t
    with cython.nogil:
        for i in range(n):
            if sizes[i] < 0 or starts[i] < 0 or sizes[i] > limit - starts[i]:
                with cython.gil:
                    raise ValueError("a span is outside the data")
            o[i + 1] = o[i] + sizes[i]
    blob = new_array(o[n], np.uint8)
    if o[n] == 0:
        return blob, offsets
    b: uint8_t[::1] = blob
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    with cython.nogil:
        for i in range(n):
            if sizes[i] > 0:
                memcpy(cython.address(b[o[i]]), p + starts[i], sizes[i])
    return blob, offsets


@cython.final
@cython.cclass
class Interner:
    """Byte strings of many arrays → one id per distinct string, in the order of their first appearance; see
    `plain.wire.Interner`.
    """

    seed: uint64_t
    n: int64_t
    n_bytes: int64_t
    n_slots: int64_t
    blob: uint8_t[::1]
    offsets: int64_t[::1]
    hashes: uint64_t[::1]
    slots: int32_t[::1]

    def __init__(self, seed: uint64_t):
        self.seed = seed
        self.n_slots = 1024
        self.blob = new_array(4096, np.uint8)
        self.offsets = np.zeros(self.n_slots // 2 + 1, np.int64)
        self.hashes = new_array(self.n_slots // 2, np.uint64)
        self.slots = np.full(self.n_slots, -1, np.int32)

    def __len__(self):
        return self.n

    def add(
        self,
        data: cython.const[uint8_t][::1],
        starts: cython.const[int64_t][::1],
        sizes: cython.const[int64_t][::1],
    ):
        """The id of each of the byte strings. Raises ValueError if a span is outside the data."""
        n: int64_t = starts.shape[0]
        limit: int64_t = data.shape[0]
        ids = new_array(n, np.int32)
        out: int32_t[::1] = ids
        p: cython.pointer(cython.const[uint8_t]) = cython.NULL
        if limit:
            p = cython.address(data[0])
        i: int64_t
        slot: int64_t
        known: int64_t
        hashed: uint64_t
        for i in range(n):
            if sizes[i] < 0 or starts[i] < 0 or sizes[i] > limit - starts[i]:
                raise ValueError("a span is outside the data")
        with cython.nogil:
            for i in range(n):
                hashed = _hash(p + starts[i], sizes[i], self.seed)
                slot = cython.cast(int64_t, hashed & cython.cast(uint64_t, self.n_slots - 1))
                while self.slots[slot] >= 0:
                    known = self.slots[slot]
                    if (
                        self.hashes[known] == hashed
                        and self.offsets[known + 1] - self.offsets[known] == sizes[i]
                        and (
                            sizes[i] == 0
                            or memcmp(cython.address(self.blob[self.offsets[known]]), p + starts[i], sizes[i])
                            == 0
                        )
                    ):
                        break
                    slot = (slot + 1) & (self.n_slots - 1)
                if self.slots[slot] < 0:
                    self.slots[slot] = cython.cast(int32_t, self.n)
                    self.hashes[self.n] = hashed
                    if self.n_bytes + sizes[i] > self.blob.shape[0]:
                        with cython.gil:
                            self._widen(sizes[i])
                    if sizes[i]:
                        memcpy(cython.address(self.blob[self.n_bytes]), p + starts[i], sizes[i])
                    self.n_bytes += sizes[i]
                    self.n += 1
                    self.offsets[self.n] = self.n_bytes
                    out[i] = cython.cast(int32_t, self.n - 1)
                    if 2 * self.n >= self.n_slots:
                        with cython.gil:
                            self._grow()
                else:
                    out[i] = self.slots[slot]
        return ids

    def strings(self):
        """All distinct byte strings end to end, and the start of each (offsets [n + 1])."""
        return np.asarray(self.blob)[: self.n_bytes].copy(), np.asarray(self.offsets)[: self.n + 1].copy()

    @cython.cfunc
    def _widen(self, size: int64_t):
        """Make space for `size` more bytes."""
        wider = new_array(max(2 * self.blob.shape[0], self.n_bytes + size), np.uint8)
        wider[: self.n_bytes] = np.asarray(self.blob)[: self.n_bytes]
        self.blob = wider

    @cython.cfunc
    def _grow(self):
        """Twice as many slots."""
        i: int64_t
        slot: int64_t
        if self.n >= 2**30:
            raise ValueError("more than 2^30 distinct byte strings")
        self.n_slots *= 2
        offsets = np.zeros(self.n_slots // 2 + 1, np.int64)
        offsets[: self.n + 1] = np.asarray(self.offsets)[: self.n + 1]
        self.offsets = offsets
        hashes = new_array(self.n_slots // 2, np.uint64)
        hashes[: self.n] = np.asarray(self.hashes)[: self.n]
        self.hashes = hashes
        self.slots = np.full(self.n_slots, -1, np.int32)
        for i in range(self.n):
            slot = cython.cast(int64_t, self.hashes[i] & cython.cast(uint64_t, self.n_slots - 1))
            while self.slots[slot] >= 0:
                slot = (slot + 1) & (self.n_slots - 1)
            self.slots[slot] = cython.cast(int32_t, i)
