"""Work in parallel: results in order, each item once, also where no thread has time to help; and when work is
split.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof import parallel
from tb_tpuprof.analysis.events.memo import compute_ahead, once
from tb_tpuprof.parallel.policy import POLICY, Policy
from tb_tpuprof.parallel.splitting import run_over_lines, split_evenly
from tb_tpuprof.parallel.threads import call_in_parallel, n_threads, run_in_parallel, single_threaded
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing


def test_results_come_in_order_and_each_item_is_done_once() -> None:
    seen: list[int] = []

    def square(i: int) -> int:
        time.sleep(0.001 * (i % 3))
        seen.append(i)
        return i * i

    assert run_in_parallel(square, range(40)) == [i * i for i in range(40)]
    assert sorted(seen) == list(range(40))
    assert run_in_parallel(square, []) == []


def test_calls_return_their_own_results() -> None:
    calls: list[Callable[[], object]] = [lambda: "first", lambda: 2, lambda: None]
    assert call_in_parallel(calls) == ["first", 2, None]


def test_several_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)
    both = threading.Barrier(2, timeout=20)
    run_in_parallel(lambda _: both.wait(), range(2))
    assert not both.broken


def threads_of(work: Callable[[Callable[[object], None]], object]) -> set[int]:
    """The threads on which `work` calls the function it is given."""
    seen: set[int] = set()

    def note(_item: object) -> None:
        time.sleep(0.002)  # long enough for another thread to wake
        seen.add(threading.get_ident())

    work(note)
    return seen


def test_what_is_not_worthwhile_stays_on_the_callers_thread() -> None:
    mine = {threading.get_ident()}
    assert threads_of(lambda note: run_in_parallel(note, range(20), is_worthwhile=False)) == mine


def test_single_threaded_work_stays_on_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many hosts each is one thread's work: split further, the parts only wait for one another."""
    monkeypatch.setattr(POLICY, "n_processors", lambda: 3)
    mine = {threading.get_ident()}
    with single_threaded(), single_threaded(False):
        assert n_threads() == 1
        assert threads_of(lambda note: run_in_parallel(note, range(50))) == mine
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(n_threads).result() == 3, "of this thread only"
    assert n_threads() == 3
    monkeypatch.setattr(POLICY, "n_processors", lambda: 99)
    assert n_threads() == POLICY.max_threads


def test_parallel_work_within_parallel_work_does_not_wait_for_itself() -> None:
    assert run_in_parallel(lambda i: sum(run_in_parallel(lambda k: i * k, range(5))), range(30)) == [
        10 * i for i in range(30)
    ]


@pytest.mark.parametrize("bad", [0, 5])
def test_what_fails_is_raised(bad: int) -> None:
    def work(i: int) -> int:
        if i == bad:
            raise ValueError(i)
        return i

    with pytest.raises(ValueError, match=str(bad)):
        run_in_parallel(work, range(6))


def test_pools_are_made_in_one_package() -> None:
    """How work is split stands in one place. Captures wait for the network, on threads of their own."""
    package = Path(parallel.__file__).parents[1]
    made = re.compile(r"\b(ThreadPoolExecutor|ProcessPoolExecutor)\b")
    modules = [
        path.relative_to(package) for path in package.rglob("*.py") if made.search(path.read_text("utf-8"))
    ]
    assert {path.parts[0] for path in modules} == {"parallel", "capture"}


@given(st.lists(st.integers(0, 10**12), max_size=40), st.integers(-1, 9))
def test_parts_cover_all_items_in_order_and_are_about_equal(sizes: list[int], n_parts: int) -> None:
    parts = split_evenly(np.array(sizes, np.int64), n_parts)
    assert [i for part in parts for i in part] == list(range(len(sizes)))
    assert 1 <= len(parts) <= max(n_parts, 1)
    assert all(parts) or parts == [range(0)]
    if n_parts > 1:
        most = sum(sizes) / n_parts + max(sizes, default=0)  # at most half an item too many at each end
        assert all(sum(sizes[i] for i in part) <= most * (1 + 1e-9) for part in parts)


def test_equal_items_make_equal_parts() -> None:
    assert split_evenly(np.full(12, 7), 3) == [range(4), range(4, 8), range(8, 12)]
    assert split_evenly(np.array([9, 1, 1, 1]), 2) == [range(1), range(1, 4)]


@pytest.mark.parametrize(("min_events", "calls"), [(6, [(0, 1), (1, 3)]), (7, [(0, 3)])])
def test_lines_are_shared_by_their_events(
    min_events: int, calls: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)
    monkeypatch.setattr(POLICY, "min_parallel_events", min_events)
    assert run_over_lines(np.array([0, 3, 5, 6]), lambda first, end: (first, end)) == calls


def test_a_trace_without_lines_is_one_part() -> None:
    assert run_over_lines(np.zeros(1, np.int64), lambda first, end: (first, end)) == [(0, 0)]


@pytest.mark.parametrize(("min_events", "n_ahead"), [(2, 1), (3, 0)])
def test_analyses_are_computed_ahead_of_large_traces_once(
    min_events: int, n_ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(POLICY, "min_parallel_events", min_events)
    calls: list[Trace] = []

    @once
    def count(trace: Trace) -> int:
        calls.append(trace)
        return trace.n_events

    trace = drawing("main  [a ][b ]")
    compute_ahead(trace, count)
    assert len(calls) == n_ahead
    assert [count(trace), count(trace)] == [2, 2]
    assert calls == [trace]
    assert count(drawing("main  [a ]")) == 1


def test_several_threads_compute_an_analysis_once() -> None:
    all_ask = threading.Barrier(4, timeout=20)
    calls: list[Trace] = []

    @once
    def slow(trace: Trace) -> list[Trace]:
        time.sleep(0.05)
        calls.append(trace)
        return [trace]

    def ask() -> list[Trace]:
        all_ask.wait()
        return slow(trace)

    trace = drawing("main  [a ]")
    with ThreadPoolExecutor(4) as pool:
        results = [asked.result() for asked in [pool.submit(ask) for _ in range(4)]]
    assert len(calls) == 1
    assert all(result is results[0] for result in results)


def test_an_analysis_that_failed_is_tried_again() -> None:
    attempts: list[int] = []

    @once
    def unlucky(trace: Trace) -> int:
        attempts.append(trace.n_events)
        if len(attempts) == 1:
            raise ValueError("bad luck")
        return trace.n_events

    trace = drawing("main  [a ]")
    with pytest.raises(ValueError, match="bad luck"):
        unlucky(trace)
    assert [unlucky(trace), unlucky(trace)] == [1, 1]
    assert len(attempts) == 2


@pytest.mark.parametrize(
    ("sizes", "are_full"),
    [([5] * 4, True), ([5] * 3, False), ([5, 5, 5, 9], False), ([1] * 100 + [20], True)],
)
def test_hosts_fill_two_processors_with_two_rounds_of_the_largest(
    sizes: list[int], are_full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy()
    monkeypatch.setattr(policy, "n_processors", lambda: 2)
    assert policy.hosts_fill_processors(sizes) is are_full


def test_there_are_no_more_processes_than_processors_hosts_and_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Policy(max_processes=6)
    monkeypatch.setattr(policy, "n_processors", lambda: 8)
    assert [policy.n_processes(n) for n in (1, 5, 99)] == [1, 5, 6]
    monkeypatch.setattr(policy, "n_processors", lambda: 2)
    assert policy.n_processes(99) == 2
