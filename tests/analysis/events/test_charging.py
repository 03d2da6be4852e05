import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.events.charging import charge, union_cover, union_ps

Interval = tuple[int, int, int, int]


def charged(intervals: list[Interval], windows: list[tuple[int, int]]) -> list[list[int]]:
    columns = [np.array(column, np.int64) for column in zip(*intervals, strict=True)] or [
        np.empty(0, np.int64)
    ] * 4
    start, end, klass, step = columns
    first, last = (np.array(bound, np.int64) for bound in zip(*windows, strict=True))
    return charge(start, end, klass.astype(np.uint8), step, (first, last), 4).tolist()


def test_the_highest_class_gets_the_time() -> None:
    assert charged([(2, 12, 1, 0), (5, 8, 3, 0), (7, 10, 2, 0)], [(0, 20)]) == [[10, 5, 2, 3]]


def test_events_are_clipped_to_their_step() -> None:
    assert charged([(-5, 3, 1, 0), (18, 40, 2, 0), (50, 60, 3, 0)], [(0, 20)]) == [[15, 3, 2, 0]]


def test_steps_that_overlap_do_not_disturb_each_other() -> None:
    assert charged([(0, 10, 1, 0), (5, 15, 1, 1)], [(0, 10), (5, 20)]) == [[0, 10, 0, 0], [5, 10, 0, 0]]


def test_instants_take_no_time() -> None:
    assert charged([(5, 5, 3, 0)], [(0, 10)]) == [[10, 0, 0, 0]]


def test_a_window_that_ends_before_it_begins_has_no_time() -> None:
    assert charged([], [(10, 4), (3, 3)]) == [[0, 0, 0, 0], [0, 0, 0, 0]]


def test_no_events_leave_all_time_unknown() -> None:
    assert charged([], [(0, 10)]) == [[10, 0, 0, 0]]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 3), st.integers(0, 1)), max_size=30
    )
)
def test_classes_sum_up_to_the_step_and_agree_with_counting_moments(drawn: list[Interval]) -> None:
    windows = [(3, 25), (20, 33)]
    result = charged([(start, start + length, klass, step) for start, length, klass, step in drawn], windows)
    for step, (first, last) in enumerate(windows):
        moments = [0] * 4
        for moment in range(first, last):
            active = [k for start, length, k, s in drawn if s == step and start <= moment < start + length]
            moments[max(active, default=0)] += 1
        assert result[step] == moments
        assert sum(result[step]) == last - first


def test_union_counts_overlaps_once() -> None:
    assert union_ps(np.array([0, 5, 20]), np.array([10, 12, 25])) == 17
    assert union_ps(np.empty(0, np.int64), np.empty(0, np.int64)) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=9))
def test_the_union_agrees_with_counting_moments(drawn: list[tuple[int, int]]) -> None:
    """Its length, and how much of it lies before each moment."""
    start = np.array([a for a, _ in drawn], np.int64)
    end = np.array([a + length for a, length in drawn], np.int64)
    covered = {moment for a, length in drawn for moment in range(a, a + length)}
    assert union_ps(start, end) == len(covered)
    moments = np.arange(-2, 45)
    expected = [sum(one < moment for one in covered) for moment in moments.tolist()]
    assert union_cover(start, end)(moments).tolist() == expected
