"""Diagnoses and their findings: cause, culprit, share of the step, evidence, expected gain and fix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tb_tpuprof.analysis.diagnosis.causes import Cause

Level = Literal["good", "warn", "bad", "unknown"]
Confidence = Literal["high", "medium", "low"]
Kind = Literal["function", "operation", "program", "stage", "annotation", "call", "host", "thread", ""]


@dataclass(frozen=True)
class Culprit:
    """What to change. `file` and `line` locate a function's definition; empty and 0 for anything else."""

    kind: Kind = ""
    name: str = ""
    file: str = ""
    line: int = 0

    @property
    def title(self) -> str:
        """`batches` (gen.py:15); empty without a name."""
        if not self.name:
            return ""
        return f"`{self.name}` ({self.file}:{self.line})" if self.file else f"`{self.name}`"


@dataclass(frozen=True)
class Evidence:
    """An observation in words, with its place on the timeline. Times in ps on the host's clock; -1 without a
    place.
    """

    text: str
    host: str = ""
    start_ps: int = -1
    end_ps: int = -1


@dataclass(frozen=True)
class Finding:
    """One cause of lost time. Times in ps per step, means over the steps; `share` is of the mean step.

    `gain_ps`: lower and upper bound of the time that the step would save without the cause, None where no
    model estimates it. `capture_option`: the option that would show the culprit, if this trace does not.
    `rank_ps`: the time that ranks it, if its gain does not.
    """

    cause: Cause
    sentence: str
    time_ps: float
    share: float
    reason: str = ""
    culprit: Culprit = Culprit()
    host: str = ""
    base: str = "of the mean step"
    gain_ps: tuple[float, float] | None = None
    fix: str = ""
    snippet: str = ""
    evidence: tuple[Evidence, ...] = ()
    confidence: Confidence = "high"
    capture_option: str = ""
    rank_ps: float | None = None

    @property
    def docs(self) -> str:
        """The documentation page of its cause."""
        return f"causes/{self.cause.value}"

    @property
    def rank(self) -> float:
        """The amount to rank findings by, in ps per step: the likely gain, or the time if no model gives one.

        The bounds of a gain are factors of the time, so the likely gain is their geometric mean. The measured
        gains of `make exam` have their medians there.
        """
        if self.rank_ps is not None:
            return self.rank_ps
        if self.gain_ps is None:
            return self.time_ps
        least, most = self.gain_ps
        return math.sqrt(least * most) if least > 0 else most / 2


@dataclass(frozen=True)
class CauseTime:
    """Mean time per step of one cause in ps; the causes of a diagnosis add up to the step."""

    cause: Cause
    time_ps: float
    share: float


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis: its sentence, findings by gain, and the step time by cause.

    `is_detailed`: it is based on events of the steps' own threads, or its first finding names a culprit;
    otherwise only the classes of the steps' time are known. `note`: the hosts that it covers, if not all.
    """

    level: Level
    text: str
    step_time_ps: float
    n_steps: int
    findings: tuple[Finding, ...] = ()
    causes: tuple[CauseTime, ...] = ()
    is_detailed: bool = False
    note: str = ""

    @property
    def top(self) -> Finding | None:
        """The finding of the sentence; None if the run is healthy."""
        return (
            next((one for one in self.findings if one.cause != Cause.WARM_UP), None)
            if self.level != "good"
            else None
        )

    @property
    def category(self) -> str:
        """The category of the steps' breakdown that sets the sentence's color."""
        return _CATEGORIES.get(self.top.cause, "other") if self.top else "host_compute"


_CATEGORIES = {
    Cause.COMPILATION: "compilation",
    Cause.INPUT: "input",
    Cause.PYTHON: "host_python",
    Cause.SYNCHRONIZATION: "host_wait",
    Cause.CALLBACKS: "host_python",
    Cause.DISPATCH: "kernel_launch",
    Cause.PERIODIC: "host_python",
    Cause.TRANSFERS: "input",
    Cause.COMMUNICATION: "device_collectives",
    Cause.CONTENTION: "host_wait",
}


def shares(times: Sequence[tuple[Cause, float]], step_ps: float) -> tuple[CauseTime, ...]:
    """Causes with time, longest first."""
    ordered = sorted(((cause, time) for cause, time in times if time > 0), key=lambda pair: -pair[1])
    return tuple(CauseTime(cause, time, time / step_ps if step_ps else 0.0) for cause, time in ordered)
