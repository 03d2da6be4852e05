"""Drawn traces as files of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.analysis.diagnosis.drawn import planes_of
from tests.synthetic import PlaneWriter

MS = 10**9


def write_drawing(path: Path, text: str, legend: Mapping[str, str] | None = None) -> None:
    """Write an XSpace of a drawing of which a column is a millisecond; every `train` is a step."""
    space = xspace_class()()
    for plane in planes_of(text, legend, column_ps=MS):
        writer = PlaneWriter(space, plane.name)
        for number, (name, events) in enumerate(plane.lines.items()):
            line = writer.plane.lines.add(id=number, name=name.encode(), timestamp_ns=1000)
            for event in events:
                written = line.events.add(
                    metadata_id=writer.metadata(event.name),
                    offset_ps=event.start_ps,
                    duration_ps=event.duration_ps,
                )
                writer.stats(written, event.stats)
    path.write_bytes(space.SerializeToString())
