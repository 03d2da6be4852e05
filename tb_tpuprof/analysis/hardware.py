"""What the job ran on: accelerators, their names and peak rates."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.trace.trace import Trace

# Dense floating-point operations per cycle and multiprocessor, the fastest of fp32 and fp16 on CUDA and tensor cores, by
# compute capability (NVIDIA's architecture white papers, as OpenXLA's profiler tabulates them). Unknown: the next lower.
_NVIDIA_FLOPS_PER_CYCLE = (
    (20, 64), (30, 384), (50, 256), (60, 256), (61, 256), (70, 1024), (75, 1024), (80, 2048), (86, 1024), (89, 1024),
    (90, 4096), (100, 8192),
)  # fmt: skip
# The same for AMD's compute units (CDNA white papers).
_AMD_FLOPS_PER_CYCLE = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
_AMD_BY_CAPABILITY = {(9, 4): "gfx942", (9, 5): "gfx950"}
_NVIDIA_FAMILIES = {2: "Fermi", 3: "Kepler", 5: "Maxwell", 6: "Pascal", 9: "Hopper", 10: "Blackwell"}


@dataclass(frozen=True)
class Hardware:
    """`kind`: TPU, GPU or CPU. Peaks are of one device (TPU: core), 0 where unknown; `shared_bytes_per_s` is on-chip memory."""

    kind: str
    device: str
    n_devices: int
    peak_flops_per_s: float = 0.0
    peak_hbm_bytes_per_s: float = 0.0
    peak_shared_bytes_per_s: float = 0.0
    memory_bytes: int = 0

    def bound_by(self, flops_per_s: float, bytes_per_s: float) -> str:
        """The resource that an operation uses closest to its peak; `Unknown` where no peak is known or nothing is measured."""
        used = [
            ("Compute", flops_per_s, self.peak_flops_per_s),
            ("HBM", bytes_per_s, self.peak_hbm_bytes_per_s),
        ]
        if self.kind == "GPU":
            used.append(("Shm/L1", bytes_per_s, self.peak_shared_bytes_per_s))
        name, share = "Unknown", 0.0
        for resource, rate, peak in used:
            if peak > 0 and rate / peak > share:
                name, share = resource, rate / peak
        return name


@once
def hardware(trace: Trace) -> Hardware:
    """Kind, name, number and peaks of the accelerators of one host, from the stats of its device planes."""
    roles = planes(trace)
    if roles.hardware == "TPU":
        return _tpu(trace, roles.tensor_cores)
    if roles.hardware == "GPU":
        return _gpu(trace, roles.gpus)
    return Hardware("CPU", "CPU", 0)


def _plane_number(trace: Trace, plane: int, key: str) -> float:
    sparse = trace.plane_stats.floats(key)
    found = sparse.value[sparse.owner == plane]
    return float(found[0]) if len(found) and np.isfinite(found[0]) else 0.0


def _plane_text(trace: Trace, plane: int, key: str) -> str:
    sparse = trace.plane_stats.texts(key)
    found = sparse.value[sparse.owner == plane]
    return trace.strings.get(int(found[0])) if len(found) else ""


def _tpu(trace: Trace, cores: tuple[int, ...]) -> Hardware:
    plane = cores[0] if cores else planes(trace).sparse_cores[0]
    giga = 1e9
    return Hardware(
        "TPU", _plane_text(trace, plane, "device_type_string") or "TPU", len(cores),
        _plane_number(trace, plane, "peak_teraflops_per_second") * 1e12,
        _plane_number(trace, plane, "peak_hbm_bw_gigabytes_per_second") * giga,
        _plane_number(trace, plane, "peak_vmem_rd_bw_gigabytes_per_second") * giga,
    )  # fmt: skip


def _gpu(trace: Trace, gpus: tuple[int, ...]) -> Hardware:
    plane = gpus[0]
    major, minor = (int(_plane_number(trace, plane, f"compute_cap_{part}")) for part in ("major", "minor"))
    written = _plane_text(trace, plane, "gpu_device_name")
    vendor = _plane_text(trace, plane, "device_vendor") or "Nvidia"
    cycles = _plane_number(trace, plane, "core_count") * _plane_number(trace, plane, "clock_rate") * 1e3
    if vendor == "AMD":
        gfx = written if written.startswith("gfx") else _AMD_BY_CAPABILITY.get((major, minor), "")
        name, per_cycle = (f"AMD GPU {gfx}".strip(), _AMD_FLOPS_PER_CYCLE.get(gfx, 0))
        shared = cycles * (256 if gfx == "gfx950" else 128)
    else:
        name, per_cycle = _nvidia_name(major, minor), nvidia_flops_per_cycle(major, minor)
        shared = cycles * (256 if major > 2 else 128)
    stated = _plane_number(trace, plane, "peak_teraflops_per_second") * 1e12
    is_model = bool(re.search(r"[A-Za-z]", written)) and not written.startswith("gfx")
    return Hardware(
        "GPU", written if is_model else name, len(gpus), stated or cycles * per_cycle,
        _plane_number(trace, plane, "memory_bandwidth"), shared, int(_plane_number(trace, plane, "memory_size")),
    )  # fmt: skip


def nvidia_flops_per_cycle(major: int, minor: int) -> int:
    """Peak operations per cycle of one multiprocessor; unknown generations count as the nearest older one."""
    capability = major * 10 + minor
    return max(((known, rate) for known, rate in _NVIDIA_FLOPS_PER_CYCLE if known <= capability), default=(0, 0))[1]


def _nvidia_name(major: int, minor: int) -> str:
    if major == 7:
        family = "Turing" if minor >= 5 else "Volta"
    elif major == 8:
        family = "Ada Lovelace" if minor >= 9 else "Ampere"
    else:
        family = _NVIDIA_FAMILIES.get(major, "")
    return f"NVIDIA GPU ({family})" if family else "NVIDIA GPU"
