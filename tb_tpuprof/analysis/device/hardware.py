"""The hardware that the job ran on: accelerators, their names and peak rates."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.device import peaks
from tb_tpuprof.analysis.events.frameworks import software
from tb_tpuprof.analysis.events.hlo_names import replicas
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.proto_fields import number_field
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_value

_AMD_BY_CAPABILITY = {(9, 4): "gfx942", (9, 5): "gfx950"}
_GIGA = 1e9
_IN_TRACE = "the trace"
_SAME_RATE = 0.02  # relative; rounding differs by less
_COMPUTED = "multiprocessors × operations per cycle × clock"
_NVIDIA_FAMILIES = {
    2: "Fermi",
    3: "Kepler",
    5: "Maxwell",
    6: "Pascal",
    9: "Hopper",
    10: "Blackwell",
    11: "Blackwell",
    12: "Blackwell",
}


# Traces call the efficient products "lite"; users know them by the letter.
_LITE = re.compile(r"\bv(\d+) ?lite\b", re.IGNORECASE)


def _lite_product(match: re.Match[str]) -> str:
    """`v6 Lite` is v6e; that of v4 is v4i."""
    generation = match[1]
    return f"v{generation}{'i' if generation == '4' else 'e'}"


@dataclass(frozen=True)
class Hardware:
    """`kind`: TPU, GPU or CPU. Peaks are per device (TPU: per core), 0 if unknown; `shared_bytes_per_s` is
    on-chip memory.

    Peaks of compute and memory come from (`peak_sources`), in this order: the user's file; the data sheet, if
    the trace contradicts it; the trace; multiprocessors and clock (GPU); the data sheet. `model`: the exact
    model, if name, memory or clock identify it. `n_chips`: of TPUs whose trace states which cores share a
    chip, else 0. `n_replicas` of `n_partitions` devices each: how the program that runs on most devices of
    all hosts is spread over them; 0 if unknown.
    """

    kind: str
    device: str
    n_devices: int
    peak_flops_per_s: float = 0.0
    peak_hbm_bytes_per_s: float = 0.0
    peak_shared_bytes_per_s: float = 0.0
    memory_bytes: int = 0
    peak_sources: tuple[str, str] = ("", "")
    n_chips: int = 0
    n_replicas: int = 0
    n_partitions: int = 0
    model: str = ""

    @property
    def title(self) -> str:
        """The device's name for sentences and lists: the exact model, if it is known."""
        return self.model or self.device

    @property
    def peak_source(self) -> str:
        """Where the peaks come from, as one text; empty if no peak is known."""
        compute, memory = self.peak_sources
        return (
            f"compute: {compute}; memory: {memory}"
            if compute and memory and compute != memory
            else compute or memory
        )

    def nearest_limit(self, flops_per_s: float, bytes_per_s: float) -> tuple[str, float]:
        """The resource that an operation uses closest to its peak, and the fraction of that peak; `Unknown`,
        0 if no peak is known.
        """
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
        return name, share


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
    values = sparse.value[sparse.owner == plane]
    return float(values[0]) if len(values) and np.isfinite(values[0]) else 0.0


def _plane_text(trace: Trace, plane: int, key: str) -> str:
    sparse = trace.plane_stats.texts(key)
    ids = sparse.value[sparse.owner == plane]
    return trace.strings.get(int(ids[0])) if len(ids) else ""


def _tpu(trace: Trace, cores: tuple[int, ...]) -> Hardware:
    plane = cores[0] if cores else planes(trace).sparse_cores[0]
    stated_name = _plane_text(trace, plane, "device_type_string") or "TPU"
    device = _LITE.sub(_lite_product, stated_name)
    stated = (
        _plane_number(trace, plane, "peak_teraflops_per_second") * 1e12,
        _plane_number(trace, plane, "peak_hbm_bw_gigabytes_per_second") * _GIGA,
    )
    flops, hbm, source = _with_tables(tuple(dict.fromkeys((device, stated_name))), stated, 0.0)
    shared = _plane_number(trace, plane, "peak_vmem_rd_bw_gigabytes_per_second") * _GIGA
    chips = chip_of_plane(trace)
    n_chips = len({chips[core] for core in cores}) if all(core in chips for core in cores) else 0
    return Hardware("TPU", device, len(cores), flops, hbm, shared, 0, source, n_chips, *replicas(trace))


def _with_tables(
    names: tuple[str, ...], stated: tuple[float, float], computed_flops: float
) -> tuple[float, float, tuple[str, str]]:
    """Peak FLOP rate, peak memory bandwidth, and their sources. `names`: the device's names, the exact model
    first.

    If a rate computed from units and clock differs from the data sheet of a known model, the data sheet wins:
    a GPU's highest clock can exceed the clock that its data sheet is based on, and files of another format,
    which state no clock, use the data sheet, too.
    """
    user_entry = next((entry for name in names if (entry := peaks.user_peaks(name))), None)
    sheet = next((entry for name in names if (entry := peaks.data_sheet(name))), None)
    rates, sources = [0.0, 0.0], ["", ""]
    for i, (field, unit) in enumerate((("flops_per_s", "flops_per_s"), ("hbm_bytes_per_s", "bytes_per_s"))):
        sheet_rate = getattr(sheet, field) if sheet else 0.0
        if user_entry and getattr(user_entry, field):
            rates[i], sources[i] = getattr(user_entry, field), user_entry.source
        elif sheet and peaks.contradicts(stated[i], sheet_rate):
            wrong = f"the trace states {format_value(stated[i], unit)}, which contradicts it"
            rates[i], sources[i] = sheet_rate, f"data sheet {sheet.source} ({wrong})"
        elif stated[i]:
            rates[i], sources[i] = stated[i], _IN_TRACE
        elif (
            i == 0
            and computed_flops
            and not (names[0] and sheet_rate and abs(computed_flops / sheet_rate - 1) > _SAME_RATE)
        ):
            rates[i], sources[i] = computed_flops, _COMPUTED
        elif sheet:
            rates[i], sources[i] = sheet_rate, f"data sheet {sheet.source}"
    return rates[0], rates[1], (sources[0], sources[1])


@once
def chip_of_plane(trace: Trace) -> dict[int, int]:
    """For each TPU plane that has a `core_details` stat (a CoreDetails message), its chip within the host
    (field 4).
    """
    spans = trace.plane_stats.spans("core_details")
    return {plane: number_field(trace.source.read(position, size), 4) for plane, position, size in spans}


def _gpu(trace: Trace, gpus: tuple[int, ...]) -> Hardware:
    plane = gpus[0]
    major, minor = (int(_plane_number(trace, plane, f"compute_cap_{part}")) for part in ("major", "minor"))
    stated_name = _plane_text(trace, plane, "gpu_device_name")
    vendor = _plane_text(trace, plane, "device_vendor") or ("AMD" if software(trace).is_amd else "Nvidia")
    cycles = _plane_number(trace, plane, "core_count") * _plane_number(trace, plane, "clock_rate") * 1e3
    if vendor == "AMD":
        gfx = stated_name if stated_name.startswith("gfx") else _AMD_BY_CAPABILITY.get((major, minor), "")
        name, per_cycle = (f"AMD GPU {gfx}".strip(), peaks.AMD_FLOPS_PER_CYCLE.get(gfx, 0))
        shared = cycles * (256 if gfx == "gfx950" else 128)
    else:
        name, per_cycle = _nvidia_name(major, minor), peaks.nvidia_flops_per_cycle(major, minor)
        shared = cycles * (256 if major > 2 else 128)
    is_model = bool(re.search(r"[A-Za-z]", stated_name)) and not stated_name.startswith("gfx")
    device = stated_name if is_model else name
    stated = (
        _plane_number(trace, plane, "peak_teraflops_per_second") * 1e12,
        _plane_number(trace, plane, "memory_bandwidth"),
    )
    memory_bytes = int(_plane_number(trace, plane, "memory_size"))
    if vendor == "AMD" and not is_model:
        n_units, clock_khz = (
            int(_plane_number(trace, plane, "core_count")),
            _plane_number(trace, plane, "clock_rate"),
        )
        model = peaks.amd_model(gfx, memory_bytes, n_units, clock_khz)
    else:
        model = stated_name if is_model else ""
    flops, hbm, source = _with_tables((model, device), stated, cycles * per_cycle)
    if device.endswith("gfx942") and not model:
        source = (
            source[0],
            f"{source[1]}; gfx942 is assumed to be an MI300X because the trace does not state its memory",
        )
    return Hardware(
        "GPU", device, len(gpus), flops, hbm, shared, memory_bytes, source, 0, *replicas(trace), model
    )


def _nvidia_name(major: int, minor: int) -> str:
    if major == 7:
        family = "Turing" if minor >= 5 else "Volta"
    elif major == 8:
        family = "Ada Lovelace" if minor >= 9 else "Ampere"
    else:
        family = _NVIDIA_FAMILIES.get(major, "")
    return f"NVIDIA GPU ({family})" if family else "NVIDIA GPU"
