"""Sums over devices, formulas with a run's numbers, and shares by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.hlo_record import Words
from tb_tpuprof.tools.shares import known_texts, shares_spec, shares_table
from tb_tpuprof.tools.sums import busy_note, summed, time_of_ops
from tb_tpuprof.tools.working import difference, quotient, rest

S, MS = 10**12, 10**9
SPEC = shares_spec("shares", "Shares")


def ops(kind: str, n_devices: int, busy_ps: int = 0, span_ps: int = 0) -> Any:
    return SimpleNamespace(kind=kind, n_devices=n_devices, busy_ps=busy_ps, span_ps=span_ps)


@pytest.mark.parametrize(
    ("n_devices", "kind", "text"),
    [
        (1, "TPU", ""),
        (0, "TPU", ""),
        (2, "TPU", "summed over 2 cores: 18.0 s per core"),
        (4, "GPU", "summed over 4 GPUs: 9.00 s per GPU"),
        (3, "CPU", "summed over 3 devices: 12.0 s per device"),
        (3, "NPU", "summed over 3 devices: 12.0 s per device"),
        (1800, "TPU", "summed over 1,800 cores: 20.0 ms per core"),
    ],
)
def test_a_sum_names_its_devices(n_devices: int, kind: str, text: str) -> None:
    assert summed(36 * S, n_devices, kind) == text


def test_times_of_operations_say_what_they_sum() -> None:
    assert time_of_ops(ops("GPU", 1), 6 * S) == "6.00 s"
    assert time_of_ops(ops("GPU", 2), 6 * S) == "6.00 s (summed over 2 GPUs: 3.00 s per GPU)"


@pytest.mark.parametrize(
    ("kind", "n_devices", "text"),
    [
        ("CPU", 1, "from launch to end, on the host"),
        ("CPU", 2, "from launch to end, on 2 CPU devices together"),
        ("TPU", 1, "on one device, of 8.00 s from its first operation to its last"),
        (
            "TPU",
            2,
            "summed over 2 cores: 3.00 s per core, of 4.00 s from its first operation to its last",
        ),
        ("TPU", 0, "on one device"),
    ],
)
def test_the_base_of_busy_time(kind: str, n_devices: int, text: str) -> None:
    assert busy_note(ops(kind, n_devices, 6 * S, 8 * S)) == text


def test_operations_that_overlap_take_longer_than_their_span() -> None:
    text = "on one device, several at once, in 5.00 s from its first operation to its last"
    assert busy_note(ops("GPU", 1, 6 * S, 5 * S)) == text
    full = "on one device, of 6.00 s from its first operation to its last"
    assert busy_note(ops("GPU", 1, 6 * S, 6 * S)) == full


def test_quotients() -> None:
    assert quotient((3 * MS, 12 * MS), "ps") == "3.00 ms ÷ 12.0 ms = 25.0%"
    assert quotient((3 * MS, 12 * MS), "ps", words="of steps") == "3.00 ms ÷ 12.0 ms of steps = 25.0%"
    assert quotient((3 * MS, 12 * MS), "ps", 0.5) == "3.00 ms ÷ 12.0 ms = 50.0%"
    assert quotient((3 * MS, 12 * MS), "ps", 0.0) == "3.00 ms ÷ 12.0 ms = 0%"
    assert quotient((12 * MS, 4), ("ps", "count"), result_unit="ps") == "12.0 ms ÷ 4 = 3.00 ms"
    assert quotient((0, 4 * MS), "ps") == "0 s ÷ 4.00 ms = 0%"


@pytest.mark.parametrize("pair", [(1, 0), (1, float("nan")), (float("nan"), 1), (0, 0)])
def test_quotients_of_unknown_numbers_have_no_formula(pair: tuple[float, float]) -> None:
    assert quotient(pair, "ps") == ""


def test_rests_and_differences() -> None:
    assert rest(3 * MS, 12 * MS) == "1 − 3.00 ms busy ÷ 12.0 ms = 75.0%"
    assert rest(3 * MS, 12 * MS, "of 2 GPUs") == "1 − 3.00 ms busy ÷ 12.0 ms of 2 GPUs = 75.0%"
    assert rest(3 * MS, 0) == ""
    assert difference((7 * MS, 4 * MS), "ps") == "7.00 ms − 4.00 ms = 3.00 ms"


def shares_of(times: dict[str, int], none: str = "(none)") -> tuple[list[tuple[str, int, float]], str]:
    """The rows of the shares of these times, each of which is the sum of two, and the table's note."""
    names = list(times)
    codes = np.array([code for code in range(len(names)) for _ in "ab"], np.int64)
    halves = [part for time in times.values() for part in (time - 1, 1)] if times else []
    table = shares_table(SPEC, Words(codes, tuple(names)), np.array(halves, np.int64), none)
    name, time, share = table.columns
    assert name.strings is not None
    texts = [name.strings[code] for code in np.asarray(name.values).tolist()]
    rows = zip(texts, np.asarray(time.values).tolist(), np.asarray(share.values).tolist(), strict=True)
    return list(rows), table.note


def test_shares_are_sorted_by_time_then_by_name() -> None:
    rows, note = shares_of({"b": 20, "": 50, "a": 20, "nothing": 0, "c": 10}, "no scope")
    assert rows == [("no scope", 50, 0.5), ("a", 20, 0.2), ("b", 20, 0.2), ("c", 10, 0.1)]
    assert note == ""
    assert shares_of({"": 3, "x": 1})[0][0] == ("(none)", 3, 0.75)


@pytest.mark.parametrize("n", [10, 11, 13])
def test_the_largest_ten_and_the_rest(n: int) -> None:
    """Of equal times at the limit the first names stay."""
    times = {f"n{i:02d}": 100 if i < 3 else 7 for i in reversed(range(n))}
    rows, note = shares_of(times)
    total = 300 + 7 * (n - 3)
    assert [row[0] for row in rows[:10]] == [f"n{i:02d}" for i in range(10)]
    assert sum(share for *_, share in rows) == pytest.approx(1)
    if n == 10:
        assert (len(rows), note) == (10, "")
    else:
        assert rows[10] == ("Other", 7 * (n - 10), pytest.approx(7 * (n - 10) / total))
        assert note == f"{n - 10} more in Other"


def test_shares_of_nothing() -> None:
    assert shares_of({}) == ([], "")
    assert shares_of({"a": 0}) == ([], "")


def test_shares_are_a_donut_that_may_be_left_out() -> None:
    assert (SPEC.chart, SPEC.is_optional) == ("donut", False)
    assert shares_spec("shares", "Shares", is_optional=True).is_optional
    assert [(one.name, one.kind, one.unit) for one in SPEC.columns] == [
        ("name", "text", ""),
        ("self_time_ps", "number", "ps"),
        ("fraction", "number", "fraction"),
    ]


def test_empty_words_are_unknown() -> None:
    texts = known_texts(Words(np.array([2, 0, 1, 2], np.int64), ("", "b", "a", "unused")))
    assert [texts.strings[code] if code >= 0 else None for code in texts.codes] == ["a", None, "b", "a"]
    assert "unused" not in texts.strings
    assert texts.codes.min() == -1
