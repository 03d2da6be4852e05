"""XSpace's messages for the protobuf runtime, made from a table of field numbers, in a descriptor pool and package of our own.

Registering the profiler's own names would break any process that also imports TensorFlow.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "tb_tpuprof.xplane"
_FIELD = descriptor_pb2.FieldDescriptorProto

# message: (number, name, type, repeated); a capital type is a message, and `map` fields are Entry messages of key and value.
MESSAGES: dict[str, tuple[tuple[int, str, str, bool], ...]] = {
    "XSpace": (
        (1, "planes", "XPlane", True), (2, "errors", "bytes", True), (3, "warnings", "bytes", True), (4, "hostnames", "bytes", True),
    ),
    "XPlane": (
        (1, "id", "int64", False), (2, "name", "bytes", False), (3, "lines", "XLine", True), (4, "event_metadata", "EventEntry", True),
        (5, "stat_metadata", "StatEntry", True), (6, "stats", "XStat", True),
    ),
    "EventEntry": ((1, "key", "int64", False), (2, "value", "XEventMetadata", False)),
    "StatEntry": ((1, "key", "int64", False), (2, "value", "XStatMetadata", False)),
    "XLine": (
        (1, "id", "int64", False), (2, "name", "bytes", False), (3, "timestamp_ns", "int64", False), (4, "events", "XEvent", True),
        (9, "duration_ps", "int64", False), (10, "display_id", "int64", False), (11, "display_name", "bytes", False),
    ),
    "XEvent": (
        (1, "metadata_id", "int64", False), (2, "offset_ps", "int64", False), (3, "duration_ps", "int64", False),
        (4, "stats", "XStat", True), (5, "num_occurrences", "int64", False),
    ),
    "XStat": (
        (1, "metadata_id", "int64", False), (2, "double_value", "double", False), (3, "uint64_value", "uint64", False),
        (4, "int64_value", "int64", False), (5, "str_value", "bytes", False), (6, "bytes_value", "bytes", False),
        (7, "ref_value", "uint64", False),
    ),
    "XEventMetadata": (
        (1, "id", "int64", False), (2, "name", "bytes", False), (4, "display_name", "bytes", False), (5, "stats", "XStat", True),
    ),
    "XStatMetadata": ((1, "id", "int64", False), (2, "name", "bytes", False)),
}  # fmt: skip
# Strings are declared as bytes: traces hold bad UTF-8, at which a string field fails the whole file.
_ONEOFS = {"XStat": ("value", (2, 3, 4, 5, 6, 7)), "XEvent": ("data", (2, 5))}
_TYPES = {"int64": _FIELD.TYPE_INT64, "uint64": _FIELD.TYPE_UINT64, "double": _FIELD.TYPE_DOUBLE, "bytes": _FIELD.TYPE_BYTES}


@cache
def xspace_class() -> Any:
    """The class of XSpace messages."""
    file = descriptor_pb2.FileDescriptorProto(name="tb_tpuprof/xplane.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        oneof, members = _ONEOFS.get(name, ("", ()))
        if oneof:
            message.oneof_decl.add(name=oneof)
        for number, field_name, kind, is_repeated in fields:
            label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            if number in members:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.XSpace"))
