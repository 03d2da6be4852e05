"""Sentence parts that findings share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part
from tb_tpuprof.analysis.events.frameworks import PYTORCH, SERVING, TENSORFLOW
from tb_tpuprof.units import format_fraction, format_time

_OF_THE_REST = 0.8  # of a step that a gain can take beside the cause's own time


@dataclass(frozen=True)
class Fix:
    """A remedy in a framework's terms, and code for it."""

    text: str
    snippet: str = ""


def fix_for(fixes: Mapping[str, Fix], evidence: HostEvidence) -> Fix:
    """The fix for the run's framework, else the one under the empty name."""
    framework = TENSORFLOW if evidence.software.framework == SERVING else evidence.software.framework
    return fixes.get(framework, fixes[""])


def gain(evidence: HostEvidence, time_ps: float, least: float, most: float) -> tuple[float, float]:
    """Bounds in ps of the time that a step saves without a cause: factors of the cause's time, at most
    `most_gain`.

    The gain can exceed the time itself: side effects of a cause (cold caches, a sleeping processor, its
    setup) have other names in the trace. The factors were measured on jobs with and without their cause
    (`make exam`).
    """
    limit_ps = most_gain(evidence, time_ps)
    return min(least * time_ps, limit_ps), min(most * time_ps, limit_ps)


def most_gain(evidence: HostEvidence, time_ps: float) -> float:
    """The most that a step can save without a cause: the cause's time and most of the rest, since some of the
    step always remains.
    """
    return time_ps + _OF_THE_REST * (evidence.step_ps - time_ps)


def time_and_share(evidence: HostEvidence, time_ps: float) -> str:
    """`12.0 ms (40.0%)`."""
    return f"{format_time(time_ps)} ({format_fraction(evidence.share(time_ps))})"


def python_option(evidence: HostEvidence) -> str:
    """The option that captures Python calls; empty if the trace has them.

    TensorFlow records Python calls only in captures from outside: with 2.21, a profile that the program
    itself starts has none.
    """
    return "" if evidence.software.has_python else python_option_of(evidence.software.framework)


def python_option_of(framework: str) -> str:
    """The option that captures Python calls of a framework's job."""
    return {TENSORFLOW: "tpuprof capture --python_tracer_level 1", PYTORCH: "with_stack=True"}.get(
        framework, "python_tracer_level=1"
    )


def by_culprit(parts: Sequence[Part]) -> list[tuple[Culprit, list[Part]]]:
    """Parts by the user's function, longest first: the culprit if it is a function, else its caller."""
    by_function: dict[Culprit, list[Part]] = {}
    for part in parts:
        culprit = (
            part.caller
            if part.culprit.kind not in ("function", "annotation") and part.caller.name
            else part.culprit
        )
        by_function.setdefault(culprit, []).append(part)
    return sorted(by_function.items(), key=lambda pair: -total(pair[1]))


def total(parts: Sequence[Part]) -> float:
    """Their mean time per step in ps."""
    return sum(part.mean_ps for part in parts)


def usual(parts: Sequence[Part]) -> float:
    """Their time in the median step, in ps."""
    return float(np.median(np.sum([part.time_ps for part in parts], axis=0))) if parts else 0.0


def shown(evidence: HostEvidence, parts: Sequence[Part], text: str) -> tuple[Evidence, ...]:
    """The longest of some parts as evidence, with its place on the timeline."""
    longest = max(parts, key=lambda part: part.mean_ps, default=None)
    if longest is None or longest.first_ps < 0:
        return (Evidence(text),) if text else ()
    return (Evidence(text, evidence.host, longest.first_ps, longest.last_ps),)


def most_called(parts: Sequence[Part]) -> str:
    """The library call that takes more than half of some parts' time; empty if none does."""
    by_call: dict[str, float] = {}
    for part in parts:
        by_call[part.call] = by_call.get(part.call, 0.0) + part.mean_ps
    longest = max(by_call, key=lambda call: by_call[call], default="")
    return longest if longest and by_call[longest] * 2 > total(parts) else ""


def often(per_step: npt.NDArray[np.int64]) -> str:
    """`once`, `2.5 times`: the mean number of calls."""
    mean = f"{per_step.mean():.3g}"
    return "once" if mean == "1" else f"{mean} times"


def listed(words: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}" if quoted else ""
