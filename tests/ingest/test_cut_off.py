"""A file that ends too early opens as far as it is intact, and says how much is missing."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import ProfilerError, TraceFormatError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.xspace.cut_off import intact_part
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.ingest.xspace.protobuf import decode_protobuf
from tb_tpuprof.native import fields
from tb_tpuprof.trace.trace import Trace
from tests.ingest.xspaces import xspaces


def as_array(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


PLANES, LINES, EVENTS = 3, 2, (3, 7, 20)


def space() -> bytes:
    """Three planes with two lines each, of 3, 7 and 20 events per line; names come after the lines."""
    made = xspace_class()()
    for i in range(PLANES):
        plane = made.planes.add(id=i, name=f"/host:plane {i}".encode())
        for j in range(LINES):
            line = plane.lines.add(id=j, name=f"line {j}".encode(), timestamp_ns=1000)
            for k in range(EVENTS[i]):
                line.events.add(metadata_id=1, offset_ps=1000 * k, duration_ps=900 + i)
        entry = plane.event_metadata.add(key=1)
        entry.value.id, entry.value.name = 1, f"op {i}".encode()
    made.hostnames.append(b"host")
    data: bytes = made.SerializeToString()
    return data


def opened(tmp_path: Path, data: bytes, name: str = "h.xplane.pb") -> Trace:
    path = tmp_path / name
    path.write_bytes(data)
    return open_trace(str(path))


@pytest.mark.slow
def test_every_cut_keeps_the_whole_events_before_it(tmp_path: Path) -> None:
    data = space()
    whole = opened(tmp_path, data)
    assert whole.n_events == 2 * sum(EVENTS)
    before = 0
    for size in range(40, len(data)):
        trace = opened(tmp_path, data[:size])
        assert trace.n_events >= before
        before = trace.n_events
        is_between_planes = fields(as_array(data[:size]), 0, size)[1] < 0
        assert is_between_planes or "cut off" in trace.info.damage, size
    assert before == whole.n_events


def test_planes_before_the_cut_keep_their_names_and_the_share_is_stated(tmp_path: Path) -> None:
    data = space()
    cut = data.index(b"/host:plane 2") + 60
    trace = opened(tmp_path, data[:cut])
    names = {trace.strings.get(int(name)) for name in trace.metadata["name"].tolist()}
    assert {"op 0", "op 1"} <= names
    assert "op 2" not in names
    assert trace.n_events > 2 * (EVENTS[0] + EVENTS[1])
    missing = len(data) - cut - len(b"host") - 2  # the host's field is beyond what the plane's length reveals
    assert f"at least {missing} B" in trace.info.damage
    assert trace.info.n_damaged >= 1


def test_a_cut_gzip_file_opens_as_far_as_it_unpacks(tmp_path: Path) -> None:
    packed = gzip.compress(space() * 50, 1)
    trace = opened(tmp_path, packed[: len(packed) * 2 // 3], "h.xplane.pb.gz")
    assert trace.n_events > 2 * sum(EVENTS)


@pytest.mark.parametrize("flags", [0x80, 0xE0, 0xFF])
def test_a_cut_gzip_file_with_a_damaged_header_is_refused(tmp_path: Path, flags: int) -> None:
    packed = bytearray(gzip.compress(space()))
    packed[3] = flags
    with pytest.raises(TraceFormatError, match="not whole gzip data"):
        opened(tmp_path, bytes(packed[: len(packed) // 2]), "h.xplane.pb.gz")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(xspaces(), st.data())
def test_the_intact_part_of_any_xspace_parses(data: bytes, draw: st.DataObject) -> None:
    """What the protobuf runtime parses, checked by that runtime."""
    size = draw.draw(st.integers(0, len(data)))
    intact = intact_part(as_array(data[:size]))
    if intact is None:
        return
    parsed = xspace_class()()
    parsed.ParseFromString(intact.data.tobytes())
    whole = xspace_class().FromString(data)
    assert len(parsed.planes) <= len(whole.planes)
    assert 0 < intact.n_missing <= len(data)
    for mine, theirs in zip(parsed.planes, whole.planes, strict=False):
        assert len(mine.lines) <= len(theirs.lines)
        for line, other in zip(mine.lines, theirs.lines, strict=False):
            assert list(line.events) == list(other.events)[: len(line.events)]


@pytest.mark.parametrize("damage", [b"\0" * 8, b"\xff" * 8])
def test_overwritten_bytes_between_planes_are_no_cut(tmp_path: Path, damage: bytes) -> None:
    data = bytearray(space())
    second = data.index(b"/host:plane 1") - 8
    data[second : second + 8] = damage
    assert intact_part(as_array(bytes(data))) is None
    with pytest.raises(ProfilerError):
        opened(tmp_path, bytes(data))


def test_the_decoder_of_the_protobuf_runtime_counts_what_is_missing() -> None:
    """Where nothing is compiled: a notice needs the number, not the words alone."""
    data = as_array(space())
    for damage, n in (("", 0), ("the file is cut off: 3 B of it are missing", 1)):
        info = decode_protobuf(data, "h.xplane.pb", "h", damage).info
        assert (info.damage, info.n_damaged) == (damage, n)
