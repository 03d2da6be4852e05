"""Streams of profile pieces against the pieces merged into one XSpace by the protobuf runtime: every table is
equal, on random pieces and on real files, whichever way the records are stored.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.riegeli.layout import file_layout
from tb_tpuprof.ingest.riegeli.records import chunk_records
from tb_tpuprof.trace.trace import Trace
from tests.ingest.merged_spaces import merged_space, piece, pieces
from tests.ingest.riegeli_files import CODECS, RiegeliFile
from tests.ingest.xspaces import content, plain

ROOT = Path(__file__).resolve().parents[2]


def written(streams: Iterable[bytes], folder: str | Path, codec: int = CODECS[1], transposed: bool = False) -> Path:
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


def comparable(trace: Trace) -> dict[str, Any]:
    """All content but what depends on the file."""
    told = content(trace)
    told["info"] = {k: v for k, v in told["info"].items() if k not in ("path", "host", "size_bytes")}
    return told


def check(streams: Sequence[bytes], path: Path) -> None:
    got, expected = comparable(open_trace(str(path))), comparable(plain(merged_space(streams)))
    for name, value in expected.items():
        assert got[name] == value, name


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(pieces(), st.sampled_from(CODECS), st.booleans())
def test_random_pieces_are_read_as_one_space(streams: list[bytes], codec: int, transposed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(streams, written(streams, folder, codec, transposed))
