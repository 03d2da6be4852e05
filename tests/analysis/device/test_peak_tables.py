"""The tables of docs/peaks.md and of the code are the same, and each model's name finds its own row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.analysis.device.links import LINKS, link_of
from tb_tpuprof.analysis.device.peaks import DEVICES, data_sheet
from tb_tpuprof.analysis.device.precisions import (
    BITS16,
    FP4,
    FP8,
    FP32,
    FP64,
    INT8,
    MODELS,
    TF32,
    precision_of,
    relative_peak,
)
from tb_tpuprof.analysis.pod.slices import generation_of

TEXT = (Path(__file__).parents[3] / "docs" / "peaks.md").read_text("utf-8")
PRECISIONS = (FP64, FP32, TF32, BITS16, FP8, INT8, FP4)


def table(first: str, header: str) -> list[list[str]]:
    """The rows of the table whose header begins so."""
    lines = TEXT[TEXT.index(f"| {first} | {header}") :].splitlines()[2:]
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def number(cell: str) -> float:
    return 0.0 if cell == "–" else float(cell.replace(",", ""))


GPUS = table("device", "FP64")
TPUS = table("device", "compute")
GPU_LINKS = table("device", "links")


@pytest.mark.parametrize("row", GPUS, ids=[row[0] for row in GPUS])
def test_gpus(row: list[str]) -> None:
    device = f"NVIDIA {row[0]}"
    sheet = data_sheet(device)
    assert sheet is not None
    assert sheet.hbm_bytes_per_s / 1e9 == pytest.approx(number(row[8]), rel=1e-3)
    bits16 = sheet.flops_per_s / 1e12
    assert bits16 == pytest.approx(number(row[4]), rel=1e-3)
    for precision, cell in zip(PRECISIONS, row[1:8], strict=True):
        expected = number(cell) / bits16 if number(cell) else 1.0
        assert relative_peak(device, precision) == pytest.approx(expected, rel=2e-3), precision


@pytest.mark.parametrize("row", TPUS, ids=[row[0] for row in TPUS])
def test_tpus(row: list[str]) -> None:
    sheet, generation = data_sheet(row[0]), generation_of(row[0])
    assert sheet is not None
    assert generation is not None
    assert sheet.flops_per_s / 1e12 == pytest.approx(number(row[1]), rel=1e-6)
    assert sheet.hbm_bytes_per_s / 1e9 == pytest.approx(number(row[2]), rel=1e-6)
    assert generation.link_bytes_per_s / 1e9 == number(row[3])


@pytest.mark.parametrize("row", GPU_LINKS, ids=[row[0] for row in GPU_LINKS])
def test_links(row: list[str]) -> None:
    link = link_of(row[0])
    assert link is not None
    assert (link.name, link.bytes_per_s / 1e9) == (row[1], pytest.approx(number(row[2])))


def test_every_model_with_rates_is_listed() -> None:
    listed = [row[0] for row in GPUS]
    found = {id(next(model for model in MODELS if _matches(model.pattern, name))) for name in listed}
    assert len(found) == len(MODELS)
    assert {link.name for link in LINKS} == {row[1] for row in GPU_LINKS}
    assert len(DEVICES) > len(MODELS)


def _matches(pattern: str, name: str) -> bool:
    import re

    return re.search(pattern, name, re.IGNORECASE) is not None


@pytest.mark.parametrize(
    ("device", "tera", "gb"),
    [  # names as CUDA and ROCm write them, and what their data sheets have
        ("NVIDIA A100 80GB PCIe", 312, 1935),
        ("NVIDIA A100-SXM4-80GB", 312, 2039),
        ("NVIDIA A100-PCIE-40GB", 312, 1555),
        ("Tesla V100S-PCIE-32GB", 130, 1134),
        ("Tesla V100-PCIE-16GB", 112, 900),
        ("Tesla V100-SXM2-32GB", 125, 900),
        ("NVIDIA GH200 480GB", 989.5, 4000),
        ("NVIDIA GH200 144G HBM3e", 989.5, 4900),
        ("NVIDIA H200 NVL", 835.5, 4800),
        ("NVIDIA GB300", 2500, 8000),
        ("NVIDIA B300 SXM6 AC", 2250, 7700),
        ("NVIDIA B200", 2250, 7700),
        ("AMD Instinct MI210", 181, 1638),
        ("AMD Instinct MI250X / MI250", 191.5, 1638),
        ("NVIDIA L40", 181.05, 864),
        ("NVIDIA L40S", 362.05, 864),
    ],
)
def test_variants_of_a_model(device: str, tera: float, gb: float) -> None:
    sheet = data_sheet(device)
    assert sheet is not None
    assert (sheet.flops_per_s / 1e12, sheet.hbm_bytes_per_s / 1e9) == (pytest.approx(tera), pytest.approx(gb))


def test_integers_and_four_bits() -> None:
    assert precision_of("signed char", True, False) == INT8
    assert precision_of("c10::Float4_e2m1fn_x2", True, False) == FP4
    assert relative_peak("NVIDIA A100-SXM4-80GB", INT8) == 2
    assert relative_peak("NVIDIA B200", FP4) == 4
    assert relative_peak("NVIDIA B300", FP4) == 1  # the sources disagree


@pytest.mark.parametrize(
    ("device", "name", "giga"),
    [
        ("Tesla P100-PCIE-16GB", "PCIe 3", 16),
        ("Tesla P100-SXM2-16GB", "NVLink 1", 80),
        ("Tesla V100-PCIE-32GB", "PCIe 3", 16),
        ("NVIDIA H100 NVL", "NVLink 4 bridge", 300),
        ("NVIDIA H200 NVL", "NVLink 4 bridge", 450),
    ],
)
def test_links_of_variants(device: str, name: str, giga: float) -> None:
    link = link_of(device)
    assert link is not None
    assert (link.name, link.bytes_per_s) == (name, giga * 1e9)


def test_links_of_unknown_devices_are_unknown() -> None:
    assert link_of("") is None
    assert link_of("NVIDIA GPU (Hopper)") is None
    assert link_of("NVIDIA GeForce RTX 4090") is None
