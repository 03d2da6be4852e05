"""Snapshots of memory: what is in them, found as runs, and what is refused."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import NotATrace, ProfilerError, TraceFormatError
from tb_tpuprof.ingest.heap import pprof as pprof_module
from tb_tpuprof.ingest.heap import snapshot as snapshot_module
from tb_tpuprof.ingest.heap import torch_snapshot as torch_module
from tb_tpuprof.ingest.heap.pprof import read_pprof
from tb_tpuprof.ingest.heap.snapshot import read_heap
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.ingest.storage.file_names import host_of
from tb_tpuprof.ingest.storage.runs import find_runs, open_run
from tb_tpuprof.session import Session
from tb_tpuprof.trace.heap import Heap, Pool
from tests.ingest.heap_files import (
    LIBRARY,
    LOAD,
    MAIN,
    SAMPLES,
    STEP,
    Sample,
    pprof,
    torch_frames,
    torch_snapshot,
)
from tests.ingest.xspaces import small_xspace
from tests.synthetic import field

Row = tuple[str, str, tuple[tuple[str, str, int], ...], int, int]


def rows(heap: Heap) -> list[Row]:
    """The rows of a heap: device, kind, stack, blocks, bytes."""
    stacks = heap.stacks
    frames = list(zip(stacks.function, stacks.file, stacks.line.tolist(), strict=True))
    return [
        (
            heap.devices[heap.device[i]],
            heap.kinds[heap.kind[i]],
            tuple(
                frames[frame]
                for frame in stacks.frames[stacks.first[heap.stack[i]] : stacks.first[heap.stack[i] + 1]]
            ),
            int(heap.n_blocks[i]),
            int(heap.size_bytes[i]),
        )
        for i in range(len(heap.stack))
    ]


def test_a_profile_of_jax() -> None:
    heap = read_pprof(pprof(SAMPLES), "memory.prof")
    assert heap.maker == "JAX"
    assert rows(heap) == [
        ("TFRT_CPU_0", "buffer", (LIBRARY, STEP, MAIN), 3, 600),
        ("TFRT_CPU_0", "executable", (STEP, MAIN), 2, 100),
        ("TFRT_CPU_1", "buffer", (LOAD, MAIN), 1, 5000),
        ("TFRT_CPU_0", "buffer", (), 4, 300),
    ]
    assert heap.pools == ()
    assert heap.kept_bytes > 0


def test_samples_of_one_stack_are_one_row() -> None:
    samples = [
        Sample((STEP,), 1, 10),
        Sample((LOAD,), 1, 20),
        Sample((STEP,), 2, 5),
        Sample((STEP,), 1, 7, "executable"),
    ]
    assert rows(read_pprof(pprof(samples), "p")) == [
        ("TFRT_CPU_0", "buffer", (STEP,), 3, 15),
        ("TFRT_CPU_0", "buffer", (LOAD,), 1, 20),
        ("TFRT_CPU_0", "executable", (STEP,), 1, 7),
    ]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((("space", "bytes"),), (1, 600)),
        ((("a", "count"), ("alloc_space", "bytes"), ("n", "count"), ("inuse_space", "bytes")), (3, 600)),
        ((("a", "bytes"), ("b", "bytes"), ("cpu", "nanoseconds")), (1, 600)),
    ],
)
def test_other_sample_types(types: tuple[tuple[str, str], ...], expected: tuple[int, int]) -> None:
    heap = read_pprof(pprof([Sample((STEP,), 3, 600, "", "")], types), "p")
    assert (heap.maker, rows(heap)) == ("", [("", "", (STEP,), *expected)])


def test_of_several_sizes_that_in_use_counts() -> None:
    values = b"".join(bytes([value]) for value in (1, 50, 2, 7))
    texts = [b"", b"alloc_space", b"bytes", b"inuse_space", b"count", b"n"]
    types = [(5, 4), (1, 2), (5, 4), (3, 2)]
    data = b"".join(field(1, field(1, name) + field(2, unit)) for name, unit in types)
    data += field(2, field(2, values)) + b"".join(field(6, text) for text in texts)
    assert rows(read_pprof(data, "p")) == [("", "", (), 2, 7)]


def test_profiles_of_other_things_are_named() -> None:
    with pytest.raises(NotATrace, match=r"x\.pprof is a pprof profile of samples, cpu, not of memory"):
        read_pprof(pprof([Sample((STEP,), 1, 1)], (("samples", "count"), ("cpu", "nanoseconds"))), "x.pprof")
    with pytest.raises(NotATrace, match="a pprof profile of nothing"):
        read_pprof(b"", "x.pprof")
    with pytest.raises(TraceFormatError, match="is damaged") as caught:
        read_pprof(b"\x0a\xff", "x.pprof")
    assert caught.value.offset == -1
    with pytest.raises(NotATrace, match=r"is a pprof profile of c{100}, not of memory"):
        read_pprof(pprof([Sample((STEP,), 1, 1)], (("c" * 101, "nanoseconds"),)), "x.pprof")


def test_hostile_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = field(1, field(1, 99) + field(2, 1)) + field(1, field(2, 1)) + field(6, b"") + field(6, b"bytes")
    beyond += field(2, field(1, 77) + field(2, 2**64 - 1) + field(2, 2**63 - 1)) + field(2, b"")
    beyond += field(4, field(1, 77) + field(4, field(1, 5) + field(2, 2**64 - 3)))
    assert rows(read_pprof(beyond, "p")) == [("", "", (("", "", 0),), 1, 2**62)]
    monkeypatch.setattr(pprof_module, "MAX_SAMPLES", 4)
    assert len(rows(read_pprof(pprof(SAMPLES), "p"))) == 4
    monkeypatch.setattr(pprof_module, "MAX_SAMPLES", 3)
    with pytest.raises(TraceFormatError, match="more than 3 samples"):
        read_pprof(pprof(SAMPLES), "p")


def test_frames_of_profiles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pprof_module, "MAX_FRAMES", 7)
    assert len(rows(read_pprof(pprof(SAMPLES), "p"))) == 4
    monkeypatch.setattr(pprof_module, "MAX_FRAMES", 6)
    with pytest.raises(TraceFormatError, match="more than 6 stack frames"):
        read_pprof(pprof(SAMPLES), "p")


def test_a_snapshot_of_pytorch() -> None:
    for protocol in (2, 4, 5):
        heap = read_torch_snapshot(pickle.dumps(torch_snapshot(), protocol), "p")
        step = (
            ("empty", "??", 0),
            ("forward", "/venv/site-packages/torch/nn/modules/linear.py", 5),
            STEP,
            MAIN,
        )
        assert heap.maker == "PyTorch"
        assert rows(heap) == [
            ("GPU 0", "allocated", step, 2, 1536),
            ("GPU 1", "freed, in use by a stream", (LOAD, MAIN), 1, 2048),
        ]
        assert heap.pools == (Pool("GPU 0", 2048, 1536, 1500, 512), Pool("GPU 1", 6144, 2048, 2047, 4096))


def test_older_snapshots_have_their_frames_in_the_history() -> None:
    old = {
        "segments": [
            {
                "device": 0,
                "total_size": 8,
                "blocks": [
                    {
                        "size": 8,
                        "state": "active_allocated",
                        "history": [{"addr": 1, "frames": torch_frames(STEP)}, {}],
                    },
                    {"size": 4, "state": "active_allocated"},
                    {"size": 2, "state": "active_allocated", "history": 5},
                ],
            }
        ]
    }
    heap = read_torch_snapshot(pickle.dumps(old), "p")
    assert rows(heap) == [("GPU 0", "allocated", (STEP,), 1, 8), ("GPU 0", "allocated", (), 2, 6)]
    assert heap.pools == (Pool("GPU 0", 8, 14, 14, 0),)


def test_pickles_of_other_things() -> None:
    for other in ([1], {"segments": 5}, {"a": 1}, None):
        with pytest.raises(NotATrace, match=r"x_snapshot\.pickle is a Python pickle, but not PyTorch's"):
            read_torch_snapshot(pickle.dumps(other), "x_snapshot.pickle")
    with pytest.raises(NotATrace, match="holds more than plain data"):
        read_torch_snapshot(pickle.dumps({"segments": [dict]}), "x")
    with pytest.raises(TraceFormatError, match="x is cut off"):
        read_torch_snapshot(pickle.dumps(torch_snapshot())[:-1], "x")


def test_hostile_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {
        "segments": [
            None,
            {
                "device": "x",
                "blocks": [
                    None,
                    {"size": -5, "state": "active_allocated", "frames": [None, {"name": 5, "line": "x"}]},
                    {"size": 1, "state": None},
                    {"size": True, "state": "new state"},
                ],
            },
        ]
    }
    assert rows(read_torch_snapshot(pickle.dumps(odd), "p")) == [
        ("GPU 0", "allocated", (("", "", 0),), 1, 0),
        ("GPU 0", "new state", (), 1, 0),
    ]
    assert rows(read_torch_snapshot(pickle.dumps({"segments": []}), "p")) == []
    monkeypatch.setattr(torch_module, "MAX_BLOCKS", 5)
    assert len(rows(read_torch_snapshot(pickle.dumps(torch_snapshot()), "p"))) == 2
    monkeypatch.setattr(torch_module, "MAX_BLOCKS", 4)
    with pytest.raises(TraceFormatError, match="more than 4 blocks"):
        read_torch_snapshot(pickle.dumps(torch_snapshot()), "p")


def test_shared_segments_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of references is short in the file, and would be long to walk."""
    monkeypatch.setattr(torch_module, "MAX_BLOCKS", 1000)
    blocks = [{"size": 1, "state": "active_allocated", "frames": []}] * 100
    data = pickle.dumps({"segments": [{"device": 0, "blocks": blocks}] * 100})
    assert len(data) < 1000
    with pytest.raises(TraceFormatError, match="more than 1,000 blocks"):
        read_torch_snapshot(data, "p")


def test_frames_of_snapshots_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_module, "MAX_FRAMES", 6)
    assert len(rows(read_torch_snapshot(pickle.dumps(torch_snapshot()), "p"))) == 2
    monkeypatch.setattr(torch_module, "MAX_FRAMES", 5)
    with pytest.raises(TraceFormatError, match="more than 5 stack frames"):
        read_torch_snapshot(pickle.dumps(torch_snapshot()), "p")


WRITERS: dict[str, Callable[[], bytes]] = {
    "memory.prof": lambda: gzip.compress(pprof(SAMPLES)),
    "plain.pprof": lambda: pprof(SAMPLES),
    "packed.pprof.gz": lambda: gzip.compress(pprof(SAMPLES)),
    "step_snapshot.pickle": lambda: pickle.dumps(torch_snapshot()),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.items())
def test_files_by_name(tmp_path: Path, name: str, write: Callable[[], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(write())
    expected = 6000 if "snapshot" not in name else 3584
    assert int(read_heap(str(path)).size_bytes.sum()) == expected
    session = Session(str(path), cache=False)
    assert session.info.state == "memory"
    (host,) = session.hosts
    trace = session.trace(host)
    assert trace.heap is not None
    assert int(trace.heap.size_bytes.sum()) == expected
    assert trace.n_events == 0
    assert trace.kept_bytes > trace.heap.kept_bytes


def test_hosts_are_named_after_files() -> None:
    names = ("memory.prof", "a.memory.prof", "x.pprof", "x.y.pprof.gz", "step_snapshot.pickle", ".pprof")
    assert [host_of(name) for name in names] == [
        "memory",
        "a.memory",
        "x",
        "x.y",
        "step_snapshot",
        "(no name)",
    ]


def test_runs_of_snapshots(tmp_path: Path) -> None:
    job = tmp_path / "logs" / "job"
    job.mkdir(parents=True)
    for name, write in WRITERS.items():
        (job / name).write_bytes(write())
    (job / "weights.pickle").write_bytes(b"x")
    trace = tmp_path / "logs" / "plugins" / "profile" / "run"
    trace.mkdir(parents=True)
    (trace / "h.xplane.pb").write_bytes(small_xspace())
    (trace / "memory.prof").write_bytes(b"is not shown: the run has a trace")
    found = {run.name: run for run in find_runs(str(tmp_path / "logs"))}
    assert set(found) == {"job", "run"}
    assert [file.host for file in found["job"].files] == ["memory", "packed", "plain", "step_snapshot"]
    assert (found["job"].state, found["run"].state) == ("memory", "ok")
    assert "no trace" in found["job"].message
    assert [file.host for file in found["run"].files] == ["h"]
    assert open_run(str(job)).files == found["job"].files


def test_a_log_directory_with_a_snapshot_at_its_top(tmp_path: Path) -> None:
    (tmp_path / "memory.prof").write_bytes(WRITERS["memory.prof"]())
    (run,) = find_runs(str(tmp_path))
    assert (run.name, run.state) == (tmp_path.name, "memory")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("memory.prof", b"", "is empty"),
        ("memory.prof", b"\x1f\x8bx", "memory.prof"),
        ("memory.prof", b"\xff" * 50, "damaged"),
        ("x_snapshot.pickle", b"\x80\x04", "cut off"),
        ("x_snapshot.pickle", pickle.dumps([]), "not PyTorch's memory snapshot"),
    ],
)
def test_bad_files_say_why(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ProfilerError, match=words) as caught:
        read_heap(str(path))
    assert name in caught.value.message
    assert caught.value.remedy


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pprof"
    path.write_bytes(pprof(SAMPLES))
    size = path.stat().st_size
    monkeypatch.setattr(snapshot_module, "MAX_BYTES", size)
    assert len(read_heap(str(path)).stack) == 4
    monkeypatch.setattr(snapshot_module, "MAX_BYTES", size - 1)
    with pytest.raises(TraceFormatError, match=f"has {size:,} bytes, more than the {size - 1:,}") as caught:
        read_heap(str(path))
    assert caught.value.offset == -1
    monkeypatch.setattr(snapshot_module, "MAX_BYTES", 2**30)
    monkeypatch.setattr(snapshot_module, "machine_memory", lambda: 16 * size)
    assert len(read_heap(str(path)).stack) == 4
    monkeypatch.setattr(snapshot_module, "machine_memory", lambda: 16 * size - 1)
    with pytest.raises(TraceFormatError, match=f"more than the {size - 1:,} that can be read"):
        read_heap(str(path))
    path.write_bytes(b"")
    with pytest.raises(TraceFormatError, match="is empty") as caught:
        read_heap(str(path))
    assert caught.value.offset == 0


def test_an_unreadable_snapshot_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.pprof").write_bytes(pprof(SAMPLES))
    (tmp_path / "b.pprof").write_bytes(b"\xff")
    session = Session(str(tmp_path), cache=False)
    assert session.trace("a").heap is not None
    with pytest.raises(TraceFormatError):
        session.trace("b")
    assert np.array_equal(session.trace("a").heap.n_blocks, [3, 2, 1, 4])  # type: ignore[union-attr]
