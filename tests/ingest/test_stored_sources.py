"""What is read after opening, from streams and tables: records around a position, arguments by number; and
what names of files say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.storage import riegeli_source
from tb_tpuprof.ingest.storage.file_names import host_of, is_trace, makes_a_run, rank_of, written_ns
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.ingest.storage.riegeli_source import RiegeliSource
from tb_tpuprof.ingest.storage.table_source import arguments_of, raw_data_of
from tests.ingest.messages import Fixed, written
from tests.ingest.riegeli_files import NONE, RiegeliFile

# Two chunks of three records each, one of them empty, and a last one alone.
CHUNKS = [[b"first", b"", b"second one"], [b"x", b"yy", b"zzz"], [b"the last record"]]


def source(folder: Path, damaged: bool = False) -> RiegeliSource:
    file = RiegeliFile()
    for records in CHUNKS:
        file.records(records, NONE)
    data = bytearray(file.closed())
    if damaged:
        data[data.index(b"yy")] ^= 1
    path = folder / "h.xplane.riegeli"
    path.write_bytes(data)
    return RiegeliSource(file_state(str(path)))


def test_records_around_every_position(tmp_path: Path) -> None:
    """Reading ends with the record, even if more is requested."""
    read = source(tmp_path)
    position = 0
    for record in (record for records in CHUNKS for record in records):
        for within in range(len(record)):
            assert read.read(position + within, 100) == record[within:]
            assert read.read(position + within, 1) == record[within : within + 1]
        position += len(record)
    for beyond in (position, position + 50, -1):
        with pytest.raises(
            TraceFormatError, match=rf"^h\.xplane\.riegeli has no record at {beyond}\."
        ) as caught:
            read.read(beyond, 1)
        assert caught.value.offset == -1


def test_a_damaged_piece_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    read = source(tmp_path, damaged=True)
    assert read.read(0, 5) == b"first"
    assert read.read(21, 3) == b"the"
    with pytest.raises(
        TraceFormatError, match=r"has a piece that cannot be read \(its bytes are not those"
    ) as caught:
        read.read(16, 2)
    assert caught.value.offset > 64


@pytest.mark.parametrize(("kept_bytes", "n_unpacked"), [(15, [1, 1, 2, 2, 3]), (14, [1, 2, 3, 3, 4])])
def test_the_last_piece_is_kept_up_to_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int, n_unpacked: list[int]
) -> None:
    """The first has 15 bytes, the second 6, the third 15."""
    calls: list[int] = []
    own = riegeli_source.chunk_records

    def counted(*arguments: Any) -> Any:
        calls.append(arguments[1].begin)
        return own(*arguments)

    monkeypatch.setattr(riegeli_source, "chunk_records", counted)
    monkeypatch.setattr(riegeli_source, "_KEPT_BYTES", kept_bytes)
    read = source(tmp_path)
    for position, n in zip((0, 5, 15, 16, 21), n_unpacked, strict=True):
        read.read(position, 1)
        assert len(calls) == n, position


def test_arguments_by_the_fields_of_their_values() -> None:
    """Texts, whole numbers with and without sign, doubles, numbers of texts; the last value counts."""
    texts = {7: "seven", 2**63 + 1: "large"}
    listed = [
        ((1, "text"), (2, "x")),
        ((1, "unsigned"), (3, 2**64 - 1)),
        ((1, "signed"), (5, 2**64 - 3)),
        ((1, "positive"), (5, 2**63 - 1)),
        ((1, "real"), (4, -2.5)),
        ((1, "named"), (6, Fixed(7))),
        ((1, "named large"), (6, Fixed(2**63 + 1))),
        ((1, "unknown text"), (6, Fixed(8))),
        ((1, "unknown kind"), (9, 5)),
        ((1, "twice"), (3, 1), (2, "last")),
        ((2, "without a name"),),
        ((1, "empty"), (2, "")),
        ((1, "text"), (3, 4)),
    ]
    raw_data = written((2, written(*((1, written(*one)) for one in listed), (3, 9))), (1, b"other"))
    message = written((3, "event"), (5, 2**64 - 2), (8, b"earlier"), (8, raw_data), (1, 4))
    assert raw_data_of(message) == raw_data
    assert raw_data_of(written((8, 5), (1, b"x"))) == b""
    found = arguments_of(message, raw_data_of(message), texts.get)
    assert list(found.items()) == [
        ("group_id", -2),
        ("text", 4),
        ("unsigned", 2**64 - 1),
        ("signed", -3),
        ("positive", 2**63 - 1),
        ("real", -2.5),
        ("named", "seven"),
        ("named large", "large"),
        ("twice", "last"),
        ("empty", ""),
    ]
    assert arguments_of(written((5, 2**63 - 1)), b"", texts.get) == {"group_id": 2**63 - 1}
    assert arguments_of(written((5, 2**63)), b"", texts.get) == {"group_id": -(2**63)}
    assert arguments_of(written((5, b"x")), b"", texts.get) == {}


@pytest.mark.parametrize(
    ("name", "host", "rank", "trace", "run"),
    [
        ("h.xplane.pb", "h", 0, True, True),
        ("h.xspace.pb.gz", "h", 0, True, True),
        ("h.xplane.riegeli", "h", 0, True, True),
        ("h_12.1700000000123.pt.trace.json", "h_12", 1, True, True),
        ("h_12.123456789.pt.trace.json.gz", "h_12.123456789", 1, True, True),
        ("h.trace.json.gz", "h", 2, True, True),
        ("h.1700000000123.trace.json", "h.1700000000123", 2, True, True),
        ("h.json", "h", 2, False, False),
        ("h.trace", "h", 3, True, False),
        ("h.pftrace", "h", 4, True, True),
        ("h.perfetto-trace.gz", "h", 4, True, True),
        ("h.SSTABLE", "h", 5, True, True),
        ("h.tracetable", "h", 5, True, True),
        ("h.metadata.SSTABLE", "h.metadata", 5, False, False),
        ("h.trie.SSTABLE", "h.trie", 5, False, False),
        ("memory.prof", "memory", 5, False, True),
        ("h.overview_page.json", "h", 2, False, False),
        ("jit_f.hlo_proto.pb", "(no host)", 5, False, False),
        (".xplane.pb", "(no name)", 0, True, True),
    ],
)
def test_what_a_file_s_name_says(name: str, host: str, rank: int, trace: bool, run: bool) -> None:
    assert (host_of(f"/runs/x.y/{name}"), rank_of(name)) == (host, rank)
    assert (is_trace(name), makes_a_run(name)) == (trace, run)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("w.1700000000123.pt.trace.json", 1_700_000_000_123 * 10**6),
        ("w.1700000000123456789.pt.trace.json.gz", 1_700_000_000_123_456_789),
        ("w.17000000001234.pt.trace.json", 0),
        ("w.1700000000.pt.trace.json", 0),
        ("w.pt.trace.json", 0),
        ("w.1700000000123.trace.json", 0),
    ],
)
def test_times_in_pytorch_s_names(name: str, expected: int) -> None:
    assert written_ns(name) == expected


def test_entries_of_a_source_are_bytes_of_their_own(tmp_path: Path) -> None:
    block = source(tmp_path).block(15, 2)
    assert isinstance(block, np.ndarray)
    assert block.tobytes() == b"x"
