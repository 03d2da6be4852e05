"""The evidence of a host as a whole: its kind, the stage that its steps wait for, and which waits count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis import evidence as module
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import _stage, host_evidence
from tb_tpuprof.analysis.diagnosis.records import Part
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import part, trace_of
from tests.builders import PS

# Steps of 24, 18 and 9 columns that compute for 6, 6 and 3.
STEPS = """
main             [train                 ][train           ][train  ]
main             [d    ]                 [d    ]           [d  ]
"""


@dataclass(frozen=True)
class Stage:
    name: str


@dataclass(frozen=True)
class Pipeline:
    kind: str
    bottleneck_stage: Stage | None


def fetches(*times_us: float) -> Part:
    return part(Cause.INPUT, *times_us, klass=TimeClass.HOST_WAIT_INPUT)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stage that steps with some parts wait for, given pipelines by weight."""

    def named(parts: Sequence[Part], *pipelines: Pipeline) -> str:
        monkeypatch.setattr(module, "by_weight", lambda _trace: list(pipelines))
        return _stage(trace_of(STEPS), parts)

    return named


def test_the_stage_is_that_of_the_first_pipeline_of_the_host(stage: Any) -> None:
    device, host = Pipeline("Device", Stage("Prefetch")), Pipeline("Host", Stage("Map"))
    other, idle = Pipeline("Host", Stage("Batch")), Pipeline("Host", None)
    waits = [fetches(10, 20, 30)]
    assert stage(waits, device, host, other) == "Map"
    assert stage(waits, other, host) == "Batch"
    assert stage(waits, idle, host) == ""
    assert stage(waits, device) == ""
    assert stage(waits) == ""


@pytest.mark.parametrize(("last_us", "name"), [(1, "Map"), (0.9, "")])
def test_a_stage_is_named_from_a_fiftieth_of_the_steps_on(stage: Any, last_us: float, name: str) -> None:
    """1 µs and the last one, of 99 µs and the last one; waits of other kinds do not count."""
    waits = [fetches(0.5, 0, 0), fetches(0.5, 0, last_us)]
    others = part(Cause.INPUT, 40, 8, 50, klass=TimeClass.HOST_WAIT)
    assert stage([*waits, others], Pipeline("Host", Stage("Map"))) == name


def test_the_kind_of_a_host_is_that_of_its_devices() -> None:
    assert host_evidence(trace_of(STEPS)).kind == "CPU"
    gpu = "/device:GPU:0:\nStream #1(Compute)   [k      ]            [k      ]             [k ]\n"
    text = f"/host:CPU:\n{STEPS.lstrip()}{gpu}"
    assert host_evidence(trace_of(text, {"k": "gemm"})).kind == "GPU"


def test_evidence_is_detailed_if_the_steps_have_pieces() -> None:
    assert host_evidence(trace_of(STEPS)).is_detailed
    device = trace_of(
        """
        /device:TPU:0:
        Steps        [1           ][2          ][3              ]
        XLA Ops      [a  ]         [a      ]    [a    ]
        """
    )
    assert not host_evidence(device).is_detailed


def test_evidence_holds_the_steps_and_all_of_their_time() -> None:
    evidence = host_evidence(trace_of(STEPS))
    assert (evidence.host, evidence.source, evidence.n_steps) == ("host", "annotation", 3)
    assert (evidence.duration_ps / PS).tolist() == [24, 18, 9]
    assert (sum(one.time_ps for one in evidence.parts) / PS).tolist() == [24, 18, 9]
    assert evidence.step_ps == 17 * PS
    assert evidence.share(evidence.time_ps(Cause.COMPUTE)) == pytest.approx((7 + 7 + 5) / 51, rel=0.3)
    assert (evidence.stage, evidence.stages, evidence.copies, evidence.tiny_ps) == ("", 0, 0, 0)


@pytest.mark.parametrize(
    ("source", "phases", "counts"),
    [
        ("annotation", 1, True),
        ("program", 1, False),
        ("program", 2, True),
        ("program", 3, True),
        ("function", 1, True),
    ],
)
def test_work_after_waits_counts_unless_a_step_is_one_call_of_a_program(
    monkeypatch: pytest.MonkeyPatch, source: str, phases: int, counts: bool
) -> None:
    trace = trace_of(STEPS)
    known, called = module.waiting(trace), []

    def moved(parts: Sequence[Part], _syncs: object, has_device: bool) -> Sequence[Part]:
        called.append(has_device)
        return parts

    def waits(_trace: Trace) -> object:
        return replace(known, steps=replace(known.steps, source=source))

    monkeypatch.setattr(module, "compute_ahead", lambda *_: None)
    monkeypatch.setattr(module, "waiting", waits)
    monkeypatch.setattr(module, "n_phases", lambda _trace: phases)
    monkeypatch.setattr(module, "after_waits", moved)
    evidence = host_evidence(trace)
    assert called == ([False] if counts else [])
    assert evidence.source == source


def test_time_of_a_cause_is_summed_over_its_parts() -> None:
    evidence = replace(host_evidence(trace_of(STEPS)), parts=(fetches(3, 4, 5), fetches(1, 2, 3)))
    assert evidence.time_ps(Cause.INPUT) == 6 * PS
    assert evidence.time_ps(Cause.PYTHON) == 0
    assert np.array_equal(evidence.of_step(1).parts[0].time_ps, [4 * PS])
