"""Attributes of single HLO instructions, and of a module as a whole, beyond the columns of
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
    """The role of each dimension of a convolution's input, kernel and output."""

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
    """Contracting and batch dimensions of a dot; the ragged ones of a ragged dot."""

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
    """A mesh axis by number, or the part of it that `sub` (product of sizes before it, its size) selects."""

    axis: int
    sub: tuple[int, int] | None = None


@dataclass(frozen=True)
class Mesh:
    """Devices arranged along named axes, in the order `devices` if that differs from 0, 1, 2 …"""

    axes: tuple[tuple[str, int], ...]
    devices: Ints = ()


@dataclass(frozen=True)
class ReplicaGroups:
    """The groups of devices that take part in a collective: as lists, as an iota (`groups` × `devices per
    group`), or along axes of a mesh.
    """

    groups: tuple[Ints, ...] = ()
    iota: Iota | None = None
    mesh: Mesh | None = None
    axes: tuple[AxisRef, ...] = ()


@dataclass(frozen=True)
class NamedSharding:
    """A sharding along a mesh's axes: for each dimension its axes and whether it is closed, and the axes that
    are replicated, unreduced or manual.
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
    """A constant's value. `values` is None if they exceed the reader's limit or are damaged."""

    shape: Shape
    values: npt.NDArray[Any] | None = None
    elements: tuple[Literal, ...] = ()


@dataclass(frozen=True)
class Alias:
    """A part of the result that shares memory with (a part of) an operand or parameter. `kind`: 1 may, 2
    must.
    """

    output_index: Ints
    operand: int
    operand_index: Ints
    kind: int = 0


@dataclass(frozen=True)
class Attributes:
    """Everything about an instruction that is not a column. Numbers absent from the file are protobuf's
    defaults.

    `control_predecessors` are rows of instructions, `source_target_pairs` devices of shape [n_pairs, 2].
    `options` holds rare attributes under the names that XLA prints.
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
    options: dict[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModuleHeader:
    """Module-wide attributes. `replicas` is (replicas, partitions) of the device assignment, (0, 0) if
    unknown.
    """

    parameters: tuple[Shape, ...] = ()
    result: Shape | None = None
    is_scheduled: bool = False
    is_dynamic: bool = False
    aliases: tuple[Alias, ...] = ()
    donors: tuple[tuple[int, Ints], ...] = ()
    replicas: tuple[int, int] = (0, 0)
    fingerprint: str = ""
    frontend: dict[str, str] = field(default_factory=dict)
