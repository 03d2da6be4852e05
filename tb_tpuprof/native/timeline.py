# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of events → the boxes that a screen of a given width can show. Compiled; the twin is in `plain_timeline.py`."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy

Box = cython.struct(start=int64_t, duration=int64_t, row=int32_t, event=int32_t, n_merged=int32_t, unused=int32_t)


@cython.final
@cython.cclass
class _Boxes:
    """Growing array of boxes in C memory."""

    items: cython.pointer(Box)
    n: int64_t
    room: int64_t

    def __cinit__(self):
        self.items = cython.NULL
        self.n = 0
        self.room = 0

    def __dealloc__(self):
        free(self.items)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def append(self, box: Box) -> cython.bint:
        if self.n == self.room:
            room: int64_t = self.room * 2 if self.room else 4096
            grown = cython.cast(cython.pointer(Box), realloc(self.items, cython.cast(cython.size_t, room) * cython.sizeof(Box)))
            if grown == cython.NULL:
                return False
            self.items = grown
            self.room = room
        self.items[self.n] = box
        self.n += 1
        return True

    def array(self):
        dtype = np.dtype([("start", "<i8"), ("duration", "<i8"), ("row", "<i4"), ("event", "<i4"), ("n_merged", "<i4"), ("unused", "<i4")])
        out = np.empty(self.n, dtype)
        if self.n:
            view: uint8_t[::1] = out.view(np.uint8)
            memcpy(cython.address(view[0]), self.items, cython.cast(cython.size_t, self.n) * cython.sizeof(Box))
        return out


@cython.final
@cython.cclass
class Rows:
    """Events by row: those of row r are order[offsets[r]:offsets[r + 1]], sorted by start, without overlap."""

    start: cython.const[int64_t][::1]
    duration: cython.const[int64_t][::1]
    order: cython.const[int32_t][::1]
    offsets: cython.const[int64_t][::1]

    def __init__(self, start, duration, order, offsets):
        self.start = start
        self.duration = duration
        self.order = order
        self.offsets = offsets

    def boxes(self, rows: cython.const[int32_t][::1], window_start: int64_t, window_end: int64_t, pixel_ps: int64_t):
        """Boxes of the rows in the window; see `plain_timeline.Rows.boxes`."""
        boxes = _Boxes()
        pixel_ps = max(pixel_ps, 1)
        r: int64_t
        good: cython.bint = True
        with cython.nogil:
            for r in range(rows.shape[0]):
                if 0 <= rows[r] < self.offsets.shape[0] - 1:
                    good = self.row_boxes(boxes, rows[r], window_start, window_end, pixel_ps)
                if not good:
                    break
        if not good:
            raise MemoryError
        return boxes.array()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def first_after(self, row: int32_t, time: int64_t) -> int64_t:
        """Position in `order` of the row's first event that ends after the time (an event without length counts as 1 ps)."""
        lo: int64_t = self.offsets[row]
        hi: int64_t = self.offsets[row + 1]
        mid: int64_t
        e: int32_t
        while lo < hi:
            mid = (lo + hi) // 2
            e = self.order[mid]
            if self.start[e] + max(self.duration[e], 1) <= time:
                lo = mid + 1
            else:
                hi = mid
        return lo

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def row_boxes(self, boxes: _Boxes, row: int32_t, begin: int64_t, end: int64_t, pixel_ps: int64_t) -> cython.bint:
        """Append the boxes of one row; False where memory is out."""
        bucket: int64_t = -1
        this_bucket: int64_t
        longest: int64_t = 0
        box: Box
        box.n_merged = 0
        box.unused = 0
        box.row = row
        i: int64_t
        e: int32_t
        for i in range(self.first_after(row, begin), self.offsets[row + 1]):
            e = self.order[i]
            if self.start[e] >= end:
                break
            this_bucket = -2
            if self.duration[e] < pixel_ps:
                this_bucket = max(self.start[e] - begin, 0) // (2 * pixel_ps)
            if box.n_merged > 0 and this_bucket == bucket:
                box.n_merged += 1
                box.duration = self.start[e] + self.duration[e] - box.start
                if self.duration[e] > longest:
                    longest = self.duration[e]
                    box.event = e
                continue
            if box.n_merged > 0 and not boxes.append(box):
                return False
            box.start = self.start[e]
            box.duration = self.duration[e]
            box.event = e
            box.n_merged = 1
            longest = self.duration[e]
            bucket = this_bucket if this_bucket >= 0 else -1
        if box.n_merged > 0:
            return boxes.append(box)
        return True
