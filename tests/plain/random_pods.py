"""Random pods: three to six unlike hosts with one to three cores each, which differ in operations, parts and
ids.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.pod.host import PodCore, PodHost, Transfers
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.analysis.steps.record import Steps
from tests.plain.random_hosts import random_job

_BEFORE_JOIN = [part for part in Part if part is not Part.COLLECTIVE_WAIT]


def random_pod(rng: random.Random) -> tuple[list[PodHost], list[int]]:
    """Hosts, and the correction of each host's clock."""
    job = random_job(rng)
    n_cores = [rng.randint(1, 3) for _ in job.parts]
    n = sum(n_cores)
    is_torch = rng.random() < 0.3
    numbers = _numbers(rng, n)
    ops = _torch_ops(rng, numbers) if is_torch else _ops(rng, numbers)
    hosts, first = [], 0
    for i, steps in enumerate(job.parts):
        device_numbers = numbers[first : first + n_cores[i]]
        first += n_cores[i]
        cores = tuple(
            PodCore(f"core {k}", k, k // 2, rank=number)
            if is_torch
            else PodCore(f"core {k}", k, k // 2, k, number)
            for k, number in enumerate(device_numbers)
        )
        host_ops = [op for op in rng.sample(ops, len(ops)) if rng.random() < 0.85]
        if is_torch:
            host_ops = [replace(op, size_bytes=op.size_bytes + rng.choice((0, 0, 0, 8))) for op in host_ops]
        elif rng.random() < 0.3:  # captured without HLO
            host_ops = [TransferOp(op.name, op.kind, ordinal=-1) for op in host_ops]
        hosts.append(_host(rng, f"host {i}", (steps, job.start_ns[i]), cores, host_ops))
    added = [rng.choice((0, 0, 1, -1)) for _ in hosts] if rng.random() < 0.5 else []
    return hosts, added


def _numbers(rng: random.Random, n: int) -> list[int]:
    """Ids of the cores in the program: their positions, other numbers, or unknown."""
    return rng.choice(
        (
            list(range(n)),
            rng.sample(range(n), n),
            [100 + 3 * i for i in range(n)],
            [-1] * n,
            [i // 2 for i in range(n)],
        )
    )


def _ops(rng: random.Random, numbers: list[int]) -> list[TransferOp]:
    """Operations of XLA: with and without groups, asynchronous halves, and HLO."""
    devices = (
        list(dict.fromkeys(numbers))
        if min(numbers) >= 0 and rng.random() < 0.8
        else list(range(len(numbers)))
    )
    mixed = rng.sample(devices, len(devices))
    cut = rng.randint(1, len(mixed))
    groups = tuple(tuple(group) for group in (mixed[:cut], mixed[cut:]) if group)
    pairs = np.array([(a, rng.choice([*devices, 999])) for a in devices], np.int64)
    return [
        TransferOp("all-reduce.1", "all-reduce", 4096, 1, groups, has_hlo=True),
        TransferOp("all-gather.2", "all-gather", 512, 2, groups, has_hlo=True),
        TransferOp("all-to-all.3", "all-to-all", 64, 3, (), has_hlo=True),
        TransferOp("reduce-scatter.4", "reduce-scatter", 0),
        TransferOp("permute-start.5", "collective-permute", 256, 4, (), pairs, has_hlo=True, is_half=True),
        TransferOp(
            "permute-done.6",
            "collective-permute",
            256,
            4,
            (),
            pairs,
            "permute-start.5",
            has_hlo=True,
            is_half=True,
        ),
        TransferOp("send.7", "send", 32, 9, (), pairs[: rng.randint(1, len(pairs))], has_hlo=True),
        TransferOp("recv.8", "recv", rng.choice((16, 64)), 9, (), pairs, has_hlo=True),
        TransferOp("recv-done.9", "recv", 64, 9, (), pairs, "recv.8", has_hlo=True),
    ]


def _torch_ops(rng: random.Random, numbers: list[int]) -> list[TransferOp]:
    """Operations of PyTorch, numbered by their position in the step, with groups from the file."""
    ranks = tuple(sorted({max(0, number) for number in numbers}))
    half = tuple(rank for rank in ranks if rng.random() < 0.5)
    ops = []
    for kind, group, members in (
        ("all-reduce", "all", ranks),
        ("all-gather", "half", half),
        ("send-receive", "", ()),
    ):
        size, dtype = rng.choice((0, 1024)), rng.choice(("", "bf16"))
        for place in range(rng.randint(1, 4)):
            ops.append(
                TransferOp(
                    f"{kind} #{place + 1}",
                    kind,
                    size,
                    groups=(members,) if members else (),
                    process_group=group,
                    group_size=len(members),
                    dtype=rng.choice((dtype, dtype, "f32")),
                    ordinal=place,
                )
            )
    return ops


def _host(
    rng: random.Random, name: str, steps: tuple[Steps, int], cores: tuple[PodCore, ...], ops: list[TransferOp]
) -> PodHost:
    host_steps, start_ns = steps
    n_steps, n_cores, n_ops = len(host_steps), len(cores), len(ops)
    part_ps = np.zeros((n_cores, n_steps, N_PARTS), np.int64)
    for part in [*rng.sample(_BEFORE_JOIN, 7), Part.COLLECTIVE, Part.IDLE]:
        part_ps[:, :, part] = [[rng.randint(0, 1000) for _ in range(n_steps)] for _ in cores]
    shape = n_cores, n_steps, n_ops
    time_ps = np.array(
        [rng.choice((0, rng.randint(1, 400), rng.randint(1, 400))) for _ in range(n_cores * n_steps * n_ops)],
        np.int64,
    ).reshape(shape)
    count = np.array([rng.randint(0, 3 * max(n_steps, 1)) for _ in range(n_cores * n_ops)], np.int64)
    begin = np.array([rng.uniform(0, 500) for _ in range(n_cores * n_ops)]).reshape(n_cores, n_ops)
    length = np.array([rng.uniform(0, 200) for _ in range(n_cores * n_ops)]).reshape(n_cores, n_ops)
    last_ps = rng.randint(1, 5) * 10_000 + time_ps.cumsum(axis=1)
    transfers = Transfers(tuple(ops), time_ps, begin, begin + length, count.reshape(n_cores, n_ops), last_ps)
    idle = np.array([rng.randint(0, 100) for _ in range(n_steps)], np.int64)
    total_ps = part_ps.sum(axis=2)
    return PodHost(
        name,
        "TPU",
        "TPU v4",
        n_cores + rng.randint(0, 2),
        start_ns,
        host_steps,
        cores,
        part_ps,
        total_ps,
        idle,
        transfers,
    )
