# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Hash maps and append buffers used by the decoder: ids → rows of tables, stats → chunks by key. Declared in
`gathering.pxd`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memcpy

from tb_tpuprof.native.memory import new_array

FIRST_BYTES = cython.declare(int64_t, 1 << 10)
CHUNK_BYTES = cython.declare(int64_t, 1 << 18)  # of a chunk of the largest size
PAGE_BYTES = 2 << 20  # a huge page, which chunks of the largest size share
ANY_KIND = cython.declare(cython.int, 255)  # of a chunk that is still empty


@cython.final
@cython.cclass
class IdMap:
    """id → row for ids of metadata: a dense table for small ids, binary search for the rest."""

    def __init__(self, ids, rows, default: int32_t = -1):
        """`ids` int64[n] with `rows` int32[n]; the last of equal ids counts; other ids give `default`."""
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


@cython.final
@cython.cclass
class Gathered:
    """Stats by key (a number below `n_keys`), in chunks until `ingest/xspace/stat_columns.py` combines them;
    texts are copied.
    """

    def __cinit__(self, n_keys: int64_t):
        self.slots = cython.cast(cython.pointer(Slot), calloc(max(n_keys, 1), cython.sizeof(Slot)))
        if self.slots == cython.NULL:
            raise MemoryError
        self.chunks = {}
        self.page = b""

    def __dealloc__(self):
        free(self.slots)
        free(self.spans)
        free(self.texts)

    def append(self, key: int32_t, owner: int64_t, kind: cython.int, value: int64_t) -> cython.int:
        """Append a stat; 0, or -2 if out of memory."""
        slot: cython.pointer(Slot) = self.slots + key
        if slot.n == slot.capacity or (
            slot.kind and slot.n and (kind != slot.kind or owner != slot.first + slot.n)
        ):
            if 2 * slot.n >= slot.capacity:
                with cython.gil:
                    if not self.add_chunk(key):
                        return -2
            else:
                self.spread(slot)
        if slot.n == 0 and slot.kind:
            slot.first = owner
            slot.kind = kind
        if slot.kind:
            cython.cast(cython.pointer(int64_t), slot.memory)[slot.n] = value
        else:
            cython.cast(cython.pointer(StatRow), slot.memory)[slot.n] = StatRow(
                value, cython.cast(int32_t, owner), kind
            )
        slot.n += 1
        return 0

    def remove_last(self, key: int32_t, owner: int64_t):
        """Remove the last stats of a key that belong to this owner."""
        slot: cython.pointer(Slot) = self.slots + key
        while slot.n > 0 and owner == (
            slot.first + slot.n - 1
            if slot.kind
            else cython.cast(cython.pointer(StatRow), slot.memory)[slot.n - 1].owner
        ):
            slot.n -= 1
        if slot.n == 0:
            with cython.gil:
                self.shorten(key, owner)

    def shorten(self, key: int32_t, owner: int64_t):
        """Remove the owner's stats from the end of a key's full chunks."""
        chunks: list = self.chunks.get(key, [])  # the last chunk is being filled
        memory: uint8_t[::1]
        n: int64_t
        for i in range(len(chunks) - 2, -1, -1):
            memory, n, first, kind = chunks[i]
            rows = cython.cast(cython.pointer(StatRow), cython.address(memory[0]))
            while n > 0 and owner == (first + n - 1 if kind else rows[n - 1].owner):
                n -= 1
            chunks[i] = (chunks[i][0], n, first, kind)
            if n:
                break

    def spread(self, slot: cython.pointer(Slot)):
        """Convert a chunk's values to rows, in place; rows take twice as much memory."""
        i: int64_t = slot.n
        value: int64_t
        while i > 0:
            i -= 1
            value = cython.cast(cython.pointer(int64_t), slot.memory)[i]
            cython.cast(cython.pointer(StatRow), slot.memory)[i] = StatRow(
                value, cython.cast(int32_t, slot.first + i), slot.kind
            )
        slot.kind = 0
        slot.capacity //= 2

    def add_span(self, start: int64_t, size: int64_t) -> int64_t:
        """The number of a new span, -1 if out of memory."""
        if self.n_spans == self.spans_capacity:
            capacity: int64_t = max(2 * self.spans_capacity, 1024)
            grown = realloc(self.spans, cython.cast(cython.size_t, capacity) * cython.sizeof(Span))
            if grown == cython.NULL:
                return -1
            self.spans = cython.cast(cython.pointer(Span), grown)
            self.spans_capacity = capacity
        self.spans[self.n_spans].start = start
        self.spans[self.n_spans].size = size
        self.n_spans += 1
        return self.n_spans - 1

    def add_text(self, text: cython.pointer(cython.const[uint8_t]), size: int64_t) -> int64_t:
        """The number of the span of a text, which is copied; -1 if out of memory."""
        if self.n_text_bytes + size > self.texts_capacity:
            capacity: int64_t = max(2 * self.texts_capacity, self.n_text_bytes + size + 4096)
            grown = realloc(self.texts, cython.cast(cython.size_t, capacity))
            if grown == cython.NULL:
                return -1
            self.texts = cython.cast(cython.pointer(uint8_t), grown)
            self.texts_capacity = capacity
        memcpy(self.texts + self.n_text_bytes, text, size)
        self.n_text_bytes += size
        return self.add_span(~(self.n_text_bytes - size), size)

    def add_chunk(self, key: int32_t) -> cython.bint:
        """Add a chunk for more stats of a key, each larger than the one before, up to CHUNK_BYTES. False if
        out of memory.
        """
        slot: cython.pointer(Slot) = self.slots + key
        chunks = self.chunks.setdefault(key, [])
        size: int64_t = FIRST_BYTES
        if chunks:
            before = chunks[len(chunks) - 1][0]
            chunks[len(chunks) - 1] = (before, slot.n, slot.first, slot.kind)
            size = min(8 * len(before), CHUNK_BYTES)
        try:
            if size < CHUNK_BYTES:
                memory = np.empty(size, np.uint8)
            else:
                if len(self.page) < size:
                    self.page = new_array(PAGE_BYTES, np.uint8)
                memory, self.page = self.page[:size], self.page[size:]
        except (MemoryError, OSError):
            return False
        view: uint8_t[::1] = memory
        chunks.append((memory, 0, 0, 0))
        slot.memory = cython.address(view[0])
        slot.n = 0
        slot.capacity = size // cython.sizeof(int64_t)
        slot.kind = ANY_KIND
        return True

    def text_spans(self):
        """The texts inside the stats: (all of them end to end uint8[n], the start of each, its size
        int64[k]).

        Row k is span k of the stats; spans that are not texts are empty.
        """
        blob = np.empty(self.n_text_bytes, np.uint8)
        starts = np.zeros(self.n_spans, np.int64)
        sizes = np.zeros(self.n_spans, np.int64)
        into: uint8_t[::1] = blob
        start: int64_t[::1] = starts
        size: int64_t[::1] = sizes
        i: int64_t
        if self.n_text_bytes:
            memcpy(cython.address(into[0]), self.texts, cython.cast(cython.size_t, self.n_text_bytes))
        for i in range(self.n_spans):
            if self.spans[i].start < 0:
                start[i] = ~self.spans[i].start
                size[i] = self.spans[i].size
        free(self.texts)
        self.texts = cython.NULL
        self.n_text_bytes = 0
        self.texts_capacity = 0
        return blob, starts, sizes

    def keys_with_stats(self):
        """The keys that have stats, ascending."""
        return sorted(self.chunks)

    def take_chunks(self, key: int):
        """Remove and return the stats of a key as chunks for `put`: (memory, number of stats, first owner,
        kind).

        Kind 0: the memory has rows; otherwise only values, of consecutive owners.
        """
        slot: cython.pointer(Slot) = self.slots + cython.cast(int64_t, key)
        *full, last = self.chunks.pop(key)
        return [*full, (last[0], slot.n, slot.first, slot.kind)]

    def put(
        self,
        chunk: tuple,
        out_row: int64_t,
        columns,
        names: cython.const[int32_t][::1],
        texts: cython.const[int32_t][::1],
    ):
        """Write a chunk's stats to the columns owner, kind, value and size, from row `out_row` on. `texts`:
        the strings of all spans.
        """
        owner: int32_t[::1]
        kind: uint8_t[::1]
        value: int64_t[::1]
        size: int32_t[::1]
        owner, kind, value, size = columns
        memory: uint8_t[::1] = chunk[0]
        n: int64_t = chunk[1]
        first: int64_t = chunk[2]
        common_kind: cython.int = chunk[3]
        values: cython.pointer(int64_t) = cython.cast(cython.pointer(int64_t), cython.address(memory[0]))
        row: StatRow
        i: int64_t
        with cython.nogil:
            for i in range(n):
                row = cython.cast(cython.pointer(StatRow), values)[0 if common_kind else i]
                if common_kind:
                    row = StatRow(values[i], cython.cast(int32_t, first + i), common_kind)
                if row.kind == 5:
                    row.value = texts[row.value]
                elif row.kind == 7:
                    row.kind = 5
                    row.value = names[row.value]
                elif row.kind == 6:
                    size[out_row] = cython.cast(int32_t, min(self.spans[row.value].size, 0x7FFFFFFF))
                    row.value = self.spans[row.value].start
                owner[out_row] = row.owner
                kind[out_row] = cython.cast(uint8_t, row.kind)
                value[out_row] = row.value
                out_row += 1


@cython.final
@cython.cclass
class Values:
    """The chunks of a key that have only values, ordered by owner; looks values up in place."""

    chunks: list
    chunk_table: int64_t[:, ::1]  # address of each chunk's memory, its first owner, number of values

    def __init__(self, chunks: list):
        self.chunks = chunks  # keeps their memory alive
        self.chunk_table = np.zeros((len(chunks), 3), np.int64)
        memory: uint8_t[::1]
        i: int64_t
        for i in range(len(chunks)):
            memory = chunks[i][0]
            self.chunk_table[i, 0] = cython.cast(int64_t, cython.address(memory[0]))
            self.chunk_table[i, 1] = chunks[i][2]
            self.chunk_table[i, 2] = chunks[i][1]

    def at(self, rows: cython.const[int64_t][::1]):
        """The values of some rows: (int64[n], whether the row has one uint8[n])."""
        n: int64_t = rows.shape[0]
        k: int64_t = self.chunk_table.shape[0]
        values = np.zeros(n, np.int64)
        has_value = np.zeros(n, np.uint8)
        chunk: int64_t[:, ::1] = self.chunk_table
        value: int64_t[::1] = values
        is_there: uint8_t[::1] = has_value
        i: int64_t
        lo: int64_t
        hi: int64_t
        mid: int64_t
        with cython.nogil:
            for i in range(n):
                lo = 0
                hi = k
                while lo < hi:
                    mid = (lo + hi) // 2
                    if chunk[mid, 1] <= rows[i]:
                        lo = mid + 1
                    else:
                        hi = mid
                if lo > 0 and rows[i] - chunk[lo - 1, 1] < chunk[lo - 1, 2]:
                    value[i] = cython.cast(cython.pointer(int64_t), chunk[lo - 1, 0])[
                        rows[i] - chunk[lo - 1, 1]
                    ]
                    is_there[i] = 1
        return values, has_value
