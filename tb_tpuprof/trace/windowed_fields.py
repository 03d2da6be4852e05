"""A large message in the trace's file → positions of its submessages, read through windows that skip large
payloads.
"""

from __future__ import annotations

from tb_tpuprof.native import fields
from tb_tpuprof.trace.trace import TraceSource
from tb_tpuprof.trace.wire import read_varint

WINDOW_BYTES = 64 * 2**10
_DELIMITED = 2


def messages_within(source: TraceSource, position: int, size: int, number: int) -> list[tuple[int, int]]:
    """Position and size of each submessage in field `number` of the message at `position`.

    A malformed message yields those before the damage. Raises StorageError if the file is gone or has
    changed.
    """
    messages: list[tuple[int, int]] = []
    end = position + size
    while position < end:
        data = source.block(position, min(WINDOW_BYTES, end - position))
        rows, bad = fields(data, 0, len(data))
        matching = rows[(rows[:, 0] == number) & (rows[:, 1] == _DELIMITED), 2:]
        messages += [(position + start, length) for start, length in matching.tolist()]
        if bad < 0:
            position += max(len(data), 1)
            continue
        header = _message_header(data[bad : bad + 20].tobytes())
        if header is None or header[2] > end - position - bad - header[1]:
            if bad == 0:
                return messages
            position += bad  # perhaps only cut off by the window
            continue
        field_number, start, length = header
        if field_number == number:
            messages.append((position + bad + start, length))
        position += bad + start + length
    return messages


def _message_header(head: bytes) -> tuple[int, int, int] | None:
    """(field number, offset of the payload, its size) of the submessage whose header starts at `head`; None
    for other fields.
    """
    try:
        tag, offset = read_varint(head, 0)
        size, offset = read_varint(head, offset)
    except ValueError:
        return None
    return (tag >> 3, offset, size) if tag & 7 == _DELIMITED else None
