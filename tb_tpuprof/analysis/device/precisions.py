"""Peak FLOP rates of GPUs by the type of the operands, relative to that of 16-bit types on matrix units.

Rates are dense, in TFLOP/s, from the same data sheets as `peaks`: the larger of ordinary and matrix units
where both compute in that type. TF32 is what NVIDIA's tensor cores make of 32-bit operands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FP64, FP32, TF32, BITS16, FP8 = "64-bit", "32-bit", "TF32", "16-bit", "8-bit"
_BY_TYPE = {
    "double": FP64,
    "float": FP32,
    "half": BITS16,
    "bfloat16": BITS16,
    "float8_e5m2": FP8,
    "float8_e4m3fn": FP8,
    "float8_e5m2fnuz": FP8,
    "float8_e4m3fnuz": FP8,
}


@dataclass(frozen=True)
class _Rates:
    """TFLOP/s of one model, 0 where it has no such units."""

    pattern: str
    fp64: float
    fp32: float
    tf32: float
    bits16: float
    fp8: float = 0.0

    def rate(self, precision: str) -> float:
        names = {FP64: self.fp64, FP32: self.fp32, TF32: self.tf32, BITS16: self.bits16, FP8: self.fp8}
        return names.get(precision, 0.0)


# The first match wins.
_MODELS = (
    _Rates(r"\bGB200", 40, 80, 1250, 2500, 5000),
    _Rates(r"\bB200", 37, 75, 1125, 2250, 4500),
    _Rates(r"\b(H200|GH200)", 67, 67, 494.7, 989.5, 1979),
    _Rates(r"\bH100.*PCIe", 51, 51, 378, 756.5, 1513),
    _Rates(r"\bH100.*NVL", 60, 60, 417.5, 835.5, 1671),
    _Rates(r"\bH100", 67, 67, 494.7, 989.5, 1979),
    _Rates(r"\bL40S", 1.4, 91.6, 183, 362.05, 733),
    _Rates(r"\bL4\b", 0.5, 30.3, 60, 121, 242.5),
    _Rates(r"\bA100(?!\d)", 19.5, 19.5, 156, 312),
    _Rates(r"\bA10\b", 0.5, 31.2, 62.5, 125),
    _Rates(r"\bV100", 7.8, 15.7, 0, 125),
    _Rates(r"\bT4\b", 0.25, 8.1, 0, 65),
    _Rates(r"\bP100(?!\d)", 5.3, 10.6, 0, 21.2),
    _Rates(r"\bMI355X", 78.6, 157.3, 0, 2516.6, 5033.2),
    _Rates(r"\bMI350X|gfx950", 72.1, 144.2, 0, 2306.9, 4613.8),
    _Rates(r"\bMI300A", 122.6, 122.6, 490.3, 980.6, 1961.2),
    _Rates(r"\b(MI300X|MI325X)|gfx942", 163.4, 163.4, 653.7, 1307.4, 2614.9),
    _Rates(r"\bMI2(50X|50|10)|gfx90a", 47.9, 47.9, 0, 191.5),
    _Rates(r"\bMI100|gfx908", 11.5, 46.1, 0, 184.6),
)
_PATTERNS = tuple((re.compile(model.pattern, re.IGNORECASE), model) for model in _MODELS)


def precision_of(dtype: str, on_tensor_cores: bool, is_amd: bool) -> str:
    """The precision of a product of operands of a type (c10's name); empty if the type has none here.

    NVIDIA's tensor cores round 32-bit operands to TF32; AMD's matrix units compute in 32 bits.
    """
    precision = _BY_TYPE.get(dtype.strip().lower().replace("c10::", ""), "")
    return TF32 if precision == FP32 and on_tensor_cores and not is_amd else precision


def relative_peak(device: str, precision: str) -> float:
    """Peak rate at a precision ÷ peak rate at 16 bits; 1 if the model or its rate at this precision is
    unknown.
    """
    model = next((model for pattern, model in _PATTERNS if device and pattern.search(device)), None)
    rate = model.rate(precision) if model else 0.0
    return rate / model.bits16 if model and rate else 1.0
