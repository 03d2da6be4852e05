"""Work of custom calls known by name: matrix products, convolutions and attention of vendor libraries, Mosaic
kernels.

A call's backend configuration (JSON) states what it computes. A call that is not known, or whose
configuration does not state it, has no FLOPs and is marked as unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tb_tpuprof.analysis.hlo.flops import FMA, convolution_flops, dim_size, dot_flops, first_array
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import DotDims
from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape

_MAX_JSON_BYTES = 4 << 20


@dataclass(frozen=True)
class CallCost:
    """Work of a custom call; `bytes_accessed` is -1 if it follows from operands and result."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes_accessed: float = -1.0
    is_known: bool = True


UNKNOWN = CallCost(is_known=False)


@dataclass(frozen=True)
class Call:
    """A custom call: the input of the formulas."""

    module: HloModule
    row: int
    target: str
    result: Shape
    operands: tuple[Shape, ...]
    config: dict[str, Any]

    def operand(self, index: int) -> Shape:
        """Shape of an operand, NO_SHAPE if there is none."""
        return self.operands[index] if index < len(self.operands) else NO_SHAPE


def custom_call_cost(module: HloModule, row: int) -> CallCost:
    """Work of a custom call: stated by the call, else by the formula for its target, else UNKNOWN."""
    target = module.text("custom_call_target", row)
    operands = tuple(module.shape(int(i)) if i >= 0 else NO_SHAPE for i in module.operands[row])
    call = Call(module, row, target, module.shape(row), operands, _config(module.backend_config(row)))
    stated = _stated(call)
    if stated is not None:
        return stated
    for pattern, formula in _FORMULAS:
        if pattern.search(target):
            return formula(call)
    return UNKNOWN


def _config(data: bytes) -> dict[str, Any]:
    if not data.lstrip().startswith(b"{") or len(data) > _MAX_JSON_BYTES:
        return {}
    try:
        config = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def _part(config: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        config = config.get(key) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}


def _number(value: Any) -> float:
    try:
        return max(float(value), 0.0)
    except (TypeError, ValueError):
        return 0.0


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(int(_number(value)) for value in values) if isinstance(values, list) else ()


def _stated(call: Call) -> CallCost | None:
    """A kernel's own estimate (Mosaic, Pallas): `cost_estimate` of the call's configuration."""
    estimate = _part(call.config, "custom_call_config", "cost_estimate") or _part(
        call.config, "cost_estimate"
    )
    if not estimate:
        return None
    has_bytes = "bytes_accessed" in estimate
    return CallCost(
        _number(estimate.get("flops")),
        _number(estimate.get("transcendentals")),
        _number(estimate["bytes_accessed"]) if has_bytes else -1.0,
    )


def _dims(numbers: dict[str, Any]) -> DotDims:
    names = (
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
        "lhs_batch_dimensions",
        "rhs_batch_dimensions",
    )
    return DotDims(*(_numbers(numbers.get(name)) for name in names))


def _gemm(call: Call) -> CallCost:
    """cuBLAS, rocBLAS, Triton: from the dimension numbers of the original dot."""
    numbers = _part(call.config, "gemm_backend_config", "dot_dimension_numbers") or _part(
        call.config, "dot_dimension_numbers"
    )
    dims = _dims(numbers)
    if not dims.lhs_contracting:
        return _square_gemm(call)
    return CallCost(dot_flops(call.operand(0), call.result, dims))


def _square_gemm(call: Call) -> CallCost:
    """A product without dimension numbers: the contracted size is √(|A| × |B| ÷ |C|), where A, B and C have
    the same batch.
    """
    a, b, c = (first_array(shape).n_elements for shape in (call.operand(0), call.operand(1), call.result))
    if not (a and b and c):
        return UNKNOWN
    batch = _batch(call)
    return CallCost(FMA * c * (a * b / (c * batch)) ** 0.5)


def _batch(call: Call) -> int:
    """Product of the leading dimensions (all but the last two) that both operands and the result share."""
    shapes = [first_array(shape).dims[:-2] for shape in (call.operand(0), call.operand(1), call.result)]
    n = 1
    for sizes in zip(*shapes, strict=False):
        if len(set(sizes)) > 1:
            break
        n *= max(sizes[0], 1)
    return n


def _convolution(call: Call) -> CallCost:
    """cuDNN, MIOpen, oneDNN: window and dimension numbers of the call; for gradients the operands change
    roles.
    """
    attributes = call.module.attributes(call.row)
    if attributes.convolution is None:
        return UNKNOWN
    attributes = replace(
        attributes,
        feature_group_count=max(attributes.feature_group_count, 1),
        batch_group_count=max(attributes.batch_group_count, 1),
    )
    lhs, out = call.operand(0), first_array(call.result)
    if "BackwardInput" in call.target:
        lhs, out = out, call.operand(0)
    elif "BackwardFilter" in call.target:
        out = call.operand(1)
    return CallCost(convolution_flops(lhs, out, attributes))


def _attention(call: Call) -> CallCost:
    """Softmax(QKᵀ)V: two products over the intermediate (batch, heads, queries, keys), five in the backward
    pass, and one exponential per element.
    """
    fmha = _part(call.config, "cudnn_fmha_backend_config") or _part(call.config, "fmha_backend_config")
    sizes = _numbers(_part(fmha, "intermediate_tensor_shape").get("dimensions"))
    depth = dim_size(call.operand(0).dims, len(call.operand(0).dims) - 1)
    if not sizes:
        return UNKNOWN
    n = 1.0
    for size in sizes:
        n *= size
    products = 5 if "Backward" in call.target else 2
    return CallCost(FMA * products * n * depth, n)


def _per_element(n_flops: float, n_transcendentals: float) -> Callable[[Call], CallCost]:
    """A formula with a fixed number of operations per element of the first operand."""

    def cost(call: Call) -> CallCost:
        n = first_array(call.operand(0)).n_elements
        return CallCost(n_flops * n, n_transcendentals * n)

    return cost


def _matrix(factor: float) -> Callable[[Call], CallCost]:
    """Factorizations of the last two dimensions m × n: factor × m × n × min(m, n) per matrix."""

    def cost(call: Call) -> CallCost:
        dims = first_array(call.operand(0)).dims
        return CallCost(
            factor * first_array(call.operand(0)).n_elements * min((*dims[-2:], *dims[-1:]), default=0)
        )

    return cost


def _solve(call: Call) -> CallCost:
    a, b = first_array(call.operand(0)), first_array(call.operand(1))
    return CallCost(float(b.n_elements) * dim_size(a.dims, len(a.dims) - 1))


def _nothing(_call: Call) -> CallCost:
    return CallCost(bytes_accessed=0.0)


_FORMULAS: tuple[tuple[re.Pattern[str], Callable[[Call], CallCost]], ...] = (
    (re.compile(r"fmha|flash_attn|FusedAttention", re.IGNORECASE), _attention),
    (re.compile(r"^__cudnn\$conv|^__onednn\$conv|^__miopen\$conv"), _convolution),
    (
        re.compile(
            r"^__(cublas|cublaslt|rocblas|hipblaslt)\$|^__triton_gemm|^__cutlass\$|(^|_)gemm", re.IGNORECASE
        ),
        _gemm,
    ),
    (re.compile(r"onednn\$matmul|eigen.*matmul|^MatMul", re.IGNORECASE), _square_gemm),
    (re.compile(r"onednn\$softmax", re.IGNORECASE), _per_element(4, 1)),
    (re.compile(r"onednn\$layer_?norm|cudnn\$norm", re.IGNORECASE), _per_element(8, 0)),
    (re.compile(r"top_?k", re.IGNORECASE), _per_element(1, 0)),
    (re.compile(r"potrf"), _matrix(1 / 3)),
    (re.compile(r"getrf"), _matrix(2 / 3)),
    (re.compile(r"geqrf|orgqr|ungqr"), _matrix(4 / 3)),
    (re.compile(r"trsm|triangular_?solve", re.IGNORECASE), _solve),
    (
        re.compile(
            r"^(Sharding|SPMD\w+|AllocateBuffer|annotate_device_placement|MoveTo\w+|PinTo\w+|CreateBuffer|AssumeGatherIndicesInBound)$"
        ),
        _nothing,
    ),
)
