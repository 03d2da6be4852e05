"""Offsets between hosts' clocks: the moments that they share, limits and sentences."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.clocks import (
    ClockMarks,
    ClockOffset,
    Moments,
    _named_collectives,
    apart_sentences,
    clock_marks,
    clock_offsets,
    clock_sentences,
)
from tb_tpuprof.analysis.steps.combine import _bounded
from tb_tpuprof.trace.strings import Strings
from tests.analysis.steps.record_drawing import NONE, S, steps_of
from tests.builders import PS, DrawnPlane, build, event


def marks(
    start_s: float, *, steps: Moments = NONE, collectives: Moments = NONE, duration_s: float = 1
) -> ClockMarks:
    return ClockMarks(round(start_s * 1e9), round(duration_s * S), steps, collectives)


def moments(numbers: list[int], ends: list[int]) -> Moments:
    return Moments(np.array(numbers), np.array(ends, np.int64))


def test_offsets_are_medians_of_lags_at_shared_moments() -> None:
    """Three hosts 0, 7 and -3 ms apart, whose collectives jitter by some µs; a fourth has none, a fifth too
    few.
    """
    ms, us = 10**9, 10**6
    jitter = [(0, 0, 0), (3, -2, 1), (-40, 1, 0), (2, 5, -1), (0, 0, 60)]
    hosts = [
        marks(
            100,
            collectives=moments(
                [*range(2, 7), 90 + k],
                [i * 10 * ms + ahead * ms + jitter[i][k] * us for i in range(5)] + [999 * ms],
            ),
        )
        for k, ahead in enumerate((0, 7, -3))
    ]
    few = marks(100, collectives=moments([2, 3], [0, 1]))
    found = clock_offsets([*hosts[:2], marks(100), few, hosts[2]])
    assert [one.by for one in found] == ["collectives", "collectives", "", "", "collectives"]
    lags = np.array(
        [[ahead * ms + jitter[i][k] * us for i in range(5)] for k, ahead in enumerate((0, 7, -3))]
    )
    lags = lags - np.sort(lags, axis=0)[1]
    offset = np.median(lags, axis=1)
    spread = np.maximum(1.4826 * np.median(np.abs(lags - offset[:, None]), axis=1), us)
    middle = sorted(offset)[1]
    own = [found[i] for i in (0, 1, 4)]
    assert [one.offset_ps for one in own] == [round(value - middle) for value in offset]
    assert [one.uncertainty_ps for one in own] == [round(value) for value in spread]
    assert {one.n_moments for one in own} == {5}


def test_three_shared_moments_are_needed() -> None:
    ends = [0, 10 * S, 20 * S, 30 * S]
    for numbers, by in (([1, 2, 3], "collectives"), ([1, 2, 9], "steps")):
        hosts = [
            marks(0, steps=moments([1, 2, 3], ends[:3]), collectives=moments([1, 2, 3], ends[:3])),
            marks(5, steps=moments([1, 2, 3], ends[:3]), collectives=moments(numbers, ends[:3])),
        ]
        assert [one.by for one in clock_offsets(hosts)] == [by] * 2
    assert clock_offsets([marks(0, steps=moments([1, 2, 3], ends[:3]))]) == (ClockOffset(),)
    assert clock_offsets([]) == ()
    steps_only = clock_offsets(
        [
            marks(0, steps=moments([1, 2, 3], ends[:3]), duration_s=4),
            marks(5, steps=moments([1, 2, 3], ends[:3]), duration_s=9),
        ]
    )
    assert [(one.offset_ps, one.uncertainty_ps) for one in steps_only] == [
        (0, round(4.5 * S)),
        (5 * S, round(4.5 * S)),
    ]


@pytest.mark.parametrize(("spread_ms", "by"), [(32, "collectives"), (35, "")])
def test_hosts_whose_lags_spread_over_a_quarter_of_a_step_do_not_run_in_lockstep(
    spread_ms: int, by: str
) -> None:
    """Steps of 200 ms. One of two hosts is 2 × d late at every third moment and as early at every other
    third: its lags from the middle of both are -d, 0 and d, of which d is the median deviation; 1.4826 × d
    may be up to 50 ms.
    """
    step, d = 200 * 10**9, spread_ms * 10**9
    numbers = list(range(12))
    wave = [(0, 2 * d, -2 * d)[i % 3] for i in numbers]
    regular, wavy = [[i * step + late * k for i, late in zip(numbers, wave, strict=True)] for k in (0, 1)]
    found = clock_offsets([marks(0, collectives=moments(numbers, ends)) for ends in (regular, wavy)])
    assert [one.by for one in found] == [by] * 2


@pytest.mark.parametrize(
    ("offset", "uncertainty", "by", "is_apart", "counts"),
    [
        (3000, 1000, "steps", False, True),
        (2000, 1000, "steps", False, False),
        (-2001, 1000, "steps", False, True),
        (3000, 1000, "", False, False),
        (60 * S, 2 * 10**8, "steps", False, True),
        (60 * S + 1, 2 * 10**8, "steps", True, False),
        (-61 * S, 2 * 10**8, "steps", True, False),
        (61 * S, 10**8, "collectives", False, True),
        (61 * S, 10**8 + 1, "collectives", True, False),
        (61 * S, 2 * 10**8, "", False, False),
    ],
)
def test_offsets_count_beyond_twice_their_uncertainty_and_up_to_a_minute(
    offset: int, uncertainty: int, by: str, is_apart: bool, counts: bool
) -> None:
    found = ClockOffset(offset, uncertainty, by, 5)
    assert (found.is_apart, found.counts) == (is_apart, counts)
    assert found.correction_ns == (-round(offset / 1000) if counts else 0)


def test_sentences_on_clocks() -> None:
    offsets = [
        ClockOffset(7 * 10**9, 10**6, "collectives", 12),
        ClockOffset(),
        ClockOffset(-5 * S, S, "steps", 3),
    ]
    assert clock_sentences(["a", "b", "c"], offsets) == [
        (
            "The clock of a is 7.00 ms ± 1.00 µs ahead of the others (from collectives in 12 steps); its"
            " timestamps were corrected."
        ),
        (
            "The clock of c is 5.00 s ± 1.00 s behind the others (from the ends of 3 steps); its timestamps"
            " were corrected."
        ),
    ]
    apart = {
        61: "61.0 s",
        119: "119 s",
        120: "2 minutes",
        7199: "120 minutes",
        7200: "2 hours",
        172_799: "48 hours",
        172_800: "2 days",
        10**6: "12 days",
    }
    for seconds, text in apart.items():
        (sentence,) = apart_sentences(["h", "ok"], [ClockOffset(-seconds * S, S, "steps", 3), offsets[0]])
        assert sentence.startswith(f"h was captured {text} before the others."), sentence
    assert "after the others" in apart_sentences(["h"], [ClockOffset(70 * S, S, "steps", 3)])[0]


def test_names_of_collectives() -> None:
    names = [
        "",
        "all-reduce.1",
        "fusion",
        "ALL-GATHER",
        "reduce",
        "gather",
        "alltoall",
        "all-to-all.3",
        "reduce-scatter",
        "reducescatter",
        "ncclKernel",
        "rcclX",
        "%f = f32[] all-reduce(x), to_apply=%sum",
        "allreduce",
        "accl",
        "xall-toall",
        "to-all",
        "all",
        "reduce",
    ]
    expected = {
        "all-reduce.1",
        "ALL-GATHER",
        "alltoall",
        "all-to-all.3",
        "reduce-scatter",
        "reducescatter",
        "ncclKernel",
        "rcclX",
        names[12],
        "allreduce",
        "xall-toall",
    }
    strings = Strings.of(name.encode() for name in names)
    assert [names[i] for i in np.flatnonzero(_named_collectives(strings, np.arange(len(names))))] == [
        name for name in names if name in expected
    ]
    backwards = np.arange(len(names))[::-1]
    assert [names[backwards[i]] for i in np.flatnonzero(_named_collectives(strings, backwards))] == [
        name for name in names[::-1] if name in expected
    ]


def test_moments_are_the_last_ends_in_annotated_steps() -> None:
    """Numbers of roots count if there are any; a collective outside of steps does not; the first
    GPU's only.
    """
    main = [
        event("train", 0, 50, _r=1, step_num=7),
        event("l1", 1, 2, correlation_id=1),
        event("inner", 5, 9, step_num=99),
        event("train", 60, 20, _r=1, step_num=6),
        event("l2", 61, 2, correlation_id=2),
        event("train", 90, 5, _r=1, step_num=6),
        event("l3", 91, 2, correlation_id=3),
        event("l4", 97, 1, correlation_id=4),
    ]
    first = [
        event("nccl", 10, 5, correlation_id=1),
        event("nccl", 12, 1, correlation_id=1),
        event("gemm", 20, 90, correlation_id=1),
        event("all-reduce", 65, 9, correlation_id=1),
        event("nccl", 92, 30, correlation_id=3),
        event("nccl", 200, 9, correlation_id=4),
    ]
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": main}),
            DrawnPlane("/device:GPU:0", {"a": first}),
            DrawnPlane("/device:GPU:1", {"a": [event("nccl", 300, 9, correlation_id=1)]}),
        ]
    )
    found = clock_marks(trace)
    assert (found.steps.number.tolist(), (found.steps.end_ps // PS).tolist()) == ([6, 7], [95, 50])
    assert (found.collectives.number.tolist(), (found.collectives.end_ps // PS).tolist()) == (
        [6, 7],
        [122, 74],
    )
    unrooted = build(
        [DrawnPlane("/host:CPU", {"main": [event("a", 0, 5, step_num=3), event("b", 9, 5, step_num=1)]})]
    )
    marked = clock_marks(unrooted)
    assert (
        marked.steps.number.tolist(),
        (marked.steps.end_ps // PS).tolist(),
        len(marked.collectives.number),
    ) == ([1, 3], [14, 5], 0)


def test_collectives_without_annotated_steps_are_no_moments() -> None:
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": [event("l", 1, 2, correlation_id=1)]}),
            DrawnPlane("/device:GPU:0", {"a": [event("nccl", 10, 5, correlation_id=1)]}),
        ]
    )
    found = clock_marks(trace)
    assert (len(found.steps.number), len(found.collectives.number)) == (0, 0)
    assert steps_of([1]).n_unmarked_runs == 0


def test_at_most_four_million_pairs_are_compared_at_once() -> None:
    """A row with more is compared alone."""
    million = 10**6
    parts = _bounded(np.array([4 * million, 1, 5 * million, million, 3 * million, 1]))
    assert [(part.start, part.stop) for part in parts] == [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]
    assert _bounded(np.empty(0, np.int64)) == []
