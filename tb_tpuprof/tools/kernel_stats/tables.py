"""The tables and numbers of kernel stats."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import tiles

N_SLICES = 10
_FRACTION = number("fraction", "Share", "fraction", "Of the time of all kernels")

KERNELS = TableSpec(
    "kernels",
    "Kernels",
    (
        number("rank", "Rank", "count", "By total time"),
        text("kernel", "Kernel"),
        text("op", "Operation", "The operation that launched it: the framework's name, else the compiler's"),
        text("library", "Library", "From the kernel's name"),
        number("n_occurrences", "Launches", "count"),
        number("total_ps", "Total time", "ps", "Of all launches on all devices and hosts"),
        _FRACTION,
        number("avg_ps", "Average", "ps"),
        flag(
            "is_tensor_core_eligible",
            "Tensor cores possible",
            "The operation multiplies matrices or convolves, or the kernel uses them",
        ),
        flag("uses_tensor_cores", "Tensor cores used", "From the kernel's name (AMD: matrix cores)"),
        number("min_ps", "Minimum", "ps"),
        number("max_ps", "Maximum", "ps"),
        number("n_registers", "Registers", "count", "Per thread"),
        number("shared_bytes", "Shared memory", "bytes", "Static and dynamic, per block"),
        number("static_shared_bytes", "Static shared", "bytes"),
        number("dynamic_shared_bytes", "Dynamic shared", "bytes"),
        text("block", "Block", "Threads per block: x,y,z"),
        text("grid", "Grid", "Blocks of the launch: x,y,z (AMD: as its tracer counts them)"),
        number(
            "occupancy_fraction",
            "Occupancy",
            "fraction",
            "Theoretical occupancy: resident threads per multiprocessor by its maximum; as the tracer "
            "reports it, else computed from the launch (≈)",
        ),
        flag(
            "is_occupancy_computed",
            "Occupancy computed",
            "Not reported by the trace: computed from registers, shared memory, block and the GPU's "
            "compute capability",
        ),
        text("longest_host", "Host of the longest"),
        number("longest_start_ps", "Start of the longest", "ps", "Since the trace's start"),
    ),
    "A row per kernel, operation and launch, largest total time first, at most 10,000. `op` is "
    "(no operation) if none is known",
)


def _group(name: str, title: str, key: ColumnSpec) -> TableSpec:
    columns = (
        key,
        number("n_occurrences", "Launches", "count"),
        number("total_ps", "Total time", "ps"),
        _FRACTION,
        number("avg_ps", "Average", "ps"),
        number("min_ps", "Minimum", "ps"),
        number("max_ps", "Maximum", "ps"),
        number("tensor_core_fraction", "On tensor cores", "fraction", "Share of its time"),
        number(
            "eligible_fraction",
            "Could be",
            "fraction",
            "Share of its time in operations that tensor cores can do",
        ),
        number("n_variants", "Rows", "count", "Number of its rows in the table `kernels`"),
    )
    return TableSpec(name, title, columns, "Largest total time first, at most 10,000")


def _pie(name: str, title: str) -> TableSpec:
    columns = (
        text("name", "Name"),
        number("total_ps", "Total time", "ps"),
        number("fraction", "Share", "fraction"),
    )
    return TableSpec(name, title, columns, f"The first {N_SLICES} and `Other`", chart="donut")


BY_KERNEL = _group("by_kernel", "By kernel", text("kernel", "Kernel"))
BY_OP = _group("by_op", "By operation", text("op", "Operation"))
BY_LIBRARY = _group("by_library", "By library", text("library", "Library"))
TOP_KERNELS = _pie("top_kernels", "By kernel")
TOP_LIBRARIES = _pie("top_libraries", "By library")
TABLES = (KERNELS, BY_KERNEL, BY_OP, BY_LIBRARY, TOP_KERNELS, TOP_LIBRARIES)
SCALARS = (
    ScalarSpec("kernel_time_ps", "Kernel time", "ps", "Of all launches, on all devices and hosts", True),
    ScalarSpec("n_launches", "Launches", "count", "", True),
    ScalarSpec("avg_kernel_ps", "Average kernel", "ps", "Kernel time by launches", True),
    ScalarSpec("tensor_core_fraction", "Time on tensor cores", "fraction", "Of kernel time", True),
)
TILES = tiles("kernel_time_ps", "n_launches", "avg_kernel_ps", "tensor_core_fraction")
