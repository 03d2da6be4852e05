"""Theoretical occupancy: the share of a multiprocessor's threads that a kernel can keep resident, from its
launch and the GPU's compute capability.

    blocks = minimum of  the multiprocessor's limits on blocks and on warps,
                         its registers / registers of a block's warps, allocated in units of 256 per warp,
                         each quarter of the multiprocessor separately,
                         its shared memory / shared memory of a block, in units of 128 or 256 bytes,
                         plus 1 KiB for the system since 8.0
    occupancy = blocks × threads per block / threads that a multiprocessor can hold

Limits and formula: CUDA C++ Programming Guide, "Compute Capabilities"; CUDA toolkit, `cuda_occupancy.h` (its
default: as much of the on-chip memory is shared memory as the GPU allows). AMD's traces do not state a
kernel's registers, so its occupancy stays unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.kernels.launch import Launch
from tb_tpuprof.trace.trace import Trace

WARP = 32
_KIB = 1024
_REGISTER_UNIT = 256  # granularity of a warp's registers
_MOST_THREADS = 1024  # per block
_MOST_REGISTERS = 255  # per thread


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor: warps, blocks, bytes of shared memory; the allocation unit and the
    system's part of a block's shared memory; registers, and the parts that they are divided into.
    """

    n_warps: int
    n_blocks: int
    shared_bytes: int
    shared_unit: int = 128
    system_bytes: int = 1024
    n_registers: int = 64 * 1024
    n_parts: int = 4


def _before_8(n_warps: int, n_blocks: int, shared_kib: int, n_parts: int = 4) -> Multiprocessor:
    return Multiprocessor(n_warps, n_blocks, shared_kib * _KIB, 256, 0, n_parts=n_parts)


# By compute capability. Unlisted ones stay unknown: a new generation may differ in any of these.
MULTIPROCESSORS = {
    (5, 0): _before_8(64, 32, 64),
    (5, 2): _before_8(64, 32, 96),
    (6, 0): _before_8(64, 32, 64, n_parts=2),
    (6, 1): _before_8(64, 32, 96),
    (7, 0): _before_8(64, 32, 96),
    (7, 5): _before_8(32, 16, 64),
    (8, 0): Multiprocessor(64, 32, 164 * _KIB),
    (8, 6): Multiprocessor(48, 16, 100 * _KIB),
    (8, 7): Multiprocessor(48, 16, 164 * _KIB),
    (8, 9): Multiprocessor(48, 24, 100 * _KIB),
    (9, 0): Multiprocessor(64, 32, 228 * _KIB),
    (10, 0): Multiprocessor(64, 32, 228 * _KIB),
    (10, 3): Multiprocessor(64, 32, 228 * _KIB),
    (12, 0): Multiprocessor(48, 24, 100 * _KIB),
    (12, 1): Multiprocessor(48, 24, 100 * _KIB),
}


def n_blocks(capability: tuple[int, int], n_registers: int, shared_bytes: int, n_threads: int) -> int:
    """Blocks that a multiprocessor can hold at once; -1 if an input is unknown, 0 if not even one fits."""
    sm = MULTIPROCESSORS.get(capability)
    if (
        sm is None
        or not 0 < n_threads <= _MOST_THREADS
        or not 0 < n_registers <= _MOST_REGISTERS
        or shared_bytes < 0
    ):
        return -1
    warps = math.ceil(n_threads / WARP)
    registers_per_warp = math.ceil(n_registers * WARP / _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = sm.n_registers // sm.n_parts // registers_per_warp * sm.n_parts // warps
    shared_per_block = math.ceil((shared_bytes + sm.system_bytes) / sm.shared_unit) * sm.shared_unit
    by_shared = sm.shared_bytes // shared_per_block if shared_per_block else sm.n_blocks
    return min(sm.n_blocks, sm.n_warps // warps, by_registers, by_shared)


def theoretical_occupancy(launch: Launch, capability: tuple[int, int]) -> float:
    """Occupancy 0–1 of a launch, NaN if unknown."""
    n_threads = math.prod(int(size) for size in launch.block.split(",")) if launch.block else 0
    blocks = n_blocks(capability, launch.n_registers, launch.shared_bytes, n_threads)
    return blocks * n_threads / (MULTIPROCESSORS[capability].n_warps * WARP) if blocks > 0 else math.nan


def with_occupancy(launch: Launch, capability: tuple[int, int]) -> Launch:
    """The launch, with a computed occupancy if the trace does not state it."""
    if not math.isnan(launch.occupancy):
        return launch
    occupancy = theoretical_occupancy(launch, capability)
    return launch if math.isnan(occupancy) else replace(launch, occupancy=occupancy, is_computed=True)


def capabilities(trace: Trace) -> dict[int, tuple[int, int]]:
    """Compute capability of each GPU plane, (0, 0) if unknown or not an NVIDIA GPU."""
    vendor = trace.plane_stats.texts("device_vendor")
    others = {
        int(plane)
        for plane, text in zip(vendor.owner, vendor.value, strict=True)
        if trace.strings[int(text)].lower() != "nvidia"
    }
    result = {}
    for plane in planes(trace).gpus:
        version = []
        for key in ("compute_cap_major", "compute_cap_minor"):
            sparse = trace.plane_stats.floats(key)
            values = sparse.value[sparse.owner == plane]
            version.append(
                int(values[0]) if len(values) and np.isfinite(values[0]) and plane not in others else 0
            )
        result[plane] = (version[0], version[1])
    return result
