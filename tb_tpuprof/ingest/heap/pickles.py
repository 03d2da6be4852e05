"""A pickle of plain data → dicts, lists, tuples, texts, numbers, booleans and None.

Python's own reader runs what a pickle names. This one knows only opcodes that build plain data: one that
names a class or a function, or calls it, ends the reading. The number of opcodes, and with it the memory, is
bounded.
"""

from __future__ import annotations

from typing import Any

from tb_tpuprof.native import Unreadable, unpickled
from tb_tpuprof.native.machine_memory import machine_memory

__all__ = ["MAX_OPCODES", "Unreadable", "read_pickle"]

MAX_OPCODES = 60_000_000  # of a snapshot with some million recorded allocations
_MEMORY_PER_OPCODE = 128  # an empty dict takes 64 bytes, and its place in a list 8


def read_pickle(data: bytes, max_opcodes: int = MAX_OPCODES) -> Any:
    """The value in a pickle of protocol 2 or later. Raises Unreadable, also where the value might not fit
    into the memory.
    """
    return unpickled(data, min(max_opcodes, machine_memory() // _MEMORY_PER_OPCODE))
