"""Small requests beside a large one: 50 clients of a 57 MB run while another client opens cold runs of 10 M
events, in a real TensorBoard.

python -m bench.bench --only small_requests

The clients (`clients.py`) ask for the list of runs and for windows of the timeline. First they are alone;
then a run of 10 M events is opened, as a page does: the first view of its timeline, its overview, and the
diagnosis. A request counts as beside the opening if any part of it lies in that time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

from bench.clients import RUNS, TIMER, WINDOW, Asked, Load, window_path
from bench.environments import ROOT
from bench.measurement import MAX_SPARE_BYTES, make_ready
from bench.serving import RUNS_FOLDER, served
from bench.traces import Run

SMALL_REQUESTS = "small_requests"
TITLES = {RUNS: "list of runs", WINDOW: "warm window of 1%", TIMER: "clients' timers"}
N_OPENINGS = 5  # of the same file under other names, so that each is cold
ALONE_S, PAUSE_S, SETTLE_S = 15.0, 3.0, 3.0
MAX_P95_S = 0.1
PLUGIN = "/data/plugin/profile"
FIRST_VIEW = {"format": "columns", "width_px": 2000}

Span = tuple[float, float]


@dataclass(frozen=True)
class Spread:
    """Seconds of `n` requests."""

    n: int
    p50: float
    p95: float
    longest: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread | None:
        """The spread of some durations, None if there are none; the nearest of them, nothing in between."""
        ordered = sorted(seconds)
        if not ordered:
            return None
        last = len(ordered) - 1
        return cls(len(ordered), ordered[round(0.5 * last)], ordered[round(0.95 * last)], ordered[-1])


@dataclass(frozen=True)
class Beside:
    """By kind of request: alone and beside the openings. `openings_s`: how long each opening took, first
    without the clients. `load_average`: of the machine, before any of this began.
    """

    alone: dict[str, Spread | None]
    beside: dict[str, Spread | None]
    openings_s: tuple[float, ...]
    load_average: float = float("nan")


def spreads(asked: list[Asked], spans: list[Span]) -> dict[str, Spread | None]:
    """By kind, the requests of which any part lies in one of the spans."""
    return {
        kind: Spread.of(
            request.seconds
            for request in asked
            if request.kind == kind
            and any(
                request.start_s < end and start < request.start_s + request.seconds for start, end in spans
            )
        )
        for kind in TITLES
    }


def measure_beside(small: Run, large: Run) -> Beside:
    """Serve both runs and measure. Raises RuntimeError if any request fails."""
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    copies = [replace(large, name=f"{large.name}_{i}") for i in range(N_OPENINGS + 1)]
    with served(small, *copies) as url:
        load = _warmed(url + PLUGIN, small)
        make_ready(large, MAX_SPARE_BYTES)
        quiet = _opened(load.routes, copies[0])
        time.sleep(PAUSE_S)
        clients = subprocess.Popen(
            [sys.executable, "-m", "bench.clients", json.dumps(asdict(load))],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(SETTLE_S)  # until each client has its connection
        start = time.monotonic()
        time.sleep(ALONE_S)
        alone = [(start, time.monotonic())]
        spans = []
        for copy in copies[1:]:
            make_ready(large, MAX_SPARE_BYTES)
            spans.append(_opened(load.routes, copy))
            time.sleep(PAUSE_S)
        output, _ = clients.communicate()
    asked = [Asked(**json.loads(line)) for line in output.splitlines()]
    if not asked or any(request.status != 200 for request in asked):
        raise RuntimeError("a client got no answer")
    seconds = tuple(end - start for start, end in [quiet, *spans])
    return Beside(spreads(asked, alone), spreads(asked, spans), seconds, load_average)


def _warmed(routes: str, run: Run) -> Load:
    """The load of clients on a run whose timeline has been opened and drawn once."""
    name = f"{RUNS_FOLDER}/{run.name}"
    query = urlencode({"run": name, "hosts": run.first_host})
    answer = json.loads(_get(f"{routes}/data/trace_viewer?{query}"))
    load = Load(routes, name, run.first_host, int(answer["scalars"]["trace_duration_ps"]["value"]))
    server = routes.removesuffix(PLUGIN)
    _get(server + window_path(load, 0, load.duration_ps // 100))
    return load


def _opened(routes: str, run: Run) -> Span:
    """Open a run as a page does: when that began and ended, in seconds of the monotonic clock."""
    start = time.monotonic()
    which = {"run": f"{RUNS_FOLDER}/{run.name}", "hosts": run.first_host}
    for tool, more in (
        ("trace_viewer", FIRST_VIEW),
        ("overview_page", {}),
        ("overview_page", {"diagnosis": "wait"}),
    ):
        _get(f"{routes}/data/{tool}?{urlencode({**which, **more})}")
    return start, time.monotonic()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=300) as answer:
        body: bytes = answer.read()
    return body
