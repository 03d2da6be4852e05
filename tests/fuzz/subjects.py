"""What is fuzzed: each subject takes a mutant's bytes, and ends normally or with an error of the package."""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from werkzeug.test import Client

from tb_tpuprof.analysis.memory.heap import functions, place_of_stack, places
from tb_tpuprof.analysis.memory.heap_growth import growth
from tb_tpuprof.analysis.memory.heap_history import contents, kept, levels
from tb_tpuprof.capture.download import CallFailed, Download
from tb_tpuprof.capture.headers import encoded
from tb_tpuprof.capture.messages import message_class
from tb_tpuprof.capture.reply import Malformed, read_reply
from tb_tpuprof.encode import encode_columns, encode_json
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.arguments import all_arguments
from tb_tpuprof.ingest.heap.pprof import read_pprof
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.ingest.opening import trace_of_bytes
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.trace.heap_history import Recording
from tests.ingest.heap_files import SAMPLES, pprof, torch_snapshot
from tests.ingest.other_files import OLD_TRACE
from tests.ingest.riegeli_files import CODECS, RiegeliFile, simple_data, transposed_data
from tests.ingest.saved_pages import PAGES
from tests.ingest.tables import mended_table, table_of
from tests.ingest.test_table_events import EVENTS, TABLE, described
from tests.ingest.torch_allocator import MIB, Allocator, snapshot_of, train
from tests.ingest.xspaces import small_xspace

ROOT = Path(__file__).resolve().parents[2]
_MOST_SEED_BYTES = 300_000
REFUSED, OPENED = "refused", "opened"


class Unclean(Exception):
    """A subject misbehaved without raising."""


@dataclass(frozen=True)
class Subject:
    """`run` returns REFUSED or OPENED, or raises what no caller expects. `cost`: relative time per mutant."""

    name: str
    seeds: Callable[[], tuple[bytes, ...]]
    run: Callable[[bytes], str]
    cost: int = 1


@cache
def folder() -> Path:
    """A folder of this process."""
    return Path(tempfile.mkdtemp(prefix="tpuprof_fuzz_"))


def remove_folder() -> None:
    """Remove the process's folder."""
    shutil.rmtree(folder(), ignore_errors=True)


@cache
def xspaces() -> tuple[bytes, ...]:
    """Profiles of the demo and of the tests; of larger ones, the planes but the largest."""
    files = sorted([*ROOT.glob("demo_logs/**/*.xplane.pb"), *ROOT.glob("tests/data/**/*.xplane.pb")])
    return (small_xspace(), *(_smaller(path.read_bytes()) for path in files))


def _smaller(data: bytes) -> bytes:
    """The XSpace with the first events of its lines, so that a mutant takes milliseconds."""
    from tb_tpuprof.ingest.xspace.messages import xspace_class

    space = xspace_class().FromString(data)
    most = 200
    while space.ByteSize() > _MOST_SEED_BYTES and most > 3:
        for plane in space.planes:
            for line in plane.lines:
                del line.events[most:]
        most //= 2
    for plane in space.planes:
        for entry in plane.event_metadata:
            del entry.value.stats[4:]
    return bytes(space.SerializeToString())


@cache
def chrome_files() -> tuple[bytes, ...]:
    """Chrome traces of the tests, and one of every kind of event."""
    files = [path for path in sorted(ROOT.glob("tests/data/**/*.json*")) if path.stat().st_size < 2**20]
    contents = [gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in files]
    events = ",".join(
        f'{{"ph":"{phase}","name":"e{i}","ts":{i * 3},"dur":{i},"pid":{i % 3},"tid":"t{i % 2}","id":{i % 4},'
        f'"cat":"c","bp":"e","args":{{"value":{i}.5,"shape":[{i},2],"name":"n\\u00e9"}}}}'
        for i, phase in enumerate("XBEbnesftCiIPNODMRcSTp" * 3)
    )
    return (f'{{"traceEvents":[{events}],"displayTimeUnit":"ns"}}'.encode(), *(c[:200_000] for c in contents))


def _decode(data: bytes) -> str:
    try:
        trace = trace_of_bytes(data, "h")
        for event in range(0, trace.n_events, 97):
            with suppress(ProfilerError):
                trace.source.event_stats(trace, event)
    except ProfilerError:
        return REFUSED
    return OPENED


def _open(data: bytes, name: str) -> str:
    path = folder() / name
    path.write_bytes(data)
    try:
        open_trace(str(path))
    except ProfilerError:
        return REFUSED
    return OPENED


@cache
def old_traces() -> tuple[bytes, ...]:
    """TensorFlow's Trace protobuf, plain."""
    return (OLD_TRACE,)


@cache
def tables() -> tuple[bytes, ...]:
    """A streaming trace viewer's table, packed and plain."""
    return TABLE, table_of([(b"/trace", described()), *EVENTS], False, 3)


def _open_old_trace(data: bytes) -> str:
    return _open_with_arguments(data, "h.trace")


def _open_table(data: bytes) -> str:
    """A mutant, and one whose blocks have the right checksums, so that the damage reaches what they
    contain.
    """
    outcome = _open_with_arguments(data, "h.SSTABLE")
    mended = _open_with_arguments(mended_table(data), "h2.SSTABLE")
    return OPENED if OPENED in (outcome, mended) else REFUSED


def _open_with_arguments(data: bytes, name: str) -> str:
    path = folder() / name
    path.write_bytes(data)
    try:
        trace = open_trace(str(path))
        for event in range(0, trace.n_events, 3):
            trace.source.event_stats(trace, event)
        for _ in all_arguments(trace):
            pass
    except ProfilerError:
        return REFUSED
    return OPENED


@cache
def saved_pages() -> tuple[bytes, ...]:
    """Finished pages of all kinds, each behind the name of its kind."""
    return tuple(name.encode() + b"\n" + data for name, data in PAGES.items())


def _open_page(data: bytes) -> str:
    """A page, if it is called that of any kind."""
    name, _, content = data.partition(b"\n")
    kind = name.decode("latin-1")
    path = folder() / "run_of_pages" / (kind if kind in PAGES else "h.overview_page.json")
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir()
    path.write_bytes(content)
    try:
        payload = get_tool("saved_pages").run(Session(str(path), cache=False), None, {})
        encode_json(payload)
        encode_columns(payload)
    except ProfilerError:
        return REFUSED
    return OPENED


@cache
def streams() -> tuple[bytes, ...]:
    """Streams of profile pieces."""
    return tuple(path.read_bytes() for path in sorted(ROOT.glob("tests/data/riegeli/*.riegeli")))


def _open_stream(data: bytes) -> str:
    return _open(data, "h.xplane.riegeli")


@cache
def chunks() -> tuple[bytes, ...]:
    """Data of chunks with two profiles, after the chunk's kind."""
    records = [small_xspace(), small_xspace()]
    made = [
        kind + make(records, codec)
        for codec in CODECS
        for kind, make in ((b"r", simple_data), (b"t", transposed_data))
    ]
    return tuple(made)


def _open_chunk(data: bytes) -> str:
    """A chunk with the right hashes, so that what is behind them is reached."""
    size = 2 * len(small_xspace())
    file = RiegeliFile().records([small_xspace()])
    file.chunk("t" if data[:1] == b"t" else "r", data[1:], 2, size)
    path = folder() / "chunk.xplane.riegeli"
    path.write_bytes(file.closed())
    trace = open_trace(str(path))  # the first piece is always there
    for event in range(0, trace.n_events, 97):
        trace.source.event_stats(trace, event)
    return REFUSED if trace.info.n_damaged else OPENED


@cache
def heaps() -> tuple[bytes, ...]:
    """Snapshots of memory, unpacked: pprof, and pickles of several protocols."""
    packed = sorted(ROOT.glob("tests/data/heap/*.prof"))
    profiles = [gzip.decompress(path.read_bytes()) for path in packed]
    recorded = Allocator(1, 8 * MIB)
    train(recorded, 5, 1)
    snapshots = (torch_snapshot(), snapshot_of([recorded], 60))
    pickles = [pickle.dumps(snapshot, protocol) for snapshot in snapshots for protocol in (2, 4)]
    return (pprof(SAMPLES), *profiles, *pickles)


def _heap(data: bytes) -> str:
    """Read as its first byte says, and grouped."""
    read = read_torch_snapshot if data.startswith(b"\x80") else read_pprof
    try:
        heap = read(data, "h")
    except ProfilerError:
        return REFUSED
    if int(places(heap).size_bytes.sum()) != int(heap.size_bytes.sum()):
        raise Unclean("places do not add up to the memory in use")
    functions(heap)
    growth(heap, heap)
    if heap.recording:
        _check_recording(heap.recording)
    return OPENED


def _check_recording(recording: Recording) -> None:
    """The contents at the peak of each device are at least the peak."""
    frames = place_of_stack(recording.stacks)
    for history in recording.devices:
        level = levels(history)
        shown = contents(history, level, level.peak)
        if int(shown.size_bytes.sum()) + shown.unknown_bytes < int(level.used_bytes[level.peak]):
            raise Unclean("what is in use at the peak is less than the peak")
        kept(history, level, frames)


def _open_json(data: bytes) -> str:
    return _open(data, "h.trace.json")


def _open_gzip(data: bytes) -> str:
    return _open(data, "h.xplane.pb.gz")


def _tools(data: bytes) -> str:
    """All pages of a run, encoded."""
    run = folder() / "run"
    run.mkdir(exist_ok=True)
    (run / "h.xplane.pb").write_bytes(data)
    try:
        session = Session(str(run), cache=False)
    except ProfilerError:
        return REFUSED
    outcome = REFUSED
    for tool in all_tools():
        try:
            payload = tool.run(session, session.hosts, {})
            encode_json(payload)
            encode_columns(payload)
            outcome = OPENED
        except ProfilerError:
            continue
    return outcome


def _reply(data: bytes) -> str:
    try:
        read_reply(data)
    except Malformed:
        return REFUSED
    return OPENED


@cache
def replies() -> tuple[bytes, ...]:
    """Replies of profiler servers."""
    response = message_class("ProfileResponse")(xspace=small_xspace())
    older = message_class("ProfileResponse")()
    older.tool_data.add(name=b"xplane.pb", data=small_xspace())
    return response.SerializeToString(), older.SerializeToString()


def _frame(kind: int, flags: int, payload: bytes, stream: int = 1) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@cache
def http2_replies() -> tuple[bytes, ...]:
    """Bytes that a gRPC server sends."""
    head = _frame(4, 0, b"", 0) + _frame(
        1, 4, encoded([(":status", "200"), ("content-type", "application/grpc")])
    )
    body = struct.pack(">BI", 0, 500) + b"x" * 500
    end = _frame(1, 5, encoded([("grpc-status", "0"), ("grpc-message", "fine")]))
    pings = _frame(6, 0, b"12345678", 0) + _frame(8, 0, b"\0\0\1\0", 0)
    short = struct.pack(">BI", 0, 5) + b"hello"
    return head + _frame(0, 0, body) + end, head + _frame(0, 8, b"\2" + short + b"\0\0") + pings + end


def _http2(data: bytes) -> str:
    ours, theirs = socket.socketpair()

    def write() -> None:
        with suppress(OSError):
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            while theirs.recv(65536):
                pass

    thread = threading.Thread(target=write)
    thread.start()
    try:
        Download(ours, 10_000, time.monotonic() + 2, 2.0, lambda received, size: None).fetch(
            "h:1", "/a", b"x"
        )
        return OPENED
    except CallFailed:
        return REFUSED
    finally:
        ours.close()
        thread.join(5)
        theirs.close()


@cache
def cache_files() -> tuple[bytes, ...]:
    """A file of the column cache."""
    path = folder() / "cached.xplane.pb"
    path.write_bytes(small_xspace())
    os.environ["TPUPROF_CACHE_DIR"] = str(folder() / "cache")
    column_cache.save(file_state(str(path)), open_trace(str(path)))
    (file,) = (folder() / "cache" / "columns").glob("*.tpc")
    return (file.read_bytes(),)


def _cache(data: bytes) -> str:
    """A damaged cache file never changes what is read."""
    (whole,) = cache_files()
    path = folder() / "cached.xplane.pb"
    state = file_state(str(path))
    file = column_cache._path(state)
    file.write_bytes(data)
    file.chmod(0o600)
    loaded = column_cache.load(state)
    if loaded is None:
        return REFUSED
    original = open_trace(str(path))
    if loaded.n_events != original.n_events or list(loaded.strings) != list(original.strings):
        raise Unclean(f"a cache file with {len(whole)} bytes was believed")
    return OPENED


@cache
def _apps() -> dict[str, Callable[..., object]]:
    return Routes(Logdirs.of(str(ROOT / "demo_logs"), ""), "profile").apps()


@cache
def requests() -> tuple[bytes, ...]:
    """Query strings of all kinds of requests."""
    run = "jax_train/python_traced"
    queries = [f"/tools?run={run}", "/runs?", f"/progress?run={run}", "/capture?"]
    session = Session(str(ROOT / "demo_logs" / "jax_train" / "plugins" / "profile" / "python_traced"))
    working = [tool for tool in all_tools() if tool.availability(session)]
    queries += [f"/data/{tool.name}?run={run}&hosts=worker-0&format=json" for tool in working]
    for tool in working:
        given = "&".join(f"{param.name}={param.default}" for param in tool.params)
        queries.append(f"/data/{tool.name}?run={run}&{given}")
    return tuple(query.encode() for query in queries)


def _request(data: bytes) -> str:
    """Any path and query: never an internal error, and nothing of the system's files."""
    route, _, query = data.decode("latin-1").partition("?")
    app = _apps().get(route) or _apps()["/data/*"]
    answer = Client(app).get("/" + quote(route.lstrip("/"), safe="/"), query_string=query)
    if answer.status_code >= 500 and answer.status_code not in (502, 507):
        raise Unclean(f"status {answer.status_code}: {answer.data[:200]!r}")
    if b"root:x:0" in answer.data:
        raise Unclean("a file outside of the log directory was read")
    return OPENED if answer.status_code == 200 else REFUSED


SUBJECTS = (
    Subject("xspace", xspaces, _decode),
    Subject("gzip", lambda: tuple(gzip.compress(data, 1) for data in xspaces()), _open_gzip),
    Subject("json", chrome_files, _open_json),
    Subject("old_trace", old_traces, _open_old_trace, cost=3),
    Subject("table", tables, _open_table, cost=5),
    Subject("pages", saved_pages, _open_page, cost=5),
    Subject("stream", streams, _open_stream, cost=2),
    Subject("chunk", chunks, _open_chunk),
    Subject("tools", xspaces, _tools, cost=60),
    Subject("reply", replies, _reply),
    Subject("http2", http2_replies, _http2),
    Subject("cache", cache_files, _cache),
    Subject("request", requests, _request, cost=5),
    Subject("heap", heaps, _heap),
)
