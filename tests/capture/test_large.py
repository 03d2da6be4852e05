"""Large profiles: how much memory and time one takes, measured in a process that does nothing else."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "tests.capture.large"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="memory is measured with the resource module"),
]


@contextmanager
def large_server(n_megabytes: int) -> Iterator[str]:
    """The port of a server, in a process of its own, whose profile has that size."""
    command = [*PROGRAM, "serve", str(n_megabytes)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def fetched(port: str, logdir: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*PROGRAM, "fetch", port, str(logdir)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(("n_megabytes", "most"), [(50, 1.3), (200, 1.15), (600, 1.1)])
def test_hundreds_of_megabytes_are_saved_and_held_once(n_megabytes: int, most: float, tmp_path: Path) -> None:
    """`most`: the peak memory over the size."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < 5_000_000 * n_megabytes:
        pytest.skip(f"needs {n_megabytes / 200:.1f} GB of free memory, there are {free / 1e9:.1f}")
    with large_server(n_megabytes) as port:
        told = fetched(port, tmp_path)
    assert told["state"] == "saved"
    assert 1_000_000 * n_megabytes < told["size"] < 1_000_000 * (n_megabytes + 1)
    assert told["peak"] < most * told["size"]
    (path,) = tmp_path.rglob("*.xplane.pb")
    assert path.stat().st_size == told["size"]
    path.unlink()
    progress = [
        (received, size) for state, received, size in told["seen"] if state == "receiving" and received
    ]
    assert progress == sorted(progress), "bytes that had come went away"
    assert len(progress) > 1, "no progress was told while it was received"
    assert all(size - told["size"] < 100 for _, size in progress)


def test_50_megabytes_add_little_to_the_servers_time(tmp_path: Path) -> None:
    """The benchmark checks the aim of 100 ms. This test checks the order of magnitude on a busy machine: the
    processor time of the best of five captures stays below 200 ms, or below 2.5 times what the machine takes
    to pass the same bytes through a socket, memory and a file.
    """
    with large_server(50) as port:
        captures = [fetched(port, tmp_path) for _ in range(5)]
    assert [capture["state"] for capture in captures] == ["saved"] * 5
    limit = max(0.2, 2.5 * min(passing_on(tmp_path, 50_000_000) for _ in range(3)))
    assert min(capture["cpu"] for capture in captures) < limit, (captures, limit)


def passing_on(folder: Path, n_bytes: int) -> float:
    """Processor time of sending bytes through a socket, into memory that was never used before, and from
    there into a file.
    """
    data = memoryview(os.urandom(1 << 20) * (n_bytes >> 20))
    near, far = socket.socketpair()
    begin = time.process_time()
    with (
        near,
        far,
        mmap.mmap(-1, len(data)) as fresh,
        open(folder / "passed", "wb") as file,
        ThreadPoolExecutor(1) as pool,
    ):
        sending = pool.submit(near.sendall, data)
        with memoryview(fresh) as room:
            at = 0
            while at < len(data):
                at += far.recv_into(room[at : at + (1 << 20)])
            sending.result()
            file.write(room)
    return time.process_time() - begin
