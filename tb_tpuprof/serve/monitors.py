"""Monitoring asked for by the page: samples gathered on a thread until somebody stops it or nobody asks any
more.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict, deque

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.monitor import MonitorOptions, monitor
from tb_tpuprof.encode.json import number
from tb_tpuprof.errors import CaptureBusy, CaptureNotFound, ProfilerError
from tb_tpuprof.serve.capture_request import CaptureRequest
from tb_tpuprof.session import measure

logger = logging.getLogger("tb_tpuprof")
MAX_SAMPLES = 10_000
MAX_RUNNING, MAX_REMEMBERED = 4, 8
FORGOTTEN_AFTER_S = 120.0  # browsers let a hidden page ask once a minute
LEFT_AFTER_S = 4.0  # a page that goes says so; one that is only loaded again asks anew before that
_SETTLED_S = 0.3  # a question that was on its way when the page went comes no later


class Monitor:
    """One page's monitoring. A page that goes says so, most of the time: unasked for seconds then, else for
    two minutes, it stops.
    """

    def __init__(self, request: CaptureRequest, options: MonitorOptions) -> None:
        self.id = secrets.token_urlsafe(9)
        self.state = "running"
        self._request = request
        self._options = options
        self._cancel = Cancellation()
        self._message = self._remedy = self._source = ""
        self._samples: deque[dict[str, object]] = deque(maxlen=MAX_SAMPLES)
        self._asked_s = time.monotonic()
        self._left_s: float | None = None
        self._patience_s = max(FORGOTTEN_AFTER_S, 3 * options.interval_ms / 1000)
        self._threads = [
            threading.Thread(target=work, name=f"tb_tpuprof monitor {self.id}", daemon=True)
            for work in (self._gather, self._watch)
        ]

    def start(self) -> None:
        """Begin, on threads of its own."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End it: calls under way are cut off."""
        self._cancel.set()

    def leave(self) -> None:
        """The page goes away: the job is no longer disturbed, unless somebody asks again in a moment."""
        self._left_s = time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it has come."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def status(self, since: int) -> dict[str, object]:
        """What `GET monitor` tells: the samples from number `since` on."""
        self._asked_s = time.monotonic()
        if self._left_s is not None and self._asked_s - self._left_s > _SETTLED_S:
            self._left_s = None
        samples = [sample for sample in tuple(self._samples) if int(str(sample["n"])) >= since]
        told = {
            "monitor": self.id,
            "state": self.state,
            "message": self._message,
            "remedy": self._remedy,
            "source": self._source,
        }
        return {**told, "samples": samples}

    def _gather(self) -> None:
        state = "stopped"
        try:
            for sample in monitor(self._request.addresses(), self._options, measure, self._cancel):
                self._source = sample.source or self._source
                self._samples.append(
                    {
                        name: number(value) if isinstance(value, float) else value
                        for name, value in sample.row().items()
                    }
                )
        except ProfilerError as error:
            if not self._cancel.is_set():
                state, self._message, self._remedy = "failed", error.message, error.remedy
        except Exception:
            logger.exception("monitoring failed")
            state, self._message = "failed", "Internal error; see the TensorBoard log."
        self.state = state
        self._cancel.set()

    def _watch(self) -> None:
        while not self._cancel.wait(0.5):
            now_s, left_s = time.monotonic(), self._left_s
            if now_s - self._asked_s > self._patience_s or (
                left_s is not None and now_s - left_s > LEFT_AFTER_S
            ):
                self._message = "It was stopped because no page asked for it any more."
                self._cancel.set()


class Monitors:
    """At most MAX_RUNNING at a time; the last MAX_REMEMBERED are remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Monitor] = OrderedDict()

    def start(self, request: CaptureRequest, options: MonitorOptions) -> Monitor:
        """Begin monitoring. Raises CaptureBusy where too many go on already."""
        with self._lock:
            running = [known for known in self._known.values() if known.state == "running"]
            if len(running) >= MAX_RUNNING:
                raise CaptureBusy(f"{len(running)} monitors are running already.", "Stop one of them first.")
            new = Monitor(request, options)
            self._known[new.id] = new
            for old in [known for known in self._known.values() if known.state != "running"][
                : max(0, len(self._known) - MAX_REMEMBERED)
            ]:
                del self._known[old.id]
        new.start()
        return new

    def get(self, monitor_id: str) -> Monitor:
        """The monitor of that id. Raises CaptureNotFound."""
        known = self._known.get(monitor_id)
        if known is None:
            raise CaptureNotFound(
                f"There is no monitor {monitor_id[:40]!r}.",
                "The server was started again, or it is long ago.",
            )
        return known
