# cython: language_level=3, boundscheck=True, wraparound=False, auto_pickle=False
"""The bytes of a pickle → its value, of plain data only. Compiled; the twin is `plain/pickles.py`, which
explains it. Bounds of lists are checked by Cython, those of the bytes here: `argument` once for each opcode.
"""

import cython
from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcpy

from tb_tpuprof.native.plain.pickles import HIGHEST_PROTOCOL, MAX_INT_BYTES, Unreadable

# Opcodes, some 2 ms, until other threads may take the GIL. Not fewer: a thread asks for it only after waiting
# undisturbed for longer than the interpreter's switch interval.
TURN = cython.declare(int64_t, 65536)


def unpickled(data: bytes, max_opcodes: int64_t):
    """The value in a pickle; see the twin."""
    machine: Machine = Machine(data)
    try:
        return machine.run(max_opcodes)
    except IndexError:
        what = "is cut off" if machine.position >= machine.size else "is damaged"
        raise Unreadable(what, machine.start) from None
    except (TypeError, UnicodeDecodeError):
        raise Unreadable("is damaged", machine.start) from None


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _argument_bytes(opcode: cython.int) -> cython.int:
    """How many bytes of a fixed number follow an opcode."""
    if opcode in (0x68, 0x4B, 0x8A, 0x8C, 0x71, 0x80):  # h K LONG1 SHORT_TEXT q PROTO
        return 1
    if opcode in (0x6A, 0x4A, 0x58, 0x72):  # j J X r
        return 4
    if opcode == 0x4D:  # M
        return 2
    if opcode in (0x47, 0x8D, 0x95):  # G LONG_TEXT FRAME
        return 8
    return 0


@cython.final
@cython.cclass
class Machine:
    """The stacks, the memo, and the opcode at `start` with its argument up to `position`."""

    data: bytes  # keeps `p` alive
    p: cython.pointer(cython.const[uint8_t])
    size: int64_t
    start: int64_t
    position: int64_t
    stack: list
    below: list
    memo: list

    def __cinit__(self, data: bytes):
        self.data = data
        self.p = cython.cast(cython.pointer(cython.const[uint8_t]), cython.cast(cython.p_const_char, data))
        self.size = len(data)
        self.start = self.position = 0
        self.stack = []
        self.below = []
        self.memo = []

    @cython.cfunc
    def run(self, max_opcodes: int64_t):
        opcode: cython.int
        argument: uint64_t
        n: int64_t = 0
        while True:
            self.start = self.position
            n += 1
            if n > max_opcodes:
                raise Unreadable(f"has more than {max_opcodes:,} parts", self.start)
            if n % TURN == 0:
                with cython.nogil:
                    pass
            if self.start >= self.size:
                raise IndexError
            opcode = self.p[self.start]
            if opcode == 0x2E:  # .
                if len(self.stack) != 1 or self.below:
                    raise TypeError
                return self.stack[0]
            argument = self.argument(_argument_bytes(opcode))
            if opcode == 0x68 or opcode == 0x6A:  # h j
                self.stack.append(self.memo[cython.cast(cython.Py_ssize_t, argument)])
            elif opcode == 0x94:  # MEMOIZE
                self.memo.append(self.stack[len(self.stack) - 1])
            elif opcode == 0x4B or opcode == 0x4D:  # K M
                self.stack.append(argument)
            elif opcode == 0x4A:  # J
                self.stack.append(cython.cast(int32_t, argument))
            elif opcode == 0x7D:  # }
                self.stack.append({})
            elif opcode == 0x5D:  # ]
                self.stack.append([])
            elif opcode == 0x28:  # (
                self.below.append(self.stack)
                self.stack = []
            else:
                self.rarer(opcode, argument)

    @cython.cfunc
    @cython.exceptval(-1)
    def rarer(self, opcode: cython.int, argument: uint64_t) -> cython.int:
        """Run an opcode that is not among the most frequent."""
        if opcode == 0x75:  # u
            self.set_items(self.above_mark())
        elif opcode == 0x65:  # e
            values: list = self.above_mark()
            self.top_list().extend(values)
        elif opcode == 0x8A:  # LONG1
            self.push_long(argument)
        elif opcode == 0x8C or opcode == 0x58 or opcode == 0x8D:  # SHORT_TEXT X LONG_TEXT
            self.push_text(argument)
        elif opcode == 0x71 or opcode == 0x72:  # q r
            self.put(argument)
        elif opcode == 0x85 or opcode == 0x86 or opcode == 0x87:  # TUPLE1 TUPLE2 TUPLE3
            self.push_tuple(opcode - 0x84)
        elif opcode == 0x74:  # t
            self.push_above_mark()
        elif opcode == 0x61:  # a
            value = self.stack.pop()
            self.top_list().append(value)
        elif opcode == 0x73:  # s
            value = self.stack.pop()
            self.set_items([self.stack.pop(), value])
        elif opcode == 0x4E:  # N
            self.stack.append(None)
        elif opcode == 0x88 or opcode == 0x89:  # TRUE FALSE
            self.stack.append(opcode == 0x88)
        elif opcode == 0x29:  # )
            self.stack.append(())
        elif opcode == 0x47:  # G
            self.push_real(argument)
        elif opcode == 0x80:  # PROTO
            if argument > cython.cast(uint64_t, HIGHEST_PROTOCOL):
                raise Unreadable("has an unknown protocol", self.start)
        elif opcode != 0x95:  # FRAME: how many bytes follow, for readers that read in parts
            raise Unreadable(f"holds more than plain data (opcode {opcode:#04x})", self.start)
        return 0

    @cython.cfunc
    @cython.exceptval(0, check=True)
    def argument(self, n: cython.int) -> uint64_t:
        """The `n` bytes after the opcode as a number without sign."""
        i: cython.int
        value: uint64_t = 0
        first: int64_t = self.start + 1
        self.position = first + n
        if self.position > self.size:
            raise IndexError
        for i in range(n):
            value |= cython.cast(uint64_t, self.p[first + i]) << (8 * i)
        return value

    @cython.cfunc
    @cython.exceptval(-1)
    def skip(self, n: uint64_t) -> int64_t:
        """Where the next `n` bytes begin; they count as read."""
        first: int64_t = self.position
        if n > cython.cast(uint64_t, self.size - first):
            self.position = self.size
            raise IndexError
        self.position = first + cython.cast(int64_t, n)
        return first

    @cython.cfunc
    def above_mark(self) -> list:
        """What lies above the topmost mark, which is removed with it."""
        values: list = self.stack
        self.stack = self.below.pop()
        return values

    @cython.cfunc
    def top_list(self) -> list:
        """The topmost value, which must be a list."""
        value = self.stack[len(self.stack) - 1]
        if type(value) is not list:
            raise TypeError
        return value

    @cython.cfunc
    @cython.exceptval(-1)
    def set_items(self, values: list) -> cython.int:
        """Put keys and values, by turns, into the topmost dict."""
        i: cython.Py_ssize_t
        target = self.stack[len(self.stack) - 1]
        if type(target) is not dict:
            raise TypeError
        items: dict = target
        if len(values) % 2:
            raise IndexError
        for i in range(0, len(values), 2):
            key = values[i]
            if type(key) is not str:
                raise TypeError
            items[key] = values[i + 1]
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def push_long(self, n: uint64_t) -> cython.int:
        """A number of `n` bytes with a sign."""
        i: int64_t
        value: uint64_t = 0
        if n > cython.cast(uint64_t, MAX_INT_BYTES):
            raise Unreadable("has a number beyond 64 bits", self.start)
        first: int64_t = self.skip(n)
        if n > 8:
            self.stack.append(int.from_bytes(self.data[first : self.position], "little", signed=True))
            return 0
        for i in range(first, self.position):
            value |= cython.cast(uint64_t, self.p[i]) << (8 * (i - first))
        if 0 < n < 8 and self.p[self.position - 1] > 0x7F:
            value |= ~cython.cast(uint64_t, 0) << (8 * n)
        self.stack.append(cython.cast(int64_t, value))
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def push_text(self, n: uint64_t) -> cython.int:
        """A text of `n` bytes."""
        first: int64_t = self.skip(n)
        text = cython.cast(cython.p_const_char, self.p + first)
        self.stack.append(PyUnicode_DecodeUTF8(text, self.position - first, b"surrogatepass"))
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def push_real(self, bits: uint64_t) -> cython.int:
        """A number of eight bytes, the highest first."""
        swapped: uint64_t = 0
        real: cython.double = 0
        for _ in range(8):
            swapped = (swapped << 8) | (bits & 0xFF)
            bits >>= 8
        memcpy(cython.address(real), cython.address(swapped), 8)
        self.stack.append(real)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def push_tuple(self, n: cython.int) -> cython.int:
        """A tuple of the topmost `n` values."""
        stack: list = self.stack
        first: cython.Py_ssize_t = len(stack) - n
        if first < 0:
            raise IndexError
        values = tuple(stack[first:])
        del stack[first:]
        stack.append(values)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def push_above_mark(self) -> cython.int:
        """A tuple of all values above the topmost mark."""
        values: list = self.above_mark()
        self.stack.append(tuple(values))
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put(self, at: uint64_t) -> cython.int:
        """Store the topmost value under a number; picklers count up, so others are refused."""
        value = self.stack[len(self.stack) - 1]
        n: uint64_t = len(self.memo)
        if at == n:
            self.memo.append(value)
        else:
            self.memo[cython.cast(cython.Py_ssize_t, at)] = value
        return 0
