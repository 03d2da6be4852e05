"""Collectives of a pod: how long each took, how long it waited, and how fast its data went.

Bandwidths are those of nccl-tests (doc/PERFORMANCE.md), with S the bytes of one rank's larger side and n the
ranks of a group:

    algorithm bandwidth = S / time
    bus bandwidth = algorithm bandwidth · 2 (n - 1) / n     all-reduce
                                        · (n - 1) / n       all-gather, reduce-scatter, all-to-all
                                        · 1                 broadcast, reduce, permutations

Bus bandwidth is the rate that the links have to carry, so it can be compared with their peak for every kind
of collective and size of group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tb_tpuprof.analysis.device.attainable import TOLERANCE
from tb_tpuprof.analysis.pod.transfers import TransferOp

_SPLIT = ("all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "gather", "scatter")
_WHOLE = ("broadcast", "collective-broadcast", "reduce", "collective-permute", "send-receive")
_MOST_NUMBERS = 4


class GroupsFrom(Enum):
    """The source of the information which cores run a collective together."""

    PROGRAM = "the program"
    FILE = "the file's process groups"
    ENDS = "common end times"
    NOTHING = "nothing: all cores count as one group"
    UNKNOWN = "unknown: sends do not name their receivers"


@dataclass(frozen=True)
class Collective:
    """An operation that cores run together. Times are in ps per step and core: of the fastest participant
    (`transfer_ps`), and the mean waiting beyond that (`wait_ps`).

    `groups`: devices of the program that take part together, empty for all; `known_by`: the source of the
    groups. `n_seen`: the most participants of one group in this run; if it is 1, waiting is unknown.
    `ordinals`: for PyTorch, the places in a step of the alike operations that are counted together here.
    `last_core`: the core that arrives last most often, in `last_fraction` of the steps in which others wait;
    -1 if no core waits for another. `link_bytes_per_s`: what all links of a device carry in one direction, 0
    unknown: no data can be faster, so a higher bandwidth is unknown.
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
    last_core: int = -1
    last_fraction: float = 0.0
    link_bytes_per_s: float = 0.0

    @property
    def title(self) -> str:
        """An instruction's name; for PyTorch the kind and its numbers within a step."""
        numbers = [f"#{ordinal + 1}" for ordinal in self.ordinals]
        if not numbers:
            return self.op.name
        more = f" and {len(numbers) - _MOST_NUMBERS:,} more" if len(numbers) > _MOST_NUMBERS else ""
        return f"{self.op.kind} {', '.join(numbers[:_MOST_NUMBERS])}{more}"

    @property
    def n_groups(self) -> int:
        """Number of groups that run it, each independently; for a permutation the number of pairs."""
        return max(len(self.groups) or len(self.op.pairs), 1)

    @property
    def is_wait_known(self) -> bool:
        """Whether another participant was captured, so that waiting can be separated from transferring."""
        return self.n_seen > 1

    @property
    def is_complete(self) -> bool:
        """Whether all participants of a group were captured; if not, part of the time may be waiting for the
        others.
        """
        return self.n_seen >= self.group_size > 0

    @property
    def is_above_links(self) -> bool:
        """Whether its bytes and its time give more than the links carry. A switch can reduce on the way, so
        an all-reduce has to move its data only once.
        """
        algorithm, bus = self._rates
        rate = algorithm if self.op.kind == "all-reduce" else bus
        limit = TOLERANCE * self.link_bytes_per_s
        return rate is not None and self.group_size > 1 and rate > limit > 0

    @property
    def algorithm_bytes_per_s(self) -> float | None:
        """Bytes of the collective / its time; None if either is unknown, for halves of asynchronous
        collectives, and for more than the links carry.
        """
        return None if self.is_above_links else self._rates[0]

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Algorithm bandwidth as the links have to carry it; None if it, the kind or the group is unknown."""
        return None if self.is_above_links else self._rates[1]

    @property
    def _rates(self) -> tuple[float | None, float | None]:
        """Algorithm and bus bandwidth by size and time alone."""
        algorithm = self._algorithm_rate
        return algorithm, None if algorithm is None else self._bus_rate(algorithm)

    @property
    def _algorithm_rate(self) -> float | None:
        size = self.op.size_bytes * (
            self.group_size if self.op.has_hlo and self.op.kind == "reduce-scatter" else 1
        )
        if not size or self.transfer_ps <= 0 or self.op.is_half:
            return None
        return size * max(self.n_per_step, 1.0) / self.transfer_ps * 1e12

    def _bus_rate(self, rate: float) -> float | None:
        n, kind = self.group_size, self.op.kind
        if kind in _WHOLE:
            return rate
        if self.known_by in (GroupsFrom.NOTHING, GroupsFrom.UNKNOWN) and not self.op.group_size:
            return None
        if n < 2 or kind not in (*_SPLIT, "all-reduce"):
            return None
        return rate * (n - 1) / n * (2 if kind == "all-reduce" else 1)

    @property
    def remark(self) -> str:
        """Why a bandwidth or the waiting is unknown or only bounded; empty if all is known."""
        if self.op.is_half:
            return "bandwidth unknown: asynchronous, only its two halves are timed"
        if not self.op.size_bytes:
            return "bandwidth unknown: the trace does not state the size"
        if self.known_by is GroupsFrom.UNKNOWN:
            return "waiting unknown: sends do not name their receivers"
        if self.is_above_links:
            return "bandwidth unknown: the size and the time give more than the GPU's links carry"
        if self.bus_bytes_per_s is None:
            return "bus bandwidth unknown: the trace does not state the group"
        if not self.is_complete:
            waits = "waiting unknown, " if not self.is_wait_known else ""
            return (
                f"{waits}bandwidth is a lower bound: {self.n_seen} of {self.group_size} participants captured"
            )
        return ""


def merge_alike(collectives: Sequence[Collective]) -> tuple[Collective, ...]:
    """PyTorch collectives of equal kind, group and size as one row; the longest rows first."""
    rows: dict[object, list[Collective]] = {}
    for i, collective in enumerate(collectives):
        op = collective.op
        key = (op.kind, op.process_group, op.size_bytes, op.dtype) if op.ordinal >= 0 else i
        rows.setdefault(key, []).append(collective)
    merged = [_sum_of(alike) for alike in rows.values()]
    return tuple(sorted(merged, key=lambda collective: -(collective.transfer_ps + collective.wait_ps)))


def _sum_of(alike: Sequence[Collective]) -> Collective:
    """Alike collectives as one; who is last in the one that waits most stands for all."""
    waiting = max(alike, key=lambda one: one.wait_ps)
    return replace(
        alike[0],
        n_per_step=sum(one.n_per_step for one in alike),
        transfer_ps=sum(one.transfer_ps for one in alike),
        wait_ps=sum(one.wait_ps for one in alike),
        ordinals=tuple(ordinal for one in alike for ordinal in one.ordinals),
        n_seen=min(one.n_seen for one in alike),
        last_core=waiting.last_core,
        last_fraction=waiting.last_fraction,
    )
