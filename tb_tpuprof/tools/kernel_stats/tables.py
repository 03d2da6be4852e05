"""The tables and numbers of kernel stats."""

from __future__ import annotations

from tb_tpuprof.tools.reasons import NO_LAUNCH
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import tiles

N_SLICES = 10
_FRACTION = number(
    "fraction",
    "Share",
    "fraction",
    "Total time as a share of the time of all kernels",
    formula="total time ÷ kernel time",
)

KERNELS = TableSpec(
    "kernels",
    "Kernels",
    (
        number("rank", "Rank", "count", "Position by total time"),
        text(
            "kernel",
            "Kernel",
            "Name of the kernel; hover over it for the full name with its template parameters",
        ),
        text("op", "Operation", "The operation that launched it: the framework's name, else the compiler's"),
        text("library", "Library", "The library that the kernel comes from, inferred from its name"),
        number(
            "n_occurrences",
            "Launches",
            "count",
            "How often the kernel was launched, on all devices and hosts",
        ),
        number("total_ps", "Total time", "ps", "Of all launches on all devices and hosts"),
        _FRACTION,
        number(
            "avg_ps", "Average", "ps", "Duration of one launch, on average", formula="total time ÷ launches"
        ),
        flag(
            "is_tensor_core_eligible",
            "Tensor cores possible",
            "The operation multiplies matrices or convolves, or the kernel uses them",
        ),
        flag("uses_tensor_cores", "Tensor cores used", "From the kernel's name (AMD: matrix cores)"),
        number("min_ps", "Minimum", "ps", "Duration of the shortest launch"),
        number("max_ps", "Maximum", "ps", "Duration of the longest launch"),
        number("n_registers", "Registers", "count", "Registers per thread", unknown=NO_LAUNCH),
        number(
            "shared_bytes",
            "Shared memory",
            "bytes",
            "Shared memory per block",
            formula="static shared + dynamic shared",
            unknown=NO_LAUNCH,
        ),
        number(
            "static_shared_bytes",
            "Static shared",
            "bytes",
            "Shared memory per block that is declared in the kernel's code",
            unknown=NO_LAUNCH,
        ),
        number(
            "dynamic_shared_bytes",
            "Dynamic shared",
            "bytes",
            "Shared memory per block that is requested at the launch",
            unknown="the tracer reports only the total of shared memory",
        ),
        text("block", "Block", "Threads per block: x,y,z", unknown=NO_LAUNCH),
        text(
            "grid", "Grid", "Blocks of the launch: x,y,z (AMD: as its tracer counts them)", unknown=NO_LAUNCH
        ),
        number(
            "occupancy_fraction",
            "Occupancy",
            "fraction",
            "Theoretical occupancy: how many of its threads a multiprocessor can hold at once, compared "
            "with the maximum; as the tracer reports it, else computed from the launch (≈)",
            formula="resident threads per multiprocessor ÷ its maximum",
            unknown="the tracer reports no occupancy, and the trace lacks the registers, the block or the "
            "GPU's compute capability to compute it",
        ),
        flag(
            "is_occupancy_computed",
            "Occupancy computed",
            "Not reported by the trace: computed from registers, shared memory, block and the GPU's "
            "compute capability",
        ),
        text("longest_host", "Host of the longest", "Host on which the longest launch ran"),
        number(
            "longest_start_ps",
            "Start of the longest",
            "ps",
            "Start of the longest launch, since the trace's start",
        ),
    ),
    "A row per kernel, operation and launch, largest total time first, at most 10,000. `op` is "
    "(no operation) if none is known",
    sentence="Every kernel with its launches, times and launch details, longest total time first",
)


def _group(name: str, title: str, key: ColumnSpec) -> TableSpec:
    columns = (
        key,
        number("n_occurrences", "Launches", "count", "Number of launches in the group"),
        number("total_ps", "Total time", "ps", "Time of all launches in the group"),
        _FRACTION,
        number(
            "avg_ps", "Average", "ps", "Duration of one launch, on average", formula="total time ÷ launches"
        ),
        number("min_ps", "Minimum", "ps", "Duration of the shortest launch"),
        number("max_ps", "Maximum", "ps", "Duration of the longest launch"),
        number(
            "tensor_core_fraction",
            "On tensor cores",
            "fraction",
            "Share of the group's time in kernels that use tensor cores",
        ),
        number(
            "eligible_fraction",
            "Could be",
            "fraction",
            "Share of the group's time in operations that tensor cores can do",
        ),
        number("n_variants", "Rows", "count", "Number of its rows in the table `kernels`"),
    )
    return TableSpec(name, title, columns, "Largest total time first, at most 10,000")


def _pie(name: str, title: str) -> TableSpec:
    columns = (
        text("name", "Name", "What the times are summed by"),
        number("total_ps", "Total time", "ps", "Time of all launches in the group"),
        number(
            "fraction",
            "Share",
            "fraction",
            "Total time as a share of the time of all kernels",
            formula="total time ÷ kernel time",
        ),
    )
    return TableSpec(
        name, title, columns, f"Time of the {N_SLICES} largest, and of the rest as Other", chart="donut"
    )


BY_KERNEL = _group("by_kernel", "By kernel", text("kernel", "Kernel", "Name of the kernel"))
BY_OP = _group("by_op", "By operation", text("op", "Operation", "The operation that launched the kernels"))
BY_LIBRARY = _group(
    "by_library",
    "By library",
    text("library", "Library", "The library that the kernels come from, inferred from their names"),
)
TOP_KERNELS = _pie("top_kernels", "By kernel")
TOP_LIBRARIES = _pie("top_libraries", "By library")
TABLES = (KERNELS, BY_KERNEL, BY_OP, BY_LIBRARY, TOP_KERNELS, TOP_LIBRARIES)
SCALARS = (
    ScalarSpec(
        "kernel_time_ps",
        "Kernel time",
        "ps",
        "Time of all launches of kernels, on all devices and hosts; copies and fills are excluded",
        is_optional=True,
        formula="Σ duration of launches",
    ),
    ScalarSpec(
        "n_launches",
        "Launches",
        "count",
        "How often kernels were launched, on all devices and hosts",
        is_optional=True,
    ),
    ScalarSpec(
        "avg_kernel_ps",
        "Average kernel",
        "ps",
        "Duration of one launch, on average",
        is_optional=True,
        formula="kernel time ÷ launches",
        unknown="no kernel was launched",
    ),
    ScalarSpec(
        "tensor_core_fraction",
        "Time on tensor cores",
        "fraction",
        "Share of kernel time in kernels that use tensor cores (AMD: matrix cores), judged by their names",
        is_optional=True,
        formula="Σ time of kernels that use them ÷ kernel time",
        unknown="no kernel was launched",
    ),
)
TILES = tiles("kernel_time_ps", "n_launches", "avg_kernel_ps", "tensor_core_fraction")
