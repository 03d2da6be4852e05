"""Files that are hostile by their numbers: thousands of planes, a million lines, JSON that is deep, long or
wide. A tenth of the sizes in docs/reliability.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.events.planes import lines_named, planes
from tb_tpuprof.analysis.ops.labels import of_metadata
from tb_tpuprof.analysis.ops.utilization import _core_of
from tb_tpuprof.errors import BadParameter, TraceFormatError
from tb_tpuprof.ingest.chrome.events import read_events
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.ingest.xspace.protobuf import decode_protobuf
from tb_tpuprof.serve.guard import MAX_BODY_BYTES, json_object
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.trace.schema import MAX_LINES
from tests.graph_files import field

MIB = 2**20
# Opens each file and prints how much memory that took at most, in KiB.
OPENED = """
import resource, sys
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.chrome import decoder
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        trace = open_trace(path)
        trace.source.event_stats(trace, trace.n_events - 1)
    except ProfilerError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def tpu_planes(n: int) -> bytes:
    """Planes of n TensorCores, each with steps and operations of its own."""
    space = xspace_class()()
    for i in range(n):
        plane = space.planes.add(id=i + 1, name=f"/device:TPU:{i}".encode())
        for key, name in enumerate(("1", "jit_f(3)", f"%fusion.{i} = f32[2]{{0}} fusion(%p)"), 1):
            plane.event_metadata.add(key=key, value={"id": key, "name": name.encode()})
        for key, name in enumerate((b"Steps", b"XLA Modules", b"XLA Ops"), 1):
            line = plane.lines.add(id=key, name=name, timestamp_ns=1000)
            for event in range(5):
                line.events.add(metadata_id=key, offset_ps=event * 2000 + i, duration_ps=1500)
    data: bytes = space.SerializeToString()
    return data


def many_lines(n: int) -> bytes:
    """A plane with n empty lines."""
    return field(1, field(2, b"/host:CPU") + field(3, field(2, b"t")) * n)


def test_pages_of_hundreds_of_planes_read_each_plane_by_itself(tmp_path: Path) -> None:
    (tmp_path / "h.xplane.pb").write_bytes(tpu_planes(400))
    session = Session(str(tmp_path), cache=False)
    trace = session.trace("h")
    cores = planes(trace).tensor_cores
    assert len(cores) == 400
    for core in (cores[0], cores[7], cores[399]):
        (line,) = lines_named(trace, core, ("XLA Ops",))
        first = int(trace.line_offsets[line])
        rows = np.arange(first, first + 5)
        labels = of_metadata(trace, rows)
        assert len(labels.framework_op) == 1, "not one for each plane of the trace"
        assert labels.of.tolist() == [0] * 5
    started = time.monotonic()
    for tool in ("overview_page", "trace_viewer", "pod_viewer"):
        assert get_tool(tool).run(session, None, {}).tables
    assert time.monotonic() - started < 20


def test_lines_of_a_plane_are_those_of_the_file() -> None:
    space = xspace_class()()
    for name, n_lines in ((b"a", 3), (b"b", 0), (b"c", 2)):
        plane = space.planes.add(name=name)
        for line in range(n_lines):
            plane.lines.add(id=line, name=name).events.add(metadata_id=1)
    data = np.frombuffer(space.SerializeToString(), np.uint8)
    trace = decode_protobuf(data, "", "h")
    assert [trace.lines_of([plane]).tolist() for plane in range(3)] == [[0, 1, 2], [], [3, 4]]
    assert trace.lines_of([2, 0]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "core"), [("TPU:1 SparseCore 0", 1), ("TPU:10 SC", 10), ("TPU:1", 99), ("TPU:12 SC", 99)]
)
def test_a_sparse_core_belongs_to_the_core_that_its_name_begins_with(name: str, core: int) -> None:
    assert _core_of(name, {"TPU:1": 1, "TPU:10": 10, "TPU": 100}, 99) == (1 if core == 1 else core)


def test_more_lines_than_a_profile_has_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "h.xplane.pb"
    data = many_lines(MAX_LINES + 1)
    path.write_bytes(data)
    started = time.monotonic()
    with pytest.raises(TraceFormatError, match="contains 100,001 lines, more than a profile has"):
        open_trace(str(path))
    assert time.monotonic() - started < 5
    with pytest.raises(TraceFormatError, match="100,001 lines"):
        decode_protobuf(np.frombuffer(data, np.uint8), str(path), "h")
    path.write_bytes(many_lines(MAX_LINES // 10))
    assert len(open_trace(str(path)).planes) == 1


@pytest.mark.parametrize("phase", ["X", "C"])
def test_more_threads_than_a_profile_has_are_refused(tmp_path: Path, phase: str) -> None:
    path = tmp_path / "h.trace.json"
    event = '{{"ph":"{1}","ts":{0},"dur":1,"pid":{0},"tid":{0},"name":"n","args":{{"a":1}}}}'
    path.write_text("[" + ",".join(event.format(i, phase) for i in range(MAX_LINES + 1)) + "]")
    with pytest.raises(TraceFormatError, match="contains 100,001 threads, more than a profile has"):
        open_trace(str(path))


def test_only_members_that_are_used_are_decoded() -> None:
    members = "".join(f',"k{i}":[{i}]' for i in range(1000))
    text = f'{{"traceEvents":[],"baseTimeNanoseconds":7,"distributedInfo":{{"rank":3}}{members}}}'
    raw = read_events(np.frombuffer(text.encode(), np.uint8), "")
    assert raw.members == {"baseTimeNanoseconds": 7, "distributedInfo": {"rank": 3}}


def bombs() -> Iterator[tuple[str, str]]:
    """(name, an event or more and what follows them) of a Chrome trace of at most 10 MB."""
    event = '{"ph":"X","ts":5,"dur":1,"pid":1,"tid":1,"name":"d","args":%s}'
    n = 10**6
    yield "deep", event % ("[" * 5 * n + "]" * 5 * n)
    yield "deep arguments", event % ('{"a":' * n + "1" + "}" * n)
    yield "long text", event.replace('"d"', '"' + "x" * 10 * n + '"') % "{}"
    yield "escapes", event.replace('"d"', json.dumps("\n" * 5 * n)) % "{}"
    yield "keys", event % json.dumps({f"k{i}": i for i in range(n // 10)})
    yield "huge number", event % ('{"External id":' + "9" * 2 * n + "}")
    yield "huge time", event.replace(":5,", ":" + "9" * 2 * n + ",") % "{}"
    yield "huge member", event % "{}" + '],"baseTimeNanoseconds":' + "9" * 2 * n + ',"more":[1'


def test_json_bombs_take_memory_in_proportion_to_their_size(tmp_path: Path) -> None:
    paths = []
    for name, text in bombs():
        paths.append(tmp_path / f"{name}.trace.json")
        paths[-1].write_text(f'{{"traceEvents":[{text}]}}')
    started = time.monotonic()
    command = [sys.executable, "-c", OPENED, *map(str, paths)]
    grown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert time.monotonic() - started < 30
    assert int(grown.stdout) * 1024 < 10 * max(path.stat().st_size for path in paths) + 200 * MIB


class Stream:
    """A request whose body has that many bytes or more."""

    mimetype = "application/json"

    def __init__(self, body: bytes) -> None:
        self.content_length = len(body)
        self.stream = self
        self.body = body

    def read(self, size: int) -> bytes:
        return self.body[:size]


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"a":' * 10_000, b'{"a":' + b"9" * 60_000 + b"}", b"[]"])
def test_json_bombs_in_a_request_are_refused_at_once(body: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(BadParameter):
        json_object(Stream(body))  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="Content-Length"):
        json_object(Stream(b" " * (MAX_BODY_BYTES + 1)))  # type: ignore[arg-type]
    assert time.monotonic() - started < 1
