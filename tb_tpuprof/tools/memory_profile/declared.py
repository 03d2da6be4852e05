"""The tables and numbers of the memory profile's answers."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

HELD_IDLE = "the share of what its allocator holds that is not in use"
_IF_REPORTED = "Unknown where the trace does not report it"
_AT_PEAK_IF_REPORTED = "At the peak; unknown where the trace does not report it"
_ALLOCATION_BYTES = "What the allocator gave"
_REQUESTED_BYTES = "What the program requested; unknown for PyTorch"
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
    Param("width_px", "Width", "int", 800, "How many pixels the window is drawn on", minimum=1, maximum=8000),
    Param("at_ps", "Moment", "float", None, "The moment of the table `active`; absent: the peak"),
)

MEMORIES = TableSpec(
    "memories",
    "Memories",
    (
        text("host", "Host"),
        text("memory", "Memory", "The allocator, or the device"),
        number("peak_bytes", "Peak", "bytes", "Stack and heap together, in the capture"),
        number("used_fraction", "Of capacity", "fraction", "At the peak"),
        number("peak_ps", "Peak at", "ps", "Since the trace's start"),
        number(
            "capacity_bytes",
            "Capacity",
            "bytes",
            "The allocator's pool; PyTorch: the chip's memory. " + _IF_REPORTED,
        ),
        number("lifetime_peak_bytes", "Lifetime peak", "bytes", "Since the process began. " + _IF_REPORTED),
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
            "Floor rises by",
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
            "What the allocator has taken from the device, in use or not",
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
        text("op", "Operation", "A deallocation has that of the allocation it ends"),
        text("step", "Step", "The step in which it happened"),
        _REGION,
        _DTYPE,
        _SHAPE,
        number("event", "Event id", "id", "Its row in the host's trace"),
    ),
    "The level of the chosen memory after each event in the window, and what the event was: at most three "
    "events per pixel, which are the least, the most and the last. The first row may lie before the window",
)
ACTIVE = TableSpec(
    "active",
    "In use at the peak",
    (
        text(
            "op",
            "Operation",
            "(stack) and (allocated before the capture) are rows of their own, no operations",
        ),
        number("total_bytes", "In all", "bytes", "Of all equal allocations together"),
        number("fraction", "Share", "fraction", "Of stack and heap"),
        number("n_occurrences", "Allocations", "count", "Equal ones, together"),
        number("allocation_bytes", "Size of one", "bytes", _ALLOCATION_BYTES),
        number("requested_bytes", "Requested", "bytes", _REQUESTED_BYTES),
        _REGION,
        _DTYPE,
        _SHAPE,
        text("step", "Step", "The step in which it was allocated"),
        number("start_ps", "Allocated at", "ps", "The first of them"),
        number("event", "Event id", "id", "The first one's row in the host's trace"),
    ),
    "What is in use in the chosen memory at the moment, most bytes first. Equal allocations are one row",
)
FLOOR = TableSpec(
    "floor",
    "Minimum in use per step",
    (
        text("step", "Step"),
        number("start_ps", "Start", "ps", "Since the trace's start"),
        number("floor_bytes", "Floor", "bytes", "The least in use in the chosen memory during the step"),
        flag("is_warm_up", "Warm-up", "It does not count when a leak is looked for"),
    ),
    "A row for each step",
)
TABLES = (MEMORIES, HISTORY, TIMELINE, ACTIVE, FLOOR)

SCALARS = (
    ScalarSpec("peak_bytes", "Peak in the capture", "bytes", "Of the chosen memory, as all that follow"),
    ScalarSpec("lifetime_peak_bytes", "Lifetime peak", "bytes", "Since the process began. " + _IF_REPORTED),
    ScalarSpec(
        "capacity_bytes",
        "Allocator's pool",
        "bytes",
        "What the allocator manages; PyTorch: the memory of the device. " + _IF_REPORTED,
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
    ScalarSpec("n_events_in_window", "Events in the window", "count", "Before they are thinned"),
    ScalarSpec("row", "Row of the chosen memory", "id", "In the table `memories`"),
)
