"""The tables and numbers of HLO stats."""

from __future__ import annotations

from tb_tpuprof.tools.op_times import CUMULATIVE, TIMES
from tb_tpuprof.tools.reasons import (
    NO_BYTES,
    NO_FLOPS,
    NO_FRAMEWORK_OP,
    NO_LIMIT,
    NO_SOURCE,
    NO_WORK,
)
from tb_tpuprof.tools.shares import shares_spec
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "Position by self time"),
        text("program", "Program", "Name and id of the compiled program"),
        text("category", "Category", "The compiler's category"),
        text("op", "Operation", "The compiler's name"),
        text("expression", "HLO", "The operation as the compiler prints it"),
        text("provenance", "Framework op", "The framework operation it came from", unknown=NO_FRAMEWORK_OP),
        number("n_occurrences", "Occurrences", "count", "On all devices and hosts"),
        *TIMES,
        number(
            "self_fraction",
            "Share",
            "fraction",
            "Self time as a share of the self time of all operations, as in the bars",
            formula="self time ÷ Σ self time",
            unknown="SparseCore operations run next to the TensorCore and have no share",
        ),
        CUMULATIVE,
        number(
            "device_time_fraction",
            "Share of device time",
            "fraction",
            "Self time as a share of the devices' time, idle time included; not of CPUs",
            is_optional=True,
            formula="self time ÷ device time",
            unknown="SparseCore operations run next to the TensorCore and have no share",
        ),
        number(
            "thread_time_ps",
            "Thread time",
            "ps",
            "Summed over all threads that worked on it, including time when the system ran something else"
            " on their processor; XLA:CPU only",
            is_optional=True,
            unknown="the trace has no end marks and no tasks of the thread pool for this operation",
        ),
        number(
            "n_threads",
            "Threads",
            "",
            "Number of threads that work on the operation at a time, on average; XLA:CPU only",
            is_optional=True,
            formula="thread time ÷ self time",
            unknown="the trace has no end marks and no tasks of the thread pool for this operation",
        ),
        number(
            "dma_stall_fraction",
            "DMA stalls",
            "fraction",
            "Share of the operation's time in which it waits for transfers between memories",
            unknown="the tracer recorded no DMA stalls",
        ),
        number(
            "flop_rate_flops_per_s",
            "FLOP rate",
            "flops_per_s",
            "Floating-point operations of any precision (model FLOPs), per second of total time",
            formula="model FLOPs ÷ total time",
            unknown=NO_FLOPS,
        ),
        number(
            "normalized_flops_per_s",
            "FLOP rate at rated clock",
            "flops_per_s",
            "FLOP rate that the operation would reach at the device's rated clock, if the trace reports "
            "the clock",
            formula="FLOP rate at the measured clock, scaled to the rated clock",
            unknown=NO_FLOPS,
        ),
        number(
            "memory_bandwidth_bytes_per_s",
            "Memory bandwidth",
            "bytes_per_s",
            "Bytes moved to and from all memories, per second of total time",
            formula="bytes accessed ÷ total time",
            unknown=NO_BYTES,
        ),
        number(
            "hbm_bytes_per_s",
            "HBM",
            "bytes_per_s",
            "Bytes moved to and from the device's main memory, per second of total time",
            formula="HBM bytes ÷ total time",
            unknown=NO_BYTES,
        ),
        *(
            number(
                f"{memory}_bytes_per_s",
                title,
                "bytes_per_s",
                "Bytes moved to or from this on-chip memory, per second of total time; TPUs only",
                is_optional=True,
                unknown=NO_BYTES,
            )
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
            formula="FLOPs ÷ HBM bytes",
            unknown=NO_WORK,
        ),
        number(
            "all_memories_flops_per_byte",
            "Intensity, all memories",
            "flops_per_byte",
            "FLOPs per byte of all memories",
            formula="FLOPs ÷ bytes accessed",
            unknown=NO_WORK,
        ),
        text(
            "bound_by",
            "Limited by",
            "The resource used closest to its peak, if at 30% or more",
            unknown=NO_LIMIT,
        ),
        text(
            "nearest_limit",
            "Nearest limit",
            "The resource used closest to its peak, however far from it",
            unknown=NO_LIMIT,
        ),
        flag("is_rematerialized", "Rematerialized", "Computed again to save memory"),
        flag("is_outside_compiled", "Outside compilation", "Runs on the host, called from the device"),
        text("source", "Source", "The line of the program it comes from", unknown=NO_SOURCE),
        text(
            "core",
            "Core",
            "TPU: TensorCore or SparseCore",
            unknown="only TPUs have TensorCores and SparseCores",
        ),
        number(
            "energy_j",
            "Energy (J)",
            "",
            "Energy that the operation used, in joules",
            unknown="the tracer does not measure energy",
        ),
    ),
    "A row per program and operation, at most 10,000, longest self time first; operations of SparseCores "
    "last, without a share. `expression` is cut at 2,000 characters; `bound_by` may also be Below every "
    "limit, Waiting or Unknown; what was not traced or measured is null",
    sentence="Every compiled operation with its times, rates and limiting resource, longest self time first",
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
        "n_ops", "Distinct operations", "count", "Number of operations that differ in program or name"
    ),
    ScalarSpec("n_occurrences", "Occurrences", "count", "How often operations ran, on all devices and hosts"),
    ScalarSpec(
        "rematerialized_fraction",
        "Rematerialized",
        "fraction",
        "Share of the operations' time spent computing values again to save memory",
        formula="Σ self time of rematerialized operations ÷ Σ self time",
    ),
)
TILES = tiles(
    "busy_ps", "idle_fraction", "n_ops", "n_occurrences", Tile("rematerialized_fraction", least=0.0005)
)
