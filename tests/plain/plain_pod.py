"""A pod of several hosts, as the documentation of the pod viewer defines it, in plain loops over cores and
steps.

Groups that neither HLO nor file states come from `groups_by_ends`, which has its own tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.pod.groups import groups_by_ends
from tb_tpuprof.analysis.pod.host import PodHost
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tests.plain.plain_steps import plain_steps

_SECOND_NS = 10**9
_MOST_GROUPED = 16
_IDLE_OR_OTHERS = (Part.COLLECTIVE, Part.RECV, Part.IDLE)
Place = tuple[int, int]  # core, step


@dataclass
class PlainCollective:
    """As `Collective`; `names`: the operations combined in it."""

    names: list[str]
    n_per_step: float
    transfer_ps: float
    wait_ps: float
    groups: tuple[tuple[int, ...], ...]
    group_size: int
    n_seen: int
    key: object


class PlainPod:
    """All values by core and step, in dictionaries."""

    def __init__(self, parts: Sequence[PodHost], added: Sequence[int]) -> None:
        starts = [part.start_ns + add for part, add in zip(parts, added or [0] * len(parts), strict=True)]
        self.apart = captured_apart(parts, starts)
        together = [i for i, part in enumerate(parts) if part.host not in self.apart]
        common = plain_steps([parts[i].steps for i in together], [starts[i] for i in together])
        self.names = common.names
        self.hosts = [
            (parts[i], rows) for i, rows in zip(together, common.rows, strict=True) if rows and parts[i].cores
        ]
        self.cores = [(part, k, rows) for part, rows in self.hosts for k in range(len(part.cores))]
        self.n_steps = len(self.names) if self.hosts else 0
        self.ops = self._ops()
        self.device_of = self._devices()
        self.part_ps = {
            (core, step): [int(value) for value in part.part_ps[k, rows[step]]]
            for core, (part, k, rows) in enumerate(self.cores)
            for step in range(self.n_steps)
        }
        self.total_ps = {
            (core, step): int(part.total_ps[k, rows[step]])
            for core, (part, k, rows) in enumerate(self.cores)
            for step in range(self.n_steps)
        }
        self.late_idle: dict[Place, int] = dict.fromkeys(self.part_ps, 0)
        self.collectives: list[PlainCollective] = []
        self._tell_waiting()

    def mean_by_step(self, name: str) -> list[float]:
        """Mean over the hosts of a value by step."""
        values = [
            [
                float(part.all_idle_ps[row] if name == "all_idle" else part.steps.duration_ps[row])
                for row in rows
            ]
            for part, rows in self.hosts
        ]
        return [sum(column) / len(values) for column in zip(*values, strict=True)] if values else []

    def _ops(self) -> dict[str, TransferOp]:
        """Operations by name: the first host's, or the first with HLO; for PyTorch, the union of what hosts
        state.
        """
        by_name: dict[str, TransferOp] = {}
        for part, _ in self.hosts:
            for op in part.transfers.ops:
                if op.name not in by_name or (op.has_hlo and not by_name[op.name].has_hlo):
                    by_name[op.name] = op
                elif op.ordinal >= 0:
                    op_of_core = by_name[op.name]
                    by_name[op.name] = replace(
                        op_of_core,
                        groups=tuple(sorted(set(op_of_core.groups) | set(op.groups))),
                        size_bytes=max(op_of_core.size_bytes, op.size_bytes),
                        group_size=max(op_of_core.group_size, op.group_size),
                        dtype=op_of_core.dtype or op.dtype,
                    )
        return by_name

    def _devices(self) -> list[int]:
        """The program's device number of each core: its rank, its id in the pod, or its position."""
        ranks = [part.cores[k].rank for part, k, _ in self.cores]
        ids = [part.cores[k].core_id for part, k, _ in self.cores]
        places = list(range(len(self.cores)))
        named = {device for op in self.ops.values() for group in op.groups for device in group}
        named |= {int(device) for op in self.ops.values() for pair in op.pairs for device in pair}
        if _distinct(ranks):
            return ranks
        if not _distinct(ids) or (named == set(places) and not named <= set(ids)):
            return places
        return ids

    def of(self, name: str, table: str, core: int, step: int = -1) -> float:
        """A value of an operation on a core; 0 if its host has no such operation."""
        part, k, rows = self.cores[core]
        for i, op in enumerate(part.transfers.ops):
            if op.name == name:
                values = getattr(part.transfers, table)
                return float(values[k, i] if step < 0 else values[k, rows[step], i])
        return 0.0

    def _tell_waiting(self) -> None:
        """For each collective, group and step, the shortest participant's time is transfer, the rest is
        waiting.
        """
        waited: dict[Place, float] = dict.fromkeys(self.part_ps, 0.0)
        total_ps: dict[Place, float] = dict.fromkeys(self.part_ps, 0.0)
        by_grouping: dict[tuple[int, ...], dict[Place, float]] = {}
        grouped = self._grouped_by_ends()
        for name, op in self.ops.items():
            if op.kind in ("send", "recv"):
                continue
            groups = self._groups(op, grouped)
            group_of = [
                max((n for n, group in enumerate(groups, 1) if device in group), default=0)
                for device in self.device_of
            ]
            waits = by_grouping.setdefault(tuple(group_of), dict.fromkeys(self.part_ps, 0.0))
            transfer = wait = 0.0
            n_ran = 0
            for core, step in self.part_ps:
                spent = self.of(name, "time_ps", core, step)
                if not spent:
                    continue
                other_cores = [
                    self.of(name, "time_ps", i, step)
                    for i, own in enumerate(group_of)
                    if own == group_of[core]
                ]
                least = min(time for time in other_cores if time > 0)
                n_ran += 1
                transfer, wait = transfer + least, wait + spent - least
                waited[core, step] += spent - least
                total_ps[core, step] += spent
                waits[core, step] += spent - least
            self.collectives.append(self._collective(op, (transfer, wait, n_ran), groups, group_of))
        for group, waits in by_grouping.items():
            self._add_late_idle(group, waits)
        for place, parts in self.part_ps.items():
            moved = (
                round(parts[Part.COLLECTIVE] * (waited[place] / total_ps[place])) if total_ps[place] else 0
            )
            parts[Part.COLLECTIVE] -= moved
            parts[Part.COLLECTIVE_WAIT] += moved
        self._put_together()

    def _grouped_by_ends(self) -> set[str]:
        """The longest operations for which some host states no groups."""
        unstated = {
            op.name: self._total(op.name)
            for part, _ in self.hosts
            for op in part.transfers.ops
            if not op.states_groups
        }
        order = list(self.ops)
        ranked = sorted(unstated, key=lambda name: (-unstated[name], order.index(name)))
        return set(ranked[:_MOST_GROUPED])

    def _total(self, name: str) -> float:
        return sum(self.of(name, "time_ps", core, step) for core, step in self.part_ps)

    def _groups(self, op: TransferOp, grouped: set[str]) -> tuple[tuple[int, ...], ...]:
        if op.has_hlo or op.groups:
            return op.groups
        if op.kind == "send-receive":
            return tuple((device,) for device in self.device_of)
        if op.name not in grouped or op.kind == "collective-permute":
            return ()
        shape = len(self.cores), self.n_steps
        last, spent = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for core, (part, _, _) in enumerate(self.cores):
            own_op = next((one for one in part.transfers.ops if one.name == op.name), None)
            for step in range(self.n_steps):
                spent[core, step] = self.of(op.name, "time_ps", core, step)
                if own_op is not None and not own_op.states_groups:
                    last[core, step] = self.of(op.name, "last_ps", core, step)
        return tuple(tuple(self.device_of[row] for row in group) for group in groups_by_ends(last, spent))

    def _collective(
        self,
        op: TransferOp,
        times: tuple[float, float, int],
        groups: tuple[tuple[int, ...], ...],
        group_of: list[int],
    ) -> PlainCollective:
        """Times per step and core that ran it, and occurrences per step on these cores."""
        counts = {core: self.of(op.name, "count", core) for core in range(len(self.cores))}
        ran = [core for core, count in counts.items() if count]
        often = [counts[core] / max(len(self.cores[core][0].steps), 1) for core in ran]
        group_sizes = [sum(group_of[core] == group for core in ran) for group in set(group_of)]
        size = op.group_size
        if not size and groups:
            size = max(len(group) for group in groups)
        elif not size:
            size = 2 if len(op.pairs) else len(ran)
        transfer, wait, n_ran = times
        alike = (op.kind, op.process_group, op.size_bytes, op.dtype) if op.ordinal >= 0 else op.name
        mean = sum(often) / len(often) if often else 0.0
        return PlainCollective(
            [op.name],
            mean,
            transfer / max(n_ran, 1),
            wait / max(n_ran, 1),
            groups,
            size,
            max(group_sizes, default=0),
            alike,
        )

    def _add_late_idle(self, group_of: tuple[int, ...], waits: dict[Place, float]) -> None:
        """How much later than the first core of its group (the one that waited longest) a core came, minus
        its extra work.
        """
        for core, step in self.part_ps:
            mates = [i for i, group in enumerate(group_of) if group == group_of[core]]
            longest = max(waits[i, step] for i in mates)
            first = min(waits[i, step] + self._busy(i, step) for i in mates if waits[i, step] == longest)
            self.late_idle[core, step] += int(max(first - waits[core, step] - self._busy(core, step), 0))

    def _busy(self, core: int, step: int) -> int:
        return sum(self.part_ps[core, step][part] for part in range(N_PARTS) if part not in _IDLE_OR_OTHERS)

    def _put_together(self) -> None:
        """Combine alike collectives of PyTorch; sort by time, longest first."""
        rows: dict[object, PlainCollective] = {}
        for collective in self.collectives:
            if collective.key not in rows:
                rows[collective.key] = collective
                continue
            row = rows[collective.key]
            row.names += collective.names
            row.n_per_step += collective.n_per_step
            row.transfer_ps += collective.transfer_ps
            row.wait_ps += collective.wait_ps
            row.n_seen = min(row.n_seen, collective.n_seen)
        self.collectives = sorted(rows.values(), key=lambda row: -(row.transfer_ps + row.wait_ps))

    def channels(self) -> tuple[list[tuple[object, ...]], int]:
        """Links (from, to, operations, bytes, latency, delay, occurrences per step), busiest first; and the
        number that lead out.
        """
        links: list[tuple[object, ...]] = []
        n_out = 0
        row_of = {device: row for row, device in enumerate(self.device_of)}
        for name, op in self.ops.items():
            if op.starts_as or op.kind == "recv" or not len(op.pairs):
                continue
            ready, size = name, op.size_bytes
            if op.kind == "send":
                for receiver in self.ops.values():
                    if (
                        receiver.kind == "recv"
                        and not receiver.starts_as
                        and receiver.channel_id == op.channel_id != 0
                    ):
                        ready = receiver.name
                size = max(size, self.ops[ready].size_bytes)
            last = next(
                (receiver.name for receiver in self.ops.values() if receiver.starts_as == ready), ready
            )
            for source, target in op.pairs.tolist():
                if source not in row_of or target not in row_of:
                    n_out += 1
                    continue
                a, b = row_of[source], row_of[target]
                sent, waited = self.of(name, "begin_ps", a), self.of(ready, "begin_ps", b)
                has_both = self.of(name, "count", a) > 0 and self.of(ready, "count", b) > 0
                is_received = has_both and self.of(last, "count", b) > 0
                delay = max(0.0, sent - waited) if has_both else math.nan
                ended = self.of(last, "end_ps", b)
                latency = max(0.0, ended - max(sent, waited)) if is_received else math.nan
                often = self.of(name, "count", a) / max(len(self.cores[a][0].steps), 1)
                names = tuple(dict.fromkeys((name, ready, last)))
                links.append((a, b, names, size, latency, delay, often))
        return sorted(links, key=lambda one: -one[3] * max(one[6], 1e-9)), n_out  # type: ignore[operator,type-var]

    @property
    def is_synchronous(self) -> bool:
        """Whether cores wait for one another within steps."""
        if len(self.cores) < 2:
            return False
        waits = (Part.COLLECTIVE, Part.COLLECTIVE_WAIT, Part.RECV)
        return bool(self.collectives) or any(parts[part] for parts in self.part_ps.values() for part in waits)

    def own_ps(self, core: int, step: int) -> int:
        """The step without waiting, or idling, for other cores."""
        parts = self.part_ps[core, step]
        own_ps = self.total_ps[core, step] - parts[Part.COLLECTIVE_WAIT] - parts[Part.RECV]
        if not self.is_synchronous:
            return own_ps
        every = [self.part_ps[i, step] for i in range(len(self.cores))]
        all_idle = min(one[Part.IDLE] for one in every)
        received = max(one[Part.RECV] for one in every)
        return own_ps - max(parts[Part.IDLE] - all_idle - self.late_idle[core, step] - received, 0)

    def job_ps(self, since: int) -> float:
        """The job's step: the slowest core's in each step, or that of the core that is slowest overall."""
        steps = range(since, self.n_steps)
        cores = range(len(self.cores))
        if not steps or not cores:
            return 0.0
        if self.is_synchronous:
            return sum(max(self.total_ps[core, step] for core in cores) for step in steps) / len(steps)
        return max(sum(self.total_ps[core, step] for step in steps) / len(steps) for core in cores)


def captured_apart(parts: Sequence[PodHost], start_ns: Sequence[int]) -> dict[str, int]:
    """Hosts captured a second or more before or after the largest set of hosts, and the gap in ns."""
    spans = {}
    for part, start in zip(parts, start_ns, strict=True):
        if len(part.steps):
            begin = min(part.steps.start_ps.tolist())
            end = max((part.steps.start_ps + part.steps.duration_ps).tolist())
            spans[part.host] = (start + begin // 1000, start + end // 1000)
    sets: list[list[str]] = []
    for host, span in spans.items():
        near = [one for one in sets if any(_near(span, spans[other]) for other in one)]
        sets = [one for one in sets if one not in near] + [[host, *(other for one in near for other in one)]]
    if len(sets) < 2:
        return {}
    most = max(len(one) for one in sets)
    largest = min(
        (one for one in sets if len(one) == most), key=lambda one: min(spans[host][0] for host in one)
    )
    first, last = min(spans[host][0] for host in largest), max(spans[host][1] for host in largest)
    return {
        host: begin - last if begin >= last else end - first
        for host, (begin, end) in spans.items()
        if host not in largest
    }


def _near(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] + _SECOND_NS and other[0] < one[1] + _SECOND_NS


def _distinct(numbers: list[int]) -> bool:
    return bool(numbers) and min(numbers) >= 0 and len(set(numbers)) == len(numbers)
