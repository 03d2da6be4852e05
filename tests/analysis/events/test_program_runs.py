"""Calls of XLA:CPU and the ends of their runs on the thread pool, matched in order."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events.program_runs import run_ends
from tests.builders import Stats, drawing

CALL = "PjRtCpuLoadedExecutable::ExecuteHelperOnSingleDevice"
NEW_CALL = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_runs_belong_to_calls_in_order(names: tuple[str, str]) -> None:
    """Calls on two threads; ids of runs say nothing of their order; a run ends with its last piece."""
    first, second = names
    pool = f"""
        other                                                                      {{CALL]
        main  {{NEW]
        pool1                                                                                                                                              [{first}  ]      [{second}  ]
        pool2                                                                                                                                               [{first}        ]  [{second}]
    """
    runs = {"a": {"run_id": 70}, "b": {"run_id": 3}}
    trace = drawing(pool.replace("{CALL", "[" + CALL).replace("{NEW", "[" + NEW_CALL), runs)
    ends = {
        name: max(
            int(trace.events["start_ps"][i] + trace.events["duration_ps"][i])
            for i in range(trace.n_events)
            if trace.strings[trace.event_names[trace.events["metadata"][i]]] == name
        )
        for name in names
    }
    calls, end = run_ends(trace)
    starts = trace.events["start_ps"][calls].tolist()
    assert starts == sorted(starts)
    assert end.tolist() == [ends[first], ends[second]]


def test_more_runs_than_calls_the_last_ones_count_and_more_calls_the_first_ones() -> None:
    more_runs = drawing(
        f"""
        pool  [a]                                                               [b]  [c]
        main      [{CALL}]
        main                                                                 [{NEW_CALL}]
        """,
        {name: {"run_id": i} for i, name in enumerate("abc")},
    )
    start, duration = more_runs.events["start_ps"], more_runs.events["duration_ps"]
    calls, end = run_ends(more_runs)
    assert len(calls) == 2
    assert end.tolist() == (start + duration)[1:3].tolist()
    more_calls = drawing(
        f"""
        main  [{CALL}][{NEW_CALL}]
        pool             [a]
        """,
        {"a": {"run_id": 5}},
    )
    calls, end = run_ends(more_calls)
    assert calls.tolist() == [0]
    assert end.tolist() == [int(more_calls.events["start_ps"][2] + more_calls.events["duration_ps"][2])]


@pytest.mark.parametrize(
    ("text", "stats"),
    [
        ("main  [other]\npool   [a]", {"a": {"run_id": 1}}),
        (f"main  [{CALL}]\npool   [a]", {"a": {"x": 1}}),
        (f"main  [{CALL}]\npool   [a]\n/device:GPU:0:\nStream  [k]", {"a": {"run_id": 1}}),
        (f"main  [{CALL}]\npool   [a]", {"a": {"run_id": 1}, CALL: {"run_id": 1}}),
    ],
)
def test_no_call_no_run_a_device_and_calls_that_name_their_run(text: str, stats: dict[str, Stats]) -> None:
    calls, end = run_ends(drawing(text, stats))
    assert len(calls) == len(end) == 0
