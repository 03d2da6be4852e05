"""Synthetic XSpaces of kernels and of allocators, with planted counts, times and leaks. Nothing here was
measured on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.synthetic import PS_PER_US, PlaneWriter, Stat

START_NS = 1_000_000
KIB = 1024


@dataclass(frozen=True)
class Kernel:
    """A kernel that is launched `n` times; the i-th launch lasts `duration_us` × (1 + i)."""

    name: str
    op: str = ""
    details: str = "regs:32 static_shared:1024 dynamic_shared:2048 grid:16,2,1 block:128,1,1 occ_pct:50"
    duration_us: int = 10
    n: int = 3


_EIGEN = "regs:16 static_shared:0 dynamic_shared:0 grid:160,1,1 block:1024,1,1"
KERNELS = (
    Kernel(
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "model/dense/MatMul:MatMul",
        duration_us=40,
    ),
    Kernel("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "model/dense_1/MatMul:MatMul", duration_us=30),
    Kernel(
        "volta_sgemm_128x64_tn",
        "model/dense_2/MatMul:MatMul",
        "regs:64 grid:4,4,1 block:64,1,1 occ_pct:25",
        20,
    ),
    Kernel("void Eigen::internal::EigenMetaKernel<float>(int)", "model/Relu:Relu", _EIGEN, 4),
    Kernel("void Eigen::internal::EigenMetaKernel<float>(int)", "model/Add:AddV2", _EIGEN, 3),
    Kernel(
        "triton_poi_fused_add_0",
        "",
        "regs:12 static_shared:0 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:100",
        2,
        20,
    ),
)


def kernels_xspace(
    kernels: Sequence[Kernel] = KERNELS,
    n_gpus: int = 1,
    host: str = "synthetic-gpu",
    scale: tuple[int, ...] = (1,),
) -> bytes:
    """A host with GPUs that launch the kernels one after the other; on each GPU they last `scale` times as
    long.
    """
    space = xspace_class()()
    for gpu in range(n_gpus):
        plane = PlaneWriter(space, f"/device:GPU:{gpu}")
        plane.stats(
            plane.plane,
            {"device_vendor": "Nvidia", "compute_cap_major": 9, "compute_cap_minor": 0, "core_count": 132},
        )
        stream = plane.line("Stream #13(Compute)", 13, START_NS)
        at, correlation = 0, 1
        for kernel in kernels:
            for i in range(kernel.n):
                stats: dict[str, Stat] = {"correlation_id": correlation, "kernel_details": kernel.details}
                if kernel.op:
                    stats["tf_op"] = kernel.op
                duration = kernel.duration_us * (1 + i) * PS_PER_US * scale[gpu % len(scale)]
                plane.event(stream, kernel.name, at, duration, stats)
                at, correlation = at + duration + PS_PER_US, correlation + 1
    main = PlaneWriter(space, "/host:CPU")
    main.event(main.line("main", 1, START_NS), "train", 0, at, {"_r": 1, "step_num": 0})
    space.hostnames.append(host.encode())
    data: bytes = space.SerializeToString()
    return data


@dataclass(frozen=True)
class MemoryJob:
    """Steps of 1 ms, each of which allocates and frees `n_temporary` blocks of 256 KiB and keeps `leak_bytes`
    for ever.

    Before the capture `weights_bytes` were allocated. `is_tpu`: memories are devices with a stack of
    `stack_bytes`. `scale`: how many times larger than 256 KiB the blocks of each memory are.
    """

    n_steps: int = 20
    leak_bytes: int = 0
    n_temporary: int = 3
    n_memories: int = 1
    weights_bytes: int = 4096 * KIB
    stack_bytes: int = 0
    capacity_bytes: int = 64 * 1024 * KIB
    is_tpu: bool = False
    scale: tuple[int, ...] = (1,)


def memory_xspace(job: MemoryJob = MemoryJob(), host: str = "synthetic-memory") -> bytes:
    """A host whose main thread marks steps and allocates."""
    space = xspace_class()()
    plane = PlaneWriter(space, "/host:CPU")
    line = plane.line("main", 1, START_NS)
    heaps = [_Heap(job, m) for m in range(job.n_memories)]
    for step in range(job.n_steps):
        start = step * 1000 * PS_PER_US
        plane.event(line, "train", start, 990 * PS_PER_US, {"_r": 1, "step_num": step})
        plane.event(line, f"model/dense/MatMul_{step % 2}:MatMul", start + PS_PER_US, 50 * PS_PER_US)
        for m, heap in enumerate(heaps):
            at = start + (100 + m) * PS_PER_US
            for block in range(job.n_temporary):
                plane.event(
                    line,
                    "MemoryAllocation",
                    at,
                    0,
                    heap.allocate(
                        block, 256 * KIB * job.scale[m % len(job.scale)], "model/dense/MatMul", step
                    ),
                )
                at += 20 * PS_PER_US
            for block in range(job.n_temporary):
                plane.event(line, "MemoryDeallocation", at, 0, heap.free(block))
                at += 20 * PS_PER_US
            if job.leak_bytes:
                plane.event(
                    line,
                    "MemoryAllocation",
                    at,
                    0,
                    heap.allocate(1000 + step, job.leak_bytes, "cache/Append", step),
                )
    space.hostnames.append(host.encode())
    data: bytes = space.SerializeToString()
    return data


class _Heap:
    def __init__(self, job: MemoryJob, memory: int) -> None:
        self.job, self.memory = job, memory
        self.used = self.peak = job.weights_bytes
        self.blocks: dict[int, int] = {}

    def _stats(self, block: int, size: int) -> dict[str, Stat]:
        self.peak = max(self.peak, self.used)
        identity: dict[str, Stat] = (
            {"index_on_host": self.memory}
            if self.job.is_tpu
            else {"allocator_name": f"GPU_{self.memory}_bfc"}
        )
        free = self.job.capacity_bytes - self.job.stack_bytes - self.used
        return {
            **identity,
            "bytes_reserved": self.job.stack_bytes,
            "bytes_allocated": self.used,
            "bytes_available": free,
            "fragmentation": round(self.used / self.job.capacity_bytes, 6),
            "peak_bytes_in_use": self.peak,
            "requested_bytes": size - 6,
            "allocation_bytes": size,
            "addr": 1_000_000 + 1_000_000 * block,
        }

    def allocate(self, block: int, size: int, op: str, step: int) -> dict[str, Stat]:
        self.used += size
        self.blocks[block] = size
        more: dict[str, Stat] = {
            "tf_op": op,
            "id": step,
            "region_type": "output",
            "data_type": 1,
            "shape": f"[{size // 4}]",
        }
        return {**self._stats(block, size), **more}

    def free(self, block: int) -> dict[str, Stat]:
        size = self.blocks.pop(block)
        self.used -= size
        return {**self._stats(block, size), "id": 0, "data_type": 0}
