"""The tables and numbers of the roofline model."""

from __future__ import annotations

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.ops.roofline import TITLES
from tb_tpuprof.tools.payload import Unit
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import tiles

HBM_BASE = "FLOPs per byte moved to and from HBM"


def _of_memories(suffix: str, unit: Unit, words: str) -> tuple[ColumnSpec, ...]:
    """A column per memory; on-chip memories only for TPUs."""
    hbm, *on_chip = zip(SPACES, TITLES, strict=True)
    return (
        number(f"{hbm[0]}_{suffix}", f"{hbm[1]}{words}", unit),
        *(
            number(f"{space}_{suffix}", f"{title}{words}", unit, "TPUs only", is_optional=True)
            for space, title in on_chip
        ),
    )


_MEASURES = (
    number("flops", "FLOPs", "count", "Of all occurrences"),
    number("hbm_bytes", "HBM bytes", "bytes", "Of all occurrences"),
    number("flop_rate_flops_per_s", "FLOP rate", "flops_per_s"),
    number("model_flops_per_s", "Model FLOP rate", "flops_per_s"),
    number("memory_bandwidth_bytes_per_s", "Memory bandwidth", "bytes_per_s", "All memories together"),
    *_of_memories("bytes_per_s", "bytes_per_s", ""),
    number("operational_intensity_flops_per_byte", "Operational intensity", "flops_per_byte", HBM_BASE),
    number(
        "all_memories_flops_per_byte",
        "Intensity, all memories",
        "flops_per_byte",
        "FLOPs per byte of all memories",
    ),
    *_of_memories("flops_per_byte", "flops_per_byte", " intensity"),
    number(
        "bound_flops_per_byte",
        "Intensity, nearest memory",
        "flops_per_byte",
        "HBM's if compute is nearest",
    ),
    text("bound_by", "Limited by", "The resource used closest to its peak, if at 30% or more"),
    text("nearest_limit", "Nearest limit", "However far from its peak"),
    number(
        "optimal_flops_per_s", "Attainable FLOP rate", "flops_per_s", "With the nearest limit at its peak"
    ),
    number("efficiency_fraction", "Roofline efficiency", "fraction", "Of the peak of the nearest limit"),
    number("compute_fraction", "Compute efficiency", "fraction", "FLOP rate divided by its peak"),
    number("memory_fraction", "Memory utilization", "fraction", "Of the memory used closest to its peak"),
)
OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "By self time"),
        text("program", "Program"),
        text("category", "Category"),
        text("op", "Operation"),
        number("n_occurrences", "Occurrences", "count"),
        number("total_time_ps", "Total time", "ps", "Of all occurrences, with nested operations"),
        number("avg_time_ps", "Average time", "ps"),
        number("total_self_time_ps", "Self time", "ps", "Without nested operations"),
        number("avg_self_time_ps", "Average self time", "ps"),
        number("self_fraction", "Share", "fraction", "Of the operations' time"),
        number("cumulative_fraction", "Cumulative", "fraction", "Share of this row and all rows above"),
        number(
            "device_time_fraction",
            "Share of device time",
            "fraction",
            "Self time divided by the devices' time, idle time included; not of CPUs",
            is_optional=True,
        ),
        number("time_fraction", "Share with nested", "fraction", "Total time divided by the devices' time"),
        number("time_per_device_ps", "Time per device", "ps", "Total time divided by the number of devices"),
        *_MEASURES,
        text("source", "Source"),
    ),
    "A row per operation, longest self time first, at most 10,000. `bound_by` may also be Below every "
    "limit, Waiting or Unknown; numbers with unknown work or peak are null",
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
        text("name", "Name"),
        text("title", "Memory"),
        number("bytes_per_s", "Peak bandwidth", "bytes_per_s"),
        number(
            "ridge_flops_per_byte",
            "Ridge point",
            "flops_per_byte",
            "Above this intensity, compute is the limit",
        ),
    ),
    "A row per memory with a known peak, of one device; `shared` is a GPU's shared memory",
)
TABLES = (OPS, PROGRAMS, ROOFS)
SCALARS = (
    ScalarSpec("efficiency_fraction", "Roofline efficiency", "fraction", "Of the peak of the nearest limit"),
    ScalarSpec("flop_rate_flops_per_s", "FLOP rate", "flops_per_s", "Of one device, idle time included"),
    ScalarSpec("intensity_flops_per_byte", "Operational intensity", "flops_per_byte", HBM_BASE),
    ScalarSpec("peak_flops_per_s", "Peak FLOP rate", "flops_per_s", "Of one device"),
    ScalarSpec("peak_hbm_bytes_per_s", "Peak HBM bandwidth", "bytes_per_s", "Of one device"),
    ScalarSpec(
        "ridge_flops_per_byte",
        "HBM ridge point",
        "flops_per_byte",
        "Above this intensity operations are limited by compute, below it by HBM",
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
