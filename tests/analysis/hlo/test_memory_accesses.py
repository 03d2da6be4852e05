"""Breakdowns of memory accesses: sums by memory, and no bytes that make the reader fail or never end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES, Access, accesses_of, add_bytes
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


def accesses(message: bytes) -> list[Access]:
    held = Held([message])
    return accesses_of(cast(Any, held), *held.spans[0])


def test_one_message_names_its_memories_and_directions() -> None:
    message = memory_accesses((1, 1, 3_000), (2, 1, 500), (1, 3, 40), (1, 1, 24), (0, 7, 5), (2, 2, 0))
    assert accesses(message) == [
        Access("HBM", "read", 3_024),
        Access("HBM", "written", 500),
        Access("VMEM", "read", 40),
        Access("memory 7", "accessed", 5),
    ]


@pytest.mark.parametrize("message", [b"", b"\x0a\xff", b"\x0a\x03\x18\xff\xff", b"\xff" * 40, b"\0" * 5000])
def test_a_damaged_or_endless_message_has_no_accesses(message: bytes) -> None:
    assert accesses(message) == []
