"""Read progress of a run while another request waits for it; and the same on a terminal."""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from tb_tpuprof.cli.reading import line, reading
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.parallel.progress import ProgressTracker, ReadingProgress
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.synthetic import TpuJob, tpu_hosts, write_run
from tests.test_contract import interfaces

N_HOSTS = 3


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    write_run(tmp_path / "plugins" / "profile" / "r", tpu_hosts(TpuJob(), (1.0,) * N_HOSTS))
    return tmp_path


class Held:
    """Opens traces one by one, each when it is let go."""

    def __init__(self) -> None:
        self.free = threading.Semaphore(0)

    def __call__(self, path: str, is_outline: bool = False) -> Any:
        assert self.free.acquire(timeout=20)
        return open_trace(path, is_outline)


def test_the_route_tells_how_far_another_request_is(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Held()
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", blocked)
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(logdir / "cache"))
    apps = Routes(Logdirs.of(str(logdir), ""), "profile").apps()
    asking = Client(apps["/progress"])

    def ask() -> Any:
        answer: Any = asking.get("/progress", query_string={"run": "r"}).json
        return answer["reading"]

    def wait_for(n_done: int) -> Any:
        deadline = time.monotonic() + 20
        while not ((progress := ask()) and progress["n_done"] == n_done):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return progress

    assert ask() is None
    answers: list[int] = []
    data = Client(apps["/data/overview_page"])
    thread = threading.Thread(
        target=lambda: answers.append(data.get("/data/overview_page", query_string={"run": "r"}).status_code)
    )
    thread.start()
    first = wait_for(0)
    assert set(first) == interfaces()["Reading"]
    assert (first["n_hosts"], first["done_bytes"]) == (N_HOSTS, 0)
    assert first["size_bytes"] == sum(
        file.stat().st_size for file in (logdir / "plugins" / "profile" / "r").iterdir()
    )
    blocked.free.release()
    assert 0 < wait_for(1)["done_bytes"] < first["size_bytes"]
    blocked.free.release(N_HOSTS)
    thread.join(20)
    assert answers == [200]
    assert ask() is None
    assert asking.get("/progress", query_string={"run": "../../etc"}).json == {"reading": None}


def test_what_fails_is_over_too() -> None:
    tracker = ProgressTracker()
    with pytest.raises(ValueError, match="x"), tracker.reading({"a": 1}):
        raise ValueError("x")
    assert tracker.current() is None


def test_the_larger_of_two_is_told() -> None:
    tracker = ProgressTracker()
    with tracker.reading({"a": 1, "b": 2}) as task, tracker.reading({"b": 2}):
        tracker.host_done(task, "a")
        progress = tracker.current()
    assert progress
    assert (progress.host, progress.n_hosts, progress.n_done, progress.size_bytes, progress.done_bytes) == (
        "b",
        2,
        1,
        3,
        1,
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_and_left_clean(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.cli.reading.FIRST_AFTER_S", 0.02)
    monkeypatch.setattr("tb_tpuprof.cli.reading.REDRAW_S", 0.02)
    monkeypatch.setenv("TERM", "xterm")
    blocked = Held()
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", blocked)
    session = Session(str(logdir / "plugins" / "profile" / "r"), cache=False)
    stream = Terminal()
    with reading(session, stream):
        threading.Timer(0.3, blocked.free.release, (N_HOSTS,)).start()
        get_tool("overview_page").run(session, None, {})
    assert "Reading 0 of 3 hosts, 0 B of" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_what_is_no_terminal_is_told_nothing(logdir: Path) -> None:
    stream = io.StringIO()
    with reading(Session(str(logdir / "plugins" / "profile" / "r"), cache=False), stream):
        time.sleep(0.01)
    assert not stream.getvalue()


def test_lines() -> None:
    assert (
        line(ReadingProgress("h7", 256, 37, 2**30, 2**20, 3.2))
        == "Reading 37 of 256 hosts, 1.00 MiB of 1.00 GiB, 3 s: h7"
    )
    assert line(ReadingProgress("", 2, 2, 2**30, 2**30, 3.2)).endswith("combining")
    assert line(ReadingProgress("h7", 1, 0, 2**30, 0, 3.2)) == "Reading h7, 1.00 GiB, 3 s"
