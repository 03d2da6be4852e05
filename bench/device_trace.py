"""A number of kernels and allocations -> a synthetic XSpace of a GPU with launch details and of its
allocator, as protobuf wire bytes.

    python bench/device_trace.py OUTPUT_DIR [--kernels 300000] [--allocations 150000]

Kernels of 60 names and 200 operations run one after the other on four streams; beside each step the host's
thread allocates and frees blocks, every deallocation half a step after its allocation. The same arguments
give the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

N_STREAMS, N_NAMES, N_OPS = 4, 60, 200
KERNEL_PS, PAUSE_PS, STEP_PS = 8_000_000, 1_000_000, 2_000_000_000
START_NS = 1_000_000
WEIGHTS_BYTES, CAPACITY_BYTES, LIVE_BLOCKS = 1 << 30, 1 << 34, 100
_MEMORY = (
    "allocator_name",
    "bytes_reserved",
    "bytes_allocated",
    "bytes_available",
    "fragmentation",
    "peak_bytes_in_use",
    "requested_bytes",
    "allocation_bytes",
    "addr",
    "tf_op",
    "region_type",
    "data_type",
    "shape",
)


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Plane:
    """A plane: names get ids as they are met."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: dict[str, int] = {}
        self.stats: dict[str, int] = {}
        self.lines: list[bytes] = []

    def stat(self, key: str, value: int | str) -> bytes:
        """A stat; texts are references to names."""
        head = field(1, self.stats.setdefault(key, len(self.stats) + 1))
        if isinstance(value, str):
            return field(4, head + field(7, self.stats.setdefault(value, len(self.stats) + 1)))
        return field(4, head + field(4, value))

    def event(self, name: str, offset_ps: int, duration_ps: int, stats: bytes) -> bytes:
        """An event of a line."""
        head = field(1, self.events.setdefault(name, len(self.events) + 1)) + field(2, offset_ps)
        return field(4, head + field(3, duration_ps) + stats)

    def line(self, line_id: int, name: str, events: list[bytes]) -> None:
        """A line with its events."""
        self.lines.append(
            field(3, field(1, line_id) + field(2, name.encode()) + field(3, START_NS) + b"".join(events))
        )

    def encoded(self) -> bytes:
        """The plane as a field of an XSpace."""
        tables = [
            field(number, field(1, i) + field(2, field(1, i) + field(2, name.encode())))
            for number, names in ((4, self.events), (5, self.stats))
            for name, i in names.items()
        ]
        return field(1, field(2, self.name.encode()) + b"".join(self.lines) + b"".join(tables))


def gpu_plane(n_kernels: int) -> Plane:
    """Kernels on streams."""
    plane = Plane("/device:GPU:0")
    names = [
        f"ampere_bf16_s16816gemm_bf16_{64 * (1 + i % 4)}x128_v{i}" if i % 2 else f"triton_poi_fused_{i}"
        for i in range(N_NAMES)
    ]
    launches = [
        f"regs:{16 + i} static_shared:0 dynamic_shared:{1024 * i} grid:{1 + i},1,1 block:128,1,1 occ_pct:50"
        for i in range(N_NAMES)
    ]
    ops = [f"model/block_{i}/MatMul:MatMul" for i in range(N_OPS)]
    per_stream = n_kernels // N_STREAMS
    for stream in range(N_STREAMS):
        events = []
        for i in range(per_stream):
            kernel = (i * 7 + stream) % N_NAMES
            stats = plane.stat("correlation_id", i * N_STREAMS + stream + 1) + plane.stat(
                "kernel_details", launches[kernel]
            )
            stats += plane.stat("tf_op", ops[(i * 3) % N_OPS])
            events.append(
                plane.event(names[kernel], i * (KERNEL_PS + PAUSE_PS), KERNEL_PS + (i % 5) * 100_000, stats)
            )
        plane.line(13 + stream, f"Stream #{13 + stream}(Compute)", events)
    return plane


def host_plane(n_allocations: int) -> Plane:
    """An allocator whose blocks live for as long as LIVE_BLOCKS further allocations take, and
    marked steps.
    """
    plane = Plane("/host:CPU")
    events, steps = [], []
    used, peak, gap_ps = WEIGHTS_BYTES, WEIGHTS_BYTES, STEP_PS // (2 * LIVE_BLOCKS)
    for i in range(n_allocations + LIVE_BLOCKS):
        position_ps = 2 * i * gap_ps
        if position_ps % STEP_PS < 2 * gap_ps:
            stats = plane.stat("_r", 1) + plane.stat("step_num", len(steps))
            steps.append(plane.event("train", len(steps) * STEP_PS, STEP_PS - gap_ps, stats))
        for is_new, block, when in ((True, i, position_ps), (False, i - LIVE_BLOCKS, position_ps + gap_ps)):
            if not (0 <= block < n_allocations):
                continue
            size = 4096 * (1 + block % 50)
            used += size if is_new else -size
            peak = max(peak, used)
            about = (
                (f"model/block_{block % N_OPS}/MatMul", "output", 1, f"[{size // 4}]")
                if is_new
                else ("", "", 0, "")
            )
            values = (
                "GPU_0_bfc",
                0,
                used,
                CAPACITY_BYTES - used,
                0,
                peak,
                size,
                size,
                1 << 40 | block << 20,
                *about,
            )
            stats = b"".join(plane.stat(key, value) for key, value in zip(_MEMORY, values, strict=True))
            events.append(plane.event("MemoryAllocation" if is_new else "MemoryDeallocation", when, 0, stats))
    plane.line(1, "python", steps)
    plane.line(2, "allocator", events)
    return plane


def write_device_trace(path: Path, n_kernels: int = 300_000, n_allocations: int = 150_000) -> None:
    """Write the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        gpu_plane(n_kernels).encoded() + host_plane(n_allocations).encoded() + field(4, b"synthetic-device")
    )


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output_dir", type=Path)
    parser.add_argument("--kernels", type=int, default=300_000)
    parser.add_argument("--allocations", type=int, default=150_000)
    arguments = parser.parse_args()
    write_device_trace(arguments.output_dir / "host0.xplane.pb", arguments.kernels, arguments.allocations)


if __name__ == "__main__":
    main()
