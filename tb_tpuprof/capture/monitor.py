"""Running jobs → a row of numbers each second or so: through the profiler's Monitor call, else from short
profiles.

    target ─ Monitor ──▶ text and numbers of the TPU's counters ─────────────┐
       └─ UNIMPLEMENTED: Profile for the same time ─ measure(xspace) ────────┴─▶ MonitorSample, one a target
       and query

This module reads no trace: `measure` is given by whoever may (the session). Targets are asked side by side,
each query anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Protocol

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.client import monitor_once, profile_once
from tb_tpuprof.capture.failures import failure
from tb_tpuprof.capture.monitor_text import RpcNumbers, numbers_of
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.errors import BadParameter, CaptureFailed, ProfilerError

RPC, PROFILE = "monitor_rpc", "profile"
MIN_INTERVAL_MS, MAX_INTERVAL_MS = 10, 600_000
MAX_QUERIES = 1_000_000
MAX_PROFILE_BYTES = 512 * 2**20
_GIVE_UP_AFTER = 3  # queries in a row that fail on every target
_TRANSIENT = frozenset(
    ("busy", "empty", "overloaded")
)  # a job that is alive, but has nothing to tell just now
_THREADS = 16


class Measured(Protocol):
    """What `measure` makes of a profile; None where a number is not known. See
    `analysis/overview/live.py`.
    """

    @property
    def device_type(self) -> str:
        """Name of the accelerator, or CPU."""

    @property
    def n_cores(self) -> int | None:
        """Devices of the host (TPU: cores)."""

    @property
    def matrix_unit_fraction(self) -> float | None:
        """Work of the matrix units / what they could do."""

    @property
    def device_idle_fraction(self) -> float | None:
        """Share of the time in which the accelerators idle."""

    @property
    def step_time_avg_ps(self) -> float | None:
        """Mean step time."""

    @property
    def step_time_min_ps(self) -> float | None:
        """Shortest step."""

    @property
    def step_time_max_ps(self) -> float | None:
        """Longest step."""

    @property
    def n_steps(self) -> int | None:
        """Steps that were measured."""

    @property
    def input_fraction_avg(self) -> float | None:
        """Share of the steps that waits for input."""

    @property
    def input_fraction_min(self) -> float | None:
        """The same of the step that waits least."""

    @property
    def input_fraction_max(self) -> float | None:
        """The same of the step that waits most."""


@dataclass(frozen=True)
class MonitorOptions:
    """`level` 1: device type and matrix units; 2: everything. `n_queries` 0: until cancelled. Raises
    BadParameter.
    """

    level: int = 2
    interval_ms: int = 1000
    n_queries: int = 0

    def __post_init__(self) -> None:
        limits = (("monitoring_level", self.level, 1, 2), ("num_queries", self.n_queries, 0, MAX_QUERIES))
        for name, value, low, high in (
            *limits,
            ("interval_ms", self.interval_ms, MIN_INTERVAL_MS, MAX_INTERVAL_MS),
        ):
            if not low <= value <= high:
                raise BadParameter(name, value, f"a whole number from {low} to {high}")


@dataclass(frozen=True)
class MonitorSample:
    """One target in one query. `n` counts samples over all targets. `source` says how it was measured; empty
    where it failed.

    Fractions are 0-1 and times picoseconds. With `error` (and `remedy`) in words there are no numbers, and
    `is_busy` says that the target answers but has nothing to tell just now; what level 1 does not ask for, or
    the server does not tell, is None.
    """

    n: int
    query: int
    time_unix_ms: int
    target: str
    source: str = ""
    device_type: str = ""
    n_cores: int | None = None
    matrix_unit_fraction: float | None = None
    device_idle_fraction: float | None = None
    step_time_avg_ps: float | None = None
    step_time_min_ps: float | None = None
    step_time_max_ps: float | None = None
    n_steps: int | None = None
    input_fraction_avg: float | None = None
    input_fraction_min: float | None = None
    input_fraction_max: float | None = None
    error: str = ""
    remedy: str = ""
    is_busy: bool = False

    def row(self) -> dict[str, str | int | float | bool | None]:
        """The fields by name, as they stand in JSON."""
        return dict(vars(self))


def monitor(
    targets: Sequence[Target],
    options: MonitorOptions,
    measure: Callable[[bytes | memoryview], Measured],
    cancel: Cancellation | None = None,
) -> Iterator[MonitorSample]:
    """Samples as they come, `options.n_queries` for each target; ends at once when cancelled or closed.

    A query that fails becomes a sample with an error, and the next one tries again. Raises the last
    CaptureFailed when no target could be asked: at the first query if all fail in a way that lasts, later
    after three such queries in a row.
    """
    inner = Cancellation()
    asking = _Asking(options, measure, inner)
    n, query, n_failed = 0, 0, 0
    with (
        (cancel or Cancellation()).calling(inner.set),
        ThreadPoolExecutor(min(len(targets), _THREADS), "tpuprof-monitor") as pool,
    ):
        try:
            while not inner.is_set() and (query < options.n_queries or not options.n_queries):
                begun = time.monotonic()
                errors: list[CaptureFailed | None] = []
                for done in as_completed([pool.submit(asking.ask, target) for target in targets]):
                    sample, error = done.result()
                    errors.append(error)
                    if inner.is_set():
                        return
                    yield replace(sample, n=n, query=query)
                    n += 1
                lasting = [error for error in errors if error and error.reason not in _TRANSIENT]
                n_failed = n_failed + 1 if len(lasting) == len(targets) else 0
                if lasting and (n_failed >= _GIVE_UP_AFTER or (n_failed and not query)):
                    raise lasting[-1]
                query += 1
                if query != options.n_queries:
                    inner.wait(options.interval_ms / 1000 - (time.monotonic() - begun))
        finally:
            inner.set()


class _Asking:
    """Asks targets, and remembers which of them have no Monitor call."""

    def __init__(
        self, options: MonitorOptions, measure: Callable[[bytes | memoryview], Measured], cancel: Cancellation
    ) -> None:
        self.options = options
        self.measure = measure
        self.cancel = cancel
        self.without_monitor: set[Target] = set()

    def ask(self, target: Target) -> tuple[MonitorSample, CaptureFailed | None]:
        """One sample; with what failed, if something did."""
        try:
            return self._sample(target), None
        except CaptureFailed as error:
            return _empty(target, error.message, error.remedy, error.reason in _TRANSIENT), error
        except ProfilerError as error:
            return _empty(target, error.message, error.remedy), None
        except MemoryError:
            return _empty(
                target,
                f"The profile of {target} is too large for the machine's memory.",
                "Choose a shorter interval.",
            ), None

    def _sample(self, target: Target) -> MonitorSample:
        if target not in self.without_monitor:
            try:
                reply = monitor_once(target, self.options.level, self.options.interval_ms, cancel=self.cancel)
                return _of_rpc(target, numbers_of(reply), self.options.level)
            except CaptureFailed as error:
                if error.reason != "unimplemented":
                    raise
                self.without_monitor.add(target)
        options = CaptureOptions(
            duration_ms=self.options.interval_ms, num_tracing_attempts=1, max_reply_bytes=MAX_PROFILE_BYTES
        )
        profile = profile_once(target, options, self.cancel)
        if profile.is_empty or not profile.pieces:
            raise failure(target, "empty")
        data = profile.pieces[0] if len(profile.pieces) == 1 else b"".join(profile.pieces)
        return _of_profile(target, self.measure(data), self.options.level)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _empty(target: Target, error: str, remedy: str, is_busy: bool = False) -> MonitorSample:
    return MonitorSample(0, 0, _now_ms(), str(target), error=error, remedy=remedy, is_busy=is_busy)


def _of_profile(target: Target, found: Measured, level: int) -> MonitorSample:
    first = MonitorSample(
        0,
        0,
        _now_ms(),
        str(target),
        PROFILE,
        found.device_type,
        matrix_unit_fraction=found.matrix_unit_fraction,
    )
    if level < 2:
        return first
    return replace(
        first,
        n_cores=found.n_cores,
        device_idle_fraction=found.device_idle_fraction,
        step_time_avg_ps=found.step_time_avg_ps,
        step_time_min_ps=found.step_time_min_ps,
        step_time_max_ps=found.step_time_max_ps,
        n_steps=found.n_steps,
        input_fraction_avg=found.input_fraction_avg,
        input_fraction_min=found.input_fraction_min,
        input_fraction_max=found.input_fraction_max,
    )


def _of_rpc(target: Target, found: RpcNumbers, level: int) -> MonitorSample:
    first = MonitorSample(
        0, 0, _now_ms(), str(target), RPC, found.device_type, matrix_unit_fraction=found.matrix_unit_fraction
    )
    if level < 2:
        return first
    avg_ps, min_ps, max_ps = found.step_time_ps
    avg, low, high = found.input_fraction
    return replace(
        first,
        n_cores=found.n_cores,
        device_idle_fraction=found.device_idle_fraction,
        step_time_avg_ps=avg_ps,
        step_time_min_ps=min_ps,
        step_time_max_ps=max_ps,
        input_fraction_avg=avg,
        input_fraction_min=low,
        input_fraction_max=high,
    )
