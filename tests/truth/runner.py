"""Programs whose truth is known without this project: run under another interpreter, profiled, and measured
from outside.

A program is a file in `programs/`. It is run as `python PROGRAM OUT ARGUMENTS…`, profiles itself into the log
directory OUT, and writes what it measured itself (`time.perf_counter`, `cost_analysis()`, sizes it chose) to
`OUT/truth.json`. Some runs were recorded (`tests/data/corpus`): they stand in where no interpreter has the
packages, and `test_corpus.py` always reads them.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tb_tpuprof.session import Session
from tests.integration.jobs import environment, python_if_any, python_with

PROGRAMS = Path(__file__).parent / "programs"
CORPUS = Path(__file__).parents[1] / "data" / "corpus"
LIMIT_S = 300
_KEEP = "TPUPROF_TRUTH_DIR"  # where profiles stay, for a look at one that failed


@dataclass(frozen=True)
class Truth:
    """A profiled run and what the program knows of itself."""

    run_dir: Path
    facts: Mapping[str, Any]

    def session(self) -> Session:
        """The run, opened without the user's cache."""
        return Session(str(self.run_dir), cache=False)


@cache
def profiled(
    program: str, *arguments: str, packages: tuple[str, ...] = ("jax",), xla_flags: str = ""
) -> Truth:
    """Run a program once per test session. Where no interpreter has the packages a recorded run stands in, or
    the test is skipped and says so.
    """
    known = _recorded_as(program, arguments, xla_flags)
    if known and not python_if_any(*packages):
        return recorded(known)
    python = python_with(*packages)
    out = Path(tempfile.mkdtemp(prefix=f"truth_{Path(program).stem}_", dir=os.environ.get(_KEEP)))
    environ = {**environment(), **({"XLA_FLAGS": xla_flags} if xla_flags else {})}
    command = [python, str(PROGRAMS / program), str(out), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = {file.parent for pattern in ("*.xplane.pb", "*.trace.json*") for file in out.rglob(pattern)}
    return Truth(found, json.loads((out / "truth.json").read_text("utf-8")))


@cache
def corpus() -> dict[str, dict[str, Any]]:
    """Of each recorded run its program, and what that measured."""
    found: dict[str, dict[str, Any]] = json.loads((CORPUS / "truth.json").read_text("utf-8"))
    return found


def recorded_as(
    program: str, *arguments: str, packages: tuple[str, ...] = ("jax",), xla_flags: str = ""
) -> Truth:
    """The recorded run of a program that `profiled` would run."""
    name = _recorded_as(program, arguments, xla_flags)
    assert name, f"{program} {' '.join(arguments)} was not recorded"
    return recorded(name)


@cache
def recorded(name: str) -> Truth:
    """A recorded run, unpacked as the profiler wrote it."""
    (packed,) = CORPUS.glob(f"{name}.*.gz")
    out = Path(tempfile.mkdtemp(prefix=f"corpus_{name}_"))
    file = f"worker-0{packed.name.removeprefix(name).removesuffix('.gz')}"
    (out / file).write_bytes(gzip.decompress(packed.read_bytes()))
    return Truth(out, corpus()[name]["measured"])


def _recorded_as(program: str, arguments: tuple[str, ...], xla_flags: str) -> str:
    wanted = program, list(arguments), xla_flags
    return next(
        (
            name
            for name, run in corpus().items()
            if (run["program"], run["arguments"], run["xla_flags"]) == wanted
        ),
        "",
    )
