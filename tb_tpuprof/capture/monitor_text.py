"""A Monitor reply, its numbers and its text → numbers in our units.

The reply's numbers win if they are set (`response_type` says how many are); device and cores are only in the
text:

    TPU type: TPU v3
    Number of TPU cores: 8 (Replica count = 8, num cores per replica = 1)
    TPU idle time (lower is better): 36.9%
    Utilization of TPU Matrix Units (higher is better): 10.7%
    Step time: 90.8ms (avg), 89.8ms (min), 92.2ms (max)
    Infeed percentage: 0.000% (avg), 0.000% (min), 0.000% (max)
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

Three = tuple[float | None, float | None, float | None]
_NONE: Three = (None, None, None)
_PS_PER_MS = 1e9
# Units of step times, in ps; the service also writes thousands of milliseconds as "kms".
_UNITS_PS = {"ns": 1e3, "us": 1e6, "µs": 1e6, "ms": 1e9, "kms": 1e12, "s": 1e12, "ks": 1e15}
_LINE = re.compile(r"^[ \t]*([A-Za-z][^:\n]{0,80}):[ \t]*([^\n]{0,300})", re.MULTILINE)
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_PERCENT = re.compile(rf"{_NUMBER}\s*%?")
_TIME = re.compile(rf"{_NUMBER}\s*(kms|ks|ms|us|µs|ns|s)\b")


class Reply(Protocol):
    """The parts of a MonitorReply (`capture/client.py`) that are read here."""

    @property
    def text(self) -> str:
        """The server's text."""

    @property
    def response_type(self) -> int:
        """Which numbers are set: 0 none, 1 matrix units, 2 also idle time, 3 also steps and infeed."""

    @property
    def device_idle_percent(self) -> float:
        """0-100."""

    @property
    def matrix_unit_percent(self) -> float:
        """0-100."""

    @property
    def step_time_ms(self) -> tuple[float, float, float]:
        """Average, minimum, maximum."""

    @property
    def infeed_percent(self) -> tuple[float, float, float]:
        """Average, minimum, maximum, 0-100."""


@dataclass(frozen=True)
class RpcNumbers:
    """Numbers of a Monitor reply. Tuples have average, minimum and maximum. None: not reported."""

    device_type: str = ""
    n_cores: int | None = None
    matrix_unit_fraction: float | None = None
    device_idle_fraction: float | None = None
    step_time_ps: Three = _NONE
    input_fraction: Three = _NONE


def numbers_of(reply: Reply) -> RpcNumbers:
    """The reply in our units, without numbers that are negative or not finite."""
    lines = {key.strip().lower(): value for key, value in _LINE.findall(reply.text[:20_000])}
    cores = re.match(r"[0-9]{1,6}\b", _line(lines, "number of"))
    device = _line(lines, "tpu type") or _line(lines, "device type")
    matrix, idle = (_percents(_line(lines, key))[0] for key in ("utilization of", "tpu idle time"))
    times, infeed = _times(_line(lines, "step time")), _percents(_line(lines, "infeed percentage"))
    if reply.response_type >= 1:
        matrix = _share(reply.matrix_unit_percent)
    if reply.response_type >= 2:
        idle = _share(reply.device_idle_percent)
    if reply.response_type >= 3:
        times, infeed = _three(reply.step_time_ms, _PS_PER_MS), _three(reply.infeed_percent, 0.01)
    device_type = " ".join("".join(c if c.isprintable() else " " for c in device).split())[:80]
    return RpcNumbers(device_type, int(cores[0]) if cores else None, matrix, idle, times, infeed)


def _line(lines: dict[str, str], key: str) -> str:
    return next((value.strip() for name, value in lines.items() if name.startswith(key)), "")


def _valid(value: float) -> float | None:
    return value if math.isfinite(value) and value >= 0 else None


def _share(percent: float) -> float | None:
    valid_percent = _valid(percent)
    return None if valid_percent is None else min(valid_percent / 100, 1.0)


def _three(values: tuple[float, float, float], scale: float) -> Three:
    avg, low, high = (None if (valid := _valid(value)) is None else valid * scale for value in values)
    return avg, low, high


def _percents(text: str) -> Three:
    shares = [_share(float(value)) for value in _PERCENT.findall(text)[:3]]
    avg, low, high = (*shares, None, None, None)[:3]
    return avg, low, high


def _times(text: str) -> Three:
    times = [_valid(float(value) * _UNITS_PS[unit]) for value, unit in _TIME.findall(text)[:3]]
    avg, low, high = (*times, None, None, None)[:3]
    return avg, low, high
