# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""XSpace's hot messages (XEvent, XStat) → columns. Compiled; reads hostile bytes: nothing is read outside of its message.

An event or stat that is malformed is left out and counted. The twin is `ingest/xspace_protobuf.py`.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy
from cython.cimports.tb_tpuprof.native.varint import Field, read_field

# An event that counts occurrences has no place in time; its row's start is AGGREGATE - occurrences.
AGGREGATE_START = -(1 << 62)
TIME_LIMIT = cython.declare(int64_t, 1 << 61)
AGGREGATE = cython.declare(int64_t, -(1 << 62))

CHUNK = cython.declare(int64_t, 1 << 18)
PARTS = 8  # that one decoder's stats are put in

StatRow = cython.struct(value=int64_t, owner=int32_t, key=int32_t, size=int32_t, kind=int32_t)


@cython.final
@cython.cclass
class IdMap:
    """id → row for ids of metadata: a dense table for small ids, binary search for the rest."""

    dense: int32_t[::1]
    keys: int64_t[::1]
    rows: int32_t[::1]
    default: int32_t

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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
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
class Decoder:
    """Reads the lines of one file, plane by plane, into columns of events and rows of stats.

    `columns` are start int64, duration int64, metadata int32 and position (uint32, or uint64 for files of 4 GiB and more),
    with room for all events. Several decoders may share them and read different lines at the same time. Stats gather in
    chunks until `take_stats` puts those of all decoders together.
    """

    data: cython.const[uint8_t][::1]
    start: int64_t[::1]
    duration: int64_t[::1]
    metadata: int32_t[::1]
    position: uint32_t[::1]
    wide_position: uint64_t[::1]
    is_wide: cython.bint
    n_events: int64_t
    n_left_out = cython.declare(int64_t, visibility="readonly")
    n_aggregates = cython.declare(int64_t, visibility="readonly")
    events_by_id: IdMap
    stats_by_id: IdMap
    names_by_id: IdMap
    chunks: cython.pointer(cython.pointer(StatRow))
    n_chunks: int64_t
    memory: list
    limit: int64_t
    n_stats: int64_t
    has_texts: cython.bint

    def __cinit__(self, data, columns):
        self.data = data
        self.limit = self.data.shape[0]
        self.start, self.duration, self.metadata, position = columns
        self.is_wide = position.dtype == np.uint64
        if self.is_wide:
            self.wide_position = position
        else:
            self.position = position
        self.n_events = 0
        self.n_left_out = 0
        self.n_aggregates = 0
        self.n_stats = 0
        self.has_texts = False
        self.n_chunks = 0
        self.memory = []
        self.chunks = cython.NULL

    def __dealloc__(self):
        free(self.chunks)

    def release(self):
        """Let go of the file's bytes: nothing more can be read, but the stats gathered can still be put."""
        self.data = np.zeros(1, np.uint8)
        self.limit = 0

    def open_plane(self, events_by_id: IdMap, stats_by_id: IdMap, names_by_id: IdMap):
        """The maps of the plane to read from: event metadata → row, stats to keep → key, any stat metadata → its name's string."""
        self.events_by_id = events_by_id
        self.stats_by_id = stats_by_id
        self.names_by_id = names_by_id

    def read_line(self, start: int64_t, end: int64_t, line_start_ps: int64_t, first: int64_t):
        """Put the events of the line message data[start:end] into the rows from `first` on.

        Returns (number of events, whether they are sorted by start, -duration).

        Times beyond ±2^61 ps are clamped and negative durations are 0; an aggregate's row begins at AGGREGATE_START - occurrences.
        """
        self.n_events = max(first, 0)
        in_order: cython.bint = True
        status: cython.int = 0
        pos: int64_t = max(start, 0)
        end = min(end, self.data.shape[0])
        p: cython.pointer(cython.const[uint8_t]) = cython.address(self.data[0])
        at: int64_t
        row: int64_t
        field: Field
        with cython.nogil:
            while pos < end and self.n_events < self.start.shape[0]:
                at = pos
                pos = read_field(p, pos, end, self.limit, cython.address(field))
                if pos < 0:
                    break
                if field.number != 4 or field.wire != 2:
                    continue
                status = self.read_event(p, field.value, pos, at, line_start_ps)
                if status == -2:
                    break
                if status < 0:
                    self.n_left_out += 1
                    continue
                row = self.n_events
                if row > first and (
                    self.start[row] < self.start[row - 1]
                    or (self.start[row] == self.start[row - 1] and self.duration[row] > self.duration[row - 1])
                ):
                    in_order = False
                self.n_events += 1
        if status == -2:
            raise MemoryError
        return self.n_events - first, in_order

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_event(
        self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, at: int64_t, line_start: int64_t
    ) -> cython.int:
        """Read one XEvent into row n_events: 0 read, -1 malformed or empty, -2 out of memory."""
        row: int64_t = self.n_events
        id_: int64_t = 0
        offset: int64_t = 0
        duration: int64_t = 0
        occurrences: int64_t = -1
        n_stats_before: int64_t = self.n_stats
        has_stats: cython.bint = False
        status: cython.int = 0 if pos < end else -1
        field: Field
        while pos < end:
            pos = read_field(p, pos, end, self.limit, cython.address(field))
            if pos < 0:
                status = -1
                break
            if field.wire == 0:
                if field.number == 1:
                    id_ = field.value
                elif field.number == 2:
                    offset = field.value
                    occurrences = -1
                elif field.number == 3:
                    duration = field.value
                elif field.number == 5:
                    occurrences = max(field.value, 0)
            elif field.number == 4 and field.wire == 2:
                has_stats = True
                status = self.read_stat(p, field.value, pos, cython.cast(int32_t, row))
                if status < 0:
                    break
        if status < 0:
            self.n_stats = n_stats_before
            return status
        if occurrences >= 0:
            self.n_aggregates += 1
            offset = AGGREGATE - min(occurrences, TIME_LIMIT)
        else:
            offset = min(max(offset, -TIME_LIMIT), TIME_LIMIT) + line_start
            offset = min(max(offset, -TIME_LIMIT), TIME_LIMIT)
        self.start[row] = offset
        self.duration[row] = min(max(duration, 0), TIME_LIMIT)
        self.metadata[row] = self.events_by_id.find(id_)
        if self.is_wide:
            self.wide_position[row] = cython.cast(uint64_t, at) if has_stats else 0
        else:
            self.position[row] = cython.cast(uint32_t, at) if has_stats else 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_stat(self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int32_t) -> cython.int:
        """Read one XStat; keep it if its key is to be kept and it has a value. 0 read, -1 malformed, -2 out of memory."""
        id_: int64_t = 0
        row: StatRow
        field: Field
        row.kind = 0
        row.value = 0
        row.size = 0
        while pos < end:
            pos = read_field(p, pos, end, self.limit, cython.address(field))
            if pos < 0:
                return -1
            if field.number == 1 and field.wire == 0:
                id_ = field.value
                if row.kind == 0 and self.stats_by_id.find(id_) < 0:
                    return 0
            elif field.wire == 0 and (field.number == 3 or field.number == 4 or field.number == 7):
                row.kind = cython.cast(int32_t, field.number)
                row.value = field.value
                row.size = 0
            elif field.wire == 1 and field.number == 2:
                row.kind = 2
                memcpy(cython.address(row.value), p + field.value, 8)
                row.size = 0
            elif field.wire == 2 and (field.number == 5 or field.number == 6):
                row.kind = cython.cast(int32_t, field.number)
                row.value = field.value
                row.size = cython.cast(int32_t, min(field.size, 0x7FFFFFFF))
        row.key = self.stats_by_id.find(id_)
        if row.key < 0 or row.kind == 0:
            return 0
        if row.kind == 7:
            row.value = self.names_by_id.find(row.value)
        self.has_texts |= row.kind == 5
        row.owner = owner
        return self.append(row)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def append(self, row: StatRow) -> cython.int:
        """Append to the stats; -2 where memory is out."""
        if self.n_stats == self.n_chunks * CHUNK:
            with cython.gil:
                if not self.add_chunk():
                    return -2
        self.chunks[self.n_stats // CHUNK][self.n_stats % CHUNK] = row
        self.n_stats += 1
        return 0

    @cython.cfunc
    def add_chunk(self) -> cython.bint:
        """Room for CHUNK more stats, as a NumPy array: those of a size lie on huge pages, which saves a fault every 4 KiB."""
        more = cython.cast(
            cython.pointer(cython.pointer(StatRow)),
            realloc(self.chunks, cython.cast(cython.size_t, self.n_chunks + 1) * cython.sizeof(cython.p_void)),
        )
        if more == cython.NULL:
            return False
        self.chunks = more
        memory = np.empty(CHUNK * cython.sizeof(StatRow), np.uint8)
        view: uint8_t[::1] = memory
        self.chunks[self.n_chunks] = cython.cast(cython.pointer(StatRow), cython.address(view[0]))
        self.memory.append(memory)
        self.n_chunks += 1
        return True

    def read_stats(self, starts: cython.const[int64_t][::1], sizes: cython.const[int64_t][::1], number: int64_t, owner: int32_t):
        """Stats in field `number` of many messages, owned by owner, owner + 1, …; malformed messages count as left out."""
        pos: int64_t
        end: int64_t
        i: int64_t
        status: cython.int = 0
        field: Field
        p: cython.pointer(cython.const[uint8_t]) = cython.address(self.data[0])
        with cython.nogil:
            for i in range(starts.shape[0]):
                pos = starts[i]
                end = pos + sizes[i]
                if pos < 0 or sizes[i] < 0 or sizes[i] > self.data.shape[0] - pos:
                    self.n_left_out += 1
                    continue
                status = 0
                while pos < end and status == 0:
                    pos = read_field(p, pos, end, self.limit, cython.address(field))
                    if pos < 0:
                        status = -1
                    elif field.number == number and field.wire == 2:
                        status = self.read_stat(p, field.value, pos, owner + cython.cast(int32_t, i))
                if status == -2:
                    break
                if status < 0:
                    self.n_left_out += 1
        if status == -2:
            raise MemoryError

    def read_bare_stats(self, starts: cython.const[int64_t][::1], sizes: cython.const[int64_t][::1], owner: int32_t):
        """The messages are stats themselves, all of one owner; malformed ones count as left out."""
        i: int64_t
        status: cython.int
        p: cython.pointer(cython.const[uint8_t]) = cython.address(self.data[0])
        for i in range(starts.shape[0]):
            status = -1
            if starts[i] >= 0 and 0 <= sizes[i] <= self.data.shape[0] - starts[i]:
                status = self.read_stat(p, starts[i], starts[i] + sizes[i], owner)
            if status == -2:
                raise MemoryError
            if status < 0:
                self.n_left_out += 1

    def text_spans(self):
        """Positions and sizes (int64) of the texts that stand within the stats gathered so far."""
        n: int64_t = 0
        at: int64_t = 0
        i: int64_t
        row: cython.pointer(StatRow)
        with cython.nogil:
            for i in range(self.n_stats if self.has_texts else 0):
                if self.chunks[i // CHUNK][i % CHUNK].kind == 5:
                    n += 1
        starts = np.empty(n, np.int64)
        sizes = np.empty(n, np.int64)
        start: int64_t[::1] = starts
        size: int64_t[::1] = sizes
        with cython.nogil:
            for i in range(self.n_stats if n else 0):
                row = cython.address(self.chunks[i // CHUNK][i % CHUNK])
                if row.kind == 5:
                    start[at] = row.value
                    size[at] = row.size
                    at += 1
        return starts, sizes

    def parts(self):
        """Bounds of runs of gathered stats, each of whole chunks, that several threads may count and put."""
        n = int(self.n_stats)
        step = CHUNK * max(1, n // CHUNK // PARTS)
        return [(first, min(first + step, n)) for first in range(0, n, step)]

    def count_by_key(self, part, names: cython.const[int32_t][::1]):
        """How many of a part's stats have each string as their key (int64 per string), and how many are texts of their own.

        References that lead nowhere are left out.
        """
        counts = np.zeros(int(np.max(names)) + 1 if names.shape[0] else 0, np.int64)
        count: int64_t[::1] = counts
        n_texts: int64_t = 0
        first: int64_t = part[0]
        last: int64_t = part[1]
        i: int64_t
        row: cython.pointer(StatRow)
        with cython.nogil:
            for i in range(first, last):
                row = cython.address(self.chunks[i // CHUNK][i % CHUNK])
                if row.kind != 7 or row.value >= 0:
                    count[names[row.key]] += 1
                n_texts += 1 if row.kind == 5 else 0
        return counts, n_texts

    def put_stats(self, part, columns, place: int64_t[::1], names: cython.const[int32_t][::1], texts: cython.const[int32_t][::1]):
        """Write a part's stats to where `place` says for each key; `texts`: the strings of its own texts.

        Memory is given back chunk by chunk, so that stats never stand twice in memory.
        """
        owner: int32_t[::1]
        key: int32_t[::1]
        kind: uint8_t[::1]
        value: int64_t[::1]
        size: int32_t[::1]
        owner, key, kind, value, size = columns
        n_texts: int64_t = 0
        first: int64_t = part[0]
        last: int64_t = part[1]
        at: int64_t
        i: int64_t
        row: StatRow
        with cython.nogil:
            for i in range(first, last):
                row = self.chunks[i // CHUNK][i % CHUNK]
                if i % CHUNK == CHUNK - 1:
                    with cython.gil:
                        self.memory[i // CHUNK] = None
                if row.kind == 5:
                    row.value = texts[n_texts]
                    n_texts += 1
                elif row.kind == 7:
                    if row.value < 0:
                        continue
                    row.kind = 5
                    row.value = names[row.value]
                at = place[names[row.key]]
                place[names[row.key]] += 1
                owner[at] = row.owner
                key[at] = names[row.key]
                kind[at] = cython.cast(uint8_t, row.kind)
                value[at] = row.value
                size[at] = row.size if row.kind == 6 else 0

    def forget_stats(self):
        """Let go of the stats gathered."""
        self.n_stats = 0
        self.n_chunks = 0
        self.memory = []


def take_stats(decoders, names, texts):
    """Stats of several decoders, one after the other, as columns owner, key, kind, value, size (trace/schema.py), sorted by key.

    `names` is the string of each row of stat metadata; `texts` holds for each decoder the strings of its `text_spans`.
    """
    parts = [(i, part) for i, decoder in enumerate(decoders) for part in decoder.parts()]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, max(1, len(parts)))) as pool:
        found = list(pool.map(lambda at: decoders[at[0]].count_by_key(at[1], names), parts))
        counts = [np.zeros(int(np.max(names)) + 1 if len(names) else 0, np.int64), *(count for count, _ in found)]
        total = np.sum(counts, axis=0)
        n = int(total.sum())
        columns = (np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(n, np.int32))
        places = np.cumsum(total) - total + np.cumsum(counts, axis=0)  # a part's come after those of the parts before
        own_texts = _split(texts, [(i, n_texts) for (i, _), (_, n_texts) in zip(parts, found, strict=True)])
        list(pool.map(lambda at, place, own: decoders[at[0]].put_stats(at[1], columns, place, names, own), parts, places, own_texts))
    for decoder in decoders:
        decoder.forget_stats()
    return columns


def _split(texts, counts):
    """The strings of each part's own texts: `counts` holds (decoder, number of texts) of the parts in order."""
    found = []
    taken = [0] * len(texts)
    for decoder, n in counts:
        found.append(texts[decoder][taken[decoder] : taken[decoder] + n])
        taken[decoder] += n
    return found
