"""Which operations only wait."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events.waiting import is_waiting

DONE = (
    "copy-done",
    "async-done",
    "host recv-done",
    "all-reduce-done",
    "dynamic-update-slice-done",
    "send-done",
)
WORK = (
    "copy-start",
    "async-start",
    "loop fusion",
    "all-reduce",
    "copy",
    "custom-call",
    "infeed",
    "done",
    "while",
)


@pytest.mark.parametrize("category", DONE)
def test_the_end_of_an_asynchronous_operation_is_waiting(category: str) -> None:
    assert is_waiting(category)
    assert is_waiting(category, "anything.1")


@pytest.mark.parametrize("category", WORK)
def test_what_starts_or_does_work_is_not(category: str) -> None:
    assert not is_waiting(category)


def test_without_a_category_the_name_decides() -> None:
    assert is_waiting("", "%copy-done.4")
    assert is_waiting("", "slice-done.378")
    assert is_waiting("", "copy-done.3.remat2")
    assert not is_waiting("", "copy-done_add_fusion.1")
    assert not is_waiting("", "copy-start.4")
    assert not is_waiting("", "")


def test_a_category_that_says_otherwise_wins_over_the_name() -> None:
    assert not is_waiting("loop fusion", "copy-done.1")
