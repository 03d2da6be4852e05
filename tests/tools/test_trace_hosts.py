"""The hosts of a timeline: which rows of tables its lines are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.tools.trace_hosts import HostView, _apart


@pytest.mark.parametrize(("line", "counter"), [(0, -1), (2, -1), (3, 0), (4, 1), (5, -1)])
def test_lines_after_those_of_events_are_counters(line: int, counter: int) -> None:
    """Three lines of events, then two counters."""
    view: Any = SimpleNamespace(trace=SimpleNamespace(lines=[0] * 3, counters=[0] * 2))
    assert HostView.counter_of(view, line) == counter


def test_hosts_captured_at_other_times_are_named_with_the_time_between() -> None:
    def view(host: str, start_s: int, is_aligned: bool) -> Any:
        trace = SimpleNamespace(info=SimpleNamespace(start_ns=start_s * 10**9))
        return SimpleNamespace(host=host, is_aligned=is_aligned, trace=trace)

    day, now = 86_400, 500 * 86_400
    late = [view(f"late{i}", now + 3600 * 5 * i, False) for i in range(1, 5)]
    views = [view("b", now + 7, True), view("a", now, True), view("early", now - 148 * day, False), *late]
    assert _apart(views) == [
        "early was captured 148 days before the others",
        "late1 was captured 5 hours after the others",
        "late2 was captured 10 hours after the others",
        "late3 was captured 15 hours after the others",
    ]
    assert _apart(views[:2]) == []
