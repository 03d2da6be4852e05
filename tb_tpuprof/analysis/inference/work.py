"""Work on devices and transfers: when it ran, and for which execution.

GPU    kernels and copies on the streams
TPU    runs of programs (XLA Modules); copies as the host's threads show them
CPU    XLA's operations, else TensorFlow's; copies as the host's threads show them
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.names import TENSORFLOW, parse_op
from tb_tpuprof.analysis.events.planes import MODULE_LINES, OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.inference.executions import LONGEST_PS, executions, owners
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Part8s = npt.NDArray[np.uint8]
_TO_DEVICE = re.compile(
    r"H2D Dispatch|DevicePut\w*|batched_device_put|(?:\w+::)*(?:BufferFromHost|CopyToDevice)\w*|XlaLinearize|"
    r"TpuClient::Linearize\w*|(?:tpu::System::)?Transfer(?:Preprocessed)?(?:H2D|ToDevice|ToInfeed).*"
)
_TO_HOST = re.compile(
    r"D2H Dispatch|ArrayImpl\.copy_to_host_async|(?:\w+::)*(?:CopyToHost|ToLiteral)\w*|XlaDelinearize|"
    r"Delinearize\w*|(?:tpu::System::)?Transfer(?:D2H|FromDevice).*"
)
_NO_OPS = ("_Arg", "_Retval", "NoOp", "Const", "ReadVariableOp", "IteratorGetNext", "OptionalGetValue")


class Part(IntEnum):
    """What a request's time is spent on, in ascending priority: where several happen at once, the highest
    gets the time.

    WAIT: nothing traced happens for the request. QUEUE: it waits in a batch's queue, or the devices work for
    others. HOST_BEFORE, HOST_RUNTIME, HOST_AFTER: its threads work before its first launch, between this and
    the end of its last work on a device, and after that.
    """

    WAIT = 0
    QUEUE = 1
    HOST_BEFORE = 2
    HOST_RUNTIME = 3
    HOST_AFTER = 4
    TO_HOST = 5
    TO_DEVICE = 6
    DEVICE = 7


N_PARTS = len(Part)


@dataclass(frozen=True)
class Work:
    """One row per stretch of work; times in ps. `part`: DEVICE, TO_DEVICE or TO_HOST. `owner`: its execution,
    -1 if unknown; `is_certain`: the owner is known by thread, group or launch, not only by time. `event`: its
    row of `events`.
    """

    start: Int64s
    end: Int64s
    part: Part8s
    owner: Int64s
    is_certain: npt.NDArray[np.bool_]
    event: Int64s

    def __len__(self) -> int:
        return len(self.start)


@once
def work(trace: Trace) -> Work:
    """All work of one host's devices, and its transfers."""
    roles = planes(trace)
    if roles.gpus:
        rows = np.concatenate([stream_events(trace, plane) for plane in roles.gpus])
        start = trace.events["start_ps"][rows].astype(np.int64)
        columns = [(rows, start, start + trace.events["duration_ps"][rows], _gpu_parts(trace, rows))]
    elif roles.hardware == "TPU":
        columns = [_spans(trace, _programs(trace), Part.DEVICE), *_host_copies(trace)]
    else:
        columns = [*_cpu(trace), *_host_copies(trace)]
    event, start, end, part = (np.concatenate(column) for column in zip(*columns, strict=True))
    has_length = end > start
    event, start, end, part = event[has_length], start[has_length], end[has_length], part[has_length]
    owner = owners(trace).of(event)
    is_certain = owner >= 0
    return Work(start, end, part, owners(trace).at(owner, start), is_certain, event.astype(np.int64))


Columns = tuple[Rows, Int64s, Int64s, Part8s]


def _spans(trace: Trace, rows: Rows, part: Part) -> Columns:
    start = trace.events["start_ps"][rows].astype(np.int64)
    return rows, start, start + trace.events["duration_ps"][rows], np.full(len(rows), part, np.uint8)


def _gpu_parts(trace: Trace, rows: Rows) -> Part8s:
    part = np.full(len(rows), Part.DEVICE, np.uint8)
    klass = gpu_classes(trace, rows)
    part[klass == TimeClass.HOST_TO_DEVICE] = Part.TO_DEVICE
    part[klass == TimeClass.DEVICE_TO_HOST] = Part.TO_HOST
    return part


def _programs(trace: Trace) -> Rows:
    """Runs of programs on TensorCores; operations of a core without them."""
    parts = [np.empty(0, np.intp)]
    for plane in planes(trace).tensor_cores:
        for names in (MODULE_LINES, (OP_LINE,)):
            lines = [line for line in lines_named(trace, plane, names) if trace.lines["n_events"][line]]
            if lines:
                parts += [np.arange(*line_events(trace, line).indices(trace.n_events)[:2]) for line in lines]
                break
    return np.concatenate(parts)


def _cpu(trace: Trace) -> list[Columns]:
    """XLA's operations and TensorFlow's on the processors."""
    runs = cpu_runs(trace)
    parts = np.full(len(runs), Part.DEVICE, np.uint8)
    names = metadata_names(trace)
    is_op = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    is_op[rows] = [_is_operation(names[row]) for row in rows.tolist()]
    return [
        (runs.event, runs.start_ps, runs.end_ps, parts),
        _spans(trace, events_of(trace, is_op), Part.DEVICE),
    ]


def _is_operation(name: str) -> bool:
    if ":" not in name or name.startswith("end: "):
        return False
    op = parse_op(name)
    return op.category == TENSORFLOW and op.type not in _NO_OPS


def _host_copies(trace: Trace) -> list[Columns]:
    """Copies between host and device as the host's threads show them."""
    names = metadata_names(trace)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist()
    found = []
    for pattern, part in ((_TO_DEVICE, Part.TO_DEVICE), (_TO_HOST, Part.TO_HOST)):
        chosen = np.zeros(len(names), np.bool_)
        chosen[rows] = [pattern.fullmatch(names[row]) is not None for row in rows]
        found.append(_spans(trace, events_of(trace, chosen), part))
    return found


@dataclass(frozen=True)
class Extents:
    """For each execution, in ps: when its first work was launched, when its last work on a device ended, and
    when it ended itself. The first two equal its end if it has none.
    """

    launched: Int64s
    worked_until: Int64s
    end: Int64s


_LAUNCH = re.compile(
    r"(?:cuda|hip|cu)(?:Launch|GraphLaunch)\w*(?: in .*)?|P[jJ][rR][tT]_LoadedExecutable_Execute(?: linkage)?"
    r"|(?:\w+::)*\w*LoadedExecutable::Execute(?:HelperOnSingleDevice|Sharded)?|TpuExecuteOp|DoEnqueueProgram|"
    r"PjitFunction\(.*\)|EagerLocalExecute: __inference_.*|ExecutorState::Process|SessionRun|RunGraph"
)


@once
def extents(trace: Trace) -> Extents:
    """The extents of all executions.

    A request that only starts work on a device (an asynchronous call) lasts until its work has ended, unless
    a server batches it: that answers by itself.
    """
    marks, done = executions(trace), work(trace)
    first, last = np.full(len(marks), np.iinfo(np.int64).max), marks.start.copy()
    owned = np.flatnonzero((done.owner >= 0) & (done.part != Part.TO_DEVICE))
    np.minimum.at(first, done.owner[owned], done.start[owned])
    certain = owned[done.is_certain[owned]]
    np.maximum.at(last, done.owner[certain], done.end[certain])
    end = np.clip(last, marks.end, marks.start + LONGEST_PS)
    if (marks.batch_of >= 0).any():
        end = marks.end.copy()
    inside = owned[done.start[owned] < end[done.owner[owned]]]
    np.maximum.at(last, done.owner[inside], np.minimum(done.end[inside], end[done.owner[inside]]))
    names = metadata_names(trace)
    is_launch = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    is_launch[rows] = [_LAUNCH.fullmatch(names[row]) is not None for row in rows.tolist()]
    launches = events_of(trace, is_launch)
    launches = launches[~np.isin(launches, marks.row)]
    owner = owners(trace).of(launches)
    np.minimum.at(first, owner[owner >= 0], trace.events["start_ps"][launches[owner >= 0]])
    has_work = last > marks.start
    launched = np.where(has_work, np.clip(first, marks.start, end), end)
    worked_until = np.where(has_work, np.clip(last, launched, end), end)
    return Extents(launched, worked_until, end)
