"""The stat `op_inputs` of calls of PyTorch's operators, for tests."""

from __future__ import annotations

import json
from typing import Any

FLOAT, HALF, BF16, LONG, FP8 = "float", "c10::Half", "c10::BFloat16", "long int", "c10::Float8_e4m3fn"


def inputs_text(*inputs: Any, values: bool = True) -> str:
    """The inputs of a call: a tensor is (dimensions, type), anything else is a value, as Kineto writes it;
    None is an optional input that was not passed. `values`: whether `Concrete Inputs` are recorded.
    """
    dims = [list(item[0]) if isinstance(item, tuple) else [] for item in inputs]
    types = [item[1] if isinstance(item, tuple) else "" if item is None else "Scalar" for item in inputs]
    concrete = ["" if item is None or isinstance(item, tuple) else str(item) for item in inputs]
    return "\n".join((json.dumps(dims), json.dumps(types), json.dumps(concrete) if values else ""))
