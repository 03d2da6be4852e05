"""Operations and their times as columns: the result of host, GPU and TPU analyses, and of summing over hosts
and devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.names import parse_op

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
IDLE = "IDLE"
_MISCOUNTED = "miscounted_ps"
_AMOUNTS = ("flops", "model_flops", "n_bytes", "roof_flops", "tensor_core_ps", _MISCOUNTED)
NO_OPERATION = "(no operation)"  # the type of kernels that no operation is known to have launched


def _no_floats() -> Floats:
    return np.empty(0, np.float64)


@dataclass(frozen=True)
class OpMetrics:
    """One row per operation; times in ps summed over all occurrences, `time_ps` with and `self_ps` without
    nested operations.

    `flops`, `model_flops`, `n_bytes`: work of all occurrences, NaN (or no column at all) where unknown.
    `roof_flops`: FLOPs × the peak rate at 16 bits ÷ the peak rate at the precision of their operands; no
    column: as `flops`. `tensor_core_ps`: self time in kernels that run on tensor cores. `miscounted_ps`: time
    in operations of which more FLOPs or bytes were counted than the device can do (see `attainable`); these
    are unknown. `details`: if rows differ in more than their names, texts that show how (see `details`); else
    no column. `provenance`:
    the framework's name of the operation that a compiler's operation came from. `span_ps`: from the first
    operation to the last, summed over the lines (of hosts) or devices that the operations ran on; the rest of
    it, beyond their self times, is idle.
    """

    name: tuple[str, ...]
    type: tuple[str, ...]
    n_occurrences: Int64s
    time_ps: Int64s
    self_ps: Int64s
    is_eager: npt.NDArray[np.bool_]
    span_ps: int
    program: tuple[int, ...] = ()
    provenance: tuple[str, ...] = ()
    flops: Floats = field(default_factory=_no_floats)
    model_flops: Floats = field(default_factory=_no_floats)
    n_bytes: Floats = field(default_factory=_no_floats)
    roof_flops: Floats = field(default_factory=_no_floats)
    tensor_core_ps: Floats = field(default_factory=_no_floats)
    miscounted_ps: Floats = field(default_factory=_no_floats)
    details: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.name)

    @property
    def busy_ps(self) -> int:
        """Self time of all operations."""
        return int(self.self_ps.sum())

    @property
    def idle_ps(self) -> int:
        """The span without the operations' self time; never negative, though concurrent streams can fill it
        twice.
        """
        return max(0, self.span_ps - self.busy_ps)

    @property
    def tensor_core_fraction(self) -> Floats:
        """Share of the self time in kernels that run on tensor cores; NaN without self time or kernels."""
        result = np.full(len(self), np.nan)
        if len(self.tensor_core_ps) == len(self):
            np.divide(self.tensor_core_ps, self.self_ps, out=result, where=self.self_ps > 0)
        return result

    @property
    def is_miscounted(self) -> npt.NDArray[np.bool_]:
        """Operations of which more was counted than the device can do in their time."""
        if len(self.miscounted_ps) < len(self):
            return np.zeros(len(self), np.bool_)
        return np.asarray(self.miscounted_ps > 0, np.bool_)

    def amounts(self, name: str) -> Floats:
        """A column of work, NaN in all rows if there is none; `flops` in place of missing `roof_flops`, 0 of
        missing `miscounted_ps`.
        """
        values: Floats = getattr(self, name)
        if len(values) == len(self):
            return values
        if name == "roof_flops":
            return self.amounts("flops")
        return np.full(len(self), 0.0 if name == _MISCOUNTED else np.nan)


def no_ops() -> OpMetrics:
    """No operations at all."""
    none = np.empty(0, np.int64)
    return OpMetrics(
        (), (), none, none, none, np.empty(0, np.bool_), 0, (), (), _no_floats(), _no_floats(), _no_floats()
    )


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of operations before they are summed: `op[i]` is the row of `names` that occurrence i
    belongs to.
    """

    op: Int64s
    time_ps: Int64s
    self_ps: Int64s
    is_eager: npt.NDArray[np.bool_]


def sum_occurrences(names: Sequence[tuple[str, str]], occurrences: Occurrences, span_ps: int) -> OpMetrics:
    """Sum occurrences by operation; `names` are (name, type). Operations that never occur are left out."""
    n = len(names)
    count = np.bincount(occurrences.op, minlength=n)
    used = np.flatnonzero(count)
    unknown = np.full(len(used), np.nan)
    return OpMetrics(
        tuple(names[i][0] for i in used.tolist()),
        tuple(names[i][1] for i in used.tolist()),
        count[used].astype(np.int64),
        sum_by(occurrences.op, occurrences.time_ps, n)[used],
        sum_by(occurrences.op, occurrences.self_ps, n)[used],
        (np.bincount(occurrences.op[occurrences.is_eager], minlength=n) > 0)[used],
        span_ps,
        (0,) * len(used),
        ("",) * len(used),
        unknown,
        unknown,
        unknown,
    )


def sum_by(key: npt.NDArray[np.integer], value: Int64s, n: int) -> Int64s:
    """Exact sums of int64 by key (a float would lose picoseconds above 2^53)."""
    low, high = value & 0xFFFFFF, value >> 24
    total: Int64s = (np.bincount(key, high, n).astype(np.int64) << 24) + np.bincount(key, low, n).astype(
        np.int64
    )
    return total


def add_up(parts: Iterable[OpMetrics]) -> OpMetrics:
    """Sum operations of several lines, devices or hosts by program, name and mode; the first known type and
    provenance are used.
    """
    non_empty = [part for part in parts if len(part) or part.span_ps]
    if len(non_empty) <= 1:
        return non_empty[0] if non_empty else no_ops()
    rows: dict[tuple[int, str, bool, str], int] = {}
    keys = (
        key
        for part in non_empty
        for key in zip(part.program, part.name, part.is_eager.tolist(), _details(part), strict=True)
    )
    row_of = np.array([rows.setdefault(key, len(rows)) for key in keys], np.int64)
    types, provenances = [""] * len(rows), [""] * len(rows)
    pairs = ((t, p) for part in non_empty for t, p in zip(part.type, part.provenance, strict=True))
    for row, (type_, provenance) in zip(row_of.tolist(), pairs, strict=True):
        types[row] = types[row] or type_
        provenances[row] = provenances[row] or provenance
    count, time_ps, self_ps = (
        _joined(non_empty, row_of, name, len(rows)) for name in ("n_occurrences", "time_ps", "self_ps")
    )
    work = {
        name: _summed(row_of, np.concatenate([part.amounts(name) for part in non_empty]), len(rows))
        for name in _AMOUNTS
    }
    is_eager = (
        np.bincount(row_of[np.concatenate([part.is_eager for part in non_empty])], minlength=len(rows)) > 0
    )
    span_ps = sum(part.span_ps for part in non_empty)
    programs, names = tuple(program for program, *_ in rows), tuple(name for _, name, *_ in rows)
    return OpMetrics(
        names,
        tuple(types),
        count,
        time_ps,
        self_ps,
        is_eager,
        span_ps,
        programs,
        tuple(provenances),
        details=tuple(detail for *_, detail in rows) if any(part.details for part in non_empty) else (),
        **work,
    )


def _details(ops: OpMetrics) -> tuple[str, ...]:
    return ops.details or ("",) * len(ops)


def _joined(parts: list[OpMetrics], row_of: Int64s, name: str, n: int) -> Int64s:
    return sum_by(row_of, np.concatenate([getattr(part, name) for part in parts]), n)


def _summed(row_of: Int64s, values: Floats, n: int) -> Floats:
    """Sums of work; unknown where any part is."""
    total: Floats = np.bincount(row_of, values, n).astype(np.float64)
    return total


def by_framework_op(ops: OpMetrics) -> OpMetrics:
    """A compiler's operations regrouped under the framework operations that they came from.

    Times, FLOPs and bytes are summed; a framework operation occurred as often as the most frequent of its
    parts. An operation without provenance keeps its own name, with the type `Unknown`, or `(no operation)`
    where it is known to have none: then it stays a separate row, even if an operation has the same name.
    """
    rows: dict[tuple[str, bool, str], int] = {}
    types: list[str] = []
    row_of = np.empty(len(ops), np.int64)
    columns = zip(ops.name, ops.type, ops.provenance, _details(ops), strict=True)
    for i, (name, type_, provenance, detail) in enumerate(columns):
        op = parse_op(provenance) if provenance else None
        row = row_of[i] = rows.setdefault((op.name if op else name, type_ == NO_OPERATION, detail), len(rows))
        if row == len(types):
            types.append((op.type if op else NO_OPERATION if type_ == NO_OPERATION else "") or "Unknown")
    n = len(rows)
    most = np.zeros(n, np.int64)
    np.maximum.at(most, row_of, ops.n_occurrences)
    work = {name: _summed(row_of, ops.amounts(name), n) for name in _AMOUNTS}
    return OpMetrics(
        tuple(name for name, *_ in rows),
        tuple(types),
        most,
        sum_by(row_of, ops.time_ps, n),
        sum_by(row_of, ops.self_ps, n),
        np.bincount(row_of[ops.is_eager], minlength=n) > 0,
        ops.span_ps,
        (0,) * n,
        ("",) * n,
        details=tuple(detail for *_, detail in rows) if ops.details else (),
        **work,
    )
