"""Peak rates and memory by device: every entry against its data sheet, and who wins at both sides of each
limit.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_tpuprof.analysis.device import peaks
from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.device.memory_capacity import capacity_bytes, space_name
from tb_tpuprof.settings import PEAKS_VARIABLE
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.synthetic import core_details

GIB = 1 << 30
COMPUTED = "multiprocessors × operations per cycle × clock"


def gpu(stats: Stats, n: int = 1) -> Hardware:
    return hardware(
        build(
            [
                DrawnPlane(f"/device:GPU:{i}", {"Stream #1": [DrawnEvent("k", 0, 1)]}, stats if not i else {})
                for i in range(n)
            ]
        )
    )


def tpu(*stats: Stats) -> Hardware:
    return hardware(
        build(
            [
                DrawnPlane(f"/device:TPU:{i}", {"XLA Ops": [DrawnEvent("k", 0, 1)]}, one)
                for i, one in enumerate(stats)
            ]
        )
    )


# TFLOP/s (dense, 16 bit) and GB/s per device, from the vendors' data sheets.
DATA_SHEETS = {
    "TPU7x": (1153.5, 3690),
    "TPU v7": (1153.5, 3690),
    "TPU v6 lite": (918, 1638),
    "TPU v6e": (918, 1638),
    "TPU v5 lite": (197, 819),
    "TPU v5e": (197, 819),
    "TPU v5p": (459, 2765),
    "TPU v4 lite": (138, 614),
    "TPU v4i": (138, 614),
    "TPU v4": (275, 1200),
    "TPU v3": (61.5, 450),
    "TPU v2": (23, 350),
    "NVIDIA B300 SXM6": (2250, 7700),
    "NVIDIA GB300": (2500, 8000),
    "NVIDIA GB200": (2500, 8000),
    "NVIDIA B200": (2250, 7700),
    "NVIDIA B100": (1750, 8000),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": (503.8, 1792),
    "NVIDIA GeForce RTX 5090": (419, 1792),
    "NVIDIA H200": (989.5, 4800),
    "NVIDIA H200 NVL": (835.5, 4800),
    "NVIDIA GH200 480GB": (989.5, 4000),
    "NVIDIA GH200 144G HBM3e": (989.5, 4900),
    "NVIDIA H100 PCIe": (756.5, 2000),
    "NVIDIA H100 NVL": (835.5, 3900),
    "NVIDIA H100 80GB HBM3": (989.5, 3350),
    "NVIDIA L40S": (362.05, 864),
    "NVIDIA L40": (181.05, 864),
    "NVIDIA L4": (121, 300),
    "NVIDIA A100 80GB PCIe": (312, 1935),
    "NVIDIA A100-SXM4-80GB": (312, 2039),
    "NVIDIA A100-SXM4-40GB": (312, 1555),
    "NVIDIA A10": (125, 600),
    "Tesla V100S-PCIE-32GB": (130, 1134),
    "Tesla V100-PCIE-16GB": (112, 900),
    "Tesla V100-SXM2-16GB": (125, 900),
    "Tesla T4": (65, 320),
    "Tesla P100-SXM2": (21.2, 732),
    "AMD Instinct MI355X": (2516.6, 8000),
    "AMD Instinct MI350X": (2306.9, 8000),
    "gfx950": (2306.9, 8000),
    "AMD Instinct MI325X": (1307.4, 6000),
    "AMD Instinct MI300A": (980.6, 5300),
    "AMD Instinct MI300X": (1307.4, 5300),
    "gfx942": (1307.4, 5300),
    "AMD Instinct MI250X": (191.5, 1638),
    "AMD Instinct MI250": (181, 1638),
    "AMD Instinct MI210": (181, 1638),
    "gfx90a": (191.5, 1638),
    "AMD Instinct MI100": (184.6, 1229),
    "gfx908": (184.6, 1229),
}


@pytest.mark.parametrize("device", list(DATA_SHEETS))
def test_data_sheets(device: str) -> None:
    entry = peaks.data_sheet(device)
    assert entry is not None
    assert (entry.flops_per_s / 1e12, entry.hbm_bytes_per_s / 1e9) == pytest.approx(DATA_SHEETS[device])
    assert peaks.data_sheet(device.lower()) is entry


def test_every_entry_is_compared_and_unknown_devices_have_none() -> None:
    assert {peaks.data_sheet(device) for device in DATA_SHEETS} == set(peaks.DEVICES)
    assert [
        peaks.data_sheet(device)
        for device in ("", "CPU", "NVIDIA L400", "NVIDIA RTX A1000 Laptop GPU", "Quadro P1000")
    ] == [None] * 5


# Operations per cycle of one multiprocessor; of an unknown capability, those of the nearest older one.
NVIDIA = {
    (1, 3): 0,
    (2, 0): 64,
    (2, 1): 64,
    (3, 0): 384,
    (3, 7): 384,
    (5, 0): 256,
    (5, 3): 256,
    (6, 0): 256,
    (6, 1): 256,
    (6, 9): 256,
    (7, 0): 1024,
    (7, 4): 1024,
    (7, 5): 1024,
    (8, 0): 2048,
    (8, 5): 2048,
    (8, 6): 1024,
    (8, 8): 1024,
    (8, 9): 1024,
    (9, 0): 4096,
    (9, 9): 4096,
    (10, 0): 8192,
    (10, 2): 8192,
    (10, 3): 8192,
    (11, 0): 8192,
    (11, 9): 8192,
    (12, 0): 1024,
    (12, 1): 1024,
    (13, 0): 1024,
}


def test_operations_per_cycle() -> None:
    assert {capability: peaks.nvidia_flops_per_cycle(*capability) for capability in NVIDIA} == NVIDIA
    capabilities = [entry for entry, _ in peaks.NVIDIA_FLOPS_PER_CYCLE]
    assert capabilities == [20, 30, 50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121]
    assert peaks.AMD_FLOPS_PER_CYCLE == {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}


def test_a_rate_contradicts_beyond_one_and_a_half_in_either_direction() -> None:
    assert [peaks.contradicts(stated, 3.0) for stated in (1.9, 2.0, 2.1, 3.0, 4.4, 4.5, 4.6)] == [
        True,
        True,
        False,
        False,
        False,
        True,
        True,
    ]
    assert not peaks.contradicts(0.0, 3.0)
    assert not peaks.contradicts(3.0, 0.0)


@pytest.mark.parametrize(
    ("gfx", "gib", "units", "clock_khz", "model"),
    [
        ("gfx942", 0, 0, 0, ""),
        ("gfx942", 0, 228, 0, "MI300A"),
        ("gfx942", 192, 228, 0, "MI300A"),
        ("gfx942", 0, 304, 0, "MI300X"),
        ("gfx942", 128, 0, 0, "MI300A"),
        ("gfx942", 100, 0, 0, "MI300X"),
        ("gfx942", 140, 0, 0, "MI300X"),
        ("gfx942", 64, 304, 0, "MI300X"),
        ("gfx942", 192, 304, 0, "MI300X"),
        ("gfx942", 210, 304, 0, "MI300X"),
        ("gfx942", 256, 304, 0, "MI325X"),
        ("gfx950", 288, 256, 2_200_000, "MI350X"),
        ("gfx950", 288, 256, 2_300_000, "MI350X"),
        ("gfx950", 288, 256, 2_400_000, "MI355X"),
        ("gfx950", 288, 256, 0, ""),
        ("gfx90a", 128, 110, 1_700_000, ""),
    ],
)
def test_models_of_an_architecture(gfx: str, gib: int, units: int, clock_khz: int, model: str) -> None:
    assert peaks.amd_model(gfx, gib * GIB, units, clock_khz) == model


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"X": {"flops": 1, "bytes": 2}}, "`X` has an unknown field `bytes`"),
        ({"X": {"flops_per_s": -1}}, "the rates of `X` must be numbers ≥ 0"),
        ({"X": {"hbm_bytes_per_s": True}}, "the rates of `X` must be numbers ≥ 0"),
        ({"X": {"hbm_bytes_per_s": "1e9"}}, "the rates of `X` must be numbers ≥ 0"),
        ({"X": {"flops_per_s": 0, "hbm_bytes_per_s": 5}, "XY": {"flops_per_s": 7.0}}, ""),
    ],
)
def test_the_user_s_file(
    entries: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "peaks.json"
    own.write_text(json.dumps(entries))
    monkeypatch.setenv(PEAKS_VARIABLE, str(own))
    problem = f"The peaks in {own} are ignored: {message}" if message else ""
    assert peaks.problem() == problem
    found = peaks.user_peaks("my xy")
    assert (found is None) == bool(message)
    assert peaks.user_peaks("") is None
    if found is not None:
        assert (found.flops_per_s, found.hbm_bytes_per_s, found.source) == (0, 5, str(own))
        assert peaks.user_peaks("other") is None


@pytest.mark.parametrize(
    ("ratio", "is_computed"), [(0.97, False), (0.979, False), (0.981, True), (1.019, True), (1.021, False)]
)
def test_a_clock_beyond_the_data_sheet_s_by_two_percent_does_not_count(
    ratio: float, is_computed: bool
) -> None:
    stats: dict[str, int | str] = {
        "compute_cap_major": 7,
        "compute_cap_minor": 5,
        "core_count": 40,
        "clock_rate": round(65e12 * ratio / (40 * 1024) / 1000),
    }
    named = gpu({**stats, "gpu_device_name": "Tesla T4"})
    assert (named.model, named.device) == ("Tesla T4", "Tesla T4")
    assert named.peak_flops_per_s == pytest.approx(65e12 * (ratio if is_computed else 1), rel=1e-6)
    assert (named.peak_sources[0] == COMPUTED) == is_computed
    unnamed = gpu(stats)
    assert (unnamed.model, unnamed.device) == ("", "NVIDIA GPU (Turing)")
    assert unnamed.peak_flops_per_s == pytest.approx(65e12 * ratio, rel=1e-6)
    assert unnamed.peak_sources == (COMPUTED, "")


@pytest.mark.parametrize(
    ("stats", "units", "clock_khz", "flops", "shared"),
    [
        ({"compute_cap_major": 9}, 3, 500_000, 4096, 256),
        ({"compute_cap_major": 3}, 3, 500_000, 384, 256),
        ({"compute_cap_major": 2, "compute_cap_minor": 1}, 3, 500_000, 64, 128),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4}, 304, 2_100_000, 2048, 128),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 5}, 256, 2_200_000, 4096, 256),
        ({"device_vendor": "AMD", "gpu_device_name": "gfx90a"}, 104, 1_700_000, 1024, 128),
    ],
)
def test_rates_per_cycle_of_a_gpu(
    stats: dict[str, int | str], units: int, clock_khz: int, flops: int, shared: int
) -> None:
    found = gpu({**stats, "core_count": units, "clock_rate": clock_khz}, n=2)
    assert (found.kind, found.n_devices) == ("GPU", 2)
    cycles = units * clock_khz * 1000
    assert (found.peak_flops_per_s, found.peak_shared_bytes_per_s) == (cycles * flops, cycles * shared)
    assert found.peak_sources[0] == COMPUTED
    unknown = gpu({"device_vendor": "AMD", "core_count": units, "clock_rate": clock_khz})
    assert (unknown.device, unknown.peak_flops_per_s) == ("AMD GPU", 0)
    assert unknown.peak_shared_bytes_per_s == cycles * 128


@pytest.mark.parametrize(
    ("major", "minor", "name"),
    [
        (2, 1, " (Fermi)"),
        (3, 0, " (Kepler)"),
        (5, 0, " (Maxwell)"),
        (6, 1, " (Pascal)"),
        (7, 0, " (Volta)"),
        (7, 4, " (Volta)"),
        (7, 5, " (Turing)"),
        (8, 0, " (Ampere)"),
        (8, 8, " (Ampere)"),
        (8, 9, " (Ada Lovelace)"),
        (9, 0, " (Hopper)"),
        (10, 0, " (Blackwell)"),
        (11, 0, " (Blackwell)"),
        (12, 1, " (Blackwell)"),
        (4, 0, ""),
        (13, 0, ""),
    ],
)
def test_families(major: int, minor: int, name: str) -> None:
    found = gpu({"compute_cap_major": major, "compute_cap_minor": minor})
    assert found.device == f"NVIDIA GPU{name}"


def test_a_gpu_states_its_rates_and_memory() -> None:
    found = gpu(
        {
            "gpu_device_name": "NVIDIA A100-SXM4-40GB",
            "peak_teraflops_per_second": 300.0,
            "memory_bandwidth": 1_600_000_000_000,
            "memory_size": 40 * GIB,
        }
    )
    assert (found.peak_flops_per_s, found.peak_hbm_bytes_per_s, found.memory_bytes) == (
        300e12,
        1.6e12,
        40 * GIB,
    )
    assert (found.peak_sources, found.peak_source) == (("the trace", "the trace"), "the trace")
    assert gpu({"gpu_device_name": "strange", "memory_bandwidth": float("nan")}).peak_hbm_bytes_per_s == 0
    unnamed = gpu({"gpu_device_name": "900-21001", "compute_cap_major": 8, "core_count": 2, "clock_rate": 10})
    assert (unnamed.device, unnamed.model) == ("NVIDIA GPU (Ampere)", "")
    amd = gpu(
        {"device_vendor": "AMD", "gpu_device_name": "gfx942", "core_count": 228, "clock_rate": 2_100_000}
    )
    assert (amd.device, amd.model) == ("AMD GPU gfx942", "MI300A")
    assert amd.peak_source == f"compute: {COMPUTED}; memory: {amd.peak_sources[1]}"
    assert "assumed" not in amd.peak_source


def test_a_tpu_states_its_rates_and_which_cores_share_a_chip() -> None:
    rates: dict[str, float | str] = {
        "device_type_string": "TPU v6 Lite",
        "peak_teraflops_per_second": 900.0,
        "peak_hbm_bw_gigabytes_per_second": 1600.0,
        "peak_vmem_rd_bw_gigabytes_per_second": 25_000.0,
    }
    chips = (4, 4, 7)
    found = tpu(*({**rates, "core_details": core_details(i, chip)} for i, chip in enumerate(chips)))
    assert found == Hardware(
        "TPU", "TPU v6e", 3, 900e12, 1.6e12, 25e12, 0, ("the trace", "the trace"), n_chips=2
    )
    partly = tpu({**rates, "core_details": core_details(0, 1)}, rates)
    assert (partly.n_devices, partly.n_chips) == (2, 0)
    unstated = tpu({"device_type_string": "TPU v4 lite"})
    assert (unstated.device, unstated.peak_flops_per_s, unstated.n_chips) == ("TPU v4i", 138e12, 0)
    assert unstated.peak_sources[1].startswith("data sheet Jouppi et al.")
    assert tpu({}).device == "TPU"


def test_a_machine_without_accelerators() -> None:
    found = hardware(build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 1)]})]))
    assert found == Hardware("CPU", "CPU", 0)
    assert (found.peak_source, found.nearest_limit(1e9, 1e9)) == ("", ("Unknown", 0.0))


@pytest.mark.parametrize(
    ("kind", "flops", "n_bytes", "limit"),
    [
        ("TPU", 50, 10, ("Compute", 0.5)),
        ("TPU", 50, 150, ("HBM", 0.75)),
        ("TPU", 50, 100, ("Compute", 0.5)),
        ("GPU", 50, 10, ("Compute", 0.5)),
        ("GPU", 5, 40, ("Shm/L1", 0.8)),
        ("GPU", 0, 0, ("Unknown", 0.0)),
    ],
)
def test_the_resource_closest_to_its_peak(
    kind: str, flops: float, n_bytes: float, limit: tuple[str, float]
) -> None:
    assert Hardware(kind, "x", 1, 100.0, 200.0, 50.0).nearest_limit(flops, n_bytes) == pytest.approx(limit)


def test_only_resources_with_a_known_peak_limit() -> None:
    assert Hardware("TPU", "x", 1, 0.0, 200.0).nearest_limit(50, 20) == ("HBM", 0.1)
    assert Hardware("x", "x", 1, 1.0, 1.0, 0, 0, ("file", "")).peak_source == "file"
    assert Hardware("x", "x", 1, 1.0, 1.0, 0, 0, ("", "file")).peak_source == "file"


@pytest.mark.parametrize(
    ("device", "gib"),
    [
        ("TPU7x", 96),
        ("TPU v7", 96),
        ("TPU v6 lite", 32),
        ("TPU v6e", 32),
        ("TPU v5 lite", 16),
        ("TPU v5e", 16),
        ("TPU v5p", 95),
        ("TPU v4 lite", 8),
        ("TPU v4i", 8),
        ("TPU v4", 32),
        ("TPU v3", 16),
        ("tpu v2", 8),
        ("TPU", 0),
    ],
)
def test_memory_of_a_tpu(device: str, gib: int) -> None:
    machine = Hardware("TPU", device, 1)
    assert capacity_bytes(machine, 0) == gib * GIB
    assert capacity_bytes(machine, 1) == 0
    assert capacity_bytes(Hardware("GPU", device, 1), 0) == 0
    assert capacity_bytes(Hardware("TPU", device, 1, memory_bytes=5), 0) == 5
    assert capacity_bytes(Hardware("GPU", device, 1, memory_bytes=7), 0) == 7


def test_memory_spaces_by_xla_s_number() -> None:
    names = {
        kind: [space_name(kind, color) for color in range(7)] for kind in ("TPU", "GPU", "CPU", "", "FPGA")
    }
    numbered = [f"Memory space {color}" for color in range(7)]
    assert names["TPU"] == ["HBM", "VMEM", "Sync flags", "SMEM", numbered[4], "Host memory", numbered[6]]
    assert names["GPU"] == [
        "Device memory",
        "Collective memory",
        "Temp buffers",
        *numbered[3:5],
        "Host memory",
        numbered[6],
    ]
    assert names["CPU"] == ["Main memory", *numbered[1:5], "Host memory", numbered[6]]
    assert names[""] == ["Device memory", *numbered[1:5], "Host memory", numbered[6]]
    assert names["FPGA"] == numbered
