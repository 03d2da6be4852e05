"""Synthetic jobs with three unlike parts of everything: hosts, devices, steps, threads. Equal parts hide sums
taken for means, and the first taken for all.

`tests/test_synthetic.py` holds that they are unlike, and what pages say of them against counts by hand.
"""

from __future__ import annotations

from dataclasses import replace

from tests.synthetic import GpuJob, Parts, TpuJob, gpu_hosts, tpu_hosts
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace
from tests.synthetic_pod import Pod

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
