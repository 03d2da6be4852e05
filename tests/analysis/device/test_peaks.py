"""Peaks of AMD's GPUs whose tracer states half of the memory's, and who wins where several
sources state one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_tpuprof.analysis.device import peaks
from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.settings import PEAKS_VARIABLE
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

GB = 10**9


def gpu(stats: Stats) -> Hardware:
    return hardware(build([DrawnPlane("/device:GPU:0", {"Stream #1": [DrawnEvent("k", 0, 1)]}, stats)]))


def amd(
    minor: int, clock_ghz: float, memory: int = 0, units: int = 0, clock_khz: int = 0, **more: str
) -> Hardware:
    """As ROCm's tracer writes it: twice the memory's clock × 8192 bit, though HBM3 moves four bits per pin
    and clock.
    """
    stats: dict[str, int | str] = {
        "device_vendor": "AMD",
        "compute_cap_major": 9,
        "compute_cap_minor": minor,
        "memory_bandwidth": int(2 * clock_ghz * GB * 8192 / 8),
    }
    stats |= {"memory_size": memory} if memory else {}
    stats |= {"core_count": units, "clock_rate": clock_khz} if units else {}
    return gpu(stats | more)


@pytest.mark.parametrize(
    ("found", "model", "tera"),
    [
        (amd(4, 1.3, 206_141_652_992, 304, 2_100_000), "MI300X", 5.3),
        (amd(4, 1.465, 274_877_906_944, 304, 2_100_000), "MI325X", 6.0),
        (amd(4, 1.3, 137_438_953_472, 228, 2_100_000), "MI300A", 5.3),
        (amd(5, 2.0, 309_220_868_096, 256, 2_400_000), "MI355X", 8.0),
        (amd(5, 2.0, 309_220_868_096, 256, 2_200_000), "MI350X", 8.0),
        (amd(4, 1.3, gpu_device_name="AMD Instinct MI325X"), "AMD Instinct MI325X", 6.0),
    ],
)
def test_the_data_sheet_wins_where_the_tracer_halves_the_bandwidth(
    found: Hardware, model: str, tera: float
) -> None:
    assert (found.model, found.peak_hbm_bytes_per_s) == (model, pytest.approx(tera * 1e12))
    assert found.peak_sources[1].startswith("data sheet https://www.amd.com/")
    assert "TB/s, which contradicts it" in found.peak_sources[1]


def test_of_the_real_trace_it_is_what_rocm_states() -> None:
    """2 × 1.3 GHz × 8192 bit / 8 is the very number in the traces of an MI300X: the arithmetic above is the
    tracer's.
    """
    assert int(2 * 1.3 * GB * 8192 / 8) == 2_662_400_000_000
    assert peaks.contradicts(2_662_400_000_000, 5.3e12)
    assert not peaks.contradicts(5_324_800_000_000, 5.3e12)  # a tracer that is corrected one day


def test_which_gfx942_it_is_is_said_not_to_be_known() -> None:
    found = amd(4, 1.3)
    assert (found.model, found.peak_hbm_bytes_per_s) == ("", 5.3e12)
    assert "assumed to be an MI300X" in found.peak_sources[1]


def test_variants_of_a_model_and_other_memories_keep_what_the_trace_states() -> None:
    mi250 = gpu(
        {
            "device_vendor": "AMD",
            "compute_cap_major": 9,
            "compute_cap_minor": 0,
            "gpu_device_name": "gfx90a",
            "memory_bandwidth": 1638 * GB,
        }
    )
    v100s = gpu({"gpu_device_name": "Tesla V100S-PCIE-32GB", "memory_bandwidth": 1134 * GB})
    p100 = gpu({"gpu_device_name": "Tesla P100-PCIE-12GB", "memory_bandwidth": 549 * GB})
    unknown = gpu({"compute_cap_major": 9, "memory_bandwidth": 3352 * GB})
    assert [one.peak_hbm_bytes_per_s / GB for one in (mi250, v100s, p100, unknown)] == [1638, 1134, 549, 3352]
    assert {one.peak_sources[1] for one in (mi250, v100s, p100, unknown)} == {"the trace"}


@pytest.mark.parametrize("name", ["gfx942", "mi300x"])
def test_the_user_s_file_wins_over_trace_and_data_sheet(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "peaks.json"
    own.write_text(json.dumps({name: {"hbm_bytes_per_s": 4.9e12}}))
    monkeypatch.setenv(PEAKS_VARIABLE, str(own))
    found = amd(4, 1.3, 206_141_652_992, 304, 2_100_000)
    assert (found.peak_hbm_bytes_per_s, found.peak_sources) == (
        4.9e12,
        ("multiprocessors × operations per cycle × clock", str(own)),
    )
    assert str(own) in found.peak_source
