"""Synthetic jobs with three unlike parts of everything: hosts, devices, steps, threads. Equal parts hide sums
taken for means, and the first taken for all.

`tests/test_synthetic.py` holds that they are unlike, and what pages say of them against counts by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.kineto_ranks import GENERIC, Comm, rank_file
from tests.synthetic import (
    PS_PER_US,
    GpuJob,
    Parts,
    PlaneWriter,
    Stat,
    TpuJob,
    gpu_hosts,
    gpu_xspace,
    step_spans,
    tpu_hosts,
    tpu_xspace,
)
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace
from tests.synthetic_pod import Pod
from tests.synthetic_serving import Server, serving

HOST_SCALE = (1.0, 1.3, 1.7)
STEP_SCALE = (1.0, 1.5, 0.7, 1.2)
DEVICE_SCALE = (1.0, 0.8, 0.5)
PARTS = Parts(compute=0.6, infeed=0.1, outfeed=0.03, collective=0.05)
TPU = TpuJob(
    parts=PARTS,
    n_steps=4,
    n_cores=3,
    core_delay=0.02,
    step_scale=STEP_SCALE,
    core_scale=DEVICE_SCALE,
    n_threads=3,
    annotates=True,
)
GPU = GpuJob(
    parts=Parts(compute=0.5, infeed=0.1, outfeed=0.02, collective=0.2),
    n_steps=4,
    n_gpus=3,
    step_scale=STEP_SCALE,
    gpu_scale=DEVICE_SCALE,
    stream_scale=(0.3, 0.25),
    n_threads=3,
)
MEMORY = MemoryJob(n_memories=3, scale=(1, 2, 5))
POD = Pod(
    n_hosts=3, n_chips=3, n_steps=6, n_groups=3,
    slow=((0, 0, 30.0, "compute"), (1, 0, 80.0, "infeed"), (2, 3, 55.0, "stall")),
    slow_cores=((1, 0, 11.0, "compute"), (8, 0, 17.0, "infeed")), noise=0.01, seed=7,
)  # fmt: skip


def tpu_run() -> dict[str, bytes]:
    """Three hosts of three TPU cores."""
    return tpu_hosts(TPU, HOST_SCALE)


def gpu_run() -> dict[str, bytes]:
    """Three hosts of three GPUs with three streams."""
    return gpu_hosts(GPU, HOST_SCALE)


def kernels_run() -> dict[str, bytes]:
    """Three hosts, whose three GPUs take 1, 2 and 4 times as long; the hosts 1, 3 and 5 times as long as the
    first.
    """
    scales = {f"synthetic-gpu-{i}": (factor, 2 * factor, 4 * factor) for i, factor in enumerate((1, 3, 5))}
    return {host: kernels_xspace(n_gpus=3, host=host, scale=scale) for host, scale in scales.items()}


def memory_run() -> dict[str, bytes]:
    """Three hosts of three memories."""
    jobs = [replace(MEMORY, n_temporary=3 + i, n_steps=20 + i) for i in range(3)]
    return {
        f"synthetic-memory-{i}": memory_xspace(job, f"synthetic-memory-{i}") for i, job in enumerate(jobs)
    }


CLOCKS_NS = (1_000_000, 1_400_000, 41_000_000)
N_STEPS = (7, 6, 5)


def clocks_run() -> dict[str, bytes]:
    """Three TPU hosts with clocks, step times and numbers of steps of their own."""
    jobs = [
        replace(TPU, start_ns=start, n_steps=n, step_ps=round(TPU.step_ps * scale))
        for start, n, scale in zip(CLOCKS_NS, N_STEPS, HOST_SCALE, strict=True)
    ]
    return {f"synthetic-tpu-{i}": tpu_xspace(job, f"synthetic-tpu-{i}") for i, job in enumerate(jobs)}


@dataclass(frozen=True)
class CpuStep:
    """An annotated step of a host without accelerators: times in µs; it computes for `compute`, from its 5th
    µs on, and the rest is not recorded.
    """

    name: str
    number: int
    start: int
    length: int
    compute: int


TRAIN_AND_EVAL = tuple(
    CpuStep(name, number, start, length, compute)
    for name, number, start, length, compute in (
        ("train", 1, 0, 900, 800), ("train", 2, 905, 1000, 700), ("train", 3, 1910, 1100, 1000),
        ("eval", 1, 3015, 400, 350), ("train", 4, 3420, 950, 900), ("train", 5, 4375, 1050, 640),
        ("train", 6, 5430, 1200, 1150), ("eval", 2, 6635, 500, 300), ("train", 7, 7140, 1000, 950),
        ("train", 8, 8145, 870, 800),
    )
)  # fmt: skip


def cpu_xspace(steps: tuple[CpuStep, ...], host: str = "synthetic-cpu", start_ns: int = 1_000_000) -> bytes:
    """A host without accelerators."""
    space = xspace_class()()
    plane = PlaneWriter(space, "/host:CPU")
    main = plane.line("main", 1, start_ns)
    for step in steps:
        marks: dict[str, Stat] = {"_r": 1, "step_num": step.number}
        plane.event(main, step.name, step.start * PS_PER_US, step.length * PS_PER_US, marks)
        plane.event(main, "dense/MatMul:MatMul", (step.start + 5) * PS_PER_US, step.compute * PS_PER_US)
    space.hostnames.append(host.encode())
    data: bytes = space.SerializeToString()
    return data


def evaluated_run() -> dict[str, bytes]:
    """A host that trains, and evaluates now and then."""
    return {"synthetic-cpu": cpu_xspace(TRAIN_AND_EVAL)}


ONE_GPU = replace(GPU, n_gpus=1, stream_scale=(), n_steps=5)
BESIDE_GPU = tuple(
    CpuStep("train", i, start // PS_PER_US, length // PS_PER_US, share * length // PS_PER_US // 10)
    for i, ((start, length), share) in enumerate(zip(step_spans(ONE_GPU), (3, 8, 5, 9, 2), strict=True))
)


def gpu_and_cpu_run() -> dict[str, bytes]:
    """A host with a GPU and one without, whose steps are the same ones."""
    return {
        "synthetic-cpu": cpu_xspace(BESIDE_GPU),
        "synthetic-gpu": gpu_xspace(ONE_GPU),
    }


SERVERS = (
    Server(n_requests=120, per_s=200, seed=1),
    Server(models=("rank:2", "embed:1", "chat-7b:3"), n_requests=300, per_s=900, seed=2),
    Server(models=("embed:1",), n_requests=60, allowed_sizes=(1, 16), seed=3),
)


def servers_run() -> dict[str, bytes]:
    """Three servers of unlike load and models, without steps."""
    return {f"server-{i}": serving(server).data for i, server in enumerate(SERVERS)}


UNEQUAL_RANKS: tuple[tuple[tuple[float, float, float], ...], ...] = (
    ((200, 400, 100), (250, 300, 200), (300, 500, 50), (150, 600, 90)),
    ((100, 700, 60), (200, 500, 150), (50, 800, 20), (120, 300, 300), (90, 640, 110), (300, 100, 500)),
    ((400, 200, 150), (10, 300, 400), (200, 600, 120)),
)
"""Of each rank and step, in µs: when computing begins, how long it takes, and how long the all-reduce behind
it.
"""


def unequal_ranks() -> dict[str, dict[str, object]]:
    """The files of three PyTorch ranks with 4, 6 and 3 steps."""
    files = {}
    for rank, steps in enumerate(UNEQUAL_RANKS):
        drawn: list[list[Comm | tuple[float, float]]] = [
            [(begin, computing), Comm(begin + computing, reducing, kernel=GENERIC)]
            for begin, computing, reducing in steps
        ]
        files[f"rank{rank}"] = rank_file(rank, drawn, start_us=40.0 * rank)
    return files
