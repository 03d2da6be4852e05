"""Sharding messages → `Sharding`, with meshes and their axes."""

from __future__ import annotations

from tb_tpuprof.ingest.hlo.message import MAX_DEPTH, Message
from tb_tpuprof.trace.hlo_attributes import AxisRef, Mesh, NamedSharding, Sharding


def read_sharding(message: Message, depth: int = 0) -> Sharding:
    """A sharding; elements of tuples that nest too deep are left out."""
    group = (
        ("shard_like" if message.number(13) else "shard_as", message.number(12)) if message.flag(11) else None
    )
    named = message.message(14)
    return Sharding(
        type=message.number32(1),
        dims=message.numbers(3),
        devices=message.numbers(4),
        elements=tuple(read_sharding(part, depth + 1) for part in message.messages(5))
        if depth < MAX_DEPTH
        else (),
        is_last_dim_replicated=message.flag(6),
        last_dims=message.numbers(8),
        iota_reshape=message.numbers(9),
        iota_permutation=message.numbers(10),
        shard_group=group,
        named=_named(named) if named else None,
    )


def _named(message: Message) -> NamedSharding:
    dims = tuple(
        (tuple(read_axis(axis) for axis in dim.messages(1)), dim.flag(2)) for dim in message.messages(3)
    )
    others = (tuple(read_axis(axis) for axis in message.messages(number)) for number in (4, 5, 7))
    return NamedSharding(read_mesh(message.submessage(2)), dims, *others)


def read_mesh(message: Message) -> Mesh:
    """A mesh of devices."""
    return Mesh(tuple((axis.text(1), axis.number(2)) for axis in message.messages(1)), message.numbers(2))


def read_axis(message: Message) -> AxisRef:
    """A reference to an axis of a mesh, or to a part of one."""
    sub = message.message(2)
    return AxisRef(message.number(1), (sub.number(1), sub.number(2)) if sub else None)
