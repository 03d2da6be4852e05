"""The tables and numbers of the op profile, and of the details of one operation."""

from __future__ import annotations

from tb_tpuprof.tools.reasons import (
    NO_BYTES,
    NO_BYTES_OR_PEAK,
    NO_FLOPS,
    NO_FLOPS_OR_PEAK,
    NO_INTENSITY,
    NO_OCCURRENCE,
)
from tb_tpuprof.tools.source_lines import SOURCE_LINES
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import tiles

NODES = TableSpec(
    "nodes",
    "Op profile",
    (
        text("name", "Name", "Name of the program, category, part of a framework name, or operation"),
        text("kind", "Kind", "Kind of node: all, program, category, scope, duplicates, op or idle"),
        number("parent", "Parent", "id", "Row of the parent node, -1 for the root"),
        number("n_children", "Children", "count", "Including those beyond the limit"),
        number(
            "self_time_ps",
            "Time",
            "ps",
            "Self time of all operations below the node, summed over devices",
            formula="Σ self time",
        ),
        number(
            "time_fraction",
            "Share",
            "fraction",
            "The node's share of the tree's total time",
            formula="time ÷ total time",
        ),
        number(
            "wasted_ps",
            "Wasted",
            "ps",
            "Time in which the resource that limits the operation (compute, HBM or an on-chip memory: the "
            "one closest to its peak) was not used, summed over the operations below; idle time counts as "
            "wasted",
            formula="Σ self time × (1 − utilization of the limiting resource)",
            unknown="the trace must state the work of an operation, and the device's peak must be known",
        ),
        number("n_occurrences", "Occurrences", "count", "How often the operations below the node ran"),
        number(
            "avg_time_ps",
            "Average",
            "ps",
            "Self time of one occurrence, on average",
            formula="time ÷ occurrences",
            unknown=NO_OCCURRENCE,
        ),
        number("flops", "FLOPs", "count", "Floating-point operations of all occurrences", unknown=NO_FLOPS),
        number(
            "model_flops",
            "Model FLOPs",
            "count",
            "Floating-point operations of any precision; a TPU's FLOPs count those on 8 bits as half",
            unknown=NO_FLOPS,
        ),
        number(
            "flop_rate_flops_per_s",
            "FLOP rate",
            "flops_per_s",
            "Floating-point operations per second of the node's time",
            formula="FLOPs ÷ time",
            unknown=NO_FLOPS,
        ),
        number(
            "flops_fraction",
            "FLOPS utilization",
            "fraction",
            "FLOP rate compared with the device's peak",
            formula="FLOP rate ÷ peak FLOP rate",
            unknown=NO_FLOPS_OR_PEAK,
        ),
        number(
            "hbm_bytes",
            "HBM bytes",
            "bytes",
            "Bytes moved to and from the device's main memory; those of an asynchronous copy count at its "
            "end",
            unknown=NO_BYTES,
        ),
        number(
            "hbm_bytes_per_s",
            "HBM bandwidth",
            "bytes_per_s",
            "Bytes moved to and from main memory per second; for asynchronous copies, from start to end",
            formula="HBM bytes ÷ time",
            unknown=NO_BYTES,
        ),
        number(
            "hbm_fraction",
            "HBM utilization",
            "fraction",
            "HBM bandwidth compared with the device's peak",
            formula="HBM bandwidth ÷ peak bandwidth",
            unknown=NO_BYTES_OR_PEAK,
        ),
        number(
            "on_chip_read_fraction",
            "On-chip read utilization",
            "fraction",
            "Bytes read from CMEM or VMEM per second compared with its peak, whichever is larger",
            formula="read rate ÷ peak",
            unknown="only TPUs have CMEM or VMEM with a known peak, and the trace must state the bytes",
        ),
        number(
            "on_chip_write_fraction",
            "On-chip write utilization",
            "fraction",
            "Bytes written to CMEM or VMEM per second compared with its peak, whichever is larger",
            formula="write rate ÷ peak",
            unknown="only TPUs have CMEM or VMEM with a known peak, and the trace must state the bytes",
        ),
        text("program", "Program", "The compiled program that contains the operation"),
        text("provenance", "Framework op", "The framework operation that it came from"),
        flag("is_fusion", "Fusion", "Runs other instructions, which its details list"),
    ),
    "A row per node of the tree, parents before children, siblings by time, at most 20,000. `kind` is all, "
    "program, category, scope, duplicates, op or idle; rates and utilizations with unknown work or peak "
    "are null",
    sentence="Self time of programs, categories and operations as a tree",
)
SCALARS = (
    ScalarSpec(
        "busy_ps",
        "Time of operations",
        "ps",
        "Self time of all compiled operations, summed over devices",
        formula="Σ self time",
    ),
    ScalarSpec(
        "idle_fraction",
        "Idle",
        "fraction",
        "Share of the devices' time in which no compiled operation runs, from the first one to the last",
        formula="1 − time of operations ÷ device time",
        unknown="operations of a CPU run in parallel on many threads",
    ),
    ScalarSpec(
        "flops_fraction",
        "FLOPS utilization",
        "fraction",
        "FLOP rate while operations run, compared with the peak of one device",
        formula="FLOPs ÷ time of operations ÷ peak FLOP rate",
        unknown=NO_FLOPS_OR_PEAK,
    ),
    ScalarSpec(
        "hbm_fraction",
        "HBM utilization",
        "fraction",
        "HBM bandwidth while operations run, compared with the peak of one device",
        formula="HBM bytes ÷ time of operations ÷ peak bandwidth",
        unknown=NO_BYTES_OR_PEAK,
    ),
    ScalarSpec(
        "flop_rate_flops_per_s",
        "FLOP rate",
        "flops_per_s",
        "Floating-point operations per second while operations run, of one device",
        formula="FLOPs ÷ time of operations",
        unknown=NO_FLOPS,
    ),
)
TILES = tiles("busy_ps", "idle_fraction", "flops_fraction", "hbm_fraction", "flop_rate_flops_per_s")

FACTS = TableSpec(
    "facts",
    "Operation",
    (
        text("name", "Name", "What the value is"),
        text("value", "Value", "The value, as the trace or the program's HLO states it"),
    ),
    "Name, program, category, framework op, source, duplicate of, core, HLO text, opcode and computation, "
    "if known",
)
SHAPES = TableSpec(
    "shapes",
    "Shapes",
    (
        text("part", "Part", "`result`, or `operand 0` and so on"),
        text("name", "Name", "Name of the value"),
        text("shape", "Shape", "Data type and dimensions of the value"),
        text("layout", "Layout", "Fastest dimension first"),
        number(
            "size_bytes",
            "Size",
            "bytes",
            "Bytes that the shape needs without padding",
            formula="elements × bytes per element",
        ),
        number(
            "padded_bytes",
            "With padding",
            "bytes",
            "Bytes with dimensions rounded up to the layout's first tile",
        ),
        text("memory", "Memory", "The memory space that holds the value"),
    ),
    "If the program's HLO is known",
    is_optional=True,
)
PADDING = TableSpec(
    "padding",
    "Padding by dimension",
    (
        text("value", "Value", "The result or the operand"),
        number("dim", "Dimension", "id", "Number of the dimension, from 0"),
        text("role", "Role", "Of the dimension in a matrix multiplication"),
        number("size", "Size", "count", "Elements of the dimension"),
        number("padded", "Padded to", "count", "Elements that the layout makes of it"),
        number(
            "waste_fraction",
            "Wasted",
            "fraction",
            "Share of the padded dimension that holds no data",
            formula="1 − size ÷ padded size",
        ),
    ),
    "A row per dimension that is rounded up, if the program's HLO is known",
    is_optional=True,
)
PRODUCTS = TableSpec(
    "products",
    "Matrix products",
    (
        text("name", "Product", "Name of the matrix product or convolution"),
        number("batch", "Batch", "count", "Number of products that are computed independently"),
        number("rows", "Rows", "count", "Rows of the first matrix"),
        number(
            "contracted",
            "Contracted",
            "count",
            "Columns of the first matrix, which are the rows of the second: the dimension that is summed "
            "over",
        ),
        number("columns", "Columns", "count", "Columns of the second matrix"),
        number(
            "fill_fraction",
            "Fills the unit",
            "fraction",
            "Share of the matrix unit that the product's sizes fill; a bound from the shapes, not a "
            "measurement",
            unknown="only TPUs have a matrix unit of known size",
        ),
        text("padding", "Padding", "Which sizes are rounded up, and to what"),
    ),
    "If the program's HLO is known",
    is_optional=True,
)
CONTENTS = TableSpec(
    "contents",
    "Contents",
    (
        text("name", "Name", "Name of the instruction inside"),
        text("opcode", "Opcode", "Kind of HLO instruction, such as add or dot"),
        text("shape", "Shape", "Data type and dimensions of the result"),
        number("flops", "FLOPs", "count", "Floating-point operations of one run, by the cost model"),
        number(
            "estimated_fraction",
            "Share (estimated)",
            "fraction",
            "Estimated share of the operation's time, in proportion to FLOPs; nothing measures the inside "
            "of an operation",
            formula="FLOPs ÷ Σ FLOPs inside",
            unknown="nothing inside the operation has FLOPs",
        ),
        text("provenance", "Framework op", "The framework operation that the instruction came from"),
    ),
    "Instructions of the computations it runs, at most 500; if the program's HLO is known",
    is_optional=True,
)
STACK = TableSpec(
    "stack",
    "Source",
    (
        text("place", "Line", "File and line of the source"),
        text("function", "Function", "Function that contains the line"),
    ),
    "Source lines, innermost first",
)
LONGEST = TableSpec(
    "longest",
    "Longest",
    (
        text("host", "Host", "Host on which the longest run happened"),
        number("event", "Event", "id", "As numbered in the timeline"),
        number("start_ps", "Start", "ps", "Start of the longest run, since the trace's start"),
        number("duration_ps", "Duration", "ps", "Duration of the longest run"),
    ),
    "Its longest event; no row if none was traced",
)
OP_TABLES = (FACTS, SHAPES, PADDING, PRODUCTS, CONTENTS, STACK, SOURCE_LINES, LONGEST)
OP_SCALARS = (
    ScalarSpec(
        "self_time_ps", "Self time", "ps", "Time of all occurrences, without operations nested inside"
    ),
    ScalarSpec(
        "fraction",
        "Share of operations' time",
        "fraction",
        "Self time as a share of the self time of all operations",
        formula="self time ÷ Σ self time",
    ),
    ScalarSpec(
        "n_occurrences", "Occurrences", "count", "How often the operation ran, on all devices and hosts"
    ),
    ScalarSpec(
        "avg_time_ps",
        "Average time",
        "ps",
        "Total time of one occurrence, on average",
        formula="total time ÷ occurrences",
    ),
    ScalarSpec("flops", "FLOPs per run", "count", "Floating-point operations of one run", unknown=NO_FLOPS),
    ScalarSpec(
        "n_bytes",
        "Bytes per run",
        "bytes",
        "Bytes that one run moves to and from all memories",
        unknown=NO_BYTES,
    ),
    ScalarSpec(
        "flop_rate_flops_per_s",
        "FLOP rate",
        "flops_per_s",
        "Floating-point operations per second of total time",
        formula="FLOPs ÷ total time",
        unknown=NO_FLOPS,
    ),
    ScalarSpec(
        "flops_fraction",
        "FLOPS utilization",
        "fraction",
        "FLOP rate compared with the device's peak",
        formula="FLOP rate ÷ peak FLOP rate",
        unknown=NO_FLOPS_OR_PEAK,
    ),
    ScalarSpec(
        "hbm_bytes_per_s",
        "Memory bandwidth",
        "bytes_per_s",
        "Bytes moved to and from main memory per second",
        formula="HBM bytes ÷ total time",
        unknown=NO_BYTES,
    ),
    ScalarSpec(
        "hbm_fraction",
        "HBM utilization",
        "fraction",
        "HBM bandwidth compared with the device's peak",
        formula="HBM bandwidth ÷ peak bandwidth",
        unknown=NO_BYTES_OR_PEAK,
    ),
    ScalarSpec(
        "intensity_flops_per_byte",
        "Operational intensity",
        "flops_per_byte",
        "FLOPs per byte moved to and from HBM",
        formula="FLOPs ÷ HBM bytes",
        unknown=NO_INTENSITY,
    ),
)
