"""Monitoring started from the page: a thread collects samples until the page stops it or no longer polls."""

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
FORGOTTEN_AFTER_S = 120.0  # browsers let a hidden page poll once a minute
LEFT_AFTER_S = 4.0  # a closing page says so; a reloaded one polls again before that
_SETTLED_S = 0.3  # a poll in flight when the page closed arrives within this time


class Monitor:
    """One page's monitoring. It stops a few seconds after the page said that it closes, else after two
    minutes without a poll.
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
        """Start on its own threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; calls in flight are cancelled."""
        self._cancel.set()

    def leave(self) -> None:
        """The page is closing: stop profiling the job unless a poll follows soon."""
        self._left_s = time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; returns whether it has ended."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def status(self, since: int) -> dict[str, object]:
        """The answer of `GET monitor`: the samples from number `since` on."""
        self._asked_s = time.monotonic()
        if self._left_s is not None and self._asked_s - self._left_s > _SETTLED_S:
            self._left_s = None
        samples = [sample for sample in tuple(self._samples) if int(str(sample["n"])) >= since]
        answer = {
            "monitor": self.id,
            "state": self.state,
            "message": self._message,
            "remedy": self._remedy,
            "source": self._source,
        }
        return {**answer, "samples": samples}

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
                self._message = "Monitoring stopped because no page requested it any more."
                self._cancel.set()


class Monitors:
    """At most MAX_RUNNING at a time; the last MAX_REMEMBERED are remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: OrderedDict[str, Monitor] = OrderedDict()

    def start(self, request: CaptureRequest, options: MonitorOptions) -> Monitor:
        """Start monitoring. Raises CaptureBusy if too many monitors are running."""
        with self._lock:
            running = [monitor for monitor in self._by_id.values() if monitor.state == "running"]
            if len(running) >= MAX_RUNNING:
                raise CaptureBusy(f"{len(running)} monitors are running already.", "Stop one of them first.")
            new = Monitor(request, options)
            self._by_id[new.id] = new
            for old in [monitor for monitor in self._by_id.values() if monitor.state != "running"][
                : max(0, len(self._by_id) - MAX_REMEMBERED)
            ]:
                del self._by_id[old.id]
        new.start()
        return new

    def get(self, monitor_id: str) -> Monitor:
        """The monitor of that id. Raises CaptureNotFound."""
        monitor = self._by_id.get(monitor_id)
        if monitor is None:
            raise CaptureNotFound(
                f"There is no monitor {monitor_id[:40]!r}.",
                "The server was restarted, or the monitor is too old.",
            )
        return monitor
