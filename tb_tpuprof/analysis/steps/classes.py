"""The classes of a step's time, and how the names and stats of events decide between them."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.kernel_names import is_half_precision
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.names import is_explicit_step, is_fetch, parse_op
from tb_tpuprof.analysis.events.python_frames import frame_of, is_compilation
from tb_tpuprof.trace.collectives import is_collective_kernel
from tb_tpuprof.trace.trace import Trace


class TimeClass(IntEnum):
    """Classes of time, in ascending priority: where several overlap, the highest gets the time.

    Source: the event types of OpenXLA's profiler (`step_events`), without those that no tracer writes.
    HOST_PYTHON, HOST_WAIT and HOST_WAIT_LOADER are this project's own: they come from the Python tracer's
    frames and the user's annotations on a step's own thread while nothing else ran (see `waits.py`).
    IteratorGetNext (HOST_WAIT_INPUT) is a traced wait and has priority over computing.
    """

    UNKNOWN = 0
    HOST_PYTHON = 1
    HOST_WAIT = 2
    HOST_WAIT_LOADER = 3
    HOST_COMPUTE = 4
    HOST_COMPILE = 5
    HOST_TO_HOST = 6
    HOST_TO_DEVICE = 7
    HOST_PREPARE = 8
    DEVICE_COLLECTIVES = 9
    HOST_WAIT_INPUT = 10
    DEVICE_TO_DEVICE = 11
    DEVICE_TO_HOST = 12
    DEVICE_COMPUTE_32 = 13
    DEVICE_COMPUTE_16 = 14


N_CLASSES = len(TimeClass)
NOT_COUNTED, STEP_MARKER = 100, 101

# The displayed parts of a step, and the classes in each.
CATEGORIES: dict[str, tuple[TimeClass, ...]] = {
    "compilation": (TimeClass.HOST_COMPILE,),
    "input": (TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_TO_DEVICE),
    "output": (TimeClass.DEVICE_TO_HOST,),
    "kernel_launch": (TimeClass.HOST_PREPARE,),
    "host_compute": (TimeClass.HOST_COMPUTE,),
    "host_python": (TimeClass.HOST_PYTHON,),
    "host_wait": (TimeClass.HOST_WAIT,),
    "device_collectives": (TimeClass.DEVICE_COLLECTIVES,),
    "device_to_device": (TimeClass.DEVICE_TO_DEVICE,),
    "device_compute": (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16),
    "other": (TimeClass.UNKNOWN, TimeClass.HOST_TO_HOST),
}

# Classes of events on a GPU's streams; the other input and output of a step is on the host.
ON_GPU = (
    TimeClass.HOST_TO_DEVICE,
    TimeClass.DEVICE_COLLECTIVES,
    TimeClass.DEVICE_TO_DEVICE,
    TimeClass.DEVICE_TO_HOST,
    TimeClass.DEVICE_COMPUTE_32,
    TimeClass.DEVICE_COMPUTE_16,
)
_WRAPPERS = ("EagerExecute", "EagerLocalExecute", "EagerKernelExecute", "FunctionRun")
_COPY_CLASSES = {
    "MemcpyHToD": TimeClass.HOST_TO_DEVICE,
    "MemcpyDToH": TimeClass.DEVICE_TO_HOST,
    "MemcpyDToD": TimeClass.DEVICE_TO_DEVICE,
    "MemcpyHToH": TimeClass.HOST_TO_HOST,
}


def host_class(name: str) -> int:
    """Class of a host event by its name, on a host without accelerators, where all work is the host's.

    Step markers get STEP_MARKER. Wrappers that only call others (`EagerExecute…`, `FunctionRun`) are not
    counted; neither are frames of the Python tracer, since a call's name does not show what it did.
    """
    if is_explicit_step(name):
        return STEP_MARKER
    if name.startswith(_WRAPPERS):
        return NOT_COUNTED
    if name[:15].lower() == "iteratorgetnext" or is_fetch(name):
        return TimeClass.HOST_WAIT_INPUT
    if frame_of(name) is not None:
        return NOT_COUNTED
    if is_compilation(name):
        return TimeClass.HOST_COMPILE
    if ":" not in name and name[:6].lower() != "memcpy":
        return TimeClass.HOST_COMPUTE
    type_ = parse_op(name).type
    if type_.startswith("InfeedEnqueue") or type_ == "MemcpyHToD":
        return TimeClass.HOST_TO_DEVICE
    return TimeClass.HOST_TO_HOST if type_ == "MemcpyHToH" else TimeClass.HOST_COMPUTE


def host_classes(trace: Trace, planes: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Class of the events of each metadata row; rows of planes other than `planes` are NOT_COUNTED."""
    result = np.full(len(trace.metadata), NOT_COUNTED, np.uint8)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes))
    names = metadata_names(trace)
    result[rows] = [host_class(names[row]) for row in rows.tolist()]
    return result


def gpu_class(name: str, shape: str = "") -> TimeClass:
    """Class of an event on a GPU's stream by its name, and by the `shape` stat of older traces.

    Kernels count as 16-bit if the shape, or without one the name, indicates 16 bits or fewer; otherwise as
    32-bit. (XProf does not know bfloat16: it counts a model that computes in it as 32-bit.)
    """
    if name[:6].lower() == "memcpy":
        kind = parse_op(name).type
        if kind in ("MemcpyHToD", "MemcpyDToH", "MemcpyDToD"):
            return _COPY_CLASSES[kind]
    if is_collective_kernel(name):
        return TimeClass.DEVICE_COLLECTIVES
    return TimeClass.DEVICE_COMPUTE_16 if is_half_precision(shape or name) else TimeClass.DEVICE_COMPUTE_32
