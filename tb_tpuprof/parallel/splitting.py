"""Arrays cut into parts of about equal weight, for several threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel, n_threads

T = TypeVar("T")


def split_evenly(sizes: npt.NDArray[np.integer], n_parts: int) -> list[range]:
    """At most `n_parts` runs of consecutive items with about equal sums of `sizes`; at least one run. If
    there are several, none is empty.
    """
    n = len(sizes)
    if n_parts < 2 or n < 2:
        return [range(n)]
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1])
    cuts = np.searchsorted(ends - sizes / 2, [total * i / n_parts for i in range(1, n_parts)]).tolist()
    return [range(a, b) for a, b in itertools.pairwise([0, *cuts, n]) if b > a]


def run_over_lines(line_offsets: npt.NDArray[np.int64], work: Callable[[int, int], T]) -> list[T]:
    """`work(first line, line after the last)` for runs of lines with about equally many events, in parallel.

    `line_offsets` [n_lines + 1]: where each line's events begin. Returns the results run by run.
    """
    n_events, n_lines = int(line_offsets[-1]), len(line_offsets) - 1
    n_parts = min(n_threads(), n_lines) if n_events >= POLICY.min_parallel_events else 1
    parts = split_evenly(np.diff(line_offsets), n_parts)
    return call_in_parallel(partial(work, part.start, part.stop) for part in parts)
