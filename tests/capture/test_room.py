"""Many large replies at once: memory and disk stay within bounds, and each target ends."""

from __future__ import annotations

import shutil
import threading
import time
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
from tests.capture.double import good, serving
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
        with room.place() as take:
            take(size * MIB)
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
    with room.place() as take, room.place() as other, room.place() as small:
        take(5 * MIB)
        with pytest.raises(StorageError, match=r"no space for a profile of 6 MiB: 4 MiB may be used"):
            other(6 * MIB)
        small(4 * MIB)
    with room.place() as take:
        take(9 * MIB)


def test_cancelling_ends_the_wait_for_room() -> None:
    cancel = Cancellation()
    room = Room(plenty, cancel, MIB)
    with room.place() as take:
        take(MIB)
        threading.Timer(0.05, cancel.set).start()
        began = time.monotonic()
        with room.place() as other:
            other(MIB)
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
    assert "no space for a profile" in ended.message
    assert ended.received_bytes == 0
    assert not list(Path(folder.repository).iterdir())


def test_a_reply_of_more_than_half_of_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(small_xspace())
    monkeypatch.setattr("tb_tpuprof.capture.client.machine_memory", lambda: size)
    with serving(good(0.0)) as (target, _):
        (ended,) = capture((target,), QUICK, new_run(str(tmp_path)))
    assert (ended.state, ended.reason) == ("failed", "too_large")
