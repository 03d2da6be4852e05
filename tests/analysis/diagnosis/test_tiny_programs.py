"""Programs of XLA:CPU that compute little: their executions, how long one takes, and which are tiny."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.analysis.diagnosis import tiny_calls as module
from tb_tpuprof.analysis.diagnosis.step_calls import MANY
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build

Int64s = npt.NDArray[np.int64]
US = PS


@dataclass(frozen=True)
class Runs:
    """Runs of operations: the link of each, -1 for none."""

    op: Int64s
    event: Int64s
    device: Int64s
    start_ps: Int64s
    end_ps: Int64s


@dataclass(frozen=True)
class Programs:
    """Programs by id, as a trace has them."""

    titles: dict[int, str] = field(
        default_factory=lambda: {5: "jit_small(5)", 6: "jit_large(6)", 8: "jit_small(8)"}
    )

    def get(self, number: int) -> Any:
        return SimpleNamespace(title=self.titles[number]) if number in self.titles else None


def executions(
    monkeypatch: pytest.MonkeyPatch, *rows: tuple[int, int, int, int, int, int]
) -> list[tuple[int, ...]]:
    """(program, start, end) of each execution, given (link, run, device, start, end, has a run id)
    of runs.
    """
    link, run, device, start, end, has_id = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    events = [
        DrawnEvent("op", 10 * i, 5, {"run_id": int(run[i])} if has_id[i] else {}) for i in range(len(rows))
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": events})])
    runs = Runs(link, np.arange(len(rows)), device, start, end)
    monkeypatch.setattr(module, "cpu_runs", lambda _trace: runs)
    monkeypatch.setattr(module, "hlo_links", lambda _trace: SimpleNamespace(program=np.array([5, 6, 5])))
    found = module._executions(trace)
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def test_an_execution_lasts_from_its_first_operation_to_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """By program, run and device: links 0 and 2 are of program 5, link 1 is of program 6."""
    assert executions(
        monkeypatch,
        (0, 71, 0, 10, 14, 1),
        (2, 71, 0, 16, 19, 1),
        (2, 71, 0, 12, 30, 1),
        (0, 72, 0, 40, 44, 1),
        (1, 71, 0, 11, 90, 1),
        (0, 71, 1, 13, 15, 1),
        (-1, 71, 0, 0, 99, 1),
    ) == [(5, 10, 30), (5, 13, 15), (5, 40, 44), (6, 11, 90)]


def test_without_links_or_run_ids_there_are_no_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executions(monkeypatch, (-1, 71, 0, 10, 14, 1), (-1, 72, 0, 20, 24, 1)) == []
    assert executions(monkeypatch, (0, 71, 0, 10, 14, 0), (1, 72, 0, 20, 24, 0)) == []


EXECUTIONS = np.array([(5, 0, 4), (6, 10, 90), (5, 100, 110), (8, 200, 203), (9, 300, 301), (8, 400, 405)]).T


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tuple(EXECUTIONS.astype(np.int64))
    monkeypatch.setattr(module, "_executions", lambda _trace: columns)


@pytest.mark.usefixtures("ran")
def test_the_time_of_a_function_is_that_of_its_longest_program() -> None:
    """Programs 5 and 8 are compiled from one function: 7 and 4 ps on average. Program 9 is unknown."""
    trace: Any = SimpleNamespace(programs=Programs())
    assert module._computed(trace) == {"small": 7.0, "large": 80.0}
    assert [module._function(title) for title in ("jit_step(7)", "step(7)", "jit_step")] == ["step"] * 3


def calling(**n_calls: tuple[int, int]) -> Trace:
    """(number, length) of the calls of each program, one after the other."""
    events, at = [], 0
    for name, (n, length) in n_calls.items():
        for _ in range(n):
            called = f"EagerLocalExecute: {name}" if name.isupper() else f"PjitFunction({name})"
            events.append(DrawnEvent(called, at, length))
            at += length + 1
    return build([DrawnPlane("/host:CPU", {"main": events})])


def tiny(trace: Trace, n_steps: int = 3) -> list[str]:
    marks = module._tiny(trace, np.arange(trace.n_events), n_steps)
    return [trace.strings[int(trace.metadata["name"][row])] for row in np.flatnonzero(marks).tolist()]


@pytest.mark.usefixtures("ran")
def test_the_executions_of_other_programs_are_larger() -> None:
    trace = calling(small=(1, 5), large=(1, 5))
    known: Any = SimpleNamespace(metadata=trace.metadata, strings=trace.strings, programs=Programs())
    for called, starts in (
        ((True, False), [10, 300]),
        ((False, True), [0, 100, 200, 300, 400]),
        ((True, True), [300]),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                module, "metadata_names", lambda _trace: ["PjitFunction(small)", "PjitFunction(large)"]
            )
            start, end = module._larger(known, np.array(called))
        assert start.tolist() == starts
        assert (end > start).all()


@pytest.mark.parametrize(("n", "found"), [(3 * MANY - 1, []), (3 * MANY, ["PjitFunction(f)"])])
def test_tiny_programs_are_called_many_times_per_step(
    monkeypatch: pytest.MonkeyPatch, n: int, found: list[str]
) -> None:
    monkeypatch.setattr(module, "_computed", lambda _trace: {"f": 5.0})
    assert tiny(calling(f=(n, 9))) == found


@pytest.mark.parametrize(
    ("call_us", "computed_us", "is_tiny"),
    [
        (20, 100, True),
        (20, 100.001, False),
        (50, 150, True),
        (50, 151, False),
        (50, 0, True),
        (50, None, True),
    ],
)
def test_tiny_programs_compute_100_us_or_three_times_as_long_as_their_call(
    monkeypatch: pytest.MonkeyPatch, call_us: int, computed_us: float | None, is_tiny: bool
) -> None:
    """One of which no execution was recorded is tiny."""
    computed = {} if computed_us is None else {"f": computed_us * US}
    monkeypatch.setattr(module, "_computed", lambda _trace: {"other": 1e15, **computed})
    assert tiny(calling(f=(30, call_us * US))) == ["PjitFunction(f)"] * is_tiny


@pytest.mark.parametrize(("call_us", "is_tiny"), [(100, True), (101, False)])
def test_tiny_operations_are_called_for_100_us(
    monkeypatch: pytest.MonkeyPatch, call_us: int, is_tiny: bool
) -> None:
    monkeypatch.setattr(module, "_computed", lambda _trace: {})
    assert tiny(calling(MUL=(30, call_us * US))) == ["EagerLocalExecute: MUL"] * is_tiny


def test_executions_are_read_only_where_calls_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(module, "_computed", lambda _trace: asked.append(1) or {})
    assert tiny(calling(f=(3, 9))) == []
    assert asked == []
