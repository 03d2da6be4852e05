import pytest

from tb_tpuprof.analysis.device.peaks import data_sheet
from tb_tpuprof.analysis.device.precisions import (
    BITS16,
    FP8,
    FP32,
    FP64,
    TF32,
    precision_of,
    relative_peak,
)


@pytest.mark.parametrize(
    ("dtype", "on_tensor_cores", "is_amd", "precision"),
    [
        ("float", True, False, TF32),
        ("float", False, False, FP32),
        ("float", True, True, FP32),  # AMD's matrix units compute in 32 bits
        ("c10::BFloat16", True, False, BITS16),
        ("c10::Half", False, False, BITS16),
        ("double", True, False, FP64),
        ("c10::Float8_e4m3fn", True, False, FP8),
        ("long int", False, False, ""),
        ("", True, False, ""),
    ],
)
def test_precision_of_operands(dtype: str, on_tensor_cores: bool, is_amd: bool, precision: str) -> None:
    assert precision_of(dtype, on_tensor_cores, is_amd) == precision


# Published rates in TFLOP/s, from the vendors' data sheets: (device, precision, rate).
PUBLISHED = [
    ("NVIDIA H100 80GB HBM3", FP32, 67),
    ("NVIDIA H100 80GB HBM3", TF32, 494.7),
    ("NVIDIA H100 80GB HBM3", FP8, 1979),
    ("NVIDIA H100 PCIe", TF32, 378),
    ("NVIDIA H200", FP32, 67),
    ("NVIDIA H200", TF32, 494.7),
    ("NVIDIA A100-SXM4-40GB", FP64, 19.5),
    ("NVIDIA A100-SXM4-40GB", TF32, 156),
    ("Tesla V100-SXM2-16GB", FP32, 15.7),
    ("AMD Instinct MI300X", FP32, 163.4),
    ("AMD Instinct MI300X", FP8, 2614.9),
    ("AMD GPU gfx90a", FP64, 47.9),
]


@pytest.mark.parametrize(("device", "precision", "rate"), PUBLISHED)
def test_peaks_follow_the_data_sheets(device: str, precision: str, rate: float) -> None:
    sheet = data_sheet(device)
    assert sheet is not None
    assert relative_peak(device, precision) * sheet.flops_per_s / 1e12 == pytest.approx(rate, rel=0.002)


def test_16_bits_are_the_base() -> None:
    assert relative_peak("NVIDIA A100-SXM4-80GB", BITS16) == 1


@pytest.mark.parametrize(
    ("device", "precision"),
    [
        ("", FP32),
        ("Unknown GPU", FP32),
        ("Tesla V100-SXM2-16GB", TF32),
        ("NVIDIA A100-SXM4-40GB", FP8),
        ("NVIDIA L4", ""),
    ],
)
def test_unknown_rates_leave_the_peak_as_it_is(device: str, precision: str) -> None:
    assert relative_peak(device, precision) == 1
