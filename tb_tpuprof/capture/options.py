"""What to record and how persistently to try: the options of a capture, their limits, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tb_tpuprof.errors import BadParameter

GIB = 2**30


@dataclass(frozen=True)
class CaptureOptions:
    """What every target is asked for. Raises BadParameter where a value is out of its range."""

    duration_ms: int = 1000
    delay_ms: int = 0
    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    include_dataset_ops: bool = True
    num_tracing_attempts: int = 3
    retry_wait_s: float = 1.0  # before the second attempt; each further wait is twice as long
    min_deadline_s: float = 60.0  # per attempt: collecting and sending takes longer than the profiling itself
    max_reply_bytes: int = 2 * GIB  # a larger profile is refused before it is received

    def __post_init__(self) -> None:
        for option in OPTIONS:
            value = getattr(self, option.name)
            if not option.minimum <= value <= option.maximum:
                raise BadParameter(option.name, value, option.allowed)

    @property
    def attempt_deadline_s(self) -> float:
        """How long one attempt may take."""
        return max(self.min_deadline_s, 2 * self.duration_ms / 1000) + self.delay_ms / 1000

    @property
    def total_deadline_s(self) -> float:
        """How long all attempts together may take."""
        further = self.num_tracing_attempts - 1
        return self.attempt_deadline_s + further * (
            (self.duration_ms + self.delay_ms) / 1000 + 10 + MAX_WAIT_S
        )


MAX_WAIT_S = 15.0


@dataclass(frozen=True)
class Option:
    """One option as the dialog and the command line show it; `choices` are (value, title, what it costs)."""

    name: str
    title: str
    minimum: int
    maximum: int
    help: str
    unit: str = ""
    choices: tuple[tuple[int, str, str], ...] = field(default=())

    @property
    def default(self) -> int:
        """The value where none is given."""
        return int(_DEFAULTS[self.name])

    @property
    def allowed(self) -> str:
        """The range in words."""
        return f"a whole number from {self.minimum} to {self.maximum}{' ' + self.unit if self.unit else ''}"


_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(CaptureOptions)}
_OFF = "Costs nothing, and shows nothing."
OPTIONS = (
    Option(
        "duration_ms",
        "Duration",
        1,
        600_000,
        "How long to profile: a few steps are enough; longer is slower to open.",
        "ms",
    ),
    Option(
        "host_tracer_level",
        "Host tracing",
        0,
        3,
        "How much of the program on the host's CPUs is recorded.",
        choices=(
            (0, "Off", f"{_OFF} Input pipeline and host tools stay empty."),
            (1, "Critical", "Hardly any cost: only what programs marked as essential, such as steps."),
            (2, "Info", "Little cost: operations, tf.data stages, transfers. Right for most jobs."),
            (
                3,
                "Verbose",
                "May slow the host and make the profile several times as large: cheap operations too.",
            ),
        ),
    ),
    Option(
        "device_tracer_level",
        "Device tracing",
        0,
        1,
        "Whether what ran on GPUs and TPUs is recorded.",
        choices=(
            (0, "Off", f"{_OFF} Device tools stay empty."),
            (1, "On", "Little cost: a record for each kernel or operation."),
        ),
    ),
    Option(
        "python_tracer_level",
        "Python tracing",
        0,
        1,
        "Whether each call of a Python function is recorded.",
        choices=(
            (0, "Off", _OFF),
            (
                1,
                "On",
                "Slows Python noticeably and makes the profile much larger: every call is recorded. "
                "Keep the duration short.",
            ),
        ),
    ),
    Option(
        "delay_ms",
        "Delay",
        0,
        600_000,
        "How long to wait before the profile begins, at the same moment on all targets.",
        "ms",
    ),
    Option(
        "num_tracing_attempts",
        "Attempts",
        1,
        20,
        "How often to try where a target does not answer, is busy with another profile or had nothing to "
        "record. The waits between grow.",
    ),
)


def capture_options(given: Mapping[str, object]) -> CaptureOptions:
    """From named values, as a request or a command line brings them. Raises BadParameter, also for names that
    are no options.
    """
    known = {option.name: option for option in OPTIONS}
    values: dict[str, int] = {}
    for name, value in given.items():
        if name not in known:
            raise BadParameter(name, value, f"one of {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadParameter(name, value, known[name].allowed)
        values[name] = value
    return CaptureOptions(**values)  # type: ignore[arg-type]
