"""Many clients of a server, in a process of their own: `python -m bench.clients LOAD` → their requests as
JSON lines.

Each client keeps one connection and sends a request every `every_s`, in turn one of each kind. The clients'
first requests are spread over that time. A client that gets its answer later than the next request is due
sends that one at once, and its time counts from when it was due: a slow server cannot hide requests by
answering late. How late the clients' own timers fire is told as a third kind: so much of the times is the
machine's and not the server's. Ends when its standard input is closed. Standard library only.
"""

from __future__ import annotations

import http.client
import json
import random
import sys
import threading
import time
from dataclasses import asdict, dataclass
from urllib.parse import urlencode, urlsplit

RUNS, WINDOW, TIMER = "runs", "window", "timer"
KINDS = (RUNS, WINDOW)
TIMEOUT_S = 120.0
WINDOW_SHARE = 0.01


@dataclass(frozen=True)
class Load:
    """`run` and `host` are those whose windows are requested; `routes` is the address of the plugin."""

    routes: str
    run: str
    host: str
    duration_ps: int
    n_clients: int = 50
    every_s: float = 1.0
    width_px: int = 2000


@dataclass(frozen=True)
class Asked:
    """A request: `start_s` of the system's monotonic clock, seconds to the last byte of the answer. Of kind
    TIMER: when a client should have woken, and how much later it did.
    """

    kind: str
    start_s: float
    seconds: float
    status: int


def window_path(load: Load, start_ps: int, end_ps: int) -> str:
    """The path of a window of the timeline, as the page requests it."""
    query = {
        "run": load.run,
        "hosts": load.host,
        "format": "columns",
        "width_px": load.width_px,
        "start_ps": start_ps,
        "end_ps": end_ps,
    }
    return f"{urlsplit(load.routes).path}/data/trace_viewer?{urlencode(query)}"


class Client(threading.Thread):
    """One of the clients; `asked` grows while it runs."""

    def __init__(self, load: Load, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.load, self.number, self.stop = load, number, stop
        self.asked: list[Asked] = []
        self.chance = random.Random(number)
        self.connection = http.client.HTTPConnection(urlsplit(load.routes).netloc, timeout=TIMEOUT_S)

    def run(self) -> None:
        """Send requests until told to stop."""
        due = time.monotonic() + self.load.every_s * self.number / self.load.n_clients
        turn, free_s = self.number, 0.0
        while not self.stop.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            if free_s < due:
                self.asked.append(Asked(TIMER, due, now - due, 200))
            self._ask(KINDS[turn % len(KINDS)], now if free_s < due else due)
            free_s = time.monotonic()
            due += self.load.every_s
            turn += 1

    def _ask(self, kind: str, start_s: float) -> None:
        self.connection.request("GET", self._path(kind), headers={"Accept-Encoding": "gzip"})
        answer = self.connection.getresponse()
        answer.read()
        self.asked.append(Asked(kind, start_s, time.monotonic() - start_s, answer.status))

    def _path(self, kind: str) -> str:
        if kind == RUNS:
            return f"{urlsplit(self.load.routes).path}/runs"
        width = max(1, int(self.load.duration_ps * WINDOW_SHARE))
        start = self.chance.randrange(max(1, self.load.duration_ps - width))
        return window_path(self.load, start, start + width)


def main() -> None:
    """Run the clients until standard input ends, then print what they asked."""
    load, stop = Load(**json.loads(sys.argv[1])), threading.Event()
    clients = [Client(load, number, stop) for number in range(load.n_clients)]
    for client in clients:
        client.start()
    sys.stdin.read()
    stop.set()
    for client in clients:
        client.join(TIMEOUT_S)
        for asked in client.asked:
            print(json.dumps(asdict(asked)))


if __name__ == "__main__":
    main()
