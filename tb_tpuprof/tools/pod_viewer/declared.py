"""The parameters, tables and numbers of the pod viewer's answers."""

from __future__ import annotations

from tb_tpuprof.analysis.pod.collectives import GroupsFrom
from tb_tpuprof.analysis.pod.parts import PART_TEXTS
from tb_tpuprof.analysis.pod.topology import AXES
from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.pod_viewer.topology_tables import TOPOLOGY
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

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
        text("core", "Core", "Name of the core: host and device, or the rank"),
        text("host", "Host", "The host that drives the core"),
        number("chip", "Chip of host", "id", "Number of the chip on its host"),
        number(
            "chip_id",
            "Chip",
            "id",
            "Number of the chip in the pod",
            unknown="the trace does not report the chip's number in the pod",
        ),
        *(
            number(
                axis,
                axis,
                "id",
                f"Place of the chip along {axis} in its slice",
                is_optional=True,
            )
            for axis in AXES
        ),
        number("device", "Device of program", "id", "The device's number in the program, or the rank"),
        number("total_ps", "Step time", "ps", "Sum of the parts that follow", formula="Σ parts"),
        number("own_ps", "Own time", "ps", _OWN, formula="step time − waiting for other cores"),
        text("bottleneck", "Largest part", "The part that takes the most of the core's step"),
        *_PART_COLUMNS,
    ),
    "A row for each core in the step shown",
    sentence="How each core spends the step",
)
PARTS = TableSpec(
    "parts",
    "Parts of the steps",
    (
        text("column", "Column", "Its column in `cores` and `steps`"),
        text("category", "Part", "Name of the part"),
        text("color", "Color", "Name of the part's color"),
        number("avg_ps", "Average", "ps", "Mean time of the part, over all cores and steps"),
        number(
            "fraction",
            "Share",
            "fraction",
            "The part's share of the step",
            formula="average ÷ mean step time",
        ),
        text("meaning", "Meaning", "What counts as this part"),
    ),
    "The parts that occur, in stacking order",
)
STEPS = TableSpec(
    "steps",
    "Step time",
    (
        text("step", "Step", "Name of the step, or its number"),
        number("step_ps", "Step time", "ps", "Duration of the step, mean over the cores"),
        number("max_ps", "Slowest core's", "ps", "Duration of the step on the core that takes longest"),
        number("max_own_ps", "Longest own time", "ps", _OWN),
        text("slowest", "Longest on", "The core with the longest own time"),
        *_PART_COLUMNS,
    ),
    "A row for each step that all hosts have, with parts as means over the cores; absent if no steps are "
    "marked",
    is_optional=True,
    sentence="The duration of each step as a mean over the cores, split into parts",
)
STRAGGLERS = TableSpec(
    "stragglers",
    "Stragglers",
    (
        text("straggler", "Host or core", "Name of the host or core that is slower than the others"),
        text("host", "Host", "The host, or the host of the core"),
        number(
            "core_row",
            "Core's row",
            "id",
            "Row of the core in the table `cores`",
            unknown="the whole host is slow, not one of its cores",
        ),
        text("since", "Since step", "The step with the strongest evidence that it is slow from there on"),
        number("own_ps", "Own time", "ps", "Its step time without waiting for others, mean since that step"),
        number(
            "usual_ps",
            "Median of the others",
            "ps",
            "Median own time of the other hosts or cores, mean since that step",
        ),
        number(
            "excess_ps",
            "Extra time",
            "ps",
            "By how much its own time exceeds the median of the others",
            formula="own time − median of the others",
        ),
        number(
            "excess_fraction",
            "Extra share",
            "fraction",
            "The excess compared with the median of the others",
            formula="excess ÷ median of the others",
        ),
        text(
            "cause",
            "Cause",
            "The kind of time that grew most compared with the others: compute, input, network or idle",
        ),
        number("job_ps", "Job's step", "ps", "Duration of the job's step: that of its slowest core"),
        number(
            "gain_ps",
            "Saved per step",
            "ps",
            "By how much the job's step would be shorter if it took the median of the others",
        ),
        number(
            "gain_fraction",
            "Share saved",
            "fraction",
            "The saving compared with the job's step",
            formula="saved ÷ job's step",
        ),
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
        text("op", "Operation", "Name of the instruction; PyTorch: kind and numbers within a step"),
        text("kind", "Kind", "Kind of collective, such as all-reduce"),
        text(
            "process_group",
            "Process group",
            "The ranks that run the collective together, as PyTorch names them",
            unknown="only PyTorch names process groups",
        ),
        number("transfer_ps", "Transfer per step", "ps", "Of the fastest participant, mean over cores"),
        number(
            "wait_ps",
            "Waiting per step",
            "ps",
            "Time that cores wait for the last one to arrive, mean over cores",
            unknown="only one participant of the collective was captured",
        ),
        number("n_per_step", "Times per step", "count", "How often the collective runs in a step"),
        number(
            "size_bytes",
            "Data",
            "bytes",
            "The result on one device; PyTorch: the larger of a rank's input and output",
            unknown="neither the program nor the file states the collective's size",
        ),
        number(
            "bytes_per_s",
            "Algorithm bandwidth",
            "bytes_per_s",
            "Bytes of the larger side of one participant divided by the transfer time (nccl-tests: algbw)",
            formula="data ÷ transfer time",
            unknown="the size is unknown, only the start and the end of the asynchronous operation were "
            "timed, or size and time give more than the links carry",
        ),
        number(
            "bus_bytes_per_s",
            "Bus bandwidth",
            "bytes_per_s",
            "What the links carry, comparable with their peak: algorithm bandwidth times 2(n-1)/n, "
            "(n-1)/n or 1 "
            "(nccl-tests: busbw)",
            formula="algorithm bandwidth × factor of the kind",
            unknown="the size is unknown, only the start and the end of the asynchronous operation were "
            "timed, or size and time give more than the links carry",
        ),
        number("n_groups", "Groups", "count", "Number of groups that run the collective separately"),
        number("group_size", "Cores in a group", "count", "Number of cores that run it together"),
        text("groups", "Replica groups", "Device numbers, such as {0,1} {2,3}, or all"),
        text(
            "groups_from",
            "Groups from",
            "Source of the groups: " + "; ".join(source.value for source in GroupsFrom),
        ),
        number(
            "channel_id",
            "Channel",
            "id",
            "Number of the channel in the program",
            unknown="the program gives the collective no channel",
        ),
        text(
            "dtype",
            "Data type",
            "Data type of the elements",
            unknown="neither the program nor the file states the data type",
        ),
        text(
            "remark", "Remark", "Why something is unknown or a bound", unknown="nothing is unknown or a bound"
        ),
    ),
    "Operations that cores run together, longest first",
)
NOT_RUN = "one of the ends did not run in the step"
CHANNELS = TableSpec(
    "channels",
    "Channels",
    (
        text("source", "From", "The core that sends"),
        text("target", "To", "The core that receives"),
        text(
            "link",
            "Link",
            "Axes along the shortest path, with the number of links if more than one; wrap: over the link "
            "that closes the axis",
            is_optional=True,
        ),
        number(
            "size_bytes",
            "Data",
            "bytes",
            "Bytes sent each time",
            unknown="the program does not state the size",
        ),
        number(
            "send_delay_ps",
            "Send delay",
            "ps",
            "Time that the receiver was ready before the sender",
            unknown=NOT_RUN,
        ),
        number(
            "latency_ps",
            "Latency",
            "ps",
            "From when both ends are ready to the end of the receive",
            unknown=NOT_RUN,
        ),
        number(
            "bytes_per_s",
            "Bandwidth",
            "bytes_per_s",
            "Data divided by latency",
            formula="data ÷ latency",
            unknown="the size is unknown, or no time passes",
        ),
        number("n_per_step", "Times per step", "count", "How often the link is used in a step"),
        text("ops", "Operations", "The operations that use the link"),
        number(
            "channel_id",
            "Channel",
            "id",
            "Number of the channel in the program",
            unknown="the program gives the operation no channel",
        ),
        number("hops", "Hops", "count", "Links on the shortest path", is_optional=True),
        number(
            "link_fraction",
            "Share of link rate",
            "fraction",
            "Bandwidth as a share of the peak rate of one link in one direction",
            is_optional=True,
            formula="bandwidth ÷ rate of a link",
            unknown="the cores are not neighbors, the bandwidth is unknown, or several links were used",
        ),
        text("send_op", "Send", "The operation that sends"),
        text("receive_op", "Receive", "The operation that ends the receive"),
        number("source_row", "From row", "id", "Of the table `cores`"),
        number("target_row", "To row", "id", "Of the table `cores`"),
    ),
    "Data from one core to another, busiest channel first; at most 20,000",
)
PROCESS_GROUPS = TableSpec(
    "process_groups",
    "Process groups",
    (
        text("group", "Group", "The group's name in PyTorch"),
        text(
            "description",
            "Called",
            "What the program calls the group, such as mesh_tp",
            unknown="the program gave the group no description",
        ),
        number("n_ranks", "Ranks", "count", "Number of ranks", unknown="the file does not state it"),
        text("ranks", "Which ranks", "The ranks of the group", unknown="the file does not list them"),
        text("backend", "Backend", "Library for each kind of device", unknown="the file does not state it"),
        number("n_collectives", "Collectives", "count", "Kernels of its collectives, on all ranks shown"),
        number("time_ps", "Time", "ps", "Of these kernels, summed over the ranks shown, waiting included"),
    ),
    "PyTorch's process groups, those with the longest collectives first",
    is_optional=True,
    sentence="Which ranks communicate with one another",
)
CELLS = TableSpec(
    "cells",
    "Own time",
    (number("value_ps", "Own time", "ps", "Core by core, a value for each step; in single precision"),),
    "The measure of every core in every step",
)
PAGE_TABLES = (CORES, PARTS, STEPS, STRAGGLERS, COLLECTIVES, CHANNELS, TOPOLOGY, PROCESS_GROUPS)

SCALARS = (
    ScalarSpec("n_hosts", "Hosts", "count", "Number of hosts that are compared"),
    ScalarSpec(
        "n_chips",
        "Chips",
        "count",
        "Number of TPU chips, or of GPUs in the traces; absent without devices",
        is_optional=True,
    ),
    ScalarSpec(
        "n_cores",
        "Cores",
        "count",
        "Number of TPU cores or of GPUs that ran something; without devices, each host counts as one",
    ),
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
        "Duration of the slowest core's step, which the job waits for; this and the numbers below are of "
        "the step shown",
        formula="max over cores",
    ),
    ScalarSpec(
        "step_ps",
        "Mean step time",
        "ps",
        "Duration of a step, mean over all cores",
        is_optional=True,
        formula="Σ step time ÷ (cores × steps)",
    ),
    ScalarSpec(
        "max_own_ps",
        "Longest own time",
        "ps",
        "Step time without waiting for others, of the core where it is longest; if cores wait for one "
        "another",
        is_optional=True,
        formula="step time − waiting for other cores",
    ),
    ScalarSpec(
        "median_own_ps",
        "Median own time",
        "ps",
        "Step time without waiting for others, of the core in the middle; if cores wait for one another",
        is_optional=True,
        formula="step time − waiting for other cores",
    ),
    ScalarSpec(
        "wait_fraction",
        "Waiting for others",
        "fraction",
        "Share of the step that cores spend waiting for others in collectives and receives, mean per core",
        is_optional=True,
        formula="(waiting in collectives + receives) ÷ step time",
        unknown="only one participant of each collective was captured",
    ),
    ScalarSpec(
        "copy_wait_fraction",
        "Waiting for copies",
        "fraction",
        "Share of the step that cores spend waiting for asynchronous copies to end, mean per core",
        is_optional=True,
        formula="waiting for copies ÷ step time",
    ),
    ScalarSpec(
        "idle_fraction",
        "Idle or other",
        "fraction",
        "Share of the step in which a core does nothing that was traced, mean per core",
        formula="idle or other ÷ step time",
    ),
    ScalarSpec(
        "is_alike",
        "Cores alike",
        "",
        "Whether no part differs between cores by more than 1% of the step; true for one core",
    ),
    ScalarSpec(
        "all_idle_fraction",
        "All idle at once",
        "fraction",
        "Share of the step in which nothing runs on any core of a host, mean over hosts",
        is_optional=True,
    ),
    ScalarSpec(
        "step",
        "Index of the step shown, -1 for the mean of all",
        "id",
        "Row of the step shown in the table `steps`; −1 for the mean of all steps",
    ),
)
TILES = tiles(
    Tile("n_cores", least=2),
    Tile("n_steps", least=1),
    "job_step_ps",
    Tile("step_ps", unlike="job_step_ps"),
    Tile("median_own_ps", unlike="job_step_ps"),
    "wait_fraction",
    "copy_wait_fraction",
    "idle_fraction",
    Tile("all_idle_fraction", unlike="idle_fraction"),
)
