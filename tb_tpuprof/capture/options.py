"""The options of a capture: what to record, how persistently to try, their limits and their costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tb_tpuprof.capture.configuration import Value, parse_host_names, parse_mask, parse_settings
from tb_tpuprof.errors import BadParameter

GIB = 2**30


@dataclass(frozen=True)
class CaptureOptions:
    """The options for every target. Raises BadParameter if a value is out of its range.

    `configuration` are settings that only some devices know. `host_traceme_filter_mask`: None records events
    of all filters. `host_names`: one per target, or none. `session_id`: under which servers know the capture.
    `is_snapshot`: of a job that is profiled continuously, take what it has recorded so far.
    """

    duration_ms: int = 1000
    delay_ms: int = 0
    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    include_dataset_ops: bool = True
    num_tracing_attempts: int = 3
    timeout_s: int = 120  # of silence: collecting the profile takes longer than profiling
    retry_wait_s: float = 1.0  # before the second attempt; the wait doubles each time
    max_reply_bytes: int = 2 * GIB  # a larger profile is rejected before it is received
    configuration: tuple[tuple[str, Value], ...] = ()
    host_traceme_filter_mask: int | None = None
    host_names: tuple[str, ...] = ()
    session_id: str = ""
    is_snapshot: bool = False

    def __post_init__(self) -> None:
        for option in OPTIONS:
            value = getattr(self, option.name)
            if not option.minimum <= value <= option.maximum:
                raise BadParameter(option.name, value, option.allowed)

    @property
    def attempt_deadline_s(self) -> float:
        """How long one attempt waits for the reply to begin. Once it has begun, only silence ends it."""
        return self.timeout_s + (self.duration_ms + self.delay_ms) / 1000

    @property
    def total_deadline_s(self) -> float:
        """How long attempts may begin."""
        further = self.num_tracing_attempts - 1
        return self.attempt_deadline_s + further * (
            (self.duration_ms + self.delay_ms) / 1000 + 10 + MAX_WAIT_S
        )


MAX_WAIT_S = 15.0


@dataclass(frozen=True)
class Option:
    """One option as shown by the dialog and the command line; `choices` are (value, title, cost)."""

    name: str
    title: str
    minimum: int
    maximum: int
    help: str
    unit: str = ""
    choices: tuple[tuple[int, str, str], ...] = field(default=())

    @property
    def default(self) -> int:
        """The default value."""
        return int(_DEFAULTS[self.name])

    @property
    def allowed(self) -> str:
        """The allowed range in words."""
        return f"a whole number from {self.minimum} to {self.maximum}{' ' + self.unit if self.unit else ''}"


@dataclass(frozen=True)
class TextOption:
    """An option that is typed as text; empty by default. `has_lines`: one value per line."""

    name: str
    title: str
    help: str
    placeholder: str
    max_chars: int
    has_lines: bool = False


_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(CaptureOptions)}
_OFF = "No cost, no data."
OPTIONS = (
    Option(
        "duration_ms",
        "Duration",
        1,
        600_000,
        "How long to profile. A few steps are enough; longer profiles open more slowly.",
        "ms",
    ),
    Option(
        "host_tracer_level",
        "Host tracing",
        0,
        3,
        "How much of the program's work on the host's CPUs to record.",
        choices=(
            (0, "Off", f"{_OFF} Input pipeline and host tools stay empty."),
            (1, "Critical", "Almost no cost: only events that programs mark as essential, such as steps."),
            (2, "Info", "Low cost: operations, tf.data stages, transfers. Right for most jobs."),
            (
                3,
                "Verbose",
                "Also records cheap operations. May slow the host and make the profile several times larger.",
            ),
        ),
    ),
    Option(
        "device_tracer_level",
        "Device tracing",
        0,
        1,
        "Whether to record what runs on GPUs and TPUs.",
        choices=(
            (0, "Off", f"{_OFF} Device tools stay empty."),
            (1, "On", "Low cost: one record per kernel or operation."),
        ),
    ),
    Option(
        "python_tracer_level",
        "Python tracing",
        0,
        1,
        "Whether to record each call of a Python function.",
        choices=(
            (0, "Off", _OFF),
            (
                1,
                "On",
                "Records every call, which slows Python noticeably and makes the profile much larger. "
                "Keep the duration short.",
            ),
        ),
    ),
    Option(
        "delay_ms",
        "Delay",
        0,
        600_000,
        "How long to wait before the profile starts, at the same moment on all targets.",
        "ms",
    ),
    Option(
        "num_tracing_attempts",
        "Attempts",
        1,
        20,
        "How often to try if a target does not answer, is busy with another profile or had nothing to "
        "record. Waits between attempts increase.",
    ),
    Option(
        "timeout_s",
        "Timeout",
        1,
        3600,
        "How long a target may stay silent while it collects or sends the profile. Large profiles take "
        "minutes.",
        "s",
    ),
)


# Continuous profiling records levels only, and by default nothing of the host: without a ring for it, its
# events would fill the job's memory.
CONTINUOUS_OPTIONS = tuple(option for option in OPTIONS if option.choices)
CONTINUOUS_DEFAULTS = {"host_tracer_level": 0}
CONFIGURATION, FILTER_MASK, HOST_NAMES = (
    "advanced_configuration",
    "host_traceme_filter_mask",
    "override_hostnames",
)
TEXT_OPTIONS = (
    TextOption(
        CONFIGURATION,
        "Device settings",
        "`KEY=VALUE`, one per line: what only some devices can record. The capture guide lists the keys of "
        "TPUs and GPUs. `true` and `false` are booleans, whole numbers are sent as numbers, everything else "
        "as text.",
        "tpu_trace_mode=TRACE_COMPUTE",
        32_768,
        has_lines=True,
    ),
    TextOption(
        FILTER_MASK,
        "Host event filter",
        "Mask of the host events to record, of those that belong to a filter: bit 0 is memory. Empty records "
        "all.",
        "0x1",
        20,
    ),
    TextOption(
        HOST_NAMES,
        "Host names",
        "Names of the hosts in the run, one per target in the same order, separated by commas. Empty: the "
        "names that the profiles state.",
        "worker-0, worker-1",
        65_536,
    ),
)


def capture_options(given: Mapping[str, object]) -> CaptureOptions:
    """Options from named values, as in a request or on a command line. Raises BadParameter, also for unknown
    names.
    """
    option_of_name = {option.name: option for option in OPTIONS}
    text_option_of_name = {option.name: option for option in TEXT_OPTIONS}
    values: dict[str, int] = {}
    texts = dict.fromkeys(text_option_of_name, "")
    for name, value in given.items():
        if name in text_option_of_name:
            texts[name] = _text(text_option_of_name[name], value)
        elif name not in option_of_name:
            raise BadParameter(name, value, f"one of {', '.join((*option_of_name, *text_option_of_name))}")
        elif isinstance(value, bool) or not isinstance(value, int):
            raise BadParameter(name, value, option_of_name[name].allowed)
        else:
            values[name] = value
    return CaptureOptions(
        **values,  # type: ignore[arg-type]
        configuration=parse_settings(texts[CONFIGURATION].splitlines(), CONFIGURATION),
        host_traceme_filter_mask=parse_mask(texts[FILTER_MASK], FILTER_MASK),
        host_names=parse_host_names(texts[HOST_NAMES], HOST_NAMES),
    )


def _text(option: TextOption, value: object) -> str:
    if not isinstance(value, str) or len(value) > option.max_chars:
        raise BadParameter(option.name, value, f"text of at most {option.max_chars:,} characters")
    return value
