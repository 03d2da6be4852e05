"""A thread's contexts and stretches, compiled, against their plain twins on random lines of events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.native.plain import calling as plain_calling
from tb_tpuprof.native.plain import intervals as plain_intervals
from tests.native.event_lines import lines, same

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the extension is not built: there is nothing to compare"
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(lines(), st.data())
def test_calling(events: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    from tb_tpuprof.native.compiled import calling

    start, duration = (column[: events[2][1]] for column in events[:2])
    parent, _ = plain_intervals.nest(start, start + duration, np.array([0, len(start)]))
    name, mark = (
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(start), max_size=len(start))), kind)
        for kind in (np.int32, np.uint16)
    )
    found = plain_calling.contexts(parent, name)
    assert same(calling.contexts(parent, name), found)
    marked = plain_calling.contexts(parent, name, mark)
    assert same(calling.contexts(parent, name, mark), marked)
    assert len(marked[1]) >= len(found[1])
    code = (
        found[0],
        np.array(
            data.draw(st.lists(st.integers(-1, 2), min_size=len(found[1]), max_size=len(found[1]))), np.int32
        ),
    )
    edges = np.array(sorted(data.draw(st.sets(st.integers(0, 90), max_size=8))), np.int64)
    windows = (
        (edges[:-1], edges[1:])
        if data.draw(st.booleans())
        else (edges[: len(edges) // 2 * 2 : 2].copy(), edges[1::2].copy())
    )
    least = data.draw(st.integers(1, 4))
    expected = plain_calling.stretches(start, duration, parent, code, windows, least)
    assert same(calling.stretches(start, duration, parent, code, windows, least), expected)
    if len(found[1]) and len(start):  # every moment has one owner: the innermost event that is on
        every = plain_calling.stretches(
            start, duration, parent, (found[0], np.zeros(len(found[1]), np.int32)), (edges[:-1], edges[1:])
        )
        on = np.zeros(100, np.bool_)
        for begin, end in zip(start.tolist(), (start + duration).tolist(), strict=True):
            on[begin:end] = True
        on[: edges[0] if len(edges) else 100] = on[edges[-1] if len(edges) else 0 :] = False
        assert int((every[1] - every[0]).sum()) == int(on.sum())
    own = plain_calling.own_times(start, duration, parent, found[0], windows, len(found[1]))
    assert same(calling.own_times(start, duration, parent, found[0], windows, len(found[1])), own)
    # Its own times are the stretches of each context by itself.
    each = found[0], np.arange(len(found[1]), dtype=np.int32)
    begins, ends, _, owner, _ = plain_calling.stretches(start, duration, parent, each, windows)
    assert own[0].tolist() == [
        int((ends - begins)[found[0][owner] == context].sum()) for context in range(len(found[1]))
    ]
    above = np.where(parent >= 0, parent, -1).astype(np.int32)
    values = np.stack((start, duration))
    sums = plain_calling.summed_up(above, values)
    assert same(calling.summed_up(above, values), sums)
    codes = name.astype(np.int32)
    inner = plain_calling.repeats(above, codes, 3)
    assert same(calling.repeats(above, codes, 3), inner)
    assert len(np.unique(codes[(above < 0)])) <= int((~inner).sum())
    roots = above < 0
    assert sums[:, roots].sum(axis=1).tolist() == values.sum(axis=1).tolist()
    # The stretches are charged among others as they are when given one by one.
    n, n_windows = data.draw(st.integers(0, 8)), len(windows[0])
    klass = np.array(
        data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 63, 64, 127, 128, 255]), min_size=n, max_size=n)),
        np.uint8,
    )
    begin = np.array(data.draw(st.lists(st.integers(0, 90), min_size=n, max_size=n)), np.int64)
    end = begin + np.array(data.draw(st.lists(st.integers(0, 40), min_size=n, max_size=n)), np.int64)
    n_steps = data.draw(st.integers(1, 3))
    step = np.array(data.draw(st.lists(st.integers(0, n_steps - 1), min_size=n, max_size=n)), np.int64)
    steps = tuple(
        np.array(data.draw(st.lists(st.integers(0, 90), min_size=n_steps, max_size=n_steps)), np.int64)
        for _ in range(2)
    )
    of_window = np.array(
        data.draw(st.lists(st.integers(0, n_steps - 1), min_size=n_windows, max_size=n_windows)), np.int64
    )
    own = ((start, duration, parent, code, windows), of_window) if data.draw(st.booleans()) else ()
    time = np.full((3, n_steps, data.draw(st.sampled_from([4, 256]))), 7, np.int64)
    order = np.argsort(begin, kind="stable")
    longest = [
        twin.charged((begin, end, klass, step), order, steps, found, own)
        for twin, found in zip((calling, plain_calling), time, strict=False)
    ]
    assert same(longest[0], longest[1])
    assert same(time[0], time[1])
    if own:
        left, right, window, event, _ = plain_calling.stretches(*own[0])
        every = tuple(
            np.concatenate(pair)
            for pair in (
                (begin, left),
                (end, right),
                (klass, code[1][code[0][event]].astype(np.uint8)),
                (step, of_window[window]),
            )
        )
        plain_calling.charged(every, np.argsort(every[0], kind="stable"), steps, time[2])
        assert same(time[0], time[2])
    assert (time[0].sum(axis=1) <= np.maximum(steps[1] - steps[0], 0)).all()


@pytest.mark.parametrize("n_windows", [1, 255, 256, 257, 700])
@pytest.mark.parametrize("least", [1, 60, 100])
def test_an_event_over_more_windows_than_fit_a_block(n_windows: int, least: int) -> None:
    """The compiled walk returns blocks of 256 stretches, and goes on within an event."""
    from tb_tpuprof.native.compiled import calling

    start, duration = np.array([0, 1000, 1500, 60_000]), np.array([100_000, 300, 40_000, 20_000])
    parent, context = np.array([-1, 0, 0, 0], np.int32), np.array([0, 1, 2, 1], np.int32)
    opens = np.arange(n_windows) * 150 + 10
    arguments = (
        start,
        duration,
        parent,
        (context, np.array([5, 7, 9], np.int32)),
        (opens, opens + 100),
        least,
    )
    found = calling.stretches(*arguments)
    assert len(found[0]) >= n_windows * 0.9
    same(found, plain_calling.stretches(*arguments))
