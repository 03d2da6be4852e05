"""Synthetic TPU pods: many hosts and cores in lockstep, with planted slowness, collectives with replica groups, and links.

Each step on each core; whoever computes longer arrives later at the all-reduce, and all of its group leave it together:

    XLA Ops   ▪infeed▪ ■■■■ convolution fusion ■■■■ ▫▫ all-reduce ▫▫ ▫permute▫
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.xspace_messages import xspace_class
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

Floats = npt.NDArray[np.float64]
PROGRAM = 7
INFEED_US, COMPUTE_US, TRANSFER_US, PERMUTE_US, IDLE_US = 50, 700, 100, 40, 10


@dataclass(frozen=True)
class Pod:
    """`slow`: (host, first step, extra µs, what) with what `compute` or `infeed`; `noise`: of the compute time, relative.

    Cores of the pod are numbered host after host; each of `n_groups` runs its own all-reduce, and every core passes 1 MiB to the next core.
    """

    n_hosts: int = 4
    n_chips: int = 2
    n_steps: int = 8
    slow: tuple[tuple[int, int, float, str], ...] = ()
    noise: float = 0.0
    seed: int = 0
    n_groups: int = 2

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


def busy_us(pod: Pod) -> tuple[Floats, Floats]:
    """Infeed and compute time of each core and step, in µs."""
    rng = np.random.default_rng(pod.seed)
    infeed = np.full((pod.n_cores, pod.n_steps), float(INFEED_US))
    compute = COMPUTE_US * (1 + pod.noise * rng.standard_normal((pod.n_cores, pod.n_steps)))
    per_host = pod.n_cores // pod.n_hosts
    for host, since, extra, what in pod.slow:
        (infeed if what == "infeed" else compute)[host * per_host : (host + 1) * per_host, since:] += extra
    return np.rint(infeed), np.rint(compute)  # whole µs: so that steps touch, and do not overlap by a rounding's picosecond


def pod_hosts(pod: Pod, with_hlo: bool = True) -> dict[str, bytes]:
    """The files of the pod by host; clocks differ by up to a second and do not matter."""
    infeed, compute = busy_us(pod)
    arrive = infeed + compute
    leave = np.concatenate([np.broadcast_to(arrive[group].max(axis=0), (len(group), pod.n_steps)) for group in pod.groups]) + TRANSFER_US
    length = leave.max(axis=0) + PERMUTE_US + IDLE_US
    starts = np.append(0, np.cumsum(length))[:-1]
    per_host = pod.n_cores // pod.n_hosts
    program = hlo(pod) if with_hlo else b""
    result = {}
    for host in range(pod.n_hosts):
        space = xspace_class()()
        for local in range(per_host):
            core = host * per_host + local
            plane = PlaneWriter(space, f"/device:TPU:{local}")
            details = core_details(local, local // 2) + field(5, core // 2) + field(6, core)  # the last of several counts
            plane.stats(plane.plane, {"device_type_string": "TPU v3", "core_details": details})
            _core(plane, [infeed[core], compute[core], leave[core] - arrive[core]], starts, length)
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
        at = start
        for (name, category), time_us in zip(ops, (*(part[step] for part in spent), PERMUTE_US), strict=True):
            plane.event(lines[1], f"%{name} = {category}()", at * PS_PER_US, float(time_us) * PS_PER_US)
            at += float(time_us)
