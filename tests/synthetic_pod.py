"""Synthetic TPU pods: many hosts and cores in lockstep, with planted slowness, collectives with replica
groups, and links.

Each step on each core; whoever computes longer arrives later at the all-reduce, and all of its group leave it
together:

    XLA Ops   ▪infeed▪ ■■■■ convolution fusion ■■■■ ▫▫ all-reduce ▫▫ ▫permute▫
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.host import PodCore, PodHost, Transfers
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.analysis.steps.classes import N_CLASSES
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

Floats = npt.NDArray[np.float64]
PROGRAM = 7
INFEED_US, COMPUTE_US, TRANSFER_US, PERMUTE_US, IDLE_US = 50, 700, 100, 40, 10


@dataclass(frozen=True)
class Pod:
    """`slow`: (host, first step, extra µs, what) with what `compute`, `infeed` or `stall` (idle before it);
    `slow_cores`: by core.

    `noise`: of the compute time, relative.

    Cores of the pod are numbered host after host; each of `n_groups` runs its own all-reduce, and every core
    passes 1 MiB to the next core.
    """

    n_hosts: int = 4
    n_chips: int = 2
    n_steps: int = 8
    slow: tuple[tuple[int, int, float, str], ...] = ()
    noise: float = 0.0
    seed: int = 0
    n_groups: int = 2
    slow_cores: tuple[tuple[int, int, float, str], ...] = ()

    @property
    def n_cores(self) -> int:
        """Of the pod; two on a chip."""
        return self.n_hosts * self.n_chips * 2

    @property
    def groups(self) -> list[list[int]]:
        """Replica groups of the all-reduce."""
        size = self.n_cores // self.n_groups
        return [list(range(first, first + size)) for first in range(0, self.n_cores, size)]


def hlo(pod: Pod) -> bytes:
    """The program: an all-reduce in two groups and a permutation to the next core."""
    block = array(512, 512)
    pairs = [{1: core, 2: (core + 1) % pod.n_cores} for core in range(pod.n_cores)]
    ops = [
        instruction(1, "parameter", block),
        instruction(3, "all-reduce", block, [1], f26=1, f49=[{1: tuple(group)} for group in pod.groups]),
        instruction(4, "collective-permute", block, [3], f26=2, f52=pairs),
    ]
    return proto([computation(1, "main", ops, 4)])


def busy_us(pod: Pod) -> tuple[Floats, Floats, Floats]:
    """Stalling, infeed and compute time of each core and step, in µs."""
    rng = np.random.default_rng(pod.seed)
    stall, infeed = (
        np.zeros((pod.n_cores, pod.n_steps)),
        np.full((pod.n_cores, pod.n_steps), float(INFEED_US)),
    )
    compute = COMPUTE_US * (1 + pod.noise * rng.standard_normal((pod.n_cores, pod.n_steps)))
    per_host = pod.n_cores // pod.n_hosts
    of_hosts = [(slice(host * per_host, (host + 1) * per_host), *rest) for host, *rest in pod.slow]
    for cores, since, extra, what in [
        *of_hosts,
        *((slice(core, core + 1), *rest) for core, *rest in pod.slow_cores),
    ]:
        {"infeed": infeed, "compute": compute, "stall": stall}[str(what)][cores, since:] += extra  # type: ignore[misc]
    return (
        np.rint(stall),
        np.rint(infeed),
        np.rint(compute),
    )  # whole µs: so that steps touch, and do not overlap by a rounding's picosecond


@dataclass(frozen=True)
class Times:
    """When what happens, in µs: stall, infeed, compute, all-reduce of each core and step; begin and length of
    each step.
    """

    stall: Floats
    infeed: Floats
    compute: Floats
    reduce: Floats
    starts: Floats
    length: Floats


def times_us(pod: Pod) -> Times:
    """All cores of a group leave the all-reduce together; a step ends when the last has passed
    its block on.
    """
    stall, infeed, compute = busy_us(pod)
    arrive = stall + infeed + compute
    leave = (
        np.concatenate(
            [np.broadcast_to(arrive[group].max(axis=0), (len(group), pod.n_steps)) for group in pod.groups]
        )
        + TRANSFER_US
    )
    length = leave.max(axis=0) + PERMUTE_US + IDLE_US
    return Times(stall, infeed, compute, leave - arrive, np.append(0, np.cumsum(length))[:-1], length)


def analysed(pod: Pod, with_hlo: bool = True) -> list[PodHost]:
    """What `pod_host` makes of the files of the pod, without files: for many trials."""
    times = times_us(pod)
    per_host, n_ops = pod.n_cores // pod.n_hosts, 2
    block = 512 * 512 * 4 if with_hlo else 0
    permuted = np.array(
        [(core, (core + 1) % pod.n_cores) for core in range(pod.n_cores if with_hlo else 0)], np.int64
    ).reshape(-1, 2)
    groups = tuple(tuple(group) for group in pod.groups)
    ops = (
        TransferOp(
            "all-reduce.3", "all-reduce", block, int(with_hlo), groups if with_hlo else (), has_hlo=with_hlo
        ),
        TransferOp(
            "collective-permute.4", "collective-permute", block, 2 * with_hlo, (), permuted, has_hlo=with_hlo
        ),
    )
    shape = pod.n_cores, pod.n_steps
    spent_ps = np.stack([times.reduce, np.full(shape, PERMUTE_US)], axis=2) * PS_PER_US
    arrive = times.stall + times.infeed + times.compute
    since_ps = np.stack([arrive, arrive + times.reduce], axis=2) * PS_PER_US
    last_ps = times.starts[None, :, None] * PS_PER_US + since_ps + spent_ps
    total_ps = np.broadcast_to(times.length * PS_PER_US, shape)
    part_ps = np.zeros((*shape, N_PARTS))
    part_ps[:, :, Part.INPUT], part_ps[:, :, Part.HIGH_FLOPS] = (
        times.infeed * PS_PER_US,
        times.compute * PS_PER_US,
    )
    part_ps[:, :, Part.COLLECTIVE] = spent_ps.sum(axis=2)
    part_ps[:, :, Part.IDLE] = total_ps - part_ps.sum(axis=2)
    class_ps = np.zeros((pod.n_steps, N_CLASSES), np.int64)
    class_ps[:, 0] = total_ps[0]
    names = tuple(map(str, range(pod.n_steps)))
    starts_ps, length_ps = (
        np.rint(values * PS_PER_US).astype(np.int64) for values in (times.starts, times.length)
    )
    steps = Steps(np.arange(pod.n_steps), names, starts_ps, length_ps, class_ps, "device")
    result = []
    for host in range(pod.n_hosts):
        mine = slice(host * per_host, (host + 1) * per_host)
        cores = tuple(
            PodCore(f"TPU:{core % per_host}", core % per_host, core % per_host // 2, core // 2, core)
            for core in range(mine.start, mine.stop)
        )
        transfers = Transfers(
            ops,
            spent_ps[mine].astype(np.int64),
            since_ps[mine].mean(axis=1),
            (since_ps + spent_ps)[mine].mean(axis=1),
            np.full((per_host, n_ops), pod.n_steps),
            last_ps[mine].astype(np.int64)[:, :, : 0 if with_hlo else n_ops],
        )
        works = (arrive + times.reduce)[mine].max(axis=0) + PERMUTE_US - times.stall[mine].min(axis=0)
        whole = (
            part_ps[mine].astype(np.int64),
            total_ps[mine].astype(np.int64),
            np.rint((times.length - works) * PS_PER_US).astype(np.int64),
        )
        result.append(
            PodHost(
                f"synthetic-pod-{host}", "TPU", "TPU v3", per_host, 1_000_000, steps, cores, *whole, transfers
            )
        )
    return result


def pod_hosts(pod: Pod, with_hlo: bool = True) -> dict[str, bytes]:
    """The files of the pod by host; clocks differ by up to a second and do not matter."""
    times = times_us(pod)
    per_host = pod.n_cores // pod.n_hosts
    program = hlo(pod) if with_hlo else b""
    result = {}
    for host in range(pod.n_hosts):
        space = xspace_class()()
        for local in range(per_host):
            core = host * per_host + local
            plane = PlaneWriter(space, f"/device:TPU:{local}")
            details = (
                core_details(local, local // 2) + field(5, core // 2) + field(6, core)
            )  # the last of several counts
            plane.stats(plane.plane, {"device_type_string": "TPU v3", "core_details": details})
            _core(
                plane,
                [times.stall[core], times.infeed[core], times.compute[core], times.reduce[core]],
                times.starts,
                times.length,
            )
        main = PlaneWriter(space, "/host:CPU")
        main.event(main.line("main", 1, 1_000_000), "done:NoOp", 0, PS_PER_US)
        if program:
            PlaneWriter(space, "/host:metadata").metadata(f"jit_train({PROGRAM})", {"Hlo Proto": program})
        space.hostnames.append(f"synthetic-pod-{host}".encode())
        result[f"synthetic-pod-{host}"] = bytes(space.SerializeToString())
    return result


def _core(plane: PlaneWriter, spent: Sequence[Floats], starts: Floats, length: Floats) -> None:
    ops = [
        ("infeed.1", "infeed"),
        ("fusion.2", "convolution fusion"),
        ("all-reduce.3", "all-reduce"),
        ("collective-permute.4", "collective-permute"),
    ]
    for symbol, (name, category) in enumerate(ops, 1):
        stats: dict[str, Stat] = {"program_id": PROGRAM, "symbol_id": symbol, "hlo_category": category}
        plane.metadata(f"%{name} = {category}()", stats, name)
    lines = [plane.line(name, i + 1, 1_000_000) for i, name in enumerate(("Steps", "XLA Ops"))]
    for step, start in enumerate(starts.tolist()):
        plane.event(lines[0], str(step), start * PS_PER_US, float(length[step]) * PS_PER_US)
        at = start + float(spent[0][step])
        for (name, category), time_us in zip(
            ops, (*(part[step] for part in spent[1:]), PERMUTE_US), strict=True
        ):
            plane.event(lines[1], f"%{name} = {category}()", at * PS_PER_US, float(time_us) * PS_PER_US)
            at += float(time_us)
