"""The tables of a trace as data: each column's name, dtype, unit and meaning. `docs/trace_format.md`
describes them in prose.

Row numbers are ids: an event's line is the row of table `lines`; -1 is none. Events are sorted by (line,
start, -duration), stats by (key, owner).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnSpec:
    """One column; `dtype` as NumPy spells it."""

    name: str
    dtype: str
    unit: str
    meaning: str


PLANES = (
    ColumnSpec("id", "int64", "id", "the plane's id in the file; need not be unique"),
    ColumnSpec("name", "int32", "string", "name, such as /host:CPU or /device:TPU:0"),
)
LINES = (
    ColumnSpec("plane", "int32", "plane", "the plane it belongs to"),
    ColumnSpec("id", "int64", "id", "the line's id in the file; unique within the plane"),
    ColumnSpec("display_id", "int64", "id", "order on the screen, 0 if none"),
    ColumnSpec("name", "int32", "string", "display name, else name"),
    ColumnSpec("first_event", "int64", "event", "first event of the line"),
    ColumnSpec("n_events", "int64", "count", "number of its events"),
)
EVENTS = (
    ColumnSpec("start_ps", "int64", "ps", "start since the trace's start"),
    ColumnSpec("duration_ps", "int64", "ps", "duration, never negative"),
    ColumnSpec("metadata", "int32", "metadata", "what happened: a row of `metadata`"),
    ColumnSpec(
        "position",
        "uint64",
        "byte",
        "file offset of the event's stats (of their length prefix), 0 if it has none",
    ),
)
METADATA = (
    ColumnSpec("plane", "int32", "plane", "the plane whose events it describes"),
    ColumnSpec("id", "int64", "id", "id in the file, unique within the plane"),
    ColumnSpec("name", "int32", "string", "full name"),
    ColumnSpec("display_name", "int32", "string", "short name, -1 if none"),
)
AGGREGATES = (
    ColumnSpec("line", "int32", "line", "the line whose events it sums up"),
    ColumnSpec("metadata", "int32", "metadata", "what happened"),
    ColumnSpec("n_occurrences", "int64", "count", "how often"),
    ColumnSpec("duration_ps", "int64", "ps", "duration of all occurrences"),
)
STAT_NAMES = (
    ColumnSpec("plane", "int32", "plane", "the plane that uses the id for the name"),
    ColumnSpec("id", "int64", "id", "id of a stat, or of a text that stats refer to"),
    ColumnSpec("name", "int32", "string", "its name, or the text"),
)
STATS = (
    ColumnSpec("owner", "int32", "row", "the event, metadata row or plane that has the stat"),
    ColumnSpec("key", "int32", "string", "name of the stat"),
    ColumnSpec("kind", "uint8", "kind", "2 double, 3 uint64, 4 int64, 5 text, 6 bytes"),
    ColumnSpec(
        "value",
        "int64",
        "",
        "the number (its bits for double and uint64), the string id of a text, the file offset of bytes",
    ),
    ColumnSpec("size", "int32", "bytes", "length of bytes, else 0"),
)

LINE_KINDS = (
    ColumnSpec("line", "int32", "line", "a line that is not an ordinary stack of events"),
    ColumnSpec(
        "kind",
        "uint8",
        "kind",
        "1 async: its events may overlap partly; 2 instants: marks of a whole process or trace",
    ),
)
COUNTERS = (
    ColumnSpec("plane", "int32", "plane", "the plane it belongs to"),
    ColumnSpec("name", "int32", "string", "name of the counter"),
    ColumnSpec("series", "int32", "string", "name of one of its values, -1 if it has only one"),
    ColumnSpec("first_sample", "int64", "sample", "its first row of `samples`"),
    ColumnSpec("n_samples", "int64", "count", "number of its samples"),
)
SAMPLES = (
    ColumnSpec("time_ps", "int64", "ps", "time since the trace's start; ascends within a counter"),
    ColumnSpec("value", "float64", "", "value from this time on, never NaN"),
)
FLOWS = (
    ColumnSpec("from_event", "int32", "event", "the event that an arrow leads from"),
    ColumnSpec("to_event", "int32", "event", "the event that it leads to"),
    ColumnSpec("name", "int32", "string", "the arrow's name"),
    ColumnSpec("kind", "int32", "string", "its category, -1 if none"),
)
# The trace's tables, in the order of docs/trace_format.md.
TABLES = {
    "planes": PLANES,
    "lines": LINES,
    "events": EVENTS,
    "metadata": METADATA,
    "aggregates": AGGREGATES,
    "stat_names": STAT_NAMES,
    "event_stats": STATS,
    "metadata_stats": STATS,
    "plane_stats": STATS,
    "line_kinds": LINE_KINDS,
    "counters": COUNTERS,
    "samples": SAMPLES,
    "flows": FLOWS,
}

MAX_PLANES = 10_000  # of an XSpace: devices and hosts; even an empty one takes time to open
MAX_LINES = 100_000  # of a host: pages have a row for each
DOUBLE, UINT, INT, TEXT, BYTES = 2, 3, 4, 5, 6
STACK, ASYNC, INSTANTS = 0, 1, 2

# Stats of events that analyses read: decoded into columns on opening. All others are read from the file when
# the user inspects an event.
HOT_STATS = (
    "_r",
    "step_num",
    "iter_num",
    "id",
    "graph_type",
    "_pt",
    "_p",
    "_ct",
    "_c",
    "_a",
    "run_id",
    "correlation_id",
    "group_id",
    "is_eager",
    "is_func",
    "step_name",
    "tf_op",
    "hlo_op",
    "program_id",
    "process_id",
    "_ipl_stage_id",
    "_ipl_stage_name",
    "_ipl_stage_cat",
    "flops",
    "model_flops",
    "bytes_accessed",
    "parent_id",
    "element_id",
    "flow",
    "allocator_name",
    "index_on_host",
    "device_ordinal",
    "bytes_reserved",
    "bytes_allocated",
    "bytes_available",
    "fragmentation",
    "peak_bytes_in_use",
    "requested_bytes",
    "allocation_bytes",
    "addr",
    "region_type",
    "data_type",
    "shape",
    "model_id",
    "request_id",
    "batch_size",
    "batching_input_task_size",
    "batch_size_after_padding",
    "padding_amount",
)
# Stats that matter only in a trace with a plane of such a device.
DEVICE_STATS = {
    "/device:GPU:": ("kernel_details", "memcpy_details", "vdd_energy_j"),
    "/device:TPU:": (
        "queue_id",
        "core_type",
        "device_offset_ps",
        "device_duration_ps",
        "all_reduce_unique_id",
        "Time Scale Multiplier",
        "dma_stall_duration_ps",
        "vdd_energy_j",
        "dcn_source_slice_id",
        "dcn_destination_slice_id",
        "payload_size_bytes",
        "duration_us",
    ),
}


def hot_stats(plane_names: Iterable[str]) -> frozenset[str]:
    """The stats to decode on opening a trace with planes of these names."""
    names = list(plane_names)
    devices = [
        stats for prefix, stats in DEVICE_STATS.items() if any(name.startswith(prefix) for name in names)
    ]
    return frozenset(HOT_STATS).union(*devices)
