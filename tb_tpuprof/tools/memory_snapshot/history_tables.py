"""Parameters, tables and numbers of what PyTorch's allocator did until the snapshot was saved."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.payload import Unit
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

_SINCE = "since the history's first event"
_DISAGREE = "the history and the blocks that the snapshot lists disagree"
_NOT_LOOKED_UP = "it was looked up for the last failures only: the history is long"
_REQUESTED = "as the program requested it, not rounded up"
PLACE = text(
    "place",
    "Allocated at",
    "The innermost call of the program on the block's stack; a library's call if there is no other",
)
_N_BLOCKS = number("n_blocks", "Blocks", "count", "Blocks in use at that moment")
_FRACTION = number(
    "fraction",
    "Share",
    "fraction",
    "Share of all memory in use at that moment",
    formula="in use ÷ all in use",
)

HISTORY_PARAMS = (
    Param(
        "device",
        "Device",
        "text",
        None,
        "Device whose history is shown, as named in the table `devices`; absent: one that ran out of memory, "
        "else the one with the largest peak",
    ),
    Param(
        "start_ps",
        "Window's start",
        "float",
        None,
        f"Start of the drawn window, in picoseconds {_SINCE}; absent: 0",
    ),
    Param(
        "end_ps",
        "Window's end",
        "float",
        None,
        f"End of the drawn window, in picoseconds {_SINCE}; absent: the last event",
    ),
    Param("width_px", "Width", "int", 800, "Width of the drawn window in pixels", minimum=1, maximum=8000),
    Param("at_ps", "Moment", "float", None, "The moment of the tables of memory in use; absent: the peak"),
)

DEVICES = TableSpec(
    "devices",
    "Recorded devices",
    (
        text("device", "Device", "A device whose allocator recorded its history"),
        number("peak_bytes", "Peak in use", "bytes", f"The most memory in use at any time, {_REQUESTED}"),
        number("peak_ps", "Peak at", "ps", f"When the peak was reached, {_SINCE}"),
        number(
            "reserved_peak_bytes", "Peak held", "bytes", "The most memory that the allocator held at any time"
        ),
        number(
            "unused_fraction",
            "Unused when most was held",
            "fraction",
            "Share of the held memory that no block requested, when the allocator held most; includes "
            "rounding",
            formula="1 − in use ÷ held",
            unknown=f"the allocator held no memory of the device, or {_DISAGREE}",
        ),
        number("n_allocations", "Allocations", "count", "Number of blocks allocated in the history"),
        number("kept_bytes", "Kept", "bytes", "Memory allocated in the history and not freed at its end"),
        number("n_failures", "Out of memory", "count", "Number of allocations that failed"),
    ),
    "A row per device with a history, the largest peak first",
    is_optional=True,
)
TIMELINE = TableSpec(
    "timeline",
    "History",
    (
        number("start_ps", "Time", "ps", f"Time {_SINCE}").sent_as_differences(),
        number("used_bytes", "In use", "bytes", f"Memory in blocks in use after the event, {_REQUESTED}"),
        number(
            "pending_bytes",
            "Waiting for a stream",
            "bytes",
            "Part of it that the program has freed and a stream still uses",
        ),
        number("reserved_bytes", "Held", "bytes", "Memory that the allocator holds after the event"),
        text("action", "Event", "What the allocator did"),
        number("size_bytes", "Size", "bytes", "Size of the block or of the part of a segment"),
        PLACE,
    ),
    "The levels of the chosen device after each event in the window. Of a window with many events, per pixel "
    "the lowest and the highest level in use, the highest held, and the last event; all failed allocations",
    is_optional=True,
    sentence="Memory of the chosen device over time",
)
AT_PLACES = TableSpec(
    "at_places",
    "In use at the peak, by place",
    (
        PLACE,
        number("size_bytes", "In use", "bytes", f"Memory in blocks in use, {_REQUESTED}"),
        _FRACTION,
        number(
            "n_blocks",
            "Blocks",
            "count",
            "Blocks in use at that moment",
            unknown="of these blocks only the sum of their sizes is known",
        ),
        number(
            "largest_bytes",
            "Largest block",
            "bytes",
            "The largest of these blocks",
            unknown="of these blocks only the sum of their sizes is known",
        ),
    ),
    "A row per place of the program with blocks in use at the moment, the largest first; rows add up to the "
    "memory in use",
    is_optional=True,
)
AT_SIZES = TableSpec(
    "at_sizes",
    "In use at the peak, by size of block",
    (
        number("block_bytes", "Size of block", "bytes", f"Size of each block, {_REQUESTED}"),
        _N_BLOCKS,
        number("size_bytes", "In use", "bytes", "Memory in all blocks of this size"),
        _FRACTION,
        PLACE,
    ),
    "A row per size of block and place at the moment, most memory first",
    is_optional=True,
)
KEPT = TableSpec(
    "kept",
    "Allocated and not freed",
    (
        PLACE,
        number(
            "kept_bytes", "Kept", "bytes", "Memory allocated here in the history and not freed at its end"
        ),
        number("n_kept", "Blocks kept", "count", "Number of blocks kept"),
        number("allocated_bytes", "Allocated", "bytes", "All memory allocated here in the history"),
        number("n_allocated", "Blocks allocated", "count", "Number of blocks allocated"),
        number("first_ps", "First at", "ps", f"When the first block that is kept was allocated, {_SINCE}"),
        number("last_ps", "Last at", "ps", f"When the last block that is kept was allocated, {_SINCE}"),
        flag(
            "is_steady",
            "Grows steadily",
            "Whether each quarter of the history added to what is kept: a sign of a leak",
        ),
    ),
    "A row per place that allocated memory in the history and has not freed all of it, most memory first",
    is_optional=True,
)
FAILURES = TableSpec(
    "failures",
    "Out of memory",
    (
        number("start_ps", "Time", "ps", f"When the allocation failed, {_SINCE}"),
        text("place", "Requested at", "The innermost call of the program that requested the memory"),
        number("requested_bytes", "Requested", "bytes", "Size of the allocation that failed"),
        number(
            "device_free_bytes",
            "Free on the device",
            "bytes",
            "Memory that the device reported as free",
            unknown="the snapshot does not state it",
        ),
        number("used_bytes", "In use", "bytes", "Memory in blocks in use at that time"),
        number("reserved_bytes", "Held", "bytes", "Memory that the allocator held at that time"),
        number(
            "unused_bytes",
            "Held, not in use",
            "bytes",
            "Held memory that no block requested, in pieces that are too small, or in another pool",
            formula="held − in use",
            unknown=_DISAGREE,
        ),
        text(
            "holder",
            "Most in use by",
            "The place of the program with most memory in use at that time",
            unknown=_NOT_LOOKED_UP,
        ),
        number(
            "holder_bytes",
            "In use by it",
            "bytes",
            "Memory in use that this place had allocated",
            unknown=_NOT_LOOKED_UP,
        ),
    ),
    "A row per allocation that failed, in the order of time",
    is_optional=True,
)
HISTORY_TABLES = (FAILURES, TIMELINE, AT_PLACES, AT_SIZES, KEPT, DEVICES)

_OF_DEVICE = "of the chosen device"


def _optional(name: str, title: str, unit: Unit, sentence: str) -> ScalarSpec:
    return ScalarSpec(name, title, unit, sentence, is_optional=True)


HISTORY_SCALARS = (
    _optional(
        "peak_bytes",
        "Peak in use",
        "bytes",
        f"The most memory in use in the history {_OF_DEVICE}, {_REQUESTED}",
    ),
    _optional("peak_ps", "Time of the peak", "ps", f"When the peak was reached, {_SINCE}"),
    _optional(
        "reserved_peak_bytes", "Peak held", "bytes", f"The most memory that the allocator {_OF_DEVICE} held"
    ),
    _optional(
        "kept_bytes",
        "Kept",
        "bytes",
        f"Memory {_OF_DEVICE} allocated in the history and not freed by the program at its end",
    ),
    _optional("n_failures", "Out of memory", "count", "Number of allocations that failed, on all devices"),
    _optional("n_history_events", "Events", "count", "Number of events in the history, on all devices"),
    _optional("history_ps", "History", "ps", f"Time of the last event {_OF_DEVICE}, {_SINCE}"),
    _optional("start_ps", "Window's start", "ps", f"Start of the drawn window, {_SINCE}"),
    _optional("end_ps", "Window's end", "ps", f"End of the drawn window, {_SINCE}"),
    _optional(
        "at_ps", "Moment of the tables", "ps", f"The moment that the tables of memory in use show, {_SINCE}"
    ),
    _optional(
        "device_row", "Row of the chosen device", "id", "Row of the chosen device in the table `devices`"
    ),
)
