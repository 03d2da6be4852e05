"""Large arrays behave as any other, whether the system has huge pages or not."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tb_tpuprof.native import memory


@pytest.mark.parametrize(
    "n", [0, 1, memory.HUGE_PAGE // 8 - 1, memory.HUGE_PAGE // 8, memory.HUGE_PAGE // 8 + 1, 10**6]
)
def test_a_new_array_has_its_length_and_can_be_written(n: int) -> None:
    made = memory.new_array(n, np.int64)
    made[:] = np.arange(n)
    assert made.dtype == np.int64
    assert made.tolist() == list(range(n))


def test_without_huge_pages_there_are_arrays_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(mmap, "MADV_HUGEPAGE"):
        monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345)  # advice that no kernel knows
        assert len(memory.new_array(memory.HUGE_PAGE, np.uint8)) == memory.HUGE_PAGE
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert len(memory.new_array(memory.HUGE_PAGE, np.uint8)) == memory.HUGE_PAGE


def test_what_cannot_be_had_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        memory.new_array(2**55, np.int64)


def test_sparse_bytes_begin_as_zeros() -> None:
    made = memory.sparse_bytes(2**30)
    made[2**29] = 7
    assert (int(made[0]), int(made[2**29]), int(made[-1]), len(made)) == (0, 7, 0, 2**30)
    assert len(memory.sparse_bytes(0)) == 0
    with pytest.raises(MemoryError):
        memory.sparse_bytes(2**60)


def test_arrays_of_an_arena_lie_side_by_side_and_not_in_one_another() -> None:
    arena = memory.Arena()
    sizes = [3, 40_001, 70_000, 0, 300_000, 1_000_000, 3_000_000, 50_000] * 2
    dtypes = [np.int64, np.uint8, np.int32, np.int64, np.int32, np.int64, np.int64, np.int64] * 2
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(arena.take, sizes, dtypes))
    for i, (array, n, dtype) in enumerate(zip(taken, sizes, dtypes, strict=True)):
        assert (len(array), array.dtype) == (n, dtype)
        array[:] = i
    assert all((array == i).all() for i, array in enumerate(taken))
