"""Attributes of HLO instructions as XLA writes them: dimensions={0,1}, window={size=3x3 pad=1_1x1_1},
replica_groups=[2,4]<=[8] …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tb_tpuprof.trace.hlo_attributes import (
    Attributes,
    AxisRef,
    ConvolutionDims,
    Mesh,
    NamedSharding,
    ReplicaGroups,
    Sharding,
    WindowDim,
)

_PRECISION = ("default", "high", "highest", "packed_nibble")
_ALGORITHMS = (
    "unset",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
)
_FFT = ("FFT", "IFFT", "RFFT", "IRFFT")
_TRANSPOSE = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
_RANDOM = ("rng_invalid", "rng_uniform", "rng_normal")
_RANDOM_ALGORITHM = ("rng_default", "rng_three_fry", "rng_philox")
_API_VERSIONS = (
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
_SCHEDULES = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
_SHARDING = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
_LAST_DIMS = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
_DIMENSIONS = frozenset(
    (
        "broadcast",
        "concatenate",
        "map",
        "reduce",
        "reverse",
        "transpose",
        "sort",
        "get-dimension-size",
        "set-dimension-size",
    )
)
_COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)


def numbers(values: Iterable[int]) -> str:
    """{1,2,3}."""
    return "{" + ",".join(map(str, values)) + "}"


def name_of(names: Sequence[str], index: object) -> str:
    """A name by number; the number itself if it is unknown."""
    return names[index] if isinstance(index, int) and 0 <= index < len(names) else str(index)


def attribute_texts(opcode: str, attributes: Attributes) -> Iterator[str]:
    """Attributes that belong to the opcode, in XLA's order; called computations, sharding and metadata follow
    separately.
    """
    if opcode.removesuffix("-start") in _COLLECTIVES:
        yield from _collective(opcode, attributes)
        return
    if opcode in _DIMENSIONS:
        yield f"dimensions={numbers(attributes.dimensions)}"
    if opcode == "iota":
        yield f"iota_dimension={attributes.dimensions[0] if attributes.dimensions else 0}"
    formula = _OPCODES.get(opcode)
    if formula:
        yield from formula(attributes)
    if opcode in ("send", "recv", "send-done", "recv-done") and attributes.channel_id:
        yield f"channel_id={attributes.channel_id}"
        if attributes.options.get("is_host_transfer"):
            yield "is_host_transfer=true"


def _collective(opcode: str, attributes: Attributes) -> Iterator[str]:
    if attributes.channel_id:
        yield f"channel_id={attributes.channel_id}"
    if "permute" in opcode:
        yield (
            "source_target_pairs={"
            + ",".join(f"{{{a},{b}}}" for a, b in attributes.source_target_pairs.tolist())
            + "}"
        )
        if attributes.slices:
            yield f"slice_sizes={attributes.slices}"
        return
    yield f"replica_groups={replica_groups_text(attributes.replica_groups)}"
    if attributes.options.get("constrain_layout"):
        yield "constrain_layout=true"
    has_dimensions = (
        "gather" in opcode
        or "scatter" in opcode
        or (opcode.startswith("all-to-all") and bool(attributes.dimensions))
    )
    if opcode.startswith(("all-reduce", "reduce-scatter")) and attributes.options.get(
        "use_global_device_ids"
    ):
        yield "use_global_device_ids=true"
    if has_dimensions:
        yield f"dimensions={numbers(attributes.dimensions)}"
    if opcode.startswith("all-gather") and attributes.options.get("use_global_device_ids"):
        yield "use_global_device_ids=true"


def _dot(attributes: Attributes) -> Iterator[str]:
    dims = attributes.dot
    if dims:
        if dims.lhs_batch:
            yield f"lhs_batch_dims={numbers(dims.lhs_batch)}"
        yield f"lhs_contracting_dims={numbers(dims.lhs_contracting)}"
        if dims.rhs_batch:
            yield f"rhs_batch_dims={numbers(dims.rhs_batch)}"
        yield f"rhs_contracting_dims={numbers(dims.rhs_contracting)}"
        if dims.lhs_ragged or dims.rhs_group:
            yield f"lhs_ragged_dims={numbers(dims.lhs_ragged)}"
            yield f"rhs_group_dims={numbers(dims.rhs_group)}"
    yield from _precision(attributes)


def _precision(attributes: Attributes) -> Iterator[str]:
    if any(attributes.precision):
        yield "operand_precision={" + ",".join(name_of(_PRECISION, p) for p in attributes.precision) + "}"
    if attributes.algorithm:
        yield f"algorithm={name_of(_ALGORITHMS, attributes.algorithm)}"


def _window_and_groups(attributes: Attributes) -> Iterator[str]:
    if attributes.window:
        yield f"window={{{window_text(attributes.window)}}}"
    if attributes.convolution is not None:
        yield f"dim_labels={dim_labels(attributes.convolution)}"
    if attributes.feature_group_count not in (0, 1):
        yield f"feature_group_count={attributes.feature_group_count}"
    if attributes.batch_group_count not in (0, 1):
        yield f"batch_group_count={attributes.batch_group_count}"
    yield from _precision(attributes)


def window_text(window: Sequence[WindowDim]) -> str:
    """size=3x3 stride=2x2 pad=0_1x0_1 …; defaults are left out."""
    parts = ["size=" + "x".join(str(dim.size) for dim in window)]
    if any(dim.stride != 1 for dim in window):
        parts.append("stride=" + "x".join(str(dim.stride) for dim in window))
    if any(dim.padding_low or dim.padding_high for dim in window):
        parts.append("pad=" + "x".join(f"{dim.padding_low}_{dim.padding_high}" for dim in window))
    if any(dim.base_dilation != 1 for dim in window):
        parts.append("lhs_dilate=" + "x".join(str(dim.base_dilation) for dim in window))
    if any(dim.window_dilation != 1 for dim in window):
        parts.append("rhs_dilate=" + "x".join(str(dim.window_dilation) for dim in window))
    if any(dim.is_reversed for dim in window):
        parts.append("rhs_reversal=" + "x".join(str(int(dim.is_reversed)) for dim in window))
    return " ".join(parts)


def dim_labels(dims: ConvolutionDims) -> str:
    """b01f_01io->b01f."""
    parts = (
        {
            dims.input_batch: "b",
            dims.input_feature: "f",
            **{d: str(i) for i, d in enumerate(dims.input_spatial)},
        },
        {
            dims.kernel_input_feature: "i",
            dims.kernel_output_feature: "o",
            **{d: str(i) for i, d in enumerate(dims.kernel_spatial)},
        },
        {
            dims.output_batch: "b",
            dims.output_feature: "f",
            **{d: str(i) for i, d in enumerate(dims.output_spatial)},
        },
    )
    lhs, rhs, out = ("".join(part[d] for d in sorted(part)) for part in parts)
    return f"{lhs}_{rhs}->{out}"


def _gather(attributes: Attributes) -> Iterator[str]:
    dims = attributes.gather
    if dims:
        yield f"offset_dims={numbers(dims.offset)}"
        yield f"collapsed_slice_dims={numbers(dims.collapsed)}"
        yield f"start_index_map={numbers(dims.start_index_map)}"
        if dims.operand_batching:
            yield f"operand_batching_dims={numbers(dims.operand_batching)}"
        if dims.start_indices_batching:
            yield f"start_indices_batching_dims={numbers(dims.start_indices_batching)}"
        yield f"index_vector_dim={dims.index_vector}"
    yield f"slice_sizes={numbers(attributes.gather_slice_sizes)}"
    yield from _flags(attributes, "indices_are_sorted")


def _scatter(attributes: Attributes) -> Iterator[str]:
    dims = attributes.scatter
    if dims:
        yield f"update_window_dims={numbers(dims.update_window)}"
        yield f"inserted_window_dims={numbers(dims.inserted_window)}"
        yield f"scatter_dims_to_operand_dims={numbers(dims.to_operand)}"
        if dims.input_batching:
            yield f"input_batching_dims={numbers(dims.input_batching)}"
        if dims.scatter_indices_batching:
            yield f"scatter_indices_batching_dims={numbers(dims.scatter_indices_batching)}"
        yield f"index_vector_dim={dims.index_vector}"
    yield from _flags(attributes, "indices_are_sorted", "unique_indices")


def _flags(attributes: Attributes, *names: str) -> Iterator[str]:
    return (f"{name}=true" for name in names if attributes.options.get(name))


def _pad(attributes: Attributes) -> Iterator[str]:
    parts = (
        f"{low}_{high}" + (f"_{inner}" if inner else "") for low, high, inner in attributes.padding or ()
    )
    yield "padding=" + "x".join(parts)


def _slice(attributes: Attributes) -> Iterator[str]:
    parts = (
        f"[{start}:{limit}]" if stride == 1 else f"[{start}:{limit}:{stride}]"
        for start, limit, stride in attributes.slices
    )
    yield "slice={" + ", ".join(parts) + "}"


def _compare(attributes: Attributes) -> Iterator[str]:
    yield f"direction={attributes.comparison_direction}"
    if attributes.comparison_type == "TOTALORDER":
        yield "type=TOTALORDER"


def _solve(attributes: Attributes) -> Iterator[str]:
    yield from _flags(attributes, "left_side", "lower", "unit_diagonal")
    yield f"transpose_a={name_of(_TRANSPOSE, attributes.options.get('transpose_a', 0))}"


def _custom_call(attributes: Attributes) -> Iterator[str]:
    yield from _window_and_groups(attributes)


def _option(name: str, names: Sequence[str] = ()) -> Callable[[Attributes], Iterator[str]]:
    return lambda attributes: iter([f"{name}={name_of(names, attributes.options.get(name, 0))}"])


def _norm(attributes: Attributes) -> Iterator[str]:
    yield f"epsilon={attributes.options.get('epsilon', 0.0):.6g}"
    yield f"feature_index={attributes.options.get('feature_index', 0)}"


_OPCODES: dict[str, Callable[[Attributes], Iterator[str]]] = {
    "dot": _dot,
    "ragged-dot": _dot,
    "scaled-dot": _dot,
    "convolution": _window_and_groups,
    "custom-call": _custom_call,
    "reduce-window": lambda attributes: iter(
        [f"window={{{window_text(attributes.window or ())}}}"] if attributes.window else []
    ),
    "select-and-scatter": lambda attributes: iter(
        [f"window={{{window_text(attributes.window or ())}}}"] if attributes.window else []
    ),
    "gather": _gather,
    "scatter": _scatter,
    "pad": _pad,
    "slice": _slice,
    "compare": _compare,
    "triangular-solve": _solve,
    "cholesky": lambda attributes: _flags(attributes, "lower"),
    "dynamic-slice": lambda attributes: iter(
        [f"dynamic_slice_sizes={numbers(attributes.dynamic_slice_sizes)}"]
    ),
    "fft": lambda attributes: iter(
        [f"fft_type={name_of(_FFT, attributes.fft_type)}", f"fft_length={numbers(attributes.fft_length)}"]
    ),
    "sort": lambda attributes: _flags(attributes, "is_stable"),
    "topk": lambda attributes: iter(
        [
            f"k={attributes.options.get('k', 0)}",
            f"largest={'true' if attributes.options.get('largest') else 'false'}",
        ]
    ),
    "rng": _option("distribution", _RANDOM),
    "rng-bit-generator": _option("algorithm", _RANDOM_ALGORITHM),
    "rng-get-and-update-state": _option("delta"),
    "reduce-precision": lambda attributes: iter(
        [
            f"exponent_bits={attributes.options.get('exponent_bits', 0)}",
            f"mantissa_bits={attributes.options.get('mantissa_bits', 0)}",
        ]
    ),
    "batch-norm-training": _norm,
    "batch-norm-inference": _norm,
    "batch-norm-grad": _norm,
    "outfeed": lambda attributes: iter([f"outfeed_shape={attributes.outfeed_shape.text()}"]),
    "copy-start": lambda attributes: iter(
        [f"cross_program_prefetch_index={attributes.options.get('cross_program_prefetch_index', 0)}"]
        if "cross_program_prefetch_index" in attributes.options
        or attributes.options.get("is_cross_program_prefetch")
        else []
    ),
}


def replica_groups_text(groups: ReplicaGroups | None) -> str:
    """{{0,1},{2,3}}, [2,2]<=[4], or groups along axes of a mesh."""
    if groups is None:
        return "{}"
    if groups.mesh:
        return f"{_mesh(groups.mesh)} {{{','.join(_axis(axis, groups.mesh) for axis in groups.axes)}}}"
    if groups.iota:
        return _iota(groups.iota.dims, groups.iota.reshape, groups.iota.permutation)
    return "{" + ",".join(numbers(group) for group in groups.groups) + "}"


def _iota(dims: Sequence[int], reshape: Sequence[int], permutation: Sequence[int]) -> str:
    text = f"[{','.join(map(str, dims))}]<=[{','.join(map(str, reshape))}]"
    is_transposed = len(reshape) > 1 and list(permutation) != list(range(len(permutation)))
    return text + (f"T({','.join(map(str, permutation))})" if is_transposed else "")


def _mesh(mesh: Mesh) -> str:
    devices = f", device_ids=({','.join(map(str, mesh.devices))})" if mesh.devices else ""
    return "mesh[" + ",".join(f"'{name}'={size}" for name, size in mesh.axes) + devices + "]"


def _axis(axis: AxisRef, mesh: Mesh) -> str:
    name = mesh.axes[axis.axis][0] if 0 <= axis.axis < len(mesh.axes) else str(axis.axis)
    return f"'{name}'" + (f":({axis.sub[0]}){axis.sub[1]}" if axis.sub else "")


def sharding_text(sharding: Sharding) -> str:
    """{replicated}, {maximal device=0}, {devices=[2,1]<=[2]}, or {{…}, {…}} for a tuple."""
    if sharding.named:
        return _named(sharding.named)
    if sharding.type == 2:
        return "{" + ", ".join(sharding_text(part) for part in sharding.elements) + "}"
    group = f" {sharding.shard_group[0]} {sharding.shard_group[1]}" if sharding.shard_group else ""
    if sharding.type in _SHARDING:
        return "{" + _SHARDING[sharding.type] + group + "}"
    if sharding.type == 1:
        return f"{{maximal device={sharding.devices[0] if sharding.devices else 0}{group}}}"
    dims = ",".join(map(str, sharding.dims))
    devices = f"[{dims}]{','.join(map(str, sharding.devices))}"
    if sharding.iota_reshape:
        devices = _iota(sharding.dims, sharding.iota_reshape, sharding.iota_permutation)
    last = " last_tile_dim_replicate" if sharding.is_last_dim_replicated else ""
    if sharding.last_dims:
        last = (
            " last_tile_dims={"
            + ", ".join(_LAST_DIMS.get(kind, str(kind)) for kind in sharding.last_dims)
            + "}"
        )
    return f"{{devices={devices}{last}{group}}}"


def _named(named: NamedSharding) -> str:
    def axes(refs: Sequence[AxisRef]) -> str:
        return ",".join(_axis(axis, named.mesh) for axis in refs)

    dims = ",".join(
        "{" + axes(refs) + ("" if is_closed else ("," if refs else "") + "?") + "}"
        for refs, is_closed in named.dims
    )
    parts = [f"{_mesh(named.mesh)}, [{dims}]"]
    for name, refs in (
        ("replicated", named.replicated),
        ("unreduced", named.unreduced),
        ("manual", named.manual),
    ):
        if refs:
            parts.append(f"{name}={{{axes(refs)}}}")
    return "{" + ", ".join(parts) + "}"


def custom_call_texts(target: str, attributes: Attributes, called: Sequence[str]) -> Iterator[str]:
    """The attributes after the dimensions of a custom call: its target, constraints and calling
    convention.
    """
    yield f'custom_call_target="{escaped(target)}"'
    if called:
        yield "called_computations={" + ", ".join(called) + "}"
    if attributes.options.get("constrain_layout"):
        yield (
            "operand_layout_constraints={"
            + ", ".join(shape.text() for shape in attributes.operand_shapes)
            + "}"
        )
    if attributes.options.get("custom_call_has_side_effect"):
        yield "custom_call_has_side_effect=true"
    yield from aliasing_texts(attributes)
    if attributes.options.get("schedule"):
        yield f"schedule={name_of(_SCHEDULES, attributes.options['schedule'])}"
    if attributes.options.get("api_version", 0) not in (0, 1):
        yield f"api_version={name_of(_API_VERSIONS, attributes.options['api_version'])}"


def aliasing_texts(attributes: Attributes) -> Iterator[str]:
    """output_to_operand_aliasing={{0}: (0, {})}."""
    if attributes.operand_aliases:
        parts = (
            f"{_index(part.output_index)}: ({part.operand}, {_index(part.operand_index)})"
            for part in attributes.operand_aliases
        )
        yield "output_to_operand_aliasing={" + ", ".join(parts) + "}"


def _index(index: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, index)) + "}"


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def escaped(text: str | bytes) -> str:
    """Text escaped as in a C string literal."""
    data = text if isinstance(text, bytes) else text.encode()
    return "".join(
        _ESCAPES.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data
    )
