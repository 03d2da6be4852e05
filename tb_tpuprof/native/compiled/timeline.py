# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of events → the boxes that a screen of a given width can show, and how each looks. Compiled; the
twins in `plain/timeline.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.cpython.buffer import Py_buffer, PyBuffer_FillInfo
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.tb_tpuprof.native.compiled.digits import bits
from cython.cimports.tb_tpuprof.native.compiled.prefetch import prefetch

Box = cython.struct(
    start=int64_t,
    duration=int64_t,
    longest=int64_t,
    row=int32_t,
    event=int32_t,
    n_merged=int32_t,
    unused=int32_t,
)
FAN_BITS = cython.declare(cython.int, 3)
FAN = cython.declare(int64_t, 8)
MAX_LEVELS = cython.declare(cython.int, 10)
AHEAD = cython.declare(int64_t, 48)  # how many entries of `order` ahead data is prefetched
BOXES_AHEAD = cython.declare(int64_t, 24)  # how many boxes ahead keys are prefetched
KEEP = cython.declare(uint8_t, 255)
DIGITS = cython.declare(cython.int, 7)


@cython.final
@cython.cclass
class _Boxes:
    """Growing array of boxes in C memory."""

    items: cython.pointer(Box)
    n: int64_t
    capacity: int64_t

    def __cinit__(self):
        self.items = cython.NULL
        self.n = 0
        self.capacity = 0

    def __dealloc__(self):
        free(self.items)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def append(self, box: Box) -> cython.bint:
        if self.n == self.capacity:
            capacity: int64_t = self.capacity * 2 if self.capacity else 4096
            grown = cython.cast(
                cython.pointer(Box),
                realloc(self.items, cython.cast(cython.size_t, capacity) * cython.sizeof(Box)),
            )
            if grown == cython.NULL:
                return False
            self.items = grown
            self.capacity = capacity
        self.items[self.n] = box
        self.n += 1
        return True

    def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int):
        PyBuffer_FillInfo(
            view, self, self.items, self.n * cython.cast(cython.Py_ssize_t, cython.sizeof(Box)), True, flags
        )

    def array(self):
        """The boxes without a copy; nothing may be appended afterwards."""
        longs = [(name, "<i8") for name in ("start", "duration", "longest")]
        dtype = np.dtype(longs + [(name, "<i4") for name in ("row", "event", "n_merged", "unused")])
        return np.frombuffer(self, dtype) if self.n else np.empty(0, dtype)


@cython.final
@cython.cclass
class Rows:
    """Events by row, one row per line and depth; see `plain.timeline.Rows`.

    Blocks of 8, 64, 512 … entries of `order` keep their longest event, and blocks of 8 the start of their
    last event, so that events that merge into one box are handled a block at a time:

        level 1   |     0      |     1      |  …         8 entries each
        level 0   e e e e e e e e e e e e e e e e …       order
    """

    start: cython.const[int64_t][::1]
    duration: cython.const[int64_t][::1]
    order = cython.declare(object, visibility="readonly")
    offsets = cython.declare(object, visibility="readonly")
    event_at: int32_t[::1]
    row_at: int64_t[::1]
    longest: int64_t[::1]
    longest_event: int32_t[::1]
    last_start: int64_t[::1]
    first_block: int64_t[::1]
    n_levels: cython.int

    def __init__(self, start, duration, row_sizes):
        self.start = start
        self.duration = duration
        sizes = []
        n = (len(start) + FAN - 1) // FAN
        while n > 0 and len(sizes) < MAX_LEVELS:
            sizes.append(n)
            n //= FAN
        self.n_levels = len(sizes)
        self.first_block = np.cumsum([0, *sizes], dtype=np.int64)
        self.longest = np.full(sum(sizes), -1, np.int64)
        self.longest_event = np.zeros(sum(sizes), np.int32)
        self.last_start = np.empty(sizes[0] if sizes else 0, np.int64)
        self.order = np.empty(len(start), np.int32)
        self.offsets = np.concatenate(([0], np.cumsum(row_sizes))).astype(np.int64)
        self.event_at = self.order
        self.row_at = self.offsets

    def place(
        self,
        line_offsets: cython.const[int64_t][::1],
        first_rows: cython.const[int64_t][::1],
        depth: cython.const[uint16_t][::1],
    ):
        """Put the events of some lines into rows; see `plain.timeline.Rows.place`.

        Also records the longest event (the first of equals) and the last start of each block of 8 entries. (A
        block that contains the end of one row and the start of another is never read, so races between
        threads on it are harmless.)
        """
        next_places = np.array(self.offsets)
        following: int64_t[::1] = next_places
        durations: cython.const[int64_t][::1] = self.duration
        event_at: int32_t[::1] = self.event_at
        longest: int64_t[::1] = self.longest
        longest_event: int32_t[::1] = self.longest_event
        last_start: int64_t[::1] = self.last_start
        starts: cython.const[int64_t][::1] = self.start
        line: int64_t
        i: int64_t
        row: int64_t
        place: int64_t
        duration: int64_t
        best: int64_t
        is_longer: int32_t  # a mask of all bits or none, to avoid a branch that is hard to predict
        with cython.nogil:
            for line in range(line_offsets.shape[0] - 1):
                for i in range(line_offsets[line], line_offsets[line + 1]):
                    row = first_rows[line] + depth[i]
                    place = following[row]
                    following[row] = place + 1
                    event_at[place] = cython.cast(int32_t, i)
                    place >>= FAN_BITS
                    last_start[place] = starts[i]
                    duration = durations[i]
                    best = longest[place]
                    is_longer = -cython.cast(int32_t, duration > best)
                    longest[place] = duration if duration > best else best
                    longest_event[place] ^= (longest_event[place] ^ cython.cast(int32_t, i)) & is_longer

    def finish(self):
        """Compute the larger blocks, once all lines are placed."""
        with cython.nogil:
            self.fill()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fill(self) -> cython.void:
        """The longest event of each larger block, the first of equals."""
        level: cython.int
        block: int64_t
        i: int64_t
        child: int64_t
        best: int64_t
        best_event: int32_t
        for level in range(1, self.n_levels):
            for block in range(self.first_block[level + 1] - self.first_block[level]):
                best = -1
                best_event = 0
                for i in range(block * FAN, block * FAN + FAN):
                    child = self.first_block[level - 1] + i
                    if self.longest[child] > best:
                        best = self.longest[child]
                        best_event = self.longest_event[child]
                self.longest[self.first_block[level] + block] = best
                self.longest_event[self.first_block[level] + block] = best_event

    def boxes(
        self, rows: cython.const[int32_t][::1], window_start: int64_t, window_end: int64_t, pixel_ps: int64_t
    ):
        """Boxes of the rows in the window; see `plain.timeline.Rows.boxes`."""
        boxes = _Boxes()
        pixel_ps = max(pixel_ps, 1)
        r: int64_t
        good: cython.bint = True
        with cython.nogil:
            for r in range(rows.shape[0]):
                if 0 <= rows[r] < self.row_at.shape[0] - 1:
                    good = self.row_boxes(boxes, rows[r], window_start, window_end, pixel_ps)
                if not good:
                    break
        if not good:
            raise MemoryError
        return boxes.array()

    def first_ending_after(self, rows: cython.const[int32_t][::1], time: int64_t):
        """Index in `order` of each row's first event that ends after the time; see
        `plain.timeline.Rows.first_ending_after`.
        """
        indexes = np.empty(rows.shape[0], np.int64)
        out: int64_t[::1] = indexes
        r: int64_t
        for r in range(rows.shape[0]):
            out[r] = self.first_after(rows[r], time) if 0 <= rows[r] < self.row_at.shape[0] - 1 else 0
        return indexes

    def busy(self, rows: cython.const[int32_t][::1], begin: int64_t, pixel_ps: int64_t, n_pixels: int64_t):
        """Picoseconds covered in each pixel, summed over the rows; see `plain.timeline.Rows.busy`."""
        covered = np.zeros(n_pixels, np.int64)
        out: int64_t[::1] = covered
        r: int64_t
        i: int64_t
        e: int32_t
        low: int64_t
        high: int64_t
        pixel: int64_t
        last: int64_t
        end: int64_t = begin + pixel_ps * n_pixels
        with cython.nogil:
            for r in range(rows.shape[0]):
                if not 0 <= rows[r] < self.row_at.shape[0] - 1:
                    continue
                for i in range(self.first_after(rows[r], begin), self.row_at[rows[r] + 1]):
                    e = self.event_at[i]
                    if self.start[e] >= end:
                        break
                    low = max(self.start[e], begin) - begin
                    high = min(self.start[e] + self.duration[e], end) - begin
                    if high <= low:
                        continue
                    pixel = low // pixel_ps
                    last = (high - 1) // pixel_ps
                    if pixel == last:
                        out[pixel] += high - low
                        continue
                    out[pixel] += (pixel + 1) * pixel_ps - low
                    out[last] += high - last * pixel_ps
                    pixel += 1
                    while pixel < last:
                        out[pixel] += pixel_ps
                        pixel += 1
        return covered

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def first_after(self, row: int32_t, time: int64_t) -> int64_t:
        """Index in `order` of the row's first event that ends after the time (an event without duration
        counts as 1 ps).
        """
        lo: int64_t = self.row_at[row]
        hi: int64_t = self.row_at[row + 1]
        mid: int64_t
        e: int32_t
        while lo < hi:
            mid = (lo + hi) // 2
            e = self.event_at[mid]
            if self.start[e] + max(self.duration[e], 1) <= time:
                lo = mid + 1
            else:
                hi = mid
        return lo

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def block_level(self, place: int64_t, last: int64_t, limit: int64_t, pixel_ps: int64_t) -> cython.int:
        """Level (from 1) of the largest block that starts at `place`, ends before `last`, and has only short
        events that start before the limit; 0 for none.
        """
        level: cython.int = 0
        shift: cython.int = FAN_BITS
        while level < self.n_levels and (place & ((cython.cast(int64_t, 1) << shift) - 1)) == 0:
            if place + (cython.cast(int64_t, 1) << shift) > last:
                break
            if self.longest[self.first_block[level] + (place >> shift)] >= pixel_ps:
                break
            if self.last_start[((place + (cython.cast(int64_t, 1) << shift)) >> FAN_BITS) - 1] >= limit:
                break
            level += 1
            shift += FAN_BITS
        return level

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def row_boxes(
        self, boxes: _Boxes, row: int32_t, begin: int64_t, end: int64_t, pixel_ps: int64_t
    ) -> cython.bint:
        """Append the boxes of one row; False if out of memory."""
        starts: cython.pointer(cython.const[int64_t]) = (
            cython.address(self.start[0]) if self.start.shape[0] else cython.NULL
        )
        durations: cython.pointer(cython.const[int64_t]) = (
            cython.address(self.duration[0]) if self.start.shape[0] else cython.NULL
        )
        order: cython.pointer(cython.const[int32_t]) = (
            cython.address(self.event_at[0]) if self.event_at.shape[0] else cython.NULL
        )
        box: Box
        box.unused = 0
        box.row = row
        i: int64_t = self.first_after(row, begin)
        last: int64_t = self.row_at[row + 1]
        first: int64_t
        # End of the current two pixels; divides only to skip empty ones.
        limit: int64_t = begin + 2 * pixel_ps
        block: int64_t
        longest: int64_t
        duration: int64_t
        level: cython.int
        e: int32_t
        event: int32_t
        is_longer: int32_t  # a mask of all bits or none, to avoid a branch that is hard to predict
        while i < last:
            event = order[i]
            box.start = starts[event]
            if box.start >= end:
                break
            longest = durations[event]
            first = i
            i += 1
            if longest < pixel_ps:
                if box.start >= limit:
                    limit += 2 * pixel_ps
                    if box.start >= limit:
                        limit += (box.start - limit) // (2 * pixel_ps) * 2 * pixel_ps + 2 * pixel_ps
                while i < last:
                    level = (
                        self.block_level(i, last, min(limit, end), pixel_ps) if (i & (FAN - 1)) == 0 else 0
                    )
                    if level > 0:
                        block = self.first_block[level - 1] + (i >> (level * FAN_BITS))
                        duration = self.longest[block]
                        e = self.longest_event[block]
                        i += cython.cast(int64_t, 1) << (level * FAN_BITS)
                    else:
                        if i + AHEAD < last:
                            prefetch(cython.address(durations[order[i + AHEAD]]))
                            prefetch(cython.address(starts[order[i + AHEAD]]))
                        e = order[i]
                        duration = durations[e]
                        if starts[e] >= limit or duration >= pixel_ps or starts[e] >= end:
                            break
                        i += 1
                    is_longer = -cython.cast(int32_t, duration > longest)
                    longest = duration if duration > longest else longest
                    event ^= (event ^ e) & is_longer
            box.longest = longest
            box.event = event
            box.n_merged = cython.cast(int32_t, i - first)
            e = order[i - 1]
            box.duration = starts[e] + durations[e] - box.start
            if not boxes.append(box):
                return False
        return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pair_of(begin: int64_t, pair_ps: int64_t, pixel_ps: int64_t) -> int64_t:
    """Start of the pair of pixels that `begin` falls into: usually the pair before (`pair_ps`) or the next
    one.
    """
    if begin < pair_ps or begin >= pair_ps + 2 * pixel_ps:
        pair_ps += 2 * pixel_ps
        if begin < pair_ps or begin >= pair_ps + 2 * pixel_ps:
            pair_ps = begin // (2 * pixel_ps) * 2 * pixel_ps
    return pair_ps


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rounded(value: int64_t) -> int64_t:
    """A number rounded to seven binary digits, halves upward."""
    shift: cython.int = max(bits(value) - DIGITS, 0)
    return ((value + ((cython.cast(int64_t, 1) << shift) >> 1)) >> shift) << shift


@cython.final
@cython.cclass
class BoxStyles:
    """Per-box style columns of some rows; see `plain.timeline.BoxStyles`."""

    row_line: cython.const[int32_t][::1]
    row_depth: cython.const[int32_t][::1]
    key: cython.const[int32_t][::1]
    name: cython.const[int32_t][::1]
    family: cython.const[uint8_t][::1]
    has_own: cython.const[uint8_t][::1]
    of_line: cython.const[uint8_t][::1]
    own_event: cython.const[int32_t][::1]
    own_name: cython.const[int32_t][::1]
    own_family: uint8_t

    def __init__(self, of_row, key, of_key, of_line, own_names):
        self.row_line, self.row_depth = of_row
        self.key = key
        self.name, self.family, self.has_own = of_key
        self.of_line = of_line
        self.own_event, self.own_name, self.own_family = own_names

    def fill(self, columns, boxes, window, shifts, seen: uint8_t[::1]):
        """Columns of boxes, merged ones on whole pixels; see `plain.timeline.BoxStyles.fill`."""
        n: int64_t = len(boxes)
        if n == 0:
            return
        raw: cython.const[uint8_t][::1] = boxes.view(np.uint8)
        box: cython.pointer(cython.const[Box]) = cython.cast(
            cython.pointer(cython.const[Box]), cython.address(raw[0])
        )
        longs: int64_t[:, :] = columns[0]
        ints: int32_t[:, :] = columns[1]
        families: uint8_t[:] = columns[2]
        origin_ps: int64_t = window[0]
        pixel_ps: int64_t = window[1]
        line_shift: int64_t = shifts[0]
        time_shift: int64_t = shifts[1]
        event_shift: int64_t = shifts[2]
        pair_ps: int64_t = 0
        i: int64_t
        own_row: int64_t
        m: int32_t
        line: int32_t
        name: int32_t
        family: uint8_t
        begin: int64_t
        end: int64_t
        longest: int64_t
        with cython.nogil:
            for i in range(n):
                prefetch(cython.address(self.key[box[min(i + BOXES_AHEAD, n - 1)].event]))
                line = self.row_line[box[i].row]
                m = self.key[box[i].event]
                name = self.name[m]
                family = self.family[m]
                if self.has_own[m]:
                    own_row = self.own_at(box[i].event)
                    if own_row >= 0:
                        name = self.own_name[own_row]
                        family = self.own_family
                if self.of_line[line] != KEEP:
                    family = self.of_line[line]
                begin = box[i].start - origin_ps
                end = begin + box[i].duration
                longest = 0
                if box[i].n_merged > 1:
                    begin = max(begin, 0)
                    pair_ps = pair_of(begin, pair_ps, pixel_ps)
                    # Without branches, which would be hard to predict.
                    begin = pair_ps + pixel_ps * (begin >= pair_ps + pixel_ps)
                    end = pair_ps + pixel_ps * ((end > pair_ps) + (end > pair_ps + pixel_ps))
                    longest = rounded(box[i].longest)
                longs[0, i] = line + line_shift
                longs[1, i] = begin + origin_ps + time_shift
                longs[2, i] = end - begin
                longs[3, i] = longest
                longs[4, i] = box[i].event + event_shift
                ints[0, i] = self.row_depth[box[i].row]
                ints[1, i] = name
                ints[2, i] = box[i].n_merged
                families[i] = family
                if 0 <= name < seen.shape[0]:
                    seen[name] = 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def own_at(self, event: int32_t) -> int64_t:
        """Index of an event among those with names of their own, -1 if it is not one of them."""
        low: int64_t = 0
        high: int64_t = self.own_event.shape[0]
        middle: int64_t
        while low < high:
            middle = (low + high) // 2
            if self.own_event[middle] < event:
                low = middle + 1
            else:
                high = middle
        return low if low < self.own_event.shape[0] and self.own_event[low] == event else -1
