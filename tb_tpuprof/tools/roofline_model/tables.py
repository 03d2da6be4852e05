"""The tables and numbers of the roofline model."""

from __future__ import annotations

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.ops.roofline import TITLES
from tb_tpuprof.tools.op_times import CUMULATIVE, TIMES
from tb_tpuprof.tools.payload import Unit
from tb_tpuprof.tools.reasons import (
    NO_BYTES,
    NO_BYTES_OR_PEAK,
    NO_FLOPS,
    NO_FLOPS_OR_PEAK,
    NO_INTENSITY,
    NO_PEAK,
    NO_WORK_OR_PEAK,
)
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import tiles

HBM_BASE = "FLOPs per byte moved to and from HBM"
MAIN_MEMORY_BASE = "FLOPs per byte moved to and from main memory"


def _of_memories(suffix: str, unit: Unit, words: str) -> tuple[ColumnSpec, ...]:
    """A column per memory; on-chip memories only for TPUs."""
    is_rate = unit == "bytes_per_s"
    per = "Bytes moved, per second of total time:" if is_rate else "FLOPs per byte moved:"
    formula = "bytes ÷ total time" if is_rate else "FLOPs ÷ bytes"
    unknown = NO_BYTES if is_rate else NO_INTENSITY
    hbm, *on_chip = zip(SPACES, TITLES, strict=True)
    return (
        number(
            f"{hbm[0]}_{suffix}",
            f"{hbm[1]}{words}",
            unit,
            f"{per} the device's main memory",
            formula=formula,
            unknown=unknown,
        ),
        *(
            number(
                f"{space}_{suffix}",
                f"{title}{words}",
                unit,
                f"{per} {title}; TPUs only",
                is_optional=True,
                formula=formula,
                unknown=unknown,
            )
            for space, title in on_chip
        ),
    )


_MEASURES = (
    number("flops", "FLOPs", "count", "Floating-point operations of all occurrences", unknown=NO_FLOPS),
    number(
        "hbm_bytes",
        "HBM bytes",
        "bytes",
        "Bytes moved to and from the device's main memory by all occurrences",
        unknown=NO_BYTES,
    ),
    number(
        "flop_rate_flops_per_s",
        "FLOP rate",
        "flops_per_s",
        "Floating-point operations per second of total time",
        formula="FLOPs ÷ total time",
        unknown=NO_FLOPS,
    ),
    number(
        "model_flops_per_s",
        "Model FLOP rate",
        "flops_per_s",
        "Floating-point operations of any precision, per second of total time; a TPU's FLOPs count those on "
        "8 bits as half",
        formula="model FLOPs ÷ total time",
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
    *_of_memories("bytes_per_s", "bytes_per_s", ""),
    number(
        "operational_intensity_flops_per_byte",
        "Operational intensity",
        "flops_per_byte",
        HBM_BASE,
        formula="FLOPs ÷ HBM bytes",
        unknown=NO_INTENSITY,
    ),
    number(
        "all_memories_flops_per_byte",
        "Intensity, all memories",
        "flops_per_byte",
        "FLOPs per byte of all memories",
        formula="FLOPs ÷ bytes accessed",
        unknown=NO_INTENSITY,
    ),
    *_of_memories("flops_per_byte", "flops_per_byte", " intensity"),
    number(
        "bound_flops_per_byte",
        "Intensity, nearest memory",
        "flops_per_byte",
        "FLOPs per byte of the memory used closest to its peak; HBM's if compute is nearest",
        unknown=NO_INTENSITY,
    ),
    text("bound_by", "Limited by", "The resource used closest to its peak, if at 30% or more"),
    text("nearest_limit", "Nearest limit", "The resource used closest to its peak, however far from it"),
    number(
        "optimal_flops_per_s",
        "Attainable FLOP rate",
        "flops_per_s",
        "The FLOP rate that would be reached with the nearest limit at its peak",
        formula="FLOP rate ÷ roofline efficiency",
        unknown=NO_WORK_OR_PEAK,
    ),
    number(
        "efficiency_fraction",
        "Roofline efficiency",
        "fraction",
        "How much of its peak the nearest limit reaches",
        formula="max (rate ÷ peak) over compute and memories",
        unknown=NO_WORK_OR_PEAK,
    ),
    number(
        "compute_fraction",
        "Compute efficiency",
        "fraction",
        "FLOP rate compared with its peak",
        formula="FLOP rate ÷ peak FLOP rate",
        unknown=NO_FLOPS_OR_PEAK,
    ),
    number(
        "memory_fraction",
        "Memory utilization",
        "fraction",
        "Bandwidth compared with its peak, of the memory used closest to its peak",
        formula="bandwidth ÷ peak bandwidth",
        unknown=NO_BYTES_OR_PEAK,
    ),
)
OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "Position by self time"),
        text("program", "Program", "The compiled program that contains the operation"),
        text("category", "Category", "The compiler's category of the operation"),
        text("op", "Operation", "The compiler's name of the operation"),
        number(
            "n_occurrences", "Occurrences", "count", "How often the operation ran, on all devices and hosts"
        ),
        *TIMES,
        number(
            "self_fraction",
            "Share",
            "fraction",
            "Self time as a share of the self time of all operations",
            formula="self time ÷ Σ self time",
        ),
        CUMULATIVE,
        number(
            "device_time_fraction",
            "Share of device time",
            "fraction",
            "Self time as a share of the devices' time, idle time included; not of CPUs",
            is_optional=True,
            formula="self time ÷ device time",
        ),
        number(
            "time_fraction",
            "Share with nested",
            "fraction",
            "Total time, with nested operations, as a share of the devices' time",
            formula="total time ÷ device time",
        ),
        number(
            "time_per_device_ps",
            "Time per device",
            "ps",
            "Total time per device",
            formula="total time ÷ number of devices",
        ),
        *_MEASURES,
        text("source", "Source", "The source line that the operation comes from"),
    ),
    "A row per operation, longest self time first, at most 10,000. `bound_by` may also be Below every "
    "limit, Waiting or Unknown; numbers with unknown work or peak are null",
    sentence="Every operation with its rates, intensities and distance to its roof, longest self time first",
)
PROGRAMS = TableSpec(
    "programs",
    "Program and steps",
    (
        text("step", "Step", "`Total`, `Average` of the steps, or a step's name"),
        number("total_time_ps", "Time, all devices", "ps", "Summed over the devices, idle time included"),
        number(
            "time_per_device_ps",
            "Span per device",
            "ps",
            "From a device's first operation to its last, or a step",
        ),
        *_MEASURES,
    ),
    "The program as a whole, the mean of its steps, and each step",
)
ROOFS = TableSpec(
    "roofs",
    "Roofs",
    (
        text("name", "Name", "Identifier of the memory"),
        text("title", "Memory", "Name of the memory"),
        number(
            "bytes_per_s", "Peak bandwidth", "bytes_per_s", "Highest bandwidth of the memory, of one device"
        ),
        number(
            "ridge_flops_per_byte",
            "Ridge point",
            "flops_per_byte",
            "Intensity at which the memory's roof meets the compute roof; above it, compute is the limit",
            formula="peak FLOP rate ÷ peak bandwidth",
            unknown="the device's peak FLOP rate is unknown",
        ),
    ),
    "A row per memory with a known peak, of one device; `shared` is a GPU's shared memory",
    sentence="Peak bandwidth of each memory, and the intensity from which compute is the limit",
)
TABLES = (OPS, PROGRAMS, ROOFS)
SCALARS = (
    ScalarSpec(
        "efficiency_fraction",
        "Roofline efficiency",
        "fraction",
        "How much of its peak the nearest limit reaches over the whole capture",
        formula="max (rate ÷ peak) over compute and memories",
        unknown=NO_WORK_OR_PEAK,
    ),
    ScalarSpec(
        "flop_rate_flops_per_s",
        "FLOP rate",
        "flops_per_s",
        "Floating-point operations per second of one device, idle time included; of CPUs, while "
        "operations run",
        formula="FLOPs ÷ device time",
        unknown=NO_FLOPS,
    ),
    ScalarSpec(
        "intensity_flops_per_byte",
        "Operational intensity",
        "flops_per_byte",
        HBM_BASE,
        formula="FLOPs ÷ HBM bytes",
        unknown=NO_INTENSITY,
    ),
    ScalarSpec(
        "peak_flops_per_s",
        "Peak FLOP rate",
        "flops_per_s",
        "Highest FLOP rate of one device",
        unknown=NO_PEAK,
    ),
    ScalarSpec(
        "peak_hbm_bytes_per_s",
        "Peak HBM bandwidth",
        "bytes_per_s",
        "Highest bandwidth of one device's main memory",
        unknown=NO_PEAK,
    ),
    ScalarSpec(
        "ridge_flops_per_byte",
        "HBM ridge point",
        "flops_per_byte",
        "Intensity above which operations are limited by compute, and below which by HBM",
        formula="peak FLOP rate ÷ peak HBM bandwidth",
        unknown=NO_PEAK,
    ),
)
TILES = tiles(
    "efficiency_fraction",
    "flop_rate_flops_per_s",
    "intensity_flops_per_byte",
    "ridge_flops_per_byte",
    "peak_flops_per_s",
    "peak_hbm_bytes_per_s",
)
