"""A real run with a tf.data pipeline, some copies of it one after the other: as if it had been profiled for
longer.

Events keep their threads; each copy begins where the one before ended, and ids that tie events (steps,
iterators, contexts) are moved on, so that no copy is tied to another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tb_tpuprof.ingest.xspace.messages import xspace_class

_IDS = {b"id", b"parent_id", b"_p", b"_c", b"correlation_id", b"step_num", b"iter_num"}
_APART = 1_000_000_000  # between the ids of two copies


def write_copies(source: Path, target: Path, n_copies: int) -> None:
    """Write `n_copies` of the run in `source` to `target`."""
    space = xspace_class()()
    space.ParseFromString(source.read_bytes())
    lines = [(plane, line) for plane in space.planes for line in plane.lines]
    times = [
        (line.timestamp_ns * 1000 + event.offset_ps, event.duration_ps)
        for _, line in lines
        for event in line.events
    ]
    span_ps = max(start + duration for start, duration in times) - min(start for start, _ in times) + 1000
    for plane, line in lines:
        ids = {entry.value.id for entry in plane.stat_metadata if entry.value.name in _IDS}
        first = list(line.events)
        for copy in range(1, n_copies):
            for event in first:
                _shift(line.events.add(), event, ids, copy, span_ps)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(space.SerializeToString())


def _shift(event: Any, original: Any, ids: set[int], copy: int, span_ps: int) -> None:
    event.CopyFrom(original)
    event.offset_ps += copy * span_ps
    for stat in event.stats:
        kind = stat.WhichOneof("value")
        if stat.metadata_id in ids and kind in ("int64_value", "uint64_value"):
            setattr(stat, kind, getattr(stat, kind) + copy * _APART)
