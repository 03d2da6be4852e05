"""Continuous profiling of running jobs: started once, each snapshot takes what was recorded since the last
one, until it is stopped.

    start ──▶ the job records ──▶ snapshot (`job.capture` with `is_snapshot`) ──▶ … ──▶ stop

TPUs record into a ring, so that only the latest events are kept. What other tracers record stays in the job's
memory until the next snapshot. Servers have no call that reports whether they are profiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.client import call_once, profile_request
from tb_tpuprof.capture.configuration import Value
from tb_tpuprof.capture.failures import without_continuous
from tb_tpuprof.capture.messages import START_CONTINUOUS, STOP_CONTINUOUS, message_class
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.errors import CaptureFailed

RING: tuple[str, Value] = ("tpu_circular_buffer_tracing", True)
_THREADS = 16
_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Outcome:
    """What one target answered; `message`, `remedy` and `reason` are empty if it did what was asked."""

    target: Target
    message: str = ""
    remedy: str = ""
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the target did what was asked."""
        return not self.message


def start(
    targets: Sequence[Target], options: CaptureOptions, cancel: Cancellation | None = None
) -> tuple[Outcome, ...]:
    """Begin to profile the targets, all at the same time; their outcomes, in order."""
    return _on_each(targets, partial(_start, options=options, cancel=cancel))


def stop(targets: Sequence[Target], cancel: Cancellation | None = None) -> tuple[Outcome, ...]:
    """End the profiling; what was not saved by a snapshot is lost. Outcomes in order."""
    return _on_each(targets, partial(_stop, cancel=cancel))


def continuous_options(options: CaptureOptions) -> CaptureOptions:
    """The options with TPUs recording into a ring, unless the user's settings say otherwise."""
    if any(key == RING[0] for key, _ in options.configuration):
        return options
    return replace(options, configuration=(*options.configuration, RING))


def snapshot_options(options: CaptureOptions) -> CaptureOptions:
    """The options of a snapshot: nothing is awaited before it, and it is tried once, since what an
    interrupted one had taken is gone.
    """
    return replace(options, is_snapshot=True, duration_ms=1, delay_ms=0, num_tracing_attempts=1)


def _start(target: Target, options: CaptureOptions, cancel: Cancellation | None) -> None:
    request = profile_request(continuous_options(options), 0, None, target.host_name)
    call_once(target, START_CONTINUOUS, request.SerializeToString(), _DEADLINE_S, cancel)


def _stop(target: Target, cancel: Cancellation | None) -> None:
    request = message_class("StopRequest")()
    call_once(target, STOP_CONTINUOUS, request.SerializeToString(), _DEADLINE_S, cancel)


def _on_each(targets: Sequence[Target], call: Callable[[Target], None]) -> tuple[Outcome, ...]:
    def outcome(target: Target) -> Outcome:
        try:
            call(target)
        except CaptureFailed as error:
            told = without_continuous(error)
            return Outcome(target, told.message, told.remedy, told.reason)
        return Outcome(target)

    with ThreadPoolExecutor(min(len(targets), _THREADS) or 1, "tpuprof-continuous") as pool:
        return tuple(pool.map(outcome, targets))
