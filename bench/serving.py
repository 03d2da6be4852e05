"""Runs → a real TensorBoard that serves them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.traces import Run

STARTING_S = 60.0
ENDING_S = 20.0
RUNS_FOLDER = "bench"  # a run is listed as `bench/<name>`


@contextmanager
def served(*runs: Run) -> Iterator[str]:
    """TensorBoard on a log directory with these runs in it; its address."""
    with tempfile.TemporaryDirectory() as scratch:
        for run in runs:
            folder = Path(scratch) / "logs" / RUNS_FOLDER / "plugins" / "profile" / run.name
            folder.mkdir(parents=True)
            for file in run.files:
                (folder / file.name).symlink_to(file.resolve())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "tensorboard.main",
            "--logdir",
            f"{scratch}/logs",
            "--port",
            str(port),
            "--host",
            "127.0.0.1",
        ]
        environment = {**os.environ, "TPUPROF_CACHE_DIR": f"{scratch}/cache"}
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            _wait(f"http://127.0.0.1:{port}/data/plugins_listing")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(ENDING_S)


def _wait(url: str) -> None:
    deadline = time.monotonic() + STARTING_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
