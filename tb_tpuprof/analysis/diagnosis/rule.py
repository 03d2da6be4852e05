"""A rule: the event names that reveal its cause, and a function from evidence to findings."""

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
    """Time inside events whose whole name matches `pattern` belongs to the rule's cause.

    Where several claims apply, the strongest wins: a callback (4) inside an operation, a compilation (3)
    inside a loader.
    """

    pattern: str
    strength: int


@dataclass(frozen=True)
class Rule:
    """One cause: `claims` decide which time belongs to it, `find` turns evidence into findings."""

    cause: Cause
    find: Callable[[HostEvidence], Iterable[Finding]]
    claims: tuple[Claim, ...] = ()
