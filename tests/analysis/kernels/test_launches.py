"""Launch parameters as texts: which words and numbers count, and what identifies a launch."""

from __future__ import annotations

import math

import pytest

from tb_tpuprof.analysis.kernels.launch import Launch, read_launch


def test_each_word_has_its_own_number() -> None:
    launch = read_launch("regs:33 static_shared:5 dynamic_shared:7 block:2,3,4 grid:50,60,70 occ_pct:12.5")
    assert launch == Launch(33, 5, 7, "2,3,4", "50,60,70", 0.125)
    assert launch.shared_bytes == 12
    assert launch.key == (33, 5, 7, "2,3,4", "50,60,70")
    assert not launch.is_computed


def test_an_unknown_launch() -> None:
    for launch in (Launch(), read_launch("")):
        assert (launch.key, launch.shared_bytes) == ((-1, -1, -1, "", ""), -1)
        assert math.isnan(launch.occupancy)
        assert not launch.is_computed


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("static_shared:0", 0),
        ("dynamic_shared:7", 7),
        ("static_shared:5 dynamic_shared:0", 5),
        ("static_shared:5 group_mem:6 shm:7", 5),
        ("shm:7 group_mem:6", 6),
        ("shm:7", 7),
        ("shm:0", 0),
    ],
)
def test_shared_memory_is_what_is_known_of_both_kinds(text: str, shared: int) -> None:
    assert read_launch(text).shared_bytes == shared


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("4294967295", 2**32 - 1),
        ("4294967296", -1),
        ("0000000007", 7),
        ("00000000007", -1),  # 11 digits
        ("7.0", -1),
        ("+7", -1),
        ("-7", -1),
        ("٣", -1),
        ("²", -1),
    ],
)
def test_numbers_of_a_launch_have_32_bits(text: str, number: int) -> None:
    assert read_launch(f"regs:{text}").n_registers == number


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1,2,3", "1,2,3"),
        ("0,0,0", "0,0,0"),
        ("01,2,3", "1,2,3"),
        ("1,2", ""),
        ("1,2,3,4", ""),
        ("1,,3", ""),
        ("1,2,-3", ""),
        ("4294967296,1,1", ""),
    ],
)
def test_sizes_are_three_numbers(text: str, sizes: str) -> None:
    launch = read_launch(f"block:{text} grid:7,8,9")
    assert (launch.block, launch.grid) == (sizes, "7,8,9")


@pytest.mark.parametrize(
    ("text", "occupancy"), [("100", 1.0), ("0.5", 0.005), ("1", 0.01), ("62.5", 0.625), ("1e2", 1.0)]
)
def test_an_occupancy_is_a_percentage(text: str, occupancy: float) -> None:
    assert read_launch(f"occ_pct:{text}").occupancy == occupancy


@pytest.mark.parametrize("text", ["0", "-1", "100.1", "x", "nan", "inf", ""])
def test_other_occupancies_are_unknown(text: str) -> None:
    assert math.isnan(read_launch(f"occ_pct:{text}").occupancy)


def test_of_equal_words_the_last_counts_and_words_without_a_colon_say_nothing() -> None:
    assert read_launch("regs:1 regs:2 regs").n_registers == 2
    assert read_launch("regs:1:2").n_registers == -1
