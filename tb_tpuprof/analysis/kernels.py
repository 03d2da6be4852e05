"""Kernels of GPUs, summed by kernel, operation and launch: how often, how long, on which units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.kernel_launch import Launch, read_launch
from tb_tpuprof.analysis.kernel_names import library_of, uses_tensor_cores
from tb_tpuprof.analysis.kernel_ops import kernel_ops
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.occupancy import capabilities, with_occupancy
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Kernels:
    """One row per distinct kernel, operation and launch, the largest total time first; times in ps.

    `host[i]`, `longest_start_ps[i]`: where the row's longest launch is (it lasts `max_ps[i]`).
    """

    name: tuple[str, ...]
    op: tuple[str, ...]
    library: tuple[str, ...]
    launch: tuple[Launch, ...]
    is_eligible: Bools
    uses_tensor_cores: Bools
    n_occurrences: Int64s
    total_ps: Int64s
    min_ps: Int64s
    max_ps: Int64s
    host: tuple[str, ...]
    longest_start_ps: Int64s

    def __len__(self) -> int:
        return len(self.name)

    def rows(self, order: Sequence[int]) -> Kernels:
        """The given rows in the given order."""
        at = np.array(order, np.intp)
        return _made(
            {
                key: values[at] if isinstance(values, np.ndarray) else tuple(values[i] for i in order)
                for key, values in self.__dict__.items()
            }
        )


def _made(columns: dict[str, Any]) -> Kernels:
    return Kernels(**columns)


@once
def kernels(trace: Trace) -> Kernels:
    """Kernels of all GPUs of a trace: events on streams that carry `kernel_details` and last longer than nothing."""
    details = trace.event_stats.texts("kernel_details")
    owner, first = np.unique(details.owner, return_index=True)
    text = details.value[first].astype(np.int64)
    counts = ~planes(trace).is_derived_line & np.isin(trace.lines["plane"], np.array(planes(trace).gpus, np.int32))
    keep = counts[trace.event_line[owner]] & (trace.events["duration_ps"][owner] > 0)
    rows, text = owner[keep].astype(np.intp), text[keep]
    ops = kernel_ops(trace, rows)
    name = trace.event_names[trace.events["metadata"][rows]].astype(np.int64)
    columns = [_coded(values) for values in (name, text, ops.code, ops.is_compiled.astype(np.int64))]
    key = np.zeros(len(rows), np.int64)
    for distinct, code in columns:
        key = key * max(1, len(distinct)) + code
    _, at, group = np.unique(key, return_index=True, return_inverse=True)
    duration, start = trace.events["duration_ps"][rows], trace.events["start_ps"][rows]
    sums = _sums(group.reshape(-1), len(at), np.ones(len(rows), np.int64), duration, duration, duration)
    # Equal texts and launches are one object each, so that a result of many rows is small where it is kept.
    written = {i: trace.strings.get(i) for i in np.unique(name[at]).tolist()}
    names = [written[i] for i in name[at].tolist()]
    capability = capabilities(trace)
    on = [capability[plane] for plane in trace.lines["plane"][trace.event_line[rows[at]]].tolist()]
    wanted = list(zip(text[at].tolist(), on, strict=True))
    launches = {(i, where): with_occupancy(read_launch(trace.strings[i]), where) for i, where in set(wanted)}
    chosen = ops.code[at].tolist()
    compiled = ops.is_compiled[at].tolist()
    found = Kernels(
        name=tuple(names),
        op=tuple(ops.names[i] for i in chosen),
        library=tuple(library_of(n, is_compiled) for n, is_compiled in zip(names, compiled, strict=True)),
        launch=tuple(launches[key] for key in wanted),
        is_eligible=np.array([ops.is_eligible[i] for i in chosen], np.bool_),
        uses_tensor_cores=np.array([uses_tensor_cores(n) for n in names], np.bool_),
        n_occurrences=sums[0],
        total_ps=sums[1],
        min_ps=sums[2],
        max_ps=sums[3],
        host=(trace.info.host,) * len(at),
        longest_start_ps=start[sums[4]],
    )
    return merge_kernels([found])


def merge_kernels(parts: Sequence[Kernels]) -> Kernels:
    """Kernels of several hosts as rows of one table: equal rows become one. Counts and times add up, the extremes stay."""
    keys: dict[tuple[object, ...], int] = {}
    whole = _concatenated(parts)
    columns = (whole.name, whole.op, whole.launch, whole.library, whole.is_eligible.tolist())
    group = [
        keys.setdefault((name, op, launch.key, library, eligible), len(keys))
        for name, op, launch, library, eligible in zip(*columns, strict=True)
    ]
    index = np.array(group, np.int64)
    n, total, least, most, longest = _sums(index, len(keys), whole.n_occurrences, whole.total_ps, whole.min_ps, whole.max_ps)
    names = [whole.name[i] for i in longest.tolist()]
    order = sorted(range(len(keys)), key=lambda i: (-int(total[i]), names[i], whole.op[longest[i]], whole.launch[longest[i]].key))
    at = np.array(order, np.intp)
    merged = whole.rows([int(longest[i]) for i in order])
    return _made({**merged.__dict__, "n_occurrences": n[at], "total_ps": total[at], "min_ps": least[at], "max_ps": most[at]})


def _concatenated(parts: Sequence[Kernels]) -> Kernels:
    joined = {}
    for key in (field.name for field in fields(Kernels)):
        values = [getattr(part, key) for part in parts]
        is_array = bool(values) and isinstance(values[0], np.ndarray)
        joined[key] = np.concatenate(values) if is_array else tuple(item for value in values for item in value)
    return _made(joined)


def _coded(values: Int64s) -> tuple[Int64s, Int64s]:
    """Distinct values, and for each value which it is."""
    distinct, code = np.unique(values, return_inverse=True)
    return distinct, code.reshape(-1).astype(np.int64)


def _sums(group: Int64s, n_groups: int, count: Int64s, total: Int64s, least: Int64s, most: Int64s) -> tuple[Int64s, ...]:
    """Per group: the counts' and times' sums, the least, the most, and the row that has the most."""
    order = np.lexsort((most, group))
    first = np.searchsorted(group[order], np.arange(n_groups))
    if not n_groups:
        none = np.empty(0, np.int64)
        return none, none, none, none, none
    last = order[np.append(first[1:], len(order)) - 1].astype(np.int64)
    add = [np.add.reduceat(values[order], first) for values in (count, total)]
    return add[0], add[1], np.minimum.reduceat(least[order], first), most[last], last
