# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""XSpace's hot messages (XEvent, XStat) → columns. Compiled; reads hostile bytes: nothing is read outside of its message.

An event or stat that is malformed is left out and counted. The twin is `ingest/xspace_protobuf.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memcpy
from cython.cimports.tb_tpuprof.native.id_map import IdMap
from cython.cimports.tb_tpuprof.native.varint import Field, read_field, varint

from tb_tpuprof.native.memory import new_array

# An event that counts occurrences has no place in time; its row's start is AGGREGATE - occurrences.
AGGREGATE_START = -(1 << 62)
TIME_LIMIT = cython.declare(int64_t, 1 << 61)
AGGREGATE = cython.declare(int64_t, -(1 << 62))

FIRST_ROOM = cython.declare(int64_t, 64)
ROOM = cython.declare(int64_t, 1 << 14)  # rows of a full-grown chunk
PAGE_BYTES = 2 << 20  # a huge page, which full-grown chunks share

StatRow = cython.struct(value=int64_t, owner=int32_t, kind=int32_t)
# The stats of one key: the chunk that is being filled, how many rows it holds and has room for.
Slot = cython.struct(rows=cython.pointer(StatRow), n=int64_t, room=int64_t)
Span = cython.struct(start=int64_t, size=int64_t)


@cython.final
@cython.cclass
class Decoder:
    """Reads pieces of a file's lines, plane by plane, into columns of events and rows of stats.

    `columns` are start int64, duration int64, metadata int32 and position (uint32, or uint64 for files of 4 GiB and more),
    with room for all events. Several decoders may share them and read different pieces at the same time. Stats gather by key
    (a number below `n_keys`) in chunks until `ingest/stat_columns.py` puts those of all decoders together; texts are copied on the way.
    """

    start: int64_t[::1]
    duration: int64_t[::1]
    metadata: int32_t[::1]
    position: uint32_t[::1]
    wide_position: uint64_t[::1]
    is_wide: cython.bint
    base: int64_t
    limit: int64_t
    n_events: int64_t
    n_left_out = cython.declare(int64_t, visibility="readonly")
    n_aggregates = cython.declare(int64_t, visibility="readonly")
    events_by_id: IdMap
    stats_by_id: IdMap
    names_by_id: IdMap
    n_keys: int64_t
    slots: cython.pointer(Slot)
    chunks: dict
    page: object
    added: cython.pointer(cython.pointer(StatRow))
    n_added: int64_t
    added_room: int64_t
    has_dead: cython.bint
    spans: cython.pointer(Span)
    n_spans: int64_t
    spans_room: int64_t
    texts: cython.pointer(uint8_t)
    n_text_bytes: int64_t
    texts_room: int64_t

    def __cinit__(self, columns, n_keys: int64_t):
        self.start, self.duration, self.metadata, position = columns
        self.is_wide = position.dtype == np.uint64
        if self.is_wide:
            self.wide_position = position
        else:
            self.position = position
        self.n_keys = n_keys
        self.slots = cython.cast(cython.pointer(Slot), calloc(max(n_keys, 1), cython.sizeof(Slot)))
        if self.slots == cython.NULL:
            raise MemoryError
        self.chunks = {}
        self.page = b""

    def __dealloc__(self):
        free(self.slots)
        free(self.added)
        free(self.spans)
        free(self.texts)

    def release(self):
        """Let go of the columns: no more events can be read, but the stats gathered can still be put."""
        self.start = self.duration = np.empty(0, np.int64)
        self.metadata = np.empty(0, np.int32)
        self.position = np.empty(0, np.uint32)
        self.wide_position = np.empty(0, np.uint64)

    def open_plane(self, events_by_id: IdMap, stats_by_id: IdMap, names_by_id: IdMap):
        """The maps of the plane to read from: event metadata → row, stats to keep → key, any stat metadata → its name's string."""
        self.events_by_id = events_by_id
        self.stats_by_id = stats_by_id
        self.names_by_id = names_by_id

    def read_piece(
        self,
        window: cython.const[uint8_t][::1],
        base: int64_t,
        start: int64_t,
        end: int64_t,
        line_start_ps: int64_t,
        first: int64_t,
        count: int64_t,
    ):
        """Put the events that stand between two positions of the file, at most `count`, into the rows from `first` on.

        `window` holds the file's bytes from `base` on, all of the piece among them. Returns (number of events, whether they are
        sorted by start, -duration).

        Times beyond ±2^61 ps are clamped and negative durations are 0; an aggregate's row begins at AGGREGATE_START - occurrences.
        """
        in_order: cython.bint = True
        status: cython.int = 0
        last: int64_t = min(first + count, self.start.shape[0])
        pos: int64_t = start - base
        at: int64_t
        row: int64_t
        field: Field
        end -= base
        self.n_events = first
        if first < 0 or pos < 0 or end > window.shape[0]:
            raise ValueError("the piece lies beside the window, or its rows beside the columns")
        if pos >= end:
            return 0, True
        self.base = base
        self.limit = window.shape[0]
        p: cython.pointer(cython.const[uint8_t]) = cython.address(window[0])
        with cython.nogil:
            while pos < end and self.n_events < last:
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
        has_stats: cython.bint = False
        status: cython.int = 0 if pos < end else -1
        field: Field
        self.n_added = 0
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
            self.drop_added()
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
            self.wide_position[row] = cython.cast(uint64_t, at + self.base) if has_stats else 0
        else:
            self.position[row] = cython.cast(uint32_t, at + self.base) if has_stats else 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def drop_added(self) -> cython.void:
        """Strike out the stats of an event that turns out to be malformed."""
        i: int64_t
        for i in range(self.n_added):
            self.added[i].kind = 0
            self.has_dead = True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_stat(self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int32_t) -> cython.int:
        """Read one XStat; keep it if its key is to be kept and it has a value. 0 read, -1 malformed, -2 out of memory."""
        id_: int64_t = 0
        key: int32_t = -1
        kind: cython.int = 0
        value: int64_t = 0
        size: int64_t = 0
        at: int64_t = -1
        number: uint64_t = 0
        tag: uint8_t
        field: Field
        if end - pos >= 4 and p[pos] == 0x08:  # most are a small id and a number, in this order
            at = varint(p, pos + 1, end, self.limit, cython.address(number))
            if 0 < at < end:
                key = self.stats_by_id.find(cython.cast(int64_t, number))
                if key < 0:
                    return 0
                tag = p[at]
                if tag == 0x18 or tag == 0x20 or tag == 0x38:
                    at = varint(p, at + 1, end, self.limit, cython.address(number))
                    if at == end:
                        kind = tag >> 3
                        value = cython.cast(int64_t, number)
        if kind == 0:
            while pos < end:
                pos = read_field(p, pos, end, self.limit, cython.address(field))
                if pos < 0:
                    return -1
                if field.number == 1 and field.wire == 0:
                    id_ = field.value
                    if kind == 0 and self.stats_by_id.find(id_) < 0:
                        return 0
                elif field.wire == 0 and (field.number == 3 or field.number == 4 or field.number == 7):
                    kind = cython.cast(cython.int, field.number)
                    value = field.value
                elif field.wire == 1 and field.number == 2:
                    kind = 2
                    memcpy(cython.address(value), p + field.value, 8)
                elif field.wire == 2 and (field.number == 5 or field.number == 6):
                    kind = cython.cast(cython.int, field.number)
                    value = field.value
                    size = field.size
            key = self.stats_by_id.find(id_)
            if key < 0 or kind == 0:
                return 0
        if kind == 7:
            value = self.names_by_id.find(value)
            if value < 0:
                return 0
        elif kind == 5 or kind == 6:
            value = self.add_text(p + value, size) if kind == 5 else self.add_span(value + self.base, size)
            if value < 0:
                return -2
        return self.append(key, owner, kind, value)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def append(self, key: int32_t, owner: int32_t, kind: cython.int, value: int64_t) -> cython.int:
        """Append to the stats; -2 where memory is out."""
        slot: cython.pointer(Slot) = self.slots + key
        if slot.n == slot.room:
            with cython.gil:
                if not self.add_chunk(key):
                    return -2
        if self.n_added == self.added_room and not self.grow_added():
            return -2
        row: cython.pointer(StatRow) = slot.rows + slot.n
        row.owner = owner
        row.kind = kind
        row.value = value
        slot.n += 1
        self.added[self.n_added] = row
        self.n_added += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def grow_added(self) -> cython.bint:
        """Room to remember more of the stats of one event."""
        room: int64_t = max(2 * self.added_room, 64)
        more = realloc(self.added, cython.cast(cython.size_t, room) * cython.sizeof(cython.p_void))
        if more == cython.NULL:
            return False
        self.added = cython.cast(cython.pointer(cython.pointer(StatRow)), more)
        self.added_room = room
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
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

    @cython.cfunc
    def add_chunk(self, key: int32_t) -> cython.bint:
        """Room for more stats of a key, each time more, up to ROOM. False where memory is out."""
        slot: cython.pointer(Slot) = self.slots + key
        room: int64_t = FIRST_ROOM if slot.room == 0 else min(8 * slot.room, ROOM)
        size: int64_t = room * cython.sizeof(StatRow)
        try:
            if room < ROOM:
                memory = np.empty(size, np.uint8)
            else:
                if len(self.page) < size:
                    self.page = new_array(PAGE_BYTES, np.uint8)
                memory, self.page = self.page[:size], self.page[size:]
        except (MemoryError, OSError):
            return False
        view: uint8_t[::1] = memory
        self.chunks.setdefault(key, []).append(memory)
        slot.rows = cython.cast(cython.pointer(StatRow), cython.address(view[0]))
        slot.n = 0
        slot.room = room
        return True

    def read_stats(
        self,
        data: cython.const[uint8_t][::1],
        starts: cython.const[int64_t][::1],
        sizes: cython.const[int64_t][::1],
        owners: cython.const[int32_t][::1],
        number: int64_t,
    ):
        """Stats in field `number` of many messages, each of one owner; 0: the messages are stats. Malformed ones count as left out."""
        pos: int64_t
        end: int64_t
        i: int64_t
        status: cython.int = 0
        field: Field
        p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
        self.base = 0
        self.limit = data.shape[0]
        with cython.nogil:
            for i in range(starts.shape[0]):
                pos = starts[i]
                end = pos + sizes[i]
                self.n_added = 0
                status = 0
                if pos < 0 or sizes[i] < 0 or sizes[i] > self.limit - pos:
                    status = -1
                elif number == 0:
                    status = self.read_stat(p, pos, end, owners[i])
                    pos = end
                while pos < end and status == 0:
                    pos = read_field(p, pos, end, self.limit, cython.address(field))
                    if pos < 0:
                        status = -1
                    elif field.number == number and field.wire == 2:
                        self.n_added = 0
                        status = self.read_stat(p, field.value, pos, owners[i])
                if status == -2:
                    break
                if status < 0:
                    self.n_left_out += 1
        if status == -2:
            raise MemoryError

    def text_spans(self):
        """The texts that stood within the stats: (all of them end to end uint8[n], where each begins, its size int64[k]).

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

    def take_chunks(self, key: int):
        """The rows of a key as (memory, number of rows that count) of each chunk; the decoder lets go of them."""
        slot: cython.pointer(Slot) = self.slots + cython.cast(int64_t, key)
        taken = []
        chunks = self.chunks.pop(key)
        last = len(chunks) - 1
        for i, memory in enumerate(chunks):
            n = slot.n if i == last else len(memory) // cython.sizeof(StatRow)
            taken.append((memory, n, self.n_alive(memory, n) if self.has_dead else n))
        return taken

    def kept_keys(self):
        """The keys that have stats, ascending."""
        return sorted(self.chunks)

    @cython.cfunc
    def n_alive(self, memory, n: int64_t) -> int64_t:
        """How many of a chunk's rows were not struck out."""
        view: uint8_t[::1] = memory
        rows: cython.pointer(StatRow) = cython.cast(cython.pointer(StatRow), cython.address(view[0]))
        found: int64_t = 0
        i: int64_t
        for i in range(n):
            found += rows[i].kind != 0
        return found

    def put(
        self,
        memory: uint8_t[::1],
        n: int64_t,
        at: int64_t,
        columns,
        names: cython.const[int32_t][::1],
        texts: cython.const[int32_t][::1],
    ):
        """Write a chunk's rows to the columns owner, kind, value and size from row `at` on; `texts`: the strings of all spans."""
        owner: int32_t[::1]
        kind: uint8_t[::1]
        value: int64_t[::1]
        size: int32_t[::1]
        owner, kind, value, size = columns
        rows: cython.pointer(StatRow) = cython.cast(cython.pointer(StatRow), cython.address(memory[0]))
        row: StatRow
        i: int64_t
        with cython.nogil:
            for i in range(n):
                row = rows[i]
                if row.kind == 0:
                    continue
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
