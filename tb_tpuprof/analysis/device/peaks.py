"""Peak rates of accelerators from public data sheets, used if a trace states none or contradicts them. The
user's own file takes precedence. `docs/peaks.md` lists them, with other precisions.

Rates are dense (no sparsity), for 16-bit operands on matrix units, and per *device*: what the trace shows as
one plane. A chip of TPU v2, v3 and 7x appears as two devices, each with half of the chip's rates; on v4 and
v5p the two cores act as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tb_tpuprof.settings import peaks_file

_CLOUD = "https://cloud.google.com/tpu/docs/"
_NVIDIA = "https://www.nvidia.com/en-us/data-center/"
_AMD = "https://www.amd.com/en/products/accelerators/instinct/"
_GB = 1e9


@dataclass(frozen=True)
class Peaks:
    """Peak rates of one device, 0 if unknown. `pattern`: a regular expression to search for in its name,
    case-insensitive.
    """

    pattern: str
    flops_per_s: float
    hbm_bytes_per_s: float
    source: str


# The first match wins, so names come before the shorter names that they contain.
DEVICES = (
    Peaks(r"TPU ?v?7x?\b", 2307e12 / 2, 7380 * _GB / 2, f"{_CLOUD}tpu7x (two devices per chip)"),
    Peaks(r"TPU ?v6", 918e12, 1638 * _GB, f"{_CLOUD}v6e"),
    Peaks(r"TPU ?v5 ?(e|lite)", 197e12, 819 * _GB, f"{_CLOUD}v5e"),
    Peaks(r"TPU ?v5", 459e12, 2765 * _GB, f"{_CLOUD}v5p"),
    Peaks(
        r"TPU ?v4 ?(i|lite)", 138e12, 614 * _GB, "Jouppi et al., ISCA 2021, doi:10.1109/ISCA52012.2021.00010"
    ),
    Peaks(r"TPU ?v4", 275e12, 1200 * _GB, f"{_CLOUD}v4"),
    Peaks(r"TPU ?v3", 123e12 / 2, 900 * _GB / 2, f"{_CLOUD}v3 (two devices per chip)"),
    Peaks(
        r"TPU ?v2",
        46e12 / 2,
        700 * _GB / 2,
        "Jouppi et al., CACM 63(7) 2020, doi:10.1145/3360307 (two devices per chip)",
    ),
    Peaks(r"\bGB300", 2500e12, 8000 * _GB, f"{_NVIDIA}gb300-nvl72/"),
    Peaks(r"\bB300", 2250e12, 7700 * _GB, f"{_NVIDIA}hgx/"),
    Peaks(r"\bGB200", 2500e12, 8000 * _GB, f"{_NVIDIA}gb200-nvl72/"),
    Peaks(r"\bB200", 2250e12, 7700 * _GB, f"{_NVIDIA}hgx/"),
    Peaks(r"\bB100", 1750e12, 8000 * _GB, f"{_NVIDIA}hgx/"),
    Peaks(
        r"RTX PRO 6000 Blackwell",
        503.8e12,
        1792 * _GB,
        "https://www.nvidia.com/en-us/products/workstations/professional-desktop-gpus/",
    ),
    Peaks(r"RTX 5090", 419e12, 1792 * _GB, "NVIDIA RTX Blackwell GPU architecture white paper"),
    Peaks(r"\bGH200.*144G", 989.5e12, 4900 * _GB, f"{_NVIDIA}grace-hopper-superchip/ (HBM3e)"),
    Peaks(r"\bGH200", 989.5e12, 4000 * _GB, f"{_NVIDIA}grace-hopper-superchip/ (96 GB of HBM3)"),
    Peaks(r"\bH200.*NVL", 835.5e12, 4800 * _GB, f"{_NVIDIA}h200/ (NVL)"),
    Peaks(r"\bH200", 989.5e12, 4800 * _GB, f"{_NVIDIA}h200/"),
    Peaks(r"\bH100.*PCIe", 756.5e12, 2000 * _GB, f"{_NVIDIA}h100/"),
    Peaks(r"\bH100.*NVL", 835.5e12, 3900 * _GB, f"{_NVIDIA}h100/"),
    Peaks(r"\bH100", 989.5e12, 3350 * _GB, f"{_NVIDIA}h100/"),
    Peaks(r"\bL40S", 362.05e12, 864 * _GB, f"{_NVIDIA}l40s/"),
    Peaks(r"\bL40\b", 181.05e12, 864 * _GB, f"{_NVIDIA}l40/"),
    Peaks(r"\bL4\b", 121e12, 300 * _GB, f"{_NVIDIA}l4/"),
    Peaks(r"\bA100(?!\d).*(80GB.*PCIe|PCIe.*80GB)", 312e12, 1935 * _GB, f"{_NVIDIA}a100/ (PCIe)"),
    Peaks(r"\bA100(?!\d).*80GB", 312e12, 2039 * _GB, f"{_NVIDIA}a100/ (SXM)"),
    Peaks(r"\bA100(?!\d)", 312e12, 1555 * _GB, f"{_NVIDIA}a100/ (40 GB)"),
    Peaks(r"\bA10\b", 125e12, 600 * _GB, f"{_NVIDIA}products/a10-gpu/"),
    Peaks(r"\bV100S", 130e12, 1134 * _GB, f"{_NVIDIA}v100/ (V100S)"),
    Peaks(r"\bV100.*PCIe", 112e12, 900 * _GB, f"{_NVIDIA}v100/ (PCIe)"),
    Peaks(r"\bV100", 125e12, 900 * _GB, f"{_NVIDIA}v100/ (SXM2)"),
    Peaks(r"\bT4\b", 65e12, 320 * _GB, f"{_NVIDIA}tesla-t4/"),
    Peaks(r"\bP100(?!\d)", 21.2e12, 732 * _GB, f"{_NVIDIA}tesla-p100/"),
    Peaks(r"\bMI355X", 2516.6e12, 8000 * _GB, f"{_AMD}mi350/mi355x.html"),
    Peaks(r"\bMI350X|gfx950", 2306.9e12, 8000 * _GB, f"{_AMD}mi350/mi350x.html"),
    Peaks(r"\bMI325X", 1307.4e12, 6000 * _GB, f"{_AMD}mi300/mi325x.html"),
    Peaks(r"\bMI300A", 980.6e12, 5300 * _GB, f"{_AMD}mi300/mi300a.html"),
    Peaks(r"\bMI300X|gfx942", 1307.4e12, 5300 * _GB, f"{_AMD}mi300/mi300x.html"),
    Peaks(r"\bMI250X|gfx90a", 191.5e12, 1638 * _GB, f"{_AMD}mi200/mi250x.html (one of two dies)"),
    Peaks(r"\bMI210", 181e12, 1638 * _GB, f"{_AMD}mi200/mi210.html"),
    Peaks(r"\bMI250\b", 181e12, 1638 * _GB, f"{_AMD}mi200/mi250.html (one of two dies)"),
    Peaks(r"\bMI100|gfx908", 184.6e12, 1229 * _GB, f"{_AMD}mi100.html"),
)

_DEVICES = tuple(
    (re.compile(entry.pattern, re.IGNORECASE), entry) for entry in DEVICES
)  # compiled once on import

# Dense floating-point operations per cycle and multiprocessor, the fastest of fp32 and fp16 on CUDA and
# tensor cores, by compute capability (NVIDIA's architecture white papers, as OpenXLA's profiler tabulates
# them up to 10.0). From 10.3 on they are computed from the data sheets: rate / (multiprocessors × boost
# clock), for example 419e12 / (170 × 2.407e9) = 1024 on an RTX 5090. Unknown capabilities use the nearest
# older one.
NVIDIA_FLOPS_PER_CYCLE = (
    (20, 64),
    (30, 384),
    (50, 256),
    (60, 256),
    (61, 256),
    (70, 1024),
    (75, 1024),
    (80, 2048),
    (86, 1024),
    (89, 1024),
    (90, 4096),
    (100, 8192),
    (103, 8192),
    (110, 8192),
    (120, 1024),
    (121, 1024),
)
# The same for AMD's compute units (CDNA white papers).
AMD_FLOPS_PER_CYCLE = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}

_CONTRADICTS = 1.5  # variants of a model differ by less, errors of a tracer by 2
_GIB = 2**30


def nvidia_flops_per_cycle(major: int, minor: int) -> int:
    """Peak operations per cycle of one multiprocessor; an unknown generation uses the nearest older one."""
    capability = major * 10 + minor
    return max(
        ((entry, rate) for entry, rate in NVIDIA_FLOPS_PER_CYCLE if entry <= capability), default=(0, 0)
    )[1]


def data_sheet(device: str) -> Peaks | None:
    """The built-in entry for a device name, None if there is none."""
    return next((entry for pattern, entry in _DEVICES if pattern.search(device)), None) if device else None


def contradicts(stated: float, sheet: float) -> bool:
    """Whether a rate stated by a trace is neither that of the data sheet nor that of a variant of the model.

    ROCm's tracer counts two transfers per memory clock, but HBM3 and HBM3E make four. MI300X: stated 2 × 1.3
    GHz × 8192 bit = 2.66 TB/s, actually 5.3; gfx950: 4.1, actually 8.0.
    """
    return bool(stated and sheet) and not sheet / _CONTRADICTS < stated < sheet * _CONTRADICTS


def amd_model(gfx: str, memory_bytes: int, n_multiprocessors: int, clock_khz: float) -> str:
    """The model of one architecture with this memory, number of compute units and clock; empty if they do not
    identify it.
    """
    if gfx == "gfx942":
        if not memory_bytes and not n_multiprocessors:
            return ""
        if n_multiprocessors == 228 or 100 * _GIB < memory_bytes < 140 * _GIB:  # MI300A: 228 units, 128 GB
            return "MI300A"
        return "MI325X" if memory_bytes > 210 * _GIB else "MI300X"  # 256 GB, 192 GB
    if gfx == "gfx950" and clock_khz:
        return "MI355X" if clock_khz > 2_300_000 else "MI350X"  # 2.4 and 2.2 GHz
    return ""


def user_peaks(device: str) -> Peaks | None:
    """The user's own entry for a device, from the file that TPUPROF_PEAKS names; None if there is none."""
    return _first(_user_file()[0], device)


def problem() -> str:
    """What is wrong with the user's file, empty if it is fine."""
    return _user_file()[1]


def _first(entries: tuple[Peaks, ...], device: str) -> Peaks | None:
    matches = (entry for entry in entries if re.search(entry.pattern, device, re.IGNORECASE))
    return next(matches, None) if device else None


def _user_file() -> tuple[tuple[Peaks, ...], str]:
    """Entries of the user's file, and its problem as text (empty if it has none)."""
    user_file = peaks_file()
    try:
        entries = tuple(_entry(name, values, user_file.path) for name, values in user_file.devices.items())
    except (ValueError, TypeError, AttributeError) as error:
        return (), f"The peaks in {user_file.path} are ignored: {error}"
    return (
        entries,
        f"The peaks in {user_file.path} are ignored: {user_file.problem}" if user_file.problem else "",
    )


def _entry(name: str, values: dict[str, object], path: str) -> Peaks:
    unknown_fields = set(values) - {"flops_per_s", "hbm_bytes_per_s"}
    if unknown_fields:
        raise ValueError(f"`{name}` has an unknown field `{min(unknown_fields)}`")
    rates = [values.get(key, 0) for key in ("flops_per_s", "hbm_bytes_per_s")]
    numbers = [
        float(rate)
        for rate in rates
        if isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate >= 0
    ]
    if len(numbers) < len(rates):
        raise ValueError(f"the rates of `{name}` must be numbers ≥ 0")
    return Peaks(re.escape(name), numbers[0], numbers[1], path)
