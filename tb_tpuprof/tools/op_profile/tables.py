"""The tables and numbers of the op profile, and of the details of one operation."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import tiles

NODES = TableSpec(
    "nodes",
    "Op profile",
    (
        text("name", "Name"),
        text("kind", "Kind"),
        number("parent", "Parent", "id", "Row of the parent node, -1 for the root"),
        number("n_children", "Children", "count", "Including those beyond the limit"),
        number("self_time_ps", "Time", "ps", "Self time of all operations below"),
        number("time_fraction", "Share", "fraction", "Of the tree's total time"),
        number("n_occurrences", "Occurrences", "count"),
        number("avg_time_ps", "Average", "ps", "Self time per occurrence"),
        number("flops", "FLOPs", "count", "Of all occurrences"),
        number("model_flops", "Model FLOPs", "count"),
        number("flop_rate_flops_per_s", "FLOP rate", "flops_per_s"),
        number("flops_fraction", "FLOPS utilization", "fraction", "FLOP rate divided by the peak"),
        number("hbm_bytes", "HBM bytes", "bytes", "An asynchronous copy is counted at its end"),
        number("hbm_bytes_per_s", "HBM bandwidth", "bytes_per_s", "Asynchronous copies: from start to end"),
        number("hbm_fraction", "HBM utilization", "fraction"),
        number(
            "on_chip_read_fraction",
            "On-chip read utilization",
            "fraction",
            "Of CMEM or VMEM, whichever is larger",
        ),
        number(
            "on_chip_write_fraction",
            "On-chip write utilization",
            "fraction",
            "Of CMEM or VMEM, whichever is larger",
        ),
        text("program", "Program", "Of an operation"),
        text("provenance", "Framework op", "Of an operation"),
        flag("is_fusion", "Fusion", "Runs other instructions, which its details list"),
    ),
    "A row per node of the tree, parents before children, siblings by time, at most 20,000. `kind` is all, "
    "program, category, scope, duplicates, op or idle; rates and utilizations with unknown work or peak "
    "are null",
)
SCALARS = (
    ScalarSpec("busy_ps", "Time of operations", "ps", "Self time of all operations"),
    ScalarSpec(
        "idle_fraction",
        "Idle",
        "fraction",
        "No compiled operation runs, between the first and the last one; null on CPUs",
    ),
    ScalarSpec("flops_fraction", "FLOPS utilization", "fraction", "While operations run"),
    ScalarSpec("hbm_fraction", "HBM utilization", "fraction", "While operations run"),
    ScalarSpec("flop_rate_flops_per_s", "FLOP rate", "flops_per_s", "While operations run"),
)
TILES = tiles("busy_ps", "idle_fraction", "flops_fraction", "hbm_fraction", "flop_rate_flops_per_s")

FACTS = TableSpec(
    "facts",
    "Operation",
    (text("name", "Name"), text("value", "Value")),
    "Name, program, category, framework op, source, duplicate of, core, HLO text, opcode and computation, "
    "if known",
)
SHAPES = TableSpec(
    "shapes",
    "Shapes",
    (
        text("part", "Part", "`result`, or `operand 0` and so on"),
        text("name", "Name"),
        text("shape", "Shape"),
        text("layout", "Layout", "Fastest dimension first"),
        number("size_bytes", "Size", "bytes"),
        number("padded_bytes", "With padding", "bytes"),
        text("memory", "Memory"),
    ),
    "If the program's HLO is known",
    is_optional=True,
)
PADDING = TableSpec(
    "padding",
    "Padding by dimension",
    (
        text("value", "Value"),
        number("dim", "Dimension", "id"),
        text("role", "Role", "Of the dimension in a matrix multiplication"),
        number("size", "Size", "count"),
        number("padded", "Padded to", "count"),
        number("waste_fraction", "Wasted", "fraction"),
    ),
    "A row per dimension that is rounded up, if the program's HLO is known",
    is_optional=True,
)
PRODUCTS = TableSpec(
    "products",
    "Matrix products",
    (
        text("name", "Product"),
        number("batch", "Batch", "count"),
        number("rows", "Rows", "count"),
        number("contracted", "Contracted", "count"),
        number("columns", "Columns", "count"),
        number("fill_fraction", "Fills the unit", "fraction", "Share of the matrix unit; TPUs only"),
        text("padding", "Padding"),
    ),
    "If the program's HLO is known",
    is_optional=True,
)
CONTENTS = TableSpec(
    "contents",
    "Contents",
    (
        text("name", "Name"),
        text("opcode", "Opcode"),
        text("shape", "Shape"),
        number("flops", "FLOPs", "count"),
        number(
            "estimated_fraction",
            "Share (estimated)",
            "fraction",
            "Of the FLOPs inside, by the cost model; not measured",
        ),
        text("provenance", "Framework op"),
    ),
    "Instructions of the computations it runs, at most 500; if the program's HLO is known",
    is_optional=True,
)
STACK = TableSpec(
    "stack", "Source", (text("place", "Line"), text("function", "Function")), "Source lines, innermost first"
)
LONGEST = TableSpec(
    "longest",
    "Longest",
    (
        text("host", "Host"),
        number("event", "Event", "id", "As numbered in the timeline"),
        number("start_ps", "Start", "ps"),
        number("duration_ps", "Duration", "ps"),
    ),
    "Its longest event; no row if none was traced",
)
OP_TABLES = (FACTS, SHAPES, PADDING, PRODUCTS, CONTENTS, STACK, LONGEST)
OP_SCALARS = (
    ScalarSpec("self_time_ps", "Self time", "ps"),
    ScalarSpec("fraction", "Share of operations' time", "fraction"),
    ScalarSpec("n_occurrences", "Occurrences", "count"),
    ScalarSpec("avg_time_ps", "Average time", "ps"),
    ScalarSpec("flops", "FLOPs per run", "count"),
    ScalarSpec("n_bytes", "Bytes per run", "bytes"),
    ScalarSpec("flop_rate_flops_per_s", "FLOP rate", "flops_per_s"),
    ScalarSpec("flops_fraction", "FLOPS utilization", "fraction"),
    ScalarSpec("hbm_bytes_per_s", "HBM bandwidth", "bytes_per_s"),
    ScalarSpec("hbm_fraction", "HBM utilization", "fraction"),
    ScalarSpec("intensity_flops_per_byte", "Operational intensity", "flops_per_byte", "Of HBM bytes"),
)
