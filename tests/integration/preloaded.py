"""A Python that has imported a framework and forks for each program: TensorFlow's import takes longer than
most programs of the docs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_SERVER = """
import importlib, json, os, runpy, sys, warnings
importlib.import_module(sys.argv[1])
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, name in enumerate((os.devnull, job["out"], job["err"])):
    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY), number)
os.chdir(job["folder"])
warnings.simplefilter("error", SyntaxWarning)

sys.path[0], sys.argv = job["folder"], [job["program"]]
runpy.run_path(job["program"], run_name="__main__")
"""


class Preloaded:
    """Runs programs one after another, each in a fork of an interpreter that imported a package."""

    def __init__(self, python: str, package: str, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, "-c", _SERVER, package],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Preloaded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the interpreter and a program that still runs."""
        self._kill()
        self._process.communicate()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def run(self, program: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
        """Run a file in its folder until it ends. Raises TimeoutExpired after `limit_s`; no other program can
        be run then.
        """
        out, err = program.with_suffix(".out"), program.with_suffix(".err")
        job = {"program": program.name, "folder": str(program.parent), "out": str(out), "err": str(err)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(limit_s, self._kill)
        timer.start()
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        timer.cancel()
        if not code:
            raise subprocess.TimeoutExpired(program.name, limit_s)
        return subprocess.CompletedProcess(
            [program.name], int(code), out.read_text("utf-8"), err.read_text("utf-8")
        )
