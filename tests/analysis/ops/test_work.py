"""Work of operations from a host's programs: by program and name, known, unknown and impossible."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.ops import gpu_work

N = 6
NAN = float("nan")


@dataclass(frozen=True)
class Ops:
    """As much of OpMetrics as its work needs."""

    program: tuple[int, ...]
    name: tuple[str, ...]
    self_ps: np.ndarray
    flops: np.ndarray = field(default_factory=lambda: np.arange(10.0, 80, 10))
    model_flops: np.ndarray = field(default_factory=lambda: np.arange(11.0, 81, 10))
    n_bytes: np.ndarray = field(default_factory=lambda: np.arange(12.0, 82, 10))
    roof_flops: np.ndarray = field(default_factory=lambda: np.empty(0))
    miscounted_ps: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.program)


def compiled(excess: np.ndarray) -> Any:
    """Operations a … f of program 1; `a` is of program 2, too, and comes first."""
    space = np.zeros((len(SPACES), N))
    amounts = np.arange(1.0, N + 1)
    knows_flops, knows_bytes = np.array([True, True, False] * 2), np.array([True, False, True] * 2)
    work = Work(amounts, amounts * 2, amounts * 3, space, knows_flops, knows_bytes, amounts * 4, excess)
    name = SimpleNamespace(strings=("c", "a", "b"), codes=np.array([1, 1, 2, 0, 0, 2]))
    return SimpleNamespace(work=work, name=name, program=np.array([2, 1, 1, 1, 2, 2]))


OPS = Ops((2, 1, 1, 3, 2, 1, 2), ("a", "c", "a", "a", "b", "b", "c"), np.array([1.0, 2, 3, 4, 5, 6, 7]) * 100)
# Rows of the compiled operations, in the order of OPS: 0, 3, 1, none, 5, 2, 4.
EXCESS = np.zeros((1 + len(SPACES), N))
EXCESS[0, [1, 5]] = 1.2, 3.0  # FLOPs of (1, a) and (2, b)
EXCESS[1, 3] = 1.06  # HBM bytes of (1, c)
EXCESS[4, [0, 5]] = 9.0, 1.1  # bytes in another memory of (2, a) and (2, b)


def same(found: np.ndarray, expected: list[float]) -> None:
    assert found == pytest.approx(expected, nan_ok=True)


def test_work_is_that_of_the_same_program_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_work, "hlo_ops", lambda _trace: compiled(EXCESS))
    trace: Any = None
    found = gpu_work.with_work(trace, OPS)  # type: ignore[arg-type]
    same(found.flops, [1, 4, 2, NAN, NAN, NAN, 5])
    same(found.model_flops, [2, 8, 4, NAN, NAN, NAN, 10])
    same(found.roof_flops, [4, 16, 8, NAN, NAN, NAN, 20])
    same(found.n_bytes, [3, 12, NAN, NAN, 18, 9, NAN])
    same(found.miscounted_ps, [100, 200, 300, 0, 500, 0, 0])


@pytest.mark.parametrize(
    ("program", "has_work"), [((0, 0, 0), False), ((0, 1, 0), True), ((0, 0, 2), True), ((-1, 0, -1), False)]
)
def test_one_compiled_operation_suffices(
    monkeypatch: pytest.MonkeyPatch, program: tuple[int, ...], has_work: bool
) -> None:
    monkeypatch.setattr(gpu_work, "hlo_ops", lambda _trace: compiled(EXCESS))
    trace: Any = None
    ops = Ops(program, ("a", "a", "a"), np.ones(3))
    found = gpu_work.with_work(trace, ops)  # type: ignore[arg-type]
    assert (found is not ops) is has_work
    none = Ops((), (), np.empty(0))
    assert gpu_work.with_work(trace, none) is none  # type: ignore[arg-type]


def test_what_is_impossible_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_work, "hlo_ops", lambda _trace: compiled(EXCESS))
    trace: Any = None
    found = gpu_work.without_impossible_work(trace, OPS)  # type: ignore[arg-type]
    same(found.flops, [10, 20, NAN, 40, NAN, 60, 70])
    same(found.model_flops, [11, 21, NAN, 41, NAN, 61, 71])
    same(found.n_bytes, [NAN, NAN, 32, 42, NAN, 62, 72])
    same(found.miscounted_ps, [100, 200, 300, 0, 500, 0, 0])
    monkeypatch.setattr(gpu_work, "hlo_ops", lambda _trace: compiled(EXCESS[:, :0]))
    assert gpu_work.without_impossible_work(trace, OPS) is OPS  # type: ignore[arg-type]
