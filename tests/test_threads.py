"""Pieces of work side by side: in order, each once, also where no thread has time to help."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tb_tpuprof.parallel import threads


def test_results_come_in_order_and_each_item_is_done_once() -> None:
    seen: list[int] = []

    def square(i: int) -> int:
        time.sleep(0.001 * (i % 3))
        seen.append(i)
        return i * i

    assert threads.side_by_side(square, range(40)) == [i * i for i in range(40)]
    assert sorted(seen) == list(range(40))
    assert threads.side_by_side(square, []) == []


def test_several_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_processors", lambda: 2)
    both = threading.Barrier(2, timeout=20)
    threads.side_by_side(lambda _: both.wait(), range(2))
    assert not both.broken


def test_work_that_is_to_stay_together_does() -> None:
    """Of many hosts each is one thread's work: cut further, the pieces only wait for one another."""
    mine = threading.get_ident()
    seen: list[int] = []
    with threads.alone(), threads.alone(False):
        assert threads.n_threads() == 1
        assert threads.side_by_side(lambda i: seen.append(threading.get_ident()) or i, range(50)) == list(
            range(50)
        )
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(threads.n_threads).result() == min(threads.n_processors(), 8), (
                "of this thread only"
            )
    assert set(seen) == {mine}
    assert threads.n_threads() == min(threads.n_processors(), 8)


def test_work_within_work_does_not_wait_for_itself() -> None:
    assert threads.side_by_side(
        lambda i: sum(threads.side_by_side(lambda k: i * k, range(5))), range(30)
    ) == [10 * i for i in range(30)]


@pytest.mark.parametrize("bad", [0, 5])
def test_what_fails_is_raised(bad: int) -> None:
    def work(i: int) -> int:
        if i == bad:
            raise ValueError(i)
        return i

    with pytest.raises(ValueError, match=str(bad)):
        threads.side_by_side(work, range(6))
