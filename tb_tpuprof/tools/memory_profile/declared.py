"""The tables and numbers of the memory profile's answers."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

HELD_IDLE = "the unused share of the memory its allocator holds"
_IF_REPORTED = "Unknown if the trace does not report it"
_AT_PEAK_IF_REPORTED = "At the peak; unknown if the trace does not report it"
_ALLOCATION_BYTES = "As allocated"
_REQUESTED_BYTES = "As requested by the program; unknown for PyTorch"
_DTYPE = text("dtype", "Data type")
_REGION = text("region", "Region")
_SHAPE = text("shape", "Shape")

PARAMS = (
    Param(
        "memory",
        "Memory",
        "text",
        None,
        "Memory to show, as NAME or HOST/NAME of the table `memories`; absent: the one with the largest peak",
    ),
    Param(
        "start_ps",
        "Window's start",
        "float",
        None,
        "Start of the history's window, in picoseconds since the trace's start; absent: the trace's start",
    ),
    Param(
        "end_ps",
        "Window's end",
        "float",
        None,
        "End of the history's window, in picoseconds since the trace's start; absent: the trace's end",
    ),
    Param("width_px", "Width", "int", 800, "Width of the drawn window in pixels", minimum=1, maximum=8000),
    Param("at_ps", "Moment", "float", None, "The moment of the table `active`; absent: the peak"),
)

MEMORIES = TableSpec(
    "memories",
    "Memories",
    (
        text("host", "Host"),
        text("memory", "Memory", "The allocator, or the device"),
        number("peak_bytes", "Peak", "bytes", "Stack and heap together, during the capture"),
        number("used_fraction", "Of capacity", "fraction", "At the peak"),
        number("peak_ps", "Peak at", "ps", "Since the trace's start"),
        number(
            "capacity_bytes",
            "Capacity",
            "bytes",
            "The allocator's pool; PyTorch: the chip's memory. " + _IF_REPORTED,
        ),
        number("lifetime_peak_bytes", "Lifetime peak", "bytes", "Since the process started. " + _IF_REPORTED),
        number("stack_bytes", "Stack", "bytes", "Reserved by programs, at the peak"),
        number("heap_bytes", "Heap", "bytes", "Allocated, at the peak"),
        number("free_bytes", "Free", "bytes", _AT_PEAK_IF_REPORTED),
        number(
            "fragmentation_fraction",
            "Fragmentation",
            "fraction",
            "At the peak: the share of the free memory that is not in its largest piece; PyTorch: "
            f"{HELD_IDLE}. {_IF_REPORTED}",
        ),
        number("n_allocations", "Allocations", "count", "In the capture"),
        number("n_deallocations", "Deallocations", "count", "In the capture"),
        number(
            "floor_rise_bytes",
            "Floor rise",
            "bytes",
            "Per step; 0: it does not rise steadily; unknown: the trace has no steps",
        ),
    ),
    "A row for each memory of each host, the largest peak first",
)
HISTORY = TableSpec(
    "history",
    "History of each memory",
    (
        number("row", "Row", "id", "Of the table `memories`"),
        number("start_ps", "Time", "ps", "Since the trace's start"),
        number("used_bytes", "In use", "bytes", "Stack and heap, from this moment on"),
    ),
    "The first 64 memories over the whole trace, with few points each: for small charts",
)
TIMELINE = TableSpec(
    "timeline",
    "History",
    (
        number("start_ps", "Time", "ps", "Since the trace's start", delta=True),
        number("stack_bytes", "Stack", "bytes", "Reserved by programs"),
        number("heap_bytes", "Heap", "bytes", "Allocated"),
        number("free_bytes", "Free", "bytes", _IF_REPORTED),
        number(
            "held_bytes",
            "Held",
            "bytes",
            "Memory the allocator holds on the device, in use or not",
            is_optional=True,
        ),
        number(
            "fragmentation_fraction",
            "Fragmentation",
            "fraction",
            "The share of the free memory that is not in its largest piece; PyTorch: "
            f"{HELD_IDLE}. {_IF_REPORTED}",
        ),
        text("activity", "Event", "Allocation or Deallocation"),
        number("allocation_bytes", "Size", "bytes", _ALLOCATION_BYTES),
        number("requested_bytes", "Requested", "bytes", _REQUESTED_BYTES),
        text("op", "Operation", "Of a deallocation: the operation that allocated"),
        text("step", "Step", "The step in which it happened"),
        _REGION,
        _DTYPE,
        _SHAPE,
        number("event", "Event id", "id", "Its row in the host's trace"),
    ),
    "The level of the chosen memory after each event in the window, and what the event was: at most three"
    " events per pixel: the lowest level, the highest and the last. The first row may be before the "
    "window",
)
ACTIVE = TableSpec(
    "active",
    "In use at the peak",
    (
        text(
            "op",
            "Operation",
            "(stack) and (allocated before the capture) are not operations",
        ),
        number("total_bytes", "Total size", "bytes", "Of all equal allocations"),
        number("fraction", "Share", "fraction", "Of stack and heap"),
        number("n_occurrences", "Allocations", "count", "Number of equal allocations"),
        number("allocation_bytes", "Size of each", "bytes", _ALLOCATION_BYTES),
        number("requested_bytes", "Requested", "bytes", _REQUESTED_BYTES),
        _REGION,
        _DTYPE,
        _SHAPE,
        text("step", "Step", "The step in which it was allocated"),
        number("start_ps", "Allocated at", "ps", "The first one"),
        number("event", "Event id", "id", "The first one's row in the host's trace"),
    ),
    "Allocations in use in the chosen memory at the moment, most bytes first. Equal allocations share a row",
)
FLOOR = TableSpec(
    "floor",
    "Minimum in use per step",
    (
        text("step", "Step"),
        number("start_ps", "Start", "ps", "Since the trace's start"),
        number("floor_bytes", "Floor", "bytes", "The lowest level of the chosen memory during the step"),
        flag("is_warm_up", "Warm-up", "Ignored by the search for leaks"),
    ),
    "A row for each step",
)
TABLES = (MEMORIES, HISTORY, TIMELINE, ACTIVE, FLOOR)

SCALARS = (
    ScalarSpec("peak_bytes", "Peak in the capture", "bytes", "Of the chosen memory, as all numbers below"),
    ScalarSpec("lifetime_peak_bytes", "Lifetime peak", "bytes", "Since the process started. " + _IF_REPORTED),
    ScalarSpec(
        "capacity_bytes",
        "Allocator's pool",
        "bytes",
        "Memory the allocator manages; PyTorch: the device's memory. " + _IF_REPORTED,
    ),
    ScalarSpec("n_allocations", "Allocations", "count"),
    ScalarSpec("n_deallocations", "Deallocations", "count"),
    ScalarSpec("peak_ps", "Time of the peak", "ps", "Since the trace's start"),
    ScalarSpec("stack_bytes", "Stack at the peak", "bytes", "Reserved by programs"),
    ScalarSpec("heap_bytes", "Heap at the peak", "bytes", "Allocated"),
    ScalarSpec("free_bytes", "Free at the peak", "bytes", _IF_REPORTED),
    ScalarSpec(
        "fragmentation_fraction",
        "Fragmentation at the peak",
        "fraction",
        "As in the table `memories`. " + _IF_REPORTED,
    ),
    ScalarSpec("start_ps", "Window's start", "ps"),
    ScalarSpec("end_ps", "Window's end", "ps"),
    ScalarSpec("trace_duration_ps", "Trace", "ps", "Length of the host's trace"),
    ScalarSpec("at_ps", "Moment of the table", "ps", "The last event up to the requested moment"),
    ScalarSpec("n_events_in_window", "Events in the window", "count", "Before thinning"),
    ScalarSpec("row", "Row of the chosen memory", "id", "In the table `memories`"),
)
TILES = tiles(
    "peak_bytes",
    Tile("lifetime_peak_bytes", unlike="peak_bytes"),
    "capacity_bytes",
    Tile("stack_bytes", least=1),
    Tile("heap_bytes", unlike="peak_bytes"),
    "free_bytes",
    "fragmentation_fraction",
)
