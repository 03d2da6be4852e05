"""A number of steps -> a synthetic XSpace of eight GPUs that compute, exchange gradients and copy batches at
the same time, as protobuf wire bytes.

    python bench/overlap_trace.py OUTPUT_DIR [--steps 50]

In each step of 20 ms every GPU runs 800 kernels on one stream, 40 all-reduces on another, half of which
outlast the compute that they overlap, and 20 copies from the host on a third. The same arguments give the
same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.device_trace import Plane, field

N_GPUS, N_KERNELS, N_COLLECTIVES, N_COPIES = 8, 800, 40, 20
STEP_PS = 20_000_000_000
KERNEL_PS, COLLECTIVE_PS, COPY_PS = 20_000_000, 300_000_000, 100_000_000
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def gpu_plane(gpu: int, n_steps: int) -> Plane:
    """The three streams of a GPU; GPUs with higher numbers arrive later at their collectives."""
    plane = Plane(f"/device:GPU:{gpu}")
    streams: list[list[bytes]] = [[], [], []]
    number = 0

    def add(stream: int, name: str, start_ps: int, duration_ps: int, step: int) -> None:
        nonlocal number
        number += 1
        stats = plane.stat("correlation_id", number) + plane.stat("group_id", step)
        streams[stream].append(plane.event(name, start_ps, duration_ps, stats))

    for step in range(n_steps):
        begin = step * STEP_PS
        for i in range(N_KERNELS):
            add(0, f"ampere_bf16_s16816gemm_{i % 50}", begin + i * (KERNEL_PS + 4_000_000), KERNEL_PS, step)
        for i in range(N_COLLECTIVES):
            late = gpu * 1_000_000
            add(1, _NCCL, begin + i * 490_000_000 + late, COLLECTIVE_PS * (1 + i % 2) // 2 - late, step)
        for i in range(N_COPIES):
            add(2, "MemcpyH2D", begin + i * 950_000_000, COPY_PS, step)
    for i, (name, events) in enumerate(zip(("Compute", "Nccl", "MemcpyH2D"), streams, strict=True)):
        plane.line(13 + i, f"Stream #{13 + i}({name})", events)
    return plane


def host_plane(n_steps: int) -> Plane:
    """The steps."""
    plane = Plane("/host:CPU")
    steps = [
        plane.event("train", step * STEP_PS, STEP_PS, plane.stat("_r", 1) + plane.stat("step_num", step))
        for step in range(n_steps)
    ]
    plane.line(1, "python", steps)
    return plane


def write_overlap_trace(path: Path, n_steps: int = 50) -> None:
    """Write the file: about 345,000 events for 50 steps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    planes = [gpu_plane(gpu, n_steps).encoded() for gpu in range(N_GPUS)]
    path.write_bytes(b"".join((*planes, host_plane(n_steps).encoded(), field(4, b"synthetic-overlap"))))


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    write_overlap_trace(arguments.output_dir / "host0.xplane.pb", arguments.steps)


if __name__ == "__main__":
    main()
