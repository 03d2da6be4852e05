"""Running jobs → about one row of numbers per second: from the profiler's Monitor call, else from short
profiles.

    target ─ Monitor ──▶ text and numbers of the TPU's counters ─────────────┐
       └─ UNIMPLEMENTED: Profile for the same time ─ measure(xspace) ────────┴─▶ one MonitorSample per target
       and query

This module reads no traces: the session passes in `measure`. Each query samples all targets in parallel.
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
_GIVE_UP_AFTER = 3  # consecutive queries that fail on every target
_TRANSIENT = frozenset(("busy", "empty", "overloaded"))  # the job is alive, but has no numbers right now
_THREADS = 16


class Measured(Protocol):
    """Results of `measure` for a profile; None for unknown numbers. See `analysis/overview/live.py`."""

    @property
    def device_type(self) -> str:
        """Name of the accelerator, or CPU."""

    @property
    def n_cores(self) -> int | None:
        """Devices of the host (TPU: cores)."""

    @property
    def matrix_unit_fraction(self) -> float | None:
        """Work of the matrix units / their peak."""

    @property
    def device_idle_fraction(self) -> float | None:
        """Share of the time in which the accelerators are idle."""

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
        """Number of steps measured."""

    @property
    def input_fraction_avg(self) -> float | None:
        """Share of the step time spent waiting for input, averaged over steps."""

    @property
    def input_fraction_min(self) -> float | None:
        """The same for the step that waits least."""

    @property
    def input_fraction_max(self) -> float | None:
        """The same for the step that waits most."""


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
    """One target in one query. `n` counts samples over all targets. `source` is how it was measured; empty if
    it failed.

    Fractions are 0-1 and times picoseconds. A sample with an `error` (and `remedy`) has no numbers; `is_busy`
    means that the target answers but has no numbers right now. Numbers that level 1 leaves out, or that the
    server does not report, are None.
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
        """The fields by name, as in JSON."""
        return dict(vars(self))


def monitor(
    targets: Sequence[Target],
    options: MonitorOptions,
    measure: Callable[[bytes | memoryview], Measured],
    cancel: Cancellation | None = None,
) -> Iterator[MonitorSample]:
    """Samples as they arrive, `options.n_queries` per target; ends at once when cancelled or closed.

    A failed query yields a sample with an error, and the next query tries again. If every target fails with a
    lasting error, raises the last CaptureFailed: at once in the first query, later after three such queries
    in a row.
    """
    inner = Cancellation()
    sampler = _Sampler(options, measure, inner)
    n, query, n_failed = 0, 0, 0
    with (
        (cancel or Cancellation()).calling(inner.set),
        ThreadPoolExecutor(min(len(targets), _THREADS), "tpuprof-monitor") as pool,
    ):
        try:
            while not inner.is_set() and (query < options.n_queries or not options.n_queries):
                query_start_s = time.monotonic()
                errors: list[CaptureFailed | None] = []
                for future in as_completed([pool.submit(sampler.sample, target) for target in targets]):
                    sample, error = future.result()
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
                    inner.wait(options.interval_ms / 1000 - (time.monotonic() - query_start_s))
        finally:
            inner.set()


class _Sampler:
    """Samples targets, and remembers which of them have no Monitor call."""

    def __init__(
        self, options: MonitorOptions, measure: Callable[[bytes | memoryview], Measured], cancel: Cancellation
    ) -> None:
        self.options = options
        self.measure = measure
        self.cancel = cancel
        self.without_monitor: set[Target] = set()

    def sample(self, target: Target) -> tuple[MonitorSample, CaptureFailed | None]:
        """One sample, and the CaptureFailed if sampling failed."""
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


def _of_profile(target: Target, measured: Measured, level: int) -> MonitorSample:
    first = MonitorSample(
        0,
        0,
        _now_ms(),
        str(target),
        PROFILE,
        measured.device_type,
        matrix_unit_fraction=measured.matrix_unit_fraction,
    )
    if level < 2:
        return first
    return replace(
        first,
        n_cores=measured.n_cores,
        device_idle_fraction=measured.device_idle_fraction,
        step_time_avg_ps=measured.step_time_avg_ps,
        step_time_min_ps=measured.step_time_min_ps,
        step_time_max_ps=measured.step_time_max_ps,
        n_steps=measured.n_steps,
        input_fraction_avg=measured.input_fraction_avg,
        input_fraction_min=measured.input_fraction_min,
        input_fraction_max=measured.input_fraction_max,
    )


def _of_rpc(target: Target, numbers: RpcNumbers, level: int) -> MonitorSample:
    first = MonitorSample(
        0,
        0,
        _now_ms(),
        str(target),
        RPC,
        numbers.device_type,
        matrix_unit_fraction=numbers.matrix_unit_fraction,
    )
    if level < 2:
        return first
    avg_ps, min_ps, max_ps = numbers.step_time_ps
    avg, low, high = numbers.input_fraction
    return replace(
        first,
        n_cores=numbers.n_cores,
        device_idle_fraction=numbers.device_idle_fraction,
        step_time_avg_ps=avg_ps,
        step_time_min_ps=min_ps,
        step_time_max_ps=max_ps,
        input_fraction_avg=avg,
        input_fraction_min=low,
        input_fraction_max=high,
    )
