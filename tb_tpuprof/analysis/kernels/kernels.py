"""Kernels of GPUs, summed by kernel, operation and launch: how often, how long, on which units."""

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
                key: values[at] if isinstance(values, np.ndarray) else tuple(map(values.__getitem__, order))
                for key, values in self.__dict__.items()
            }
        )


def _made(columns: dict[str, Any]) -> Kernels:
    return Kernels(**columns)


@once
def kernels(trace: Trace) -> Kernels:
    """Kernels of all GPUs of a trace (`kernel_rows`), however short. A kernel of no known launch has one that
    tells nothing.
    """
    rows, text = kernel_rows(trace)
    metadata = trace.events["metadata"][consecutive(rows)]
    # Rows that are alike in all that tells kernels apart, before what that means is looked at, once for each
    # such group.
    code, at = split(np.empty(0, np.int32), text)
    for values in (metadata, *op_columns(trace, rows)):
        code, at = split(code, values)
    alike = sums(code, len(at), rows, trace.events["duration_ps"])
    alike, at = alike[:, alike[0] > 0], at[alike[0] > 0]
    text, name = text[at], trace.event_names[metadata[at]].astype(np.int64)
    ops = kernel_ops(trace, alike[5])
    key = np.zeros(len(at), np.int64)
    for values in (name, text, ops.code, ops.is_compiled.astype(np.int64)):
        distinct, place = number(values)
        key = key * len(distinct) + place
    _, at, group = np.unique(key, return_index=True, return_inverse=True)
    n, total, least, most, longest = _sums(group.reshape(-1), len(at), *alike[:5])
    first = np.full(len(at), trace.n_events, np.int64)
    np.minimum.at(first, group.reshape(-1), alike[5])
    # Equal texts and launches are one object each, so that a result of many rows is small where it is kept.
    written = {i: trace.strings.get(i) for i in np.unique(name[at]).tolist()}
    names = [written[i] for i in name[at].tolist()]
    capability = capabilities(trace)
    on = [capability[plane] for plane in trace.lines["plane"][trace.lines_at(first)].tolist()]
    wanted = list(zip(text[at].tolist(), on, strict=True))
    launches = {
        (i, where): with_occupancy(read_launch(trace.strings.get(i)), where) for i, where in set(wanted)
    }
    chosen = ops.code[at].tolist()
    compiled = ops.is_compiled[at].tolist()
    return _merged(
        Kernels(
            name=tuple(names),
            op=tuple(ops.names[i] for i in chosen),
            library=tuple(library_of(n, is_compiled) for n, is_compiled in zip(names, compiled, strict=True)),
            launch=tuple(launches[key] for key in wanted),
            is_eligible=np.array([ops.is_eligible[i] for i in chosen], np.bool_),
            uses_tensor_cores=np.array([uses_tensor_cores(n) for n in names], np.bool_),
            n_occurrences=n,
            total_ps=total,
            min_ps=least,
            max_ps=most,
            host=(trace.info.host,) * len(at),
            longest_start_ps=trace.events["start_ps"][alike[4][longest]],
        )
    )


def merge_kernels(parts: Sequence[Kernels]) -> Kernels:
    """Kernels of several hosts as rows of one table: equal rows become one. Counts and times add up, the
    extremes stay.
    """
    return parts[0] if len(parts) == 1 else _merged(_concatenated(parts))


def _merged(whole: Kernels) -> Kernels:
    """Equal rows as one, the largest total time first, then by name, operation and launch."""
    objects = {id(launch): launch for launch in whole.launch}
    keys = {i: launch.key for i, launch in objects.items()}
    name, op, launch = (
        _ranks(whole.name),
        _ranks(whole.op),
        _ranks([keys[id(launch)] for launch in whole.launch]),
    )
    group, first = split(name, op)
    for values in (launch, _ranks(whole.library), whole.is_eligible.astype(np.int64)):
        group, first = split(group, values)
    times = whole.n_occurrences, whole.total_ps, whole.min_ps, whole.max_ps
    n, total, least, most, at = _sums(group, len(first), *times, np.arange(len(whole)))
    order = np.lexsort((launch[at], op[at], name[at], -total))
    merged = whole.rows(at[order].tolist())
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
    """The place of each value among the distinct ones."""
    place = {value: i for i, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], np.int32)


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
    """Per group: the counts' and times' sums, the least, the most, and which has the most: of several the
    last by `row`.
    """
    order = np.lexsort((row, most, group))
    first = np.searchsorted(group[order], np.arange(n_groups))
    if not n_groups:
        none = np.empty(0, np.int64)
        return none, none, none, none, none
    last = order[np.append(first[1:], len(order)) - 1].astype(np.int64)
    add = [np.add.reduceat(values[order], first) for values in (count, total)]
    return add[0], add[1], np.minimum.reduceat(least[order], first), most[last], last
