"""Nodes of a tree of calls → whose code each is: yours, a library's, the runtime's, an operation, or waiting.

The diagnosis decides what is the user's code (`diagnosis/names.py`), so that a function has the same owner on
every page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.names import CAUSES, Origin, names
from tb_tpuprof.analysis.diagnosis.parts import are_nameless, origins
from tb_tpuprof.analysis.diagnosis.torch_files import package_of
from tb_tpuprof.analysis.events.line_contexts import nearest
from tb_tpuprof.analysis.events.names import PYTORCH_NAMESPACES, UNKNOWN, is_explicit_step, parse_op
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import Kind, frame_of, is_capture
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.events.text_cache import text_cache
from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.flame.stacks import Stacks
from tb_tpuprof.analysis.steps.waits import name_kinds
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
_SYNCHRONIZATION = CAUSES.index(Cause.SYNCHRONIZATION)
# Annotations that PyTorch makes itself, modules, and functions without a file or a name.
_PYTORCH = re.compile(
    r"<built-in |Optimizer\.\w|enumerate\(Data|DistributedDataParallel|FullyShardedDataParallel|"
    r"\w+ \(record_param|nn\.Module: |<\w[^>]*>\(\d+\): "
)
_OWNERS = {
    Origin.RUNTIME: "runtime",
    Origin.ANNOTATION: "yours",
    Origin.USER: "yours",
    Origin.BUILTIN: "library",
    Origin.LIBRARY: "library",
    Origin.FRAMEWORK: "library",
    Origin.COMMON: "yours",
}


class Family(IntEnum):
    """Whose code a node is."""

    YOURS = 0
    LIBRARY = 1
    RUNTIME = 2
    OPERATION = 3
    WAITING = 4

    @property
    def word(self) -> str:
        """As tables name it."""
        return self.name.lower()


# What belongs to the user's function that calls it. Programs and operations are work of their own.
OWN_FAMILIES = (Family.YOURS, Family.LIBRARY, Family.WAITING)


@dataclass(frozen=True)
class Frames:
    """By node: its family, and the innermost function or annotation of the user's own code around it, itself
    included (-1 for none). Annotations that mark steps are none. `is_device`: whether a device ran it.
    """

    family: npt.NDArray[np.uint8]
    user: Int32s
    is_device: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Label:
    """How a name is shown: `function` and where it is defined; `package`: the installed package, if the
    file's folder names it.
    """

    function: str
    file: str = ""
    line: int = 0
    package: str = ""

    @property
    def title(self) -> str:
        """`augment` (data.py:71)."""
        return f"`{self.function}` ({self.file}:{self.line})" if self.file else f"`{self.function}`"


@text_cache
def label_of(name: str) -> Label:
    """The label of an event's name."""
    frame = frame_of(name)
    if frame is None:
        return Label(name.removeprefix("nn.Module: "))
    module = f"{frame.module}." if frame.module and frame.module != "builtins" else ""
    return Label(module + frame.function, frame.file, frame.line, package_of(name))


def frames(trace: Trace, tree: Stacks) -> Frames:
    """Families of all nodes. Below a call that waits everything waits, up to a function of the user."""
    table, metadata, above = names(trace), tree.metadata, tree.above
    origin = _origins(trace, tree)
    roles = planes(trace)
    devices = (*roles.gpus, *roles.tensor_cores, *roles.sparse_cores)
    is_device = np.isin(trace.metadata["plane"][metadata], devices)
    family = np.array([Family[_OWNERS[Origin(i)].upper()] for i in range(len(Origin))], np.uint8)[origin]
    is_runtime = (family == Family.RUNTIME) | is_device
    family[is_runtime & (is_device | table.is_op[metadata] | _are_operations(trace, metadata))] = (
        Family.OPERATION
    )
    is_users = origin == Origin.USER
    waits = _wait(trace, metadata)
    waits |= (name_kinds(trace)[metadata] == Kind.WAIT) | (table.claim[metadata] == _SYNCHRONIZATION)
    waits &= ~is_users
    waiting = nearest(above, waits | is_users)
    family[(waiting >= 0) & waits[waiting]] = Family.WAITING
    captures = _by_name(trace, metadata, is_capture)  # not the user's, whoever calls the profiler
    family[nearest(above, captures) >= 0] = Family.RUNTIME
    mark_steps = _mark_steps(trace, metadata)
    named = (is_users & ~are_nameless(trace, metadata)) | ((origin == Origin.ANNOTATION) & ~mark_steps)
    user = nearest(above, named)
    user = np.where(user >= 0, user, nearest(above, is_users))
    # A step's own time, outside of frames, may be a call that was not recorded (`steps/waits.py`).
    return Frames(family, np.where(mark_steps, -1, user).astype(np.int32), is_device)


def _origins(trace: Trace, tree: Stacks) -> npt.NDArray[np.uint8]:
    """The origin of each node. What is inside a call of the runtime is no annotation of the user's, and
    neither are PyTorch's own.
    """
    origin = origins(names(trace).origin[tree.metadata], tree.above)
    is_annotation = origin == Origin.ANNOTATION
    is_pytorchs = _by_name(trace, tree.metadata, lambda text: _PYTORCH.match(text) is not None)
    origin[(is_annotation | (origin == Origin.RUNTIME)) & is_pytorchs] = Origin.LIBRARY
    around = nearest(tree.above, ~is_annotation)
    origin[(origin == Origin.ANNOTATION) & (around >= 0) & (origin[around] == Origin.RUNTIME)] = (
        Origin.RUNTIME
    )
    return origin


def _mark_steps(trace: Trace, metadata: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether names are those of events that mark steps."""
    marks = np.zeros(len(trace.metadata), np.bool_)
    owner = trace.event_stats.ints("step_num").owner
    marks[trace.events["metadata"][owner]] = True
    return marks[metadata] | _by_name(
        trace, metadata, lambda text: text == "ProfilerStep" or is_explicit_step(text)
    )


def _by_name(
    trace: Trace, metadata: npt.NDArray[np.int64], has: Callable[[str], bool]
) -> npt.NDArray[np.bool_]:
    """Whether the name of each metadata row has a property; each is asked once."""
    used = marked(metadata, len(trace.metadata))
    result = np.zeros(len(trace.metadata), np.bool_)
    result[used] = [has(trace.strings.get(i)) for i in trace.event_names[used].tolist()]
    return result[metadata]


def _are_operations(trace: Trace, metadata: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return _by_name(
        trace,
        metadata,
        lambda text: (
            ":" in text and (text.startswith(PYTORCH_NAMESPACES) or parse_op(text).category != UNKNOWN)
        ),
    )


def _wait(trace: Trace, metadata: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether names are those of events that wait: for an asynchronous operation, for tf.data, or for a place
    in a device's queue.
    """
    return _by_name(
        trace,
        metadata,
        lambda text: (
            is_waiting("", text) or text[:15].lower() == "iteratorgetnext" or text == "Acquire semaphore"
        ),
    )


def user_times(tree: Stacks, found: Frames, n_groups: int) -> npt.NDArray[np.int64]:
    """Time of the user's own code with the library calls and waits in it, by group, in the first set of
    windows.
    """
    is_users = (found.user >= 0) & np.isin(found.family, OWN_FAMILIES)
    sums: npt.NDArray[np.int64] = np.zeros(n_groups, np.int64)
    np.add.at(sums, tree.group[is_users], tree.own_ps[0, is_users])
    return sums
