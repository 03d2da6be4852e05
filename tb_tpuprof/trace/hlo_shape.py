"""The type of an HLO value: element type, dimensions and tiled layout, its sizes in bytes, and its text as
XLA writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

# Code → name and bits per element. Tuples, tokens and opaque values have no elements.
ELEMENT_TYPES = {
    1: ("pred", 8),
    2: ("s8", 8),
    3: ("s16", 16),
    4: ("s32", 32),
    5: ("s64", 64),
    6: ("u8", 8),
    7: ("u16", 16),
    8: ("u32", 32),
    9: ("u64", 64),
    10: ("f16", 16),
    11: ("f32", 32),
    12: ("f64", 64),
    13: ("tuple", 0),
    14: ("opaque", 0),
    15: ("c64", 64),
    16: ("bf16", 16),
    17: ("token", 0),
    18: ("c128", 128),
    19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8),
    21: ("s4", 4),
    22: ("u4", 4),
    23: ("f8e4m3b11fnuz", 8),
    24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8),
    26: ("s2", 2),
    27: ("u2", 2),
    28: ("f8e4m3", 8),
    29: ("f8e3m4", 8),
    30: ("s1", 1),
    31: ("u1", 1),
    32: ("f4e2m1fn", 4),
    33: ("f8e8m0fnu", 8),
    34: ("buffer", 0),
}
TUPLE, BUFFER = 13, 34
POINTER_BYTES = 8
LIMIT = 2**62
_DIM_LEVELS = ("D", "C", "S", "H")


@dataclass(frozen=True)
class Layout:
    """An array's layout in memory: dimensions from fastest to slowest, and the tiles that cut them.

    `memory_space` 0 is the device's main memory; on TPU, 1 is VMEM and 5 the host. `element_bits` overrides
    the type's own width (0: no override). `dim_levels` has a letter per dimension of a sparse array.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = 0
    tail_padding_elements: int = 1
    dynamic_prefix_bytes: int = 0
    index_type: int = 0
    pointer_type: int = 0
    dim_levels: tuple[int, ...] = ()
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @cached_property
    def text(self) -> str:
        """As XLA writes it, such as {1,0:T(8,128)(2,1)S(1)}."""
        parts = []
        if self.dim_levels:
            parts.append(
                "D(" + ",".join(_DIM_LEVELS[level] if level < 4 else "?" for level in self.dim_levels) + ")"
            )
        if self.tiles:
            parts.append(
                "T"
                + "".join(
                    "(" + ",".join("*" if n == _COMBINE else str(n) for n in tile) + ")"
                    for tile in self.tiles
                )
            )
        if self.tail_padding_elements not in (0, 1):
            parts.append(f"L({self.tail_padding_elements})")
        if self.index_type:
            parts.append(f"#({type_name(self.index_type)})")
        if self.pointer_type:
            parts.append(f"*({type_name(self.pointer_type)})")
        if self.element_bits:
            parts.append(f"E({self.element_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.splits:
            parts.append(
                "SC"
                + "".join(f"({d}:{','.join(map(str, split_indices))})" for d, split_indices in self.splits)
            )
        if self.dynamic_prefix_bytes:
            parts.append(f"M({self.dynamic_prefix_bytes})")
        return "{" + ",".join(map(str, self.minor_to_major)) + (":" + "".join(parts) if parts else "") + "}"


_COMBINE = -(2**63)  # marks a tile's dimension that is combined with the next one


@dataclass(frozen=True)
class Shape:
    """An array (`dims` filled), a tuple (`elements` filled), a token or an opaque value. With `is_dynamic`,
    `dims` are upper bounds.
    """

    element_type: int
    dims: tuple[int, ...] = ()
    is_dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """Whether it is a tuple, possibly an empty one."""
        return self.element_type == TUPLE

    @property
    def is_array(self) -> bool:
        """Whether it holds elements."""
        return element_bits(self.element_type) > 0

    @property
    def type_name(self) -> str:
        """The element type as XLA writes it, such as bf16."""
        return type_name(self.element_type)

    @cached_property
    def n_elements(self) -> int:
        """Elements of an array, at most 2^62; 0 for other values, and if a dimension is negative."""
        return product(self.dims) if self.is_array else 0

    @cached_property
    def bits(self) -> int:
        """Bits per element in memory."""
        return (self.layout.element_bits if self.layout else 0) or element_bits(self.element_type)

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of an array without padding; of a tuple its table of pointers (as XLA counts it). Elements
        narrower than a byte are packed if the layout says so, else each takes one byte.
        """
        if self.is_tuple:
            return POINTER_BYTES * len(self.elements)
        return min(-(-self.n_elements * self.stored_bits // 8), LIMIT)

    @property
    def stored_bits(self) -> int:
        """Bits from one element to the next: the layout's, else whole bytes."""
        packed = self.layout.element_bits if self.layout else 0
        return packed or (-(-element_bits(self.element_type) // 8) * 8)

    @cached_property
    def leaves(self) -> tuple[Shape, ...]:
        """The arrays (tokens, opaque values) inside it, in order."""
        leaves: list[Shape] = []
        stack = [self]
        while stack:
            shape = stack.pop()
            if shape.is_tuple:
                stack.extend(reversed(shape.elements))
            else:
                leaves.append(shape)
        return tuple(leaves)

    @cached_property
    def array_bytes(self) -> int:
        """Bytes of all its arrays without padding and without tables of pointers."""
        return min(sum(leaf.size_bytes for leaf in self.leaves), LIMIT)

    @cached_property
    def padded_dims(self) -> tuple[int, ...]:
        """Dimensions, rounded up where the layout's first tile covers them."""
        if not self.layout or not self.layout.tiles or len(self.layout.minor_to_major) != len(self.dims):
            return self.dims
        padded = list(self.dims)
        for tile_size, dim in zip(reversed(self.layout.tiles[0]), self.layout.minor_to_major, strict=False):
            if 0 <= dim < len(padded) and tile_size > 0:
                padded[dim] = -(-padded[dim] // tile_size) * tile_size
        return tuple(padded)

    @cached_property
    def padded_bytes(self) -> int:
        """Bytes of an array including the padding of its tiles; of a tuple the sum over its arrays."""
        if self.is_tuple:
            return min(sum(leaf.padded_bytes for leaf in self.leaves), LIMIT)
        if not self.is_array:
            return 0
        tail = max(self.layout.tail_padding_elements if self.layout else 1, 1)
        n_stored = -(-product(self.padded_dims) // tail) * tail
        return min(-(-n_stored * self.stored_bits // 8), LIMIT)

    def text(self, with_layout: bool = True) -> str:
        """As XLA writes it, such as f32[8,128]{1,0} or (s32[], f32[2])."""
        return self._long if with_layout else self._short

    @cached_property
    def _short(self) -> str:
        return self._write(False)

    @cached_property
    def _long(self) -> str:
        return self._write(True)

    def _write(self, with_layout: bool) -> str:
        if self.is_tuple:
            inner = [shape.text(with_layout) for shape in self.elements]
            marked = [f"/*index={i}*/{text}" if i and i % 5 == 0 else text for i, text in enumerate(inner)]
            return f"({', '.join(marked)})"
        name = "b" if self.element_type == BUFFER else self.type_name
        if self.element_type == BUFFER and self.elements:
            return f"{name}({self.elements[0].text(with_layout)})"
        dynamic = self.is_dynamic or (False,) * len(self.dims)
        dims = ",".join(_dim(n, is_dynamic) for n, is_dynamic in zip(self.dims, dynamic, strict=False))
        layout = self.layout.text if with_layout and self.layout and self.is_array else ""
        return f"{name}[{dims}]{'' if layout == '{}' else layout}"


def _dim(n: int, is_dynamic: bool) -> str:
    if n == -(2**63):
        return "?"
    return f"<={n}" if is_dynamic else str(n)


def type_name(code: int) -> str:
    """Name of an element type, such as bf16; type99 for an unknown code."""
    return ELEMENT_TYPES.get(code, (f"type{code}", 0))[0]


def element_bits(code: int) -> int:
    """Bits of an element; 0 for tuples, tokens, opaque values and unknown types."""
    return ELEMENT_TYPES.get(code, ("", 0))[1]


def product(dims: tuple[int, ...]) -> int:
    """Product of the dimensions, at most 2^62; 0 if one is zero or negative."""
    if any(n <= 0 for n in dims):
        return 0
    result = 1
    for n in dims:
        result = min(result * n, LIMIT)
    return result


NO_SHAPE = Shape(0)
