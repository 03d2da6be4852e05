"""What is no XSpace is opened as what it is, or refused by name: never an empty profile."""

from __future__ import annotations

import gzip
import os
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import LogDirectory, NotATrace, TraceFormatError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.ingest.storage.kinds import kind_of_bytes, kind_of_name
from tb_tpuprof.ingest.storage.runs import find_runs, open_run
from tb_tpuprof.native import IS_COMPILED, fields
from tb_tpuprof.session import Session
from tb_tpuprof.tools.graph_viewer import view as graph_viewer
from tb_tpuprof.tools.memory_viewer import view as memory_viewer
from tb_tpuprof.trace.trace import Trace
from tests.ingest.hlo_protos import array, instruction, message, varint
from tests.ingest.other_files import MS, OLD_TRACE, OPERATIONS, OVERVIEW, event, resource, trace_proto
from tests.ingest.xspaces import small_xspace
from tests.plain_protobuf import plain_fields

CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "") or "/nowhere")
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="TPUPROF_CORPUS names no folder of recorded traces"
)


def placed(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def rows(trace: Trace) -> list[tuple[str, str, str, str, int, int]]:
    """(plane, line, name, display name, start since the first event, duration) of all events."""
    text = trace.strings.get
    line = np.repeat(np.arange(len(trace.lines)), trace.lines["n_events"])
    return [
        (
            text(int(trace.planes["name"][trace.lines["plane"][at]])),
            text(int(trace.lines["name"][at])),
            text(int(trace.metadata["name"][kind])),
            text(int(trace.metadata["display_name"][kind]))
            if trace.metadata["display_name"][kind] >= 0
            else "",
            start,
            duration,
        )
        for at, kind, start, duration in zip(
            line.tolist(),
            *(trace.events[name].tolist() for name in ("metadata", "start_ps", "duration_ps")),
            strict=True,
        )
    ]


EXPECTED = {
    ("/host:CPU", "python", "train", "", 0, 12 * MS),
    ("/host:CPU", "tf_Compute", "dense/MatMul:MatMul", "MatMul", 4 * MS, 2 * MS),
    ("/host:CPU", "tf_Compute", "dense/Relu:Relu", "Relu", 7 * MS, 1 * MS),
    ("/host:CPU", "tf_data_iterator_get_next", "Iterator::Model", "Model", 1 * MS, 3 * MS),
    ("/device:GPU:0", "Stream #1", "sgemm", "", 5 * MS, 4 * MS),
    ("/device:GPU:0", "Stream #2", "memcpy", "", 8 * MS, 0),
}


@pytest.mark.parametrize("name", ["local.trace", "local.trace.gz", "called_otherwise.xplane.pb"])
def test_a_trace_of_tensorflow_2_1_is_opened(tmp_path: Path, name: str) -> None:
    path = placed(tmp_path, name, gzip.compress(OLD_TRACE) if name.endswith(".gz") else OLD_TRACE)
    trace = open_trace(path)
    assert len(rows(trace)) == 6
    assert set(rows(trace)) == EXPECTED
    assert not trace.info.n_damaged
    kernel = next(i for i, row in enumerate(rows(trace)) if row[2] == "dense/MatMul:MatMul")
    assert dict(trace.source.event_stats(trace, kernel)) == {
        "long name": "dense/MatMul:MatMul",
        "label": "id=3",
    }


def test_a_run_of_old_traces_is_a_run_and_newer_files_count_first(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "r"
    placed(folder, "a.trace", OLD_TRACE)
    placed(folder, "b.trace", OLD_TRACE)
    placed(folder, "b.trace.json", b'{"traceEvents": []}')
    (run,) = find_runs(str(tmp_path))
    assert run.state == "ok"
    assert {file.host: os.path.basename(file.path) for file in run.files} == {
        "a": "a.trace",
        "b": "b.trace.json",
    }


def test_steps_and_operations_of_an_old_trace_are_analysed(tmp_path: Path) -> None:
    from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats

    payload = framework_op_stats.TOOL.run(
        Session(placed(tmp_path, "local.trace", OLD_TRACE), cache=False), None, {}
    )
    columns = {column.name: column for column in payload.tables["ops"].columns}
    names = [columns["operation"].strings[i] for i in columns["operation"].values.tolist()]  # type: ignore[index]
    times = dict(zip(names, columns["total_time_ps"].values.tolist(), strict=True))
    assert times["dense/MatMul"] == 2 * MS
    assert times["dense/Relu"] == 1 * MS
    assert payload.verdict is not None
    assert "sgemm" in payload.verdict.text


@pytest.mark.skipif(not IS_COMPILED, reason="only natively decoded traces are cached")
def test_the_cache_keeps_old_traces_with_their_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    state = file_state(placed(tmp_path, "local.trace", OLD_TRACE))
    trace = open_trace(state.path)
    assert column_cache.save(state, trace)
    loaded = column_cache.load(state)
    assert loaded is not None
    assert rows(loaded) == rows(trace)
    assert loaded.source.event_stats(loaded, 2) == trace.source.event_stats(trace, 2)


def test_hostile_old_traces_cost_little(tmp_path: Path) -> None:
    """Times out of range, bytes for numbers, lengths written long, a file that is cut off."""
    far = [
        event(0, 1, "far", 2**64 - 1, 5),
        event(0, 1, "near", 3 * MS, 2**63),
        {1: b"x", 2: b"y", 3: "bytes", 9: 4 * MS},
    ]
    host = {1: "/host:CPU", 3: [resource(1, "main")]}
    trace = open_trace(placed(tmp_path, "a.trace", trace_proto(host, events=far)))
    assert trace.info.n_damaged == 1
    assert {(row[2], row[5]) for row in rows(trace)} == {("near", 0), ("bytes", 0)}
    one = message(event(0, 1, "long", 2 * MS, 1 * MS, label="x"))
    padded = b"\x22" + varint(len(one))[:-1] + bytes([varint(len(one))[-1] | 0x80, 0]) + one
    trace = open_trace(placed(tmp_path, "b.trace", trace_proto(host) + padded))
    assert [row[2] for row in rows(trace)] == ["long"]
    assert trace.source.event_stats(trace, 0) == []
    for size in range(len(OLD_TRACE) - 1, 0, -13):
        path = placed(tmp_path, "c.trace", OLD_TRACE[:size])
        damaged = opened(path)
        assert damaged is None or damaged.info.n_damaged


def opened(path: str) -> Trace | None:
    """The trace, or None where it is refused as it should be."""
    try:
        return open_trace(path)
    except TraceFormatError:
        return None


KINDS = {
    "localhost.overview_page.pb": "finished overview page of an older profiler",
    "10.0.0.2.input_pipeline.json": "finished input pipeline page",
    "h.tensorflow_stats.pb": "finished table of TensorFlow operations",
    "h.kernel_stats.pb": "finished table of GPU kernels",
    "h.memory_profile.json.gz": "finished memory profile page",
    "h.tracetable": "event table of Cloud TPU's streaming trace viewer",
    "h.SSTABLE": "trace viewer's cache",
    "h.metadata.SSTABLE": "trace viewer's cache",
    "events.out.tfevents.1583461681.h.profile-empty": "empty event file",
    "events.out.tfevents.1583461681.h": "TensorBoard event file",
    "NO_MODULE.hlo_proto.pb": "marker of another viewer",
    "ALL_HOSTS.op_stats_v2.pb": "intermediate result",
    "memory.prof": "pprof",
    "x.nsys-rep": "Nsight Systems",
    "snapshot.pickle": "Python pickle",
}


@pytest.mark.parametrize(("name", "words"), KINDS.items())
def test_a_file_of_another_kind_is_refused_by_its_name(tmp_path: Path, name: str, words: str) -> None:
    for data in (OVERVIEW, small_xspace(), b"[]"):  # whatever is in it
        with pytest.raises(NotATrace, match=words) as caught:
            Session(placed(tmp_path, name, data), cache=False)
        assert caught.value.message.startswith(f"{name} is ")
        assert str(tmp_path) not in caught.value.message
        assert caught.value.remedy.endswith(".")
        assert (caught.value.http_status, caught.value.exit_code) == (422, 3)


HLO = message(
    {
        1: {
            1: "jit_step",
            2: "main",
            3: [{1: "main", 2: [instruction(1, "parameter", array(4))], 5: 1, 6: 1}],
            5: 7,
        }
    }
)
CONTENTS = {
    "an overview page": (OVERVIEW, "neither an XSpace"),
    "operations that parse as planes": (OPERATIONS, "neither an XSpace"),
    "a compiled program": (HLO, "HLO of a compiled program"),
    "a LevelDB table": (b"\x00\x05\x08/trace" + bytes(60) + bytes.fromhex("57fb808b247547db"), "LevelDB"),
    "SQLite": (b"SQLite format 3\0" + bytes(100), "SQLite"),
    "a plane without a space around it": (small_xspace()[3:], "neither an XSpace"),
    "a TensorFlow graph": (
        message({1: [{1: "dense", 2: "MatMul", 3: ["x", "w"]}], 4: {1: 1}}),
        "neither an XSpace",
    ),
    "a SavedModel": (message({1: 1, 2: {1: {4: "serve", 5: "2.1"}, 2: {1: {1: "x"}}}}), "neither an XSpace"),
    "an XSpace written as text": (
        (small_xspace() + b"\x9c\xe1\xf3\xff\x83\xc0\xee\xaa\xbb" * 4).decode("latin1").encode(),
        "rewritten as UTF-8",
    ),
    "nothing but numbers": (message({1: 5, 2: 6, 3: 7}), "neither an XSpace"),
    "an event file": (struct.pack("<Q", 24) + bytes(100), "neither an XSpace"),
}


@pytest.mark.parametrize("what", CONTENTS)
@pytest.mark.parametrize("name", ["h.xplane.pb", "h.xplane.pb.gz"])
def test_a_file_that_is_called_a_profile_and_is_none_is_refused(tmp_path: Path, what: str, name: str) -> None:
    data, words = CONTENTS[what]
    path = placed(tmp_path, name, gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(NotATrace, match=words):
        open_trace(path)
    with pytest.raises(NotATrace, match=words):
        open_trace(path, is_outline=True)


def test_a_large_file_of_another_kind_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.LARGE_BYTES", 16)
    with pytest.raises(NotATrace):
        open_trace(placed(tmp_path, "h.xplane.pb", OPERATIONS))
    assert set(rows(open_trace(placed(tmp_path, "h.trace", OLD_TRACE)))) == EXPECTED
    assert open_trace(placed(tmp_path, "h2.xplane.pb", small_xspace())).n_events == 80


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x00",  # a plane without anything
        b"\x0a\x00" * 3,
        b"\x22\x00",  # a host without a name
        message({4: "worker-0", 2: "the profiler was busy\n"}),
        message({1: {2: "/host:CPU"}}),
        message({1: {1: 5}}) + message({1: {2: "Task Environment", 6: [{1: 1, 3: 5}]}}),
        message({1: {2: "/device:TPU:0", 99: "of a later version"}}),
        message({1: {2: "Größe 大"}}),
        message({1: {1: 1, 3: [{1: 5, 4: [{1: 1, 2: 3, 3: 4}]}]}}),  # lines, but no name
    ],
)
def test_any_xspace_counts_as_one(tmp_path: Path, data: bytes) -> None:
    assert not open_trace(placed(tmp_path, "h.xplane.pb", data)).info.n_damaged


def test_a_file_that_ends_within_its_first_plane_is_said_to_be_cut_off(tmp_path: Path) -> None:
    whole = small_xspace()
    for size in (40, len(whole) // 2, len(whole) - 1):
        trace = open_trace(placed(tmp_path, "h.xplane.pb", whole[:size]))
        assert "the file is cut off" in trace.info.damage


def test_runs_without_a_trace_say_what_they_hold(tmp_path: Path) -> None:
    def run(*names: str) -> tuple[str, str]:
        folder = tmp_path / "log" / "plugins" / "profile" / "_".join(names)
        for name in names:
            placed(folder, name, b"x")
        (found,) = [found for found in find_runs(str(tmp_path)) if found.path == str(folder)]
        return found.state, found.message

    assert run("h.overview_page.json", "h.pod_viewer.json") == (
        "legacy",
        run("h.overview_page.json", "h.pod_viewer.json")[1],
    )
    assert "(overview page, pod viewer page)" in run("h.overview_page.json", "h.pod_viewer.json")[1]
    state, message_ = run("h.SSTABLE", "h.op_stats_v2.pb")
    assert state == "unsupported"
    assert "cache" in message_
    assert "failed" not in message_
    state, message_ = run("h.tracetable")
    assert state == "legacy"
    assert "Cloud TPU" in message_
    assert run("notes.txt")[0] == "empty"


def test_what_jax_writes_for_perfetto_is_read_where_it_is_all_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "r"
    data = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    placed(folder, "perfetto_trace.json.gz", gzip.compress(data))
    assert open_trace(open_run(str(folder)).files[0].path).n_events == 1
    placed(folder, "h.xplane.pb", small_xspace())
    assert [file.host for file in open_run(str(folder)).files] == ["h"]


def test_an_xspace_under_its_other_name_is_a_host(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "r"
    placed(folder, "h.xspace.pb", small_xspace())
    assert [file.host for file in find_runs(str(tmp_path))[0].files] == ["h"]


@pytest.mark.parametrize("inside", ["", "plugins", "plugins/profile"])
def test_a_log_directory_is_told_from_a_run(tmp_path: Path, inside: str) -> None:
    for i in range(7):
        placed(
            tmp_path / "log" / "plugins" / "profile" / f"2026_11_20_10_00_0{i}", "h.xplane.pb", small_xspace()
        )
    with pytest.raises(LogDirectory, match="log directory, not a run") as caught:
        Session(str(tmp_path / "log" / inside), cache=False)
    assert caught.value.exit_code == 4
    assert caught.value.remedy.startswith("Name one of the 7 runs below it, newest first:")
    assert caught.value.remedy.index("10_00_06") < caught.value.remedy.index("10_00_02")
    assert "10_00_01" not in caught.value.remedy
    assert "2 more" in caught.value.remedy


def test_a_named_program_is_shown_not_its_neighbour(tmp_path: Path) -> None:
    def program(name: str, n: int) -> bytes:
        body = [instruction(1, "parameter", array(n)), instruction(2, "negate", array(n), (1,))]
        return message({1: {1: name, 2: "main", 3: [{1: "main", 2: body, 5: 1, 6: 2}], 5: 7, 6: 1}})

    paths = {
        name: placed(tmp_path, f"{name}({i}).hlo_proto.pb", program(name, n))
        for i, (name, n) in enumerate({"jit_small": 3, "jit_large": 10_000, "jit_middle": 50}.items(), 1)
    }
    for name, path in paths.items():
        session = Session(path)
        payload = graph_viewer.TOOL.run(session, None, {})
        assert [
            title.rpartition("(")[0] for title in payload.tables["programs"].columns[0].strings or []
        ] == [name]
        assert name in (payload.verdict.text if payload.verdict else "")
        assert [title.title.rpartition("(")[0] for title in session.programs()] == [name]
        assert "one compiled program" in session.info.message
        assert memory_viewer.TOOL.availability(session).reason == ""
    everything = Session(str(tmp_path))
    assert {program.name for program in everything.programs()} == set(paths)


@needs_corpus
def test_every_xspace_of_the_corpus_counts_as_one_and_nothing_else_does() -> None:
    from tb_tpuprof.ingest.opening import _other_kind

    n = 0
    for path in sorted(CORPUS.rglob("*.pb")):
        kind = _other_kind(np.frombuffer(path.read_bytes(), np.uint8), "x.xplane.pb")
        is_whole = path.name.endswith(".xplane.pb") and path.parts[-5] != "xprof_tpu_inference_2"
        assert (kind is None) == is_whole, path
        n += 1
    assert n > 20


@needs_corpus
def test_parts_of_real_protobufs_are_no_xspaces() -> None:
    """Messages from within real files, as stand-ins for protobufs that nobody thought of."""
    from tb_tpuprof.ingest.xspace.structure import is_xspace

    n = n_taken = 0
    for path in sorted(
        [
            *CORPUS.rglob("*.hlo_proto.pb"),
            *CORPUS.rglob("*.overview_page.pb"),
            *CORPUS.rglob("*.tensorflow_stats.pb"),
        ]
    ):
        data = np.frombuffer(path.read_bytes(), np.uint8)
        for start, size in inner_messages(data):
            part = np.ascontiguousarray(data[start : start + size])
            top, bad = fields(part, 0, len(part))
            if bad < 0 and len(top) > 2:
                n += 1
                n_taken += is_xspace(part, top)
    assert n > 1000
    assert n_taken <= n // 200  # messages of nothing but texts


def inner_messages(data: np.ndarray) -> Iterator[tuple[int, int]]:
    """Places of the messages within a message, four levels down, forty of each."""
    waiting = [(0, len(data), 0)]
    while waiting:
        start, size, depth = waiting.pop()
        top, bad = fields(data, start, start + size)
        if bad < 0 and len(top):
            yield start, size
            inner = top[top[:, 1] == 2, 2:][:40].tolist()
            waiting += [(at, length, depth + 1) for at, length in inner if length > 4] if depth < 4 else []


@needs_corpus
def test_old_traces_of_the_corpus_equal_an_independent_count() -> None:
    """By a plain reader of the wire format: events, their names and the sum of their durations."""
    files = sorted(CORPUS.rglob("*.trace"))
    assert files
    for path in files:
        names, total = Counter[str](), 0
        for number, value in plain_fields(path.read_bytes()):
            if number == 4:
                one = dict(plain_fields(value))
                names[one[3].decode()] += 1
                total += one.get(10, 0)
        trace = open_trace(str(path))
        shown = Counter(row[3] or row[2] for row in rows(trace))
        assert shown == names
        assert int(trace.events["duration_ps"].sum()) == total


def test_kinds_have_whole_sentences() -> None:
    for name in KINDS:
        kind = kind_of_name(name)
        assert kind is not None
        assert not kind.what.endswith(".")
    assert (
        kind_of_name("h.xplane.pb") is kind_of_name("local.trace") is kind_of_name("a.trace.json.gz") is None
    )
    assert kind_of_bytes(b"\x0a\x05", b"") is None
