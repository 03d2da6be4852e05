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
    text("instruction", "Instruction", "The HLO instruction whose result the buffer holds"),
    text("opcode", "Opcode", "Kind of HLO instruction, such as fusion, dot or copy"),
    text(
        "category",
        "Allocation",
        "Kind of allocation: Parameter, Output, Thread-local, Constant or Temporary",
    ),
    number(
        "size_bytes",
        "Size",
        "bytes",
        "Bytes of the buffer, with the padding of its layout",
        formula="unpadded + extra",
    ),
    number(
        "unpadded_bytes",
        "Unpadded",
        "bytes",
        "Bytes that the shape needs without padding",
        formula="elements × bytes per element",
    ),
    number(
        "expansion", "Expansion", "", "How many times its data the buffer takes", formula="size ÷ unpadded"
    ),
    number(
        "padding_bytes",
        "Extra",
        "bytes",
        "Bytes of the buffer that hold no data, because the layout rounds dimensions up",
        formula="size − unpadded",
    ),
    text("shape", "Shape", "Data type and dimensions of the buffer"),
    text("padded_dimensions", "Padded", "The dimensions that the layout rounds up, and to what"),
    text("op_name", "Framework op", "The framework operation that the instruction came from"),
    number("first_step", "From step", "id", "The step of the program's order that allocates it"),
    number("last_step", "To step", "id", "The last step that holds it"),
    number(
        "allocation",
        "Allocation index",
        "id",
        "Index of the allocation that contains the buffer",
        unknown="the buffer is in no allocation of this memory space",
    ),
    number(
        "offset_bytes",
        "Offset",
        "bytes",
        "Address within all temporary allocations, laid end to end",
        unknown="the buffer is held throughout, so it is not in the map of temporaries",
    ),
    flag("is_at_peak", "At the peak", "Whether the buffer is held at the peak"),
    text("source", "Source", "File and line of the framework's code"),
    text("stack", "Source stack", "The innermost place first, one per line"),
)
LIVE = TableSpec(
    "live",
    "Buffers at the peak",
    _BUFFER_COLUMNS,
    "In program order, buffers held throughout first; if more than 5,000, the largest",
    sentence="Buffers that are held at the peak",
)
BLOCKS = TableSpec(
    "blocks",
    "Allocation map",
    _BUFFER_COLUMNS,
    "Temporary buffers of the steps shown; if more than 3,000, those that cover the largest area",
    sentence="Address range and lifetime of each temporary buffer",
)
TIMELINE = TableSpec(
    "timeline",
    "Memory over program order",
    (
        number("step", "Step", "id", "Position in the program's order of allocations and releases"),
        number(
            "held_bytes",
            "Held",
            "bytes",
            "Memory held after the step: what is held throughout plus the temporaries of that moment",
        ),
        number("unpadded_bytes", "Without padding", "bytes", "The same without the padding of layouts"),
        text(
            "instruction", "Instruction", "The instruction whose buffer is allocated or released in this step"
        ),
    ),
    "Bytes after each of the steps shown; if there are more than `width_px`, the largest per pixel",
    sentence="Memory that the program holds after each step of its order",
)
ALLOCATIONS = TableSpec(
    "allocations",
    "Allocations",
    (
        number("index", "Index", "id", "Number of the allocation in the HLO file"),
        text("category", "Kind", "Parameter, Output, Constant or Temporary"),
        number("size_bytes", "Size", "bytes", "Bytes of the allocation"),
        number("n_buffers", "Buffers", "count", "Logical buffers that it contains over time"),
        number(
            "parameter_number",
            "Parameter",
            "id",
            "Number of the parameter of the entry computation that the allocation holds",
            unknown="the allocation holds no parameter",
        ),
        flag("is_live_out", "Holds a result", "Whether the allocation holds a result of the program"),
    ),
    "Allocations of the memory space, largest first",
)
ADVICE = TableSpec(
    "advice",
    "What would lower the peak",
    (
        text("text", "Advice", "What to change to lower the peak"),
        number("saves_bytes", "Saves up to", "bytes", "By itself: savings do not add up"),
    ),
    "Largest saving first",
    sentence="Changes that would lower the peak, each with the most that it saves by itself",
)
SPACES = TableSpec(
    "spaces",
    "Memory spaces",
    (
        number("space", "Space", "id", "XLA's number of the memory space"),
        text("name", "Name", "Name of the memory, such as HBM, VMEM or host"),
        number(
            "peak_bytes",
            "Peak",
            "bytes",
            "The most memory of this space held after any step of the program's order",
        ),
        number("allocated_bytes", "Allocated", "bytes", "Sum of all allocations"),
    ),
    "The memory spaces that the program uses",
)
PROGRAMS = TableSpec(
    "programs",
    "Programs",
    (
        *PROGRAM_COLUMNS,
        number(
            "peak_bytes",
            "Peak",
            "bytes",
            "Main memory that the program holds at its peak",
            unknown="the program's HLO has no buffer assignment, or its peak was not computed",
        ),
    ),
    "All programs of the host, in the file's order",
)
CHOSEN = TableSpec(
    "chosen",
    "Chosen",
    (
        text("program", "Program", "Title of the program shown: name and id"),
        text("space_name", "Space", "Name of the memory space shown"),
        text("device", "Device", "The device whose memory the program needs"),
        text("entry", "Entry computation", "The computation that the program starts with"),
        text(
            "peak_instruction",
            "Instruction at the peak",
            "The instruction during which the most memory is held",
        ),
    ),
    "One row: the program and memory space of the other tables",
    sentence="The program and memory space shown",
)
TABLES = (LIVE, TIMELINE, BLOCKS, ALLOCATIONS, ADVICE, SPACES, PROGRAMS, CHOSEN)

SCALARS = (
    ScalarSpec(
        "peak_bytes",
        "Peak",
        "bytes",
        "The most memory that the program holds after any step of its order",
        formula="max (held throughout + temporaries)",
    ),
    ScalarSpec(
        "padding_bytes",
        "Padding at the peak",
        "bytes",
        "Bytes held at the peak that contain no data, because layouts round dimensions up",
        formula="peak − peak without padding",
    ),
    ScalarSpec(
        "temporary_bytes",
        "Temporaries at the peak",
        "bytes",
        "Bytes of intermediate values held at the peak",
        formula="peak − held throughout",
    ),
    ScalarSpec(
        "parameter_bytes",
        "Parameters",
        "bytes",
        "Bytes of the program's inputs, held from the first step to the last",
    ),
    ScalarSpec(
        "output_bytes",
        "Results",
        "bytes",
        "Bytes of results that do not reuse the memory of parameters, held from the first step to the last",
    ),
    ScalarSpec(
        "allocated_bytes",
        "Allocated",
        "bytes",
        "Sum of all allocations; what exceeds the peak is gaps between buffers of different sizes and "
        "lifetimes",
        formula="Σ size of allocations",
    ),
    ScalarSpec(
        "constant_bytes",
        "Constants",
        "bytes",
        "Bytes of constants in the program, held from the first step to the last",
    ),
    ScalarSpec(
        "permanent_bytes",
        "Held throughout",
        "bytes",
        "Parameters, results and constants together, held from the first step to the last",
        formula="parameters + results + constants",
    ),
    ScalarSpec(
        "peak_unpadded_bytes",
        "Peak without padding",
        "bytes",
        "Bytes of data held at the peak, without the padding of layouts",
    ),
    ScalarSpec(
        "peak_step",
        "Step of the peak",
        "id",
        "Position in the program's order at which the peak is reached",
        unknown="the program has no temporaries, so it holds the same throughout",
    ),
    ScalarSpec(
        "n_steps",
        "Steps of the program's order",
        "count",
        "Number of allocations and releases of temporaries in the program's order",
    ),
    ScalarSpec("first_step", "First step shown", "id", "First step that `timeline` and `blocks` show"),
    ScalarSpec("last_step", "Last step shown", "id", "Last step that `timeline` and `blocks` show"),
    ScalarSpec("space", "Memory space", "id", "XLA's number of the memory space"),
    ScalarSpec(
        "capacity_bytes",
        "Chip memory",
        "bytes",
        "Memory of one device",
        unknown="neither the trace nor a data sheet states the memory of this device",
    ),
    ScalarSpec(
        "temporary_allocated_bytes",
        "Temporary allocations",
        "bytes",
        "Bytes allocated for temporaries, gaps included",
        formula="allocated − held throughout",
    ),
    ScalarSpec(
        "scoped_vmem_bytes",
        "Scoped VMEM of one instruction",
        "bytes",
        "The most that a single instruction uses while it runs; VMEM only",
        is_optional=True,
    ),
    ScalarSpec(
        "n_live_left_out",
        "Smaller buffers at the peak, not listed",
        "count",
        "Number of smaller buffers at the peak that the table `live` does not list",
    ),
    ScalarSpec(
        "n_blocks_left_out",
        "Smaller blocks, not in the map",
        "count",
        "Number of smaller blocks that the map does not draw",
    ),
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
