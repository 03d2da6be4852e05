"""Warnings about clocks: how many hosts are named, and what a single host needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tb_tpuprof.analysis.steps.clocks import ClockOffset
from tb_tpuprof.tools import clocks


class Hosts:
    """A session in which the clock of host i is 10 · i ms ahead, and whose hosts from `n_near` on were
    captured at other times.
    """

    def __init__(self) -> None:
        self.n_calls = 0

    def map(self, _function: Callable[..., Any], hosts: Sequence[str]) -> list[int]:
        self.n_calls += 1
        return list(range(len(hosts)))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    monkeypatch.setattr(
        clocks, "clock_offsets", lambda marks: [ClockOffset(i * 10**10, 1, "steps") for i in marks]
    )
    monkeypatch.setattr(clocks, "clock_sentences", lambda hosts, _: [f"{host} is off." for host in hosts[1:]])
    monkeypatch.setattr(
        clocks, "apart_sentences", lambda hosts, _: [f"{host} is apart." for host in hosts[:9]]
    )
    return Hosts()


def test_eight_hosts_are_named_and_the_others_counted(session: Hosts) -> None:
    hosts = [f"h{i}" for i in range(12)]
    found = clocks.clocks_of(session, hosts)  # type: ignore[arg-type]
    texts = [one.message for one in found.diagnostics]
    assert texts[:8] == [f"h{i} is apart." for i in range(8)]
    assert texts[8:16] == [f"h{i} is off." for i in range(1, 9)]
    assert texts[16:] == ["3 more hosts have clock offsets; their timestamps were corrected."]
    assert found.n_apart == 8
    assert len(found.correction_ns) == 12


def test_exactly_eight_need_no_count(session: Hosts) -> None:
    found = clocks.clocks_of(session, [f"h{i}" for i in range(9)])  # type: ignore[arg-type]
    assert found.diagnostics[-1].message == "h8 is off."


def test_a_single_host_is_not_compared(session: Hosts) -> None:
    assert clocks.clocks_of(session, ["h0"]) == clocks.Clocks((0,))  # type: ignore[arg-type]
    assert clocks.clocks_of(session, []) == clocks.Clocks(())  # type: ignore[arg-type]
    assert (session.n_calls, clocks.Clocks((0,)).n_apart) == (0, 0)
