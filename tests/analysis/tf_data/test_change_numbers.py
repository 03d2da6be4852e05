"""What a change of a tf.data pipeline would gain: each number from calls and stages written down by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.tf_data import what_if as what_if_module
from tb_tpuprof.analysis.tf_data.simulation import Part, Simulated
from tb_tpuprof.analysis.tf_data.what_if import (
    Change,
    Model,
    _error,
    _kind,
    _simulated,
    _timing,
    _varies,
    changed_parts,
    what_if,
)
from tests.analysis.tf_data.pipeline_records import MS, pipeline, stage


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Prefetch", "prefetch"),
        ("MapAndBatch", "batch_lanes"),
        ("ParallelInterleaveV4", "interleave"),
        ("Interleave", "inline"),
        ("ParallelMapV2", "lanes"),
        ("Map", "inline"),
        ("BatchV2", "inline"),
    ],
)
def test_stages_are_simulated_by_their_kind(name: str, kind: str) -> None:
    assert _kind(stage(f"Iterator::{name}", 0)) == kind


def test_times_between_calls() -> None:
    """From start to start, and from an end to the next start; a call may begin before the last one ends."""
    between, gaps = _timing(pipeline([(0, 10), (30, 25), (50, 1)]))
    assert (between.tolist(), gaps.tolist()) == ([30.0, 20.0], [20.0, 0.0])


def test_times_that_vary_too_much() -> None:
    """The mean may differ from the median by a quarter of it."""
    assert _varies(np.array([40, 40, 70]) * MS) == ""
    assert _varies(np.array([40, 40, 71]) * MS).startswith(
        "step times vary: the mean is 50.3 ms, the median 40"
    )
    assert _varies(np.array([10, 40, 40]) * MS) == ""
    assert _varies(np.array([9, 40, 40]) * MS) != ""
    assert _varies(np.array([0, 0, 7])) == ""


def test_standard_errors_are_relative_to_the_mean() -> None:
    values = np.array([8.0, 10.0, 12.0])  # of variance 4 with n - 1
    assert _error(values) == pytest.approx(2 / 3**0.5 / 10)
    assert [_error(np.array(few)) for few in ([], [5.0], [0.0, 0.0])] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("simulated", "text"),
    [
        (
            150.6,
            (
                "the model of the stages accounts for 151% of the time from call to call: they overlap in"
                " ways that the model does not cover"
            ),
        ),
        (
            66.6,
            (
                "the model of the stages accounts for 66.6% of the time from call to call: the trace does not"
                " show the rest, such as other work on the same processors"
            ),
        ),
        (
            0.0,
            (
                "the model of the stages accounts for 0% of the time from call to call: the trace does not"
                " show the rest, such as other work on the same processors"
            ),
        ),
    ],
)
def test_a_model_that_does_not_explain_the_time_says_in_which_direction(
    simulated: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model((), 0, np.ones(1), 100.0, 1.0, None, (0.0, 0.0), 1, 1, 0.0, False)
    monkeypatch.setattr(what_if_module, "build", lambda *_: model)
    monkeypatch.setattr(what_if_module, "_simulated", lambda *_: Simulated(simulated, 0.0, ""))
    trace: Any = None
    (estimate,) = what_if(trace, pipeline([(0, 1)]))
    assert (estimate.kind, estimate.note) == ("none", text)
    assert (estimate.latency_ps, estimate.step_ps) == (None, None)


def part(name: str, parent: int, kind: Any, per_parent: float = 1.0, **more: Any) -> Part:
    return Part(name, parent, kind, per_parent, np.array([3.0]), np.array([5.0, 7.0]), **more)


def test_a_wait_is_the_time_of_a_call_without_the_mean_time_between_calls() -> None:
    """A thread of 10 ps per element, and times between calls of 1, 2 and 6 ps, 3 on average."""
    parts = (Part("Map", -1, "inline", 1.0, np.array([10.0]), np.zeros(0)),)
    model = Model(parts, 0, np.array([1.0, 2.0, 6.0]), 13.0, 10.0, None, (0.0, 0.0), 0, 0, 0.0, False)
    result = _simulated(model, Change())
    assert (result.wait_ps, result.period_ps - result.wait_ps) == (pytest.approx(10), pytest.approx(3))


def test_stages_after_a_change() -> None:
    """A shuffle below a map below a batch of 4; a zip's other input stays as it is."""
    parts = (
        part("Root", -1, "inline"),
        part("BatchV2", 0, "inline", 2.0),
        part("ParallelMapV2", 1, "lanes", 4.2, lanes=3),
        part("Shuffle", 2, "inline"),
        part("Range", 1, "inline", 9.0),
    )
    model = Model(parts, 2, np.ones(1), 9.0, 1.0, None, (0.0, 0.0), 8, 8, 0.0, False)

    def changed(**change: Any) -> list[tuple[str, int, str, float, float, float, int]]:
        return [
            (
                one.name,
                one.parent,
                one.kind,
                one.per_parent,
                float(one.work_ps.sum()),
                float(one.function_ps.sum()),
                one.lanes,
            )
            for one in changed_parts(model, Change(**change))
        ]

    root, batch, mapped, shuffle, other = changed()
    assert mapped == ("ParallelMapV2", 1, "lanes", 4.2, 3.0, 12.0, 3)
    assert changed(parallel=6) == [
        root,
        batch,
        ("ParallelMapV2", 1, "lanes", 4.2, 0.0, 12.0, 6),
        shuffle,
        other,
    ]
    passing = ("ParallelMapV2", 1, "inline", 4.2, 0.0, 0.0, 3)
    assert changed(remove=True) == [root, batch, passing, shuffle, other]
    assert changed(cache=True) == [root, batch, passing, ("Shuffle", 2, "inline", 0.0, 0.0, 0.0, 1), other]
    fused = ("MapAndBatch", 0, "batch_lanes", 2.0, 0.0, 12.0, 6)
    assert changed(parallel=6, is_fused=True) == [root, fused, passing, shuffle, other]
    assert changed_parts(model, Change(parallel=6, is_fused=True))[1].batch == 4
    assert [(name, parent) for name, parent, *_ in changed(prefetch=True)] == [
        ("Root", -1),
        ("Prefetch", 0),
        ("BatchV2", 1),
        ("ParallelMapV2", 2),
        ("Shuffle", 3),
        ("Range", 2),
    ]
    assert changed_parts(model, Change(prefetch=True))[1].buffer == 2
    lanes = replace(parts[2], kind="batch_lanes")
    batches = replace(model, parts=(*parts[:2], lanes, *parts[3:]))
    removed = changed_parts(batches, Change(remove=True))[2]
    assert (removed.kind, removed.work_ps.tolist(), removed.function_ps.tolist()) == ("batch_lanes", [0], [0])
    more = changed_parts(batches, Change(parallel=6))[2]
    assert (more.kind, more.lanes, more.work_ps.tolist()) == ("batch_lanes", 6, [3])
