"""How many of a multiprocessor's threads a kernel can keep there at once, from its launch and the GPU's
compute capability.

    blocks = least of  what the multiprocessor holds of blocks and of warps,
                       its registers / what a block's warps take, in units of 256 a warp, each quarter of it
                       for itself its shared memory / what a block takes, in units of 128 or 256 bytes, with 1
                       KiB of the system's since 8.0
    occupancy = blocks × threads of a block / threads that a multiprocessor holds

Limits and formula: CUDA C++ Programming Guide, "Compute Capabilities"; CUDA toolkit, `cuda_occupancy.h` (its
default: as much of the on-chip memory is shared memory as the GPU allows). AMD publishes registers of a
kernel in no trace: there it stays unknown.
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
_REGISTER_UNIT = 256  # registers that a warp gets at once
_MOST_THREADS = 1024  # of a block
_MOST_REGISTERS = 255  # of a thread


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor holds: warps, blocks, bytes of shared memory; the unit and the system's part of
    a block's shared memory.
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


# By compute capability. What is not listed stays unknown: the next one may differ in any of it.
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
    """Blocks that a multiprocessor holds at once; -1 where something is not known, 0 where not one fits."""
    of = MULTIPROCESSORS.get(capability)
    if (
        of is None
        or not 0 < n_threads <= _MOST_THREADS
        or not 0 < n_registers <= _MOST_REGISTERS
        or shared_bytes < 0
    ):
        return -1
    warps = math.ceil(n_threads / WARP)
    of_warp = math.ceil(n_registers * WARP / _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = of.n_registers // of.n_parts // of_warp * of.n_parts // warps
    of_block = math.ceil((shared_bytes + of.system_bytes) / of.shared_unit) * of.shared_unit
    by_shared = of.shared_bytes // of_block if of_block else of.n_blocks
    return min(of.n_blocks, of.n_warps // warps, by_registers, by_shared)


def theoretical_occupancy(launch: Launch, capability: tuple[int, int]) -> float:
    """Occupancy 0–1 of a launch, NaN where it cannot be known."""
    n_threads = math.prod(int(size) for size in launch.block.split(",")) if launch.block else 0
    blocks = n_blocks(capability, launch.n_registers, launch.shared_bytes, n_threads)
    return blocks * n_threads / (MULTIPROCESSORS[capability].n_warps * WARP) if blocks > 0 else math.nan


def with_occupancy(launch: Launch, capability: tuple[int, int]) -> Launch:
    """The launch; where the trace does not tell its occupancy, with a computed one."""
    if not math.isnan(launch.occupancy):
        return launch
    found = theoretical_occupancy(launch, capability)
    return launch if math.isnan(found) else replace(launch, occupancy=found, is_computed=True)


def capabilities(trace: Trace) -> dict[int, tuple[int, int]]:
    """Compute capability of each GPU's plane, (0, 0) where it is not told or the GPU is not NVIDIA's."""
    vendor = trace.plane_stats.texts("device_vendor")
    others = {
        int(plane)
        for plane, text in zip(vendor.owner, vendor.value, strict=True)
        if trace.strings[int(text)].lower() != "nvidia"
    }
    found = {}
    for plane in planes(trace).gpus:
        numbers = []
        for key in ("compute_cap_major", "compute_cap_minor"):
            sparse = trace.plane_stats.floats(key)
            told = sparse.value[sparse.owner == plane]
            numbers.append(int(told[0]) if len(told) and np.isfinite(told[0]) and plane not in others else 0)
        found[plane] = (numbers[0], numbers[1])
    return found
