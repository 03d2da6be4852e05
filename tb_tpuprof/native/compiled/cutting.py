# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A large line message → its own fields, and pieces of about equal bytes, cut between events. Compiled.

    line    ▏id name ▏event ▏event ▏event ▏event ▏event ▏
    pieces  ├─────────────── 2 ───┤├──────── 3 ─────────┤      (end, number of events) of each

Reads only the headers of fields, so that a file can be walked through a moving window.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.tb_tpuprof.native.compiled.varint import Field, read_field

HEADER_BYTES = cython.declare(int64_t, 20)  # at most, of a tag and a size or number


@cython.final
@cython.cclass
class Cutter:
    """Walks the line message from `position` to `end` of a file; `feed` advances `position`."""

    position = cython.declare(int64_t, visibility="readonly")
    end = cython.declare(int64_t, visibility="readonly")
    is_bad = cython.declare(cython.bint, visibility="readonly")
    id = cython.declare(int64_t, visibility="readonly")
    timestamp_ns = cython.declare(int64_t, visibility="readonly")
    display_id = cython.declare(int64_t, visibility="readonly")
    name_start = cython.declare(int64_t, visibility="readonly")
    name_size = cython.declare(int64_t, visibility="readonly")
    display_name_start = cython.declare(int64_t, visibility="readonly")
    display_name_size = cython.declare(int64_t, visibility="readonly")
    piece_bytes: int64_t
    piece_start: int64_t
    n_events: int64_t
    pieces: list

    def __init__(self, start: int64_t, end: int64_t, piece_bytes: int64_t):
        self.position = start
        self.end = end
        self.piece_bytes = piece_bytes
        self.piece_start = start
        self.name_size = -1
        self.display_name_size = -1
        self.pieces = []

    def feed(self, window: cython.const[uint8_t][::1], base: int64_t):
        """Walk on through the file's bytes, which start at `base`, as far as they contain whole headers.
        Returns whether the end is reached.

        `window` must contain the byte at `position`, and 20 more bytes or all up to the end.
        """
        n: int64_t = window.shape[0]
        if self.position >= self.end or self.is_bad:
            return True
        if self.position < base or self.position >= base + n:
            raise ValueError("the window does not contain the position")
        p: cython.pointer(cython.const[uint8_t]) = cython.address(window[0])
        last: int64_t = n if base + n >= self.end else n - HEADER_BYTES
        end: int64_t = self.end - base
        pos: int64_t = self.position - base
        field_start: int64_t
        field: Field
        with cython.nogil:
            while pos < end and (pos <= last and pos < n):
                field_start = pos
                pos = read_field(p, pos, end, n, cython.address(field))
                if pos < 0:
                    self.is_bad = True
                    pos = field_start
                    break
                if field.wire == 2:
                    if field.number == 4:
                        if field_start + base - self.piece_start >= self.piece_bytes:
                            with cython.gil:
                                self.cut(field_start + base)
                        self.n_events += 1
                    elif field.number == 2:
                        self.name_start = field.value + base
                        self.name_size = field.size
                    elif field.number == 11:
                        self.display_name_start = field.value + base
                        self.display_name_size = field.size
                elif field.wire == 0:
                    if field.number == 1:
                        self.id = field.value
                    elif field.number == 3:
                        self.timestamp_ns = field.value
                    elif field.number == 10:
                        self.display_id = field.value
        self.position = pos + base
        return self.position >= self.end or self.is_bad

    @cython.cfunc
    def cut(self, position: int64_t):
        """End a piece at a position."""
        self.pieces.append((position, self.n_events))
        self.piece_start = position
        self.n_events = 0

    def cuts(self):
        """(the end of each piece, number of its events) as int64 arrays; the last piece ends with
        the line.
        """
        ends, counts = zip(*self.pieces, (self.end, self.n_events), strict=True)
        return np.array(ends, np.int64), np.array(counts, np.int64)
