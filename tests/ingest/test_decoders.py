"""The native decoder against the protobuf runtime: equal on random XSpaces and on every trace of
the corpus.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tb_tpuprof.errors import NotATrace, StorageError, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.ingest.xspace.outline_bytes import PartialFile
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.parallel.policy import POLICY
from tests.ingest.xspaces import content, native, plain, small_xspace, xspaces

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is only one decoder to look at"
)


def traces() -> list[object]:
    """The demo logs' traces, and the corpus's where TPUPROF_CORPUS names one."""
    corpus = Path(os.environ.get("TPUPROF_CORPUS", "") or "/nowhere").glob("**/*.xplane.pb")
    demo = sorted((ROOT / "demo_logs").glob("**/*.xplane.pb"))
    return [*demo, *(pytest.param(path, marks=pytest.mark.slow) for path in sorted(corpus))]


@pytest.mark.slow
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(xspaces())
def test_decoders_agree_on_random_xspaces(data: bytes) -> None:
    if not data:
        return
    assert content(native(data)) == content(plain(data))


@pytest.mark.slow
@pytest.mark.parametrize("path", traces(), ids=lambda path: "/".join(path.parts[-2:]))
def test_decoders_agree_on_real_traces(path: Path) -> None:
    data = path.read_bytes()
    try:
        expected = content(plain(data))
    except TraceFormatError:
        with pytest.raises(TraceFormatError):
            native(data)
        return
    assert content(native(data)) == expected


@pytest.mark.slow
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(xspaces())
def test_several_threads_read_what_one_reads(data: bytes) -> None:
    if data:
        with pytest.MonkeyPatch.context() as patch:
            expected = content(native(data))
            patch.setattr(POLICY, "decoded_bytes_per_thread", 1)
            patch.setattr(POLICY, "n_processors", lambda: 3)
            assert content(native(data)) == expected
            patch.setattr(
                "tb_tpuprof.ingest.xspace.lines.PIECE_BYTES", 16
            )  # every line is cut wherever an event begins
            assert content(native(data)) == expected


@pytest.mark.slow
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(xspaces())
def test_a_file_read_through_windows_holds_what_one_in_memory_holds(data: bytes) -> None:
    if not data.startswith(b"\x0a"):
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "host.xplane.pb")
        path.write_bytes(data)
        try:
            expected = content(open_trace(str(path)))
        except NotATrace:  # is it also when read through windows?
            expected = None
        patch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.LARGE_BYTES", 0)
        patch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.WINDOW_BYTES", 32)
        patch.setattr(
            "tb_tpuprof.ingest.xspace.outline_bytes.new_bytes", lambda n: np.full(n, 0xFF, np.uint8)
        )
        patch.setattr("tb_tpuprof.ingest.xspace.lines.PIECE_BYTES", 16)
        if expected is None:
            with pytest.raises(NotATrace):
                open_trace(str(path))
            return
        assert content(open_trace(str(path))) == expected


def test_of_a_large_file_only_what_is_needed_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(small_xspace())
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.LARGE_BYTES", 0)
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.WINDOW_BYTES", 128)
    monkeypatch.setattr(
        "tb_tpuprof.ingest.xspace.outline_bytes.new_bytes", lambda n: np.full(n, 0xFF, np.uint8)
    )
    file = PartialFile(str(path))
    assert (file.data == np.frombuffer(path.read_bytes(), np.uint8)).mean() < 0.5


def test_a_file_that_becomes_shorter_while_its_lines_are_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(small_xspace())
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.LARGE_BYTES", 0)
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.WINDOW_BYTES", 128)

    def cut_off(path_of_file: str, is_outline: bool) -> PartialFile:
        file = PartialFile(path_of_file, is_outline)
        os.truncate(path_of_file, 200)
        return file

    monkeypatch.setattr("tb_tpuprof.ingest.opening.PartialFile", cut_off)
    with pytest.raises(StorageError, match="became shorter"):
        open_trace(str(path))


def test_malformed_events_leave_no_gap_between_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICY, "decoded_bytes_per_thread", 1)
    space = xspace_class()()
    space.ParseFromString(small_xspace())
    del space.planes[0].lines[0].events[10:]
    data = space.SerializeToString()
    trace = native(data)
    assert trace.n_events == 50
    broken = bytearray(data)
    event = space.planes[0].lines[0].events[3].SerializeToString()
    where = broken.index(event)
    broken[where : where + len(event)] = b"\xff" * len(event)
    damaged = native(bytes(broken))
    assert damaged.info.n_damaged == 1
    assert damaged.n_events == 49
    assert (
        damaged.event_stats.ints("step_num").value.tolist()
        == trace.event_stats.ints("step_num").value.tolist()
    )
    assert damaged.lines["n_events"].tolist() == [9, 40]
    assert damaged.events["start_ps"][9:].tolist() == trace.events["start_ps"][10:].tolist()


def test_a_known_xspace_decodes_to_what_was_written() -> None:
    trace = native(small_xspace())
    assert trace.plane_names == ["/host:CPU"]
    assert trace.line_names == ["thread 0", "thread 1"]
    assert trace.n_events == 80
    assert trace.info.start_ns == 1000
    assert trace.events["start_ps"][:4].tolist() == [0, 100, 1000, 1100]
    assert trace.events["duration_ps"][:2].tolist() == [900, 500]
    assert trace.event_stats.ints("step_num").value[:3].tolist() == [0, 1, 2]
    assert not trace.event_stats.has("note")
    assert trace.source.event_stats(trace, 2) == [("_r", 1), ("step_num", 1), ("note", "text 1")]
    assert trace.source.event_stats(trace, 3) == []
