"""Hosts' transfers between slices → means of each rendezvous, and what they cost each host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.dcn.ops import Half, Rendezvous
from tb_tpuprof.analysis.dcn.transfers import DcnHost

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Summary:
    """By rendezvous, the longest total stall first: means over occurrences on all cores. `stall_ps`: by half,
    [n, 4]; `n_hosts`, `n_cores`: that run it; `most_on_host`: the most cores of one host that do.

    `host_stall_ps` by half [n_hosts, 4] and `host_span_ps`: sums over the cores of each host, in the order of
    `hosts`; `host_bytes`: what its cores sent, without transfers of unknown size; `host_worst`: the
    rendezvous with the longest total stall on the host, -1 none.
    """

    rendezvous: tuple[Rendezvous, ...]
    count: Int64s
    n_hosts: Int64s
    n_cores: Int64s
    most_on_host: Int64s
    slack_ps: Floats
    observed_ps: Floats
    stall_ps: Floats
    hosts: tuple[str, ...]
    host_cores: Int64s
    host_stall_ps: Floats
    host_span_ps: Floats
    host_count: Int64s
    host_bytes: Floats
    host_worst: Int64s

    @property
    def total_stall_ps(self) -> Floats:
        """Sum of all occurrences' stalls, by rendezvous."""
        result: Floats = self.stall_ps.sum(axis=1) * self.count
        return result

    @property
    def network_bytes(self) -> Floats:
        """Bytes that a core sends each time, NaN unknown."""
        sizes = [one.network_bytes for one in self.rendezvous]
        return np.array([np.nan if size is None else size for size in sizes], np.float64)

    @property
    def required_bytes_per_s(self) -> Floats:
        """The bandwidth that one core needs to send within the slack; infinite without slack, NaN unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            result: Floats = self.network_bytes / self.slack_ps * 1e12
        return result

    @property
    def stall_fraction(self) -> float:
        """Share of the cores' time, from their first operation to their last, that transfers stall them."""
        span = float(self.host_span_ps.sum())
        return float(self.host_stall_ps.sum()) / span if span > 0 else 0.0


def summary(parts: Sequence[DcnHost]) -> Summary:
    """All hosts together. A rendezvous of one name is the same on all hosts."""
    codes: dict[str, int] = {}
    facts: list[Rendezvous] = []
    code_of: list[Int64s] = []
    for part in parts:
        for one in part.rendezvous:
            code = codes.setdefault(one.name, len(codes))
            if code == len(facts):
                facts.append(one)
            else:
                facts[code] = _merged(facts[code], one)
        code_of.append(np.array([codes[one.name] for one in part.rendezvous], np.int64))
    totals = _Totals(len(facts), len(parts), np.array([one.network_bytes or 0.0 for one in facts]))
    for row, (part, codes_of_part) in enumerate(zip(parts, code_of, strict=True)):
        totals.add(row, part, codes_of_part)
    return totals.summary(tuple(facts), tuple(part.host for part in parts))


class _Totals:
    """Sums over occurrences, by rendezvous and by host."""

    def __init__(self, n: int, n_hosts: int, network_bytes: Floats) -> None:
        self.network_bytes = network_bytes
        self.count, self.n_hosts, self.n_cores, self.most = (np.zeros(n, np.int64) for _ in range(4))
        self.slack, self.observed, self.stall = np.zeros(n), np.zeros(n), np.zeros((n, len(Half)))
        self.host_cores, self.host_count = np.zeros(n_hosts, np.int64), np.zeros(n_hosts, np.int64)
        self.host_span, self.host_bytes = np.zeros(n_hosts), np.zeros(n_hosts)
        self.host_stall = np.zeros((n_hosts, len(Half)))
        self.host_worst = np.full(n_hosts, -1, np.int64)

    def add(self, row: int, part: DcnHost, codes: Int64s) -> None:
        """Add a host. `codes`: the rendezvous of its list among all."""
        n, occurrences = len(self.count), part.occurrences
        self.host_cores[row], self.host_span[row] = len(part.cores), part.span_ps.sum()
        if not len(occurrences):
            return
        code = codes[occurrences.rendezvous]
        self.count += np.bincount(code, minlength=n)
        self.slack += np.bincount(code, occurrences.slack_ps, n)
        self.observed += np.bincount(code, occurrences.end_ps - occurrences.start_ps, n)
        by_half = np.stack([np.bincount(code, occurrences.stall_ps[:, half], n) for half in Half], axis=1)
        self.stall += by_half
        runs_on = np.zeros((n, int(occurrences.core.max()) + 1), np.bool_)
        runs_on[code, occurrences.core] = True
        cores = runs_on.sum(axis=1)
        self.n_cores += cores
        self.n_hosts += cores > 0
        self.most = np.maximum(self.most, cores)
        self.host_count[row], self.host_stall[row] = len(occurrences), by_half.sum(axis=0)
        self.host_bytes[row] = self.network_bytes[code].sum()
        self.host_worst[row] = by_half.sum(axis=1).argmax()

    def summary(self, facts: tuple[Rendezvous, ...], hosts: tuple[str, ...]) -> Summary:
        """Means, without rendezvous that never completed."""
        order = np.argsort(-self.stall.sum(axis=1), kind="stable")
        order = order[self.count[order] > 0]
        place = np.full(len(self.count) + 1, -1, np.int64)
        place[order] = np.arange(len(order))
        count = self.count[order]
        return Summary(
            tuple(facts[i] for i in order.tolist()),
            count,
            self.n_hosts[order],
            self.n_cores[order],
            self.most[order],
            self.slack[order] / count,
            self.observed[order] / count,
            self.stall[order] / count[:, None],
            hosts,
            self.host_cores,
            self.host_stall,
            self.host_span,
            self.host_count,
            self.host_bytes,
            place[self.host_worst],
        )


def _merged(first: Rendezvous, second: Rendezvous) -> Rendezvous:
    return replace(
        first,
        transfer_type=first.transfer_type or second.transfer_type,
        size_bytes=max(first.size_bytes, second.size_bytes),
        group_size=first.group_size or second.group_size,
        send_op=first.send_op or second.send_op,
        recv_op=first.recv_op or second.recv_op,
    )
