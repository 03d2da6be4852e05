"""Continuous profiling from the page: what this server has started, by target. Snapshots are captures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from tb_tpuprof.capture.continuous import Outcome, start, stop
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.serve.capture_request import CaptureRequest

ACTIONS = ("start", "stop")
_ALREADY = "continuous"
_ENDED = ("not_continuous", "refused")  # the server, or the job, does not profile any longer
MAX_REMEMBERED = 1024


class Continuous:
    """The targets that are profiled continuously, as far as the calls of this server have shown: profiler
    servers cannot be asked. A job that ends, or that somebody else stops, stays listed until the next call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started_unix_ms: dict[str, int | None] = {}  # None: somebody else started it

    def rows(self) -> list[dict[str, object]]:
        """A row per target that is being profiled, in the order in which this server learned of them."""
        with self._lock:
            return [
                {"target": target, "started_unix_ms": started_ms}
                for target, started_ms in self._started_unix_ms.items()
            ]

    def change(self, action: str, request: CaptureRequest) -> list[dict[str, object]]:
        """Start or stop; a row per target with its outcome."""
        targets = request.addresses()
        outcomes = start(targets, request.options) if action == "start" else stop(targets)
        for outcome in outcomes:
            self.note(action, str(outcome.target), outcome.reason)
        return [_row(outcome) for outcome in outcomes]

    def note(self, action: str, target: str, reason: str) -> None:
        """Remember what a call to a target has shown; `reason` is why it failed, empty if it did not."""
        with self._lock:
            if action == "start" and not reason:
                self._started_unix_ms[target] = time.time_ns() // 1_000_000
            elif (action == "snapshot" and not reason) or reason == _ALREADY:
                self._started_unix_ms.setdefault(target, None)
            elif (action == "stop" and not reason) or reason in _ENDED:
                self._started_unix_ms.pop(target, None)
            while len(self._started_unix_ms) > MAX_REMEMBERED:
                del self._started_unix_ms[next(iter(self._started_unix_ms))]


def action_of(body: Mapping[str, Any]) -> str:
    """The action that a request names. Raises BadParameter."""
    action = body.get("action")
    if not isinstance(action, str) or action not in ACTIONS:
        raise BadParameter("action", action, " or ".join(ACTIONS))
    return action


def _row(outcome: Outcome) -> dict[str, object]:
    return {
        "target": str(outcome.target),
        "is_ok": outcome.is_ok,
        "message": outcome.message,
        "remedy": outcome.remedy,
    }
