"""Captures started from the page: one at a time, each on its own threads. The last ones are kept so that
the page can query them.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.job import TargetProgress, capture
from tb_tpuprof.errors import CaptureBusy, CaptureNotFound, ProfilerError
from tb_tpuprof.ingest.storage.writing import new_run
from tb_tpuprof.serve.capture_request import CaptureRequest
from tb_tpuprof.serve.continuous import Continuous

logger = logging.getLogger("tb_tpuprof")
MAX_REMEMBERED = 16


class Capture:
    """One capture, running or finished."""

    def __init__(self, request: CaptureRequest, continuous: Continuous) -> None:
        self._continuous = continuous
        self.id = secrets.token_urlsafe(9)
        self.request = request
        self.cancel = Cancellation()
        self.state = "running"
        self.run = ""
        self.message = ""
        self.remedy = ""
        self._targets: dict[int, TargetProgress] = {}
        self._started_s = time.monotonic()
        self._ended_s = 0.0
        self._thread = threading.Thread(target=self._work, name=f"tb_tpuprof capture {self.id}", daemon=True)

    def start(self) -> None:
        """Start on its own thread."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def status(self) -> dict[str, object]:
        """The answer of `GET capture/status`."""
        targets = sorted(self._targets.copy().items())
        return {
            "capture": self.id,
            "state": self.state,
            "run": self.run,
            "elapsed_ms": round(((self._ended_s or time.monotonic()) - self._started_s) * 1000),
            "message": self.message,
            "remedy": self.remedy,
            "targets": [_target_object(progress) for _, progress in targets],
        }

    def _work(self) -> None:
        try:
            self._capture()
        except ProfilerError as error:
            self._end("cancelled" if self.cancel.is_set() else "failed", error.message, error.remedy)
        except Exception:
            logger.exception("capture failed")
            self._end("failed", "Internal error; see the TensorBoard log.", "Please report it with the log.")

    def _capture(self) -> None:
        request = self.request
        if request.tpu:
            self.message = f"Requesting the addresses of {request.tpu} from Google Cloud."
        targets = request.addresses()
        self._targets = {
            i: TargetProgress(str(target), "")
            for i, target in enumerate(targets[:1] if request.workers else targets)
        }
        folder = new_run(request.logdir_path, request.run_name)
        self.run = f"{request.logdir}/{folder.run}" if request.logdir else folder.run
        self.message = ""
        ended = capture(targets, request.options, folder, self._observe, self.cancel, request.workers)
        if request.options.is_snapshot:
            for progress in ended:
                self._continuous.note("snapshot", progress.target, progress.reason)
        self._conclude(ended)

    def _observe(self, index: int, progress: TargetProgress) -> None:
        self._targets[index] = progress

    def _conclude(self, ended: tuple[TargetProgress, ...]) -> None:
        n_saved = sum(progress.state == "saved" for progress in ended)
        lost = [progress for progress in ended if progress.state != "saved"]
        if n_saved:
            self._end(
                "done",
                f"{len(lost)} of {len(ended)} targets returned no profile. {lost[0].message}" if lost else "",
                lost[0].remedy if lost else "",
            )
        elif self.cancel.is_set():
            self._end("cancelled", "The capture was cancelled.", "")
        else:
            start = f"None of the {len(ended)} targets returned a profile. " if len(ended) > 1 else ""
            self._end("failed", start + lost[0].message, lost[0].remedy)

    def _end(self, state: str, message: str, remedy: str) -> None:
        self.message, self.remedy, self._ended_s = message, remedy, time.monotonic()
        self.state = state  # last: a thread that sees the new state reads the rest


class Captures:
    """One capture at a time, and the last MAX_REMEMBERED ones. `continuous` learns from snapshots which jobs
    are no longer profiled.
    """

    def __init__(self, continuous: Continuous) -> None:
        self._continuous = continuous
        self._lock = threading.Lock()
        self._by_id: OrderedDict[str, Capture] = OrderedDict()

    def start(self, request: CaptureRequest) -> Capture:
        """Start a capture. Raises CaptureBusy while another one is running."""
        with self._lock:
            other = self.running()
            if other:
                raise CaptureBusy(
                    f"Another capture is running: {other.request.title}.",
                    "Wait until it has ended, or cancel it; only one can run at a time.",
                )
            capture = Capture(request, self._continuous)
            self._by_id[capture.id] = capture
            while len(self._by_id) > MAX_REMEMBERED:
                self._by_id.popitem(last=False)
        capture.start()
        return capture

    def running(self) -> Capture | None:
        """The running capture, if any."""
        return next((capture for capture in tuple(self._by_id.values()) if capture.state == "running"), None)

    def get(self, capture_id: str) -> Capture:
        """The capture of that id. Raises CaptureNotFound."""
        capture = self._by_id.get(capture_id)
        if capture is None:
            raise CaptureNotFound(
                f"There is no capture {capture_id[:40]!r}.",
                "The server was restarted, or the capture is too old.",
            )
        return capture


def _target_object(progress: TargetProgress) -> dict[str, object]:
    return {
        "target": progress.target,
        "host": progress.host,
        "state": progress.state,
        "attempt": progress.attempt,
        "n_attempts": progress.n_attempts,
        "profiling_ms": progress.profiling_ms,
        "remaining_ms": progress.remaining_ms,
        "received_bytes": progress.received_bytes,
        "size_bytes": progress.size_bytes,
        "message": progress.message,
        "remedy": progress.remedy,
    }
