"""Finding and reading graphs: TensorFlow's own files, checksums, damage, hostile bytes, bounds."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import ProfilerError, TraceFormatError
from tb_tpuprof.ingest.graphs import files as graph_files
from tb_tpuprof.ingest.graphs.files import find_graphs, graph_folder, read_place
from tb_tpuprof.ingest.graphs.graph_def import read_graph
from tb_tpuprof.ingest.graphs.records import crc32c, matches_checksum, record_spans
from tb_tpuprof.trace.graph import Graph
from tests import graph_files as written

DATA = Path(__file__).resolve().parent.parent / "data" / "graphs"


def bytes_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def graph_of(data: bytes) -> Graph:
    return read_graph(bytes_of(data), 0, len(data))


def names(graph: Graph) -> list[str]:
    return [graph.name(node) for node in range(len(graph))]


@pytest.mark.parametrize(
    ("data", "crc"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_checksums_are_those_of_the_standard(data: bytes, crc: int) -> None:
    assert crc32c(bytes_of(data)) == crc


def test_checksums_are_those_made_bit_by_bit() -> None:
    source = random.Random(1)
    for size in (1, 2, 3, 63, 64, 65, 1000, 4097):
        data = source.randbytes(size)
        assert crc32c(bytes_of(data)) == written.crc32c(data), size


def test_records_end_where_damage_begins() -> None:
    whole = written.record(b"one") + written.record(b"two" * 9) + written.record(b"three")
    starts, sizes, wrong = record_spans(bytes_of(whole))
    assert [whole[a : a + n] for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)] == [
        b"one",
        b"two" * 9,
        b"three",
    ]
    assert not wrong
    for cut in (1, 8, 20):  # still being written
        assert record_spans(bytes_of(whole[:-cut]))[0].tolist() == starts.tolist()[:2]
    damaged = bytearray(whole)
    damaged[19] ^= 1  # the second record's length
    starts, _, wrong = record_spans(bytes_of(bytes(damaged)))
    assert (len(starts), wrong) == (1, "a record's length is damaged at byte 19")
    huge = struct.pack("<Q", 2**63) + bytes(8)
    assert record_spans(bytes_of(huge))[2] == "a record's length is damaged at byte 0"


def test_data_is_held_against_its_checksum() -> None:
    data = written.record(b"some bytes")
    assert matches_checksum(bytes_of(data), 12, 10)
    assert not matches_checksum(bytes_of(data.replace(b"some", b"same")), 12, 10)


def test_tensorflow_s_own_files() -> None:
    found = find_graphs(str(DATA), {})
    kinds = {place.name: place.kind for place in found.places}
    assert kinds["function.tfevents.0"] == "graph"
    assert kinds["version1.tfevents.0"] == "graph"  # its meta graph is the same once more
    assert kinds["words"] == "SavedModel (serve)"
    assert {kind for name, kind in kinds.items() if name.startswith("traced")} == {"traced functions (step)"}
    assert (found.n_files, found.notes, found.is_cut) == (4, (), False)
    by_name = {place.name: read_place(place) for place in found.places}
    function = by_name["function.tfevents.0"]
    assert (len(function), len(function.functions), function.n_damaged) == (48, 4, 0)
    assert {"StatelessWhile", "StatelessIf", "PyFunc", "AsString"} <= set(function.op.strings)
    assert "/device:CPU:0" in function.device.strings
    assert "train/python/PyFunc" in names(function)
    assert {"train/python", "train/host", ""} <= set(function.scope.strings)
    called = {function.functions[target] for _, target in function.calls.tolist()}
    assert called == set(function.functions)
    words = by_name["words"]
    assert "LookupTableFindV2" in words.op.strings
    assert any(name.startswith("__inference___call__") for name in words.functions)


def test_columns_of_a_graph() -> None:
    body = [written.node("Mul", "x/y/mul", T=written.FLOAT)]
    nodes = [
        written.node("Add", "add", T=[written.FLOAT, written.STRING], device="/device:TPU:0"),
        written.node("If", "a/b", calls=["f", "gone"], marks=["_tpu_replicate"]),
        written.node("Sub", "a/b/sub", marks=["_xla_outside_compilation"]),
    ]
    graph = graph_of(written.graph_def(nodes, {"f": body}))
    assert names(graph) == ["add", "a/b", "a/b/sub", "x/y/mul"]
    assert [graph.op.strings[code] for code in graph.op.codes] == ["Add", "If", "Sub", "Mul"]
    assert [graph.scope.strings[code] for code in graph.scope.codes] == ["", "a", "a/b", "x/y"]
    assert [graph.device.strings[code] for code in graph.device.codes] == ["/device:TPU:0", "", "", ""]
    assert graph.function.tolist() == [-1, -1, -1, 0]
    assert graph.functions == ("f",)
    assert graph.calls.tolist() == [[1, 0]]
    assert graph.is_tpu.tolist() == [False, True, False, False]
    assert graph.is_outside_compilation.tolist() == [False, False, True, False]
    types = {(node, graph.attributes[key], number) for node, key, number in graph.types.tolist()}
    assert types == {(0, "T", 1), (0, "T", 7), (3, "T", 1)}


def test_damaged_nodes_are_left_out_and_counted() -> None:
    bad = b"\x0a\xff\x01"  # a name longer than its node
    graph = graph_of(written.graph_def([written.node("Add"), bad, written.node("Sub")]))
    assert (names(graph), graph.n_damaged) == (["Add", "Sub"], 1)


def test_random_and_damaged_bytes_do_no_harm() -> None:
    source = random.Random(7)
    good = written.graph_def(
        [written.node("Add", "a/b", T=1, calls=["f"])] * 3, {"f": [written.node("If", calls=["f"])]}
    )
    for _ in range(100):
        data = bytearray(good)
        for _ in range(source.randint(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        graph = graph_of(bytes(data))
        assert all(isinstance(name, str) for name in names(graph))
        graph_of(source.randbytes(source.randint(1, 60)))


def test_files_that_are_wrong_are_named(tmp_path: Path) -> None:
    graph = written.graph_def([written.node("Add")])
    good = written.event_file(written.field(4, graph))
    (tmp_path / "good.tfevents.1").write_bytes(good)
    (tmp_path / "bad.tfevents.1").write_bytes(good[:-6] + bytes([good[-6] ^ 1]) + good[-5:])
    (tmp_path / "length.tfevents.1").write_bytes(good + struct.pack("<Q", 2**40) + bytes(12))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"not one")
    found = find_graphs(str(tmp_path), {})
    assert sorted(place.name for place in found.places) == ["good.tfevents.1", "length.tfevents.1"]
    assert len(found.notes) == 3
    assert any("does not match its checksum" in note and note.startswith("bad") for note in found.notes)
    assert any("length is damaged" in note for note in found.notes)
    assert any("is not a SavedModel" in note for note in found.notes)


def test_what_was_found_is_kept_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(written.event_file(written.field(4, written.graph_def([written.node("Add")]))))
    known: graph_files.GraphCache = {}
    assert len(find_graphs(str(tmp_path), known).places) == 1
    (state,) = known
    known[state] = ([], ["remembered"])
    assert find_graphs(str(tmp_path), known).notes == ("remembered",)
    file.write_bytes(
        file.read_bytes() + written.record(written.field(4, written.graph_def([written.node("Sub")])))
    )
    assert [place.name for place in find_graphs(str(tmp_path), known).places] == [
        "events.out.tfevents.1#1",
        "events.out.tfevents.1#2",
    ]


def test_a_graph_that_is_gone_or_empty_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "saved_model.pb"
    file.write_bytes(written.saved_model(written.graph_def([written.node("Add")])))
    (place,) = find_graphs(str(tmp_path), {}).places
    assert place.name == "."
    file.write_bytes(bytes(place.position + place.size_bytes))
    with pytest.raises(TraceFormatError):
        read_place(place)
    file.unlink()
    with pytest.raises(ProfilerError):
        read_place(place)


def test_only_the_job_s_folder_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph_folder("/logs/train/plugins/profile/run") == "/logs/train"
    assert graph_folder("gs://bucket/train/plugins/profile/run/") == "gs://bucket/train"
    data = written.event_file(written.field(4, written.graph_def([written.node("Add")])))
    for folder in ("a", "a/b", "plugins/profile/run", "variables"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.tfevents.1").write_bytes(data)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert [place.name for place in find_graphs(str(tmp_path), {}).places] == [
        "a/x.tfevents.1",
        "a/b/x.tfevents.1",
    ]
    monkeypatch.setattr(graph_files, "MAX_FILES", 1)
    assert find_graphs(str(tmp_path), {}).is_cut


def test_urls_are_read_too(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    data = written.event_file(written.field(4, written.graph_def([written.node("Add", "s/add")])))
    with fsspec.open("memory://graphs/train/events.out.tfevents.1", "wb") as file:
        file.write(data)
    (place,) = find_graphs("memory://graphs", {}).places
    assert place.name == "train/events.out.tfevents.1"
    assert names(read_place(place)) == ["s/add"]
