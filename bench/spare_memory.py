"""Write to memory and give it back: `python -m bench.spare_memory BYTES`. What a virtual machine does not use
may not be there.
"""

from __future__ import annotations

import contextlib
import mmap
import sys

PAGE_BYTES = 4096


def main() -> None:
    """Touch every page."""
    n = int(sys.argv[1])
    with mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(AttributeError, OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for offset in range(0, n, PAGE_BYTES):
            memory[offset] = 1


if __name__ == "__main__":
    main()
