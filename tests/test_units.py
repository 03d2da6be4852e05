"""Times as verdicts and the command line say them: the same scales as in the pages."""

from __future__ import annotations

import pytest

from tb_tpuprof.units import (
    PS_PER_MS,
    PS_PER_S,
    all_of,
    counted,
    format_bytes,
    format_time,
    format_value,
    three_digits,
)


@pytest.mark.parametrize(
    ("value_ps", "text"),
    [
        (0, "0 s"),
        (102_500_000, "103 µs"),
        (-102_500_000, "-103 µs"),
        (12_400_000_000, "12.4 ms"),
        (999 * PS_PER_MS, "999 ms"),
        (77.8 * PS_PER_S, "77.8 s"),
        (119 * PS_PER_S, "119 s"),
        (120 * PS_PER_S, "2.00 min"),
        (304 * PS_PER_S, "5.07 min"),
        (-304 * PS_PER_S, "-5.07 min"),
        (7190 * PS_PER_S, "120 min"),
        (7199 * PS_PER_S, "2.00 h"),
        (7200 * PS_PER_S, "2.00 h"),
        (90_000 * PS_PER_S, "25.0 h"),
    ],
)
def test_a_time_is_told_in_the_unit_that_reads_best(value_ps: float, text: str) -> None:
    assert format_time(value_ps) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1,235"),
        (102.5, "103"),
        (1.125, "1.13"),
        (99.95, "100"),
        (12.345, "12.3"),
        (2, "2.00"),
        (9.996, "10.0"),
        (999.6, "1,000"),
        (0.012345, "0.0123"),
        (0, "0"),
    ],
)
def test_a_number_has_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_whole_numbers_stay_whole() -> None:
    assert format_value(2**63 - 1, "id") == "9,223,372,036,854,775,807"
    assert format_value(2.0, "") == "2"
    assert [format_bytes(size) for size in (0, 5, 1023.9, 20 * 2**30)] == [
        "0 B",
        "5 B",
        "1.00 KiB",
        "20.0 GiB",
    ]


def test_one_is_singular_and_zero_plural() -> None:
    assert [counted(n, "core") for n in (0, 1, 1_024)] == ["0 cores", "1 core", "1,024 cores"]
    assert [counted(n, "batch", "batches") for n in (0, 1, 2)] == ["0 batches", "1 batch", "2 batches"]


def test_all_of_two_are_both() -> None:
    assert [all_of(n) for n in (2, 3, 1_000)] == ["Both", "All 3", "All 1,000"]
