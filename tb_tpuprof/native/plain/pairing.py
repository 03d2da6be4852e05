"""Plain twin of `compiled/pairing.py`: the same names, arguments and results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
REACH = 256
NOWHERE = int(np.iinfo(np.int64).min)


def pair_up(key: Int32s, kind: npt.NDArray[np.uint8], name: Int32s) -> tuple[Int32s, Int32s]:
    """Pairs ends with begins: (partner of each row or -1, the outermost row open at each row, else the row
    itself).

    Rows of one key are adjacent, in time order. `kind` is 0 begin, 1 end, 2 neither. An end closes the latest
    open begin with its name (with any name if its own is -1), among the last 256 open ones.

        b x ─ b y ─ e x ─ e y      partners: x-x, y-y; the root of all four is the first
    """
    partner = [-1] * len(key)
    root = list(range(len(key)))
    stack: list[int] = []
    keys, kinds, names = key.tolist(), kind.tolist(), name.tolist()
    for i in range(len(keys)):
        if i and keys[i] != keys[i - 1]:
            stack = []
        if stack:
            root[i] = root[stack[0]]
        if kinds[i] == 0:
            stack.append(i)
        elif kinds[i] == 1:
            reach = range(len(stack) - 1, max(len(stack) - 1 - REACH, -1), -1)
            match = next((j for j in reach if names[i] < 0 or names[stack[j]] == names[i]), -1)
            if match >= 0:
                begin = stack.pop(match)
                partner[i], partner[begin] = begin, i
    return np.array(partner, np.int32), np.array(root, np.int32)


def tie(first: Int64s, is_allocation: npt.NDArray[np.uint8], address: Int64s) -> Int32s:
    """For each allocation, the event that frees its address (or reuses it), n if none does; for each
    deallocation, its allocation.

    Memory m has the events first[m] … first[m + 1], in time order; an event without an address has `NOWHERE`.
    A deallocation has -1 if the allocation happened before the first event.

        address   A+ B+ A- A+ A-        partner   2 5 0 4 3
    """
    n = len(address)
    is_new = is_allocation.astype(np.bool_)
    partner = np.where(is_new, n, -1).astype(np.int32)
    memory = np.repeat(np.arange(len(first) - 1), np.diff(first))
    order = np.lexsort((address, memory))
    order = order[address[order] != NOWHERE]
    before, after = order[:-1], order[1:]
    is_tied = (memory[before] == memory[after]) & (address[before] == address[after]) & is_new[before]
    before, after = before[is_tied], after[is_tied]
    partner[before] = after
    freed = ~is_new[after]
    partner[after[freed]] = before[freed]
    return partner
