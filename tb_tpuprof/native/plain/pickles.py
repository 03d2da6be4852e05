"""The bytes of a pickle → its value, of plain data only: no opcode that names or calls anything is known.

    stack    values that no container has taken yet, above the topmost mark; `below`: those under each mark
    memo     values that were stored under a number, to be used again

Keys of dicts must be texts, whose hashes nobody outside can make collide. The opcodes are those of Python's
pickletools.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

MAX_INT_BYTES, HIGHEST_PROTOCOL = 9, 5
_INT4, _DOUBLE = struct.Struct("<i"), struct.Struct(">d")


class Unreadable(ValueError):
    """A pickle that is damaged, too large, or more than plain data; `position` is the byte of the opcode."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.what = what
        self.position = position


def unpickled(data: bytes, max_opcodes: int) -> Any:
    """The value in a pickle of protocol 2 or later with at most `max_opcodes` opcodes. Raises Unreadable."""
    return _Machine(data).run(max_opcodes)


class _Machine:
    """The stacks, the memo, and the position of the next byte."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: list[Any] = []

    def run(self, max_opcodes: int) -> Any:
        """The value when STOP is reached."""
        data = self.data
        n, start = 0, 0
        try:
            while True:
                start = self.position
                n += 1
                if n > max_opcodes:
                    raise Unreadable(f"has more than {max_opcodes:,} parts", start)
                opcode = data[start]
                self.position = start + 1
                if opcode == 0x2E:  # STOP
                    return self._result()
                handler = _HANDLERS.get(opcode)
                if handler is None:
                    raise Unreadable(f"holds more than plain data (opcode {opcode:#04x})", start)
                handler(self)
        except (IndexError, struct.error):
            what = "is cut off" if self.position >= len(data) else "is damaged"
            raise Unreadable(what, start) from None
        except (TypeError, UnicodeDecodeError):
            raise Unreadable("is damaged", start) from None

    def _result(self) -> Any:
        if len(self.stack) != 1 or self.below:
            raise TypeError
        return self.stack[0]

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start = self.position
        self.position = start + size
        if size > len(self.data) - start:
            raise IndexError
        return self.data[start : self.position]

    def number(self, size: int) -> int:
        """The next bytes as a number without sign."""
        return int.from_bytes(self.take(size), "little")

    def above_mark(self) -> list[Any]:
        """What lies above the topmost mark, which is removed with it."""
        values = self.stack
        self.stack = self.below.pop()
        return values


def _push(value: Any) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value)


def _mark(machine: _Machine) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _text(n_size_bytes: int) -> Callable[[_Machine], None]:
    def read(machine: _Machine) -> None:
        machine.stack.append(machine.take(machine.number(n_size_bytes)).decode("utf-8", "surrogatepass"))

    return read


def _whole(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(size))


def _long(machine: _Machine) -> None:
    size = machine.number(1)
    if size > MAX_INT_BYTES:
        raise Unreadable("has a number beyond 64 bits", machine.position - 2)
    machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _list(machine.stack[-1]).append(value)


def _appends(machine: _Machine) -> None:
    values = machine.above_mark()
    _list(machine.stack[-1]).extend(values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _dict(machine.stack[-1])[_key(key)] = value


def _set_items(machine: _Machine) -> None:
    values = machine.above_mark()
    target = _dict(machine.stack[-1])
    if len(values) % 2:
        raise IndexError
    for i in range(0, len(values), 2):
        target[_key(values[i])] = values[i + 1]


def _tuple(size: int) -> Callable[[_Machine], None]:
    def build(machine: _Machine) -> None:
        stack = machine.stack
        if len(stack) < size:
            raise IndexError
        values = tuple(stack[len(stack) - size :])
        del stack[len(stack) - size :]
        stack.append(values)

    return build


def _tuple_above_mark(machine: _Machine) -> None:
    values = machine.above_mark()
    machine.stack.append(tuple(values))


def _put(size: int) -> Callable[[_Machine], None]:
    """Store under a number; picklers count up, so others are refused."""

    def put(machine: _Machine) -> None:
        at = machine.number(size) if size else len(machine.memo)
        value = machine.stack[-1]
        if at == len(machine.memo):
            machine.memo.append(value)
        else:
            machine.memo[at] = value

    return put


def _get(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.memo[machine.number(size)])


def _protocol(machine: _Machine) -> None:
    if machine.number(1) > HIGHEST_PROTOCOL:
        raise Unreadable("has an unknown protocol", machine.position - 2)


def _frame(machine: _Machine) -> None:
    """How many bytes follow, for readers that read in parts."""
    machine.take(8)


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError
    return value


def _dict(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise TypeError
    return value


def _key(key: Any) -> str:
    if type(key) is not str:
        raise TypeError
    return key


_HANDLERS: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    0x95: _frame,
    ord("("): _mark,
    ord("}"): lambda machine: machine.stack.append({}),
    ord("]"): lambda machine: machine.stack.append([]),
    ord(")"): _push(()),
    ord("N"): _push(None),
    0x88: _push(True),
    0x89: _push(False),
    ord("K"): _whole(1),
    ord("M"): _whole(2),
    ord("J"): lambda machine: machine.stack.append(_INT4.unpack(machine.take(4))[0]),
    0x8A: _long,
    ord("G"): lambda machine: machine.stack.append(_DOUBLE.unpack(machine.take(8))[0]),
    0x8C: _text(1),
    ord("X"): _text(4),
    0x8D: _text(8),
    ord("a"): _append,
    ord("e"): _appends,
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord("t"): _tuple_above_mark,
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("q"): _put(1),
    ord("r"): _put(4),
    0x94: _put(0),
    ord("h"): _get(1),
    ord("j"): _get(4),
}
