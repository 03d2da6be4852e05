"""Attributes of instructions in XLA's text format (`HloInstruction::ExtraAttributesToString`, `xla/hlo/ir`),
with unlike values in every list.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.text.attributes import (
    aliasing_texts,
    attribute_texts,
    custom_call_texts,
    dim_labels,
    replica_groups_text,
    sharding_text,
    window_text,
)
from tb_tpuprof.trace.hlo_attributes import (
    Alias,
    Attributes,
    AxisRef,
    ConvolutionDims,
    DotDims,
    GatherDims,
    Iota,
    Mesh,
    NamedSharding,
    ReplicaGroups,
    ScatterDims,
    Sharding,
    WindowDim,
)
from tb_tpuprof.trace.hlo_shape import Shape

MESH = Mesh((("data", 2), ("model", 8), ("stage", 3)))
GROUPS = ReplicaGroups(((0, 2), (1, 3)))
PLAIN_WINDOW = WindowDim(3, 1, 0, 0, 1, 1, False)


@pytest.mark.parametrize(
    ("opcode", "attributes", "texts"),
    [
        ("transpose", Attributes(dimensions=(2, 0, 1)), ["dimensions={2,0,1}"]),
        ("iota", Attributes(dimensions=(2,)), ["iota_dimension=2"]),
        ("iota", Attributes(), ["iota_dimension=0"]),
        ("add", Attributes(dimensions=(2,)), []),
        ("sort", Attributes(dimensions=(1,), options={"is_stable": 1}), ["dimensions={1}", "is_stable=true"]),
        ("sort", Attributes(dimensions=(1,)), ["dimensions={1}"]),
        (
            "dot",
            Attributes(dot=DotDims((2,), (1,), (0,), (3,)), precision=(2, 0), algorithm=3),
            [
                "lhs_batch_dims={0}", "lhs_contracting_dims={2}", "rhs_batch_dims={3}", "rhs_contracting_dims={1}",
                "operand_precision={highest,default}", "algorithm=dot_f16_f16_f16",
            ],
        ),
        (
            "dot",
            Attributes(dot=DotDims((1,), (0,)), precision=(0, 1)),
            ["lhs_contracting_dims={1}", "rhs_contracting_dims={0}", "operand_precision={default,high}"],
        ),
        (
            "dot",
            Attributes(dot=DotDims((1,), (0,)), precision=(0, 0)),
            ["lhs_contracting_dims={1}", "rhs_contracting_dims={0}"],
        ),
        (
            "ragged-dot",
            Attributes(dot=DotDims((1,), (0,), lhs_ragged=(4,))),
            ["lhs_contracting_dims={1}", "rhs_contracting_dims={0}", "lhs_ragged_dims={4}", "rhs_group_dims={}"],
        ),
        ("dot", Attributes(precision=(4, 0), algorithm=14), ["operand_precision={4,default}", "algorithm=14"]),
        (
            "convolution",
            Attributes(window=(PLAIN_WINDOW,), feature_group_count=2, batch_group_count=3, precision=(1, 2)),
            ["window={size=3}", "feature_group_count=2", "batch_group_count=3", "operand_precision={high,highest}"],
        ),
        ("convolution", Attributes(feature_group_count=0, batch_group_count=0), []),
        ("reduce-window", Attributes(window=(PLAIN_WINDOW, PLAIN_WINDOW)), ["window={size=3x3}"]),
        ("reduce-window", Attributes(), []),
        ("select-and-scatter", Attributes(window=(PLAIN_WINDOW,)), ["window={size=3}"]),
        ("select-and-scatter", Attributes(), []),
        (
            "gather",
            Attributes(gather=GatherDims((1,), (0,), (3,), 2, (4,), (5,)), gather_slice_sizes=(1, 7)),
            [
                "offset_dims={1}", "collapsed_slice_dims={0}", "start_index_map={3}", "operand_batching_dims={4}",
                "start_indices_batching_dims={5}", "index_vector_dim=2", "slice_sizes={1,7}",
            ],
        ),
        (
            "gather",
            Attributes(gather_slice_sizes=(1, 7), options={"indices_are_sorted": 1, "unique_indices": 1}),
            ["slice_sizes={1,7}", "indices_are_sorted=true"],
        ),
        (
            "scatter",
            Attributes(
                scatter=ScatterDims((1,), (0,), (3,), 2, (4,), (5,)), options={"unique_indices": 1}
            ),
            [
                "update_window_dims={1}", "inserted_window_dims={0}", "scatter_dims_to_operand_dims={3}",
                "input_batching_dims={4}", "scatter_indices_batching_dims={5}", "index_vector_dim=2",
                "unique_indices=true",
            ],
        ),
        ("pad", Attributes(padding=((1, 2, 0), (-3, 0, 4))), ["padding=1_2x-3_0_4"]),
        ("slice", Attributes(slices=((0, 5, 1), (2, 9, 3))), ["slice={[0:5], [2:9:3]}"]),
        ("compare", Attributes(comparison_direction="LT"), ["direction=LT"]),
        (
            "compare",
            Attributes(comparison_direction="GE", comparison_type="TOTALORDER"),
            ["direction=GE", "type=TOTALORDER"],
        ),
        ("triangular-solve", Attributes(options={"lower": 1}), ["lower=true", "transpose_a=TRANSPOSE_INVALID"]),
        (
            "triangular-solve",
            Attributes(options={"left_side": 1, "unit_diagonal": 1, "transpose_a": 2}),
            ["left_side=true", "unit_diagonal=true", "transpose_a=TRANSPOSE"],
        ),
        ("cholesky", Attributes(options={"lower": 1}), ["lower=true"]),
        ("dynamic-slice", Attributes(dynamic_slice_sizes=(1, 6)), ["dynamic_slice_sizes={1,6}"]),
        ("fft", Attributes(fft_type=2, fft_length=(8, 4)), ["fft_type=RFFT", "fft_length={8,4}"]),
        ("fft", Attributes(fft_type=4), ["fft_type=4", "fft_length={}"]),
        ("topk", Attributes(options={"k": 5, "largest": 1}), ["k=5", "largest=true"]),
        ("topk", Attributes(), ["k=0", "largest=false"]),
        ("rng", Attributes(options={"distribution": 2}), ["distribution=rng_normal"]),
        ("rng", Attributes(), ["distribution=rng_invalid"]),
        ("rng-bit-generator", Attributes(options={"algorithm": 1}), ["algorithm=rng_three_fry"]),
        ("rng-get-and-update-state", Attributes(options={"delta": 4}), ["delta=4"]),
        ("rng-get-and-update-state", Attributes(), ["delta=0"]),
        (
            "reduce-precision",
            Attributes(options={"exponent_bits": 5, "mantissa_bits": 10}),
            ["exponent_bits=5", "mantissa_bits=10"],
        ),
        ("reduce-precision", Attributes(), ["exponent_bits=0", "mantissa_bits=0"]),
        ("batch-norm-grad", Attributes(options={"epsilon": 0.5}), ["epsilon=0.5", "feature_index=0"]),
        ("batch-norm-training", Attributes(options={"feature_index": 3}), ["epsilon=0", "feature_index=3"]),
        ("outfeed", Attributes(outfeed_shape=Shape(11, (2, 3))), ["outfeed_shape=f32[2,3]"]),
        ("copy-start", Attributes(), []),
        (
            "copy-start",
            Attributes(options={"cross_program_prefetch_index": 4}),
            ["cross_program_prefetch_index=4"],
        ),
        (
            "copy-start",
            Attributes(options={"is_cross_program_prefetch": 1}),
            ["cross_program_prefetch_index=0"],
        ),
        (
            "send",
            Attributes(channel_id=3, options={"is_host_transfer": 1}),
            ["channel_id=3", "is_host_transfer=true"],
        ),
        ("recv-done", Attributes(channel_id=3), ["channel_id=3"]),
        ("recv", Attributes(options={"is_host_transfer": 1}), []),
        ("infeed", Attributes(channel_id=3), []),
        (
            "all-reduce-start",
            Attributes(
                channel_id=3, replica_groups=GROUPS, dimensions=(1,),
                options={"use_global_device_ids": 1, "constrain_layout": 1},
            ),
            ["channel_id=3", "replica_groups={{0,2},{1,3}}", "constrain_layout=true", "use_global_device_ids=true"],
        ),
        (
            "reduce-scatter",
            Attributes(replica_groups=GROUPS, dimensions=(1,), options={"use_global_device_ids": 1}),
            ["replica_groups={{0,2},{1,3}}", "use_global_device_ids=true", "dimensions={1}"],
        ),
        (
            "all-gather",
            Attributes(replica_groups=GROUPS, dimensions=(1,), options={"use_global_device_ids": 1}),
            ["replica_groups={{0,2},{1,3}}", "dimensions={1}", "use_global_device_ids=true"],
        ),
        ("all-to-all", Attributes(dimensions=(1,)), ["replica_groups={}", "dimensions={1}"]),
        ("all-to-all", Attributes(options={"use_global_device_ids": 1}), ["replica_groups={}"]),
        ("collective-broadcast", Attributes(dimensions=(1,)), ["replica_groups={}"]),
        ("ragged-all-to-all", Attributes(dimensions=(1,)), ["replica_groups={}"]),
        (
            "collective-permute",
            Attributes(channel_id=2, source_target_pairs=np.array([[0, 1], [1, 2], [2, 0]])),
            ["channel_id=2", "source_target_pairs={{0,1},{1,2},{2,0}}"],
        ),
    ],
)  # fmt: skip
def test_attributes_of_opcodes(opcode: str, attributes: Attributes, texts: list[str]) -> None:
    assert list(attribute_texts(opcode, attributes)) == texts


def test_windows_state_what_differs_from_the_default_in_any_dimension() -> None:
    rng = random.Random("windows")
    for _ in range(200):
        window = [
            WindowDim(
                rng.randint(1, 4), *(rng.choice((default,) * 4 + (5, 6)) for default in (1, 0, 0, 1, 1)),
                rng.random() < 0.2,
            )
            for _ in range(rng.randint(1, 3))
        ]  # fmt: skip
        columns = {
            "size": [str(dim.size) for dim in window],
            "stride": [str(dim.stride) for dim in window],
            "pad": [f"{dim.padding_low}_{dim.padding_high}" for dim in window],
            "lhs_dilate": [str(dim.base_dilation) for dim in window],
            "rhs_dilate": [str(dim.window_dilation) for dim in window],
            "rhs_reversal": ["1" if dim.is_reversed else "0" for dim in window],
        }
        default = {"stride": "1", "pad": "0_0", "lhs_dilate": "1", "rhs_dilate": "1", "rhs_reversal": "0"}
        shown = [
            f"{name}={'x'.join(values)}"
            for name, values in columns.items()
            if name == "size" or set(values) != {default[name]}
        ]
        assert window_text(window) == " ".join(shown)


def test_roles_of_a_convolutions_dimensions() -> None:
    """A batch of images as [feature, 0, batch, 1], the kernel as [0, output, 1, input], the result as [0, 1,
    b, f].
    """
    dims = ConvolutionDims(2, 0, (1, 3), 3, 1, (0, 2), 2, 3, (0, 1))
    assert dim_labels(dims) == "f0b1_0o1i->01bf"
    texts = list(attribute_texts("convolution", Attributes(convolution=dims)))
    assert texts == ["dim_labels=f0b1_0o1i->01bf"]


def test_groups_and_shardings_along_axes_of_a_mesh() -> None:
    part, whole, unknown = AxisRef(1, (2, 4)), AxisRef(0), AxisRef(3)
    groups = ReplicaGroups(mesh=MESH, axes=(whole, part, unknown))
    mesh = "mesh['data'=2,'model'=8,'stage'=3]"
    assert replica_groups_text(groups) == f"{mesh} {{'data','model':(2)4,'3'}}"
    assert replica_groups_text(None) == "{}"
    ordered = Mesh(MESH.axes[:1], (1, 0))
    assert replica_groups_text(ReplicaGroups(mesh=ordered, axes=(whole,))) == (
        "mesh['data'=2, device_ids=(1,0)] {'data'}"
    )
    named = NamedSharding(
        MESH,
        (((whole, part), True), ((AxisRef(2),), False), ((), False), ((), True)),
        (AxisRef(2),),
        (part,),
        (whole,),
    )
    assert sharding_text(Sharding(3, named=named)) == (
        f"{{{mesh}, [{{'data','model':(2)4}},{{'stage',?}},{{?}},{{}}], replicated={{'stage'}}, "
        "unreduced={'model':(2)4}, manual={'data'}}"
    )


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (Sharding(1), "{maximal device=0}"),
        (Sharding(1, devices=(3, 2), shard_group=("shard_as", 4)), "{maximal device=3 shard_as 4}"),
        (Sharding(0, shard_group=("shard_like", 2)), "{replicated shard_like 2}"),
        (Sharding(4), "{manual}"),
        (Sharding(5), "{unknown}"),
        (Sharding(6), "{unreduced}"),
        (
            Sharding(3, (2, 1, 2), (3, 1, 0, 2), last_dims=(4, 0, 9)),
            "{devices=[2,1,2]3,1,0,2 last_tile_dims={manual, replicated, 9}}",
        ),
        (
            Sharding(3, (2, 3), iota_reshape=(3, 2), iota_permutation=(1, 0), shard_group=("shard_as", 1)),
            "{devices=[2,3]<=[3,2]T(1,0) shard_as 1}",
        ),
        (Sharding(3, (2, 3), iota_reshape=(3, 2), iota_permutation=(0, 1)), "{devices=[2,3]<=[3,2]}"),
    ],
)
def test_shardings(sharding: Sharding, text: str) -> None:
    assert sharding_text(sharding) == text


def test_groups_as_iota() -> None:
    assert replica_groups_text(ReplicaGroups(iota=Iota((2, 4), (8,), (0,)))) == "[2,4]<=[8]"
    assert replica_groups_text(ReplicaGroups(iota=Iota((2, 4), (2, 2, 2), (0, 2, 1)))) == (
        "[2,4]<=[2,2,2]T(0,2,1)"
    )


def test_custom_calls() -> None:
    attributes = Attributes(
        operand_aliases=(Alias((0,), 1, ()), Alias((), 2, (3, 4))),
        operand_shapes=(Shape(11, (2,)), Shape(2, (3, 5))),
        options={
            "constrain_layout": 1,
            "custom_call_has_side_effect": 1,
            "schedule": 2,
            "api_version": 4,
        },
    )
    assert list(custom_call_texts('my"call', attributes, ("%a", "%b"))) == [
        'custom_call_target="my\\"call"',
        "called_computations={%a, %b}",
        "operand_layout_constraints={f32[2], s8[3,5]}",
        "custom_call_has_side_effect=true",
        "output_to_operand_aliasing={{0}: (1, {}), {}: (2, {3, 4})}",
        "schedule=SCHEDULE_EARLIEST",
        "api_version=API_VERSION_TYPED_FFI",
    ]
    assert list(custom_call_texts("f", Attributes(), ())) == ['custom_call_target="f"']
    original = Attributes(options={"api_version": 1, "schedule": 0})
    assert list(custom_call_texts("f", original, ())) == ['custom_call_target="f"']
    assert list(aliasing_texts(Attributes())) == []
