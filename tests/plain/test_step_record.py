"""Steps put together from markers and events, compared with plain loops over every unit of time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import FirstStep, StepParts, Steps, assemble, longest_markers, trimmed
from tb_tpuprof.analysis.steps.waits import StepWait
from tests.builders import drawing

COMPUTES = (TimeClass.HOST_COMPUTE, TimeClass.DEVICE_COMPUTE_32)
TRACE = drawing("main  [nothing]")
Event = tuple[int, int, int, int]  # group, start, end, class


def random_parts(rng: random.Random) -> tuple[list[tuple[int, int, int]], list[Event]]:
    """Markers (group, start, end) of three to nine groups, some with several markers, and events of these
    groups and of groups without a marker.
    """
    numbers = rng.sample(range(1, 30), rng.randint(3, 9))
    markers = []
    for number in numbers:
        for _ in range(rng.choice((1, 1, 2, 3))):
            start = rng.randint(0, 40)
            markers.append((number, start, start + rng.choice((0, rng.randint(1, 20), rng.randint(1, 20)))))
    rng.shuffle(markers)
    events = []
    for _ in range(rng.randint(0, 60)):
        group = rng.choice(numbers) if rng.random() < 0.7 else rng.randint(0, 31)
        start = rng.randint(0, 60)
        events.append((group, start, start + rng.randint(0, 15), rng.randint(1, N_CLASSES - 1)))
    return markers, events


def parts_of(markers: list[tuple[int, int, int]], events: list[Event]) -> StepParts:
    marked = np.array(markers, np.int64).reshape(-1, 3).T
    columns = np.array(events, np.int64).reshape(-1, 4).T
    marked, columns = np.ascontiguousarray(marked), np.ascontiguousarray(columns)
    return StepParts(*marked, *columns[:3], columns[3].astype(np.uint8))


def plain(
    markers: list[tuple[int, int, int]], events: list[Event]
) -> tuple[list[tuple[int, int, int, list[int]]], int]:
    """Steps (group, start, length, time by class) in order of their group, and the number of groups
    left out.
    """
    longest: dict[int, tuple[int, int]] = {}
    for group, start, end in markers:
        if group not in longest or end - start > longest[group][1] - longest[group][0]:
            longest[group] = (start, end)
    steps = []
    for group, (first, last) in sorted(longest.items()):
        own_events = [event[1:] for event in events if event[0] == group]
        class_ps = [0] * N_CLASSES
        for moment in range(first, last):
            class_ps[
                max((klass for start, end, klass in own_events if start <= moment < end), default=0)
            ] += 1
        if last > first and any(klass in COMPUTES for _, _, klass in own_events):
            steps.append((group, first, last - first, class_ps))
    return steps, len(longest) - len(steps)


@pytest.mark.parametrize("seed", range(10))
def test_events_are_charged_to_their_own_step_only(seed: int) -> None:
    rng = random.Random(f"assemble {seed}")
    for _ in range(40):
        markers, events = random_parts(rng)
        expected, n_left_out = plain(markers, events)
        assembled = assemble(TRACE, parts_of(markers, events), COMPUTES, "annotation")
        assert assembled.n_incomplete == n_left_out
        if len(expected) > 5:
            assert assembled.first is not None
            assert (assembled.first.start_ps, assembled.first.duration_ps) == expected[0][1:3]
            assert assembled.n_trimmed == 2
            expected = expected[1:-1]
        rows = zip(
            assembled.number,
            assembled.start_ps,
            assembled.duration_ps,
            assembled.class_ps.tolist(),
            strict=True,
        )
        assert [tuple(row) for row in rows] == expected
        assert assembled.name == tuple(str(group) for group, *_ in expected)
        assert assembled.source == ("annotation" if expected else "")


def test_without_markers_there_are_no_steps() -> None:
    events = [(3, 0, 5, int(TimeClass.HOST_COMPUTE))]
    assert len(assemble(TRACE, parts_of([], events), COMPUTES, "annotation")) == 0


def test_of_equally_long_markers_the_first_counts() -> None:
    group, start, end = np.array([[7, 5, 7, 5, 6], [9, 1, 2, 4, 3], [12, 3, 5, 6, 3]], np.int64)
    longest = longest_markers(group, start, end)
    assert [column.tolist() for column in longest] == [[5, 6, 7], [1, 3, 9], [3, 3, 12], [1, 4, 0]]


def steps(durations: list[int], n_trimmed: int = 0) -> Steps:
    n = len(durations)
    class_ps = np.zeros((n, N_CLASSES), np.int64)
    class_ps[:, TimeClass.HOST_WAIT_INPUT] = [duration // 2 + 1 for duration in durations]
    class_ps[:, 0] = np.array(durations) - class_ps[:, TimeClass.HOST_WAIT_INPUT]
    waits = (StepWait(TimeClass.HOST_WAIT, "sleep", "", 0, np.arange(n, dtype=np.int64)),)
    names = tuple(f"train {i}" for i in range(n))
    start = np.arange(n, dtype=np.int64) * 100
    return Steps(
        np.arange(n), names, start, np.array(durations), class_ps, "annotation", 0, n_trimmed, waits=waits
    )


@pytest.mark.parametrize(
    ("n", "n_trimmed", "kept"), [(5, 0, range(5)), (6, 0, range(1, 5)), (8, 1, range(1, 8))]
)
def test_the_first_and_the_last_of_more_than_five_steps_are_left_out(
    n: int, n_trimmed: int, kept: range
) -> None:
    kept_steps = trimmed(steps([90 + 3 * i for i in range(n)], n_trimmed))
    assert kept_steps.number.tolist() == list(kept)
    assert kept_steps.name == tuple(f"train {i}" for i in kept)
    assert kept_steps.start_ps.tolist() == [100 * i for i in kept]
    assert kept_steps.duration_ps.tolist() == [90 + 3 * i for i in kept]
    assert kept_steps.class_ps.sum(axis=1).tolist() == kept_steps.duration_ps.tolist()
    assert kept_steps.waits[0].time_ps.tolist() == list(kept)
    assert kept_steps.n_trimmed == (2 if n > 5 else n_trimmed)


def test_a_first_step_that_was_left_out_is_described() -> None:
    first = trimmed(steps([700, 30, 10, 20, 90, 40])).first
    assert first is not None
    assert (first.name, first.start_ps, first.duration_ps, first.usual_ps) == ("train 0", 0, 700, 30)
    assert first.input_ps == 351


@pytest.mark.parametrize(
    ("duration", "waited", "fills"),
    [(91, 46, True), (90, 60, False), (91, 45, False), (300, 150, False), (300, 151, True)],
)
def test_a_first_step_fills_a_buffer_if_it_is_long_and_mostly_waits(
    duration: int, waited: int, fills: bool
) -> None:
    """More than three times the usual 30, and more than half of it waiting for data."""
    class_ps = np.zeros(N_CLASSES, np.int64)
    shares = (waited // 3, waited // 3, waited - 2 * (waited // 3))
    for klass, share in zip(
        (TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_TO_DEVICE), shares, strict=True
    ):
        class_ps[klass] = share
    class_ps[0] = duration - waited
    assert FirstStep("a", 0, duration, 30, class_ps).fills_a_buffer == fills


def test_shares_of_steps_are_ratios_of_sums() -> None:
    """Three unlike steps: 51 of 100, 11 of 20 and 2 of 3 wait for input."""
    result = steps([100, 20, 3])
    assert result.category_ps("input").tolist() == [51, 11, 2]
    assert result.fraction("input") == pytest.approx(64 / 123)
    assert steps([]).fraction("input") == 0.0
