"""Damaged and hostile files: a clear error or a counted loss, never a crash, a hang or memory
without bound.
"""

from __future__ import annotations

import contextlib
import random
import resource
import time
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import ProfilerError, StorageError, TraceFormatError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.storage.files import is_chrome_trace
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.schema import MAX_PLANES
from tests.ingest.xspaces import native, plain, small_xspace

FUZZ_SECONDS = 12.0


def varint(value: int) -> bytes:
    """A number in the wire format."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty", b"", "is empty"),
        ("text", b"hello, this is not a protobuf at all", "neither an XSpace"),
        ("zeros", bytes(1000), "neither an XSpace"),
        ("length of 2^60", b"\x0a" + varint(2**60) + b"abc", "neither an XSpace"),
        ("length of 2^64 - 1", b"\x0a" + varint(2**64 - 1) + b"abc", "neither an XSpace"),
        ("planes without number", b"\x0a\x00" * 10_001, "10,001 planes"),
        ("cut off", small_xspace() + b"\x0a" + varint(2**60), "cut off or damaged"),
        ("endless varint", small_xspace() + b"\x0a" + b"\xff" * 40, "cut off or damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_profile_says_so(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(TraceFormatError) as caught:
        open_trace(str(path))
    assert path.name in caught.value.message
    if IS_COMPILED:
        assert words in caught.value.message
    assert caught.value.remedy


@pytest.mark.slow
def test_both_decoders_take_as_many_planes() -> None:
    most = b"\x0a\x00" * MAX_PLANES
    for decode in (plain, native) if IS_COMPILED else (plain,):
        assert len(decode(most).planes) == MAX_PLANES
        with pytest.raises(TraceFormatError, match="10,001 planes"):
            decode(most + b"\x0a\x00")


def test_every_truncation_is_an_error_or_a_prefix_that_says_so(tmp_path: Path) -> None:
    data = small_xspace()
    path = tmp_path / "h.xplane.pb"
    n_opened = 0
    for size in range(1, len(data), 7):
        path.write_bytes(data[:size])
        try:
            trace = open_trace(str(path))
        except TraceFormatError:
            assert size < 30
        else:
            n_opened += 1
            assert "cut off" in trace.info.damage
    assert n_opened > 200


def test_a_missing_file_and_a_truncated_gzip_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        open_trace(str(tmp_path / "gone.xplane.pb"))
    path = tmp_path / "h.xplane.pb.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00rubbish")
    with pytest.raises(TraceFormatError, match="gzip"):
        open_trace(str(path))


def test_metadata_ids_out_of_range_lead_to_nameless_events() -> None:
    space = xspace_class()()
    plane = space.planes.add(name=b"/host:CPU")
    line = plane.lines.add(id=1)
    for metadata_id in (0, -1, 2**62, -(2**63)):
        event = line.events.add(metadata_id=metadata_id, offset_ps=5, duration_ps=1)
        event.stats.add(metadata_id=2**61, int64_value=1)
    trace = native(space.SerializeToString())
    assert trace.n_events == 4
    assert {trace.strings.get(i) for i in trace.event_names[trace.events["metadata"]].tolist()} == {
        "(unknown event)"
    }
    assert trace.source.event_stats(trace, 0) == [(f"(stat {2**61})", 1)]


@pytest.mark.skipif(
    not IS_COMPILED, reason="the protobuf runtime refuses a file with a damaged part as a whole"
)
def test_a_damaged_line_costs_its_own_events_only() -> None:
    good = small_xspace()
    bad_line = b"\x1a" + varint(6) + b"\x22\x7f\x08\x01\x10\x02"
    plane = b"\x12\x04/bad" + bad_line
    trace = native(good + b"\x0a" + varint(len(plane)) + plane)
    assert trace.n_events == 80
    assert trace.info.n_damaged == 1
    assert trace.plane_names == ["/host:CPU", "/bad"]


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="fuzzing is aimed at the native decoder")
def test_mutations_never_crash_hang_or_eat_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(20261120)
    seeds = [small_xspace(), small_xspace()[:400]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    deadline = time.monotonic() + FUZZ_SECONDS
    n_tried = n_opened = 0
    while time.monotonic() < deadline and n_tried < 20_000:
        monkeypatch.setattr("tb_tpuprof.ingest.xspace.lines.PIECE_BYTES", rng.choice((64, 2**20)))
        started = time.monotonic()
        trace = decoded(mutated(rng, rng.choice(seeds)))
        assert time.monotonic() - started < 2
        n_tried += 1
        if trace is not None:
            n_opened += 1
            for event in range(0, trace.n_events, 17):
                with contextlib.suppress(ProfilerError):
                    trace.source.event_stats(trace, event)
    assert n_tried > 500
    assert 0 < n_opened < n_tried
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def decoded(data: bytes):  # type: ignore[no-untyped-def]
    """The trace, or None where it is refused as it should be."""
    try:
        return native(data)
    except TraceFormatError:
        return None


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A few bytes flipped, cut, doubled or overwritten with what varints are hurt by."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out))
        what = rng.randrange(5)
        if what == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            out[at] = rng.choice([0, 0x7F, 0x80, 0xFF])
        elif what == 2:
            del out[at : at + rng.randint(1, 8)]
        elif what == 3:
            out[at:at] = out[at : at + rng.randint(1, 16)]
        else:
            out[at:at] = varint(rng.choice([2**31, 2**32 - 1, 2**60, 2**63, 2**64 - 1]))
        if not out:
            out = bytearray(b"\x0a")
    return bytes(out)


@pytest.mark.parametrize("size", [0x5B, 0x7B])
def test_a_plane_whose_length_looks_like_a_bracket_is_no_json(tmp_path: Path, size: int) -> None:
    space = xspace_class()()
    space.planes.add(id=1, name=b"")
    space.planes[0].name = b"p" * (size - space.planes[0].ByteSize() - 2)
    data = space.SerializeToString()
    assert data[:2] == bytes((0x0A, size))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(data)
    assert open_trace(str(path)).plane_names == ["p" * (size - 4)]


@pytest.mark.parametrize("text", ['\n{"traceEvents": []}', "\n [ ]", '\r\n\n[\n{"ph": "X", "ts": 1}]'])
def test_json_may_begin_with_an_empty_line(text: str) -> None:
    assert is_chrome_trace(np.frombuffer(text.encode(), np.uint8))
