"""Large arrays with cheap memory: on huge pages if the system has them, or allocated only where it is written
to.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

HUGE_PAGE = 2 * 2**20
_LARGE = HUGE_PAGE // 2  # from here on one fault costs less, even if the page is not fully used
_BLOCK, _LEAST_SHARED, _ALIGNED = 16 * 2**20, 2**18, 64  # bytes
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
# Allows reserving more memory than the machine has; Python before 3.13 has no name for the flag.
_UNRESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def new_array(n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """n uninitialized values. If the system can, large arrays are aligned to huge pages: one page fault
    instead of 512.
    """
    size = n * np.dtype(dtype).itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(n, dtype)
    try:
        memory = mmap.mmap(-1, -(-size // HUGE_PAGE) * HUGE_PAGE, flags=_PRIVATE)
    except OSError:
        raise MemoryError(f"{size} bytes") from None
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, n)


class Arena:
    """Allocates arrays close to one another, so that they share huge pages, which are cleared as a whole on
    first access.

    The memory is freed with the last of the arrays. Safe for use by several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rest = np.empty(0, np.uint8)

    def take(self, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """n uninitialized values."""
        size = -(-n * np.dtype(dtype).itemsize // _ALIGNED) * _ALIGNED
        if size < _LEAST_SHARED or size > _BLOCK:
            return new_array(n, dtype)
        with self._lock:
            if len(self._rest) < size:
                self._rest = new_array(_BLOCK, np.uint8)
            taken, self._rest = self._rest[:size], self._rest[size:]
        return taken.view(dtype)[:n]


def sparse_bytes(n: int) -> npt.NDArray[np.uint8]:
    """n zero bytes that take memory only where they are written to, in pages of the usual size."""
    if not _PRIVATE or not n:
        return np.zeros(n, np.uint8)
    try:
        return np.frombuffer(mmap.mmap(-1, n, flags=_PRIVATE | _UNRESERVED), np.uint8)
    except OSError:
        raise MemoryError(f"{n} bytes") from None


def on_huge_pages(data: npt.NDArray[np.uint8], start: int, end: int) -> None:
    """Ask the system to put the bytes from `start` to `end` of a `sparse_bytes` array on huge pages when they
    are written to.
    """
    memory = getattr(data.base, "obj", None)
    if isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_HUGEPAGE"):
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE, first, max(0, min(end, len(data)) - first))
