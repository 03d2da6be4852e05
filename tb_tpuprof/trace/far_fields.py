"""A large message in the trace's file → where its parts stand, without reading what is large and
in between.
"""

from __future__ import annotations

from tb_tpuprof.native import fields
from tb_tpuprof.trace.trace import TraceSource
from tb_tpuprof.trace.wire import read_varint

WINDOW_BYTES = 64 * 2**10
_DELIMITED = 2


def messages_within(source: TraceSource, position: int, size: int, number: int) -> list[tuple[int, int]]:
    """Position and size of each message in the field `number` of the one at `position`; of a malformed one
    those before the damage.

    Raises StorageError where the file is gone or has changed.
    """
    found: list[tuple[int, int]] = []
    end = position + size
    while position < end:
        data = source.block(position, min(WINDOW_BYTES, end - position))
        rows, bad = fields(data, 0, len(data))
        kept = rows[(rows[:, 0] == number) & (rows[:, 1] == _DELIMITED), 2:]
        found += [(position + start, length) for start, length in kept.tolist()]
        if bad < 0:
            position += max(len(data), 1)
            continue
        place = _message_at(data[bad : bad + 20].tobytes())
        if place is None or place[2] > end - position - bad - place[1]:
            if bad == 0:
                return found
            position += bad  # maybe only cut by the window
            continue
        which, start, length = place
        if which == number:
            found.append((position + bad + start, length))
        position += bad + start + length
    return found


def _message_at(head: bytes) -> tuple[int, int, int] | None:
    """(field number, where it begins, size) of the message whose header stands there."""
    try:
        tag, at = read_varint(head, 0)
        size, at = read_varint(head, at)
    except ValueError:
        return None
    return (tag >> 3, at, size) if tag & 7 == _DELIMITED else None
