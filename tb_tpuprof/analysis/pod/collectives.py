"""Collectives of a pod: how long each took, how long it waited, and how fast its data went.

Bandwidths are those of nccl-tests (doc/PERFORMANCE.md), with S the bytes of one rank's larger side and n the
ranks of a group:

    algorithm bandwidth = S / time        bus bandwidth = algorithm bandwidth · 2 (n - 1) / n     all-reduce
                                                                              · (n - 1) / n       all-gather,
                                                                              reduce-scatter, all-to-all · 1
                                                                              broadcast, reduce, permutations

Bus bandwidth is what the links have to carry, so that it can be compared with their peak whatever the
collective and its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tb_tpuprof.analysis.pod.transfers import TransferOp

_SPLIT = ("all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "gather", "scatter")
_WHOLE = ("broadcast", "collective-broadcast", "reduce", "collective-permute", "send-receive")


class GroupsFrom(Enum):
    """What tells which cores run a collective together."""

    PROGRAM = "the program"
    FILE = "the file's process groups"
    ENDS = "who leaves together"
    NOTHING = "nothing: all count as one"
    NOBODY = "unknown: sends do not name their receivers"


@dataclass(frozen=True)
class Collective:
    """An operation that cores run together. Times are per step and core: of the fastest participant, and mean
    waiting beyond it.

    `groups`: devices of the program that take part together, empty for all; `known_by`: what tells of them.
    `n_seen`: the most participants of one group that are in this run; with a single one waiting is not known.
    `n_ops`: operations of a step that were alike and are counted here together; `ordinals`: their places in
    the step, of PyTorch's.
    """

    op: TransferOp
    n_per_step: float
    transfer_ps: float
    wait_ps: float
    groups: tuple[tuple[int, ...], ...]
    group_size: int
    known_by: GroupsFrom
    n_seen: int
    ordinals: tuple[int, ...] = ()

    @property
    def n_groups(self) -> int:
        """How many groups run it, each by itself; pairs of a permutation likewise."""
        return max(len(self.groups) or len(self.op.pairs), 1)

    @property
    def is_wait_known(self) -> bool:
        """Whether another participant was captured, so that waiting can be told from transferring."""
        return self.n_seen > 1

    @property
    def is_complete(self) -> bool:
        """Whether all participants of a group were captured; else part of the time may be waiting for the
        others.
        """
        return self.n_seen >= self.group_size > 0

    @property
    def algorithm_bytes_per_s(self) -> float | None:
        """Bytes of the collective by its time; None where either is not known, and for halves of asynchronous
        ones.
        """
        size = self.op.size_bytes * (
            self.group_size if self.op.has_hlo and self.op.kind == "reduce-scatter" else 1
        )
        if not size or self.transfer_ps <= 0 or self.op.is_half:
            return None
        return size * max(self.n_per_step, 1.0) / self.transfer_ps * 1e12

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Algorithm bandwidth as the links have to carry it; None where the kind or the group is
        not known.
        """
        rate, n, kind = self.algorithm_bytes_per_s, self.group_size, self.op.kind
        if rate is None or kind in _WHOLE:
            return rate
        if self.known_by in (GroupsFrom.NOTHING, GroupsFrom.NOBODY) and not self.op.group_size:
            return None
        if n < 2 or kind not in (*_SPLIT, "all-reduce"):
            return None
        return rate * (n - 1) / n * (2 if kind == "all-reduce" else 1)

    @property
    def remark(self) -> str:
        """Why a bandwidth or the waiting is unknown, or only bounded; empty where all is known."""
        if self.op.is_half:
            return "bandwidth unknown: asynchronous, only its two halves are timed"
        if not self.op.size_bytes:
            return "bandwidth unknown: the trace does not state the size"
        if self.known_by is GroupsFrom.NOBODY:
            return "waiting unknown: sends do not name their receivers"
        if self.bus_bytes_per_s is None:
            return "bus bandwidth unknown: the trace does not state the group"
        if not self.is_complete:
            waits = "waiting unknown, " if not self.is_wait_known else ""
            return (
                f"{waits}bandwidth is a lower bound: {self.n_seen} of {self.group_size} participants captured"
            )
        return ""


def alike_together(found: Sequence[Collective]) -> tuple[Collective, ...]:
    """Collectives of PyTorch of one kind, group and size as one row; the longest rows first."""
    rows: dict[object, Collective] = {}
    for i, one in enumerate(found):
        op = one.op
        key = (op.kind, op.process_group, op.size_bytes, op.dtype) if op.ordinal >= 0 else i
        rows[key] = _added(rows[key], one) if key in rows else one
    return tuple(sorted(rows.values(), key=lambda one: -(one.transfer_ps + one.wait_ps)))


def _added(one: Collective, other: Collective) -> Collective:
    return replace(
        one,
        n_per_step=one.n_per_step + other.n_per_step,
        transfer_ps=one.transfer_ps + other.transfer_ps,
        wait_ps=one.wait_ps + other.wait_ps,
        ordinals=(*one.ordinals, *other.ordinals),
        n_seen=min(one.n_seen, other.n_seen),
    )
