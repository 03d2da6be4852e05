# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""XSpace's hot messages (XEvent, XStat) → columns. Compiled; reads hostile bytes, but never outside a
message.

Malformed events and stats are left out and counted. The twin is `ingest/xspace/protobuf.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tb_tpuprof.native.compiled.gathering import Gathered, IdMap, Slot, StatRow
from cython.cimports.tb_tpuprof.native.compiled.varint import Field, read_field, short_varint, varint

# An event that counts occurrences has no start time; its row's start is AGGREGATE_START - occurrences.
AGGREGATE_START = -(1 << 62)
TIME_LIMIT = cython.declare(int64_t, 1 << 61)
AGGREGATE = cython.declare(int64_t, -(1 << 62))
NOWHEN = cython.declare(int64_t, -(1 << 63))


# The fields before an event's stats.
Head = cython.struct(id=int64_t, offset=int64_t, duration=int64_t)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _head(
    p: cython.pointer(cython.const[uint8_t]),
    pos: int64_t,
    end: int64_t,
    limit: int64_t,
    head: cython.pointer(Head),
) -> int64_t:
    """Read id, offset and duration if an event starts with them in this order, as most do; returns the
    position after the last field read.
    """
    number: uint64_t = 0
    n: cython.int
    if limit - pos < 32 or p[pos] != 0x08:
        return pos
    n = short_varint(p + pos + 1, cython.address(number))
    if n == 0 or pos + 1 + n >= end or p[pos + 1 + n] != 0x10:
        return pos
    head.id = cython.cast(int64_t, number)
    pos += 1 + n
    n = short_varint(p + pos + 1, cython.address(number))
    if n == 0 or pos + 1 + n >= end or p[pos + 1 + n] != 0x18:
        return pos
    head.offset = cython.cast(int64_t, number)
    pos += 1 + n
    n = short_varint(p + pos + 1, cython.address(number))
    if n == 0 or pos + 1 + n > end:
        return pos
    head.duration = cython.cast(int64_t, number)
    return pos + 1 + n


@cython.final
@cython.cclass
class Decoder:
    """Reads pieces of a file's lines, plane by plane, into columns of events and rows of stats.

    `columns` are start int64, duration int64, metadata int32 and position (uint32, or uint64 for files of 4
    GiB and more), large enough for all events. Several decoders may share them and read different pieces at
    the same time. Stats are gathered by key (a number below `n_keys`) in chunks until
    `ingest/xspace/stat_columns.py` combines those of all decoders; texts are copied at once.
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
    # Of all events; one without duration takes 1 ps.
    last_end = cython.declare(int64_t, visibility="readonly")
    events_by_id: IdMap
    stats_by_id: IdMap
    names_by_id: IdMap
    n_small: uint64_t  # ids below it have their rows in these two tables
    small_stats: cython.pointer(int32_t)
    small_names: cython.pointer(int32_t)
    stats = cython.declare(Gathered, visibility="readonly")
    slots: cython.pointer(Slot)  # of the stats
    low: int64_t  # the range of keys with an expected successor: from here
    high: int64_t  # to before here
    last: cython.pointer(Slot)  # of the last stat kept
    nothing: Slot  # the successor if none is known: no stat starts like it

    def __cinit__(self, columns, n_keys: int64_t):
        self.start, self.duration, self.metadata, position = columns
        self.is_wide = position.dtype == np.uint64
        if self.is_wide:
            self.wide_position = position
        else:
            self.position = position
        self.last_end = NOWHEN
        self.stats = Gathered(n_keys)
        self.slots = self.stats.slots
        self.low, self.high = 0, n_keys
        self.nothing.start = 1
        self.forget()

    def release(self):
        """Release the columns: no more events can be read, but gathered stats stay usable."""
        self.start = self.duration = np.empty(0, np.int64)
        self.metadata = np.empty(0, np.int32)
        self.position = np.empty(0, np.uint32)
        self.wide_position = np.empty(0, np.uint64)

    def open_plane(self, events_by_id: IdMap, stats_by_id: IdMap, names_by_id: IdMap):
        """Set the maps of the next plane: event metadata → row, stats to keep → key, stat metadata → string
        of its name.
        """
        self.events_by_id = events_by_id
        self.stats_by_id = stats_by_id
        self.names_by_id = names_by_id
        self.n_small = min(stats_by_id.dense.shape[0], names_by_id.dense.shape[0])
        self.small_stats = cython.address(stats_by_id.dense[0])
        self.small_names = cython.address(names_by_id.dense[0])
        self.forget()

    @cython.cfunc
    def forget(self):
        """Forget the expected successors of all stats."""
        key: int64_t
        for key in range(self.low, self.high):
            self.slots[key].next = cython.address(self.nothing)
        self.low, self.high = 2**62, 0
        self.nothing.next = self.last = cython.address(self.nothing)

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
        """Put the events between two positions of the file, at most `count`, into the rows from `first` on.

        `window` has the file's bytes from `base` on, including the whole piece. Returns (number of events,
        whether they are sorted by start, -duration).

        Times beyond ±2^61 ps are clamped and negative durations are 0; an aggregate's row starts at
        AGGREGATE_START - occurrences.
        """
        in_order: cython.bint = True
        status: cython.int = 0
        last: int64_t = min(first + count, self.start.shape[0])
        pos: int64_t = start - base
        event_start: int64_t
        row: int64_t
        field: Field
        end -= base
        self.n_events = first
        if first < 0 or pos < 0 or end > window.shape[0]:
            raise ValueError("the piece is outside the window, or its rows are outside the columns")
        if pos >= end:
            return 0, True
        self.base = base
        self.limit = window.shape[0]
        p: cython.pointer(cython.const[uint8_t]) = cython.address(window[0])
        with cython.nogil:
            while pos < end and self.n_events < last:
                event_start = pos
                pos = read_field(p, pos, end, self.limit, cython.address(field))
                if pos < 0:
                    break
                if field.number != 4 or field.wire != 2:
                    continue
                status = self.read_event(p, field.value, pos, event_start, line_start_ps)
                if status == -2:
                    break
                if status < 0:
                    self.n_left_out += 1
                    continue
                row = self.n_events
                if row > first and (
                    self.start[row] < self.start[row - 1]
                    or (
                        self.start[row] == self.start[row - 1] and self.duration[row] > self.duration[row - 1]
                    )
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
        self,
        p: cython.pointer(cython.const[uint8_t]),
        pos: int64_t,
        end: int64_t,
        event_start: int64_t,
        line_start: int64_t,
    ) -> cython.int:
        """Read one XEvent into row n_events: 0 read, -1 malformed or empty, -2 out of memory."""
        row: int64_t = self.n_events
        head: Head = Head(0, 0, 0)
        occurrences: int64_t = -1
        has_stats: cython.bint = False
        status: cython.int = 0 if pos < end else -1
        field: Field
        after: int64_t
        begin: int64_t = pos
        pos = _head(p, pos, end, self.limit, cython.address(head))
        while pos < end:
            after = self.read_expected(p, pos, end, row)
            if after > 0:
                has_stats = True
                pos = after
                continue
            # A small stat, like most of the remaining fields.
            if end - pos > 4 and p[pos] == 0x22 and p[pos + 1] < 0x80:
                after = pos + 2 + p[pos + 1]
                status = self.read_stat(p, pos + 2, after, row) if after <= end else -1
                if status < 0:
                    break
                has_stats = True
                pos = after
                continue
            pos = read_field(p, pos, end, self.limit, cython.address(field))
            if pos < 0:
                status = -1
                break
            if field.wire == 0:
                if field.number == 1:
                    head.id = field.value
                elif field.number == 2:
                    head.offset = field.value
                    occurrences = -1
                elif field.number == 3:
                    head.duration = field.value
                elif field.number == 5:
                    occurrences = max(field.value, 0)
            elif field.number == 4 and field.wire == 2:
                has_stats = True
                status = self.read_stat(p, field.value, pos, row)
                if status < 0:
                    break
        if status < 0:
            self.remove_stats(p, begin, end, row)
            return status
        if occurrences >= 0:
            self.n_aggregates += 1
            head.offset = AGGREGATE - min(occurrences, TIME_LIMIT)
        else:
            head.offset = min(max(head.offset, -TIME_LIMIT), TIME_LIMIT) + line_start
            head.offset = min(max(head.offset, -TIME_LIMIT), TIME_LIMIT)
        self.put_event(head, event_start + self.base if has_stats else 0)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def remove_stats(
        self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int64_t
    ) -> cython.void:
        """Remove the stats of an event that turned out to be malformed: those before the damage."""
        field: Field
        number: Field
        stat_pos: int64_t
        key: int32_t
        while pos < end:
            pos = read_field(p, pos, end, self.limit, cython.address(field))
            if pos < 0:
                return
            if field.number != 4 or field.wire != 2:
                continue
            stat_pos = field.value
            key = self.stats_by_id.find(0)
            while 0 <= stat_pos < pos:
                stat_pos = read_field(p, stat_pos, pos, self.limit, cython.address(number))
                if stat_pos >= 0 and number.number == 1 and number.wire == 0:
                    key = self.stats_by_id.find(number.value)
            if key >= 0:
                self.stats.remove_last(key, owner)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def put_event(self, head: Head, position: int64_t) -> cython.void:
        """Write row n_events."""
        row: int64_t = self.n_events
        self.start[row] = head.offset
        self.duration[row] = min(max(head.duration, 0), TIME_LIMIT)
        self.metadata[row] = self.events_by_id.find(head.id)
        if head.offset >= -TIME_LIMIT:  # otherwise the event counts occurrences
            self.last_end = max(self.last_end, head.offset + max(self.duration[row], 1))
        if self.is_wide:
            self.wide_position[row] = cython.cast(uint64_t, position)
        else:
            self.position[row] = cython.cast(uint32_t, position)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def read_expected(
        self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int64_t
    ) -> int64_t:
        """Fast path: read the stat at `pos` if it is the number that followed the same stat last time, and
        append it if its chunk has space for it.

        Returns the position after it, or -1 if nothing was done.
        """
        slot: cython.pointer(Slot) = self.last.next
        start: uint64_t = 0
        number: uint64_t = 0
        value: int64_t
        after: int64_t
        n: cython.int
        if self.limit - pos < 16:
            return -1
        memcpy(cython.address(start), p + pos, 8)
        if start & slot.mask != slot.start:
            return -1
        n = short_varint(p + pos + slot.head, cython.address(number))
        after = pos + slot.head + n
        if n == 0 or after > end or after != pos + 2 + p[pos + 1]:
            return -1
        if slot.kind and (slot.expected_kind != slot.kind or owner != slot.first + slot.n):
            return -1
        if slot.n == slot.capacity:
            return -1
        value = cython.cast(int64_t, number)
        if slot.expected_kind == 7:
            value = self.small_names[number] if number < self.n_small else self.names_by_id.find(value)
            if value < 0:
                return after
        self.put_stat(slot, slot.expected_kind, value, owner)
        return after

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def put_stat(
        self, slot: cython.pointer(Slot), kind: cython.int, value: int64_t, owner: int64_t
    ) -> cython.void:
        """Append to a chunk that has space for it."""
        if slot.kind:
            cython.cast(cython.pointer(int64_t), slot.memory)[slot.n] = value
        else:
            cython.cast(cython.pointer(StatRow), slot.memory)[slot.n] = StatRow(
                value, cython.cast(int32_t, owner), kind
            )
        slot.n += 1
        self.last = slot

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def read_stat(
        self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int64_t
    ) -> cython.int:
        """Read one XStat; keep it if its key is wanted and it has a value. 0 read, -1 malformed, -2 out of
        memory.
        """
        number: uint64_t = 0
        key: int32_t
        value_pos: int64_t = -1
        if pos < end and p[pos] == 0x08:  # most are an id and a number, in this order
            value_pos = varint(p, pos + 1, end, self.limit, cython.address(number))
        if 0 < value_pos < end:
            key = (
                self.small_stats[number]
                if number < self.n_small
                else self.stats_by_id.find(cython.cast(int64_t, number))
            )
            if key < 0 or self.read_number(p, pos, value_pos, end, key, owner):
                return 0
        return self.read_any_stat(p, pos, end, owner)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def read_number(
        self,
        p: cython.pointer(cython.const[uint8_t]),
        start: int64_t,
        pos: int64_t,
        end: int64_t,
        key: int32_t,
        owner: int64_t,
    ) -> cython.bint:
        """Append the number whose tag is at `pos`, of the stat at `start`; returns whether the stat is done.

        If not (a value of another kind, a full chunk, more fields after the number), nothing was changed.
        """
        slot: cython.pointer(Slot) = self.slots + key
        number: uint64_t = 0
        kind: cython.int = p[pos] >> 3
        value: int64_t
        if slot.kind and (kind != slot.kind or owner != slot.first + slot.n):
            return False
        if slot.n == slot.capacity:
            return False
        if p[pos] != 0x18 and p[pos] != 0x20 and p[pos] != 0x38:
            return False
        if varint(p, pos + 1, end, self.limit, cython.address(number)) != end:
            return False
        value = cython.cast(int64_t, number)
        if kind == 7:
            value = self.small_names[number] if number < self.n_small else self.names_by_id.find(value)
            if value < 0:
                return True
        self.expect(slot, p, start, pos, end)
        self.put_stat(slot, kind, value, owner)
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def expect(
        self,
        slot: cython.pointer(Slot),
        p: cython.pointer(cython.const[uint8_t]),
        start: int64_t,
        pos: int64_t,
        end: int64_t,
    ) -> cython.void:
        """Remember the bytes before the number of the stat at `start` (the number's tag is at `pos`), and
        that it followed the last stat.
        """
        head: int64_t = pos - start + 3  # including the tag and the size before it, and the number's tag
        self.low = min(self.low, slot - self.slots)
        self.high = max(self.high, slot - self.slots + 1)
        if (
            head > 6
            or start < 2
            or self.limit - start < 6
            or p[start - 2] != 0x22
            or p[start - 1] != end - start
        ):
            return
        slot.head = head
        slot.expected_kind = p[pos] >> 3
        slot.mask = (cython.cast(uint64_t, 1) << 8 * head) - 1 - 0xFF00
        memcpy(cython.address(slot.start), p + start - 2, 8)
        slot.start &= slot.mask
        self.last.next = slot

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_any_stat(
        self, p: cython.pointer(cython.const[uint8_t]), pos: int64_t, end: int64_t, owner: int64_t
    ) -> cython.int:
        """Like `read_stat`, for any fields in any order."""
        id_: int64_t = 0
        key: int32_t
        kind: cython.int = 0
        value: int64_t = 0
        size: int64_t = 0
        field: Field
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
            value = (
                self.stats.add_text(p + value, size)
                if kind == 5
                else self.stats.add_span(value + self.base, size)
            )
            if value < 0:
                return -2
        return self.stats.append(key, owner, kind, value)

    def read_stats(
        self,
        data: cython.const[uint8_t][::1],
        starts: cython.const[int64_t][::1],
        sizes: cython.const[int64_t][::1],
        owners: cython.const[int32_t][::1],
        number: int64_t,
    ):
        """Read the stats in field `number` of many messages, each of one owner; with 0, the messages are
        stats themselves. Malformed ones count as left out.
        """
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
                        status = self.read_stat(p, field.value, pos, owners[i])
                if status == -2:
                    break
                if status < 0:
                    self.n_left_out += 1
        if status == -2:
            raise MemoryError
