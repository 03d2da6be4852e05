"""The tables and numbers of framework op stats."""

from __future__ import annotations

from tb_tpuprof.tools.shares import shares_spec
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "By self time, the device's operations first"),
        text("host_or_device", "Host/device"),
        text("type", "Type"),
        text("operation", "Operation"),
        number("n_occurrences", "Occurrences", "count", "Over all lines, devices and hosts"),
        number("total_time_ps", "Total time", "ps", "Of all occurrences, with nested operations"),
        number("avg_time_ps", "Average time", "ps", "Total time by occurrences"),
        number("total_self_time_ps", "Self time", "ps", "Of all occurrences, without nested operations"),
        number("avg_self_time_ps", "Average self time", "ps", "Self time by occurrences"),
        number("device_self_fraction", "Device share", "fraction", "Of the device's self time"),
        number(
            "device_cumulative_fraction",
            "Device cumulative",
            "fraction",
            "Share of this row and all rows above",
        ),
        number("host_self_fraction", "Host share", "fraction", "Of the host's self time"),
        number(
            "host_cumulative_fraction", "Host cumulative", "fraction", "Share of this row and all rows above"
        ),
        number(
            "flop_rate_flops_per_s",
            "FLOP rate",
            "flops_per_s",
            "Floating-point operations per second of total time",
        ),
        number(
            "memory_bandwidth_bytes_per_s",
            "Memory bandwidth",
            "bytes_per_s",
            "Bytes accessed per second of total time",
        ),
        number(
            "operational_intensity_flops_per_byte",
            "Operational intensity",
            "flops_per_byte",
            "FLOPs per byte of all memories",
        ),
        text("bound_by", "Limited by", "The resource used closest to its peak, if at 30% or more"),
        text("nearest_limit", "Nearest limit", "However far from its peak"),
        text("eager", "Mode", "Eager: ran as a single operation"),
    ),
    "A row per operation: the device's first, then the host's; with `idle`, also a row `IDLE` for each",
)
DEVICE_BY_TYPE = shares_spec("device_by_type", "Device, by type")
DEVICE_BY_OP = shares_spec("device_by_op", "Device, by operation")
HOST_BY_TYPE = shares_spec("host_by_type", "Host, by type")
HOST_BY_OP = shares_spec("host_by_op", "Host, by operation")
TABLES = (OPS, DEVICE_BY_TYPE, DEVICE_BY_OP, HOST_BY_TYPE, HOST_BY_OP)
SCALARS = (
    ScalarSpec("device_ops_ps", "Operations on the device", "ps", "Self time of all", True),
    ScalarSpec(
        "device_copies_ps",
        "Copies and fills",
        "ps",
        "Memory operations, part of the device's operations; the rest are kernels",
        True,
    ),
    ScalarSpec(
        "device_idle_ps", "Idle on the device", "ps", "Between the first and the last operation", True
    ),
    ScalarSpec("n_device_ops", "Distinct device operations", "count", "", True),
    ScalarSpec("host_ops_ps", "Operations on the host", "ps", "Self time of all", True),
    ScalarSpec(
        "host_idle_ps",
        "Idle on the host",
        "ps",
        "Summed over threads, each from its first operation to its last",
        True,
    ),
    ScalarSpec("n_host_ops", "Distinct host operations", "count", "", True),
)
TILES = tiles(
    "device_ops_ps",
    Tile("device_copies_ps", least=1),
    "device_idle_ps",
    "n_device_ops",
    "host_ops_ps",
    "host_idle_ps",
    "n_host_ops",
)
