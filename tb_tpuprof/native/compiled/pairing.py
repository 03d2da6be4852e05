# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Begins and ends, allocations and deallocations → pairs. Compiled; the twins in `plain/pairing.py` have the
full docstrings.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t

from tb_tpuprof.native.plain import pairing as plain_pairing

REACH = cython.declare(int64_t, 256)
GOLDEN = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
FIRST_BITS = cython.declare(cython.int, 8)
PROBES_EACH = cython.declare(int64_t, 16)
NOWHERE = cython.declare(int64_t, plain_pairing.NOWHERE)


def pair_up(
    key: cython.const[int32_t][::1], kind: cython.const[uint8_t][::1], name: cython.const[int32_t][::1]
):
    """Pairs ends with begins; see `plain.pairing.pair_up`."""
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


@cython.final
@cython.cclass
class _Live:
    """Hash table of live allocations: address and event by address; at most half of the slots are taken."""

    address: int64_t[::1]
    event: int32_t[::1]
    bits: cython.int
    n: int64_t
    budget: int64_t

    def __cinit__(self, n_events):
        self.budget = PROBES_EACH * n_events + (1 << 20)
        self.empty(FIRST_BITS)

    @cython.cfunc
    def empty(self, bits: cython.int):
        """Start over with empty slots."""
        self.bits = bits
        self.n = 0
        self.address = np.empty(1 << bits, np.int64)
        self.event = np.full(1 << bits, -1, np.int32)

    @cython.cfunc
    def grow(self):
        """Double the number of slots."""
        k: int64_t
        addresses: int64_t[::1] = self.address
        events: int32_t[::1] = self.event
        self.empty(self.bits + 1)
        for k in range(events.shape[0]):
            if events[k] >= 0:
                self.put(self.slot(addresses[k]), addresses[k], events[k])

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def home(self, address: int64_t) -> int64_t:
        """The slot where the search for an address starts."""
        return cython.cast(int64_t, (cython.cast(uint64_t, address) * GOLDEN) >> (64 - self.bits))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def slot(self, address: int64_t) -> int64_t:
        """The slot of an address if it is in the table, else the slot for inserting it."""
        mask: int64_t = self.event.shape[0] - 1
        index: int64_t = self.home(address)
        while self.event[index] >= 0 and self.address[index] != address:
            index = (index + 1) & mask
            self.budget -= 1
        return index

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def put(self, slot: int64_t, address: int64_t, event: int32_t) -> cython.void:
        """Write a slot."""
        self.n += self.event[slot] < 0
        self.address[slot] = address
        self.event[slot] = event

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def free(self, slot: int64_t) -> cython.void:
        """Free a slot; following entries move up so that searches still reach them."""
        mask: int64_t = self.event.shape[0] - 1
        candidate: int64_t = slot
        self.n -= 1
        while True:
            candidate = (candidate + 1) & mask
            self.budget -= 1
            if self.event[candidate] < 0:
                break
            if ((candidate - self.home(self.address[candidate])) & mask) >= ((candidate - slot) & mask):
                self.address[slot] = self.address[candidate]
                self.event[slot] = self.event[candidate]
                slot = candidate
        self.event[slot] = -1


def tie(
    first: cython.const[int64_t][::1],
    is_allocation: cython.const[uint8_t][::1],
    address: cython.const[int64_t][::1],
):
    """Which event ends each allocation, and which allocation each deallocation ends; see
    `plain.pairing.tie`.
    """
    n: int64_t = address.shape[0]
    partners = np.empty(n, np.int32)
    partner: int32_t[::1] = partners
    live = _Live(n)
    m: int64_t
    i: int64_t
    slot: int64_t
    for m in range(first.shape[0] - 1):
        if live.n:
            live.empty(FIRST_BITS)
        i = first[m]
        while i < first[m + 1] and live.budget >= 0:
            with cython.nogil:
                while i < first[m + 1] and live.budget >= 0 and 2 * live.n < live.event.shape[0]:
                    partner[i] = cython.cast(int32_t, n) if is_allocation[i] else -1
                    if address[i] != NOWHERE:
                        slot = live.slot(address[i])
                        if live.event[slot] >= 0:
                            partner[live.event[slot]] = cython.cast(int32_t, i)
                        if is_allocation[i]:
                            live.put(slot, address[i], cython.cast(int32_t, i))
                        elif live.event[slot] >= 0:
                            partner[i] = live.event[slot]
                            live.free(slot)
                    i += 1
            if 2 * live.n >= live.event.shape[0]:
                live.grow()
    if live.budget < 0:  # addresses chosen to collide
        return plain_pairing.tie(np.asarray(first), np.asarray(is_allocation), np.asarray(address))
    return partners
