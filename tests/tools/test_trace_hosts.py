"""The hosts of a timeline: which rows of tables its lines are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.tools.trace_hosts import HostView


@pytest.mark.parametrize(("line", "counter"), [(0, -1), (2, -1), (3, 0), (4, 1), (5, -1)])
def test_lines_after_those_of_events_are_counters(line: int, counter: int) -> None:
    """Three lines of events, then two counters."""
    view: Any = SimpleNamespace(trace=SimpleNamespace(lines=[0] * 3, counters=[0] * 2))
    assert HostView.counter_of(view, line) == counter
