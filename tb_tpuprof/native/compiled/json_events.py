# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Chrome trace JSON → rows of events and of their wanted arguments, in one pass over the bytes. Compiled;
reads hostile bytes.

Everything else about an event stays in the file, at the row's `position`. The twin is `plain/json_events.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcmp, memset
from cython.cimports.tb_tpuprof.native.compiled.json_lex import (
    bare,
    hash_bytes,
    read_number,
    read_time,
    skip,
    space,
    space_or_comma,
    string_end,
)  # fmt: skip
from cython.cimports.tb_tpuprof.native.compiled.texts import Texts

EventRow = cython.struct(
    position=int64_t,
    us=int64_t,
    duration_ps=int64_t,
    id=int64_t,
    rest_ps=int32_t,
    name=int32_t,
    cat=int32_t,
    pid=int32_t,
    tid=int32_t,
    phase=uint8_t,
    scope=uint8_t,
    flags=uint8_t,
    unused=uint8_t,
)
ValueRow = cython.struct(value=int64_t, event=int32_t, key=int32_t, kind=int32_t, unused=int32_t)
Extra = cython.struct(args=int64_t, bind=int64_t, scope=uint64_t)

CHUNK = cython.declare(int64_t, 1 << 16)
FAR = cython.declare(int64_t, 1 << 61)
HAS_TIME, HAS_DURATION, BINDS_ENCLOSING, LOCAL_ID, FLOW_IN, FLOW_OUT, HAS_ID, HAS_ARGS = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
)
KINDS = {"double": 2, "uint": 3, "int": 4, "text": 5, "bind": 9}
MAX_ARRAY_TEXT = cython.declare(int64_t, 4096)


@cython.final
@cython.cclass
class Scanner:
    """One pass over a file. `events` and `values` are structured arrays; see `scan` in the twin for their
    columns.
    """

    data: cython.const[uint8_t][::1]
    p: cython.pointer(cython.const[uint8_t])
    limit: int64_t
    texts: Texts
    hot: list
    n_hot: int32_t
    bind_key: int32_t
    hot_sizes: uint64_t[256]
    seed: uint64_t
    event_chunks: list
    value_chunks: list
    event_rows: cython.pointer(EventRow)
    value_rows: cython.pointer(ValueRow)
    n_events = cython.declare(int64_t, visibility="readonly")
    n_values: int64_t
    n_others = cython.declare(int64_t, visibility="readonly")
    bad = cython.declare(int64_t, visibility="readonly")
    is_open = cython.declare(cython.bint, visibility="readonly")
    out_of_memory: cython.bint
    in_full: cython.bint
    members = cython.declare(list, visibility="readonly")
    blank: EventRow
    opened: int64_t

    def __cinit__(self, data, hot, seed, in_full):
        self.data = data
        self.in_full = in_full
        self.limit = self.data.shape[0]
        self.p = cython.address(self.data[0]) if self.limit else cython.NULL
        self.seed = seed
        self.texts = Texts(seed)
        self.hot = list(hot)
        self.n_hot = cython.cast(int32_t, len(self.hot))
        self.bind_key = self.n_hot
        self.event_chunks, self.value_chunks, self.members = [], [], []
        self.n_events = self.n_values = self.n_others = 0
        self.bad = -1
        memset(cython.address(self.blank), 0, cython.sizeof(EventRow))
        self.blank.name = self.blank.cat = self.blank.pid = self.blank.tid = -1
        self.value_rows = cython.NULL
        self.opened = -1
        self.is_open = False
        self.out_of_memory = False
        i: cython.int
        for i in range(256):
            self.hot_sizes[i] = 0
        text: bytes
        for text in self.hot:
            self.hot_sizes[text[0]] |= cython.cast(uint64_t, 1) << min(len(text), 63)
            self.texts.add(
                cython.cast(cython.pointer(cython.const[uint8_t]), cython.cast(cython.p_char, text)),
                len(text),
            )
        name: bytes = b"(bind)"
        self.hot.append(name)
        self.texts.add(
            cython.cast(cython.pointer(cython.const[uint8_t]), cython.cast(cython.p_char, name)), len(name)
        )

    def scan(self):
        """Read the whole file. `bad` is the offset at which it is damaged or cut off, else -1."""
        p = self.p
        pos: int64_t = space(
            p, 3 if self.limit >= 3 and memcmp(p, b"\xef\xbb\xbf", 3) == 0 else 0, self.limit
        )
        if pos < self.limit and p[pos] == 91:  # [
            self.is_open = self.read_array(pos + 1) == -3
        elif pos < self.limit and p[pos] == 123:  # {
            self.read_members(pos + 1)
        else:
            self.bad = pos
        if self.out_of_memory:
            raise MemoryError

    @cython.cfunc
    def read_members(self, pos: int64_t):
        """The members of the file's object; of members other than the events, only the span is kept."""
        p = self.p
        key: int64_t
        start: int64_t
        end: int64_t
        while True:
            pos = space_or_comma(p, pos, self.limit)
            if pos < self.limit and p[pos] == 125:
                return
            self.bad = pos
            if pos >= self.limit or p[pos] != 34:
                return
            key = pos + 1
            end = string_end(p, key, self.limit)
            pos = space(p, end + 1, self.limit) if end >= 0 else self.limit
            if pos >= self.limit or p[pos] != 58:
                return
            start = space(p, pos + 1, self.limit)
            is_samples: cython.bint = end - key == 7 and memcmp(p + key, b"samples", 7) == 0
            is_events: cython.bint = is_samples or (
                end - key == 11 and memcmp(p + key, b"traceEvents", 11) == 0
            )
            if start < self.limit and p[start] == 91 and is_events:
                self.bad = -1
                self.blank.phase = 80 if is_samples else 0
                pos = self.read_array(start + 1)
                if pos == -3:
                    self.bad = self.limit
            else:
                pos = skip(p, start, self.limit)
            self.members.append((bytes(self.data[key:end]), start, pos))
            if pos < 0:
                return
            self.bad = -1

    @cython.cfunc
    def read_array(self, pos: int64_t) -> int64_t:
        """The events from pos to the closing bracket; returns the position after it, -1 if an event is
        damaged, or -3 if the file ends first.
        """
        p = self.p
        status: int64_t = 0
        n_values: int64_t
        with cython.nogil:
            while status == 0:
                pos = space_or_comma(p, pos, self.limit)
                if pos >= self.limit:
                    status = -3
                elif p[pos] == 93:
                    status = pos + 1
                elif p[pos] == 123:
                    n_values = self.n_values
                    pos = self.read_event(pos)
                    if pos < 0:
                        self.n_values = n_values
                        status = -1
                else:
                    self.bad = pos
                    pos = skip(p, pos, self.limit)
                    if pos < 0:
                        status = -1
                    else:
                        self.bad = -1
                        self.n_others += 1
        return status

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_event(self, event_start: int64_t) -> int64_t:
        """Read one object into the next row; returns the position after it, or -1 with `bad` set."""
        p = self.p
        row: EventRow = self.blank
        extra: Extra
        row.position = event_start
        extra.args = -1
        extra.bind = 0
        extra.scope = 0
        n_values: int64_t = self.n_values
        is_empty: cython.bint = True
        pos: int64_t = event_start + 1
        key: int64_t
        size: int64_t
        start: int64_t
        while True:
            pos = space_or_comma(p, pos, self.limit)
            if pos < self.limit and p[pos] == 125:
                break
            if pos >= self.limit or p[pos] != 34:
                self.bad = min(pos, self.limit)
                return -1
            is_empty = False
            key = pos + 1
            pos = string_end(p, key, self.limit)
            size = pos - key
            pos = space(p, pos + 1, self.limit) if pos >= 0 else self.limit
            if pos >= self.limit or p[pos] != 58:
                self.bad = min(pos, self.limit)
                return -1
            start = space(p, pos + 1, self.limit)
            if size == 4 and start < self.limit and p[start] == 123 and memcmp(p + key, b"args", 4) == 0:
                self.n_values = n_values
                extra.args = start
                row.flags |= 128
                pos = self.read_args(start, self.in_full and self.n_hot == 0)
            else:
                pos = skip(p, start, self.limit)
                if pos >= 0:
                    self.read_field(key, size, start, pos, cython.address(row), cython.address(extra))
            if pos < 0:
                self.bad = event_start
                return -1
        if row.phase == 0:
            self.n_values = n_values
            self.n_others += 0 if is_empty else 1
            return pos + 1
        if (row.phase == 67 or row.phase == 77) and extra.args >= 0:  # C, M: keep all arguments
            self.n_values = n_values
            self.read_args(extra.args, True)
        if extra.bind != 0:
            self.put_value(self.bind_key, 9, extra.bind)
        row.id ^= cython.cast(int64_t, extra.scope)
        self.put_event(row)
        if self.out_of_memory or row.name == -2 or row.cat == -2 or row.pid == -2 or row.tid == -2:
            self.out_of_memory = True
            self.bad = event_start
            return -1
        return pos + 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_field(
        self,
        key: int64_t,
        size: int64_t,
        start: int64_t,
        end: int64_t,
        row: cython.pointer(EventRow),
        extra: cython.pointer(Extra),
    ) -> cython.void:
        """Put one member of an event, with its value at p[start:end], into its row."""
        p = self.p
        if size == 3 and p[start] == 123 and memcmp(p + key, b"id2", 3) == 0:
            self.read_id2(start + 1, end, row)
        if p[start] == 123 or p[start] == 91 or p[start] == 110 or size > 8:  # { [ null
            return
        bare(p, cython.address(start), cython.address(end))
        if size == 2:
            if memcmp(p + key, b"ph", 2) == 0:
                row.phase = p[start] if end == start + 1 else 63
            elif memcmp(p + key, b"ts", 2) == 0:
                row.flags &= 255 - 1
                row.flags |= read_time(
                    p + start, end - start, cython.address(row.us), cython.address(row.rest_ps)
                )
            elif memcmp(p + key, b"bp", 2) == 0:
                row.flags |= 4 if end == start + 1 and p[start] == 101 else 0
            elif memcmp(p + key, b"id", 2) == 0:
                row.id = cython.cast(int64_t, hash_bytes(p + start, end - start, self.seed))
                row.flags |= 64
        elif size == 3:
            if memcmp(p + key, b"pid", 3) == 0:
                row.pid = self.texts.add(p + start, end - start)
            elif memcmp(p + key, b"tid", 3) == 0:
                row.tid = self.texts.add(p + start, end - start)
            elif memcmp(p + key, b"cat", 3) == 0:
                row.cat = self.texts.add(p + start, end - start)
            elif memcmp(p + key, b"dur", 3) == 0:
                self.read_duration(start, end, row)
        elif size == 4:
            if memcmp(p + key, b"name", 4) == 0:
                row.name = self.texts.add(p + start, end - start)
        elif size == 1:
            if p[key] == 115 and end > start:
                row.scope = p[start]
        elif size == 5:
            if memcmp(p + key, b"scope", 5) == 0:
                extra.scope = ~hash_bytes(p + start, end - start, self.seed)
        elif size == 7:
            if memcmp(p + key, b"bind_id", 7) == 0:
                extra.bind = cython.cast(int64_t, hash_bytes(p + start, end - start, self.seed)) | 1
            elif memcmp(p + key, b"flow_in", 7) == 0 and end > start:
                row.flags |= 16 if p[start] == 116 else 0
        elif size == 8 and memcmp(p + key, b"flow_out", 8) == 0 and end > start:
            row.flags |= 32 if p[start] == 116 else 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_duration(self, start: int64_t, end: int64_t, row: cython.pointer(EventRow)) -> cython.void:
        us: int64_t = 0
        rest: int32_t = 0
        row.flags &= 255 - 2
        row.duration_ps = 0
        if read_time(self.p + start, end - start, cython.address(us), cython.address(rest)):
            row.flags |= 2
            if us >= 0:
                row.duration_ps = min(us, FAR // 1000000 - 1) * 1000000 + rest

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_id2(self, pos: int64_t, limit: int64_t, row: cython.pointer(EventRow)) -> cython.void:
        """The id in {"local": …} or {"global": …}."""
        p = self.p
        pos = space(p, pos, limit)
        if pos >= limit or p[pos] != 34:
            return
        key: int64_t = pos + 1
        end: int64_t = string_end(p, key, limit)
        if end < 0:
            return
        is_local: cython.bint = end - key == 5 and memcmp(p + key, b"local", 5) == 0
        pos = space(p, end + 1, limit)
        if pos >= limit or p[pos] != 58:
            return
        pos = space(p, pos + 1, limit)
        end = skip(p, pos, limit)
        if end < 0:
            return
        bare(p, cython.address(pos), cython.address(end))
        row.id = cython.cast(int64_t, hash_bytes(p + pos, end - pos, self.seed))
        row.flags |= 64 | (8 if is_local else 0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_args(self, pos: int64_t, take_all: cython.bint) -> int64_t:
        """The wanted arguments of the object at pos; returns the position after it, or -1 if it is
        damaged.
        """
        p = self.p
        key: int64_t
        size: int64_t
        start: int64_t
        end: int64_t
        value: int64_t = 0
        k: int32_t
        kind: cython.int
        pos += 1
        while True:
            pos = space_or_comma(p, pos, self.limit)
            if pos < self.limit and p[pos] == 125:
                return pos + 1
            if pos >= self.limit or p[pos] != 34:
                return -1
            key = pos + 1
            pos = string_end(p, key, self.limit)
            if pos < 0:
                return -1
            size = pos - key
            pos = space(p, pos + 1, self.limit)
            if pos >= self.limit or p[pos] != 58:
                return -1
            start = space(p, pos + 1, self.limit)
            pos = skip(p, start, self.limit)
            if pos < 0:
                return -1
            if not take_all and (size == 0 or ((self.hot_sizes[p[key]] >> min(size, 63)) & 1) == 0):
                continue
            k = self.texts.add(p + key, size)
            if k == -2:
                self.out_of_memory = True
                return -1
            if k >= self.n_hot and not take_all:
                continue
            end = pos
            kind = 0
            if p[start] == 34:
                kind = 5
                start += 1
                end -= 1
            elif self.in_full and (p[start] == 91 or p[start] == 123):
                kind = 10
            elif self.in_full and (p[start] == 116 or p[start] == 102 or p[start] == 110):
                kind = 5  # true, false, null
            elif p[start] == 91:
                kind = 5 if end - start <= MAX_ARRAY_TEXT else 0
            elif p[start] == 116 or p[start] == 102:  # true, false
                kind = 4
                value = 1 if p[start] == 116 else 0
            elif p[start] != 123:
                kind = read_number(p + start, end - start, cython.address(value))
            if kind == 5 or kind == 10:
                value = self.texts.add(p + start, end - start)
                if value == -2:
                    self.out_of_memory = True
                    return -1
            if kind:
                self.put_value(k, kind, value)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_event(self, row: EventRow) -> cython.void:
        row_in_chunk: int64_t = self.n_events % CHUNK
        if row_in_chunk == 0:
            with cython.gil:
                self.add_event_chunk()
        if not self.out_of_memory:
            self.event_rows[row_in_chunk] = row
            self.n_events += 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_value(self, key: int32_t, kind: cython.int, value: int64_t) -> cython.void:
        """Append a value of the event being read. Opens a chunk when it is first needed, also after discarded
        values.
        """
        row_in_chunk: int64_t = self.n_values % CHUNK
        if self.n_values // CHUNK != self.opened:
            with cython.gil:
                self.open_value_chunk(self.n_values // CHUNK)
        if self.out_of_memory:
            return
        self.value_rows[row_in_chunk].value = value
        self.value_rows[row_in_chunk].event = cython.cast(int32_t, self.n_events)
        self.value_rows[row_in_chunk].key = key
        self.value_rows[row_in_chunk].kind = kind
        self.value_rows[row_in_chunk].unused = 0
        self.n_values += 1

    @cython.cfunc
    def add_event_chunk(self):
        try:
            memory = np.empty(CHUNK * cython.sizeof(EventRow), np.uint8)
        except MemoryError:
            self.out_of_memory = True
            return
        view: uint8_t[::1] = memory
        self.event_rows = cython.cast(cython.pointer(EventRow), cython.address(view[0]))
        self.event_chunks.append(memory)

    @cython.cfunc
    def open_value_chunk(self, number: int64_t):
        try:
            while len(self.value_chunks) <= number:
                self.value_chunks.append(np.empty(CHUNK * cython.sizeof(ValueRow), np.uint8))
        except MemoryError:
            self.out_of_memory = True
            return
        view: uint8_t[::1] = self.value_chunks[number]
        self.value_rows = cython.cast(cython.pointer(ValueRow), cython.address(view[0]))
        self.opened = number

    def take_events(self):
        """The events as columns; frees the rows as soon as they are copied."""
        kind = np.dtype([(n, np.int64) for n in ("position", "us", "duration_ps", "id")]
                        + [(n, np.int32) for n in ("rest_ps", "name", "cat", "pid", "tid")]
                        + [(n, np.uint8) for n in ("phase", "scope", "flags", "unused")])  # fmt: skip
        return _columns(
            self.event_chunks,
            kind,
            self.n_events,
            (
                "position",
                "us",
                "duration_ps",
                "id",
                "rest_ps",
                "name",
                "cat",
                "pid",
                "tid",
                "phase",
                "scope",
                "flags",
            ),
        )

    def take_values(self):
        """The values of wanted arguments as columns: value, event, key, kind."""
        kind = np.dtype([("value", np.int64)] + [(n, np.int32) for n in ("event", "key", "kind", "unused")])
        return _columns(self.value_chunks, kind, self.n_values, ("value", "event", "key", "kind"))

    def take_texts(self):
        """All distinct strings as written in the file: (blob, offsets). Those of `hot` come first, in its
        order, then `(bind)`.
        """
        return self.texts.all()


def _columns(chunks, kind, n, names):
    size: int64_t = CHUNK
    columns = {name: np.empty(n, kind[name]) for name in names}
    for number in range(len(chunks)):
        rows = chunks[number].view(kind)[: max(0, min(size, n - number * size))]
        for name in names:
            columns[name][number * size : number * size + len(rows)] = rows[name]
        chunks[number] = None
    return columns


def scan(data, hot, seed, in_full=False):
    """See the twin."""
    scanner = Scanner(data, hot, seed, in_full)
    scanner.scan()
    blob, offsets = scanner.take_texts()
    return {
        "events": scanner.take_events(),
        "values": scanner.take_values(),
        "blob": blob,
        "offsets": offsets,
        "members": scanner.members,
        "bad": scanner.bad,
        "is_open": bool(scanner.is_open),
        "n_others": scanner.n_others,
    }
