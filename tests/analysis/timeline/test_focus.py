"""The part of a trace that holds its events, where a few stray ones are far away."""

from __future__ import annotations

from tb_tpuprof.analysis.timeline.focus import Focus, focus
from tests.builders import DrawnEvent, DrawnPlane, build


def found(*lines: list[tuple[int, int]]) -> Focus | None:
    """The focus of lines of (start, duration)."""
    drawn = {
        f"line {i}": [DrawnEvent("e", start, duration) for start, duration in sorted(line)]
        for i, line in enumerate(lines)
    }
    return focus(build([DrawnPlane("/host:CPU", drawn)]))


def dense(first: int, n: int) -> list[tuple[int, int]]:
    """Events of 6 ps one behind the other, 10 ps apart."""
    return [(first + 10 * i, 6) for i in range(n)]


def test_a_stray_event_before_the_others() -> None:
    assert found(dense(100_000, 20), [(3, 4)]) == Focus(100_000, 100_196, 1, 0)


def test_a_stray_event_after_the_others() -> None:
    assert found(dense(50, 20), [(100_000, 9)]) == Focus(50, 246, 0, 1)
    # One of them lasts longer than the last to start.
    assert found([*dense(50, 19), (50 + 10 * 4 + 7, 300)], [(100_000, 9)]) == Focus(50, 397, 0, 1)


def test_up_to_one_in_a_hundred_are_stray() -> None:
    """Of 300 events three, on several lines; of 299 only two."""
    strays = [(0, 1), (5, 1)], [(9, 1)]
    assert found(dense(100_000, 297), *strays) == Focus(100_000, 102_966, 3, 0)
    assert found(dense(100_000, 296), *strays) is None
    assert found(dense(100_000, 198), [(0, 1), (5, 1)]) == Focus(100_000, 101_976, 2, 0)
    assert found(dense(100_000, 197), [(0, 1), (5, 1)]) is None


def test_strays_of_several_lines_behind_the_others() -> None:
    assert found(dense(0, 297), [(100_000, 1), (100_005, 1)], [(100_009, 1)]) == Focus(0, 2966, 0, 3)
    assert found(dense(0, 296), [(100_000, 1), (100_005, 1)], [(100_009, 1)]) is None


def test_fewer_than_ten_events_have_no_strays() -> None:
    assert found(dense(100_000, 8), [(3, 4)]) is None
    assert found(dense(100_000, 9), [(3, 4)]) == Focus(100_000, 100_086, 1, 0)


def test_nothing_runs_during_nine_tenths_of_the_trace() -> None:
    """The trace ends at 10,000; the stray event at 0 takes no time, which is drawn as 1 ps."""
    assert found([(9001, 1), *[(9990, 1)] * 9, (9990, 10)], [(0, 0)]) == Focus(9001, 10_000, 1, 0)
    assert found([(9000, 1), *[(9990, 1)] * 9, (9990, 10)], [(0, 0)]) is None
    early = [(0, 5), *[(20, 3)] * 10, (40, 12)]
    assert found(early, [(9052, 948)]) == Focus(0, 52, 0, 1)
    assert found(early, [(9051, 949)]) is None


def test_an_event_that_lasts_until_the_others_is_not_far() -> None:
    assert found(dense(100_000, 20), [(3, 99_000)]) is None
    assert found(dense(100_000, 20), [(3, 100_050)]) is None
    assert found(dense(100_000, 20), [(3, 200_000)]) is None
    assert found([*dense(50, 19), (60, 90_000)], [(100_000, 9)]) is None


def test_a_trace_without_a_gap_is_whole() -> None:
    assert found(dense(0, 50)) is None
