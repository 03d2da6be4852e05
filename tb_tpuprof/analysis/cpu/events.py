"""XLA:CPU's events in a trace: the launches of operations, the marks of their ends, and the execution that
each belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import HloLinks, hlo_links
from tb_tpuprof.analysis.events.links import matched
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, events_with, first_ints, mix, values_at
from tb_tpuprof.native import ascends, repeated
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
_NO_ID = np.iinfo(np.int64).min
END_MARK = "end: "
NEVER = np.iinfo(np.int64).max
WAITS_FOR_THE_END = "ThunkExecutor::Execute (wait for completion)"


@dataclass(frozen=True)
class CpuEvents:
    """Events that launch an operation of XLA:CPU, ascending by row. Times in ps.

    `text`: the string id by which the event names its operation; `op`: that operation's row in `hlo_links`,
    -1 if the trace names no program. `execution`: the execution of a program on a device that it belongs to
    (a number from 0, -1 if the trace has no `run_id`). `device`: its ordinal. `start_ps`, `stop_ps`: of the
    event, which covers only the work of the launching thread. `marked_ps`: when a thread noticed that the
    operation had ended (its mark `end: …`, tied by `_p` = `_c`), NEVER without a mark.
    """

    event: Rows
    text: Int64s
    op: Int64s
    execution: Int64s
    device: Int64s
    start_ps: Int64s
    stop_ps: Int64s
    marked_ps: Int64s
    n_executions: int

    def __len__(self) -> int:
        return len(self.event)


@once
def cpu_events(trace: Trace) -> CpuEvents:
    """The launches of XLA:CPU's operations; none if the trace has an accelerator.

    Instants and end marks also name an operation but are left out.
    """
    event, text = host_texts(trace, "hlo_op")
    if planes(trace).has_device:
        event, text = event[:0], text[:0]
    is_mark = named_like(trace, END_MARK)
    duration = trace.events["duration_ps"][event]
    is_launch = (duration > 0) & ~is_mark[trace.events["metadata"][event]]
    event, text = event[is_launch], text[is_launch]
    start = trace.events["start_ps"][event]
    execution, device = _executions(trace, event)
    return CpuEvents(
        event=event,
        text=text,
        op=_linked(hlo_links(trace), event),
        execution=execution,
        device=device,
        start_ps=start,
        stop_ps=start + duration[is_launch],
        marked_ps=_first_end_marks(trace, event, is_mark),
        n_executions=int(execution.max(initial=-1)) + 1,
    )


def named_like(trace: Trace, *prefixes: str) -> Mask:
    """For each row of `metadata`, whether its name begins with one of the prefixes."""
    return np.array([name.startswith(prefixes) for name in metadata_names(trace)], np.bool_)


def host_texts(trace: Trace, key: str) -> tuple[Rows, Int64s]:
    """Events on the host's own lines that have a text stat, and the text's string id; each event once."""
    sparse = trace.event_stats.texts(key)
    owner, value = sparse.owner, sparse.value
    if not len(owner):
        return np.empty(0, np.intp), np.empty(0, np.int64)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    on_host = np.isin(trace.lines["plane"], planes(trace).hosts) & ~planes(trace).is_derived_line
    is_on_host = repeated(on_host, np.diff(np.searchsorted(owner, trace.line_offsets.astype(owner.dtype))))
    if not is_on_host.all():
        owner, value = owner[is_on_host], value[is_on_host]
    return owner.astype(np.intp), value.astype(np.int64, copy=False)


def _linked(links: HloLinks, event: Rows) -> Int64s:
    """The operation of each event in `hlo_links`, -1 for none."""
    return values_at(event, links.events.astype(np.int32), links.op, -1)


def _executions(trace: Trace, event: Rows) -> tuple[Int64s, Int64s]:
    """Execution and device of each event. Events of one run of a program share a `run_id`, also across
    devices.
    """
    missing = np.iinfo(np.int64).min
    run = values_at(event, *first_ints(trace, "run_id"), missing)
    device = values_at(event, *first_ints(trace, "device_ordinal"), 0)
    program = values_at(event, *first_ints(trace, "program_id"), 0)
    has_run = run != missing
    execution = np.full(len(event), -1, np.int64)
    _, execution[has_run] = distinct_codes(mix(mix(run[has_run], device[has_run]), program[has_run]))
    return execution, device


def _first_end_marks(trace: Trace, event: Rows, is_mark: Mask) -> Int64s:
    """Start of the first end mark of each launch in ps, NEVER without a mark."""
    producer, key = events_with(trace, "_pt", "_p")
    consumer, consumed_key = events_with(trace, "_ct", "_c")
    is_end = is_mark[trace.events["metadata"][consumer]]
    consumer, consumed_key = consumer[is_end], consumed_key[is_end]
    result = np.full(len(event), NEVER, np.int64)
    produced_key = values_at(event, producer, key, _NO_ID)
    with_key = np.flatnonzero(produced_key != _NO_ID)
    if not len(with_key) or not len(consumed_key):
        return result
    launch, of_launch, mark, of_mark, n_pairs = matched(produced_key[with_key], consumed_key)
    first = np.full(n_pairs, NEVER, np.int64)
    np.minimum.at(first, of_mark, trace.events["start_ps"][consumer[mark]])
    result[with_key[launch]] = first[of_launch]
    # A mark before its operation belongs to another operation with the same, reused id.
    result[result < trace.events["start_ps"][event]] = NEVER
    return result
