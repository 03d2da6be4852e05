"""Hosts combined into a pod: all cores in the steps that all hosts have, waiting separated from transferring,
links between cores.

The hosts' clocks only need to agree well enough to match their steps (`clocks` corrects them). Nothing else
compares clocks: the participant with the shortest collective arrived last, and other times are relative to
the start of each core's own step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.links import link_of
from tb_tpuprof.analysis.pod.collectives import Collective, GroupsFrom, merge_alike
from tb_tpuprof.analysis.pod.comms import merged
from tb_tpuprof.analysis.pod.groups import groups_by_ends
from tb_tpuprof.analysis.pod.host import PodCore, PodHost, steps_to_share
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.analysis.steps.combine import CommonSteps, common_steps
from tb_tpuprof.trace.collectives import SEND_RECEIVE

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MAX_CHANNELS = 20_000
_MOST_GAP_NS = 10**9  # by which unsynchronized clocks may be off
_MOST_GROUPED = 16  # operations whose groups are inferred from the times of all cores


@dataclass(frozen=True)
class Channel:
    """Data from one core to another, by one or several operations; means over occurrences.

    `send_delay_ps`: the time that the receiver was ready before the sender; it and `latency_ps` are NaN if
    one of the ends never ran. `halves`: the operations that begin at the source, begin at the target, and
    end at the target.
    """

    source: int
    target: int
    ops: tuple[str, ...]
    channel_id: int
    size_bytes: int
    latency_ps: float
    send_delay_ps: float
    n_per_step: float
    halves: tuple[str, str, str]


@dataclass(frozen=True)
class Pod:
    """`part_ps[core, step, part]` sums to `total_ps[core, step]`; `host_of[core]` is a row of `hosts`.

    `part_ps` is stored part by part, in the order it is read. `device_of`: the program's number of each core.
    `n_unplaced`: links with an end on hosts that were not captured or selected. `n_devices`: accelerators of
    these hosts. `all_idle_ps`: by step, the time in which no core of a host ran anything, and `host_step_ps`
    the step's time, both means over the hosts. `waited_ps[core, step]`: the waiting of all collectives, be it
    hidden or not. `first_step`: of each host, the row of its first common step. `apart`: hosts that were
    captured at another time, and the gap in ns.
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
    first_step: tuple[int, ...] = ()
    apart: tuple[tuple[str, int], ...] = ()
    waited_ps: Floats = field(default_factory=lambda: np.empty((0, 0)))

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
        """Whether waiting can be separated from transferring: there are no collectives, or one with several
        participants captured.
        """
        return not self.collectives or any(collective.is_wait_known for collective in self.collectives)

    @cached_property
    def has_ranks(self) -> bool:
        """Whether every core is a separate process with the job's rank."""
        ranks = [core.rank for core in self.cores]
        return bool(ranks) and min(ranks) >= 0 and len(set(ranks)) == len(ranks)

    def job_ps(self, since: int = 0) -> float:
        """Time in ps of a step of the job, mean of the steps from `since` on: the time of its slowest core.

        If cores wait for one another, that is the slowest core of each step, else the slowest over all steps.
        """
        total = self.total_ps[:, since:].astype(np.float64)
        if not total.size:
            return 0.0
        return float(total.max(axis=0).mean() if self.is_synchronous else total.mean(axis=1).max())

    @cached_property
    def own_ps(self) -> Int64s:
        """Time in ps of each core and step without waiting for others.

        If cores wait for one another, a core's idle time counts as its own up to the time that all cores are
        idle, plus the time by which its idling delayed others of its groups (`late_idle_ps`); the rest
        delayed no other core and counts as waiting.
        """
        own_ps: Int64s = (
            self.total_ps - self.part_ps[:, :, Part.COLLECTIVE_WAIT] - self.part_ps[:, :, Part.RECV]
        )
        if self.is_synchronous:
            idle = self.part_ps[:, :, Part.IDLE]
            longest_recv = self.part_ps[:, :, Part.RECV].max(axis=0, initial=0)
            own_ps = own_ps - np.maximum(idle - (idle.min(axis=0) + self.late_idle_ps + longest_recv), 0)
        return own_ps


def join(parts: Sequence[PodHost], correction_ns: Sequence[int] = ()) -> Pod:
    """Combine hosts into one pod. `correction_ns`: added to each host's clock; empty if all clocks agree.

    Hosts captured at another time than most hosts are left out: their steps have nothing in common.
    """
    added = list(correction_ns or (0,) * len(parts))
    apart = _hosts_apart([part.start_ns + add for part, add in zip(parts, added, strict=True)], parts)
    if apart:
        remaining = [i for i in range(len(parts)) if i not in apart]
        pod = join([parts[i] for i in remaining], [added[i] for i in remaining])
        return replace(pod, apart=tuple((parts[i].host, gap) for i, gap in apart.items()))
    common = common_steps(
        steps_to_share(parts), [part.start_ns + add for part, add in zip(parts, added, strict=True)]
    )
    used_hosts = [
        (part, rows)
        for part, rows in zip(parts, common.rows, strict=True)
        if rows.stop > rows.start and part.cores
    ]
    first = used_hosts[0][0] if used_hosts else parts[0]
    return _pod_of(used_hosts, first, common)


def _pod_of(used_hosts: Sequence[tuple[PodHost, slice]], first: PodHost, common: CommonSteps) -> Pod:
    """The pod of hosts with the rows of their common steps; `first` states its kind and device."""
    n_steps = len(common.steps) if used_hosts else 0
    cores = tuple(core for part, _ in used_hosts for core in part.cores)
    host_of = np.repeat(np.arange(len(used_hosts)), [len(part.cores) for part, _ in used_hosts]).astype(
        np.int64
    )
    by_part = [
        np.empty((N_PARTS, 0, n_steps), np.int64),
        *(part.part_ps[:, rows].transpose(2, 0, 1) for part, rows in used_hosts),
    ]
    part_ps = np.concatenate(
        by_part, axis=1, out=np.empty((N_PARTS, len(cores), n_steps), np.int64)
    ).transpose(1, 2, 0)
    total_ps = np.concatenate(
        [np.empty((0, n_steps), np.int64), *(part.total_ps[:, rows] for part, rows in used_hosts)]
    )
    transfers = _Transfers(used_hosts, len(cores), n_steps)
    device_of = _devices(cores, transfers.devices())
    row_of = {int(device): row for row, device in enumerate(device_of.tolist())}
    collectives, late_idle_ps, waited_ps = transfers.wait(part_ps, row_of)
    channels, n_unplaced = transfers.channels(row_of, n_steps)
    link = link_of(first.device)
    return Pod(
        tuple(part.host for part, _ in used_hosts),
        first.kind,
        first.device,
        cores,
        host_of,
        device_of,
        common.steps.name[:n_steps],
        part_ps,
        total_ps,
        tuple(replace(one, link_bytes_per_s=link.bytes_per_s) for one in collectives)
        if link
        else collectives,
        channels,
        common.n_without,
        common.is_disjoint,
        n_unplaced,
        late_idle_ps,
        sum(part.n_devices for part, _ in used_hosts),
        _mean([part.all_idle_ps[rows] for part, rows in used_hosts], n_steps),
        _mean([part.steps.duration_ps[rows] for part, rows in used_hosts], n_steps),
        first_step=tuple(rows.start for _, rows in used_hosts),
        waited_ps=waited_ps,
    )


def _mean(rows: Sequence[Int64s], n: int) -> Floats:
    result: Floats = np.mean(rows, axis=0) if rows else np.zeros(n)
    return result


def _hosts_apart(start_ns: Sequence[int], parts: Sequence[PodHost]) -> dict[int, int]:
    """Hosts whose steps do not overlap in time with those of the largest overlapping set, and the gap in ns
    (negative: before).

    The first of equally large sets counts. Clocks of hosts of one set may be off by a second.
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
        for other_set in sets
        if other_set is not largest
        for begin, end, i in other_set
    }


def _devices(cores: tuple[PodCore, ...], named_devices: set[int]) -> Int64s:
    """The program's number of each core: its rank or its id in the pod, if these are distinct, else its
    position.

    It is also its position if the program names as many devices as there are cores, but by numbers other than
    the cores' ids.
    """
    order = np.arange(len(cores), dtype=np.int64)
    ranks = np.array([core.rank for core in cores], np.int64)
    if len(ranks) and ranks.min() >= 0 and len(np.unique(ranks)) == len(ranks):
        return ranks
    ids = np.array([core.core_id for core in cores], np.int64)
    if not len(ids) or ids.min() < 0 or len(np.unique(ids)) < len(ids):
        return order
    return order if named_devices == set(order.tolist()) and not named_devices <= set(ids.tolist()) else ids


class _Transfers:
    """Transfers of all hosts by name: halves and times of each core."""

    def __init__(self, used_hosts: Sequence[tuple[PodHost, slice]], n_cores: int, n_steps: int) -> None:
        self.ops: dict[str, TransferOp] = {}
        for part, _ in used_hosts:
            for op in part.transfers.ops:
                existing = self.ops.get(op.name)
                if existing is None or (op.has_hlo and not existing.has_hlo):
                    self.ops[op.name] = op
                elif op.ordinal >= 0:
                    self.ops[op.name] = merged(existing, op)
        self.index = {name: i for i, name in enumerate(self.ops)}
        n = len(self.ops)
        self.time_ps = np.zeros((n, n_cores, n_steps), np.int64)
        self.begin, self.end = np.zeros((n, n_cores)), np.zeros((n, n_cores))
        self.count = np.zeros((n, n_cores), np.int64)
        self.n_captured = np.ones(n_cores, np.int64)
        self.last_ps: dict[int, Int64s] = {}
        first = 0
        for part, rows in used_hosts:
            core_rows = slice(first, first + len(part.cores))
            first = core_rows.stop
            self.n_captured[core_rows] = max(len(part.steps), 1)
            for i, op in enumerate(part.transfers.ops):
                row = self.index[op.name]
                self.time_ps[row, core_rows] = part.transfers.time_ps[:, rows, i]
                self.begin[row, core_rows], self.end[row, core_rows] = (
                    part.transfers.begin_ps[:, i],
                    part.transfers.end_ps[:, i],
                )
                self.count[row, core_rows] = part.transfers.count[:, i]
                if not op.states_groups:
                    self.last_ps.setdefault(row, np.zeros((n_cores, n_steps), np.int64))[core_rows] = (
                        part.transfers.last_ps[:, rows, i]
                    )
        longest = sorted(self.last_ps, key=lambda op_row: -int(self.time_ps[op_row].sum()))
        self.last_ps = {op_row: self.last_ps[op_row] for op_row in longest[:_MOST_GROUPED]}

    def devices(self) -> set[int]:
        """The program's devices named in groups and pairs."""
        return {
            device
            for op in self.ops.values()
            for members in (*op.groups, op.pairs.ravel().tolist())
            for device in members
        }

    def _groups(
        self, op_row: int, op: TransferOp, device_of: list[int]
    ) -> tuple[tuple[tuple[int, ...], ...], GroupsFrom]:
        """Devices that run a collective together, and the source of that information."""
        if op.has_hlo:
            return op.groups, GroupsFrom.PROGRAM
        if op.groups:
            return op.groups, GroupsFrom.FILE
        if op.kind == SEND_RECEIVE:
            return tuple((device,) for device in device_of), GroupsFrom.UNKNOWN
        if op_row in self.last_ps and op.kind != "collective-permute":
            groups = groups_by_ends(self.last_ps[op_row], self.time_ps[op_row])
            if groups:
                return tuple(tuple(device_of[row] for row in group) for group in groups), GroupsFrom.ENDS
        return (), GroupsFrom.NOTHING

    def wait(self, part_ps: Int64s, row_of: dict[int, int]) -> tuple[tuple[Collective, ...], Int64s, Floats]:
        """Separate waiting from transferring, in place in `part_ps`. Returns the collectives, longest first,
        the idle time in ps by which each core delayed others, and how long each waited in all of them.

        A core that arrives later than the first of its group because it works longer did not arrive late by
        idling.
        """
        waited, total = np.zeros(part_ps.shape[:2]), np.zeros(part_ps.shape[:2])
        busy = part_ps.sum(axis=2) - part_ps[:, :, [Part.COLLECTIVE, Part.RECV, Part.IDLE]].sum(axis=2)
        waited_in: dict[bytes, tuple[Int64s, Int64s]] = {}
        collectives = []
        for name, op in self.ops.items():
            if op.kind in ("send", "recv"):
                continue
            row = self.index[name]
            groups, known_by = self._groups(row, op, list(row_of))
            label = _labels(groups, row_of, part_ps.shape[0])
            spent = self.time_ps[row]
            least = _least(spent, label)
            waited += spent - least
            waited_with_label = waited_in.setdefault(label.tobytes(), (label, np.zeros_like(spent)))[1]
            waited_with_label += spent - least
            total += spent
            collectives.append(self._collective(row, op, label, least, (groups, known_by)))
        late_idle = sum(
            (_late_idle(wait, busy, label) for label, wait in waited_in.values()),
            np.zeros(part_ps.shape[:2], np.int64),
        )
        share = np.divide(waited, total, out=np.zeros_like(waited), where=total > 0)
        moved_ps = np.rint(part_ps[:, :, Part.COLLECTIVE] * share).astype(np.int64)
        part_ps[:, :, Part.COLLECTIVE] -= moved_ps
        part_ps[:, :, Part.COLLECTIVE_WAIT] += moved_ps
        return merge_alike(collectives), late_idle, waited

    def _collective(
        self,
        row: int,
        op: TransferOp,
        label: Int64s,
        least: Int64s,
        groups: tuple[tuple[tuple[int, ...], ...], GroupsFrom],
    ) -> Collective:
        """One collective: times per step and core that ran it. `least`: the fastest participant's time for
        each core and step.
        """
        spent, count = self.time_ps[row], self.count[row]
        n_ran = max(int((spent > 0).sum()), 1)
        n_per_step = float((count / self.n_captured)[count > 0].mean()) if (count > 0).any() else 0.0
        n_seen = int(np.bincount(label[count > 0]).max()) if (count > 0).any() else 0
        size = op.group_size or max(
            map(len, groups[0]), default=2 if len(op.pairs) else int((count > 0).sum())
        )
        transfer, wait = float(least.sum()) / n_ran, float((spent - least).sum()) / n_ran
        ordinals = (op.ordinal,) if op.ordinal >= 0 else ()
        last = _last_to_arrive(spent, least, label) if n_seen > 1 else (-1, 0.0)
        return Collective(op, n_per_step, transfer, wait, groups[0], size, groups[1], n_seen, ordinals, *last)

    def channels(self, row_of: dict[int, int], n_steps: int) -> tuple[tuple[Channel, ...], int]:
        """Links from core to core: of permutations, sends and receives whose pairs the HLO states, busiest
        first. Also returns the number of links that could not be placed.
        """
        links, n_unplaced = [], 0
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
                links.append(
                    self._channel((a, b), op, tuple(dict.fromkeys((name, ready, last))), (name, ready, last))
                )
        links.sort(key=lambda link: -link.size_bytes * max(link.n_per_step, 1e-9))
        return tuple(links[:MAX_CHANNELS]), n_unplaced

    def _channel(
        self, ends: tuple[int, int], op: TransferOp, names: tuple[str, ...], halves: tuple[str, str, str]
    ) -> Channel:
        send, ready, last = (self.index[name] for name in halves)
        a, b = ends
        delay = latency = float("nan")
        if self.count[send, a] and self.count[ready, b]:
            delay = max(0.0, float(self.begin[send, a] - self.begin[ready, b]))
            begin = max(self.begin[send, a], self.begin[ready, b])
            latency = max(0.0, float(self.end[last, b] - begin)) if self.count[last, b] else latency
        n_per_step = float(self.count[send, a] / self.n_captured[a])
        size = max(op.size_bytes, self.ops[halves[1]].size_bytes if op.kind == "send" else 0)
        return Channel(a, b, names, op.channel_id, size, latency, delay, n_per_step, halves)


def _labels(groups: tuple[tuple[int, ...], ...], row_of: dict[int, int], n_cores: int) -> Int64s:
    """The group of each core; cores in no group form a group of their own, and all cores if there are no
    groups.
    """
    label = np.zeros(n_cores, np.int64)
    for number, group in enumerate(groups, 1):
        rows = [row_of[device] for device in group if device in row_of]
        label[rows] = number
    return label


def _last_to_arrive(spent: Int64s, least: Int64s, label: Int64s) -> tuple[int, float]:
    """The core that most often arrives last, and its share of the steps in which its group waits for some
    core; (-1, 0) if none ever waits.
    """
    took_part = spent > 0
    waits = _least(least - spent, label, of_all=True) < 0
    count = (took_part & waits & (spent == least)).sum(axis=1)
    last = int(count.argmax()) if len(count) else 0
    n_steps = int((took_part & waits)[last].sum()) if len(count) else 0
    return (last, float(count[last]) / n_steps) if n_steps and count[last] else (-1, 0.0)


def _late_idle(wait: Int64s, busy: Int64s, label: Int64s) -> Int64s:
    """Time in ps by which each core arrived later than the first of its group (the one that waited longest),
    minus its additional work.
    """
    is_first = wait == -_least(-wait, label, of_all=True)
    of_first = _least(np.where(is_first, wait + busy, np.iinfo(np.int64).max), label, of_all=True)
    result: Int64s = np.maximum(of_first - wait - busy, 0)
    return result


def _least(spent: Int64s, label: Int64s, of_all: bool = False) -> Int64s:
    """For each core and step, the least value over the cores of its group that took part (with `of_all`: over
    all).
    """
    if not len(spent):
        return spent
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(label[order]) != 0))
    values = spent if of_all else np.where(spent > 0, spent, np.iinfo(np.int64).max)
    least = np.minimum.reduceat(values[order], first, axis=0)
    of_core = np.empty(len(label), np.int64)
    of_core[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(label))))
    result: Int64s = least[of_core] if of_all else np.minimum(least[of_core], spent)
    return result
