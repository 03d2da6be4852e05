"""Programs whose truth is known without this project: run under another interpreter, profiled, and measured
from outside.

A program is a file in `programs/`. It is run as `python PROGRAM OUT ARGUMENTS…`, profiles itself into the log
directory OUT, and writes what it measured itself (`time.perf_counter`, `cost_analysis()`, sizes it chose) to
`OUT/truth.json`.
"""

from __future__ import annotations

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
from tests.integration.jobs import environment, python_with

PROGRAMS = Path(__file__).parent / "programs"
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
    """Run a program once per test session. Skips the test, saying so, where no interpreter has
    the packages.
    """
    python = python_with(*packages)
    out = Path(tempfile.mkdtemp(prefix=f"truth_{Path(program).stem}_", dir=os.environ.get(_KEEP)))
    environ = {**environment(), **({"XLA_FLAGS": xla_flags} if xla_flags else {})}
    command = [python, str(PROGRAMS / program), str(out), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = {file.parent for pattern in ("*.xplane.pb", "*.trace.json*") for file in out.rglob(pattern)}
    return Truth(found, json.loads((out / "truth.json").read_text("utf-8")))
