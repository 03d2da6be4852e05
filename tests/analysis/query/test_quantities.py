"""Numbers with units: what each unit means, which texts are numbers, and which values are within bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tb_tpuprof.analysis.query.quantities import (
    AMOUNTS,
    TIMES,
    Bounds,
    Quantity,
    number_in,
    quantity,
    time_scale,
)

PICOSECONDS = {
    "ps": 1,
    "ns": 1_000,
    "us": 1_000_000,
    "µs": 1_000_000,
    "μs": 1_000_000,
    "ms": 1_000_000_000,
    "s": 1_000_000_000_000,
    "min": 60_000_000_000_000,
}
DECIMAL = {
    "k": 1_000,
    "K": 1_000,
    "M": 1_000_000,
    "G": 1_000_000_000,
    "T": 1_000_000_000_000,
    "P": 1_000_000_000_000_000,
}
BINARY = {
    "KiB": 1_024,
    "MiB": 1_048_576,
    "GiB": 1_073_741_824,
    "TiB": 1_099_511_627_776,
    "PiB": 1_125_899_906_842_624,
}


def test_units_of_time() -> None:
    assert TIMES == PICOSECONDS
    for unit, factor in PICOSECONDS.items():
        assert quantity(f"3{unit}") == Quantity(3 * factor, "time")


def test_units_of_amounts() -> None:
    """`k`, `kB`, `kFLOP` and `kFLOPs` are the same number, and so are those of the other prefixes."""
    decimal = {
        f"{prefix}{unit}": factor for prefix, factor in DECIMAL.items() for unit in ("", "B", "FLOP", "FLOPs")
    }
    expected = {**decimal, "B": 1, "FLOP": 1, "FLOPs": 1, **BINARY}
    assert expected == AMOUNTS
    for unit, factor in expected.items():
        assert quantity(f"3 {unit}") == Quantity(3 * factor, "amount")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        (" 7 ", 7),
        ("7.", 7),
        (".5", 0.5),
        ("0.25", 0.25),
        ("2e3", 2_000),
        ("2e-1", 0.2),
        ("2.5e+2", 250),
        (f"{2**60 + 1}", 2**60 + 1),  # exact, though no double
        (f"{'9' * 40}", int("9" * 40)),
    ],
)
def test_plain_numbers(text: str, value: float) -> None:
    number = quantity(text)
    assert number == Quantity(value, "plain")
    assert isinstance(number.value, int) == (value == int(value))


@pytest.mark.parametrize(
    "text", ["", "x", "1x", "1 kb", "1,5", "1e", "--1", "1ms2", "ms", "0x10", "1MFLOPS", "9" * 41]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert quantity(text) is None


def test_parts_of_a_unit_are_whole_where_they_can_be() -> None:
    for text, value in (("1.5ms", 1_500_000_000), ("0.1us", 100_000), ("0.5ps", 0.5), ("1.5KiB", 1_536)):
        number = quantity(text)
        assert number is not None
        assert (number.value, type(number.value)) == (value, type(value))
    largest = quantity("9007199254740991.0")  # 2^53 - 1
    assert largest is not None
    assert (largest.value, type(largest.value)) == (2**53 - 1, int)
    beyond = quantity("9007199254740992.0")
    assert beyond is not None
    assert (beyond.value, type(beyond.value)) == (2.0**53, float)
    below = quantity("-9007199254740992.0")
    assert below is not None
    assert type(below.value) is float


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("stall_ps", 1),
        ("stall_ns", 1_000),
        ("stall_us", 1_000_000),
        ("Stall_MS", 1_000_000_000),
        ("stall_s", 1_000_000_000_000),
        ("stall_sec", 1_000_000_000_000),
        ("stall_seconds", 1_000_000_000_000),
        ("us", 0),
        ("stall_us_total", 0),
        ("bytes", 0),
        ("", 0),
    ],
)
def test_the_end_of_a_name_is_its_unit_of_time(name: str, scale: int) -> None:
    assert time_scale(name) == scale


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        (" -7.5 ", -7.5),
        ("+.5", 0.5),
        ("3.", 3),
        ("1e3", 1_000),
        ("1E-3", 0.001),
        ("9" * 40, 1e40),
        (f"  {'9' * 40}  ", 1e40),
    ],
)
def test_recorded_texts_that_are_numbers(text: str, number: float) -> None:
    assert number_in(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "7us", "nan", "inf", "0x10", "1_000", "[7]", "9" * 41])
def test_recorded_texts_that_are_no_numbers(text: str) -> None:
    assert math.isnan(number_in(text))


VALUES = np.array([-2, 3, 4, 5, 9])


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(None, None, "plain"), [True, True, True, True, True]),
        (Bounds(4, None, "plain"), [False, False, True, True, True]),
        (Bounds(4, None, "plain", is_low_open=True), [False, False, False, True, True]),
        (Bounds(None, 4, "plain"), [True, True, True, False, False]),
        (Bounds(None, 4, "plain", is_high_open=True), [True, True, False, False, False]),
        (Bounds(3, 5, "plain"), [False, True, True, True, False]),
        (Bounds(3, 5, "plain", True, True), [False, False, True, False, False]),
        (Bounds(4, 4, "plain"), [False, False, True, False, False]),
    ],
)
def test_bounds_include_their_ends_unless_they_are_open(bounds: Bounds, expected: list[bool]) -> None:
    assert bounds.contain(VALUES).tolist() == expected
    assert bounds.contain(VALUES.astype(np.float64)).tolist() == expected


def test_values_are_scaled_to_the_unit_of_the_bounds() -> None:
    """In µs, from 3 to 5 µs in ps."""
    assert Bounds(3_000_000, 5_000_000, "time").contain(VALUES, 10**6).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_what_is_no_number_is_never_within() -> None:
    values = np.array([math.nan, 1.0, math.inf])
    assert Bounds(None, None, "plain").contain(values).tolist() == [False, True, True]
    assert Bounds(0, 5, "plain").contain(values).tolist() == [False, True, False]


@pytest.mark.parametrize("limit", [2**63 - 1, 2**63, 2**64 + 5, 10**30])
def test_limits_beyond_all_integers_of_a_column(limit: int) -> None:
    values = np.array([-(2**63), 0, 2**63 - 1])
    is_most = limit == 2**63 - 1
    assert Bounds(limit, None, "plain").contain(values).tolist()[:2] == [False, False]
    assert Bounds(None, limit, "plain").contain(values).tolist() == [True, True, True]
    assert Bounds(-limit, None, "plain").contain(values).tolist() == [not is_most, True, True]
    unsigned = np.array([0, 2**64 - 1], np.uint64)
    assert Bounds(limit, None, "plain").contain(unsigned).tolist() == [False, limit < 2**64]
