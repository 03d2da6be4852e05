"""A device's exposed communication as stretches on the timeline, by the times that the timeline draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import Activity, activity
from tb_tpuprof.analysis.comm.exposure import pieces
from tb_tpuprof.analysis.comm.gpu import gpu_events, moves_data, spans_of_rows
from tb_tpuprof.analysis.comm.tpu import tpu_activity, tpu_ops
from tb_tpuprof.analysis.events.planes import line_events, planes
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans
from tb_tpuprof.analysis.steps.windows import clipped, windows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_FOREVER = 2**62


@dataclass(frozen=True)
class Marks:
    """Disjoint stretches in time order, in ps; `names`: the operation that each is charged to, `event`: its
    event in the file.
    """

    start_ps: Int64s
    end_ps: Int64s
    names: list[str]
    event: Int64s


def exposed_marks(trace: Trace, plane: int) -> Marks:
    """The exposed communication of a TensorCore or a GPU; nothing for a GPU that runs no collectives."""
    if plane in planes(trace).tensor_cores:
        device = tpu_activity(trace, plane, traced_spans)
        names = [op.name for op in tpu_ops(trace).ops]
        codes = device.op
    else:
        device, names = _gpu(trace, plane)
        codes = device.op
    start, end, run = exposed_stretches(device)
    return Marks(start, end, [names[code] for code in codes[run].tolist()], device.event[run])


def exposed_stretches(device: Activity) -> tuple[Int64s, Int64s, Int64s]:
    """Starts and ends of a device's exposed communication, and the run that each stretch is charged to."""
    charged_to = pieces(device)
    # The stretches between those of compute.
    opens = np.append(np.int64(-_FOREVER), device.compute_end_ps)
    closes = np.append(device.compute_start_ps, np.int64(_FOREVER))
    piece, _gap, start, end = clipped(
        charged_to.start_ps, charged_to.end_ps, windows_of(opens, closes - opens)
    )
    return start, end, charged_to.run[piece]


def _gpu(trace: Trace, plane: int) -> tuple[Activity, list[str]]:
    """A GPU's activity, its operations being the names of its events."""
    nothing = np.empty(0, np.int64)
    is_collective, _moves = moves_data(trace)
    if not (is_collective & (trace.metadata["plane"] == plane)).any():
        return activity((nothing,) * 4, (nothing,) * 2), []
    moving, computing = gpu_events(trace, plane)
    metadata, code = np.unique(trace.events["metadata"][moving].astype(np.int64), return_inverse=True)
    names = [trace.strings.get(int(i)) for i in trace.event_names[metadata].tolist()]
    spans = spans_of_rows(trace, moving)
    return activity((*spans, code.reshape(-1), moving), spans_of_rows(trace, computing)), names


def traced_spans(trace: Trace, line: int) -> DeviceSpans:
    """The events of a line by the times that the timeline draws, in place of the device's own clock."""
    rows = np.arange(*line_events(trace, line).indices(trace.n_events)[:2])
    start, duration = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    order = np.lexsort((-duration, start))
    return DeviceSpans(rows[order], start[order], duration[order], duration[order])
