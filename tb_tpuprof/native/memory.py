"""Large arrays whose memory is cheap to come by: on huge pages where there are some, or only where it is written to."""

from __future__ import annotations

import contextlib
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

HUGE_PAGE = 2 * 2**20
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
# More than the machine has may be promised; Python before 3.13 has no name for it.
_UNRESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def new_array(n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """n uninitialised values. Where the system can, large ones begin and end with a huge page: one fault for what is else 512."""
    size = n * np.dtype(dtype).itemsize
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(n, dtype)
    try:
        memory = mmap.mmap(-1, -(-size // HUGE_PAGE) * HUGE_PAGE, flags=_PRIVATE)
    except OSError:
        raise MemoryError(f"{size} bytes") from None
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, n)


def sparse_bytes(n: int) -> npt.NDArray[np.uint8]:
    """n bytes that take memory only where they are written to, by pages of the usual size."""
    if not _PRIVATE or not n:
        return np.zeros(n, np.uint8)
    try:
        return np.frombuffer(mmap.mmap(-1, n, flags=_PRIVATE | _UNRESERVED), np.uint8)
    except OSError:
        raise MemoryError(f"{n} bytes") from None
