"""Hosts combined: the communication of all devices in the steps that all hosts have, and of each operation.

Groups, sizes, waiting and the last to arrive are those of the pod (`analysis/pod`); hidden and exposed times
are summed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import N_TRAFFIC, CommOp, Traffic
from tb_tpuprof.analysis.comm.host import CommHost
from tb_tpuprof.analysis.pod.collectives import Collective
from tb_tpuprof.analysis.pod.host import PodCore, steps_to_share
from tb_tpuprof.analysis.pod.join import Pod, join
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.analysis.steps.combine import common_steps

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OpTimes:
    """One operation, or PyTorch's alike collectives together. Times in ps are means per step and device, so
    those of all operations add up to the page's.

    `elapsed_ps`: from start to end; `n_per_step`: mean number of runs per step and device that has any.
    `n_runs`: in the whole trace, of which compute covers at least 90%, less, at most 10%. `pod`: what the pod
    knows of it; None for copies, and where it ran in no step.
    """

    op: CommOp
    hidden_ps: float
    exposed_ps: float
    elapsed_ps: float
    n_per_step: float
    n_runs: tuple[int, int, int]
    pod: Collective | None

    @property
    def total_ps(self) -> float:
        """Hidden and exposed."""
        return self.hidden_ps + self.exposed_ps

    @property
    def timed(self) -> Collective | None:
        """The collective as its bandwidth is computed: an asynchronous one by the time from its start to its
        done, which is at least as long as the transfer.
        """
        if self.pod is None or not self.op.is_async:
            return self.pod
        whole = replace(self.pod.op, is_half=False)
        return replace(self.pod, op=whole, transfer_ps=self.elapsed_ps, n_per_step=self.n_per_step)

    @property
    def bytes_per_s(self) -> tuple[float | None, float | None]:
        """Algorithm and bus bandwidth; None where the size, the group or the time is unknown."""
        collective = self.timed
        if collective is not None:
            return collective.algorithm_bytes_per_s, collective.bus_bytes_per_s
        if not self.op.size_bytes or self.elapsed_ps <= 0:
            return None, None
        rate = self.op.size_bytes * self.n_per_step / self.elapsed_ps * 1e12
        return rate, rate


@dataclass(frozen=True)
class Comm:
    """The communication of a run. Arrays are int64[devices, steps] in ps; `hidden_ps`, `partly_ps` and
    `exposed_ps` also by Traffic. `begin_ps`: on the host's own clock. `host_of[device]` is a row of `hosts`.
    `ops`: the most exposed first.
    """

    pod: Pod
    hosts: tuple[str, ...]
    host_of: Int64s
    cores: tuple[PodCore, ...]
    step_names: tuple[str, ...]
    rows_of_host: tuple[slice, ...]
    begin_ps: Int64s
    total_ps: Int64s
    compute_ps: Int64s
    hidden_ps: Int64s
    partly_ps: Int64s
    exposed_ps: Int64s
    ops: tuple[OpTimes, ...]

    @cached_property
    def waiting_ps(self) -> Floats:
        """Of the exposed time of each device and step, at least this much is waiting for other devices: what
        was waited in collectives, less the time of theirs that is hidden.
        """
        if self.pod.waited_ps.shape != self.total_ps.shape:
            return np.zeros(self.total_ps.shape)
        # A TPU core waits in operations of its own line: never while it computes.
        hidden = 0 if self.pod.kind == "TPU" else self.hidden_ps[:, :, Traffic.DEVICES]
        result: Floats = np.clip(self.pod.waited_ps - hidden, 0, self.exposed_ps[:, :, Traffic.DEVICES])
        return result

    @cached_property
    def gain_ps(self) -> Floats:
        """By how much each step of each device would be shorter, at most, with all its communication hidden.

        Data moves for as long as now; waiting for others stays; so only compute that hides nothing yet can
        hide more. Devices of a CPU share the host's steps, which last at least as long as the
        longest compute among them: their waiting is unknown.
        """
        exposed = self.exposed_ps.sum(axis=2) - self.waiting_ps
        free = self.compute_ps - self.hidden_ps.sum(axis=2)
        if self.pod.kind not in ("TPU", "GPU"):
            exposed = np.minimum(exposed, self.total_ps - self._longest_compute_ps)
        result: Floats = np.maximum(np.minimum(exposed, free), 0)
        return result

    @property
    def _longest_compute_ps(self) -> Int64s:
        """For each device and step, the longest compute of a device of its host; int64[devices, steps]."""
        longest = np.zeros((len(self.hosts), self.compute_ps.shape[1]), np.int64)
        np.maximum.at(longest, self.host_of, self.compute_ps)
        return longest[self.host_of]

    @property
    def shown(self) -> tuple[int, int]:
        """The device that is exposed most, and its step with the median of its exposed times."""
        exposed = self.exposed_ps.sum(axis=2)
        device = int(exposed.mean(axis=1).argmax())
        return device, self.median_step(device)

    def median_step(self, device: int) -> int:
        """The step of a device with the median of its exposed times; of two the later one."""
        exposed = self.exposed_ps[device].sum(axis=1)
        return int(np.argsort(exposed, kind="stable")[len(exposed) // 2])

    @property
    def has_traffic(self) -> bool:
        """Whether anything moves data in these steps."""
        return bool(self.hidden_ps.any() or self.exposed_ps.any())

    @cached_property
    def pod_wait_ps(self) -> float | None:
        """Mean waiting in collectives per step and device, as on the pod viewer; None if it is unknown."""
        pod = self.pod
        if not pod.collectives or not pod.is_wait_known or pod.part_ps.shape[:2] != self.total_ps.shape:
            return None
        return float(pod.part_ps[:, :, Part.COLLECTIVE_WAIT].mean())


def join_comm(parts: Sequence[CommHost], correction_ns: Sequence[int] = ()) -> Comm:
    """Combine hosts. `correction_ns`: added to each host's clock; empty if all clocks agree.

    As in the pod viewer, hosts that were captured at another time than most are left out.
    """
    added = list(correction_ns or (0,) * len(parts))
    pod = join([part.pod for part in parts], added)
    apart = dict(pod.apart)
    kept = [i for i, part in enumerate(parts) if part.pod.host not in apart]
    common = common_steps(
        steps_to_share([parts[i].pod for i in kept]), [parts[i].pod.start_ns + added[i] for i in kept]
    )
    used = [
        (parts[i], rows)
        for i, rows in zip(kept, common.rows, strict=True)
        if rows.stop > rows.start and parts[i].cores
    ]
    n_steps = used[0][1].stop - used[0][1].start if used else 0
    host_of = np.repeat(np.arange(len(used)), [len(part.cores) for part, _ in used]).astype(np.int64)

    def stacked(times_of: Callable[[CommHost], Int64s], *more: int) -> Int64s:
        arrays = [times_of(part)[:, rows] for part, rows in used]
        return np.concatenate([np.empty((0, n_steps, *more), np.int64), *arrays])

    return Comm(
        pod,
        tuple(part.pod.host for part, _ in used),
        host_of,
        tuple(core for part, _ in used for core in part.cores),
        common.steps.name[:n_steps],
        tuple(rows for _, rows in used),
        stacked(lambda part: part.begin_ps),
        stacked(lambda part: part.total_ps),
        stacked(lambda part: part.compute_ps),
        stacked(lambda part: part.hidden_ps, N_TRAFFIC),
        stacked(lambda part: part.partly_ps, N_TRAFFIC),
        stacked(lambda part: part.exposed_ps, N_TRAFFIC),
        _ops(used, pod, len(host_of) * n_steps),
    )


def _ops(used: Sequence[tuple[CommHost, slice]], pod: Pod, n_device_steps: int) -> tuple[OpTimes, ...]:
    """The operations of all hosts, the most exposed first. Operations of one name are one; so are PyTorch's
    collectives that the pod viewer shows in one row.
    """
    row_of = dict(_transfer_rows(pod))
    keys: dict[object, int] = {}
    found: list[tuple[CommOp, Collective | None]] = []
    sums: list[Int64s] = []
    for part, rows in used:
        local = np.zeros(len(part.ops), np.int64)
        for code, op in enumerate(part.ops):
            row = next((row_of[name] for name in op.transfers if name in row_of), -1)
            # Asynchronous operations keep their names: the pod viewer lists their halves.
            key = row if row >= 0 and not op.is_async else op.name
            if key not in keys:
                keys[key] = len(found)
                found.append((op, pod.collectives[row] if row >= 0 else None))
            local[code] = keys[key]
        sums.append(_sums(part, rows, local, len(found)))
    total = np.zeros((len(found), 10))
    for each in sums:
        total[: len(each)] += each
    result = [
        _times(op, collective, values, n_device_steps)
        for (op, collective), values in zip(found, total.tolist(), strict=True)
        if any(values[:3])
    ]
    return tuple(sorted(result, key=lambda one: (-one.exposed_ps, -one.hidden_ps, one.op.name)))


def _transfer_rows(pod: Pod) -> Iterator[tuple[str, int]]:
    """Names of transfers, each with the row of the pod's collectives that it is in."""
    for row, collective in enumerate(pod.collectives):
        op = collective.op
        for ordinal in collective.ordinals:
            yield f"{op.kind} #{ordinal + 1}" + (f" of {op.process_group}" if op.process_group else ""), row
        if not collective.ordinals:
            yield op.name, row


def _sums(part: CommHost, rows: slice, code: Int64s, n: int) -> Int64s:
    """By operation: hidden, exposed and elapsed time, runs, the devices and steps that have any, and the runs
    in the whole trace by coverage (three columns), the bytes that the runs state, and the runs that state
    none; int64[n, 10].
    """
    result = np.zeros((n, 10), np.int64)
    table = part.rows
    in_common = np.flatnonzero((table.step >= rows.start) & (table.step < rows.stop))
    op = code[table.op[in_common]]
    for column, values in enumerate((table.hidden_ps, table.exposed_ps, table.elapsed_ps, table.n)):
        np.add.at(result[:, column], op, values[in_common])
    n_steps = max(rows.stop - rows.start, 1)
    place = table.core[in_common] * n_steps + table.step[in_common] - rows.start
    pairs = np.unique(op * (n_steps * max(len(part.cores), 1)) + place)
    np.add.at(result[:, 4], pairs // (n_steps * max(len(part.cores), 1)), 1)
    for column in range(3):
        np.add.at(result[:, 5 + column], code, part.n_runs[:, column])
    for column, values in ((8, table.n_bytes), (9, table.n_unsized)):
        np.add.at(result[:, column], op, values[in_common])
    return result


def _times(op: CommOp, collective: Collective | None, values: list[float], n: int) -> OpTimes:
    hidden, exposed, elapsed, runs, places = values[:5]
    covered = (int(values[5]), int(values[6]), int(values[7]))
    n_bytes, n_unsized = values[8:]
    if runs and not n_unsized:
        op = replace(op, size_bytes=round(n_bytes / runs))
    if collective is not None and not op.is_async:
        op = replace(op, name=collective.title)
    # Elapsed time per run of the devices that run it, so that devices without it do not make it faster.
    return OpTimes(
        op, hidden / n, exposed / n, elapsed / max(places, 1), runs / max(places, 1), covered, collective
    )
