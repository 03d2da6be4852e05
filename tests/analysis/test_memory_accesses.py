"""Breakdowns of memory accesses: sums by memory, and no bytes that make the reader fail or never end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES, add_bytes
from tests.synthetic import memory_accesses


class Held:
    """Messages one after another, in place of a trace's file; the file begins with something else."""

    def __init__(self, messages: Sequence[bytes], gap: int = 3) -> None:
        self.data, self.spans, self.source = b"\xff" * 7, [], self
        for message in messages:
            self.spans.append((len(self.data), len(message)))
            self.data += message + b"\xff" * gap

    def block(self, position: int, size: int) -> np.ndarray:
        return np.frombuffer(self.data[position : position + size], np.uint8)

    def sums(self) -> Any:
        position, size = np.array(self.spans, np.int64).reshape(-1, 2).T
        found = np.zeros((len(SPACES), len(position)))
        add_bytes(cast(Any, self), position, size, np.arange(len(position)), found)
        return found


ACCESS = st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 2**40))


@given(st.lists(st.lists(ACCESS, max_size=6), max_size=6))
def test_sums_by_memory_and_direction(operations: list[list[tuple[int, int, int]]]) -> None:
    wanted = np.zeros((len(SPACES), len(operations)))
    for i, accesses in enumerate(operations):
        for kind, space, n_bytes in accesses:
            if kind < 3 and space in (1, 2, 3):
                wanted[0 if space == 1 else 2 * space - 3 + (kind == 2), i] += n_bytes
    found = Held([memory_accesses(*accesses) for accesses in operations]).sums()
    assert found == pytest.approx(wanted)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_are_read(messages: list[bytes]) -> None:
    found = Held(messages).sums()
    assert (found >= 0).all()
    assert np.isfinite(found).all()


def test_messages_far_apart_are_read_one_by_one() -> None:
    held = Held([memory_accesses((1, 1, 5)), memory_accesses((2, 3, 7))], gap=1 << 18)
    assert held.sums()[[0, 4], [0, 1]].tolist() == [5, 7]


def test_a_message_of_endless_entries_takes_no_time() -> None:
    begin = time.monotonic()
    Held([memory_accesses((1, 1, 1)) * 500, b"\x08\x01" * 100_000]).sums()
    assert time.monotonic() - begin < 2
