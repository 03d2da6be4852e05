"""The tables and numbers of HLO stats."""

from __future__ import annotations

from tb_tpuprof.tools.shares import shares_spec
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "By self time"),
        text("program", "Program", "Name and id of the compiled program"),
        text("category", "Category", "The compiler's category"),
        text("op", "Operation", "The compiler's name"),
        text("expression", "HLO", "The operation as the compiler prints it"),
        text("provenance", "Framework op", "The framework operation it came from"),
        number("n_occurrences", "Occurrences", "count", "On all devices and hosts"),
        number("total_time_ps", "Total time", "ps", "Of all occurrences, with nested operations"),
        number("avg_time_ps", "Average time", "ps", "Of an occurrence"),
        number("total_self_time_ps", "Self time", "ps", "Of all occurrences, without nested operations"),
        number("avg_self_time_ps", "Average self time", "ps"),
        number("self_fraction", "Share", "fraction", "Of the operations' time, as in the bars"),
        number("cumulative_fraction", "Cumulative", "fraction", "Share of this row and all rows above"),
        number(
            "device_time_fraction",
            "Share of device time",
            "fraction",
            "Of the devices' time, idle time included; not of CPUs",
            is_optional=True,
        ),
        number(
            "thread_time_ps",
            "Thread time",
            "ps",
            "Summed over all threads that worked on it, including time when the system ran something else"
            " on their processor; XLA:CPU only",
            is_optional=True,
        ),
        number(
            "n_threads",
            "Threads",
            "",
            "Average number working on it at a time: thread time by self time; XLA:CPU only",
            is_optional=True,
        ),
        number("dma_stall_fraction", "DMA stalls", "fraction", "Of its time, waiting for transfers"),
        number(
            "flop_rate_flops_per_s", "FLOP rate", "flops_per_s", "The model's FLOPs per second of total time"
        ),
        number(
            "normalized_flops_per_s",
            "FLOP rate at rated clock",
            "flops_per_s",
            "If the trace reports the clock",
        ),
        number("memory_bandwidth_bytes_per_s", "Memory bandwidth", "bytes_per_s", "All memories together"),
        number("hbm_bytes_per_s", "HBM", "bytes_per_s"),
        *(
            number(f"{memory}_bytes_per_s", title, "bytes_per_s", "TPUs only", is_optional=True)
            for memory, title in (
                ("cmem_read", "CMEM read"),
                ("cmem_write", "CMEM write"),
                ("vmem_read", "VMEM read"),
                ("vmem_write", "VMEM write"),
            )
        ),
        number(
            "operational_intensity_flops_per_byte",
            "Operational intensity",
            "flops_per_byte",
            "FLOPs per byte moved to and from HBM",
        ),
        number(
            "all_memories_flops_per_byte",
            "Intensity, all memories",
            "flops_per_byte",
            "FLOPs per byte of all memories",
        ),
        text("bound_by", "Limited by", "The resource used closest to its peak, if at 30% or more"),
        text("nearest_limit", "Nearest limit", "However far from its peak"),
        flag("is_rematerialized", "Rematerialized", "Computed again to save memory"),
        flag("is_outside_compiled", "Outside compilation", "Runs on the host, called from the device"),
        text("source", "Source", "The line of the program it comes from"),
        text("core", "Core", "TPU: TensorCore or SparseCore"),
        number("energy_j", "Energy (J)", "", "Joules, if the tracer measures them"),
    ),
    "A row per program and operation, at most 10,000, longest self time first; operations of SparseCores "
    "last, without a share. `expression` is cut at 2,000 characters; `bound_by` may also be Below every "
    "limit, Waiting or Unknown; what was not traced or measured is null",
)
TABLES = (
    OPS,
    shares_spec("by_category", "By category"),
    shares_spec("by_op", "By operation"),
    shares_spec("by_bound", "By limiting resource"),
    shares_spec("by_source", "By source line"),
    shares_spec("by_program", "By program"),
    shares_spec("by_rematerialized", "Rematerialized", is_optional=True),
    shares_spec("by_outside", "Outside compilation", is_optional=True),
)
SHARES = {spec.name: spec for spec in TABLES[1:]}
SCALARS = (
    ScalarSpec("busy_ps", "Time of operations", "ps", "Self time of all operations"),
    ScalarSpec(
        "idle_fraction",
        "Idle",
        "fraction",
        "No compiled operation runs, between the first and the last one; null on CPUs",
    ),
    ScalarSpec("n_ops", "Distinct operations", "count"),
    ScalarSpec("n_occurrences", "Occurrences", "count"),
    ScalarSpec("rematerialized_fraction", "Rematerialized", "fraction", "Of the operations' time"),
)
