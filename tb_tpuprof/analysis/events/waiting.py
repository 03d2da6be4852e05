"""Operations in which a device only waits: the halves that end an asynchronous operation.

    XLA Ops   ▪copy-start.5   ▪add ▪mul …   ├── copy-done.5 ──┤
                                            the core does nothing until the copy has arrived

XLA splits copies, slices, collectives, sends and receives into a start, which only queues the work, and a
done, which returns once it is finished. The time that a done takes is time spent waiting for its data.
Source: the semantics of `copy-done`, `async-done` and similar opcodes in OpenXLA (xla/hlo/ir/hlo_opcode.h).
"""

from __future__ import annotations

import re

_DONE = re.compile(r"%?[a-z][a-z \-]*-done(?:\.\d+)*(?:\.(?:clone|remat)\d*)*")


def is_waiting(category: str, name: str = "") -> bool:
    """Whether an operation waits for an asynchronous one to end: by its HLO category, or by its name if it
    has none.

    `copy-done`, `async-done`, `host recv-done`, `all-reduce-done` …: true. A fusion whose name contains such
    a word is compute.
    """
    return _DONE.fullmatch(category or name) is not None
