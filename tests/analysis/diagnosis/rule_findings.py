"""The findings of one rule on handmade evidence, as numbers to compare."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import (
    DeviceEvidence,
    HostEvidence,
    Sync,
    ThreadActivity,
)
from tests.analysis.diagnosis.drawn import NOBODY, columns, function
from tests.builders import PS

US = float(PS)
HEALTHY = DeviceEvidence("TPU v5 lite", 200 * US, 180 * US, 0.0, 0.6, 0.4)


def findings(rule: str, given: HostEvidence) -> list[Finding]:
    return list(import_module(f"tb_tpuprof.analysis.diagnosis.rules.{rule}").RULE.find(given))


def only(rule: str, given: HostEvidence) -> Finding:
    (one,) = findings(rule, given)
    assert one.share == pytest.approx(one.time_ps / given.step_ps)
    return one


def of(finding: Finding) -> tuple[float, tuple[float, float], tuple[str, str]]:
    """Time and gain in µs per step, and the culprit."""
    assert finding.gain_ps is not None
    gain = round(finding.gain_ps[0] / US, 6), round(finding.gain_ps[1] / US, 6)
    return round(finding.time_ps / US, 6), gain, (finding.culprit.kind, finding.culprit.name)


def sync(
    call: str, per_step: tuple[int, ...], computed: tuple[float, ...] = (0, 0, 0), culprit: Culprit = NOBODY
) -> Sync:
    zero = columns(0, 0, 0)
    return Sync(call, culprit, np.array(per_step, np.int64), zero, zero, columns(*computed), 3, 4)


def thread(running: float, **given: object) -> ThreadActivity:
    """A thread that runs `poll` and waits for a tenth of the time."""
    return replace(ThreadActivity("worker", function("poll"), running, 0.1, False), **given)  # type: ignore[arg-type]
