"""What single HLO instructions, and the module as a whole, say of themselves beyond the columns of
`trace/hlo_schema.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape

Ints = tuple[int, ...]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WindowDim:
    """One dimension of a window that slides over an operand; padding may be negative."""

    size: int
    stride: int
    padding_low: int
    padding_high: int
    window_dilation: int
    base_dilation: int
    is_reversed: bool


@dataclass(frozen=True)
class ConvolutionDims:
    """Which dimension of input, kernel and output plays which part in a convolution."""

    input_batch: int = 0
    input_feature: int = 0
    input_spatial: Ints = ()
    kernel_input_feature: int = 0
    kernel_output_feature: int = 0
    kernel_spatial: Ints = ()
    output_batch: int = 0
    output_feature: int = 0
    output_spatial: Ints = ()


@dataclass(frozen=True)
class DotDims:
    """Contracted and batch dimensions of a dot; the ragged ones of a ragged dot."""

    lhs_contracting: Ints = ()
    rhs_contracting: Ints = ()
    lhs_batch: Ints = ()
    rhs_batch: Ints = ()
    lhs_ragged: Ints = ()
    rhs_group: Ints = ()


@dataclass(frozen=True)
class GatherDims:
    """Dimension numbers of a gather."""

    offset: Ints = ()
    collapsed: Ints = ()
    start_index_map: Ints = ()
    index_vector: int = 0
    operand_batching: Ints = ()
    start_indices_batching: Ints = ()


@dataclass(frozen=True)
class ScatterDims:
    """Dimension numbers of a scatter."""

    update_window: Ints = ()
    inserted_window: Ints = ()
    to_operand: Ints = ()
    index_vector: int = 0
    input_batching: Ints = ()
    scatter_indices_batching: Ints = ()


@dataclass(frozen=True)
class Iota:
    """A list of devices written as a reshaped and transposed range: [dims]<=[reshape]T(permutation)."""

    dims: Ints
    reshape: Ints
    permutation: Ints


@dataclass(frozen=True)
class AxisRef:
    """An axis of a mesh by number, or the part of it that `sub` (size before it, its size) names."""

    axis: int
    sub: tuple[int, int] | None = None


@dataclass(frozen=True)
class Mesh:
    """Devices arranged along named axes; in the order `devices` where that is not 0, 1, 2 …"""

    axes: tuple[tuple[str, int], ...]
    devices: Ints = ()


@dataclass(frozen=True)
class ReplicaGroups:
    """Which devices take part in a collective together: as lists, as an iota (`groups` × `devices per
    group`), or along axes of a mesh.
    """

    groups: tuple[Ints, ...] = ()
    iota: Iota | None = None
    mesh: Mesh | None = None
    axes: tuple[AxisRef, ...] = ()


@dataclass(frozen=True)
class NamedSharding:
    """A sharding along a mesh's axes: those of each dimension and whether it is closed, and the others'
    parts.
    """

    mesh: Mesh
    dims: tuple[tuple[tuple[AxisRef, ...], bool], ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    manual: tuple[AxisRef, ...] = ()


@dataclass(frozen=True)
class Sharding:
    """How a value is spread over devices. `type`: 0 replicated, 1 maximal, 2 tuple, 3 tiled, 4 manual, 5
    unknown, 6 unreduced.
    """

    type: int
    dims: Ints = ()
    devices: Ints = ()
    elements: tuple[Sharding, ...] = ()
    is_last_dim_replicated: bool = False
    last_dims: Ints = ()
    iota_reshape: Ints = ()
    iota_permutation: Ints = ()
    shard_group: tuple[str, int] | None = None
    named: NamedSharding | None = None


@dataclass(frozen=True)
class Literal:
    """A constant's value. `values` is None where there are more than the reader's limit, or where they are
    damaged.
    """

    shape: Shape
    values: npt.NDArray[Any] | None = None
    elements: tuple[Literal, ...] = ()


@dataclass(frozen=True)
class Alias:
    """A part of the result that lies where (a part of) an operand or parameter lay. `kind`: 1 may, 2 must."""

    output_index: Ints
    operand: int
    operand_index: Ints
    kind: int = 0


@dataclass(frozen=True)
class Attributes:
    """Everything of an instruction beyond its columns. Numbers are protobuf's defaults where the file does
    not tell.

    `control_predecessors` are rows of instructions, `source_target_pairs` [n_pairs, 2] devices. `options`
    holds what is rare, by the name under which XLA prints it.
    """

    literal: Literal | None = None
    dimensions: Ints = ()
    window: tuple[WindowDim, ...] | None = None
    convolution: ConvolutionDims | None = None
    feature_group_count: int = 1
    batch_group_count: int = 1
    dot: DotDims | None = None
    gather: GatherDims | None = None
    gather_slice_sizes: Ints = ()
    scatter: ScatterDims | None = None
    slices: tuple[tuple[int, int, int], ...] = ()
    dynamic_slice_sizes: Ints = ()
    padding: tuple[tuple[int, int, int], ...] | None = None
    fft_type: int = 0
    fft_length: Ints = ()
    comparison_direction: str = ""
    comparison_type: str = ""
    replica_groups: ReplicaGroups | None = None
    source_target_pairs: Int64s = field(default_factory=lambda: np.empty((0, 2), np.int64))
    control_predecessors: Ints = ()
    sharding: Sharding | None = None
    frontend: dict[str, str] = field(default_factory=dict)
    precision: Ints = ()
    algorithm: int = 0
    operand_aliases: tuple[Alias, ...] = ()
    operand_shapes: tuple[Shape, ...] = ()
    outfeed_shape: Shape = NO_SHAPE
    channel_id: int = 0
    source_end: tuple[int, int, int] = (0, 0, 0)
    scheduling_name: str = ""
    execution_thread: str = ""
    options: dict[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModuleHeader:
    """What a module says of itself as a whole. `replicas` is (replicas, partitions) of the device assignment,
    (0, 0) where unknown.
    """

    parameters: tuple[Shape, ...] = ()
    parameter_names: tuple[str, ...] = ()
    result: Shape | None = None
    is_scheduled: bool = False
    is_dynamic: bool = False
    aliases: tuple[Alias, ...] = ()
    donors: tuple[tuple[int, Ints], ...] = ()
    replicas: tuple[int, int] = (0, 0)
    fingerprint: str = ""
    frontend: dict[str, str] = field(default_factory=dict)
