"""XSpace's messages for the protobuf runtime, made from a table of field numbers, in a package of our own."""

from __future__ import annotations

from functools import cache
from typing import Any

from tb_tpuprof.ingest.xspace.descriptors import Field, message_classes

PACKAGE = "tb_tpuprof.xplane"

# message: (number, name, type, repeated); a capitalized type is a message, and `map` fields are Entry
# messages with key and value.
MESSAGES: dict[str, tuple[Field, ...]] = {
    "XSpace": (
        (1, "planes", "XPlane", True),
        (2, "errors", "bytes", True),
        (3, "warnings", "bytes", True),
        (4, "hostnames", "bytes", True),
    ),
    "XPlane": (
        (1, "id", "int64", False),
        (2, "name", "bytes", False),
        (3, "lines", "XLine", True),
        (4, "event_metadata", "EventEntry", True),
        (5, "stat_metadata", "StatEntry", True),
        (6, "stats", "XStat", True),
    ),
    "EventEntry": ((1, "key", "int64", False), (2, "value", "XEventMetadata", False)),
    "StatEntry": ((1, "key", "int64", False), (2, "value", "XStatMetadata", False)),
    "XLine": (
        (1, "id", "int64", False),
        (2, "name", "bytes", False),
        (3, "timestamp_ns", "int64", False),
        (4, "events", "XEvent", True),
        (9, "duration_ps", "int64", False),
        (10, "display_id", "int64", False),
        (11, "display_name", "bytes", False),
    ),
    "XEvent": (
        (1, "metadata_id", "int64", False),
        (2, "offset_ps", "int64", False),
        (3, "duration_ps", "int64", False),
        (4, "stats", "XStat", True),
        (5, "num_occurrences", "int64", False),
    ),
    "XStat": (
        (1, "metadata_id", "int64", False),
        (2, "double_value", "double", False),
        (3, "uint64_value", "uint64", False),
        (4, "int64_value", "int64", False),
        (5, "str_value", "bytes", False),
        (6, "bytes_value", "bytes", False),
        (7, "ref_value", "uint64", False),
    ),
    "XEventMetadata": (
        (1, "id", "int64", False),
        (2, "name", "bytes", False),
        (4, "display_name", "bytes", False),
        (5, "stats", "XStat", True),
    ),
    "XStatMetadata": ((1, "id", "int64", False), (2, "name", "bytes", False)),
}
# Strings are declared as bytes: traces contain invalid UTF-8, with which a string field fails the whole file.
_ONEOFS = {"XStat": ("value", (2, 3, 4, 5, 6, 7)), "XEvent": ("data", (2, 5))}


@cache
def xspace_class() -> Any:
    """The class of XSpace messages."""
    return message_classes(PACKAGE, MESSAGES, _ONEOFS)["XSpace"]
