"""Streams of profile pieces for tests: written to files, and the records of small ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.riegeli.layout import file_layout
from tb_tpuprof.ingest.riegeli.records import chunk_records
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.ingest.riegeli_files import CODECS, RiegeliFile

SMALL = Path(__file__).resolve().parents[1] / "data" / "riegeli" / "jax_small.xplane.riegeli"


def written(
    streams: Iterable[bytes], folder: str | Path, codec: int = CODECS[1], transposed: bool = False
) -> Path:
    """A file with a chunk for each piece."""
    file = RiegeliFile()
    for one in streams:
        file.records([one], codec, transposed)
    path = Path(folder, "host.xplane.riegeli")
    path.write_bytes(file.closed())
    return path


def records_of(path: Path) -> list[bytes]:
    """All records of a file."""
    data = np.fromfile(path, np.uint8)

    def read(position: int, size: int) -> np.ndarray:
        return data[position : position + size]

    found = []
    for chunk in file_layout(read, len(data)).chunks:
        values, ends = chunk_records(read, chunk, 2**31)
        found += [values[a:b].tobytes() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return found


def spaces_of_one_thread(*timings: list[tuple[int, int, str]], line_names: Sequence[str] = ()) -> list[bytes]:
    """Pieces with one line of (offset, duration, name); ids differ from piece to piece."""
    made = []
    for number, events in enumerate(timings):
        space = xspace_class()()
        plane = space.planes.add(id=3 + number, name=b"/host:CPU")
        names = sorted({name for *_, name in events}, reverse=bool(number % 2))
        for key, name in enumerate(names, 1):
            plane.event_metadata.add(key=key, value={"name": name.encode()})
        plane.stat_metadata.add(key=9 - number, value={"name": b"step_num"})
        line = plane.lines.add(id=7, name=(line_names or ["python"] * 9)[number].encode(), timestamp_ns=100)
        for offset, duration, name in events:
            event = line.events.add(metadata_id=names.index(name) + 1, offset_ps=offset, duration_ps=duration)
            event.stats.add(metadata_id=9 - number, int64_value=offset)
        made.append(space.SerializeToString())
    return made


def notices(path: Path) -> list[str]:
    return [notice.message for notice in trace_notices(open_trace(str(path)))]


def stream(*records: bytes) -> RiegeliFile:
    file = RiegeliFile()
    for record in records:
        file.records([record])
    return file


THREE = spaces_of_one_thread([(0, 10, "a")], [(20, 10, "b"), (30, 1, "b")], [(50, 10, "c")])
