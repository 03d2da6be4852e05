"""The synthetic runs that `make conformance` compares."""

from __future__ import annotations

from dataclasses import replace

from tests import synthetic_unlike
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_hosts, tpu_xspace
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace

_MIXED = Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05)
_TPU = TpuJob(parts=_MIXED)
_GPU = GpuJob(parts=Parts(compute=0.5, infeed=0.1, outfeed=0.02, collective=0.2))
RUNS: dict[str, dict[str, bytes]] = {
    "tpu": {"synthetic-tpu": tpu_xspace(_TPU)},
    "tpu_compute": {
        "synthetic-tpu": tpu_xspace(replace(_TPU, parts=Parts(compute=0.985), n_cores=1, device="TPU v4"))
    },
    "tpu_skew": {"synthetic-tpu": tpu_xspace(replace(_TPU, n_cores=4, core_delay=0.02))},
    "tpu_sparse": {
        "synthetic-tpu": tpu_xspace(
            replace(_TPU, n_cores=4, cores_per_chip=2, n_sparse_cores=1, parts=Parts(0.4, 0.1))
        )
    },
    "tpu_touching": {"synthetic-tpu": tpu_xspace(replace(_TPU, lead_ps=0))},
    "tpu_no_steps": {"synthetic-tpu": tpu_xspace(replace(_TPU, has_steps=False))},
    "tpu_hosts": tpu_hosts(_TPU, (1.0, 1.2)),
    "tpu_unlike": {"synthetic-tpu": tpu_xspace(synthetic_unlike.TPU)},
    "gpu": {"synthetic-gpu": gpu_xspace(_GPU)},
    "gpu_two": {
        "synthetic-gpu": gpu_xspace(
            replace(_GPU, n_gpus=2, capability=(8, 0), n_multiprocessors=108, clock_khz=1_410_000)
        )
    },
    "gpu_compute": {"synthetic-gpu": gpu_xspace(replace(_GPU, parts=Parts(compute=0.9)))},
    "gpu_unlike": {"synthetic-gpu": gpu_xspace(synthetic_unlike.GPU)},
    "kernels": {"synthetic-gpu": kernels_xspace()},
    "kernels_unlike": {"synthetic-gpu": kernels_xspace(n_gpus=3, scale=(1, 2, 4))},
    "kernels_hosts": {
        f"synthetic-gpu-{i}": kernels_xspace(n_gpus=2, host=f"synthetic-gpu-{i}") for i in range(2)
    },
    "memory": {"synthetic-memory": memory_xspace(MemoryJob(n_memories=2))},
    "memory_unlike": {"synthetic-memory": memory_xspace(synthetic_unlike.MEMORY)},
    "memory_leak": {"synthetic-memory": memory_xspace(MemoryJob(leak_bytes=64 * 1024))},
    "memory_tpu": {"synthetic-memory": memory_xspace(MemoryJob(stack_bytes=8 * 2**20, is_tpu=True))},
}
