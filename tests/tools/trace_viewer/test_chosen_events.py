"""Events chosen one by one on three unlike hosts: their totals and places, against those of a plain loop."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import BadParameter, EventNotFound
from tb_tpuprof.tools.trace_viewer.chosen_events import MAX_EVENTS
from tests.tools.trace_viewer.questions import ask, gpu, rows
from tests.tools.trace_viewer.test_query import US, brute, three


def _few(events: list[dict[str, Any]], seed: int, n: int) -> list[dict[str, Any]]:
    """Some events in a mixed order."""
    chosen = np.random.default_rng(seed).permutation(len(events))[:n]
    return [events[i] for i in chosen.tolist()]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_totals_of_chosen_events_are_theirs_alone(seed: int, n: int) -> None:
    traces = three(seed)
    chosen = _few(brute(traces), seed, n)
    ids = ",".join(str(event["id"]) for event in (*chosen, chosen[0]))
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in chosen:
        row = expected[event["name"]]
        row[:] = [row[0] + 1, row[1] + event["dur"], row[2] + event["self"]]
    payload = ask(*traces, question="groups", events=ids)
    found = {row["group"]: [row["n"], row["total_ps"], row["self_ps"]] for row in rows(payload, "groups")}
    assert found == expected
    assert payload.scalars["n_events"].value == len(chosen)
    slices = rows(ask(*traces, question="slices", events=ids), "slices")
    assert sorted(row["event"] for row in slices) == sorted(event["id"] for event in chosen)
    places = rows(ask(*traces, question="places", events=ids), "places")
    keys = ("event", "track", "depth", "start_ps", "duration_ps", "name")
    assert sorted(tuple(row[key] for key in keys) for row in places) == sorted(
        tuple(event[key] for key in ("id", "track", "depth", "start", "dur", "name")) for event in chosen
    )


def test_chosen_events_are_narrowed_by_query_window_and_tracks() -> None:
    traces = three(7)
    chosen = _few(brute(traces), 7, 12)
    ids = ",".join(str(event["id"]) for event in chosen)
    low, high = 10 * US, 60 * US
    tracks = {chosen[0]["track"], chosen[1]["track"], chosen[2]["track"]}
    for params, is_in in (
        ({"query": "dur>4us"}, lambda e: e["dur"] > 4 * US),
        ({"start_ps": low, "end_ps": high}, lambda e: e["start"] < high and e["start"] + e["dur"] > low),
        ({"tracks": ",".join(map(str, tracks))}, lambda e: e["track"] in tracks),
    ):
        expected = {event["id"] for event in chosen if is_in(event)}
        assert 0 < len(expected) < len(chosen), params
        found = rows(ask(*traces, question="slices", events=ids, **params), "slices")
        assert {row["event"] for row in found} == expected


def test_chosen_derived_events_count_if_no_recorded_one_is_chosen() -> None:
    derived = rows(ask(gpu(), question="slices", query="dense/matmul"), "slices")
    recorded = rows(ask(gpu(), question="slices", query="name:k1"), "slices")
    ids = [str(row["event"]) for row in (*derived, recorded[0])]
    only = ask(gpu(), question="groups", events=",".join(ids[:2]))
    assert (only.scalars["is_derived"].value, only.scalars["n_events"].value) == (True, 2)
    assert only.scalars["total_ps"].value == sum(row["duration_ps"] for row in derived)
    mixed = ask(gpu(), question="groups", events=",".join(ids))
    counts = [mixed.scalars[name].value for name in ("n_recorded", "n_derived", "n_events")]
    assert counts == [1, 2, 1]
    assert mixed.scalars["total_ps"].value == recorded[0]["duration_ps"]
    places = rows(ask(gpu(), question="places", events=",".join(ids)), "places")
    assert {str(row["event"]) for row in places} == set(ids)


def test_chosen_events_are_bounded_and_must_exist() -> None:
    traces = three(2)
    most = ",".join(["0"] * MAX_EVENTS)
    assert len(rows(ask(*traces, question="places", events=most), "places")) == 1
    for text in (most + ",0", ",", "1.5", "-1", "x", "٣", "1" * 20):
        with pytest.raises(BadParameter, match="events"):
            ask(*traces, question="places", events=text)
    for event in (2**40 - 1, 3 * 2**40):
        with pytest.raises(EventNotFound, match=str(event)):
            ask(*traces, question="groups", events=str(event))
