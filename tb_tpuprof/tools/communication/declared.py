"""The parameters, tables and numbers of the communication page's answers."""

from __future__ import annotations

from dataclasses import replace

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.comm_costs import EXPOSED_SHARE
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

_MEAN = "mean per step and device"
_NO_SIZE = (
    "neither the program nor the file states the size or the group, or they give more than links or memory "
    "carry"
)
_ALONE = "a copy involves one device, or only one participant was captured"
EXPOSED_TEXT = "Time in which data moves and nothing computes on the device"
HIDDEN_TEXT = "Time in which data moves while the device computes"

STEPS = TableSpec(
    "steps",
    "Each step",
    (
        text("step", "Step", "Name of the step, or its number"),
        number("step_ps", "Step time", "ps", "Duration of the step, mean over the devices"),
        number("compute_ps", "Compute", "ps", "The device computes and moves no data"),
        number("hidden_ps", "Hidden", "ps", "Operations that compute hides as a whole"),
        number(
            "partly_ps", "Partly hidden", "ps", "The hidden part of operations that also have an exposed part"
        ),
        number("exposed_ps", "Exposed", "ps", EXPOSED_TEXT),
        number("other_ps", "Other", "ps", "The device neither computes nor moves data"),
        number("waiting_ps", "Waiting", "ps", "Part of the exposed time spent waiting for other devices"),
        number("best_ps", "If fully hidden", "ps", "Shortest step that hiding alone could reach"),
    ),
    "A row for each step that all hosts have, means over the devices. Compute, hidden, partly hidden, "
    "exposed and other add up to the step",
    sentence="How each step divides into compute, hidden and exposed communication; means over the devices",
)
OPS = TableSpec(
    "ops",
    "Operations that move data",
    (
        text("op", "Operation", "Name of the instruction or event; PyTorch: kind and numbers within a step"),
        text("kind", "Kind", "Kind of operation, such as all-reduce or copy"),
        text("traffic", "Moves data", "Between devices, to or from the host's memory, or within the device"),
        text("group", "Group", "The devices that take part together", unknown=_ALONE),
        number(
            "size_bytes",
            "Size",
            "bytes",
            "The result on one device; PyTorch: the larger of a rank's input and output; of a GPU's copies, "
            "the mean of what they move",
            unknown="neither the program nor the file states the size",
        ),
        number(
            "bytes_per_s",
            "Algorithm",
            "bytes_per_s",
            "Algorithm bandwidth: size divided by the time of the transfer (nccl-tests: algbw)",
            formula="size ÷ transfer time",
            unknown=_NO_SIZE,
        ),
        number(
            "bus_bytes_per_s",
            "Bus",
            "bytes_per_s",
            "What the links carry: algorithm bandwidth times 2(n-1)/n, (n-1)/n or 1 (nccl-tests: busbw)",
            formula="algorithm bandwidth × factor of the kind",
            unknown=_NO_SIZE,
        ),
        number("total_ps", "Total", "ps", f"Hidden and exposed time that is charged to it, {_MEAN}"),
        number("hidden_ps", "Hidden", "ps", f"{HIDDEN_TEXT}, charged to this operation, {_MEAN}"),
        number("exposed_ps", "Exposed", "ps", f"{EXPOSED_TEXT}, charged to this operation, {_MEAN}"),
        number(
            "exposed_fraction",
            "Share of step",
            "fraction",
            "Exposed time as a share of the step",
            formula="exposed ÷ step time",
        ),
        number(
            "wait_ps",
            "Skew",
            "ps",
            "Waiting for the last participant per step, mean over the devices that take part; the fastest "
            "participant's time counts as transferring",
            unknown=_ALONE,
        ),
        text(
            "last",
            "Last to arrive",
            "The device that most often arrives last",
            unknown="no device waits for another in it",
        ),
        number(
            "last_fraction",
            "Arrives last",
            "fraction",
            "Share of the steps with waiting in which that device arrives last",
            unknown="no device waits for another in it",
        ),
        number("elapsed_ps", "Per run", "ps", "Mean time from its start to its end"),
        number(
            "n_per_step",
            "Runs per step",
            "count",
            "Mean number of runs per step, over the devices that run it",
        ),
        number(
            "n_hidden", "Runs hidden", "count", "Runs of the whole trace that compute covers for 90% or more"
        ),
        number(
            "n_partly",
            "Runs partly hidden",
            "count",
            "Runs that compute covers for more than 10% and less than 90%",
        ),
        number("n_exposed", "Runs exposed", "count", "Runs that compute covers for at most 10%"),
        text(
            "remark", "Remark", "Why a number is unknown or a bound", unknown="nothing is unknown or a bound"
        ),
    ),
    "A row for each operation that moves data, the most exposed first. Hidden and exposed times add up to "
    "the page's numbers",
)
DEVICES = TableSpec(
    "devices",
    "Devices",
    (
        text("device", "Device", "Name of the device: host and core or GPU, or the rank"),
        text("host", "Host", "The host that drives it"),
        number("device_row", "Row", "id", "Index of the device, for the parameter `device`"),
        number("step_ps", "Step time", "ps", "Mean duration of its steps"),
        number(
            "compute_ps",
            "All compute",
            "ps",
            "Mean time per step in which it computes, also while data moves: hidden time is a part of it",
        ),
        number("hidden_ps", "Hidden", "ps", f"{HIDDEN_TEXT}, mean per step"),
        number("exposed_ps", "Exposed", "ps", f"{EXPOSED_TEXT}, mean per step"),
        number("waiting_ps", "Waiting", "ps", "Part of the exposed time spent waiting for other devices"),
        number("exposed_fraction", "Share of step", "fraction", "Exposed time as a share of its steps"),
    ),
    "A row for each device, the most exposed first",
)
BOXES = TableSpec(
    "boxes",
    "One step on one device",
    (
        text(
            "lane",
            "Lane",
            "Compute, a lane of operations that move data, or Exposed for all of them together",
        ),
        text(
            "kind",
            "Kind",
            "Compute, hidden, partly, exposed, or total for the exposed time of all operations",
        ),
        text(
            "op", "Operation", "Name of the operation", unknown="compute and totals have no single operation"
        ),
        number("start_ps", "Start", "ps", "Since the step's start"),
        number("duration_ps", "Duration", "ps", "Duration of the box"),
    ),
    "What a device does in a step, with its operations cut where compute begins and ends",
)
PICTURE_PARAMS = (
    Param("device", "Device", "int", -1, "Row of the device; −1: the most exposed one", minimum=-1),
    Param("step", "Step", "int", -1, "Row of the step in `steps`; −1: the one in the middle", minimum=-1),
)
PICTURE_SCALARS = (
    ScalarSpec("device", "Device", "id", "Row of the device shown"),
    ScalarSpec("step", "Step", "id", "Row of the step shown"),
    ScalarSpec("begin_ps", "Start", "ps", "Start of the step on the host's timeline, by the device's clock"),
    ScalarSpec("step_ps", "Step time", "ps", "Duration of the step on the device"),
    ScalarSpec("n_left_out", "Not drawn", "count", "Short runs that the picture leaves out"),
)

SCALARS = (
    ScalarSpec("n_devices_compared", "Devices", "count", "Devices that ran something in the steps"),
    ScalarSpec("n_shown_steps", "Steps", "count", "Steps that all hosts have; 0: the whole capture is shown"),
    ScalarSpec(
        "exposed_ps",
        "Exposed communication",
        "ps",
        f"{EXPOSED_TEXT}, {_MEAN}",
        formula="time in which data moves − the part of it in which the device computes",
    ),
    replace(EXPOSED_SHARE, is_optional=False),
    ScalarSpec(
        "hidden_fraction",
        "Hidden behind compute",
        "fraction",
        "Share of the communication during which the device computes",
        formula="hidden ÷ (hidden + exposed)",
        unknown="nothing moves data in these steps",
    ),
    ScalarSpec("hidden_ps", "Hidden communication", "ps", f"{HIDDEN_TEXT}, {_MEAN}"),
    ScalarSpec(
        "step_ps",
        "Mean step time",
        "ps",
        "Duration of a step, mean over all steps and devices",
        is_optional=True,
        formula="Σ step time ÷ (devices × steps)",
    ),
    ScalarSpec(
        "capture_span_ps",
        "Captured time per device",
        "ps",
        "From the first operation to the last",
        is_optional=True,
    ),
    ScalarSpec(
        "best_step_ps",
        "Step if fully hidden",
        "ps",
        "Shortest step that hiding alone could reach: waiting for other devices remains, and only compute "
        "that hides nothing yet can hide more",
        formula="step time − min(exposed − waiting, compute − hidden)",
    ),
    ScalarSpec(
        "gain_fraction",
        "Largest possible saving",
        "fraction",
        "How much shorter steps would be with all communication hidden, at most",
        formula="1 − step if fully hidden ÷ step time",
    ),
    ScalarSpec(
        "wait_ps",
        "Waiting for the last participant",
        "ps",
        "Time in collectives beyond that of the fastest participant, mean per step and device, as in the pod "
        "viewer",
        unknown="the trace has no collective of a TPU or GPU whose participants were captured",
    ),
    ScalarSpec(
        "bus_bytes_per_s",
        "Bus bandwidth",
        "bytes_per_s",
        "Bus bandwidth of the collectives, weighted by the time of their transfers (nccl-tests: busbw)",
        formula="Σ bus bandwidth × transfer time ÷ Σ transfer time",
        unknown="the size or the group of the collectives is unknown",
    ),
    ScalarSpec(
        "exposed_devices_ps",
        "Exposed between devices",
        "ps",
        "Exposed time of collectives, sends and receives",
    ),
    ScalarSpec(
        "exposed_host_ps",
        "Exposed to and from the host",
        "ps",
        "Exposed time of copies to and from the host's memory",
    ),
    ScalarSpec(
        "exposed_local_ps", "Exposed within devices", "ps", "Exposed time of copies within a device's memory"
    ),
    ScalarSpec("n_runs", "Runs", "count", "Runs of operations that move data, in the whole trace"),
    ScalarSpec("n_exposed_runs", "Exposed runs", "count", "Runs that compute covers for at most 10%"),
)
TILES = tiles("exposed_ps", "hidden_fraction", "best_step_ps", Tile("wait_ps", least=1), "bus_bytes_per_s")
PAGE_TABLES = (STEPS, OPS, DEVICES)
