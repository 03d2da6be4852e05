"""Many large replies at once: memory and disk stay within bounds, and each target ends."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tb_tpuprof.capture import download
from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.job import capture
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.room import Room
from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.storage.writing import new_run
from tests.capture.double import good, serving, trickling
from tests.ingest.xspaces import small_xspace

MIB = 2**20
QUICK = CaptureOptions(duration_ms=50, num_tracing_attempts=1, timeout_s=20)


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def plenty() -> None:
    return None


def test_replies_wait_while_others_fill_the_memory() -> None:
    room = Room(plenty, Cancellation(), 10 * MIB)
    sizes, now, most = [7, 5, 3, 6, 1, 30], [0], [0]
    lock = threading.Lock()

    def receive(size: int) -> None:
        with room.place() as place:
            place.take(size * MIB)
            with lock:
                now[0] += size
                most[0] = max(most[0], now[0] if size < 10 else 0)
                assert size < 10 or now[0] == size, "what is larger than the memory is alone"
            time.sleep(0.02)
            with lock:
                now[0] -= size

    threads = [threading.Thread(target=receive, args=(size,)) for size in sizes * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert now[0] == 0
    assert 7 <= most[0] <= 10


def test_a_reply_that_the_disk_cannot_hold_is_refused_before_it_is_received() -> None:
    room = Room(lambda: 9 * MIB, Cancellation(), 100 * MIB)
    with room.place() as place, room.place() as other, room.place() as small:
        place.take(5 * MIB)
        with pytest.raises(StorageError, match=r"no disk space for a profile of 6 MiB: 4 MiB may be used"):
            other.take(6 * MIB)
        small.take(4 * MIB)
    with room.place() as place:
        place.take(9 * MIB)


def test_cancelling_ends_the_wait_for_room() -> None:
    cancel = Cancellation()
    room = Room(plenty, cancel, MIB)
    with room.place() as place:
        place.take(MIB)
        threading.Timer(0.05, cancel.set).start()
        began = time.monotonic()
        with room.place() as other:
            other.take(MIB)
        assert time.monotonic() - began < 5


def test_a_capture_holds_few_replies_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine targets, of which two fit into the memory at a time."""
    size = len(small_xspace())
    monkeypatch.setattr("tb_tpuprof.capture.room.memory_budget", lambda: int(size * 2.5))
    held, most, lock = [0], [0], threading.Lock()
    memory, save = download._memory, "tb_tpuprof.ingest.storage.writing._write_local"
    from tb_tpuprof.ingest.storage import writing

    write = writing._write_local

    def counted(n_bytes: int) -> memoryview:
        with lock:
            held[0] += 1
            most[0] = max(most[0], held[0])
        time.sleep(0.02)
        return memory(n_bytes)

    def written(*arguments: object) -> object:
        try:
            return write(*arguments)  # type: ignore[arg-type]
        finally:
            with lock:
                held[0] -= 1

    monkeypatch.setattr(download, "_memory", counted)
    monkeypatch.setattr(save, written)
    with serving(good(0.0)) as (target, _):
        ended = capture((target,) * 9, QUICK, new_run(str(tmp_path)))
    assert [one.state for one in ended] == ["saved"] * 9
    assert 1 <= most[0] <= 2


def test_a_full_disk_ends_a_capture_before_the_profile_is_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run(str(tmp_path))
    size = len(small_xspace())
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Disk(1000 * size, 899 * size, 101 * size - 9))
    assert folder.free_bytes() == size - 9, "a tenth of a small disk stays free"
    with serving(good(0.0)) as (target, _):
        (ended,) = capture((target,), QUICK, folder)
    assert ended.state == "failed"
    assert "no disk space for a profile" in ended.message
    assert ended.received_bytes == 0
    assert not list(Path(folder.repository).iterdir())


@pytest.mark.parametrize("scheme", ["file://{here}/logs", "simplecache::memory://{name}/logs"])
def test_a_full_local_disk_ends_a_capture_behind_a_url_too(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may be elsewhere, but a local folder receives the file first."""
    folder = new_run(scheme.format(here=tmp_path, name=tmp_path.name))
    size = len(small_xspace())
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Disk(1000 * size, 899 * size, 101 * size - 9))
    with serving(good(0.0)) as (target, _):
        (ended,) = capture((target,), QUICK, folder)
    assert ended.state == "failed"
    assert "no disk space for a profile" in ended.message
    assert ended.received_bytes == 0
    assert folder.file_sizes() == {}


def test_a_reply_of_more_than_half_of_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(small_xspace())
    monkeypatch.setattr("tb_tpuprof.capture.client.machine_memory", lambda: size)
    with serving(good(0.0)) as (target, _):
        (ended,) = capture((target,), QUICK, new_run(str(tmp_path)))
    assert (ended.state, ended.reason) == ("failed", "too_large")


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@contextmanager
def waiting(room: Room, size: int) -> Iterator[None]:
    """While the block runs, a reply of that size waits for room."""
    cancel = room._cancel

    def wait() -> None:
        with room.place() as place:
            place.take(size)

    thread = threading.Thread(target=wait)
    thread.start()
    while not room._n_waiting:
        time.sleep(0.001)
    yield
    cancel.set()
    thread.join(5)


def test_the_slowest_reply_must_go_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("tb_tpuprof.capture.room.time", clock)
    room = Room(plenty, Cancellation(), 100 * MIB, patience_s=10)
    with room.place() as slow, room.place() as quick, room.place() as whole, room.place() as late:
        for place, size in ((slow, 50), (quick, 30), (whole, 10)):
            place.take(size * MIB)
        assert not whole.is_too_slow(10 * MIB)
        assert not slow.is_too_slow(4 * MIB)
        clock.now_s += 1000
        assert not slow.is_too_slow(4 * MIB), "nobody waits"
        with waiting(room, 40 * MIB):
            late_at = clock.now_s = clock.now_s + 5
            late.take(10 * MIB)
            assert not quick.is_too_slow(4 * MIB)
            assert not slow.is_too_slow(5 * MIB)
            clock.now_s = late_at + 4.9
            assert not slow.is_too_slow(5 * MIB), "the period is not over"
            clock.now_s = late_at + 5.1
            assert not quick.is_too_slow(4 * MIB)
            assert slow.is_too_slow(5 * MIB)
            assert not whole.is_too_slow(10 * MIB)
            assert not late.is_too_slow(0)


@pytest.mark.parametrize(("quick_mib", "must_go"), [(9.5, False), (8.5, True)])
def test_replies_that_share_a_slow_network_may_stay(
    quick_mib: float, must_go: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 seconds at 1 MiB per second. What another one received counts, although it is saved by now."""
    clock = Clock()
    monkeypatch.setattr("tb_tpuprof.capture.room.time", clock)
    room = Room(plenty, Cancellation(), 100 * MIB, patience_s=10)
    with room.place() as slow, ExitStack() as others:
        slow.take(50 * MIB)
        quick = others.enter_context(room.place())
        quick.take(50 * MIB)
        with waiting(room, 90 * MIB):
            assert not quick.is_too_slow(int(quick_mib * MIB))
            others.close()
            clock.now_s += 10
            assert slow.is_too_slow(MIB) is must_go


@pytest.mark.slow
def test_a_target_that_trickles_does_not_block_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends 4 kB per second, for two minutes, and its reply leaves no room for another."""
    content = small_xspace() * (500_000 // len(small_xspace()))
    monkeypatch.setattr("tb_tpuprof.capture.room.memory_budget", lambda: int(len(content) * 1.5))
    monkeypatch.setattr("tb_tpuprof.capture.download._SLOWEST_BYTES_PER_S", 1000)
    options = CaptureOptions(duration_ms=50, num_tracing_attempts=1, timeout_s=2)
    with (
        serving(good(0.0, content)) as (quick, _),
        serving(good(1.0, content)) as (late, _),
        trickling(quick, after=100_000, bytes_per_s=4000) as slow,
    ):
        began = time.monotonic()
        ended = capture((slow, late, late), options, new_run(str(tmp_path)))
    assert [one.state for one in ended] == ["failed", "saved", "saved"]
    assert ended[0].reason == "slow"
    assert "other targets waited 2 s" in ended[0].message
    assert "TPUPROF_MEMORY_MB" in ended[0].remedy
    assert 2 < time.monotonic() - began < 30


@pytest.mark.slow
def test_a_target_that_trickles_alone_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = small_xspace() * (120_000 // len(small_xspace()))
    monkeypatch.setattr("tb_tpuprof.capture.room.memory_budget", lambda: len(content) + 100)
    monkeypatch.setattr("tb_tpuprof.capture.download._SLOWEST_BYTES_PER_S", 1000)
    options = CaptureOptions(duration_ms=50, num_tracing_attempts=1, timeout_s=1)
    with (
        serving(good(0.0, content)) as (quick, _),
        trickling(quick, after=100_000, bytes_per_s=8000) as slow,
    ):
        (ended,) = capture((slow,), options, new_run(str(tmp_path)))
    assert ended.state == "saved", ended.message
