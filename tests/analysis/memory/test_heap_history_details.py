"""An allocator's history at limits: what is drawn against a plain loop, even growth, ties and the ring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.heap_history import contents, drawn_events, event_at, kept, levels
from tb_tpuprof.trace.heap_history import (
    ALLOC,
    COMPLETED,
    GROW,
    OOM,
    REQUESTED,
    SHRINK,
    DeviceHistory,
    Survivors,
)

Entry = tuple[int, int, int, int]  # time in ps, action, address, bytes


def history(
    entries: Sequence[Entry],
    survivors: Sequence[tuple[int, int]] = (),
    reserved: int = 10**6,
    pending: int = 0,
    stack: Sequence[int] | None = None,
) -> DeviceHistory:
    time, action, address, size = np.array(entries, np.int64).reshape(-1, 4).T
    at, requested = np.array(survivors, np.int64).reshape(-1, 2).T
    stacks = np.zeros(len(time), np.int32) if stack is None else np.array(stack, np.int32)
    return DeviceHistory(
        "GPU 0",
        np.ascontiguousarray(time),
        action.astype(np.uint8),
        np.ascontiguousarray(address),
        np.ascontiguousarray(size),
        stacks,
        reserved,
        pending,
        Survivors(np.ascontiguousarray(at), np.ascontiguousarray(requested), np.full(len(at), 9, np.int32)),
    )


def random_history(seed: int, n: int = 300) -> DeviceHistory:
    """Allocations and frees of random blocks at random times, several at the same one, and failures."""
    chance = np.random.default_rng(seed)
    entries, alive, time = [], [], 1000
    for i in range(n):
        time += int(chance.choice([0, 0, 1, 7, 40]))
        pick = chance.random()
        if alive and pick < 0.45:
            address, size = alive.pop(int(chance.integers(len(alive))))
            entries.append((time, COMPLETED, address, size))
        elif pick < 0.5:
            entries.append((time, OOM, 5, 10**9))
        elif pick < 0.6:
            entries.append((time, GROW if i % 2 else SHRINK, 1, int(chance.integers(1, 50))))
        else:
            alive.append((i + 1, int(chance.integers(1, 1000))))
            entries.append((time, ALLOC, *alive[-1]))
    return history(entries, alive)


@pytest.mark.parametrize("width", [1, 2, 3, 9, 18, 19, 70])
@pytest.mark.parametrize("seed", range(4))
def test_events_drawn_in_a_window(seed: int, width: int) -> None:
    """Plain: of each pixel the extremes, the last event and the failures; all events of a window with few."""
    one = random_history(seed)
    known = levels(one)
    time, used, held = (column.tolist() for column in (one.time_ps, known.used_bytes, known.reserved_bytes))
    for start, end in ((0, 900), (0, 5000), (1000, time[-1]), (time[40], time[200]), (time[-1] + 1, 9**6)):
        inside = [i for i, at in enumerate(time) if start <= at <= end]
        before = max((i for i, at in enumerate(time) if at < start), default=0)
        drawn = drawn_events(one, known, start, end, width).tolist()
        if len(inside) <= 4 * width:
            assert drawn == sorted({before, *inside})
            continue
        pixel = -(-(end - start + 1) // width)
        expected, failed = {before}, [i for i in inside if one.action[i] == OOM]
        for first in range(start, end + 1, pixel):
            rows = [i for i in inside if first <= time[i] < first + pixel]
            if rows:
                expected.add(rows[-1])
                for level, sign in ((used, -1), (used, 1), (held, 1)):
                    best = max(sign * level[i] for i in rows)
                    assert any(i in drawn for i in rows if sign * level[i] == best)
        assert expected <= set(drawn)
        assert set(failed[: 4 * width]) <= set(drawn)
        assert set(drawn) <= {before, *inside}
        pixels = len({(time[i] - start) // pixel for i in inside})
        assert len(drawn) <= 1 + 4 * pixels + min(len(failed), 4 * width)


def test_a_window_far_from_the_start_is_cut_into_pixels_like_any_other() -> None:
    """Each of five pixels of 20 ps has 30 events with levels of its own, the last one fewer."""
    entries = [(10**6 + i * 2 // 3, ALLOC if i % 2 else COMPLETED, 1 + i // 2, 1 + i % 7) for i in range(140)]
    one = history(entries)
    known = levels(one)
    drawn = drawn_events(one, known, 10**6, 10**6 + 99, 5).tolist()
    near = [(at - 10**6, *rest) for at, *rest in entries]
    same = history(near)  # type: ignore[arg-type]
    assert drawn == drawn_events(same, levels(same), 0, 99, 5).tolist()
    for first in range(0, 100, 20):
        rows = [i for i, (at, *_) in enumerate(near) if first <= at < first + 20]
        assert (not rows) or rows[-1] in drawn


def test_a_window_of_few_events_draws_them_all() -> None:
    """Up to four per pixel; of more in one pixel the extremes, the last and the one before the window."""
    sizes = [5, 9, 1, 7, 3, 8, 2, 6, 4]
    one = history([(10 + i, ALLOC, i + 1, size) for i, size in enumerate(sizes)], list(enumerate(sizes, 1)))
    known = levels(one)
    assert drawn_events(one, known, 11, 18, 2).tolist() == list(range(9))
    assert drawn_events(one, known, 11, 18, 1).tolist() == [0, 1, 8]
    assert drawn_events(one, known, 12, 15, 1).tolist() == [1, 2, 3, 4, 5]
    assert drawn_events(one, known, 12, 12, 1).tolist() == [1, 2]
    assert drawn_events(one, known, 0, 9, 1).tolist() == [0]
    assert [event_at(one, at) for at in (0, 9, 10, 11, 17, 18, 99)] == [0, 0, 0, 1, 7, 8, 8]


def test_failures_are_drawn_up_to_four_per_pixel() -> None:
    entries = [(10, ALLOC, 1, 5), *[(20 + i, OOM, 0, 9) for i in range(12)], (40, ALLOC, 2, 6)]
    one = history(entries, [(1, 5), (2, 6)])
    drawn = drawn_events(one, levels(one), 15, 45, 1)
    # The event before, the first and the last of the failures' equal levels, four of them, the last event.
    assert set(drawn.tolist()) >= {0, 1, 2, 3, 4, 13}
    assert len(drawn) <= 7


def test_the_peak_is_the_last_of_equals() -> None:
    entries = [
        (0, ALLOC, 1, 8),
        (1, COMPLETED, 1, 8),
        (2, ALLOC, 2, 5),
        (3, ALLOC, 3, 3),
        (4, COMPLETED, 2, 5),
        (5, ALLOC, 4, 4),
    ]
    assert levels(history(entries, [(3, 3), (4, 4)])).peak == 3


def test_the_peak_may_be_the_first_event() -> None:
    entries = [(0, ALLOC, 1, 8), (1, COMPLETED, 1, 8), (2, ALLOC, 2, 5)]
    one = history(entries, [(2, 5)])
    assert levels(one).peak == 0
    found = kept(
        history(entries[:1], [(1, 8)]), levels(history(entries[:1], [(1, 8)])), np.zeros(1, np.int64)
    )
    assert (found.first.tolist(), found.last.tolist()) == ([0], [0])


def test_levels_begin_at_what_was_freed_at_least() -> None:
    """30 B from before are freed and 40 allocated, of which 5 are said to be left."""
    one = history([(0, COMPLETED, 7, 30), (1, ALLOC, 1, 40)], [(1, 5)])
    known = levels(one)
    assert (known.used_bytes.tolist(), known.is_anchored) == ([0, 40], False)


def test_a_block_that_the_history_has_freed_and_the_end_lists_is_older() -> None:
    one = history([(0, ALLOC, 1, 5), (1, COMPLETED, 1, 5)], [(1, 5)])
    shown = contents(one, levels(one), 1)
    assert (shown.size_bytes.tolist(), shown.event.tolist()) == ([5], [-1])


def test_partners_of_blocks_and_of_frees_from_before() -> None:
    entries = [
        (0, COMPLETED, 7, 30),  # allocated before the history
        (1, ALLOC, 7, 5),
        (2, ALLOC, 8, 6),
        (3, GROW, 7, 100),
        (4, COMPLETED, 7, 5),
        (5, ALLOC, 7, 11),
        (6, OOM, 7, 1),
    ]
    one = history(entries, [(8, 6), (7, 11), (99, 40)], reserved=200)
    known = levels(one)
    assert known.partner.tolist() == [-1, 4, 7, -1, 1, 7, -1]
    assert known.used_bytes.tolist() == [40, 45, 51, 51, 46, 57, 57]
    assert known.reserved_bytes.tolist() == [100, 100, 100, 200, 200, 200, 200]
    assert known.is_anchored
    first = contents(one, known, 1)
    assert (first.size_bytes.tolist(), first.event.tolist(), first.stack.tolist()) == (
        [5, 40],
        [1, -1],
        [0, 9],
    )
    last = contents(one, known, 6)
    assert (last.size_bytes.tolist(), last.event.tolist(), last.unknown_bytes) == ([6, 11, 40], [2, 5, -1], 0)
    freed = contents(one, known, 4)
    assert (freed.size_bytes.tolist(), freed.unknown_bytes) == ([6, 40], 0)


def test_blocks_freed_in_the_history_are_unknown_until_then() -> None:
    entries = [(0, ALLOC, 1, 5), (1, COMPLETED, 7, 30), (2, ALLOC, 2, 9)]
    one = history(entries, [(1, 5), (2, 9)])
    known = levels(one)
    assert [contents(one, known, event).unknown_bytes for event in range(3)] == [30, 0, 0]


@pytest.mark.parametrize(
    ("reserved", "survivors", "is_anchored"),
    [
        (14, [(1, 5), (2, 9)], True),
        (13, [(1, 5), (2, 9)], False),  # less is held than was in use
        (14, [(1, 5), (2, 8)], False),  # less is in use than was allocated and not freed
        (15, [(1, 5), (2, 9), (3, 1)], True),
    ],
)
def test_levels_that_fit_the_end(reserved: int, survivors: list[tuple[int, int]], is_anchored: bool) -> None:
    one = history([(0, ALLOC, 1, 5), (1, ALLOC, 2, 9)], survivors, reserved)
    assert levels(one).is_anchored is is_anchored


def test_segments_that_the_end_contradicts() -> None:
    """More was returned than is said to have been held: levels begin at the least possible."""
    one = history([(0, ALLOC, 1, 5), (1, GROW, 1, 100), (2, SHRINK, 1, 60)], [(1, 5)], reserved=30)
    known = levels(one)
    assert known.reserved_bytes.tolist() == [0, 100, 40]
    assert not known.is_anchored


def test_what_waits_for_a_stream_needs_both_kinds_of_frees() -> None:
    entries = [
        (0, ALLOC, 1, 5),
        (1, ALLOC, 2, 9),
        (2, REQUESTED, 1, 5),
        (3, REQUESTED, 2, 9),
        (4, COMPLETED, 1, 5),
    ]
    both = levels(history(entries, [(2, 9)], pending=9))
    assert both.pending_bytes.tolist() == [0, 0, 5, 14, 9]
    assert both.used_bytes.tolist() == [5, 14, 14, 14, 9]
    requested = levels(history(entries[:4]))
    assert requested.pending_bytes.tolist() == [0, 0, 0, 0]
    assert requested.used_bytes.tolist() == [5, 14, 9, 0]
    completed = levels(history([*entries[:2], entries[4]], [(2, 9)]))
    assert completed.pending_bytes.tolist() == [0, 0, 0]
    assert completed.used_bytes.tolist() == [5, 14, 9]


def test_places_by_what_they_keep_then_by_what_they_allocated() -> None:
    """Place 0 keeps nothing and allocates 50, place 1 keeps 8, 2 keeps 8 of 20, 3 allocates 50 like 0."""
    entries = [
        (0, ALLOC, 1, 50),
        (1, COMPLETED, 1, 50),
        (2, ALLOC, 2, 8),
        (3, ALLOC, 3, 12),
        (4, COMPLETED, 3, 12),
        (5, ALLOC, 4, 3),
        (6, ALLOC, 5, 5),
        (7, ALLOC, 6, 50),
        (8, COMPLETED, 6, 50),
    ]
    stack = [0, 0, 1, 2, 0, 2, 2, 3, 0]
    one = history(entries, [(2, 8), (4, 3), (5, 5)], stack=stack)
    found = kept(one, levels(one), np.arange(4))
    assert found.frame.tolist() == [2, 1, 0, 3]
    assert found.allocated_bytes.tolist() == [20, 8, 50, 50]
    assert found.n_allocated.tolist() == [3, 1, 1, 1]
    assert found.kept_bytes.tolist() == [8, 8, 0, 0]
    assert found.n_kept.tolist() == [2, 1, 0, 0]
    assert found.first.tolist() == [5, 2, -1, -1]
    assert found.last.tolist() == [6, 2, -1, -1]
    assert not found.is_steady.any()
    # Two places may be one frame.
    merged = kept(one, levels(one), np.array([7, 4, 4, 7]))
    assert (merged.frame.tolist(), merged.kept_bytes.tolist()) == ([4, 7], [16, 0])
    assert merged.first.tolist() == [2, -1]


@pytest.mark.parametrize(
    ("last_quarter", "is_steady"), [((100, 100), True), ((13, 12), True), ((12, 12), False), ((0, 0), False)]
)
def test_even_growth(last_quarter: tuple[int, int], is_steady: bool) -> None:
    """Eight blocks in four quarters of 25 ps: each quarter adds a quarter of an even share or more.

    With 125 + 125 + 125 + 25 = 400 bytes an even share is 100, of which 25 are a quarter.
    """
    first = [60, 65] if sum(last_quarter) < 200 else [100, 100]
    sizes = [*first, *first, *first, *last_quarter]
    times = [0, 24, 25, 49, 50, 74, 75, 99]
    blocks = [(i + 1, size) for i, size in enumerate(sizes)]
    entries = [(1000 + at, ALLOC, *block) for at, block in zip(times, blocks, strict=True)]
    one = history(entries, blocks)
    assert kept(one, levels(one), np.zeros(1, np.int64)).is_steady.tolist() == [is_steady]


def test_quarters_are_those_of_the_whole_history() -> None:
    """Nine blocks of equal size; the last quarter begins after 75 of 100 ps."""
    for last, is_steady in ((74, False), (75, True)):
        times = [0, 1, 2, 30, 31, 32, 55, 56, last]
        blocks = [(i + 1, 10) for i in range(9)]
        entries = [(1000 + at, ALLOC, *block) for at, block in zip(times, blocks, strict=True)]
        one = history([*entries, (1099, GROW, 1, 5)], blocks)
        assert kept(one, levels(one), np.zeros(1, np.int64)).is_steady.tolist() == [is_steady]
    at_once = [(7, ALLOC, i + 1, 10) for i in range(9)]
    one = history(at_once, [(i + 1, 10) for i in range(9)])
    assert kept(one, levels(one), np.zeros(1, np.int64)).is_steady.tolist() == [False]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 101])
def test_the_last_event_is_in_the_last_quarter(length: int) -> None:
    """Blocks at every ps of a history: each quarter gets the same number, the last one less where they do not
    divide.
    """
    n = max(length, 8)
    blocks = [(i + 1, 10) for i in range(n)]
    entries = [(1000 + i * length // n, ALLOC, *block) for i, block in enumerate(blocks)]
    one = history(entries, blocks)
    quarters = [0, 0, 0, 0]
    for at, *_ in entries:
        width = -(-(entries[-1][0] - 1000 + 1) // 4)
        quarters[(at - 1000) // width] += 10
    is_steady = min(quarters) >= sum(quarters) / 16
    assert kept(one, levels(one), np.zeros(1, np.int64)).is_steady.tolist() == [is_steady]


def test_blocks_without_bytes_do_not_grow() -> None:
    blocks = [(i + 1, 0) for i in range(12)]
    one = history([(1000 + 9 * i, ALLOC, *block) for i, block in enumerate(blocks)], blocks)
    assert kept(one, levels(one), np.zeros(1, np.int64)).is_steady.tolist() == [False]


def test_levels_that_are_lower_bounds_leave_nothing_unknown() -> None:
    """5 B were allocated and are said to be gone, 3 B to be there from before: more than the level of 5."""
    one = history([(0, ALLOC, 1, 5)], [(9, 3)])
    known = levels(one)
    assert (known.used_bytes.tolist(), known.is_anchored) == ([5], False)
    shown = contents(one, known, 0)
    assert (shown.size_bytes.tolist(), shown.unknown_bytes) == ([5, 3], 0)
