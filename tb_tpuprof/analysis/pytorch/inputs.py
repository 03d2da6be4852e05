"""The inputs of one call of an operator, as Kineto records them: three JSON texts, one per line.

[[8, 4], [4, 2], []]            shapes; [] is a number or a tensor without dimensions, [[2], [3]] a list
["float", "float", "Scalar"]    types; empty for an optional input that was not passed
["", "", "1"]                   values of inputs that are not tensors; since PyTorch 2.0
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tb_tpuprof.trace.collectives import element_bytes

Shape = tuple[int, ...]
MAX_INPUTS = 256
MAX_DIMS = 64
MAX_SIZE = 1 << 62


@dataclass(frozen=True)
class Inputs:
    """`shapes[i]`: the dimensions of input i, None for what is not a tensor. `types` and `values`: empty, or
    as long as `shapes`; the value of a tensor is empty.
    """

    shapes: tuple[Shape | None, ...]
    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.shapes)

    def shape(self, i: int) -> Shape | None:
        """Dimensions of input i, None if it is no tensor or does not exist."""
        return self.shapes[i] if i < len(self.shapes) else None

    def matrix(self, i: int, n_dims: int) -> Shape | None:
        """Dimensions of input i if it has `n_dims` of them, else None."""
        shape = self.shape(i)
        return shape if shape is not None and len(shape) == n_dims else None

    def type(self, i: int) -> str:
        """Type of input i, empty if unknown."""
        return self.types[i] if i < len(self.types) else ""

    def width(self, i: int) -> int:
        """Bytes per element of input i, 0 if unknown."""
        return element_bytes(self.type(i))

    def n_bytes(self, *which: int) -> float:
        """Bytes of the given inputs together; numbers and inputs that were not passed add none. NaN if a size
        or type is unknown, as those of lists of tensors are.
        """
        total = 0.0
        for i in which:
            shape, width = self.shape(i), self.width(i)
            if i >= len(self) or (shape == () and not width):
                continue
            if shape is None or not width:
                return math.nan
            total += width * math.prod(shape)
        return total

    def numbers(self, i: int) -> Shape | None:
        """The value of input i as whole numbers, `[1, 1]` or `1`; None if it is neither or not recorded."""
        text = self.values[i] if i < len(self.values) else ""
        try:
            value = json.loads(text.replace("True", "true").replace("False", "false")) if text else None
        except (ValueError, RecursionError):
            return None
        listed: list[Any] = value if isinstance(value, list) else [value]
        if not all(isinstance(number, int) and abs(number) < MAX_SIZE for number in listed):
            return None
        return tuple(int(number) for number in listed)

    def flag(self, i: int) -> bool | None:
        """The value of input i if it is `True` or `False`, else None."""
        return {"True": True, "False": False}.get(self.values[i] if i < len(self.values) else "")


def read_inputs(text: str) -> Inputs | None:
    """The inputs in the stat `op_inputs`; None if they cannot be read or are too many."""
    lines = text.split("\n")
    shapes, types, values = (_list(lines[i]) if i < len(lines) else [] for i in range(3))
    if not shapes or len(shapes) > MAX_INPUTS:
        return None
    n = len(shapes)
    return Inputs(
        tuple(map(_shape, shapes)),
        tuple(map(str, types)) if len(types) == n else (),
        tuple(map(str, values)) if len(values) == n else (),
    )


def _list(text: str) -> list[object]:
    try:
        value = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _shape(dims: object) -> Shape | None:
    """Dimensions of one tensor; None for a list of tensors and for what no tensor can have."""
    if not isinstance(dims, list) or len(dims) > MAX_DIMS:
        return None
    if not all(isinstance(size, int) and 0 <= size < MAX_SIZE for size in dims):
        return None
    return tuple(dims) if math.prod(dims) < MAX_SIZE else None
