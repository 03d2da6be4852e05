"""Numbers of a tf.data pipeline, each from calls and stages written down by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.steps import Steps
from tb_tpuprof.analysis.tf_data.advice import (
    Waiting,
    _ordinal,
    _share_of_calls,
    _waiting_of,
    place,
    position_text,
    user_call,
)
from tb_tpuprof.analysis.tf_data.changes import Evidence
from tb_tpuprof.analysis.tf_data.forest import stage_name, stage_type, works_ahead
from tb_tpuprof.analysis.tf_data.pipeline import (
    _bottleneck,
    _parents,
    _parents_first,
    _split_by,
    call,
    pipelines,
)
from tests.analysis.tf_data.pipeline_records import pipeline, stage
from tests.analysis.tf_data.test_tf_data import MAP, PREFETCH, RANGE, ROOT, prefetched
from tests.builders import PS


def steps_of(*spans: tuple[int, int]) -> Steps:
    start, duration = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    n = len(spans)
    return Steps(
        np.arange(n), tuple(map(str, range(n))), start, duration, np.zeros((n, 20), np.int64), "host"
    )


def test_the_share_of_time_in_calls() -> None:
    assert pipeline([(100, 30), (200, 10), (250, 50)]).wait_fraction == 90 / 200
    assert pipeline([(0, 300), (10, 20)]).wait_fraction == 1.0  # at most all of it
    assert pipeline([(0, 300)]).wait_fraction is None
    assert pipeline([(7, 0), (7, 0)]).wait_fraction == 0.0
    # The last to end is not the last to start.
    assert pipeline([(0, 400), (300, 20)], [1, 1]).wait_fraction == 1.0
    assert pipeline([(0, 10), (100, 300), (200, 20)]).wait_fraction == 330 / 400


def test_the_share_after_elements_were_ready() -> None:
    assert pipeline([(0, 40), (50, 60)], [10, 50]).wake_fraction == pytest.approx(0.4)
    assert pipeline([(0, 0)], [0]).wake_fraction == 0.0


def test_stages_of_a_pipeline_that_works_ahead() -> None:
    """Of two elements made in 90 µs, one while the caller waits; 10 µs of each are the range's (see
    `prefetched`).
    """
    (found,) = pipelines(prefetched())
    assert [one.long_name for one in found.stages] == [ROOT, PREFETCH, MAP, RANGE]
    assert [one.parent for one in found.stages] == [-1, 0, 1, 2]
    assert [one.is_async for one in found.stages] == [False, True, False, False]
    times = {
        one.name: (one.times.self_ps / PS, one.times.work_ps / PS, one.times.blocking_ps / PS)
        for one in found.stages
    }
    assert times["Map"] == (160, 160, 80)
    assert times["Range"] == (20, 20, 10)
    assert times["Root"] == (4, 4, 4)
    assert [one.times.n_calls for one in found.stages] == [2, 2, 2, 2]
    assert (found.name, found.kind, found.bottleneck, found.thread_count) == ("Host:0", "Host", 2, 1)
    assert (found.waited_ps / PS).tolist() == [98, 1.5]  # until the element was there
    shown = call(prefetched(), found, 1)
    assert [(node.name, node.parent, node.duration_ps / PS, node.self_ps / PS) for node in shown.nodes] == [
        ("Root", -1, 100, 2),
        ("Prefetch", 0, 98, 8),
        ("Map", 1, 90, 80),
        ("Range", 2, 10, 10),
    ]
    assert (shown.bottleneck, shown.duration_ps / PS, shown.n_reparented) == (2, 100, 0)
    assert [node.is_blocking for node in call(prefetched(), found, 2).nodes] == [True, True, False, False]


def test_slow_calls_are_longer_than_50_us() -> None:
    found = pipeline([(0, 50_000_000), (1, 50_000_001), (2, 9)])
    assert (found.n_slow, found.max_ps) == (1, 50_000_001)
    assert pipeline([(0, 50_000_001)] * 3).n_slow == 3


def test_ranks_complete_calls_come_first_and_ties_are_in_time_order() -> None:
    found = pipeline(
        [(0, 90), (100, 20), (200, 40), (300, 40), (400, 10)], complete=[False, True, True, True, True]
    )
    assert found.order.tolist() == [2, 3, 1, 4, 0]
    assert found.typical_rank == 2  # of four
    assert replace(found, is_complete=np.zeros(5, np.bool_)).typical_rank == 3  # of five
    assert replace(found, is_complete=np.array([True] + [False] * 4)).typical_rank == 1


def test_work_is_per_complete_call() -> None:
    found = pipeline([(0, 9), (10, 9), (20, 9)], complete=[True, False, True])
    assert found.work_ps(stage("Iterator::Root::Map", 0, 30)) == 15
    assert (
        replace(found, is_complete=np.zeros(3, np.bool_)).work_ps(stage("Iterator::Root::Map", 0, 30)) == 30
    )


@pytest.mark.parametrize(
    ("stages", "worst"),
    [
        # The root only requests, and so does a prefetch whose input is in the trace.
        (
            [
                ("Iterator::Root", -1, 90),
                ("Iterator::Root::Prefetch", 0, 80),
                ("Iterator::Root::Prefetch::Map", 1, 3),
                ("Iterator::Root::Prefetch::Map::Range", 2, 2),
            ],
            2,
        ),
        ([("Iterator::Root", -1, 90), ("Iterator::Root::Prefetch", 0, 80)], 1),
        ([("Iterator::Root", -1, 90)], 0),
        (
            [("Iterator::Root", -1, 90), ("Iterator::Root::Map", 0, 7), ("Iterator::Root::Map::Range", 1, 7)],
            1,
        ),
        ([("Iterator::Root", -1, 90), ("Iterator::Root::Map", 0, 0)], -1),
        ([], -1),
        # The scan at the end of a loop runs the loop's body, wherever a prefetch is.
        (
            [
                ("ReduceIterator::Root", -1, 9),
                ("ReduceIterator::Root::Prefetch::Scan", 0, 80),
                ("ReduceIterator::Root::Prefetch::Scan::Map", 1, 4),
            ],
            2,
        ),
        (
            [("Iterator::Root", -1, 9), ("Iterator::Root::Scan", 0, 80), ("Iterator::Root::Scan::Map", 1, 4)],
            1,
        ),
        (
            [
                ("ReduceIterator::Root", -1, 9),
                ("ReduceIterator::Root::Batch::Scan", 0, 80),
                ("ReduceIterator::Root::Batch::Scan::Map", 1, 4),
            ],
            1,
        ),
    ],
)
def test_the_stage_that_callers_waited_for_most(stages: list[tuple[str, int, int]], worst: int) -> None:
    assert _bottleneck(tuple(stage(*one) for one in stages)) == worst


def test_a_loop_is_known_by_its_scan() -> None:
    loop = replace(
        pipeline([(0, 1)]), stages=(stage("ReduceIterator::Root", -1), stage("ReduceIterator::Root::Scan", 0))
    )
    assert loop.is_loop
    assert not replace(loop, stages=loop.stages[:1]).is_loop


def test_values_by_code_keep_their_order() -> None:
    parts = _split_by(np.array([2, 0, 2, 0, 3]), np.array([10, 11, 12, 13, 14]), 4)
    assert [part.tolist() for part in parts] == [[11, 13], [], [10, 12], [14]]


def test_parents_come_before_children_and_siblings_in_their_order() -> None:
    assert _parents_first([2, 2, -1, 0, 1, 0]) == [2, 0, 3, 5, 1, 4]
    assert _parents_first([]) == []


def test_stages_that_lead_back_to_themselves_are_attached_to_the_root() -> None:
    """Events 0 to 5 of stages 0 to 5: 1 and 2 feed each other, 3 feeds 2, 4 feeds the root, 5 a stage
    elsewhere.
    """
    iterators: Any = SimpleNamespace(
        parent=np.array([-1, 2, 1, 2, 0, 6, -1]),
        node=np.arange(7),
        is_root=np.array([True, False, False, False, False, False, False]),
    )
    index = {node: node for node in range(6)}
    assert _parents(iterators, np.arange(6), index) == ([-1, 0, 1, 2, 0, -1], 1)
    no_root: Any = SimpleNamespace(parent=np.array([1, 0]), node=np.arange(2), is_root=np.zeros(2, np.bool_))
    assert _parents(no_root, np.arange(2), {0: 0, 1: 1}) == ([-1, 0], 1)


@pytest.mark.parametrize(
    ("spans", "calls", "expected"),
    [
        ([], [(5, 1)], ""),
        ([(0, 10), (20, 10)], [(2, 2), (22, 2), (12, 3)], "inside"),
        ([(0, 10), (20, 10)], [(2, 2), (12, 3)], "between"),  # most of the time is what counts
        ([(20, 10), (0, 10)], [(2, 2), (12, 2)], "inside"),  # as much within as between; steps in any order
        ([(0, 10), (20, 10), (40, 10), (60, 10)], [(12, 3), (13, 3)], "outside"),  # feeds one of three
        ([(0, 10), (20, 10), (40, 10), (60, 10)], [(12, 3), (33, 3)], "between"),  # feeds two of three
        ([(0, 10), (20, 10), (40, 10)], [(12, 3)], "between"),  # feeds one of two
        ([(0, 10), (20, 10)], [(35, 3), (50, 9)], "outside"),
        ([(10, 10), (30, 10)], [(2, 3)], "outside"),
        ([(10, 10), (30, 10)], [(39, 2)], "inside"),  # its middle is the step's end
        ([(10, 10), (30, 10)], [(40, 2)], "outside"),
        ([(10, 10), (30, 10)], [(9, 2)], "inside"),  # its middle is the first step's start
        ([(10, 10), (30, 10)], [(19, 3)], "inside"),
        ([(10, 10), (30, 10)], [(20, 3)], "between"),
    ],
)
def test_calls_are_within_steps_between_them_or_outside(
    spans: list[tuple[int, int]], calls: list[tuple[int, int]], expected: str
) -> None:
    none = np.empty(0, np.int64)
    steps = steps_of(*spans) if spans else Steps(none, (), none, none, np.zeros((0, 20), np.int64), "host")
    assert place(steps, pipeline(calls)) == expected


def test_the_share_of_the_steps_in_calls() -> None:
    """Steps of 10 and 30; calls of 4 before and 3 in the first, 9 in the second, which the last one
    leaves.
    """
    steps = steps_of((100, 30), (10, 10))
    assert _share_of_calls(steps, pipeline([(6, 7), (110, 5), (126, 9)])) == pytest.approx((3 + 5 + 4) / 40)
    assert _share_of_calls(steps_of((0, 0)), pipeline([(0, 7)])) == 0.0
    assert _share_of_calls(steps_of((0, 10)), pipeline([(0, 10), (0, 10)])) == 1.0


@pytest.mark.parametrize(
    ("fraction", "waited", "duration", "expected"),
    [
        # Input is moderate from 5% of the time on and high from 20% on.
        (0.20, 10, 10, Waiting(0.20, "step", 2, 0.0, "inside")),
        (0.19, 10, 10, Waiting(0.19, "step", 1, 0.0, "inside")),
        (0.05, 10, 10, Waiting(0.05, "step", 1, 0.0, "inside")),
        (0.04, 10, 10, Waiting(0.04, "step", 0, 0.0, "inside")),
        # A caller that is late by half a millisecond or more waits for a processor.
        (0.30, 0, 500_000_000, Waiting(0.30, "step", 1, 0.30, "inside", True)),
        (0.30, 0, 499_999_999, Waiting(0.0, "step", 0, 0.30, "inside")),
        (0.02, 0, 500_000_000, Waiting(0.0, "step", 0, 0.02, "inside")),
        (0.40, 300_000_000, 900_000_000, None),  # enough of it is waiting anyway
    ],
)
def test_waiting_for_elements_and_for_processors(
    fraction: float, waited: int, duration: int, expected: Waiting | None
) -> None:
    found = _waiting_of(fraction, pipeline([(0, duration)], [waited]), "step", "inside")
    if expected is None:
        assert not found.is_contended
        assert found.fraction == pytest.approx(fraction * waited / duration)
    else:
        assert (found.fraction, found.woken) == pytest.approx((expected.fraction, expected.woken))
        assert replace(found, fraction=expected.fraction, woken=expected.woken) == expected


@pytest.mark.parametrize(
    ("stage_of", "call"),
    [
        ("ParallelMapV2", "map"),
        ("BatchV2", "batch"),
        ("ForeverRepeat", "repeat"),
        ("OptionsDataset", "OptionsDataset"),
        ("SkipV3", "Skip"),
        ("TFRecord", "TFRecordDataset"),
    ],
)
def test_calls_that_users_write(stage_of: str, call: str) -> None:
    assert user_call(stage_of) == call


def test_positions_of_stages_of_one_kind() -> None:
    names = ("Root", "Map", "Batch", "ParallelMapV2", "Shuffle", "MapAndBatch", "Range")
    path, stages = "Iterator", []
    for i, name in enumerate(names):
        path += f"::{name}"
        stages.append(stage(path, i - 1))
    texts = [position_text(tuple(stages), i) for i in (1, 2, 3, 5)]
    assert texts == [
        "the third of 3 `map` stages from the source, next to `batch`",
        "",
        "the second of 3 `map` stages from the source, between `shuffle` and `batch`",
        "the first of 3 `map` stages from the source, between `range` and `shuffle`",
    ]
    alone = (
        replace(stages[1], parent=-1, long_name="a::Map"),
        replace(stages[1], parent=-1, long_name="b::Map"),
    )
    assert position_text(alone, 1) == "the second of 2 `map` stages from the source"
    assert [_ordinal(n) for n in (1, 2, 3, 4, 5, 6, 11)] == [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "6th",
        "11th",
    ]


def test_names_of_stages() -> None:
    assert stage_name("Iterator::Root::FlatMap[3]::TFRecord#x=1#") == "Iterator::Root::FlatMap::TFRecord"
    assert stage_name("Iterator::ParallelInterleaveV4[12]") == "Iterator::ParallelInterleaveV4"
    assert stage_name("Iterator::DirectedInterleave[1]::Map") == "Iterator::DirectedInterleave[1]::Map"
    assert stage_type("Iterator::Root::DirectedInterleave[1]") == "DirectedInterleave"
    ahead = (
        "a::Prefetch",
        "a::ParallelMapV2",
        "MapAndBatch",
        "a::DataServiceV2",
        "Prefetch::Map",
        "a::Map",
        "a::BatchV2",
    )
    assert [works_ahead(name) for name in ahead] == [True] * 4 + [False] * 3


def test_parameters_as_numbers() -> None:
    facts = Evidence({"parallelism": "4", "odd": "-1", "x": ""}, {"pool": "8", "parallelism": "2"})
    numbers = [facts.number(name) for name in ("parallelism", "pool", "odd", "x", "gone")]
    assert numbers == [4, 8, 0, 0, 0]
    assert facts.number("gone", 3) == 3


def test_runs_that_straggle() -> None:
    """The 95th percentile is above 2.5 times the median; of three runs none is called a straggler."""
    assert Evidence({}, {}, (10, 10, 10, 10, 1000)).straggles
    assert not Evidence({}, {}, (10, 10, 1000)).straggles
    assert not Evidence({}, {}, (10, 20, 25, 25, 30)).straggles
    assert not Evidence({}, {}, tuple([10] * 19 + [25] * 19)).straggles
    assert not Evidence({}, {}).straggles
    assert Evidence({}, {}, (10, 40, 30)).typical_ps == 30
    assert Evidence({}, {}).typical_ps == 0
