"""Tables of field numbers → classes of the protobuf runtime, each package in a descriptor pool of its own.

Registering the profiler's names in the default pool would break any process that also imports TensorFlow.
The runtime takes 40 ms to import, and most traces are decoded without it: the first class imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# (number, name, type, repeated); a type is one of protobuf's or the name of a message of the same table.
Field = tuple[int, str, str, bool]
_TYPES = ("int32", "uint32", "int64", "uint64", "double", "bool", "bytes", "string")


def message_classes(
    package: str,
    messages: Mapping[str, tuple[Field, ...]],
    oneofs: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
) -> dict[str, Any]:
    """The classes by message name. `oneofs` gives the oneof of a message: its name and its members'
    numbers.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    types = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto3"
    )
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        oneof, members = (oneofs or {}).get(name, ("", ()))
        if oneof:
            message.oneof_decl.add(name=oneof)
        for number, field_name, kind, is_repeated in fields:
            label = types.LABEL_REPEATED if is_repeated else types.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            if kind in _TYPES:
                field.type = types.Type.Value(f"TYPE_{kind.upper()}")
            else:
                field.type, field.type_name = types.TYPE_MESSAGE, f".{package}.{kind}"
            if number in members:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    # protobuf 4.21 does not have GetMessageClass yet; later versions no longer have the factory.
    get_class = getattr(message_factory, "GetMessageClass", None)
    class_of = get_class or message_factory.MessageFactory(pool).GetPrototype  # type: ignore[attr-defined]
    return {name: class_of(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}
