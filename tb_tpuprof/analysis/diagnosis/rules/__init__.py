"""The rules, one per module. Modules are discovered: a new rule needs no registration."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.rule import Rule


@cache
def rules() -> tuple[Rule, ...]:
    """The `RULE` of every module in this folder, by module name."""
    return tuple(import_module(f"{__name__}.{module.name}").RULE for module in iter_modules(__path__))


@cache
def _claims() -> tuple[tuple[re.Pattern[str], Cause, int], ...]:
    claims = [
        (re.compile(claim.pattern), rule.cause, claim.strength) for rule in rules() for claim in rule.claims
    ]
    return tuple(sorted(claims, key=lambda claim: -claim[2]))


@cache
def claim_of(name: str) -> tuple[Cause, int] | None:
    """The cause that an event's name reveals, and the claim's strength; None if it reveals none."""
    return next(
        ((cause, strength) for pattern, cause, strength in _claims() if pattern.fullmatch(name)), None
    )
