"""HLO constants as XLA writes them: {1, 2}, { { 1, 2 }, { 3, 4 } }, (1, -inf) …"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo_attributes import Literal

_MANTISSA_DIGITS = {10: 5, 16: 4}  # f16, bf16: enough to distinguish any two values
# 8-bit and smaller floats: exponent bits, mantissa bits, bias, and the encoding of non-finite values.
_SMALL = {
    19: (5, 2, 15, "ieee"),
    20: (4, 3, 7, "fn"),
    23: (4, 3, 11, "fnuz"),
    24: (5, 2, 16, "fnuz"),
    25: (4, 3, 8, "fnuz"),
    28: (4, 3, 7, "ieee"),
    29: (3, 4, 3, "ieee"),
    32: (2, 1, 1, "none"),
    33: (8, 0, 127, "exponent"),
}


def literal_text(literal: Literal, limit: int) -> str:
    """A literal; {...} if it has more than `limit` elements or they are unknown."""
    shape = literal.shape
    if shape.is_tuple:
        return "( " + ", ".join(literal_text(part, limit) for part in literal.elements) + " )"
    if literal.values is None or literal.values.size > limit:
        return "{...}"
    texts = [_value(value, shape.element_type) for value in np.asarray(literal.values).reshape(-1).tolist()]
    if not shape.dims:
        scalar = texts[0] if texts else "{...}"
        return {"0": "false", "1": "true"}.get(scalar, scalar) if shape.element_type == 1 else scalar
    return _nested(np.array(texts, object).reshape(shape.dims)) if texts else _empty(shape.dims)


def _empty(dims: tuple[int, ...]) -> str:
    return "{ " * (len(dims) - 1) + "{}" + " }" * (len(dims) - 1) if len(dims) < 3 else "{...}"


def _nested(values: npt.NDArray[Any]) -> str:
    if values.ndim == 1:
        return "{" + ", ".join(values.tolist()) + "}"
    rows = [_inner(row) for row in values]
    return "{ " + ", ".join(rows) + " }"


def _inner(values: npt.NDArray[Any]) -> str:
    return "{ " + ", ".join(values.tolist() if values.ndim == 1 else [_inner(row) for row in values]) + " }"


def _value(value: Any, code: int) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, complex):
        return f"({_float(value.real, code)}, {_float(value.imag, code)})"
    if code == 16:
        return _float(float(np.array([value << 16], np.uint32).view(np.float32)[0]), code)
    if code in _SMALL:
        return _float(small_float(int(value), code), code)
    return _float(value, code) if isinstance(value, float) else str(value)


def small_float(bits: int, code: int) -> float:
    """Value of a float with 8 or fewer bits; `code` is its element type."""
    exponent_bits, mantissa_bits, bias, kind = _SMALL[code]
    if kind == "exponent":
        return math.nan if bits == 255 else 2.0 ** (bits - bias)
    if kind == "fnuz" and bits == 0x80:
        return math.nan
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent, mantissa = bits >> mantissa_bits & (2**exponent_bits - 1), bits & (2**mantissa_bits - 1)
    is_top = exponent == 2**exponent_bits - 1
    if is_top and kind == "ieee":
        return math.nan if mantissa else sign * math.inf
    if is_top and kind == "fn" and mantissa == 2**mantissa_bits - 1:
        return math.nan
    scale = mantissa / 2**mantissa_bits
    return float(
        sign * (scale * 2.0 ** (1 - bias) if exponent == 0 else (1 + scale) * 2.0 ** (exponent - bias))
    )


def _float(value: float, code: int) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if code in _MANTISSA_DIGITS:
        return f"{value:.{_MANTISSA_DIGITS[code]}g}"
    if code in _SMALL:
        return f"{value:.{2 if _SMALL[code][1] < 3 else 3}g}"
    short, full = (15, 17) if code in (12, 18) else (6, 9)
    text = f"{value:.{short}g}"
    is_exact = float(text) == value if full == 17 else np.float32(text) == np.float32(value)
    return text if is_exact else f"{value:.{full}g}"
