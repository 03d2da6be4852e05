"""Counters, async events and arrows in the trace viewer's answers, for one and several hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table, table_from_rows
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing
from tests.tools.trace_viewer.questions import LINES_PER_HOST, ask, rows


def with_extras(samples: list[tuple[int, float]], start_ns: int = 0) -> Trace:
    """Two threads, one of them async; a counter of two series (the second one empty), an arrow that the file
    draws.
    """
    trace = drawing("main  [a ][b ]\nloads [c ]\nloads   [d ]", start_ns=start_ns)
    name = {text: trace.strings.find(text) for text in ("main", "loads", "a", "b")}
    return replace(
        trace,
        line_kinds=table_from_rows(schema.LINE_KINDS, [(1, schema.ASYNC)]),
        counters=table_from_rows(
            schema.COUNTERS,
            [(0, name["main"], name[series], 0, n) for series, n in (("a", len(samples)), ("b", 0))],
        ),
        samples=_samples(samples),
        flows=table_from_rows(schema.FLOWS, [(0, 3, name["a"], name["loads"])]),
    )


def _samples(samples: list[tuple[int, float]]) -> Table:
    return Table(
        schema.SAMPLES,
        {"time_ps": np.array([s[0] for s in samples], np.int64), "value": np.array([s[1] for s in samples])},
    )


def test_counters_async_events_and_arrows_of_a_file() -> None:
    trace = with_extras([(0, 1.0), (5_000_000, 4.0), (9_000_000, 2.5)])
    payload = ask(trace, flows=True)
    tracks = {track["name"]: track for track in rows(payload, "tracks")}
    assert {name: track["kind"] for name, track in tracks.items()} == {
        "main": "thread",
        "loads": "async",
        "main: a": "counter",
    }
    counter = tracks["main: a"]
    assert (counter["track"], counter["n_events"], counter["n_depths"], counter["max_value"]) == (
        2,
        3,
        1,
        4.0,
    )
    assert [(row["track"], row["time_ps"], row["value"]) for row in rows(payload, "counters")] == [
        (2, 0, 1.0), (2, 5_000_000, 4.0), (2, 9_000_000, 2.5)
    ]  # fmt: skip
    loads = [box for box in rows(payload, "boxes") if box["track"] == 1]
    assert [(box["name"], box["depth"]) for box in loads] == [("c", 0), ("d", 1)]
    (arrow,) = rows(payload, "flows")
    assert (arrow["kind"], arrow["from_event"], arrow["to_event"]) == ("loads", 0, 3)
    # Only the counter: no boxes; a window between two samples begins with the value that holds there.
    alone = ask(trace, tracks="2", start_ps=6_000_000, end_ps=8_000_000)
    assert rows(alone, "boxes") == []
    assert [row["value"] for row in rows(alone, "counters")] == [4.0]
    assert rows(ask(trace, question="groups", tracks="2"), "groups") == []


def test_counters_and_boxes_of_three_hosts_stand_where_their_clocks_put_them() -> None:
    """Hosts that began 0, 4 and 11 µs after the first one."""
    us = 1_000_000
    samples = [(0, 1.0), (2 * us, 4.0), (3 * us, 2.5)]
    hosts = [with_extras(samples[: 3 - i], 5_000 + late_us * 1_000) for i, late_us in enumerate((0, 4, 11))]
    payload = ask(*hosts)
    assert payload.scalars["n_events"].value == sum(host.n_events for host in hosts) == 12
    counters = [(row["time_ps"], row["value"]) for row in rows(payload, "counters")]
    assert counters == [(0, 1.0), (2 * us, 4.0), (3 * us, 2.5), (4 * us, 1.0), (6 * us, 4.0), (11 * us, 1.0)]
    every = rows(payload, "boxes")
    assert len(every) == 12
    start, end = 9 * us, 18 * us
    inside = [
        box for box in every if box["start_ps"] <= end and box["start_ps"] + box["duration_ps"] >= start
    ]
    assert [box["track"] // LINES_PER_HOST for box in inside] == [*[0] * 4, *[1] * 4, *[2] * 2]
    seen = ask(*hosts, start_ps=start, end_ps=end)
    assert [(box["event"], box["start_ps"]) for box in rows(seen, "boxes")] == [
        (box["event"], box["start_ps"]) for box in inside
    ]
    # Those of the first two hosts begin with the value that holds there.
    values = [(row["track"] // LINES_PER_HOST, row["value"]) for row in rows(seen, "counters")]
    assert values == [(0, 2.5), (1, 4.0), (2, 1.0)]


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(-9, 9)), max_size=200),
    st.integers(0, 200),
    st.integers(1, 200),
    st.integers(1, 60),
)
def test_thinned_counters_keep_what_can_be_seen(
    samples: list[tuple[int, int]], begin: int, length: int, width: int
) -> None:
    samples = sorted(dict(samples).items())
    trace = with_extras([(time, float(value)) for time, value in samples])
    payload = ask(trace, start_ps=begin, end_ps=begin + length, width_px=width)
    pairs = [(row["time_ps"], row["value"]) for row in rows(payload, "counters")]
    pixel = max(1, -(-length // width))
    assert set(pairs) <= set(samples)
    assert len(pairs) <= 3 * (width // 2 + 2)
    before = [sample for sample in samples if sample[0] <= begin]
    if before:
        assert before[-1] in pairs
    for place in range(width // 2 + 1):
        inside = range(begin + 2 * place * pixel, min(begin + 2 * (place + 1) * pixel, begin + length))
        values = [value for time, value in samples if time in inside]
        kept_values = [value for time, value in pairs if time in inside]
        assert (
            (min(values), max(values), values[-1]) == (min(kept_values), max(kept_values), kept_values[-1])
            if values
            else not kept_values
        )
