"""The parameters, tables and numbers of the pod viewer's answers."""

from __future__ import annotations

from tb_tpuprof.analysis.pod.collectives import GroupsFrom
from tb_tpuprof.analysis.pod.parts import PART_TEXTS
from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text

OWN, TOTAL = "own", "total"
_OWN = (
    "Step time minus time spent waiting for other cores: in collectives, for their data, or idle while no "
    "other core waits for it"
)
_OF_JOB_STEP = "Of the job's step"
_OF_EXCESS = "Part of the excess"
_STEP = Param(
    "step",
    "Step",
    "int",
    None,
    "Index of a step among those that all hosts have, from 0; absent: the mean of all steps",
)

PAGE_PARAMS = CORES_PARAMS = (_STEP,)
CELLS_PARAMS = (
    Param(
        "measure",
        "Measure",
        "text",
        OWN,
        f"Value of the cells: {OWN}, {TOTAL}, or the name of a part such as collective_wait",
    ),
)

# Parts that occur on any core; titles of collectives differ if only one participant was captured.
_PART_COLUMNS = tuple(
    number(f"{part.name}_ps", part.title, "ps", part.meaning, is_optional=True)
    for part in PART_TEXTS.values()
)
CORES = TableSpec(
    "cores",
    "Cores",
    (
        text("core", "Core"),
        text("host", "Host"),
        number("chip", "Chip of host", "id"),
        number("chip_id", "Chip", "id", "In the pod; unknown if the trace does not report it"),
        number("device", "Device of program", "id", "The device's number in the program, or the rank"),
        number("total_ps", "Step time", "ps", "Sum of the parts that follow"),
        number("own_ps", "Own time", "ps", _OWN),
        text("bottleneck", "Largest part"),
        *_PART_COLUMNS,
    ),
    "A row for each core in the step shown",
)
PARTS = TableSpec(
    "parts",
    "Parts of the steps",
    (
        text("column", "Column", "Its column in `cores` and `steps`"),
        text("category", "Part"),
        text("color", "Color"),
        number("avg_ps", "Average", "ps", "Over all cores and steps"),
        number("fraction", "Share", "fraction", "Of the step"),
        text("meaning", "Meaning"),
    ),
    "The parts that occur, in stacking order",
)
STEPS = TableSpec(
    "steps",
    "Step time",
    (
        text("step", "Step"),
        number("step_ps", "Step time", "ps", "Mean over the cores"),
        number("max_ps", "Slowest core's", "ps"),
        number("max_own_ps", "Longest own time", "ps", _OWN),
        text("slowest", "Longest on", "The core with the longest own time"),
        *_PART_COLUMNS,
    ),
    "A row for each step that all hosts have, with parts as means over the cores; absent if no steps are "
    "marked",
    is_optional=True,
)
STRAGGLERS = TableSpec(
    "stragglers",
    "Stragglers",
    (
        text("straggler", "Host or core"),
        text("host", "Host"),
        number("core_row", "Core's row", "id", "Of the table `cores`; unknown: the whole host"),
        text("since", "Since step"),
        number("own_ps", "Own time", "ps"),
        number("usual_ps", "Median of the others", "ps"),
        number("excess_ps", "Extra time", "ps", "Beyond the median of the others"),
        number("excess_fraction", "Extra share", "fraction", "Of the median of the others"),
        text("cause", "Cause", "compute, input, network or idle"),
        number("job_ps", "Job's step", "ps", "Of its slowest core"),
        number("gain_ps", "Saved per step", "ps", _OF_JOB_STEP),
        number("gain_fraction", "Share saved", "fraction", _OF_JOB_STEP),
        number("compute_ps", "Extra compute", "ps", _OF_EXCESS),
        number("input_ps", "Extra input", "ps", _OF_EXCESS),
        number("network_ps", "Extra transfers", "ps", _OF_EXCESS),
        number("idle_ps", "Extra idle", "ps", _OF_EXCESS),
    ),
    "Hosts and cores that hold up the others, slowest first",
)
COLLECTIVES = TableSpec(
    "collectives",
    "Collectives",
    (
        text("op", "Operation"),
        text("kind", "Kind"),
        text("process_group", "Process group"),
        number("transfer_ps", "Transfer per step", "ps", "Of the fastest participant, mean over cores"),
        number(
            "wait_ps", "Waiting per step", "ps", "Mean over cores; unknown: only one participant was captured"
        ),
        number("n_per_step", "Times per step", "count"),
        number(
            "size_bytes",
            "Data",
            "bytes",
            "The result on one device; PyTorch: the larger of a rank's input and output",
        ),
        number(
            "bytes_per_s",
            "Algorithm bandwidth",
            "bytes_per_s",
            "Bytes of the larger side of one participant divided by the transfer time (nccl-tests: algbw)",
        ),
        number(
            "bus_bytes_per_s",
            "Bus bandwidth",
            "bytes_per_s",
            "What the links carry, comparable with their peak: algorithm bandwidth times 2(n-1)/n, "
            "(n-1)/n or 1 "
            "(nccl-tests: busbw)",
        ),
        number("n_groups", "Groups", "count"),
        number("group_size", "Cores in a group", "count"),
        text("groups", "Replica groups", "Device numbers, such as {0,1} {2,3}, or all"),
        text(
            "groups_from",
            "Groups from",
            "Source of the groups: " + "; ".join(source.value for source in GroupsFrom),
        ),
        number("channel_id", "Channel", "id"),
        text("dtype", "Data type"),
        text("remark", "Remark", "Why something is unknown or a bound"),
    ),
    "Operations that cores run together, longest first",
)
CHANNELS = TableSpec(
    "channels",
    "Links between cores",
    (
        text("source", "From"),
        text("target", "To"),
        number("size_bytes", "Data", "bytes"),
        number("latency_ps", "Latency", "ps", "From when both ends are ready to the end of the receive"),
        number("bytes_per_s", "Bandwidth", "bytes_per_s", "Data divided by latency"),
        number("send_delay_ps", "Send delay", "ps", "Time that the receiver was ready before the sender"),
        number("n_per_step", "Times per step", "count"),
        text("ops", "Operations"),
        number("channel_id", "Channel", "id"),
        number("source_row", "From row", "id", "Of the table `cores`"),
        number("target_row", "To row", "id", "Of the table `cores`"),
    ),
    "Links between two cores, busiest first; at most 20,000",
)
CELLS = TableSpec(
    "cells",
    "Own time",
    (number("value_ps", "Own time", "ps", "Core by core, a value for each step; in single precision"),),
    "The measure of every core in every step",
)
PAGE_TABLES = (CORES, PARTS, STEPS, STRAGGLERS, COLLECTIVES, CHANNELS)

SCALARS = (
    ScalarSpec("n_hosts", "Hosts", "count"),
    ScalarSpec("n_chips", "Chips", "count", "GPUs: those present; absent without devices", is_optional=True),
    ScalarSpec("n_cores", "Cores", "count", "GPUs: those that ran something; without devices: hosts"),
    ScalarSpec(
        "n_steps",
        "Steps",
        "count",
        "Steps that all hosts have. 0: no steps are marked, and the whole capture is shown",
        is_optional=True,
    ),
    ScalarSpec(
        "n_shown_steps",
        "Steps of the hosts shown",
        "count",
        "Replaces `n_steps` if hosts that were captured at another time are left out",
        is_optional=True,
    ),
    ScalarSpec(
        "job_step_ps",
        "Job's step time",
        "ps",
        "Of the slowest core, in the step shown, like all numbers below",
    ),
    ScalarSpec(
        "step_ps",
        "Mean step time",
        "ps",
        "Over all cores; absent for one core and for the whole capture",
        is_optional=True,
    ),
    ScalarSpec("max_own_ps", "Longest own time", "ps", "If cores wait for one another", is_optional=True),
    ScalarSpec("median_own_ps", "Median own time", "ps", "If cores wait for one another", is_optional=True),
    ScalarSpec(
        "wait_fraction",
        "Waiting for others",
        "fraction",
        "In collectives and receives; unknown: only one participant of each collective was captured",
        is_optional=True,
    ),
    ScalarSpec(
        "copy_wait_fraction",
        "Waiting for copies",
        "fraction",
        "Asynchronous copies, mean per core",
        is_optional=True,
    ),
    ScalarSpec(
        "is_alike",
        "Cores alike",
        "",
        "Whether no part differs between cores by more than 1% of the step; true for one core",
    ),
    ScalarSpec("idle_fraction", "Idle or other", "fraction", "Mean per core"),
    ScalarSpec(
        "all_idle_fraction",
        "All idle at once",
        "fraction",
        "Nothing runs on any core of a host",
        is_optional=True,
    ),
    ScalarSpec("step", "Index of the step shown, -1 for the mean of all", "id"),
)
