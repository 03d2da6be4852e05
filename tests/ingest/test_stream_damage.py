"""Streams that are cut off, damaged, empty or stored in a way that is not installed."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.riegeli.layout import file_layout
from tb_tpuprof.units import format_bytes, format_fraction
from tests.ingest.riegeli_files import BLOCK, CODECS, RiegeliFile
from tests.ingest.stream_files import THREE, notices, spaces_of_one_thread, stream, written


def test_a_file_without_its_end_says_how_much_was_read(tmp_path: Path) -> None:
    file, path = stream(*THREE), tmp_path / "host.xplane.riegeli"
    last = file.begins[3]
    path.write_bytes(bytes(file.out[: last + 60]))
    trace = open_trace(str(path))
    assert (trace.n_events, trace.info.n_damaged) == (3, 1)
    share = format_fraction(last / (last + 60))
    text = (
        "host: the end is missing: the file is cut off within a piece, of which it has 60 B; 2 whole pieces "
        f"before it, {share} of the file, were read. Numbers may be too low."
    )
    assert notices(path) == [text]
    empty = stream(THREE[0], b"", THREE[1], b"", THREE[2])  # a record without bytes is no piece
    path.write_bytes(bytes(empty.out[: empty.begins[5] + 60]))
    assert "2 whole pieces before it" in notices(path)[0]
    path.write_bytes(bytes(file.out[: file.begins[2] + 9]))
    assert "1 whole piece before it" in notices(path)[0]
    path.write_bytes(file.closed())
    assert notices(path) == []


def test_a_file_that_was_not_closed_says_so(tmp_path: Path) -> None:
    """All chunks are whole, but the padding that ends every finished file is not there."""
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(bytes(stream(*THREE).out))
    trace = open_trace(str(path))
    assert trace.n_events == 4
    assert trace.info.n_damaged == 0
    assert [note for note in trace.info.notes if "was not closed" in note]


def test_a_damaged_piece_is_left_out_and_told(tmp_path: Path) -> None:
    file, path = stream(*THREE), tmp_path / "host.xplane.riegeli"
    data = bytearray(file.closed())
    data[file.begins[2] + 50] ^= 0x55
    path.write_bytes(data)
    trace = open_trace(str(path))
    assert trace.n_events == 2
    assert [trace.strings.get(i) for i in trace.metadata["name"].tolist()] == ["a", "c", "(unknown event)"]
    assert "is damaged and left out: its bytes are not those that were written" in notices(path)[0]
    data[file.begins[2] + 50] ^= 0x55
    data[file.begins[2] + 3] ^= 0x55  # the header: whatever follows in the same block is lost, too
    path.write_bytes(data)
    assert open_trace(str(path)).n_events == 1
    assert "of the file are left out: the headers there are damaged" in notices(path)[0]


def test_a_piece_that_is_no_whole_space_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(stream(THREE[0], THREE[1][:-5], b"hello", THREE[2]).closed())
    trace = open_trace(str(path))
    assert trace.n_events == 2
    assert trace.info.n_damaged == 2
    assert "2 damaged parts were skipped (first: a piece of" in notices(path)[0]


def test_pieces_that_are_stored_in_an_unknown_way_are_counted(tmp_path: Path) -> None:
    """Two of them among three that are read; the notice describes the first one's damage."""
    path = tmp_path / "host.xplane.riegeli"
    file = stream(THREE[0]).chunk("y", b"later kind", 2, 9).chunk("y", b"later kind", 1, 4)
    path.write_bytes(file.records([THREE[1]]).records([THREE[2]]).closed())
    trace = open_trace(str(path))
    assert (trace.n_events, trace.info.n_damaged) == (4, 2)
    assert trace.info.damage == "a piece is stored in a way that this version cannot read"


def test_stretches_that_are_lost_are_counted(tmp_path: Path) -> None:
    """Each damaged header costs one stretch; the notice states the sum of their bytes."""
    big = spaces_of_one_thread([(i, 1, f"name {i}") for i in range(4000)])[0]
    file, path = RiegeliFile(), tmp_path / "host.xplane.riegeli"
    for record in (THREE[0], big, THREE[1], big, THREE[2]):
        file.records([record], CODECS[0])
    data = bytearray(file.closed())
    for number in (2, 4):
        data[file.begins[number] + 3] ^= 0x55
    path.write_bytes(data)
    trace = open_trace(str(path))
    lost = file_layout(lambda a, n: np.frombuffer(bytes(data), np.uint8)[a : a + n], len(data))
    assert (lost.n_lost, trace.info.n_damaged) == (2, 2)
    assert trace.info.damage.startswith(
        f"{format_bytes(lost.lost_bytes)} of the file are left out: the headers"
    )


def test_records_that_are_no_profiles(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(stream(b"hello", b"\x08\x01").closed())
    with pytest.raises(NotATrace, match="a Riegeli file, but its records are not profiles"):
        open_trace(str(path))
    path.write_bytes(stream(b"hello", THREE[0][:-5]).closed())
    with pytest.raises(TraceFormatError, match=r"has no piece that can be read: a piece of 5 B is left out"):
        open_trace(str(path))


def test_a_file_without_pieces_has_no_events(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(stream().closed())
    trace = open_trace(str(path))
    assert (trace.n_events, len(trace.planes), trace.info.n_damaged) == (0, 0, 0)
    path.write_bytes(b"")
    with pytest.raises(TraceFormatError, match="is empty"):
        open_trace(str(path))


def test_a_file_whose_first_headers_are_damaged_is_known_by_its_name(tmp_path: Path) -> None:
    data = bytearray(RiegeliFile().chunk("p", bytes(BLOCK - 64 - 40), 0, 0).records([THREE[0]]).closed())
    data[:64] = bytes(64)
    for name, kind in (("host.xplane.riegeli", None), ("host.xplane.pb", NotATrace)):
        path = tmp_path / name
        path.write_bytes(data)
        if kind:
            with pytest.raises(kind):
                open_trace(str(path))
        else:
            assert open_trace(str(path)).n_events == 1


def test_the_content_decides_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.riegeli"
    path.write_bytes(THREE[1])
    assert open_trace(str(path)).n_events == 2
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(stream(*THREE).closed())
    assert open_trace(str(path)).n_events == 4
    path.write_bytes(gzip.compress(stream(*THREE).closed()))
    with pytest.raises(NotATrace, match="gzipped stream of profile pieces"):
        open_trace(str(path))


@pytest.mark.parametrize(
    ("codec", "module", "name", "package"),
    [(98, "brotli", "Brotli", "brotli"), (122, "cramjam", "Zstandard", "tb-tpuprof[riegeli]")],
)
def test_a_missing_codec_names_the_file_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: int, module: str, name: str, package: str
) -> None:
    path = written(THREE, tmp_path, codec)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TraceFormatError) as caught:
        open_trace(str(path))
    assert caught.value.message == (
        f"host.xplane.riegeli is compressed with {name}, for which a package is missing."
    )
    assert caught.value.remedy == f'Run: pip install "{package}"'
