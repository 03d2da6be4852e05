"""The clients of the benchmark of small requests: what they ask, and that a slow server cannot hide it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.clients import RUNS, TIMER, WINDOW, Asked, Load
from bench.environments import ROOT
from bench.report import report
from bench.small_requests import Beside, Spread, spreads

STALL_S = 0.9


class _Slow(BaseHTTPRequestHandler):
    """Answers at once, except the first request."""

    paths: list[str]
    stall = threading.Lock()

    def do_GET(self) -> None:
        is_first = not self.paths
        self.paths.append(self.path)
        if is_first:
            time.sleep(STALL_S)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    _Slow.paths = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.mark.slow
def test_requests_that_wait_for_a_slow_answer_count_from_when_they_were_due(
    server: ThreadingHTTPServer,
) -> None:
    load = Load(f"http://127.0.0.1:{server.server_port}/p", "a/b", "h", 1000, n_clients=1, every_s=0.2)
    clients = subprocess.Popen(
        [sys.executable, "-m", "bench.clients", json.dumps(asdict(load))],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while len(_Slow.paths) < 8 and time.monotonic() < deadline:
        time.sleep(0.05)
    output, _ = clients.communicate(timeout=30)
    asked = [Asked(**json.loads(line)) for line in output.splitlines()]
    sent = [request for request in asked if request.kind != TIMER]
    assert [request.kind for request in sent[:4]] == [RUNS, WINDOW, RUNS, WINDOW]
    assert {request.status for request in sent} == {200}
    assert [path.split("?")[0] for path in _Slow.paths[:2]] == ["/p/runs", "/p/data/trace_viewer"]
    assert "run=a%2Fb&hosts=h&format=columns" in _Slow.paths[1]
    # Due 0.2, 0.4 and 0.6 s after the first, which was answered after 0.9 s.
    assert all(request.seconds > STALL_S - 0.2 * i - 0.05 for i, request in enumerate(sent[:4])), sent


def test_a_request_counts_where_any_part_of_it_lies_in_an_opening() -> None:
    asked = [
        Asked(RUNS, 0.0, 0.5, 200),  # over before the opening
        Asked(RUNS, 0.8, 0.4, 200),  # still waiting when it begins
        Asked(RUNS, 1.5, 0.1, 200),
        Asked(WINDOW, 1.9, 2.0, 200),  # answered long after it ended
        Asked(WINDOW, 2.0, 0.3, 200),  # sent when it had ended
        Asked(WINDOW, 5.2, 0.2, 200),  # in the second opening
    ]
    found = spreads(asked, [(1.0, 2.0), (5.0, 6.0)])
    assert found == {RUNS: Spread(2, 0.1, 0.4, 0.4), WINDOW: Spread(2, 0.2, 2.0, 2.0), TIMER: None}


def test_the_95th_percentile_is_a_measured_one() -> None:
    spread = Spread.of(range(101))
    assert spread == Spread(101, 50, 95, 100)


def test_the_report_says_whether_the_promise_is_kept() -> None:
    fast, slow = Spread(9, 0.01, 0.0999, 0.2), Spread(9, 0.01, 0.1001, 0.2)
    text = report([], Beside({RUNS: fast}, {RUNS: fast, WINDOW: slow}, (2.0, 2.5), 0.25))
    rows = {
        line.split("|")[2].split(",")[0].strip(): line
        for line in text.splitlines()
        if "50 clients, b" in line
    }
    assert "99.9 ms" in rows["list of runs"]
    assert "yes" in rows["list of runs"]
    assert "100.1 ms" in rows["warm window of 1%"]
    assert "**no**" in rows["warm window of 1%"]
    assert "took 2.00 s without the clients and 2.50 s beside them" in text
    assert "not measured" in report([])
