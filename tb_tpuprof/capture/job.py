"""Several targets → one run with a file per target. They start together, are retried if that can help, and
the failure of one does not affect the others.

Each target has a thread, which ends with the capture; `capture` returns when all have ended.

    waiting → connecting → profiling → receiving → saved
                  ↑            │           │
                  └─ retrying ←┴───────────┘ → failed, cancelled
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.client import Repository, new_session, profile_once
from tb_tpuprof.capture.failures import PASSING, failure
from tb_tpuprof.capture.options import MAX_WAIT_S, CaptureOptions
from tb_tpuprof.capture.reply import Reply
from tb_tpuprof.capture.room import Place, Room
from tb_tpuprof.capture.targets import Target, file_stem, file_stems
from tb_tpuprof.errors import CaptureFailed, ProfilerError
from tb_tpuprof.ingest.storage.writing import RunFolder

logger = logging.getLogger("tb_tpuprof")
_GATHER_SECONDS = 2.0
_REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class TargetProgress:
    """Progress of one target. `host` is its file's name without suffix; `since_s`, on the monotonic clock, is
    the start of its state.
    """

    target: str
    host: str
    state: str = "waiting"
    attempt: int = 1
    n_attempts: int = 1
    profiling_ms: int = 0
    since_s: float = 0.0
    received_bytes: int = 0
    size_bytes: int | None = None
    message: str = ""
    remedy: str = ""
    reason: str = ""

    @property
    def remaining_ms(self) -> int | None:
        """Time until the profiling ends, delay included; None unless profiling."""
        if self.state != "profiling":
            return None
        return max(0, round(self.profiling_ms - (time.monotonic() - self.since_s) * 1000))


Observer = Callable[[int, TargetProgress], object]


def capture(
    targets: Sequence[Target],
    options: CaptureOptions,
    folder: RunFolder,
    observer: Observer | None = None,
    cancel: Cancellation | None = None,
    workers: Sequence[str] = (),
) -> tuple[TargetProgress, ...]:
    """Profile all targets into the run's folder; returns their final progress, in order. A failed target
    raises nothing.

    Calls `observer(i, progress)` at each change, on the target's thread. With `workers`, the first target
    profiles them all, and they write their files themselves. An interruption (Ctrl-C) cancels the capture,
    waits for the threads, and is raised again.
    """
    cancel = cancel or Cancellation()
    options = replace(options, session_id=folder.run)
    called_targets = targets[:1] if workers else targets
    gate = _Gate(len(called_targets), options.delay_ms)
    room = Room(folder.free_bytes, cancel, patience_s=options.timeout_s)
    job = _Job(options, folder, observer, cancel, tuple(workers), gate, room)
    captures = [
        _TargetCapture(job, i, target, stem)
        for i, (target, stem) in enumerate(zip(called_targets, file_stems(called_targets), strict=True))
    ]
    threads = [
        threading.Thread(
            target=target_capture.run, name=f"tb_tpuprof capture {target_capture.target}", daemon=True
        )
        for target_capture in captures
    ]
    with cancel.calling(job.gate.open):
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            cancel.set()
            for thread in threads:
                if thread.ident:
                    thread.join()
            raise
    return tuple(target_capture.progress for target_capture in captures)


class _Gate:
    """Holds connected targets until all are connected, for at most two seconds; then they start together, at
    one timestamp.
    """

    def __init__(self, n_targets: int, delay_ms: int) -> None:
        self._condition = threading.Condition()
        self._n_missing = n_targets
        self._opens_at = time.monotonic() + _GATHER_SECONDS
        self._delay_ns = delay_ms * 1_000_000
        self._start_ns = 0

    def arrive(self) -> None:
        """One target is connected, or has failed to connect."""
        with self._condition:
            self._n_missing -= 1
            if self._n_missing <= 0:
                self._set_open()

    def open(self) -> None:
        """Release all waiting targets."""
        with self._condition:
            self._set_open()

    def wait(self) -> int:
        """Wait for the gate to open; returns the Unix time (ns) at which to start, 0 for at once.

        Without a delay there is no start time, because a server with a slow clock would wait for it.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._start_ns > 0, max(0.0, self._opens_at - time.monotonic()))
            self._set_open()
            is_ahead = self._delay_ns and self._start_ns > time.time_ns()
            return self._start_ns if is_ahead else 0

    def _set_open(self) -> None:
        if not self._start_ns:
            self._start_ns = time.time_ns() + self._delay_ns
            self._condition.notify_all()


@dataclass(frozen=True)
class _Job:
    """State shared by all targets of a capture."""

    options: CaptureOptions
    folder: RunFolder
    observer: Observer | None
    cancel: Cancellation
    workers: tuple[str, ...]
    gate: _Gate
    room: Room


class _TargetCapture:
    """The capture of one target, from waiting to its end."""

    def __init__(self, job: _Job, index: int, target: Target, host: str) -> None:
        self.job = job
        self.index = index
        self.target = target
        options = job.options
        self.progress = TargetProgress(
            str(target), host, n_attempts=options.num_tracing_attempts, since_s=time.monotonic()
        )
        self._ends_at = time.monotonic() + options.total_deadline_s
        self._has_arrived = False

    def run(self) -> None:
        """Make all attempts; every failure ends in `progress`."""
        try:
            self._attempts()
        except CaptureFailed as error:
            self._set(
                "cancelled" if self.job.cancel.is_set() else "failed",
                message=error.message,
                remedy=error.remedy,
                reason=error.reason,
            )
        except ProfilerError as error:
            self._set("failed", message=error.message, remedy=error.remedy, reason=error.kind)
        except MemoryError:
            remedy = (
                "Profile for a shorter time or with lower tracing levels: the profile is kept in memory "
                "while it is being received."
            )
            self._set(
                "failed",
                message=f"The profile of {self.target} does not fit into memory.",
                remedy=remedy,
                reason="memory",
            )
        except Exception:
            logger.exception("capture of %s failed", self.target)
            self._set(
                "failed",
                message="Internal error of the capture; the log has the details.",
                remedy="Please report it.",
            )
        finally:
            self._arrive()

    def _attempts(self) -> None:
        options = self.job.options
        for attempt in range(1, options.num_tracing_attempts + 1):
            try:
                return self._attempt(attempt)
            except CaptureFailed as error:
                wait_s = waiting_s(options.retry_wait_s, attempt)
                is_last = (
                    attempt == options.num_tracing_attempts or time.monotonic() + wait_s >= self._ends_at
                )
                if is_last or error.reason not in PASSING:
                    raise
                self._arrive()
                self._set("retrying", message=error.message, remedy=error.remedy, reason=error.reason)
                if self.job.cancel.wait(wait_s):
                    raise failure(self.target, "cancelled") from None

    def _attempt(self, attempt: int) -> None:
        self._set("connecting", attempt=attempt, received_bytes=0, size_bytes=None)
        if self.job.workers:
            return self._save_on_servers(self._repository())
        with self.job.room.place() as place:
            is_saved = self._save_reply(place)
        if not is_saved and self.job.options.is_snapshot:
            raise failure(self.target, "garbage", what="it has no profile in it")
        if not is_saved:
            self._save_on_servers(self._repository())

    def _save_reply(self, place: Place) -> bool:
        """Write the profile that the target returns; False if it returns none."""
        reply = self._profile(None, place)
        if reply.is_empty:
            raise failure(self.target, "empty_snapshot" if self.job.options.is_snapshot else "empty")
        if not reply.pieces:
            return False
        stem = self.target.host_name or file_stem(reply.host or self.target.host, self.target.port)
        saved = self.job.folder.save(stem, reply.pieces)
        self.progress = replace(self.progress, host=saved.host)
        self._set(
            "saved",
            received_bytes=saved.size_bytes,
            size_bytes=saved.size_bytes,
            message=f"The run had a file {stem} already, so this one is {saved.host}."
            if saved.host != stem
            else "",
        )
        return True

    def _profile(self, repository: Repository | None, place: Place) -> Reply:
        def stage(name: str, received: int, size: int) -> None:
            if place.is_too_slow(received):
                raise failure(self.target, "slow", seconds=self.job.options.timeout_s)
            self._stage(name, received, size)

        return profile_once(
            self.target, self.job.options, self.job.cancel, self._begin, stage, repository, place.take
        )

    def _save_on_servers(self, repository: Repository) -> None:
        """For several workers, and for servers that return no profile: they write the files, if they can
        reach the logdir.
        """
        folder, job = self.job.folder, self.job
        before = folder.file_sizes()
        if job.workers:
            self._stage("profiling", 0, 0)
            reply = new_session(self.target, job.options, job.workers, repository, job.cancel)
        else:
            with job.room.place() as place:
                reply = self._profile(repository, place)
        after = folder.file_sizes()
        size = sum(bytes_now for host, bytes_now in after.items() if before.get(host) != bytes_now)
        if not size:
            raise (
                failure(self.target, "empty")
                if reply.is_empty
                else failure(self.target, "elsewhere", where=folder.path)
            )
        self._set(
            "saved",
            received_bytes=size,
            size_bytes=size,
            message=f"Written by the profiled process: {len(after)} file(s).",
        )

    def _repository(self) -> Repository:
        return Repository(self.job.folder.repository, self.job.folder.run, self.progress.host)

    def _begin(self) -> int:
        self._arrive()
        return self.job.gate.wait()

    def _arrive(self) -> None:
        if not self._has_arrived:
            self._has_arrived = True
            self.job.gate.arrive()

    def _stage(self, name: str, received: int, size: int) -> None:
        is_new = name != self.progress.state
        if is_new or received == size or time.monotonic() - self.progress.since_s > _REPORT_SECONDS:
            duration_ms = self.job.options.duration_ms + (
                self.job.options.delay_ms if self.progress.attempt == 1 else 0
            )
            self._set(name, profiling_ms=duration_ms, received_bytes=received, size_bytes=size or None)

    def _set(self, state: str, **changes: Any) -> None:
        values = {"message": "", "remedy": "", "reason": "", **changes}
        self.progress = replace(self.progress, state=state, since_s=time.monotonic(), **values)
        if self.job.observer:
            self.job.observer(self.index, self.progress)


def waiting_s(first_s: float, attempt: int) -> float:
    """Waiting time after an attempt: doubles with each attempt up to MAX_WAIT_S, randomized by up to a
    quarter.

    Randomized so that targets that failed together do not retry together.
    """
    return float(min(first_s * 2 ** (attempt - 1), MAX_WAIT_S) * random.uniform(0.75, 1.25))
