"""A file read in part holds what the whole file holds, damaged or not, and an outline leaves unread what it
has no use for.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest import opening
from tb_tpuprof.ingest.storage.files import read_file
from tb_tpuprof.ingest.xspace import lines, outline_bytes
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.trace.hlo_programs import Program
from tb_tpuprof.trace.trace import Trace
from tests.ingest.hlo_protos import small_proto
from tests.ingest.xspaces import content
from tests.synthetic import PlaneWriter, write_run

Bytes = npt.NDArray[np.uint8]
HLO = small_proto()
WINDOW = 64
POISON = 0xFF  # an endless varint wherever a hole is looked at


def space() -> bytes:
    """Programs of all sizes around the window, a long name, planes of many events and long lines, and stats
    behind the large ones.
    """
    made = xspace_class()()
    host = PlaneWriter(made, "/host:metadata")
    for i, text in enumerate(("", "x" * 10, "y" * 1000)):
        host.metadata(
            f"jit_{i}({i})",
            {
                "Hlo Proto": HLO + b"\x7a" + bytes([len(text) & 0x7F]) + text[: len(text) & 0x7F].encode(),
                "after": "z" * 10 * i,
            },
        )
    host.stats(host.plane, {"long": "w" * 300})
    for core in range(3):
        plane = PlaneWriter(made, f"/device:TPU:{core}")
        plane.stats(plane.plane, {"device_type_string": "TPU v5 lite", "blob": b"b" * 500})
        line = plane.line("XLA Ops", 1, 1)
        for i in range(300):
            plane.metadata(f"op.{i}", {"flops": i}, "d" * (i % 90))
            plane.event(line, f"op.{i}", i * 10, 5)
    made.hostnames.append(b"h" * 200)
    return bytes(made.SerializeToString())


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> list[Bytes]:
    """From now on files are read in small windows, with poison in the holes; what was read."""
    monkeypatch.setattr(outline_bytes, "LARGE_BYTES", 0)
    monkeypatch.setattr(outline_bytes, "WINDOW_BYTES", WINDOW)
    monkeypatch.setattr(outline_bytes, "new_bytes", lambda n: np.full(n, POISON, np.uint8))
    found: list[Bytes] = []

    def read(path: str, is_outline: bool) -> outline_bytes.PartialFile:
        file = outline_bytes.PartialFile(path, is_outline)
        found.append(file.data)
        return file

    monkeypatch.setattr(opening, "PartialFile", read)
    return found


def says(path: Path) -> object:
    """The outline in words, or the error."""
    try:
        trace = opening.open_trace(str(path), is_outline=True)
    except TraceFormatError as error:
        return str(error)
    programs = [(program, _size(trace, program)) for program in trace.programs]
    keys = ("flops", "Hlo Proto", "long", "blob", "after")
    stats = [
        [(key, part.ints(key).value.tolist(), part.spans(key)) for key in keys]
        for part in (trace.metadata_stats, trace.plane_stats)
    ]
    return (
        trace.info,
        trace.plane_names,
        programs,
        stats,
        [trace.strings.get(i) for i in trace.metadata["name"].tolist()],
    )


def holds(path: Path) -> object:
    """All that the trace holds, or the error."""
    try:
        return content(opening.open_trace(str(path)))
    except TraceFormatError as error:
        return str(error)


def _size(trace: Trace, program: Program) -> int | str:
    try:
        module = trace.programs.module(program)
    except TraceFormatError as error:
        return str(error)
    return module.n_instructions if module else -1


def test_it_says_what_one_of_the_whole_file_says(
    tmp_path: Path, in_parts: list[Bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path / "run", {"h": space()}) / "h.xplane.pb"
    part = says(path)
    with monkeypatch.context() as patch:
        patch.setattr(opening, "reads_in_part", lambda state: False)
        whole = says(path)
    assert len(in_parts) == 1
    assert part == whole
    assert isinstance(whole, tuple)
    assert [size for _, size in whole[2]] == [whole[2][0][1]] * 3
    assert (in_parts[0] == read_file(str(path))[0]).mean() < 0.9  # lines and programs were not read


@pytest.mark.slow
def test_damage_is_found_where_it_is(
    tmp_path: Path, in_parts: list[Bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PIECE_BYTES", WINDOW)
    chance, whole_file = random.Random(1), space()
    for k in range(150):
        data = bytearray(whole_file[: chance.randrange(1, len(whole_file))] if k % 3 == 0 else whole_file)
        for _ in range(k % 3):
            data[chance.randrange(1, 4000 if k % 2 else len(data))] = chance.randrange(256)
        path = write_run(tmp_path / str(k), {"h": bytes(data)}) / "h.xplane.pb"
        part, held = says(path), holds(path)
        with monkeypatch.context() as patch:
            patch.setattr(opening, "reads_in_part", lambda state: False)
            assert part == says(path), k
            assert held == holds(path), k
    assert len(in_parts) > 200
