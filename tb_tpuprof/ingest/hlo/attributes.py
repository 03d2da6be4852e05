"""One instruction's message → `Attributes`: dimension numbers, windows, replica groups, shardings and the
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tb_tpuprof.ingest.hlo.literals import read_literal
from tb_tpuprof.ingest.hlo.message import Message
from tb_tpuprof.ingest.hlo.shapes import ShapeReader
from tb_tpuprof.ingest.hlo.sharding import read_axis, read_mesh, read_sharding
from tb_tpuprof.trace.hlo_attributes import (
    Alias,
    Attributes,
    ConvolutionDims,
    DotDims,
    GatherDims,
    Iota,
    ReplicaGroups,
    ScatterDims,
    WindowDim,
)

# Rare numbers and texts: field → (name as XLA prints it, method of Message that reads it).
_OPTIONS: dict[int, tuple[str, str]] = {
    18: ("exponent_bits", "number32"),
    19: ("mantissa_bits", "number32"),
    22: ("outfeed_config", "text"),
    23: ("distribution", "number"),
    24: ("epsilon", "decimal"),
    25: ("feature_index", "number"),
    27: ("infeed_config", "text"),
    45: ("all_reduce_id", "number"),
    47: ("is_host_transfer", "number"),
    56: ("constrain_layout", "number"),
    60: ("is_stable", "number"),
    65: ("custom_call_has_side_effect", "number"),
    66: ("delta", "number"),
    67: ("indices_are_sorted", "number"),
    69: ("unique_indices", "number"),
    70: ("algorithm", "number"),
    71: ("use_global_device_ids", "number"),
    73: ("is_cross_program_prefetch", "number"),
    76: ("schedule", "number"),
    77: ("api_version", "number"),
    80: ("cross_program_prefetch_index", "number"),
    81: ("k", "number"),
    85: ("largest", "number"),
    89: ("is_composite", "number"),
    94: ("is_reverse", "number"),
    95: ("num_carries", "number"),
    96: ("is_associative", "number"),
    97: ("conv_kind", "number"),
}


class AttributeReader:
    """Reads instructions' messages from one block of bytes."""

    def __init__(self, data: Any, shapes: ShapeReader) -> None:
        self.data = data
        self.shapes = shapes

    def read(self, start: int, size: int, rows_of_ids: Callable[[Any], Any]) -> Attributes:
        """All attributes of the instruction in data[start:start + size]."""
        message = Message(self.data, start, size)
        attributes: dict[str, Any] = {
            name: read(message) for number in message.numbers_present for name, read in _PARTS.get(number, ())
        }
        if message.has(8):
            attributes["literal"] = read_literal(message.submessage(8), self.shapes)
        if message.has(37):
            predecessors = rows_of_ids(np.array(message.numbers(37), np.int64)).tolist()
            attributes["control_predecessors"] = tuple(row for row in predecessors if row >= 0)
        if message.has(57):
            attributes["operand_shapes"] = tuple(self.shapes.read(*span) for span in message.spans(57))
        if message.has(29):
            attributes["outfeed_shape"] = self.shapes.read(*message.span(29))
        if any(message.has(number) for number in (49, 87, 92, 93)):
            attributes["replica_groups"] = _replica_groups(message)
        if message.has(7):
            metadata = message.submessage(7)
            attributes["source_end"] = (metadata.number32(17), metadata.number32(18), metadata.number32(19))
            attributes["scheduling_name"] = metadata.text(16)
        attributes["options"] = _options(message)
        return Attributes(**attributes)


def _options(message: Message) -> dict[str, int | float | str]:
    present = ((number, *_OPTIONS[number]) for number in message.numbers_present if number in _OPTIONS)
    options = {name: getattr(message, method)(number) for number, name, method in present}
    if message.has(59):
        solve = message.submessage(59)
        options |= {
            "left_side": solve.number(1),
            "lower": solve.number(2),
            "unit_diagonal": solve.number(3),
            "transpose_a": solve.number(4),
        }
    if message.has(62):
        options["lower"] = message.submessage(62).number(1)
    return options


def _window(message: Message) -> tuple[WindowDim, ...]:
    dims = message.submessage(15).messages(1)
    return tuple(
        WindowDim(
            dim.number(1),
            dim.number(2),
            dim.number(3),
            dim.number(4),
            dim.number(5),
            dim.number(6),
            dim.flag(7),
        )
        for dim in dims
    )


def _convolution(message: Message) -> ConvolutionDims:
    dims = message.submessage(16)
    return ConvolutionDims(
        dims.number(7),
        dims.number(8),
        dims.numbers(11),
        dims.number(3),
        dims.number(4),
        dims.numbers(6),
        dims.number(9),
        dims.number(10),
        dims.numbers(12),
    )


def _dot(message: Message) -> DotDims:
    dims = message.submessage(30)
    return DotDims(dims.numbers(1), dims.numbers(2), dims.numbers(3), dims.numbers(4))


def _ragged_dot(message: Message) -> DotDims:
    ragged = message.submessage(90)
    dims = ragged.submessage(1)
    return DotDims(
        dims.numbers(1),
        dims.numbers(2),
        dims.numbers(3),
        dims.numbers(4),
        ragged.numbers(2),
        ragged.numbers(3),
    )


def _gather(message: Message) -> GatherDims:
    dims = message.submessage(33)
    return GatherDims(
        dims.numbers(1), dims.numbers(2), dims.numbers(3), dims.number(4), dims.numbers(5), dims.numbers(6)
    )


def _scatter(message: Message) -> ScatterDims:
    dims = message.submessage(48)
    return ScatterDims(
        dims.numbers(1), dims.numbers(2), dims.numbers(3), dims.number(4), dims.numbers(5), dims.numbers(6)
    )


def _triples(message: Message, number: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((part.number(1), part.number(2), part.number(3)) for part in message.messages(number))


def read_iota(message: Message) -> Iota:
    """The iota form of replica groups: number of groups, devices in each, and how the range is reshaped and
    transposed.
    """
    permutation = tuple(((n + 2**31) & 0xFFFFFFFF) - 2**31 for n in message.numbers(4))
    return Iota((message.number(1), message.number(2)), message.numbers(3), permutation)


def _replica_groups(message: Message) -> ReplicaGroups:
    iota, mesh = message.message(92), message.message(93)
    groups = message.messages(49)
    if message.has(87):
        devices = message.submessage(87)
        iota = devices.message(2) or iota
        groups = devices.messages(1) if devices.has(1) else groups
    if mesh:
        return ReplicaGroups(
            mesh=read_mesh(mesh.submessage(1)), axes=tuple(read_axis(axis) for axis in mesh.messages(2))
        )
    return ReplicaGroups(tuple(group.numbers(1) for group in groups), read_iota(iota) if iota else None)


def _aliases(message: Message) -> tuple[Alias, ...]:
    return tuple(Alias(part.numbers(1), part.number(2), part.numbers(3)) for part in message.messages(74))


_PARTS: dict[int, tuple[tuple[str, Callable[[Message], Any]], ...]] = {
    14: (("dimensions", lambda m: m.numbers(14)),),
    15: (("window", _window),),
    16: (("convolution", _convolution),),
    50: (("feature_group_count", lambda m: m.number(50)),),
    58: (("batch_group_count", lambda m: m.number(58)),),
    30: (("dot", _dot),),
    90: (("dot", _ragged_dot),),
    33: (("gather", _gather),),
    34: (("gather_slice_sizes", lambda m: m.numbers(34)),),
    48: (("scatter", _scatter),),
    17: (("slices", lambda m: _triples(m, 17)),),
    20: (("dynamic_slice_sizes", lambda m: m.numbers(20)),),
    21: (("padding", lambda m: _triples(m.submessage(21), 1)),),
    31: (("fft_type", lambda m: m.number(31)),),
    32: (("fft_length", lambda m: m.numbers(32)),),
    63: (("comparison_direction", lambda m: m.text(63)),),
    72: (("comparison_type", lambda m: m.text(72)),),
    52: (("source_target_pairs", lambda m: m.number_rows(52, (1, 2))),),
    40: (("sharding", lambda m: read_sharding(m.submessage(40))),),
    68: (("frontend", lambda m: m.submessage(68).map(1)),),
    51: (
        ("precision", lambda m: m.submessage(51).numbers(1)),
        ("algorithm", lambda m: m.submessage(51).number(2)),
    ),
    74: (("operand_aliases", _aliases),),
    26: (("channel_id", lambda m: m.number(26)),),
}
