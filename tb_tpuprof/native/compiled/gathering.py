# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What the decoder asks and tells for every event and stat: ids → rows of tables, stats → chunks by key.
`gathering.pxd` declares it.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memcpy

from tb_tpuprof.native.memory import new_array

FIRST_BYTES = cython.declare(int64_t, 1 << 10)
CHUNK_BYTES = cython.declare(int64_t, 1 << 18)  # of a full-grown chunk
PAGE_BYTES = 2 << 20  # a huge page, which full-grown chunks share
ANY_KIND = cython.declare(cython.int, 255)  # of values that have not come yet


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


@cython.final
@cython.cclass
class Gathered:
    """Stats by key (a number below `n_keys`), in chunks until `ingest/xspace/stat_columns.py` puts them
    together; texts are copied.
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
        """Append to the stats; 0, or -2 where memory is out."""
        slot: cython.pointer(Slot) = self.slots + key
        if slot.n == slot.room or (
            slot.kind and slot.n and (kind != slot.kind or owner != slot.first + slot.n)
        ):
            if 2 * slot.n >= slot.room:
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

    def take_back(self, key: int32_t, owner: int64_t):
        """Strike out the last stats of a key as far as they are this owner's."""
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
        """Strike out the owner's stats from the end of the chunks of a key that are full."""
        chunks: list = self.chunks.get(key, [])  # the last one is being filled
        memory: uint8_t[::1]
        n: int64_t
        for at in range(len(chunks) - 2, -1, -1):
            memory, n, first, kind = chunks[at]
            rows = cython.cast(cython.pointer(StatRow), cython.address(memory[0]))
            while n > 0 and owner == (first + n - 1 if kind else rows[n - 1].owner):
                n -= 1
            chunks[at] = (chunks[at][0], n, first, kind)
            if n:
                break

    def spread(self, slot: cython.pointer(Slot)):
        """Make rows of a chunk's values, in their place, of which they take up twice as much."""
        i: int64_t = slot.n
        value: int64_t
        while i > 0:
            i -= 1
            value = cython.cast(cython.pointer(int64_t), slot.memory)[i]
            cython.cast(cython.pointer(StatRow), slot.memory)[i] = StatRow(
                value, cython.cast(int32_t, slot.first + i), slot.kind
            )
        slot.kind = 0
        slot.room //= 2

    def add_span(self, start: int64_t, size: int64_t) -> int64_t:
        """The number of a new span, -1 where memory is out."""
        if self.n_spans == self.spans_room:
            room: int64_t = max(2 * self.spans_room, 1024)
            more = realloc(self.spans, cython.cast(cython.size_t, room) * cython.sizeof(Span))
            if more == cython.NULL:
                return -1
            self.spans = cython.cast(cython.pointer(Span), more)
            self.spans_room = room
        self.spans[self.n_spans].start = start
        self.spans[self.n_spans].size = size
        self.n_spans += 1
        return self.n_spans - 1

    def add_text(self, text: cython.pointer(cython.const[uint8_t]), size: int64_t) -> int64_t:
        """The number of the span of a text, which is copied; -1 where memory is out."""
        if self.n_text_bytes + size > self.texts_room:
            room: int64_t = max(2 * self.texts_room, self.n_text_bytes + size + 4096)
            more = realloc(self.texts, cython.cast(cython.size_t, room))
            if more == cython.NULL:
                return -1
            self.texts = cython.cast(cython.pointer(uint8_t), more)
            self.texts_room = room
        memcpy(self.texts + self.n_text_bytes, text, size)
        self.n_text_bytes += size
        return self.add_span(~(self.n_text_bytes - size), size)

    def add_chunk(self, key: int32_t) -> cython.bint:
        """A chunk for more stats of a key, each time larger, up to CHUNK_BYTES. False where memory is out."""
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
        slot.room = size // cython.sizeof(int64_t)
        slot.kind = ANY_KIND
        return True

    def text_spans(self):
        """The texts that stood within the stats: (all of them end to end uint8[n], where each begins, its
        size int64[k]).

        Row k is span k of the stats; what is no text is empty.
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
        self.texts_room = 0
        return blob, starts, sizes

    def kept_keys(self):
        """The keys that have stats, ascending."""
        return sorted(self.chunks)

    def take_chunks(self, key: int):
        """The stats of a key as chunks, as `put` takes them: (memory, how many, first owner, kind); they are
        let go of here.

        Kind 0: the memory holds rows; else values alone, of owners that follow one another.
        """
        slot: cython.pointer(Slot) = self.slots + cython.cast(int64_t, key)
        *full, last = self.chunks.pop(key)
        return [*full, (last[0], slot.n, slot.first, slot.kind)]

    def put(
        self,
        chunk: tuple,
        at: int64_t,
        columns,
        names: cython.const[int32_t][::1],
        texts: cython.const[int32_t][::1],
    ):
        """Write a chunk's stats to the columns owner, kind, value and size from row `at` on; `texts`: the
        strings of all spans.
        """
        owner: int32_t[::1]
        kind: uint8_t[::1]
        value: int64_t[::1]
        size: int32_t[::1]
        owner, kind, value, size = columns
        memory: uint8_t[::1] = chunk[0]
        n: int64_t = chunk[1]
        first: int64_t = chunk[2]
        same: cython.int = chunk[3]
        values: cython.pointer(int64_t) = cython.cast(cython.pointer(int64_t), cython.address(memory[0]))
        row: StatRow
        i: int64_t
        with cython.nogil:
            for i in range(n):
                row = cython.cast(cython.pointer(StatRow), values)[0 if same else i]
                if same:
                    row = StatRow(values[i], cython.cast(int32_t, first + i), same)
                if row.kind == 5:
                    row.value = texts[row.value]
                elif row.kind == 7:
                    row.kind = 5
                    row.value = names[row.value]
                elif row.kind == 6:
                    size[at] = cython.cast(int32_t, min(self.spans[row.value].size, 0x7FFFFFFF))
                    row.value = self.spans[row.value].start
                owner[at] = row.owner
                kind[at] = cython.cast(uint8_t, row.kind)
                value[at] = row.value
                at += 1


@cython.final
@cython.cclass
class Values:
    """The chunks of a key that hold values alone, in the order of owners, to be looked into where
    they stand.
    """

    chunks: list
    places: int64_t[:, ::1]  # where each chunk's memory is, its first owner, how many

    def __init__(self, chunks: list):
        self.chunks = chunks  # whose memory stays as long as this does
        self.places = np.zeros((len(chunks), 3), np.int64)
        memory: uint8_t[::1]
        i: int64_t
        for i in range(len(chunks)):
            memory = chunks[i][0]
            self.places[i, 0] = cython.cast(int64_t, cython.address(memory[0]))
            self.places[i, 1] = chunks[i][2]
            self.places[i, 2] = chunks[i][1]

    def at(self, rows: cython.const[int64_t][::1]):
        """The values of some rows: (int64[n], whether there is one uint8[n])."""
        n: int64_t = rows.shape[0]
        k: int64_t = self.places.shape[0]
        values = np.zeros(n, np.int64)
        there = np.zeros(n, np.uint8)
        place: int64_t[:, ::1] = self.places
        value: int64_t[::1] = values
        is_there: uint8_t[::1] = there
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
                    if place[mid, 1] <= rows[i]:
                        lo = mid + 1
                    else:
                        hi = mid
                if lo > 0 and rows[i] - place[lo - 1, 1] < place[lo - 1, 2]:
                    value[i] = cython.cast(cython.pointer(int64_t), place[lo - 1, 0])[
                        rows[i] - place[lo - 1, 1]
                    ]
                    is_there[i] = 1
        return values, there
