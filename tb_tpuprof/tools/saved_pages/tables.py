"""The tables and numbers of saved pages. Numbers are those of the pages, in this profiler's units."""

from __future__ import annotations

from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import tiles

_HOST = text("host", "Host", "Host whose profiler saved the page")
_STEP = text("step", "Step", "Number of the step, as the page states it")
_UNSTATED = "the page does not state it"


def _time(name: str, title: str, description: str) -> ColumnSpec:
    return number(name, title, "ps", description, is_optional=True, unknown=_UNSTATED)


def _share(name: str, title: str, description: str) -> ColumnSpec:
    return number(name, title, "fraction", description, is_optional=True, unknown=_UNSTATED)


def _count(name: str, title: str, description: str) -> ColumnSpec:
    return number(name, title, "count", description, is_optional=True, unknown=_UNSTATED)


def _bytes(name: str, title: str, description: str) -> ColumnSpec:
    return number(name, title, "bytes", description, is_optional=True, unknown=_UNSTATED)


def _text(name: str, title: str, description: str) -> ColumnSpec:
    return text(name, title, description, is_optional=True, unknown=_UNSTATED)


_FLOP_RATE = number(
    "flop_rate",
    "FLOP rate",
    "flops_per_s",
    "Floating-point operations per second while it ran",
    is_optional=True,
    unknown=_UNSTATED,
)

PAGES = TableSpec(
    "pages",
    "Pages",
    (
        _HOST,
        text("page", "Page", "The page that was saved"),
        text("file", "File", "Name of its file"),
        number("n_facts", "Facts", "count", "Number of its single facts, see Facts"),
        number("n_rows", "Rows", "count", "Number of rows of its tables"),
    ),
    "A row per page that was read",
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        _STEP,  # names the bars of the chart
        _HOST,
        _time("device_compute_ps", "Device compute", "Computation on the device"),
        _time("compute_ps", "Compute", "Time of the TPU that is not spent waiting for input"),
        _time("collectives_ps", "Collectives", "Communication of devices with one another"),
        _time("device_to_device_ps", "Device to device", "Copies between devices"),
        _time("host_to_device_ps", "Host to device", "Copies from the host to the device"),
        _time("input_ps", "Input", "Waiting for input data"),
        _time("output_ps", "Output", "Transfer of results"),
        _time("host_compute_ps", "Host compute", "Computation on the host"),
        _time("host_prepare_ps", "Kernel launch", "Launching kernels"),
        _time("host_compile_ps", "Compilation", "Compiling"),
        _time("idle_ps", "Idle", "The device is idle for another reason"),
        _time("other_ps", "Other", "All other time of the step"),
        _share(
            "input_fraction", "Waiting for input", "Share of the step spent waiting for input, mean of cores"
        ),
    ),
    "A row per step that the overview page or the input pipeline page has",
    is_optional=True,
    chart="steps",
)
TOP_OPERATIONS = TableSpec(
    "top_operations",
    "Top operations",
    (
        _HOST,
        text("operation", "Operation", "Name of the operation"),
        _text("type", "Type", "Its type"),
        _share("time_fraction", "Time", "Its share of the device's time"),
        _share("cumulative_fraction", "Cumulative", "Share of this operation and those above it"),
        _FLOP_RATE,
    ),
    "The operations that the overview page lists",
    is_optional=True,
)
OPERATIONS = TableSpec(
    "operations",
    "Operations",
    (
        _HOST,
        text("operation", "Operation", "Name of the operation; IDLE is idle time"),
        _text("place", "On", "Host or Device"),
        _text("type", "Type", "Its type"),
        _count("occurrences", "Occurrences", "How often it ran"),
        _time("total_time_ps", "Total time", "Time of all occurrences"),
        _time("self_time_ps", "Self time", "Total time without the operations within"),
        _share("device_fraction", "Of device", "Self time as a share of that of all operations on devices"),
        _share("host_fraction", "Of host", "Self time as a share of that of all operations on hosts"),
        _FLOP_RATE,
        number(
            "bandwidth",
            "Bandwidth",
            "bytes_per_s",
            "Bytes accessed per second while it ran",
            is_optional=True,
            unknown=_UNSTATED,
        ),
        number(
            "intensity",
            "Intensity",
            "flops_per_byte",
            "Floating-point operations per byte",
            is_optional=True,
            unknown=_UNSTATED,
        ),
        _text("bound_by", "Bound by", "What limits it by the roofline model"),
    ),
    "The operations of the page of TensorFlow operations",
    is_optional=True,
)
INPUT_OPERATIONS = TableSpec(
    "input_operations",
    "Input operations",
    (
        _HOST,
        text("operation", "Operation", "Name of the input operation"),
        _text("category", "Category", "What it does for the input"),
        _count("occurrences", "Occurrences", "How often it ran"),
        _time("total_time_ps", "Total time", "Time of all occurrences"),
        _share("total_fraction", "Share", "Total time as a share of all input processing"),
        _time("self_time_ps", "Self time", "Total time without the operations within"),
        _share("self_fraction", "Self share", "Self time as a share of all input processing"),
    ),
    "The operations of the input pipeline on the host",
    is_optional=True,
)
KERNELS = TableSpec(
    "kernels",
    "Kernels",
    (
        _HOST,
        text("kernel", "Kernel", "Name of the GPU kernel"),
        _text("operation", "Operation", "The operation that launched it"),
        _count("occurrences", "Occurrences", "How often it ran"),
        _time("total_time_ps", "Total time", "Time of all occurrences"),
        _time("min_time_ps", "Shortest", "Shortest occurrence"),
        _time("max_time_ps", "Longest", "Longest occurrence"),
        _count("registers", "Registers", "Registers per thread"),
        _bytes("static_shared_bytes", "Static shared", "Static shared memory per block"),
        _bytes("dynamic_shared_bytes", "Dynamic shared", "Dynamic shared memory per block"),
        _text("grid", "Grid", "Blocks per grid"),
        _text("block", "Block", "Threads per block"),
    ),
    "The rows of the page of GPU kernels",
    is_optional=True,
)
CORES = TableSpec(
    "cores",
    "Cores",
    (
        _HOST,
        _STEP,
        text("core", "Core", "Number of the core"),
        _text("core_host", "Host of the core", "Host that the core belongs to"),
        _text("chip", "Chip", "Number of the chip"),
        _text("node", "Node", "Number of the core on its chip"),
        _text("replica", "Replica", "Replica that the core computes"),
        _time("total_ps", "Step time", "Duration of the step on this core"),
        _time("compute_ps", "Compute", "Operations with many FLOPs"),
        _time("low_flops_ps", "Low-FLOP compute", "Operations with few FLOPs"),
        _time("infeed_ps", "Infeed", "Waiting for input from the host"),
        _time("outfeed_ps", "Outfeed", "Sending results to the host"),
        _time("all_reduce_ps", "All-reduce", "All-reduce and the like"),
        _time("synchronization_ps", "Synchronization", "Waiting for other cores in an all-reduce"),
        _time("send_ps", "Send", "Sending to other cores"),
        _time("receive_ps", "Receive", "Receiving from other cores"),
        _text("bottleneck", "Bottleneck", "What the page names as the core's bottleneck"),
    ),
    "A row per step and core of the pod viewer",
    is_optional=True,
)
COLLECTIVES = TableSpec(
    "collectives",
    "Collectives",
    (
        _HOST,
        _STEP,
        text("operation", "Operation", "Name of the operation"),
        _count("occurrences", "Occurrences", "How often it ran in the step, on all cores"),
        _time("duration_ps", "Duration", "Its duration as the page states it"),
        _bytes("data_bytes", "Data", "Size of its data"),
        _text("description", "Instruction", "The start of its HLO instruction"),
    ),
    "A row per step and collective of the pod viewer",
    is_optional=True,
)
LINKS = TableSpec(
    "links",
    "Links",
    (
        _HOST,
        _STEP,
        text("channel", "Channel", "Number of the channel"),
        _text("from_core", "From core", "Core that sends"),
        _text("to_core", "To core", "Core that receives"),
        _count("occurrences", "Occurrences", "How often it was used in the step"),
        _time("duration_ps", "Duration", "Its duration as the page states it"),
        _time("send_delay_ps", "Delay of the send", "How long the receiver waited for the send"),
        _bytes("data_bytes", "Data", "Size of its data"),
        _text("operations", "Operations", "Names of its operations"),
    ),
    "A row per step and channel of the pod viewer",
    is_optional=True,
)
OP_PROFILE = TableSpec(
    "op_profile",
    "Op profile",
    (
        _HOST,
        number("depth", "Depth", "count", "0 for the whole, 1 for the rows within it, and so on"),
        text("name", "Name", "Category or operation; rows within a row follow it"),
        _text("category", "Category", "Category of the operation"),
        _text("framework_op", "Framework operation", "The framework's name of the operation"),
        _share("time_fraction", "Time", "Share of the whole time"),
        number(
            "flops_fraction",
            "FLOPs",
            "fraction",
            "FLOP rate as a share of the peak, as the page states it",
            is_optional=True,
            unknown=f"{_UNSTATED}, or states more than the peak",
        ),
        _text("expression", "Instruction", "The start of its HLO instruction"),
    ),
    "The tree of the op profile, each row before those within it",
    is_optional=True,
)
MEMORIES = TableSpec(
    "memories",
    "Memories",
    (
        _HOST,
        text("memory", "Memory", "Name of the memory"),
        _bytes("peak_bytes", "Peak", "Most bytes in use during the profile"),
        _bytes("lifetime_peak_bytes", "Peak of the job", "Most bytes in use since the job started"),
        _time("peak_time_ps", "Time of the peak", "Time of the peak, since the profile started"),
        _bytes("heap_bytes", "Heap", "Bytes on the heap at the peak"),
        _bytes("stack_bytes", "Stack", "Bytes on the stack at the peak"),
        _bytes("free_bytes", "Free", "Free bytes at the peak"),
        _bytes("capacity_bytes", "Capacity", "Size of the memory"),
        _share("fragmentation", "Fragmentation", "Fragmentation at the peak"),
        _count("snapshots", "Events", "Number of allocations and deallocations that the page has"),
    ),
    "A row per memory of the memory profile",
    is_optional=True,
)
ALLOCATIONS = TableSpec(
    "allocations",
    "Allocations at the peak",
    (
        _HOST,
        text("memory", "Memory", "Name of the memory"),
        _text("operation", "Operation", "The operation that allocated it"),
        _count("occurrences", "Occurrences", "Number of such allocations"),
        _bytes("allocated_bytes", "Allocated", "Bytes of one allocation"),
        _bytes("requested_bytes", "Requested", "Bytes that were requested"),
        _text("region", "Region", "Kind of memory"),
        _text("data_type", "Data type", "Type of its elements"),
        _text("shape", "Shape", "Shape of the tensor"),
    ),
    "What was allocated at the peak of each memory",
    is_optional=True,
)
FACTS = TableSpec(
    "facts",
    "Facts",
    (
        _HOST,
        text("page", "Page", "The page that states it"),
        text("name", "Name", "The page's own name of it"),
        text("value", "Value", "As the page states it"),
    ),
    "Single facts that the pages state",
)
ADVICE = TableSpec(
    "advice",
    "Advice",
    (
        _HOST,
        text("page", "Page", "The page that gives it"),
        text("advice", "Advice", "As the page states it; links are left out"),
    ),
    "What the pages advise",
    is_optional=True,
)
CONTENT = (
    STEPS,
    TOP_OPERATIONS,
    OPERATIONS,
    INPUT_OPERATIONS,
    KERNELS,
    CORES,
    COLLECTIVES,
    LINKS,
    OP_PROFILE,
    MEMORIES,
    ALLOCATIONS,
)
TABLES = (*CONTENT, FACTS, ADVICE, PAGES)

SCALARS = (
    ScalarSpec("n_pages", "Pages", "count", "Number of pages that were read"),
    ScalarSpec(
        "n_steps", "Steps", "count", "Number of steps that the pages state, of all hosts", is_optional=True
    ),
    ScalarSpec(
        "step_time_ps",
        "Step time",
        "ps",
        "Mean duration of the steps that the pages state",
        is_optional=True,
        formula="sum of the classes of all steps ÷ number of steps",
    ),
    ScalarSpec(
        "input_fraction",
        "Waiting for input",
        "fraction",
        "Share of the steps' time that is spent waiting for input",
        is_optional=True,
        formula="input ÷ all classes, of all steps",
    ),
)
TILES = tiles("n_pages", "n_steps", "step_time_ps", "input_fraction")
