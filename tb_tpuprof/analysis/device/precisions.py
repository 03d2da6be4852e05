"""Peak FLOP rates of GPUs by the type of the operands, relative to that of 16-bit types on matrix units.

Rates are dense, in TFLOP/s, from the same data sheets as `peaks`: the larger of ordinary and matrix units
where both compute in that type. TF32 is what NVIDIA's tensor cores make of 32-bit operands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FP64, FP32, TF32, BITS16 = "64-bit", "32-bit", "TF32", "16-bit"
FP8, INT8, FP4 = "8-bit", "8-bit integers", "4-bit"
_BY_TYPE = {
    "double": FP64,
    "float": FP32,
    "half": BITS16,
    "bfloat16": BITS16,
    "float8_e5m2": FP8,
    "float8_e4m3fn": FP8,
    "float8_e5m2fnuz": FP8,
    "float8_e4m3fnuz": FP8,
    "signed char": INT8,
    "char": INT8,
    "float4_e2m1fn_x2": FP4,
}


@dataclass(frozen=True)
class Rates:
    """TFLOP/s of one model (of integers: 10^12 operations/s), 0 where it has no such units or the rate is
    unknown.
    """

    pattern: str
    fp64: float
    fp32: float
    tf32: float
    bits16: float
    fp8: float = 0.0
    int8: float = 0.0
    fp4: float = 0.0

    def rate(self, precision: str) -> float:
        """The rate at a precision, 0 if it is unknown."""
        names = {
            FP64: self.fp64,
            FP32: self.fp32,
            TF32: self.tf32,
            BITS16: self.bits16,
            FP8: self.fp8,
            INT8: self.int8,
            FP4: self.fp4,
        }
        return names.get(precision, 0.0)


# The first match wins. `docs/peaks.md` lists them with their sources.
MODELS = (
    Rates(r"\bGB300", 0, 80, 1250, 2500, 5000, 0, 15_000),
    Rates(r"\bB300", 1.25, 75, 1125, 2250, 4500),
    Rates(r"\bGB200", 40, 80, 1250, 2500, 5000, 5000, 10_000),
    Rates(r"\bB200", 37, 75, 1125, 2250, 4500, 4500, 9000),
    Rates(r"\bH200.*NVL", 60, 60, 417.5, 835.5, 1671, 1671),
    Rates(r"\b(H200|GH200)", 67, 67, 494.7, 989.5, 1979, 1979),
    Rates(r"\bH100.*PCIe", 51, 51, 378, 756.5, 1513, 1513),
    Rates(r"\bH100.*NVL", 60, 60, 417.5, 835.5, 1671, 1671),
    Rates(r"\bH100", 67, 67, 494.7, 989.5, 1979, 1979),
    Rates(r"\bL40S", 1.4, 91.6, 183, 362.05, 733, 733),
    Rates(r"\bL40\b", 1.4, 90.5, 90.5, 181.05, 362, 362),
    Rates(r"\bL4\b", 0.47, 30.3, 60, 121, 242.5, 242.5),
    Rates(r"\bA100(?!\d)", 19.5, 19.5, 156, 312, 0, 624),
    Rates(r"\bA10\b", 0.49, 31.2, 62.5, 125, 0, 250),
    Rates(r"\bV100S", 8.2, 16.4, 0, 130),
    Rates(r"\bV100.*PCIe", 7, 14, 0, 112),
    Rates(r"\bV100", 7.8, 15.7, 0, 125),
    Rates(r"\bT4\b", 0.25, 8.1, 0, 65, 0, 130),
    Rates(r"\bP100(?!\d)", 5.3, 10.6, 0, 21.2),
    Rates(r"\bMI355X", 78.6, 157.3, 0, 2516.6, 5033.2, 5033.2, 10_066.3),
    Rates(r"\bMI350X|gfx950", 72.1, 144.2, 0, 2306.9, 4613.8, 4613.8, 9227.5),
    Rates(r"\bMI300A", 122.6, 122.6, 490.3, 980.6, 1961.2, 1961.2),
    Rates(r"\b(MI300X|MI325X)|gfx942", 163.4, 163.4, 653.7, 1307.4, 2614.9, 2614.9),
    Rates(r"\bMI250X|gfx90a", 47.9, 47.9, 0, 191.5, 0, 191.5),
    Rates(r"\bMI2(50\b|10)", 45.3, 45.3, 0, 181, 0, 181),
    Rates(r"\bMI100|gfx908", 11.5, 46.1, 0, 184.6, 0, 184.6),
)
_PATTERNS = tuple((re.compile(model.pattern, re.IGNORECASE), model) for model in MODELS)


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
