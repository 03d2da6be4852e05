"""Random lines of events, and whether two results of twins are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@st.composite
def lines(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start, duration, line offsets) of a few lines, each sorted by (start, -duration)."""
    starts, durations, counts = [], [], []
    for _ in range(draw(st.integers(1, 5))):
        events = sorted(
            draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=25)),
            key=lambda e: (e[0], -e[1]),
        )
        starts += [start for start, _ in events]
        durations += [duration for _, duration in events]
        counts.append(len(events))
    return np.array(starts, np.int64), np.array(durations, np.int64), np.cumsum([0, *counts]).astype(np.int64)


def same(left: Any, right: Any) -> bool:
    """Equal arrays, or tuples of them."""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(np.array_equal(left, right))
