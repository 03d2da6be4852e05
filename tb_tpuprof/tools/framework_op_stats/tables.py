"""The tables and numbers of framework op stats."""

from __future__ import annotations

from tb_tpuprof.tools.op_times import TIMES
from tb_tpuprof.tools.reasons import NO_BYTES, NO_FLOPS, NO_FLOPS_OR_PEAK, NO_LIMIT, NO_WORK
from tb_tpuprof.tools.shares import shares_spec
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

NO_SHAPES = "the trace does not record the sizes of the operation's inputs"
NO_STACK = "no Python function was recorded around the operation"
OPS = TableSpec(
    "ops",
    "Operations",
    (
        number("rank", "Rank", "count", "By self time, the device's operations first"),
        text(
            "host_or_device",
            "Host/device",
            "Whether the operation ran on the host's processors or on a device",
        ),
        text(
            "type", "Type", "The operation's kind, such as MatMul or Dataset, without the scope in its name"
        ),
        text("operation", "Operation", "The framework's name of the operation"),
        text(
            "input_shapes",
            "Input shapes",
            "Sizes of the operation's tensors; of a compiled operation, the shapes of operands and result",
            is_optional=True,
            unknown=NO_SHAPES,
        ),
        text(
            "call_stack",
            "Call stack",
            "The Python functions that called the operation, the innermost first",
            is_optional=True,
            unknown=NO_STACK,
        ),
        number(
            "n_occurrences",
            "Occurrences",
            "count",
            "How often the operation ran, on all lines, devices and hosts",
        ),
        *TIMES,
        number(
            "device_self_fraction",
            "Device share",
            "fraction",
            "Self time as a share of all operations on the device",
            formula="self time ÷ Σ self time on the device",
            unknown="the operation ran on the host",
        ),
        number(
            "device_cumulative_fraction",
            "Device cumulative",
            "fraction",
            "Share of this row and all rows above",
            formula="Σ device share up to this row",
            unknown="the operation ran on the host",
        ),
        number(
            "host_self_fraction",
            "Host share",
            "fraction",
            "Self time as a share of all operations on the host",
            formula="self time ÷ Σ self time on the host",
            unknown="the operation ran on the device",
        ),
        number(
            "host_cumulative_fraction",
            "Host cumulative",
            "fraction",
            "Share of this row and all rows above",
            formula="Σ host share up to this row",
            unknown="the operation ran on the device",
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
            "compute_fraction",
            "Of peak compute",
            "fraction",
            "FLOP rate compared with the device's peak; for PyTorch's operators and products of 8 bits with "
            "the peak at the precision of their operands",
            formula="FLOP rate ÷ peak FLOP rate",
            unknown=NO_FLOPS_OR_PEAK,
        ),
        number(
            "memory_bandwidth_bytes_per_s",
            "Memory bandwidth",
            "bytes_per_s",
            "Bytes accessed per second of total time",
            formula="bytes accessed ÷ total time",
            unknown=NO_BYTES,
        ),
        number(
            "operational_intensity_flops_per_byte",
            "Operational intensity",
            "flops_per_byte",
            "FLOPs per byte that the operation moves to and from all memories",
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
        number(
            "tensor_core_fraction",
            "On tensor cores",
            "fraction",
            "Share of the operation's time on a GPU in kernels that run on tensor cores (AMD: matrix cores)",
            formula="time of kernels on tensor cores ÷ self time",
            unknown="the operation ran no kernel on a GPU",
        ),
        text("eager", "Mode", "Eager: the operation ran by itself, not inside a compiled or traced function"),
    ),
    "A row per operation: the device's first, then the host's; with `idle`, also a row `IDLE` for each",
    sentence="Every framework operation with its occurrences, times and rates",
)
DEVICE_BY_TYPE = shares_spec("device_by_type", "Device, by type")
DEVICE_BY_OP = shares_spec("device_by_op", "Device, by operation")
HOST_BY_TYPE = shares_spec("host_by_type", "Host, by type")
HOST_BY_OP = shares_spec("host_by_op", "Host, by operation")
TABLES = (OPS, DEVICE_BY_TYPE, DEVICE_BY_OP, HOST_BY_TYPE, HOST_BY_OP)
SCALARS = (
    ScalarSpec(
        "device_ops_ps",
        "Operations on the device",
        "ps",
        "Self time of all operations on all devices",
        is_optional=True,
        formula="Σ self time on the device",
    ),
    ScalarSpec(
        "device_copies_ps",
        "Copies and fills",
        "ps",
        "Copies and fills of memory, which are a part of the device's operations; the rest are kernels",
        is_optional=True,
    ),
    ScalarSpec(
        "device_idle_ps",
        "Idle on the device",
        "ps",
        "Time between the first and the last operation in which no operation runs, summed over devices",
        is_optional=True,
        formula="span − Σ self time",
        unknown="operations overlap in time",
    ),
    ScalarSpec(
        "n_device_ops",
        "Distinct device operations",
        "count",
        "Number of differently named operations on the device",
        is_optional=True,
    ),
    ScalarSpec(
        "host_ops_ps",
        "Operations on the host",
        "ps",
        "Self time of all operations on all threads of the hosts",
        is_optional=True,
        formula="Σ self time on the host",
    ),
    ScalarSpec(
        "host_idle_ps",
        "Idle on the host",
        "ps",
        "Time in which no operation runs, summed over the hosts' threads, each from its first operation to "
        "its last",
        is_optional=True,
        formula="span − Σ self time",
        unknown="operations overlap in time",
    ),
    ScalarSpec(
        "n_host_ops",
        "Distinct host operations",
        "count",
        "Number of differently named operations on the host",
        is_optional=True,
    ),
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
