"""A measure on a run -> samples of both sides, each from a fresh process, taken alternately; the median of
them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

from bench.cases import Measure
from bench.environments import ROOT, peer_python, work_dir
from bench.requests import READY, WAITING, Request, Sample
from bench.traces import Run

OURS, PEER = "ours", "peer"
SIDES = (OURS, PEER)
TIMEOUT_S = 240
SLOW_S = 15.0
MAX_WARM_UP_BYTES = 100_000_000
SETTLE_S = 0.2  # until the system has put away what a process gave back
SPARE_BYTES, SPARE_TIMES, MAX_SPARE_BYTES = 256 * 2**20, 20, 2 * 2**30


@dataclass
class Result:
    """What came of one measure on one run: samples by side, and what went wrong by side."""

    run: Run
    measure: Measure
    samples: dict[str, list[Sample]] = field(default_factory=lambda: {side: [] for side in SIDES})
    failures: dict[str, str] = field(default_factory=dict)

    def typical(self, side: str) -> Sample | None:
        """The median of each number, or None where the side never answered."""
        samples = [asdict(sample) for sample in self.samples[side]]
        return (
            Sample(**{name: median(sample[name] for sample in samples) for name in samples[0]})
            if samples
            else None
        )


def measure_both(run: Run, measure: Measure, n_rounds: int, sides: tuple[str, ...] = SIDES) -> Result:
    """Measure the sides in turn, `n_rounds` times; a side that fails or takes longer than SLOW_S is not
    measured again.
    """
    result = Result(run, measure)
    run.read()
    waiting = [side for side in sides if side == OURS or measure.peer]
    for _ in range(n_rounds):
        for side in list(waiting):
            try:
                sample = _sample(run, measure, side)
            except ChildFailed as error:
                result.failures[side] = str(error)
                waiting.remove(side)
                continue
            result.samples[side].append(sample)
            if sample.seconds > SLOW_S:
                waiting.remove(side)
    return result


def warm_up(run: Run, measure: Measure, sides: tuple[str, ...]) -> None:
    """If it takes seconds, measure once without counting it, so that programs and files are in the page
    cache.
    """
    if run.size_bytes > MAX_WARM_UP_BYTES:
        return
    for side in sides:
        with contextlib.suppress(ChildFailed):
            _sample(run, measure, side)


class ChildFailed(Exception):
    """A child ended without a sample; the message is the last it said."""


def _sample(run: Run, measure: Measure, side: str) -> Sample:
    folder = run.linked(side)  # also removes the caches that the peer left next to the files
    request = Request(
        measure.tool,
        str(folder),
        run.first_host,
        measure.mode,
        measure.reopen,
        op=measure.op,
        with_times=measure.with_times,
    )
    spare = min(MAX_SPARE_BYTES, SPARE_BYTES + SPARE_TIMES * run.size_bytes)
    if measure.reopen:
        _ask(request, side, measure.peer, partial(make_ready, run, spare))
    if measure.from_start:
        make_ready(run, spare)
    seconds, sample = _ask(
        request, side, measure.peer, None if measure.from_start else partial(make_ready, run, spare)
    )
    return replace(sample, seconds=seconds) if measure.from_start else sample


def make_ready(run: Run, n_bytes: int) -> None:
    """Make enough memory available and load the run's files: a system may evict what has not been read for
    a while.
    """
    have_spare_memory(n_bytes)
    run.read()


def have_spare_memory(n_bytes: int) -> None:
    """Make the machine hold unused memory.

    A virtual machine gives what it frees back to its host within seconds, and takes it again a page at a
    time, which is slow (2 ms a megabyte has been seen) and is independent of either side.
    """
    if os.name != "nt":
        subprocess.run([sys.executable, "-m", "bench.spare_memory", str(n_bytes)], cwd=ROOT, check=True)
        time.sleep(SETTLE_S)


def _ask(request: Request, side: str, peer: str, before: Callable[[], None] | None) -> tuple[float, Sample]:
    """Seconds from the start of the child to its first answer, and its measurements; `before` is called
    when the child is ready.
    """
    python = sys.executable if side == OURS else peer_python(peer)
    command = [python, "-m", f"bench.child_{side if side == OURS else peer}", json.dumps(asdict(request))]
    log = work_dir() / f"{side}.log"
    with log.open("wb") as errors:
        start = time.perf_counter()
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=_child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        watchdog = threading.Timer(TIMEOUT_S, child.kill)
        watchdog.start()
        try:
            if before and _line_that_starts(child, WAITING):
                before()
            _go_on(child)
            ready = _line_that_starts(child, READY)
            seconds = time.perf_counter() - start
            answer = _line_that_starts(child, "{")
        finally:
            child.wait()
            watchdog.cancel()
    if not ready or not answer:
        late = time.perf_counter() - start >= TIMEOUT_S
        raise ChildFailed(f"no answer within {TIMEOUT_S} s" if late else _last_line(log))
    return seconds, Sample(**json.loads(answer))


def _go_on(child: subprocess.Popen[str]) -> None:
    """Let the child run its requests; a child that has already ended stays silent."""
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write("\n")
            child.stdin.close()


def _line_that_starts(child: subprocess.Popen[str], text: str) -> str:
    """The next line of the child that starts so; empty where the child ends without one."""
    if child.stdout is None:
        return ""
    return next((line for line in child.stdout if line.startswith(text)), "")


def _child_environment() -> dict[str, str]:
    """Ours, with caches of its own; processes that helpers start find bytecode, as an installation has it."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "TPUPROF_CACHE_DIR": str(work_dir() / "cache"), "TF_CPP_MIN_LOG_LEVEL": "3"}


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "ended without an answer"
