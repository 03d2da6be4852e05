"""The parts of a core's step, and the part of each class of time and of each operation category."""

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
    """Parts of a step on one core; they sum to the step.

    A collective's transfer time is the time that its fastest participant took; time beyond that is waiting,
    since the participant that arrives last does not wait. `RECV` waits for the sender, `COPY_WAIT` for one of
    the core's own asynchronous copies.
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
    """A part's name, title and meaning, and the kind of time whose color it has."""

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
        "Time of the collective's fastest participant",
    ),
    Part.COLLECTIVE_WAIT: PartText(
        "collective_wait",
        "Collectives: waiting",
        "collective_wait",
        "Time beyond that: waiting for all participants to arrive",
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
        "Waiting for asynchronous copies to end, for example to or from host memory",
    ),
    Part.HOST_COMPUTE: PartText(
        "host_compute", "Host compute", "host", "Work on the host while no device is busy"
    ),
    Part.LAUNCH: PartText("launch", "Kernel launch", "launch", "Preparing kernels"),
    Part.COMPILE: PartText("compile", "Compilation", "compile", "Compiling"),
    Part.PYTHON: PartText(
        "python", "Python", "python", "Python and the program's own annotations, while no operation ran"
    ),
    Part.WAIT: PartText(
        "wait",
        "Waiting",
        "wait",
        "The step's thread sleeps, locks or polls; the trace does not show what for",
    ),
    Part.IDLE: PartText(
        "idle",
        "Idle or other",
        "idle",
        "None of the above was traced: waiting for the host, or no work",
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
    """The part of a TPU operation, by its HLO category; for an asynchronous operation, by the operation in
    its name.
    """
    if category.startswith(COLLECTIVES) or (category.startswith("async-") and name.startswith(COLLECTIVES)):
        return Part.COLLECTIVE
    if category.startswith("convolution"):
        return Part.HIGH_FLOPS
    part = _OF_CATEGORY.get(category)
    if part is None:
        return Part.COPY_WAIT if is_waiting(category, name) else Part.LOW_FLOPS
    return part


def part_of_class(klass: TimeClass) -> Part:
    """The part of a class of time."""
    return _OF_CLASS[klass]


def parts_of_classes(class_ps: Int64s) -> Int64s:
    """Times by class [n_steps, n_classes] as times by part [n_steps, n_parts]."""
    result = np.zeros((len(class_ps), N_PARTS), np.int64)
    for klass in range(N_CLASSES):
        result[:, _OF_CLASS[TimeClass(klass)]] += class_ps[:, klass]
    return result
