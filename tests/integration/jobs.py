"""Real jobs for tests: an interpreter that has TensorFlow or JAX, and programs that run in it until the test
is done.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_START_S = 120.0


@cache
def _has(python: str, package: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0


def python_if_any(*packages: str) -> str:
    """An interpreter that has the packages: TPUPROF_ML_PYTHON, the benchmark's own, or this one; empty where
    none has.
    """
    candidates = (
        os.environ.get("TPUPROF_ML_PYTHON", ""),
        str(ROOT / ".bench" / "ml" / "bin" / "python"),
        sys.executable,
    )
    found = (
        python
        for python in candidates
        if python and Path(python).exists() and all(_has(python, package) for package in packages)
    )
    return next(found, "")


def python_with(*packages: str) -> str:
    """The same; skips the test where none has them."""
    found = python_if_any(*packages)
    if not found:
        pytest.skip(
            f"*** NOT RUN: no Python with {' and '.join(packages)}; name one in TPUPROF_ML_PYTHON. ***"
        )
    return found


def environment() -> dict[str, str]:
    """For jobs: on the CPU, quiet."""
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONPATH": "",
    }


@contextmanager
def running(python: str, program: str, folder: Path, port: int) -> Iterator[None]:
    """A program that goes on until the block ends, once its profiler server listens on the port."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.py").write_text(program, "utf-8")
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, "job.py"], cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + _START_S
        while not _listens(port):
            assert process.poll() is None, log.read_text("utf-8", "replace")[-4000:]
            assert time.monotonic() < deadline, f"no server within {_START_S:g} s"
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("localhost", port)) == 0
