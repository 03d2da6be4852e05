"""The notes below the numbers of a run: what is present beside what was active, and why there is no step
time.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.overview.facts import RunFacts, longest_gap, run_facts
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.ingest.opening import trace_of_bytes
from tb_tpuprof.tools import facts as notes
from tests.synthetic_unlike import gpu_run


def of_three_hosts() -> RunFacts:
    parts = [summary(trace_of_bytes(data, host)) for host, data in gpu_run().items()]
    return run_facts([part.facts for part in parts], [0, 0, 0])


class Present(RunFacts):
    """The same run with more devices than ran anything."""

    @property
    def n_present(self) -> int:
        return self.n_active + 2


def sizes(facts: Any) -> dict[str, str]:
    return {name: number.note for name, number in notes._sizes(facts).items()}


def test_devices_that_ran_nothing_are_mentioned_only_if_there_are_any() -> None:
    facts = of_three_hosts()
    assert sizes(facts)["n_devices"] == ""
    assert sizes(Present(facts.hosts, facts.common))["n_devices"] == "11 present"
    assert sizes(facts)["capture_ps"] == "of the longest host"
    assert sizes(replace(facts, hosts=facts.hosts[:1]))["capture_ps"] == ""


@pytest.mark.parametrize(
    ("is_disjoint", "n_trimmed", "note"),
    [(True, 2, "none in common"), (False, 2, "2 more left out"), (False, 0, "")],
)
def test_the_number_of_steps_says_what_it_leaves_out(is_disjoint: bool, n_trimmed: int, note: str) -> None:
    facts = of_three_hosts()
    steps = replace(facts.steps, n_trimmed=n_trimmed)
    run = SimpleNamespace(
        steps=steps,
        step_time_ps=facts.step_time_ps,
        common=SimpleNamespace(steps=steps, is_disjoint=is_disjoint, rows=facts.common.rows),
    )
    assert notes._step_times(run)["n_steps"].note == note  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spans", "gap"),
    [
        ([(40, 45), (0, 10), (12, 30), (14, 20)], (30, 40)),  # the longer span still covers 20 to 30
        ([(0, 5), (8, 9), (12, 13)], (5, 8)),  # the first of two equal ones
        ([(0, 5), (5, 9)], (0, 0)),
        ([(0, 5)], (0, 0)),
        ([], (0, 0)),
    ],
)
def test_the_longest_gap_is_covered_by_no_span(spans: list[tuple[int, int]], gap: tuple[int, int]) -> None:
    start, end = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    assert longest_gap(start, end) == gap
