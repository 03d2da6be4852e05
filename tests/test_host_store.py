"""One host of a session: a file that changes drops all that is known of it at once; which cache a result
comes from.
"""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.ingest.storage.run_info import HostFile
from tb_tpuprof.parallel.progress import ProgressTracker
from tb_tpuprof.session import host_store
from tb_tpuprof.session.host_store import HostStore, RunContext
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.trace_memory import TraceMemory
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing
from tests.ingest.xspaces import small_xspace

GOOD, LONGER, BAD = small_xspace(), small_xspace() * 2, b"\xff" * 100


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host's file, and a cache folder that nobody else uses."""
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    return rewrite(tmp_path / "h.xplane.pb", GOOD)


def rewrite(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def store_of(path: Path, uses_cache: bool = False, traces: TraceMemory | None = None) -> HostStore:
    """A host's store, of a run whose pages use `hardware` and `planes` in common."""
    size = path.stat().st_size
    context = RunContext(
        uses_cache, (hardware, planes), traces or TraceMemory(Memory(2**30)), ProgressTracker()
    )
    return HostStore(HostFile("h", str(path), size, 0), context)


class Counter:
    """An analysis that counts its calls."""

    def __init__(self) -> None:
        self.traces: list[str] = []

    def __call__(self, trace: Trace) -> int:
        self.traces.append(trace.info.host)
        return trace.n_events


def fill(store: HostStore, function: Callable[[Trace], int]) -> tuple[Trace, Trace, int]:
    """Have the store know everything it can: (outline, trace, result)."""
    return store.outline(), store.trace(), store.get(function)


def test_a_changed_file_drops_trace_outline_and_results_together(path: Path) -> None:
    traces, count = TraceMemory(Memory(2**30)), Counter()
    store = store_of(path, traces=traces)
    outline, trace, n_events = fill(store, count)
    assert fill(store, count) == (outline, trace, n_events)
    assert (n_events, len(count.traces)) == (80, 1)
    rewrite(path, LONGER)
    assert store.recall(count) == ()
    assert store.recall(hardware) == (), "computed along with the other"
    assert traces.size_bytes == 0
    new_outline, new_trace, n_events = fill(store, count)
    assert new_outline is not outline
    assert new_trace is not trace
    assert (n_events, len(count.traces), new_trace.n_events) == (160, 2, 160)


def test_a_file_that_becomes_bad_drops_what_was_known_of_the_good_one(path: Path) -> None:
    store, count = store_of(path), Counter()
    fill(store, count)
    rewrite(path, BAD)
    for ask in (store.trace, store.outline, store.notices, lambda: store.get(count)):
        with pytest.raises(TraceFormatError) as raised:
            ask()
        assert raised.value.host == "h"
    assert len(count.traces) == 1


def test_a_failure_goes_with_the_rest_when_the_file_becomes_good(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, count = store_of(rewrite(path, BAD)), Counter()
    with pytest.raises(TraceFormatError):
        store.trace()
    assert isinstance(store.known_failure(), TraceFormatError)
    with monkeypatch.context() as patch:  # a bad file is not read again
        patch.setattr(host_store, "open_trace", None)
        for ask in (store.trace, store.outline, lambda: store.recall(count)):
            with pytest.raises(TraceFormatError):
                ask()
    rewrite(path, GOOD)
    assert store.known_failure() is None
    assert store.recall(count) == ()
    assert store.get(count) == 80


def test_a_file_that_is_gone_is_an_error_each_time_and_comes_back(path: Path) -> None:
    store, count = store_of(path), Counter()
    before = fill(store, count)
    facts = path.stat()
    moved = path.rename(path.with_name("moved"))
    with pytest.raises(StorageError) as raised:
        store.get(count)
    assert raised.value.host == "h"
    assert isinstance(store.known_failure(), StorageError)
    moved.rename(path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert store.known_failure() is None
    assert fill(store, count) == before, "the same file is not read again"


def test_no_trace_of_an_old_file_stays_in_memory(path: Path) -> None:
    store = store_of(path)
    trace = weakref.ref(store.trace())
    store.get(Counter())
    rewrite(path, LONGER)
    assert not store.recall(hardware)
    gc.collect()
    assert trace() is None


def test_results_outlive_their_trace(path: Path) -> None:
    store, count = store_of(path), Counter()
    assert store.get(count, keeps_trace=False) == 80
    assert store._run.traces.size_bytes == 0
    assert store.get(count) == 80
    assert len(count.traces) == 1


def test_common_analyses_are_computed_with_any_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(path)
    store.get(Counter(), keeps_trace=False)
    monkeypatch.setattr(host_store, "open_trace", None)
    assert store.get(hardware).kind == "CPU"
    assert len(store.recall(planes)) == 1


def test_known_failures_do_not_wait_for_a_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_reading, may_end = threading.Event(), threading.Event()

    def slow(path: str, is_outline: bool = False) -> Trace:
        is_reading.set()
        assert may_end.wait(20)
        return open_trace(path, is_outline)

    monkeypatch.setattr(host_store, "open_trace", slow)
    store = store_of(path)
    reader = threading.Thread(target=store.trace)
    reader.start()
    try:
        assert is_reading.wait(20)
        assert store.known_failure() is None
    finally:
        may_end.set()
        reader.join(20)


def test_an_empty_file_is_known_to_be_bad_without_an_attempt(path: Path) -> None:
    assert isinstance(store_of(rewrite(path, b"")).known_failure(), TraceFormatError)
    assert store_of(rewrite(path, BAD)).known_failure() is None, "nobody has tried to read it"


def results_of(store: HostStore) -> tuple[Any, ...]:
    return store.get(trace_notices), store.get(hardware), store.get(planes).hosts


def test_memory_then_result_cache_then_column_cache_then_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_cache, "MIN_TRACE_BYTES", 0)
    opened: list[bool] = []

    def counted(path: str, is_outline: bool = False) -> Trace:
        opened.append(is_outline)
        return open_trace(path, is_outline)

    monkeypatch.setattr(host_store, "open_trace", counted)
    folder = Path(os.environ["TPUPROF_CACHE_DIR"])
    store = store_of(path, uses_cache=True)
    expected = results_of(store)
    assert opened == [False]
    wait_for_column_cache()
    shutil.move(folder, folder.with_name("away"))
    assert results_of(store) == expected, "of this process's memory"
    assert opened == [False]
    shutil.move(folder.with_name("away"), folder)

    shutil.move(folder / "columns", folder / "columns away")
    assert results_of(store_of(path, uses_cache=True)) == expected, "of the result cache"
    assert opened == [False]
    shutil.move(folder / "columns away", folder / "columns")

    shutil.rmtree(folder / "results")
    assert results_of(store_of(path, uses_cache=True)) == expected, "of the columns"
    assert opened == [False]

    shutil.rmtree(folder)
    assert results_of(store_of(path, uses_cache=True)) == expected
    assert opened == [False, False], "of the file"
    wait_for_column_cache()


def wait_for_column_cache() -> None:
    for thread in threading.enumerate():
        if "column cache" in thread.name:
            thread.join(20)


def test_a_host_of_many_leaves_results_but_no_columns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_cache, "MIN_TRACE_BYTES", 0)
    store_of(path, uses_cache=True).get(hardware, keeps_trace=False)
    wait_for_column_cache()
    folder = Path(os.environ["TPUPROF_CACHE_DIR"])
    assert not (folder / "columns").exists()
    assert len(list((folder / "results").iterdir())) == 1


def state(name: str) -> FileState:
    return FileState(name, 1, 1)


def test_the_longest_unused_traces_are_dropped_first() -> None:
    trace = drawing("main  [a ][b ]")
    memory = TraceMemory(Memory(int(trace.size_bytes * 3.5)))
    for name in "abc":
        memory.keep(state(name), trace)
    assert memory.get(state("a")) is trace
    memory.keep(state("d"), trace)
    assert [memory.get(state(name)) is trace for name in "abcd"] == [True, False, True, True]
    assert memory.size_bytes == 3 * trace.size_bytes
    memory.drop(state("a"))
    memory.drop(state("never kept"))
    assert memory.size_bytes == 2 * trace.size_bytes


def test_a_trace_that_fills_the_memory_alone_stays() -> None:
    trace, other = drawing("main  [a ]"), drawing("main  [b ]")
    memory = TraceMemory(Memory(0))
    memory.keep(state("a"), trace)
    memory.keep(state("b"), other)
    assert memory.get(state("a")) is None
    assert memory.get(state("b")) is other
