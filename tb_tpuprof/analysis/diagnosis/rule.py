"""What a rule is: the names that reveal its cause, and the findings that it makes of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_tpuprof.analysis.diagnosis.causes import Cause

if TYPE_CHECKING:
    from tb_tpuprof.analysis.diagnosis.finding import Finding
    from tb_tpuprof.analysis.diagnosis.records import HostEvidence


@dataclass(frozen=True)
class Claim:
    """Events whose whole name matches `pattern` make the time inside of them their cause's.

    Of several around a moment the strongest counts: a callback (4) inside of an operation, a compilation (3)
    inside of a loader.
    """

    pattern: str
    strength: int


@dataclass(frozen=True)
class Rule:
    """One cause: `claims` decide which time is its own, `find` turns evidence into findings."""

    cause: Cause
    find: Callable[[HostEvidence], Iterable[Finding]]
    claims: tuple[Claim, ...] = ()
