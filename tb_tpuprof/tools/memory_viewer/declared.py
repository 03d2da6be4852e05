"""The parameters, tables and numbers of the memory viewer's answers."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.program_choice import PROGRAM_COLUMNS
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

PARAMS = (
    Param(
        "program",
        "Program",
        "text",
        None,
        "Title, id or name of a program; absent: the one with the highest peak, of those that ran",
    ),
    Param(
        "space",
        "Memory space",
        "int",
        0,
        "XLA's number of the memory space: 0 main memory, on TPU 1 VMEM, 5 the host",
    ),
    Param(
        "first_step",
        "First step",
        "int",
        None,
        "First step of `timeline` and `blocks`; absent: the beginning",
    ),
    Param("last_step", "Last step", "int", None, "Last step of `timeline` and `blocks`; absent: the end"),
    Param(
        "width_px", "Width", "int", 1500, "Maximum number of points in `timeline`", minimum=10, maximum=20_000
    ),
)

_BUFFER_COLUMNS = (
    number("buffer_id", "Buffer", "id", "Number of the logical buffer in the HLO file"),
    text("instruction", "Instruction"),
    text("opcode", "Opcode"),
    text(
        "category",
        "Allocation",
        "Kind of allocation: Parameter, Output, Thread-local, Constant or Temporary",
    ),
    number("size_bytes", "Size", "bytes", "With the padding of its layout"),
    number("unpadded_bytes", "Unpadded", "bytes", "Without padding"),
    number("expansion", "Expansion", "", "Size divided by unpadded size"),
    number("padding_bytes", "Extra", "bytes", "Memory that padding uses"),
    text("shape", "Shape"),
    text("padded_dimensions", "Padded", "By the layout"),
    text("op_name", "Framework op"),
    number("first_step", "From step", "id", "The step of the program's order that allocates it"),
    number("last_step", "To step", "id", "The last step that holds it"),
    number("allocation", "Allocation index", "id", "The allocation that contains it; unknown: none"),
    number(
        "offset_bytes",
        "Offset",
        "bytes",
        "Within all temporary allocations, laid end to end; unknown: not a temporary",
    ),
    flag("is_at_peak", "At the peak"),
    text("source", "Source", "File and line of the framework's code"),
    text("stack", "Source stack", "The innermost place first, one per line"),
)
LIVE = TableSpec(
    "live",
    "Buffers at the peak",
    _BUFFER_COLUMNS,
    "In program order, buffers held throughout first; if more than 5,000, the largest",
)
BLOCKS = TableSpec(
    "blocks",
    "Allocation map",
    _BUFFER_COLUMNS,
    "Temporary buffers of the steps shown; if more than 3,000, those that cover the largest area",
)
TIMELINE = TableSpec(
    "timeline",
    "Memory over program order",
    (
        number("step", "Step", "id", "Position in the program's order of allocations and releases"),
        number("held_bytes", "Held", "bytes", "After the step"),
        number("unpadded_bytes", "Without padding", "bytes", "After the step"),
        text("instruction", "Instruction"),
    ),
    "Bytes after each of the steps shown; if there are more than `width_px`, the largest per pixel",
)
ALLOCATIONS = TableSpec(
    "allocations",
    "Allocations",
    (
        number("index", "Index", "id"),
        text("category", "Kind", "Parameter, Output, Constant or Temporary"),
        number("size_bytes", "Size", "bytes"),
        number("n_buffers", "Buffers", "count", "Logical buffers that it contains over time"),
        number("parameter_number", "Parameter", "id", "Of the entry computation; unknown: not a parameter"),
        flag("is_live_out", "Holds a result"),
    ),
    "Allocations of the memory space, largest first",
)
ADVICE = TableSpec(
    "advice",
    "What would lower the peak",
    (
        text("text", "Advice"),
        number("saves_bytes", "Saves up to", "bytes", "By itself: savings do not add up"),
    ),
    "Largest saving first",
)
SPACES = TableSpec(
    "spaces",
    "Memory spaces",
    (
        number("space", "Space", "id", "XLA's number of the memory space"),
        text("name", "Name"),
        number("peak_bytes", "Peak", "bytes"),
        number("allocated_bytes", "Allocated", "bytes", "Sum of all allocations"),
    ),
    "The memory spaces that the program uses",
)
PROGRAMS = TableSpec(
    "programs",
    "Programs",
    (
        *PROGRAM_COLUMNS,
        number("peak_bytes", "Peak", "bytes", "Main memory needed at its peak; unknown: not computed"),
    ),
    "All programs of the host, in the file's order",
)
CHOSEN = TableSpec(
    "chosen",
    "Chosen",
    (
        text("program", "Program", "Its title"),
        text("space_name", "Space"),
        text("device", "Device"),
        text("entry", "Entry computation"),
        text("peak_instruction", "Instruction at the peak"),
    ),
    "One row: the program and memory space of the other tables",
)
TABLES = (LIVE, TIMELINE, BLOCKS, ALLOCATIONS, ADVICE, SPACES, PROGRAMS, CHOSEN)

SCALARS = (
    ScalarSpec("peak_bytes", "Peak", "bytes", "The most held after any step"),
    ScalarSpec("padding_bytes", "Padding at the peak", "bytes"),
    ScalarSpec("temporary_bytes", "Temporaries at the peak", "bytes"),
    ScalarSpec("parameter_bytes", "Parameters", "bytes", "Held throughout"),
    ScalarSpec("output_bytes", "Results", "bytes", "Held throughout, in separate memory"),
    ScalarSpec(
        "allocated_bytes", "Allocated", "bytes", "Sum of all allocations; gaps are what exceeds the peak"
    ),
    ScalarSpec("constant_bytes", "Constants", "bytes", "Held throughout"),
    ScalarSpec("permanent_bytes", "Held throughout", "bytes", "Parameters, results and constants together"),
    ScalarSpec("peak_unpadded_bytes", "Peak without padding", "bytes"),
    ScalarSpec("peak_step", "Step of the peak", "id", "Unknown: the program has no temporaries"),
    ScalarSpec("n_steps", "Steps of the program's order", "count"),
    ScalarSpec("first_step", "First step shown", "id", "Of `timeline` and `blocks`"),
    ScalarSpec("last_step", "Last step shown", "id", "Of `timeline` and `blocks`"),
    ScalarSpec("space", "Memory space", "id", "XLA's number of the memory space"),
    ScalarSpec("capacity_bytes", "Chip memory", "bytes", "Of one device; null if unknown"),
    ScalarSpec("temporary_allocated_bytes", "Temporary allocations", "bytes"),
    ScalarSpec(
        "scoped_vmem_bytes",
        "Scoped VMEM of one instruction",
        "bytes",
        "The most that a single instruction uses while it runs; VMEM only",
        is_optional=True,
    ),
    ScalarSpec("n_live_left_out", "Smaller buffers at the peak, not listed", "count", "In `live`"),
    ScalarSpec("n_blocks_left_out", "Smaller blocks, not in the map", "count", "In `blocks`"),
)
TILES = tiles(
    "peak_bytes",
    Tile("temporary_bytes", least=1),
    Tile("parameter_bytes", least=1),
    Tile("output_bytes", least=1),
    Tile("padding_bytes", least=1),
    Tile("allocated_bytes", unlike="peak_bytes"),
    Tile("constant_bytes", least=1),
    "capacity_bytes",
)
