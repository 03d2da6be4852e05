# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Distinct byte strings of a file and their ids, gathered one at a time. Compiled, for `json_events.py`; the
twin uses a dict.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcmp, memcpy, memset
from cython.cimports.tb_tpuprof.native.compiled.json_lex import hash_bytes

MAX_SLOTS = cython.declare(int64_t, 1 << 31)


@cython.final
@cython.cclass
class Texts:
    """Distinct byte strings and their ids; references the bytes instead of copying them."""

    def __cinit__(self, seed):
        self.texts = cython.NULL
        self.slots = cython.NULL
        self.n = 0
        self.n_slots = 0
        self.seed = seed

    def __dealloc__(self):
        free(self.texts)
        free(self.slots)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(self, p: cython.pointer(cython.const[uint8_t]), size: int64_t) -> int32_t:
        """The id of a string, which is added if it is new; -2 if out of memory."""
        if self.n * 2 >= self.n_slots and not self.grow():
            return -2
        hashed: uint64_t = hash_bytes(p, size, self.seed)
        mask: uint64_t = cython.cast(uint64_t, self.n_slots - 1)
        slot: uint64_t = hashed & mask
        k: int32_t = self.slots[slot]
        while k >= 0:
            if (
                self.texts[k].hash == hashed
                and self.texts[k].size == size
                and memcmp(self.texts[k].p, p, cython.cast(cython.size_t, size)) == 0
            ):
                return k
            slot = (slot + 1) & mask
            k = self.slots[slot]
        k = cython.cast(int32_t, self.n)
        self.slots[slot] = k
        self.texts[k].p = p
        self.texts[k].size = size
        self.texts[k].hash = hashed
        self.n += 1
        return k

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def grow(self) -> cython.bint:
        n_slots: int64_t = max(self.n_slots * 2, 1024)
        if n_slots > MAX_SLOTS:
            return False
        texts = cython.cast(
            cython.pointer(Text),
            realloc(self.texts, cython.cast(cython.size_t, n_slots // 2 + 1) * cython.sizeof(Text)),
        )
        if texts == cython.NULL:
            return False
        self.texts = texts
        slots = cython.cast(
            cython.pointer(int32_t), malloc(cython.cast(cython.size_t, n_slots) * cython.sizeof(int32_t))
        )
        if slots == cython.NULL:
            return False
        free(self.slots)
        self.slots = slots
        self.n_slots = n_slots
        memset(slots, 255, cython.cast(cython.size_t, n_slots) * cython.sizeof(int32_t))
        i: int64_t
        slot: uint64_t
        mask: uint64_t = cython.cast(uint64_t, n_slots - 1)
        for i in range(self.n):
            slot = self.texts[i].hash & mask
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = cython.cast(int32_t, i)
        return True

    def all(self):
        """(all strings end to end as uint8, offsets int64[n + 1])."""
        offsets = np.zeros(self.n + 1, np.int64)
        ends: int64_t[::1] = offsets
        i: int64_t
        for i in range(self.n):
            ends[i + 1] = ends[i] + self.texts[i].size
        blob = np.empty(int(offsets[self.n]), np.uint8)
        if len(blob):
            out: uint8_t[::1] = blob
            with cython.nogil:
                for i in range(self.n):
                    if self.texts[i].size:
                        memcpy(
                            cython.address(out[ends[i]]),
                            self.texts[i].p,
                            cython.cast(cython.size_t, self.texts[i].size),
                        )
        return blob, offsets
