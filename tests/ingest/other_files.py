"""Files that are no XSpace, written field by field: TensorFlow 2.1's Trace, pages of older profilers, and the
like.
"""

from __future__ import annotations

from typing import Any

from tests.ingest.hlo_protos import message

MS = 10**9


def trace_proto(*devices: dict[int, Any], events: list[dict[int, Any]] | None = None) -> bytes:
    """A Trace: `devices` as {1: name, 3: [resources]} under their numbers, `events` as TraceEvents."""
    entries = [{1: number, 2: device} for number, device in enumerate(devices)]
    return message({1: entries, 4: events or []})


def resource(number: int, name: str) -> dict[int, Any]:
    """The entry of a thread or stream."""
    return {1: number, 2: {1: name, 2: number}}


def event(
    device: int, line: int, name: str, start_ps: int, duration_ps: int, **arguments: str
) -> dict[int, Any]:
    """A TraceEvent; `_` in an argument's name is a space, as TensorFlow 2.1 writes it."""
    pairs = [{1: key.replace("_", " "), 2: value} for key, value in arguments.items()]
    return {1: device, 2: line, 3: name, 9: start_ps, 10: duration_ps, 11: pairs}


# A host of three threads that differ, and a device with two lines.
OLD_TRACE = trace_proto(
    {
        1: "/host:CPU",
        3: [
            resource(7, "python"),
            resource(11, "tf_Compute"),
            resource(4_000_000_000, "tf_data_iterator_get_next"),
        ],
    },
    {1: "/device:GPU:0", 2: 1, 3: [resource(1, "Stream #1"), resource(2, "Stream #2")]},
    events=[
        event(0, 11, "MatMul", 5 * MS, 2 * MS, long_name="dense/MatMul:MatMul", label="id=3"),
        event(0, 11, "Relu", 8 * MS, 1 * MS, long_name="dense/Relu:Relu"),
        event(0, 4_000_000_000, "Model", 2 * MS, 3 * MS, long_name="Iterator::Model"),
        event(0, 7, "train", 1 * MS, 12 * MS),
        event(1, 1, "sgemm", 6 * MS, 4 * MS, correlation_id="9"),
        event(1, 2, "memcpy", 9 * MS, 0),
    ],
)
# As `*.overview_page.pb` begins: messages of numbers in field 2.
OVERVIEW = message({2: {2: {1: 5, 2: 7}, 3: "", 5: {1: 3}}, 4: {1: 1, 2: [3, 5]}})
# A message whose field 1 parses as a plane with a number and bytes: operations with their times.
OPERATIONS = message(
    {1: [{1: 4, 2: {1: 3, 2: "MatMul", 3: 9}}, {1: 5, 2: {1: 8, 2: "Relu", 3: 2}}], 4: {1: 1, 2: {1: "x"}}}
)
