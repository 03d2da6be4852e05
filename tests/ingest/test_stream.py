"""Streams of profile pieces against the pieces merged into one XSpace by the protobuf runtime: every table is
equal, on random pieces and on real files, whichever way the records are stored.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.ingest.arguments import argument, names_of
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.ingest.storage.riegeli_source import RiegeliSource
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.trace import Trace
from tests.ingest.merged_spaces import merged_space, piece, pieces
from tests.ingest.riegeli_files import BLOCK, CODECS, RiegeliFile
from tests.ingest.stream_files import SMALL, THREE, records_of, spaces_of_one_thread, stream, written
from tests.ingest.xspaces import content, plain

IN_FILE = pytest.mark.skipif(not IS_COMPILED, reason="the plain decoder keeps messages, not their positions")


def comparable(trace: Trace) -> dict[str, Any]:
    """All content but what depends on the file."""
    told = content(trace)
    told["info"] = {k: v for k, v in told["info"].items() if k not in ("path", "host", "size_bytes")}
    return told


def check(streams: Sequence[bytes], path: Path) -> None:
    got, expected = comparable(open_trace(str(path))), comparable(plain(merged_space(streams)))
    for name, value in expected.items():
        assert got[name] == value, name


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(pieces(), st.sampled_from(CODECS), st.booleans())
def test_random_pieces_are_read_as_one_space(streams: list[bytes], codec: int, transposed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(streams, written(streams, folder, codec, transposed))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces(), st.booleans())
def test_without_compiled_loops(streams: list[bytes], transposed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tb_tpuprof.ingest.xspace.stream.IS_COMPILED", False)
        check(streams, written(streams, folder, CODECS[1], transposed))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(piece(), min_size=3, max_size=3), st.integers(1, 2))
def test_records_may_share_a_chunk(streams: list[bytes], n_first: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = RiegeliFile().records(streams[:n_first]).records([*streams[n_first:], b""])
        path = Path(folder, "host.xplane.riegeli")
        path.write_bytes(file.closed())
        check(streams, path)


def test_a_capture_of_jax() -> None:
    check(records_of(SMALL), SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long", "small"])
def test_captures_of_the_corpus(name: str) -> None:
    corpus = Path(os.environ.get("TPUPROF_CORPUS", "") or "/nowhere")
    paths = sorted((corpus / "own_jax_riegeli" / name).glob("**/*.xplane.riegeli"))
    if not paths:
        pytest.skip("TPUPROF_CORPUS has no own_jax_riegeli")
    (path,) = paths
    records, trace = records_of(path), open_trace(str(path))
    got, expected = tables(trace), tables(plain(merged_space(records)))
    for table, value in expected.items():
        assert got[table] == value, table
    spaces = [xspace_class().FromString(record) for record in records]
    assert trace.n_events == sum(len(line.events) for s in spaces for p in s.planes for line in p.lines)
    if name == "long":
        assert trace.n_events == 236_887
        assert [sum(len(n.events) for p in s.planes for n in p.lines) for s in spaces] == [
            0,
            87354,
            82474,
            67059,
        ]
    names = {p.name: {e.key: e.value.name for e in p.stat_metadata} for p in spaces[1].planes}[b"/host:CPU"]
    first = next(line for p in spaces[1].planes for line in p.lines if line.events).events[7]
    told = {name for name, _ in trace.source.event_stats(trace, 7)}
    assert told == {names[stat.metadata_id].decode() for stat in first.stats}


def tables(trace: Trace) -> dict[str, Any]:
    """`comparable` without every event's arguments: for millions of stats, reading them takes a minute."""
    source = trace.source

    class Silent:
        read = staticmethod(source.read)

        @staticmethod
        def event_stats(_trace: Trace, _event: int) -> list[Any]:
            return []

    return comparable(replace(trace, source=Silent()))  # type: ignore[arg-type]


def test_a_line_whose_pieces_overlap_is_sorted(tmp_path: Path) -> None:
    streams = spaces_of_one_thread(
        [(0, 900, "a"), (100, 50, "b")], [(50, 700, "c"), (100, 60, "b")], [(100, 60, "d"), (2000, 1, "a")]
    )
    trace = open_trace(str(written(streams, tmp_path)))
    names = [trace.strings.get(i) for i in trace.event_names[trace.events["metadata"]].tolist()]
    rows = list(zip(trace.events["start_ps"].tolist(), names, strict=True))
    assert rows == [(0, "a"), (50, "c"), (100, "b"), (100, "d"), (100, "b"), (2000, "a")]
    assert trace.events["duration_ps"].tolist() == [900, 700, 60, 60, 50, 1]
    steps = trace.event_stats.ints("step_num")
    assert steps.owner.tolist() == [0, 1, 2, 3, 4, 5]
    assert steps.value.tolist() == [0, 50, 100, 100, 100, 2000]
    assert [trace.source.event_stats(trace, i) for i in (1, 5)] == [[("step_num", 50)], [("step_num", 2000)]]
    check(streams, written(streams, tmp_path))


def test_pieces_in_order_are_not_sorted_and_keep_their_ids(tmp_path: Path) -> None:
    streams = spaces_of_one_thread(
        [(0, 10, "b"), (20, 5, "a")], [(20, 5, "c"), (40, 1, "a")], [(41, 2, "d")], line_names=("x", "y", "")
    )
    trace = open_trace(str(written(streams, tmp_path)))
    assert trace.line_names == ["x"]
    assert trace.plane_names == ["/host:CPU"]
    assert trace.planes["id"].tolist() == [3]
    named = trace.metadata["name"].tolist()
    assert [trace.strings.get(i) for i in named] == ["a", "b", "c", "d", "(unknown event)"]
    assert trace.metadata["id"].tolist() == [1, 2, 3, 4, -(2**63)]
    assert trace.stat_names["id"].tolist() == [9]
    assert trace.events["start_ps"].tolist() == [0, 20, 20, 40, 41]


def test_the_whole_begins_with_its_first_event(tmp_path: Path) -> None:
    """Clocks of lines and of pieces differ by nanoseconds and more."""
    streams = spaces_of_one_thread([(5_000_000, 10, "a")], [(3_500, 5, "b")], [(9_000_000_000, 1, "a")])
    trace = open_trace(str(written(streams, tmp_path)))
    assert trace.info.start_ns == 103
    assert trace.events["start_ps"].tolist() == [500, 5_000_000 - 3_000, 9_000_000_000 - 3_000]
    assert trace.duration_ps == 9_000_000_000 - 3_000 + 1


@pytest.mark.skipif(not IS_COMPILED, reason="the plain decoder has no outlines")
def test_an_outline_has_planes_and_programs_alone() -> None:
    outline, whole = open_trace(str(SMALL), is_outline=True), open_trace(str(SMALL))
    assert outline.info.is_outline
    assert outline.n_events == 0
    assert outline.plane_names == whole.plane_names == ["/host:CPU", "Task Environment"]
    stats = [t.plane_stats.text_at(i) for t in (outline, whole) for i in range(len(t.plane_stats.table))]
    assert stats[: len(stats) // 2] == stats[len(stats) // 2 :]
    assert len(stats) >= 4


def test_programs_of_all_pieces(tmp_path: Path) -> None:
    """HLO of a program may come with any piece, and is read from it on demand."""
    streams = []
    for number, protos in enumerate(([b"first hlo"], [b"first hlo", b"second, longer hlo"], [])):
        space = xspace_class()()
        plane = space.planes.add(name=b"/host:metadata")
        plane.stat_metadata.add(key=4 + number, value={"name": b"Hlo Proto"})
        for i, proto in enumerate(protos):
            entry = plane.event_metadata.add(key=70 + i)
            entry.value.name = b"jit_step(%d)" % i
            entry.value.stats.add(metadata_id=4 + number, bytes_value=proto)
        streams.append(space.SerializeToString())
    for is_outline in (False, True):
        trace = open_trace(str(written(streams, tmp_path)), is_outline)
        spans = trace.metadata_stats.spans("Hlo Proto")
        assert [trace.source.read(a, n) for _, a, n in spans] == [b"first hlo", b"second, longer hlo"]
        assert [int(trace.metadata["id"][owner]) for owner, _, _ in spans] == [70, 71]


def test_all_arguments_of_all_events() -> None:
    """Also those that opening did not decode: the file is read once more."""
    trace = open_trace(str(SMALL))
    names = names_of(trace)
    assert "_src" in names
    table = argument(trace, "_src").texts("_src")
    (space,) = [xspace_class().FromString(record) for record in records_of(SMALL)[1:]]
    expected = 0
    for plane in space.planes:
        keys = {entry.key for entry in plane.stat_metadata if entry.value.name == b"_src"}
        expected += sum(s.metadata_id in keys for n in plane.lines for e in n.events for s in e.stats)
    assert len(table.owner) == expected > 0


def test_names_of_stats_are_those_of_the_record(tmp_path: Path) -> None:
    """Two records of one chunk, and two planes of one record, use an id for unlike stats."""
    spaces = []
    for names in ((b"alpha", b"beta"), (b"beta", b"gamma")):
        space = xspace_class()()
        for plane_name, name in zip((b"/host:CPU", b"/device:GPU:0"), names, strict=True):
            plane = space.planes.add(name=plane_name)
            plane.stat_metadata.add(key=1, value={"name": name})
            plane.stat_metadata.add(key=2, value={"name": b"text of " + name})
            event = plane.lines.add(id=1).events.add(duration_ps=1)
            event.stats.add(metadata_id=1, ref_value=2)
            event.stats.add(metadata_id=3, int64_value=5)
        spaces.append(space.SerializeToString())
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(RiegeliFile().records(spaces).closed())
    trace = open_trace(str(path))
    for _ in range(2):  # looked up, then remembered
        told = [trace.source.event_stats(trace, event)[0] for event in range(4)]
        assert told == [
            ("alpha", "text of alpha"),
            ("beta", "text of beta"),
            ("beta", "text of beta"),
            ("gamma", "text of gamma"),
        ]
    assert trace.source.event_stats(trace, 3)[1] == ("(stat 3)", 5)


@IN_FILE
def test_columns_kept_on_disk_are_the_same(tmp_path: Path) -> None:
    path = written(THREE, tmp_path)
    state, trace = file_state(str(path)), open_trace(str(path))
    assert column_cache.save(state, trace)
    again = column_cache.load(state)
    assert again is not None
    assert comparable(again) == comparable(trace)
    assert again.source.event_stats(again, 2) == [("step_num", 30)]


@IN_FILE
def test_a_file_that_changed_is_not_read_any_further(tmp_path: Path) -> None:
    path = written(THREE, tmp_path)
    trace = open_trace(str(path))
    assert trace.source.event_stats(trace, 3) == [("step_num", 50)]
    path.write_bytes(stream(*THREE[:2]).closed() + bytes(BLOCK))
    with pytest.raises(StorageError, match="has changed"):
        trace.source.event_stats(trace, 3)


def test_events_beyond_the_machines_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(THREE, tmp_path)
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.merging.max_events", lambda: 4)
    assert open_trace(str(path)).n_events == 4
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.merging.max_events", lambda: 3)
    with pytest.raises(TraceFormatError, match="contains more than 3 events"):
        open_trace(str(path))


def test_countless_pieces_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(THREE, tmp_path)
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.merging.MAX_PIECES", 3)
    assert open_trace(str(path)).n_events == 4
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.merging.MAX_PIECES", 2)
    with pytest.raises(TraceFormatError, match="contains more than 2 pieces"):
        open_trace(str(path))


@pytest.mark.parametrize(("limit", "is_read"), [(3, True), (2, False)])
def test_lines_of_all_pieces_together_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, is_read: bool
) -> None:
    streams = []
    for number in range(3):
        space = xspace_class()()
        space.planes.add(name=b"/host:CPU").lines.add(id=number, name=b"thread")
        streams.append(space.SerializeToString())
    path = written(streams, tmp_path)
    monkeypatch.setattr("tb_tpuprof.trace.schema.MAX_LINES", limit)
    if is_read:
        assert len(open_trace(str(path)).lines) == 3
    else:
        with pytest.raises(TraceFormatError, match="more planes or lines than a profile has"):
            open_trace(str(path))


def test_a_run_of_streams(tmp_path: Path) -> None:
    """Listed, opened and joined like runs of XPlanes; a host's XPlane comes first."""
    base = tmp_path / "plugins" / "profile"
    for run, hosts in (("2026_01_01_00_00_00", ("a", "b")), ("2026_01_01_00_00_02", ("c",))):
        (base / run).mkdir(parents=True)
        for host in hosts:
            (base / run / f"{host}.xplane.riegeli").write_bytes(stream(*THREE).closed())
    (base / "2026_01_01_00_00_00" / "a.xplane.pb").write_bytes(THREE[1])
    runs = {run.name: run for run in find_runs(str(tmp_path))}
    assert set(runs) == {"2026_01_01_00_00_00", "2026_01_01_00_00_02", "2026_01_01_00_00_00+02"}
    joined = runs["2026_01_01_00_00_00+02"]
    assert [(file.host, Path(file.path).suffix) for file in joined.files] == [
        ("a", ".pb"),
        ("b", ".riegeli"),
        ("c", ".riegeli"),
    ]
    assert all(run.state == "ok" for run in runs.values())
    assert [open_trace(file.path).n_events for file in joined.files] == [2, 4, 4]


@IN_FILE
def test_a_stream_behind_a_url() -> None:
    fsspec = pytest.importorskip("fsspec")
    url = "memory://streams/plugins/profile/r/h.xplane.riegeli"
    with fsspec.open(url, "wb") as file:
        file.write(stream(*THREE).closed())
    (run,) = find_runs("memory://streams")
    assert [found.host for found in run.files] == ["h"]
    trace = open_trace(run.files[0].path)
    assert trace.n_events == 4
    assert trace.source.event_stats(trace, 3) == [("step_num", 50)]
    again = RiegeliSource(file_state(url))  # as after the column cache: it finds the chunks itself
    assert again.event_stats(trace, 2) == [("step_num", 30)]
