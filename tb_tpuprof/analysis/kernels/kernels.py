"""GPU kernels, summed by kernel, operation and launch: counts, durations, and the units that they ran on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.kernel_names import library_of, uses_tensor_cores
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import consecutive
from tb_tpuprof.analysis.kernels.launch import Launch, read_launch
from tb_tpuprof.analysis.kernels.occupancy import capabilities, with_occupancy
from tb_tpuprof.analysis.kernels.ops import kernel_ops, op_columns
from tb_tpuprof.analysis.kernels.rows import kernel_rows
from tb_tpuprof.native import number, split, sums
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Kernels:
    """One row per distinct kernel, operation and launch, by total time, longest first; times in ps.

    `host[i]`, `longest_start_ps[i]`: host and start of the row's longest run (its duration is `max_ps[i]`).
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
        index = np.array(order, np.intp)
        return _made(
            {
                key: values[index]
                if isinstance(values, np.ndarray)
                else tuple(map(values.__getitem__, order))
                for key, values in self.__dict__.items()
            }
        )


def _made(columns: dict[str, Any]) -> Kernels:
    return Kernels(**columns)


@once
def kernels(trace: Trace) -> Kernels:
    """Kernels of all GPUs of a trace (see `kernel_rows`), however short. A kernel without known launch
    parameters has an empty `Launch`.
    """
    rows, text = kernel_rows(trace)
    metadata = trace.events["metadata"][consecutive(rows)]
    # Group rows by all identifying columns first; names, operations and launches are then parsed once per
    # group.
    code, first = split(np.empty(0, np.int32), text)
    for values in (metadata, *op_columns(trace, rows)):
        code, first = split(code, values)
    group_sums = sums(code, len(first), rows, trace.events["duration_ps"])
    group_sums, first = group_sums[:, group_sums[0] > 0], first[group_sums[0] > 0]
    text, name = text[first], trace.event_names[metadata[first]].astype(np.int64)
    ops = kernel_ops(trace, group_sums[5])
    key = np.zeros(len(first), np.int64)
    for values in (name, text, ops.code, ops.is_compiled.astype(np.int64)):
        distinct, rank = number(values)
        key = key * len(distinct) + rank
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    n, total, least, most, longest = _sums(group.reshape(-1), len(first), *group_sums[:5])
    first_event = np.full(len(first), trace.n_events, np.int64)
    np.minimum.at(first_event, group.reshape(-1), group_sums[5])
    # Equal texts and launches share one object each, so that a stored result of many rows is small.
    text_of = {i: trace.strings.get(i) for i in np.unique(name[first]).tolist()}
    names = [text_of[i] for i in name[first].tolist()]
    capability = capabilities(trace)
    plane_capability = [
        capability[plane] for plane in trace.lines["plane"][trace.lines_at(first_event)].tolist()
    ]
    launch_keys = list(zip(text[first].tolist(), plane_capability, strict=True))
    launches = {(i, sm): with_occupancy(read_launch(trace.strings.get(i)), sm) for i, sm in set(launch_keys)}
    op_codes = ops.code[first].tolist()
    compiled = ops.is_compiled[first].tolist()
    return _merged(
        Kernels(
            name=tuple(names),
            op=tuple(ops.names[i] for i in op_codes),
            library=tuple(library_of(n, is_compiled) for n, is_compiled in zip(names, compiled, strict=True)),
            launch=tuple(launches[key] for key in launch_keys),
            is_eligible=np.array([ops.is_eligible[i] for i in op_codes], np.bool_),
            uses_tensor_cores=np.array([uses_tensor_cores(n) for n in names], np.bool_),
            n_occurrences=n,
            total_ps=total,
            min_ps=least,
            max_ps=most,
            host=(trace.info.host,) * len(first),
            longest_start_ps=trace.events["start_ps"][group_sums[4][longest]],
        )
    )


def merge_kernels(parts: Sequence[Kernels]) -> Kernels:
    """Kernels of several hosts in one table: equal rows are merged. Counts and times are summed; minima and
    maxima are taken over the hosts.
    """
    return parts[0] if len(parts) == 1 else _merged(_concatenated(parts))


def _merged(table: Kernels) -> Kernels:
    """Merge equal rows. Order: total time (longest first), then name, operation and launch."""
    objects = {id(launch): launch for launch in table.launch}
    keys = {i: launch.key for i, launch in objects.items()}
    name, op, launch = (
        _ranks(table.name),
        _ranks(table.op),
        _ranks([keys[id(launch)] for launch in table.launch]),
    )
    group, first = split(name, op)
    for values in (launch, _ranks(table.library), table.is_eligible.astype(np.int64)):
        group, first = split(group, values)
    times = table.n_occurrences, table.total_ps, table.min_ps, table.max_ps
    n, total, least, most, longest = _sums(group, len(first), *times, np.arange(len(table)))
    order = np.lexsort((launch[longest], op[longest], name[longest], -total))
    merged = table.rows(longest[order].tolist())
    return _made(
        {
            **merged.__dict__,
            "n_occurrences": n[order],
            "total_ps": total[order],
            "min_ps": least[order],
            "max_ps": most[order],
        }
    )


def _ranks(values: Sequence[Any]) -> npt.NDArray[np.int32]:
    """The rank of each value among the sorted distinct values."""
    rank = {value: i for i, value in enumerate(sorted(set(values)))}
    return np.array([rank[value] for value in values], np.int32)


def _concatenated(parts: Sequence[Kernels]) -> Kernels:
    joined = {}
    for key in (field.name for field in fields(Kernels)):
        values = [getattr(part, key) for part in parts]
        is_array = bool(values) and isinstance(values[0], np.ndarray)
        joined[key] = (
            np.concatenate(values) if is_array else tuple(item for value in values for item in value)
        )
    return _made(joined)


def _sums(
    group: npt.NDArray[np.integer],
    n_groups: int,
    count: Int64s,
    total: Int64s,
    least: Int64s,
    most: Int64s,
    row: Int64s,
) -> tuple[Int64s, ...]:
    """Per group: sum of counts, sum of times, minimum, maximum, and the index of the maximum (of equal ones
    the last by `row`).
    """
    order = np.lexsort((row, most, group))
    first = np.searchsorted(group[order], np.arange(n_groups))
    if not n_groups:
        empty = np.empty(0, np.int64)
        return empty, empty, empty, empty, empty
    last = order[np.append(first[1:], len(order)) - 1].astype(np.int64)
    totals = [np.add.reduceat(values[order], first) for values in (count, total)]
    return totals[0], totals[1], np.minimum.reduceat(least[order], first), most[last], last
