"""Hosts put together: all cores in the steps that all have, waiting told from transferring, links between
cores.

Clocks of hosts need to agree as far as to tell which of their steps go together (`clocks` corrects them).
Beyond that none is compared: whose collective is short arrived last, and other times are since each core's
own step began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.collectives import Collective, GroupsFrom, alike_together
from tb_tpuprof.analysis.pod.comms import merged
from tb_tpuprof.analysis.pod.groups import groups_by_ends
from tb_tpuprof.analysis.pod.host import PodCore, PodHost
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.trace.collectives import SEND_RECEIVE

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MAX_CHANNELS = 20_000
_MOST_GAP_NS = 10**9  # by which clocks that nobody synchronised may be off
_MOST_GROUPED = 16  # operations whose groups are looked for in the times of all cores


@dataclass(frozen=True)
class Channel:
    """Data from one core to another, by one or several operations; means over occurrences.

    `send_delay_ps`: how long the receiver was ready before the sender.
    """

    source: int
    target: int
    ops: tuple[str, ...]
    channel_id: int
    size_bytes: int
    latency_ps: float
    send_delay_ps: float
    n_per_step: float

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth as seen by the receiver; 0 where no time is known."""
        return self.size_bytes / self.latency_ps * 1e12 if self.latency_ps > 0 else 0.0


@dataclass(frozen=True)
class Pod:
    """`part_ps[core, step, part]` sums up to `total_ps[core, step]`; `host_of[core]` is a row of `hosts`,
    `group_of` where known.

    In memory `part_ps` lies part by part, as it is read. `device_of`: the program's number of each core.
    `n_unplaced`: links whose end lies on hosts that were not captured or chosen. `n_devices`: accelerators
    that these hosts have. `all_idle_ps`: by step, how long no core of a host ran anything, and `host_step_ps`
    how long the step was, means of the hosts. `apart`: hosts that were captured at another time, and by how
    many ns.
    """

    hosts: tuple[str, ...]
    kind: str
    device: str
    cores: tuple[PodCore, ...]
    host_of: Int64s
    device_of: Int64s
    step_names: tuple[str, ...]
    part_ps: Int64s
    total_ps: Int64s
    collectives: tuple[Collective, ...]
    channels: tuple[Channel, ...]
    n_without: int
    is_disjoint: bool
    n_unplaced: int
    late_idle_ps: Int64s
    n_devices: int
    all_idle_ps: npt.NDArray[np.float64]
    host_step_ps: npt.NDArray[np.float64]
    apart: tuple[tuple[str, int], ...] = ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts that occur on any core."""
        return tuple(part for part in Part if self.part_ps[:, :, part].any())

    @cached_property
    def is_synchronous(self) -> bool:
        """Whether cores wait for one another within a step: they run collectives, or send to one another."""
        together = (Part.COLLECTIVE, Part.COLLECTIVE_WAIT, Part.RECV)
        return bool(len(self.cores) > 1 and (self.collectives or self.part_ps[:, :, list(together)].any()))

    @cached_property
    def is_wait_known(self) -> bool:
        """Whether waiting can be told from transferring: of some collective, or of none, more than one
        participant was captured.
        """
        return not self.collectives or any(one.is_wait_known for one in self.collectives)

    @cached_property
    def has_ranks(self) -> bool:
        """Whether every core is a process of its own, numbered as the job numbers them."""
        ranks = [core.rank for core in self.cores]
        return bool(ranks) and min(ranks) >= 0 and len(set(ranks)) == len(ranks)

    def job_ps(self, since: int = 0) -> float:
        """How long a step of the job takes, mean of the steps from `since` on: as long as its slowest core.

        Where cores wait for one another that is the slowest in each step, else the one that takes longest
        over all of them.
        """
        total = self.total_ps[:, since:].astype(np.float64)
        if not total.size:
            return 0.0
        return float(total.max(axis=0).mean() if self.is_synchronous else total.mean(axis=1).max())

    @cached_property
    def own_ps(self) -> Int64s:
        """Time of each core and step that is its own doing: all but waiting for others.

        Where cores wait for one another, idling is its own as far as all idle, and beyond that as far as it
        made others of its groups wait (`late_idle_ps`); the rest, which held nobody up, was for the others'
        sake.
        """
        own: Int64s = self.total_ps - self.part_ps[:, :, Part.COLLECTIVE_WAIT] - self.part_ps[:, :, Part.RECV]
        if self.is_synchronous:
            idle = self.part_ps[:, :, Part.IDLE]
            longest_recv = self.part_ps[:, :, Part.RECV].max(axis=0, initial=0)
            own = own - np.maximum(idle - (idle.min(axis=0) + self.late_idle_ps + longest_recv), 0)
        return own


def join(parts: Sequence[PodHost], correction_ns: Sequence[int] = ()) -> Pod:
    """One pod of its hosts. `correction_ns`: what to add to each host's clock; absent: all agree.

    Hosts that were captured at another time than most are left out: their steps have nothing in common.
    """
    added = list(correction_ns or (0,) * len(parts))
    apart = _captured_apart([part.start_ns + add for part, add in zip(parts, added, strict=True)], parts)
    if apart:
        kept = [i for i in range(len(parts)) if i not in apart]
        pod = join([parts[i] for i in kept], [added[i] for i in kept])
        return replace(pod, apart=tuple((parts[i].host, gap) for i, gap in apart.items()))
    common = common_steps(
        [part.steps for part in parts], [part.start_ns + add for part, add in zip(parts, added, strict=True)]
    )
    used = [
        (part, rows)
        for part, rows in zip(parts, common.rows, strict=True)
        if rows.stop > rows.start and part.cores
    ]
    n_steps = len(common.steps) if used else 0
    cores = tuple(core for part, _ in used for core in part.cores)
    host_of = np.repeat(np.arange(len(used)), [len(part.cores) for part, _ in used]).astype(np.int64)
    by_part = [
        np.empty((N_PARTS, 0, n_steps), np.int64),
        *(part.part_ps[:, rows].transpose(2, 0, 1) for part, rows in used),
    ]
    part_ps = np.concatenate(
        by_part, axis=1, out=np.empty((N_PARTS, len(cores), n_steps), np.int64)
    ).transpose(1, 2, 0)
    total_ps = np.concatenate(
        [np.empty((0, n_steps), np.int64), *(part.total_ps[:, rows] for part, rows in used)]
    )
    found = _Transfers(used, len(cores), n_steps)
    device_of = _devices(cores, found.devices())
    row_of = {int(device): row for row, device in enumerate(device_of.tolist())}
    collectives, late_idle = found.wait(part_ps, row_of)
    channels, n_unplaced = found.channels(row_of, n_steps)
    first = next((part for part, _ in used), parts[0])
    return Pod(
        tuple(part.host for part, _ in used),
        first.kind,
        first.device,
        cores,
        host_of,
        device_of,
        common.steps.name[:n_steps],
        part_ps,
        total_ps,
        collectives,
        channels,
        common.n_without,
        common.is_disjoint,
        n_unplaced,
        late_idle,
        sum(part.n_devices for part, _ in used),
        _mean([part.all_idle_ps[rows] for part, rows in used], n_steps),
        _mean([part.steps.duration_ps[rows] for part, rows in used], n_steps),
    )


def _mean(rows: Sequence[Int64s], n: int) -> Floats:
    result: Floats = np.mean(rows, axis=0) if rows else np.zeros(n)
    return result


def _captured_apart(start_ns: Sequence[int], parts: Sequence[PodHost]) -> dict[int, int]:
    """Hosts whose steps do not overlap in time with those of the largest set that do, and how many ns lie
    between (negative: before).

    Of sets of equal size the first in time counts. Clocks of hosts that are one may be off by a second.
    """
    spans = []
    for i, part in enumerate(parts):
        if len(part.steps):
            begin, end = part.steps.start_ps, part.steps.start_ps + part.steps.duration_ps
            spans.append((start_ns[i] + int(begin.min()) // 1000, start_ns[i] + int(end.max()) // 1000, i))
    sets: list[list[tuple[int, int, int]]] = []
    latest = 0
    for span in sorted(spans):
        if sets and span[0] < latest + _MOST_GAP_NS:
            sets[-1].append(span)
        else:
            sets.append([span])
        latest = max(latest, span[1]) if len(sets[-1]) > 1 else span[1]
    if len(sets) < 2:
        return {}
    largest = max(sets, key=len)
    first, last = largest[0][0], max(end for _, end, _ in largest)
    return {
        i: begin - last if begin >= last else end - first
        for one in sets
        if one is not largest
        for begin, end, i in one
    }


def _devices(cores: tuple[PodCore, ...], named: set[int]) -> Int64s:
    """The program's number of each core: its rank, or its id in the pod, where all have a different one, else
    its place in the order.

    Also its place where the program names just as many devices as there are cores, but others than the cores'
    ids.
    """
    order = np.arange(len(cores), dtype=np.int64)
    ranks = np.array([core.rank for core in cores], np.int64)
    if len(ranks) and ranks.min() >= 0 and len(np.unique(ranks)) == len(ranks):
        return ranks
    ids = np.array([core.core_id for core in cores], np.int64)
    if not len(ids) or ids.min() < 0 or len(np.unique(ids)) < len(ids):
        return order
    return order if named == set(order.tolist()) and not named <= set(ids.tolist()) else ids


class _Transfers:
    """Transfers of all hosts by name: halves and times of each core."""

    def __init__(self, used: Sequence[tuple[PodHost, slice]], n_cores: int, n_steps: int) -> None:
        self.ops: dict[str, TransferOp] = {}
        for part, _ in used:
            for op in part.transfers.ops:
                known = self.ops.get(op.name)
                if known is None or (op.has_hlo and not known.has_hlo):
                    self.ops[op.name] = op
                elif op.ordinal >= 0:
                    self.ops[op.name] = merged(known, op)
        self.index = {name: i for i, name in enumerate(self.ops)}
        n = len(self.ops)
        self.time_ps = np.zeros((n, n_cores, n_steps), np.int64)
        self.begin, self.end = np.zeros((n, n_cores)), np.zeros((n, n_cores))
        self.count = np.zeros((n, n_cores), np.int64)
        self.n_captured = np.ones(n_cores, np.int64)
        self.last_ps: dict[int, Int64s] = {}
        first = 0
        for part, rows in used:
            mine = slice(first, first + len(part.cores))
            first = mine.stop
            self.n_captured[mine] = max(len(part.steps), 1)
            for i, op in enumerate(part.transfers.ops):
                to = self.index[op.name]
                self.time_ps[to, mine] = part.transfers.time_ps[:, rows, i]
                self.begin[to, mine], self.end[to, mine] = (
                    part.transfers.begin_ps[:, i],
                    part.transfers.end_ps[:, i],
                )
                self.count[to, mine] = part.transfers.count[:, i]
                if not op.states_groups:
                    self.last_ps.setdefault(to, np.zeros((n_cores, n_steps), np.int64))[mine] = (
                        part.transfers.last_ps[:, rows, i]
                    )
        longest = sorted(self.last_ps, key=lambda at: -int(self.time_ps[at].sum()))
        self.last_ps = {at: self.last_ps[at] for at in longest[:_MOST_GROUPED]}

    def devices(self) -> set[int]:
        """The program's devices that groups and pairs name."""
        return {
            device
            for op in self.ops.values()
            for members in (*op.groups, op.pairs.ravel().tolist())
            for device in members
        }

    def _groups(
        self, at: int, op: TransferOp, device_of: list[int]
    ) -> tuple[tuple[tuple[int, ...], ...], GroupsFrom]:
        """Devices that run a collective together, and what tells so."""
        if op.has_hlo:
            return op.groups, GroupsFrom.PROGRAM
        if op.groups:
            return op.groups, GroupsFrom.FILE
        if op.kind == SEND_RECEIVE:
            return tuple((device,) for device in device_of), GroupsFrom.NOBODY
        if at in self.last_ps and op.kind != "collective-permute":
            found = groups_by_ends(self.last_ps[at], self.time_ps[at])
            if found:
                return tuple(tuple(device_of[row] for row in group) for group in found), GroupsFrom.ENDS
        return (), GroupsFrom.NOTHING

    def wait(self, part_ps: Int64s, row_of: dict[int, int]) -> tuple[tuple[Collective, ...], Int64s]:
        """Tell waiting from transferring within `part_ps`; the collectives, the longest first, and what
        others waited for idling.

        Who comes later than the first of its group by no more than it works longer than that one did not come
        late for idling.
        """
        waited, whole = np.zeros(part_ps.shape[:2]), np.zeros(part_ps.shape[:2])
        busy = part_ps.sum(axis=2) - part_ps[:, :, [Part.COLLECTIVE, Part.RECV, Part.IDLE]].sum(axis=2)
        waited_in: dict[bytes, tuple[Int64s, Int64s]] = {}
        found = []
        for name, op in self.ops.items():
            if op.kind in ("send", "recv"):
                continue
            at = self.index[name]
            groups, known_by = self._groups(at, op, list(row_of))
            label = _labels(groups, row_of, part_ps.shape[0])
            spent = self.time_ps[at]
            least = _least(spent, label)
            waited += spent - least
            before = waited_in.setdefault(label.tobytes(), (label, np.zeros_like(spent)))[1]
            before += spent - least
            whole += spent
            found.append(self._collective(at, op, label, least, (groups, known_by)))
        late_idle = sum(
            (_late_idle(wait, busy, label) for label, wait in waited_in.values()),
            np.zeros(part_ps.shape[:2], np.int64),
        )
        share = np.divide(waited, whole, out=np.zeros_like(waited), where=whole > 0)
        moved = np.rint(part_ps[:, :, Part.COLLECTIVE] * share).astype(np.int64)
        part_ps[:, :, Part.COLLECTIVE] -= moved
        part_ps[:, :, Part.COLLECTIVE_WAIT] += moved
        return alike_together(found), late_idle

    def _collective(
        self,
        at: int,
        op: TransferOp,
        label: Int64s,
        least: Int64s,
        groups: tuple[tuple[tuple[int, ...], ...], GroupsFrom],
    ) -> Collective:
        """One operation: times per step and core that ran it. `least`: of each core and step the fastest
        participant's time.
        """
        spent, count = self.time_ps[at], self.count[at]
        n_ran = max(int((spent > 0).sum()), 1)
        often = float((count / self.n_captured)[count > 0].mean()) if (count > 0).any() else 0.0
        n_seen = int(np.bincount(label[count > 0]).max()) if (count > 0).any() else 0
        size = op.group_size or max(
            map(len, groups[0]), default=2 if len(op.pairs) else int((count > 0).sum())
        )
        transfer, wait = float(least.sum()) / n_ran, float((spent - least).sum()) / n_ran
        ordinals = (op.ordinal,) if op.ordinal >= 0 else ()
        return Collective(op, often, transfer, wait, groups[0], size, groups[1], n_seen, ordinals)

    def channels(self, row_of: dict[int, int], n_steps: int) -> tuple[tuple[Channel, ...], int]:
        """Links from core to core: of permutations, sends and receives whose pairs the HLO states, the
        busiest first.
        """
        found, n_unplaced = [], 0
        done = {op.starts_as: name for name, op in self.ops.items() if op.starts_as}
        receives = {
            op.channel_id: name
            for name, op in self.ops.items()
            if op.kind == "recv" and not op.starts_as and op.channel_id
        }
        for name, op in self.ops.items():
            if op.starts_as or op.kind == "recv" or not len(op.pairs):
                continue
            ready = receives.get(op.channel_id, name) if op.kind == "send" else name
            last = done.get(ready, ready)
            for source, target in op.pairs[:MAX_CHANNELS].tolist():
                a, b = row_of.get(source, -1), row_of.get(target, -1)
                if a < 0 or b < 0:
                    n_unplaced += 1
                    continue
                found.append(
                    self._channel((a, b), op, tuple(dict.fromkeys((name, ready, last))), (name, ready, last))
                )
        found.sort(key=lambda one: -one.size_bytes * max(one.n_per_step, 1e-9))
        return tuple(found[:MAX_CHANNELS]), n_unplaced

    def _channel(
        self, ends: tuple[int, int], op: TransferOp, names: tuple[str, ...], halves: tuple[str, str, str]
    ) -> Channel:
        send, ready, last = (self.index[name] for name in halves)
        a, b = ends
        delay = max(0.0, self.begin[send, a] - self.begin[ready, b])
        since = max(self.begin[send, a], self.begin[ready, b])
        latency = max(0.0, float(self.end[last, b] - since))
        often = float(self.count[send, a] / self.n_captured[a])
        size = max(op.size_bytes, self.ops[halves[1]].size_bytes if op.kind == "send" else 0)
        return Channel(a, b, names, op.channel_id, size, latency, float(delay), often)


def _labels(groups: tuple[tuple[int, ...], ...], row_of: dict[int, int], n_cores: int) -> Int64s:
    """The group of each core; cores in no group are one of their own, all together where there
    are no groups.
    """
    label = np.zeros(n_cores, np.int64)
    for number, group in enumerate(groups, 1):
        rows = [row_of[device] for device in group if device in row_of]
        label[rows] = number
    return label


def _late_idle(wait: Int64s, busy: Int64s, label: Int64s) -> Int64s:
    """By how much each core came later than the first of its group, who waited longest, without what it
    worked longer than that one.
    """
    is_first = wait == -_least(-wait, label, shown=True)
    of_first = _least(np.where(is_first, wait + busy, np.iinfo(np.int64).max), label, shown=True)
    result: Int64s = np.maximum(of_first - wait - busy, 0)
    return result


def _least(spent: Int64s, label: Int64s, shown: bool = False) -> Int64s:
    """For each core and step the least over the cores of its group, of those that took part (with `shown`: of
    all).
    """
    if not len(spent):
        return spent
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(label[order]) != 0))
    values = spent if shown else np.where(spent > 0, spent, np.iinfo(np.int64).max)
    least = np.minimum.reduceat(values[order], first, axis=0)
    of_core = np.empty(len(label), np.int64)
    of_core[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(label))))
    result: Int64s = least[of_core] if shown else np.minimum(least[of_core], spent)
    return result
