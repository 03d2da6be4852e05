"""The parts that a core's step is divided into, and which of them each class of time, each category of
operations belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass

Int64s = npt.NDArray[np.int64]
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
)


class Part(IntEnum):
    """Parts of a step on one core; they sum up to the step.

    A collective's time is transfer as far as the fastest of its participants took for it, and waiting beyond
    that: who arrives last does not wait. `RECV` waits for the sender, `COPY_WAIT` for an asynchronous copy of
    the core's own.
    """

    HIGH_FLOPS = 0
    LOW_FLOPS = 1
    COMPUTE = 2
    INPUT = 3
    OUTPUT = 4
    COLLECTIVE = 5
    COLLECTIVE_WAIT = 6
    SEND = 7
    RECV = 8
    DEVICE_COPY = 9
    COPY_WAIT = 10
    HOST_COMPUTE = 11
    LAUNCH = 12
    COMPILE = 13
    PYTHON = 14
    WAIT = 15
    IDLE = 16


N_PARTS = len(Part)


@dataclass(frozen=True)
class PartText:
    """How a part is called, and the kind of time whose colour it has."""

    name: str
    title: str
    color: str
    meaning: str


PART_TEXTS: dict[Part, PartText] = {
    Part.HIGH_FLOPS: PartText(
        "high_flops", "High-FLOPS compute", "compute", "Convolutions, matrix products and fusions around them"
    ),
    Part.LOW_FLOPS: PartText(
        "low_flops", "Low-FLOPS compute", "compute_low", "All other operations on the core"
    ),
    Part.COMPUTE: PartText("compute", "Device compute", "compute", "Kernels"),
    Part.INPUT: PartText(
        "input", "Infeed and input", "input", "Infeed, copies to the device, waiting for input"
    ),
    Part.OUTPUT: PartText("output", "Outfeed and output", "output", "Outfeed and copies from the device"),
    Part.COLLECTIVE: PartText(
        "collective",
        "Collectives: transfer",
        "collective",
        "What the fastest participant took for the collective",
    ),
    Part.COLLECTIVE_WAIT: PartText(
        "collective_wait",
        "Collectives: waiting",
        "collective_wait",
        "Beyond that: waiting until all participants had arrived",
    ),
    Part.SEND: PartText("send", "Send", "d2d", "Sending to other cores"),
    Part.RECV: PartText(
        "recv", "Receive", "recv", "Receiving from other cores, and waiting for them to send"
    ),
    Part.DEVICE_COPY: PartText("device_copy", "Device to device", "d2d", "Copies from device to device"),
    Part.COPY_WAIT: PartText(
        "copy_wait",
        "Waiting for copies",
        "recv",
        "Waiting for asynchronous copies, such as from and to the host's memory, to end",
    ),
    Part.HOST_COMPUTE: PartText(
        "host_compute", "Host compute", "host", "Work on the host while no device works"
    ),
    Part.LAUNCH: PartText("launch", "Kernel launch", "launch", "Preparing kernels"),
    Part.COMPILE: PartText("compile", "Compilation", "compile", "Compiling"),
    Part.PYTHON: PartText(
        "python", "Python", "python", "Python and the program's own annotations, while no operation ran"
    ),
    Part.WAIT: PartText(
        "wait", "Waiting", "wait", "The step's thread sleeps, locks or polls, and nothing says for what"
    ),
    Part.IDLE: PartText(
        "idle",
        "Idle or other",
        "idle",
        "Nothing of the above was traced: waiting for the host, or nothing to do",
    ),
}

_OF_CLASS = {
    TimeClass.UNKNOWN: Part.IDLE,
    TimeClass.HOST_COMPUTE: Part.HOST_COMPUTE,
    TimeClass.HOST_COMPILE: Part.COMPILE,
    TimeClass.HOST_TO_HOST: Part.IDLE,
    TimeClass.HOST_TO_DEVICE: Part.INPUT,
    TimeClass.HOST_PREPARE: Part.LAUNCH,
    TimeClass.DEVICE_COLLECTIVES: Part.COLLECTIVE,
    TimeClass.HOST_WAIT_INPUT: Part.INPUT,
    TimeClass.HOST_WAIT_LOADER: Part.INPUT,
    TimeClass.HOST_PYTHON: Part.PYTHON,
    TimeClass.HOST_WAIT: Part.WAIT,
    TimeClass.DEVICE_TO_DEVICE: Part.DEVICE_COPY,
    TimeClass.DEVICE_TO_HOST: Part.OUTPUT,
    TimeClass.DEVICE_COMPUTE_32: Part.COMPUTE,
    TimeClass.DEVICE_COMPUTE_16: Part.COMPUTE,
}
_OF_CATEGORY = {
    "infeed": Part.INPUT,
    "host recv": Part.INPUT,
    "host recv-done": Part.INPUT,
    "outfeed": Part.OUTPUT,
    "host send": Part.OUTPUT,
    "host send-done": Part.OUTPUT,
    "send": Part.SEND,
    "send-done": Part.SEND,
    "recv": Part.RECV,
    "recv-done": Part.RECV,
    "output fusion": Part.HIGH_FLOPS,
    "dot": Part.HIGH_FLOPS,
}


def part_of_op(category: str, name: str = "") -> Part:
    """Part of an operation of a TPU by its HLO category; of an asynchronous one by what its name says it
    wraps.
    """
    if category.startswith(COLLECTIVES) or (category.startswith("async-") and name.startswith(COLLECTIVES)):
        return Part.COLLECTIVE
    if category.startswith("convolution"):
        return Part.HIGH_FLOPS
    known = _OF_CATEGORY.get(category)
    if known is None:
        return Part.COPY_WAIT if is_waiting(category, name) else Part.LOW_FLOPS
    return known


def part_of_class(klass: TimeClass) -> Part:
    """The part that a class of time belongs to."""
    return _OF_CLASS[klass]


def parts_of_classes(class_ps: Int64s) -> Int64s:
    """Times by class [n_steps, n_classes] as times by part [n_steps, n_parts]."""
    result = np.zeros((len(class_ps), N_PARTS), np.int64)
    for klass in range(N_CLASSES):
        result[:, _OF_CLASS[TimeClass(klass)]] += class_ps[:, klass]
    return result
