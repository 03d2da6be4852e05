"""The tables and numbers of the memory profile's answers."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

HELD_IDLE = "the unused share of the memory its allocator holds"
_IF_REPORTED = "Unknown if the trace does not report it"
_AT_PEAK_IF_REPORTED = "At the peak; unknown if the trace does not report it"
_ALLOCATION_BYTES = "Size as allocated, rounded up by the allocator"
_REQUESTED_BYTES = "As requested by the program; unknown for PyTorch"
_DTYPE = text(
    "dtype",
    "Data type",
    "Data type of the value that the memory holds",
    unknown="the allocator does not record data types in this trace, or several values share the row",
)
_REGION = text(
    "region",
    "Region",
    "Kind of region that the allocator assigned, such as output or temp",
    unknown="the allocator does not record regions in this trace",
)
_SHAPE = text(
    "shape",
    "Shape",
    "Dimensions of the value that the memory holds",
    unknown="the allocator does not record shapes in this trace",
)

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
        text("host", "Host", "The host whose process allocates the memory"),
        text("memory", "Memory", "The allocator, or the device that the memory belongs to"),
        number(
            "peak_bytes",
            "Peak",
            "bytes",
            "The most memory in use at any moment of the capture",
            formula="max (stack + heap)",
        ),
        number(
            "used_fraction",
            "Of capacity",
            "fraction",
            "The peak as a share of the capacity",
            formula="peak ÷ capacity",
            unknown="the allocator does not report it in this trace",
        ),
        number("peak_ps", "Peak at", "ps", "When the peak was reached, since the trace's start"),
        number(
            "capacity_bytes",
            "Capacity",
            "bytes",
            "The allocator's pool; PyTorch: the chip's memory. " + _IF_REPORTED,
            unknown="the allocator does not report it in this trace",
        ),
        number(
            "lifetime_peak_bytes",
            "Lifetime peak",
            "bytes",
            "Since the process started. " + _IF_REPORTED,
            unknown="the allocator does not report it in this trace",
        ),
        number("stack_bytes", "Stack", "bytes", "Memory reserved by compiled programs at the peak"),
        number("heap_bytes", "Heap", "bytes", "Memory allocated at the peak, without the stack"),
        number(
            "free_bytes",
            "Free",
            "bytes",
            _AT_PEAK_IF_REPORTED,
            unknown="the allocator does not report it in this trace",
        ),
        number(
            "fragmentation_fraction",
            "Fragmentation",
            "fraction",
            "At the peak: the share of the free memory that is not in its largest piece; PyTorch: "
            f"{HELD_IDLE}. {_IF_REPORTED}",
            formula="1 − largest free piece ÷ free memory",
            unknown="the allocator does not report it in this trace",
        ),
        number("n_allocations", "Allocations", "count", "Number of allocations during the capture"),
        number("n_deallocations", "Deallocations", "count", "Number of releases during the capture"),
        number(
            "floor_rise_bytes",
            "Floor rise",
            "bytes",
            "By how much the least memory in use rises from step to step; 0 if it does not rise steadily",
            formula="median slope between pairs of steps",
            unknown="the trace has no steps",
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
    sentence="Use of each memory over the whole trace",
)
TIMELINE = TableSpec(
    "timeline",
    "History",
    (
        number("start_ps", "Time", "ps", "Since the trace's start").sent_as_differences(),
        number("stack_bytes", "Stack", "bytes", "Memory reserved by compiled programs after the event"),
        number("heap_bytes", "Heap", "bytes", "Memory allocated after the event, without the stack"),
        number(
            "free_bytes",
            "Free",
            "bytes",
            _IF_REPORTED,
            unknown="the allocator does not report it in this trace",
        ),
        number(
            "held_bytes",
            "Held",
            "bytes",
            "Memory the allocator holds on the device, in use or not",
            is_optional=True,
            unknown="the allocator does not report it in this trace",
        ),
        number(
            "fragmentation_fraction",
            "Fragmentation",
            "fraction",
            "The share of the free memory that is not in its largest piece; PyTorch: "
            f"{HELD_IDLE}. {_IF_REPORTED}",
            unknown="the allocator does not report it in this trace",
        ),
        text("activity", "Event", "Allocation or Deallocation"),
        number("allocation_bytes", "Size", "bytes", _ALLOCATION_BYTES),
        number(
            "requested_bytes",
            "Requested",
            "bytes",
            _REQUESTED_BYTES,
            unknown="the allocator does not record the requested size in this trace",
        ),
        text(
            "op",
            "Operation",
            "Of a deallocation: the operation that allocated",
            unknown="the trace does not name the operation: the memory was allocated before the capture, "
            "or outside an operation",
        ),
        text("step", "Step", "The step in which it happened", unknown="it happened outside the steps"),
        _REGION,
        _DTYPE,
        _SHAPE,
        number("event", "Event id", "id", "Its row in the host's trace"),
    ),
    "The level of the chosen memory after each event in the window, and what the event was: at most three"
    " events per pixel: the lowest level, the highest and the last. The first row may be before the "
    "window",
    sentence="How much of the chosen memory is in use over time",
)
ACTIVE = TableSpec(
    "active",
    "In use at the peak",
    (
        text(
            "op",
            "Operation",
            "(stack) and (allocated before the capture) are not operations",
            unknown="the trace does not name the operation that allocated it",
        ),
        number("total_bytes", "Total size", "bytes", "Of all equal allocations"),
        number(
            "fraction",
            "Share",
            "fraction",
            "Total size as a share of all memory in use",
            formula="total size ÷ (stack + heap)",
        ),
        number(
            "n_occurrences",
            "Allocations",
            "count",
            "Number of equal allocations",
            unknown="the stack and memory from before the capture are not made of recorded allocations",
        ),
        number(
            "allocation_bytes",
            "Size of each",
            "bytes",
            _ALLOCATION_BYTES,
            unknown="the stack and memory from before the capture are not made of recorded allocations",
        ),
        number(
            "requested_bytes",
            "Requested",
            "bytes",
            _REQUESTED_BYTES,
            unknown="the allocator does not record the requested size in this trace",
        ),
        _REGION,
        _DTYPE,
        _SHAPE,
        text(
            "step",
            "Step",
            "The step in which it was allocated",
            unknown="it was allocated outside the steps or before the capture",
        ),
        number(
            "start_ps",
            "Allocated at",
            "ps",
            "When the first of the equal allocations was made, since the trace's start",
            unknown="it was allocated before the capture",
        ),
        number(
            "event",
            "Event id",
            "id",
            "The first one's row in the host's trace",
            unknown="the allocation is not in the capture",
        ),
    ),
    "Allocations in use in the chosen memory at the moment, most bytes first. Equal allocations share a row",
)
FLOOR = TableSpec(
    "floor",
    "Minimum in use per step",
    (
        text("step", "Step", "Name of the step, or its number"),
        number("start_ps", "Start", "ps", "Since the trace's start"),
        number("floor_bytes", "Floor", "bytes", "The lowest level of the chosen memory during the step"),
        flag("is_warm_up", "Warm-up", "Ignored by the search for leaks"),
    ),
    "A row for each step",
    sentence="The lowest level during each step; if it keeps rising, memory may leak",
)
_NOT_BEFORE = "only the sum is known of memory from before the capture"


def _by_holder(of: str) -> tuple[ColumnSpec, ...]:
    """Columns of a table by allocator; `of`: what a row describes."""
    return (
        number(
            "at_bytes",
            "In use at the peak",
            "bytes",
            f"Memory that {of} allocated in the capture and that is in use at the moment; rows add up to all "
            "that is in use then",
        ),
        number(
            "fraction",
            "Share",
            "fraction",
            "Share of all memory in use at the moment",
            formula="in use at the moment ÷ all in use then",
        ),
        number("n_at", "Allocations in use", "count", "Number of these allocations", unknown=_NOT_BEFORE),
        number(
            "most_bytes",
            "At most",
            "bytes",
            f"The most memory of {of} that was in use at any time; the rows' times differ",
            unknown=_NOT_BEFORE,
        ),
        number(
            "allocated_bytes",
            "Allocated",
            "bytes",
            f"All memory that {of} allocated in the capture",
            unknown=_NOT_BEFORE,
        ),
        number(
            "n_allocated", "Allocations", "count", "Number of allocations in the capture", unknown=_NOT_BEFORE
        ),
        number(
            "kept_bytes",
            "Kept",
            "bytes",
            "The part of it that is still in use at the end of the capture",
            unknown=_NOT_BEFORE,
        ),
        number("n_kept", "Allocations kept", "count", "Number of allocations kept", unknown=_NOT_BEFORE),
    )


MODULES = TableSpec(
    "modules",
    "By module",
    (
        text(
            "module",
            "Module",
            "The modules in whose calls it was allocated, outermost first; (outside of modules) and "
            "(allocated before the capture) are no modules",
        ),
        text(
            "phase",
            "Phase",
            "Forward, backward (in operations tied to the module's), or optimizer",
            unknown="it was allocated before the capture",
        ),
        *_by_holder("the module itself, in none of its submodules,"),
        number(
            "with_submodules_bytes",
            "With submodules",
            "bytes",
            "Memory in use at the moment that the module and its submodules allocated; rows do not add up",
        ),
    ),
    "A row per path of PyTorch's modules and phase, most memory at the moment first",
    is_optional=True,
    sentence="Which modules allocated the memory that is in use",
)
OPERATIONS = TableSpec(
    "operations",
    "By operation",
    (
        text(
            "op",
            "Operation",
            "The operators that were running, outermost first, without those that only allocate",
        ),
        *_by_holder("the operation"),
    ),
    "A row per operation that allocated memory (PyTorch), most memory at the moment first",
    is_optional=True,
    sentence="Which operations allocated the memory that is in use, and what they keep",
)
TABLES = (MEMORIES, HISTORY, TIMELINE, ACTIVE, MODULES, OPERATIONS, FLOOR)

SCALARS = (
    ScalarSpec(
        "peak_bytes",
        "Peak in the capture",
        "bytes",
        "The most memory in use at any moment of the capture; this and all numbers below are of the chosen "
        "memory",
        formula="max (stack + heap)",
    ),
    ScalarSpec(
        "lifetime_peak_bytes",
        "Lifetime peak",
        "bytes",
        "Since the process started. " + _IF_REPORTED,
        unknown="the allocator does not report it in this trace",
    ),
    ScalarSpec(
        "capacity_bytes",
        "Allocator's pool",
        "bytes",
        "Memory the allocator manages; PyTorch: the device's memory. " + _IF_REPORTED,
        formula="stack + heap + free",
        unknown="the allocator does not report it in this trace",
    ),
    ScalarSpec("n_allocations", "Allocations", "count", "Number of allocations during the capture"),
    ScalarSpec("n_deallocations", "Deallocations", "count", "Number of releases during the capture"),
    ScalarSpec("peak_ps", "Time of the peak", "ps", "When the peak was reached, since the trace's start"),
    ScalarSpec(
        "stack_bytes", "Stack at the peak", "bytes", "Memory reserved by compiled programs at the peak"
    ),
    ScalarSpec("heap_bytes", "Heap at the peak", "bytes", "Memory allocated at the peak, without the stack"),
    ScalarSpec(
        "free_bytes",
        "Free at the peak",
        "bytes",
        "Memory that the allocator could still hand out at the peak",
        unknown="the allocator does not report it in this trace",
    ),
    ScalarSpec(
        "fragmentation_fraction",
        "Fragmentation at the peak",
        "fraction",
        "Share of the free memory at the peak that is not in its largest piece; PyTorch: the unused share "
        "of what its allocator holds",
        formula="1 − largest free piece ÷ free memory",
        unknown="the allocator does not report it in this trace",
    ),
    ScalarSpec(
        "start_ps",
        "Window's start",
        "ps",
        "Start of the interval that the chart shows, since the trace's start",
    ),
    ScalarSpec(
        "end_ps", "Window's end", "ps", "End of the interval that the chart shows, since the trace's start"
    ),
    ScalarSpec(
        "trace_duration_ps", "Trace", "ps", "From the start of the host's trace to the end of its last event"
    ),
    ScalarSpec(
        "at_ps",
        "Moment of the table",
        "ps",
        "The moment that the table of memory in use shows: the last event up to the requested moment",
    ),
    ScalarSpec(
        "n_events_in_window",
        "Events in the window",
        "count",
        "Number of allocations and releases in the interval, before thinning",
    ),
    ScalarSpec("row", "Row of the chosen memory", "id", "Row of the chosen memory in the table `memories`"),
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
