"""Operations and their times, as columns: what host, GPU and TPU analyses produce and what hosts and devices
add up to.
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
NO_OPERATION = "(no operation)"  # the type of kernels that no operation is known to have launched


def _no_floats() -> Floats:
    return np.empty(0, np.float64)


@dataclass(frozen=True)
class OpMetrics:
    """One row per operation; times in ps summed over all occurrences, `time_ps` with and `self_ps` without
    nested operations.

    `flops`, `model_flops`, `n_bytes`: work of all occurrences, NaN (or no column at all) where unknown.
    `provenance`: the framework's name of the operation that a compiler's one came from. `span_ps`: from the
    first operation to the last, summed over the lines (of hosts) or devices that the operations ran on; what
    is left of it beside their self times is idle.
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

    def __len__(self) -> int:
        return len(self.name)

    @property
    def busy_ps(self) -> int:
        """Self time of all operations."""
        return int(self.self_ps.sum())

    @property
    def idle_ps(self) -> int:
        """What the operations leave of the span: never negative, though streams that run side by side can
        fill it twice.
        """
        return max(0, self.span_ps - self.busy_ps)


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


def sum_occurrences(names: Sequence[tuple[str, str]], found: Occurrences, span_ps: int) -> OpMetrics:
    """Sum occurrences by operation; `names` are (name, type). Operations that never occur are left out."""
    n = len(names)
    count = np.bincount(found.op, minlength=n)
    kept = np.flatnonzero(count)
    none = np.full(len(kept), np.nan)
    return OpMetrics(
        tuple(names[i][0] for i in kept.tolist()),
        tuple(names[i][1] for i in kept.tolist()),
        count[kept].astype(np.int64),
        sum_by(found.op, found.time_ps, n)[kept],
        sum_by(found.op, found.self_ps, n)[kept],
        (np.bincount(found.op[found.is_eager], minlength=n) > 0)[kept],
        span_ps,
        (0,) * len(kept),
        ("",) * len(kept),
        none,
        none,
        none,
    )


def sum_by(key: npt.NDArray[np.integer], value: Int64s, n: int) -> Int64s:
    """Exact sums of int64 by key (a float would lose picoseconds from 2^53 on)."""
    low, high = value & 0xFFFFFF, value >> 24
    total: Int64s = (np.bincount(key, high, n).astype(np.int64) << 24) + np.bincount(key, low, n).astype(
        np.int64
    )
    return total


def add_up(parts: Iterable[OpMetrics]) -> OpMetrics:
    """Sum operations of several lines, devices or hosts by program, name and mode; the first type and
    provenance that is known stays.
    """
    given = [part for part in parts if len(part) or part.span_ps]
    if len(given) <= 1:
        return given[0] if given else no_ops()
    rows: dict[tuple[int, str, bool], int] = {}
    keys = (
        key for part in given for key in zip(part.program, part.name, part.is_eager.tolist(), strict=True)
    )
    at = np.array([rows.setdefault(key, len(rows)) for key in keys], np.int64)
    types, provenances = [""] * len(rows), [""] * len(rows)
    pairs = ((t, p) for part in given for t, p in zip(part.type, part.provenance, strict=True))
    for row, (type_, provenance) in zip(at.tolist(), pairs, strict=True):
        types[row] = types[row] or type_
        provenances[row] = provenances[row] or provenance
    count, time_ps, self_ps = (
        _joined(given, at, name, len(rows)) for name in ("n_occurrences", "time_ps", "self_ps")
    )
    work = [
        np.concatenate([getattr(part, name) for part in given])
        for name in ("flops", "model_flops", "n_bytes")
    ]
    flops, model_flops, n_bytes = (np.bincount(at, values, len(rows)).astype(np.float64) for values in work)
    is_eager = np.bincount(at[np.concatenate([part.is_eager for part in given])], minlength=len(rows)) > 0
    span_ps = sum(part.span_ps for part in given)
    programs, names = tuple(program for program, *_ in rows), tuple(name for _, name, _ in rows)
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
        flops,
        model_flops,
        n_bytes,
    )


def _joined(parts: list[OpMetrics], at: Int64s, name: str, n: int) -> Int64s:
    return sum_by(at, np.concatenate([getattr(part, name) for part in parts]), n)


def by_framework_op(ops: OpMetrics) -> OpMetrics:
    """A compiler's operations regrouped under the framework operations that they came from.

    Times, flops and bytes are summed; a framework operation occurred as often as the most frequent of its
    parts. What has no provenance keeps its own name, with the type `Unknown`, or `(no operation)` where it is
    known to have none: then it stays a row of its own, even if an operation has the same name.
    """
    rows: dict[tuple[str, bool], int] = {}
    types: list[str] = []
    at = np.empty(len(ops), np.int64)
    for i, (name, type_, provenance) in enumerate(zip(ops.name, ops.type, ops.provenance, strict=True)):
        op = parse_op(provenance) if provenance else None
        row = at[i] = rows.setdefault((op.name if op else name, type_ == NO_OPERATION), len(rows))
        if row == len(types):
            types.append((op.type if op else NO_OPERATION if type_ == NO_OPERATION else "") or "Unknown")
    n = len(rows)
    most = np.zeros(n, np.int64)
    np.maximum.at(most, at, ops.n_occurrences)
    flops, model_flops, n_bytes = (
        np.bincount(at, values, n).astype(np.float64) for values in (ops.flops, ops.model_flops, ops.n_bytes)
    )
    return OpMetrics(
        tuple(name for name, _ in rows),
        tuple(types),
        most,
        sum_by(at, ops.time_ps, n),
        sum_by(at, ops.self_ps, n),
        np.bincount(at[ops.is_eager], minlength=n) > 0,
        ops.span_ps,
        (0,) * n,
        ("",) * n,
        flops,
        model_flops,
        n_bytes,
    )
