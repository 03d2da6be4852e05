"""The trace viewer's mouse actions to the pixel, and its numbers compared with those computed here from the
trace.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.trace.trace import Trace
from tests.browser.conftest import Server
from tests.browser.test_trace_viewer_hands import (
    drag,
    middle,
    names_of,
    open_viewer,
    param,
    span,
    stage_of,
    trace,
)
from tests.browser.test_trace_viewer_walk import nested
from tests.browser.walking import expect_state, state_of

__all__ = ["trace"]  # the fixture

SPAN_PS = 100e9
WINDOW = {"start_ps": "300000000000", "end_ps": "400000000000"}


def view_of(page: Page) -> tuple[float, float]:
    """Start and end of the window at rest."""
    span(page)
    return float(state_of(page)["start_ps"]), float(state_of(page)["end_ps"])


def bounds(trace: Trace) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Starts and ends of all events."""
    start = trace.events["start_ps"].astype(np.int64)
    return start, start + trace.events["duration_ps"].astype(np.int64)


@pytest.mark.parametrize(
    ("hand", "factor"),
    [
        ("wheel in", "less"),
        ("wheel out", "more"),
        ("pinch", "less"),
        ("w", "less"),
        ("s", "more"),
        ("+", 1 / 1.5),
        ("-", 1.5),
    ],
)
def test_zooming_keeps_the_time_under_the_pointer(
    page: Page, server: Server, hand: str, factor: float | str
) -> None:
    frame = open_viewer(page, server, **WINDOW)
    stage = stage_of(frame).bounding_box()
    share = 0.7
    page.mouse.move(stage["x"] + share * stage["width"], stage["y"] + 120)
    pointer_ps = 300e9 + share * SPAN_PS
    if hand.startswith("wheel"):
        page.mouse.wheel(0, -240 if hand == "wheel in" else 240)
    elif hand == "pinch":
        page.keyboard.down("Control")
        page.mouse.wheel(0, -13)
        page.keyboard.up("Control")
    else:
        page.keyboard.press(hand)
    start, end = view_of(page)
    if isinstance(factor, float):
        assert end - start == pytest.approx(factor * SPAN_PS, rel=1e-6)
    else:
        assert (end - start < 0.97 * SPAN_PS) if factor == "less" else (end - start > 1.03 * SPAN_PS)
    moved_px = (start + share * (end - start) - pointer_ps) / (end - start) * stage["width"]
    assert abs(moved_px) <= 1


def test_moving_keeps_the_scale(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, **WINDOW)
    width = stage_of(frame).bounding_box()["width"]
    page.mouse.move(*middle(frame))
    page.keyboard.press("a")
    left, left_end = view_of(page)
    assert left < 300e9
    page.keyboard.press("d")
    page.keyboard.press("d")
    right, right_end = view_of(page)
    assert right > 300e9
    assert left_end - left == pytest.approx(SPAN_PS)
    assert right_end - right == pytest.approx(SPAN_PS)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 120)
    page.keyboard.up("Shift")
    start, end = view_of(page)
    assert end - start == pytest.approx(SPAN_PS)
    assert (start - right) / SPAN_PS * width == pytest.approx(120, abs=1)


def test_a_double_click_zooms_to_the_event_and_a_drag_on_the_ruler_measures(
    page: Page, server: Server, trace: Trace
) -> None:
    start, end = bounds(trace)
    python = next(
        i
        for i in range(len(trace.line_offsets) - 1)
        if trace.strings.get(int(trace.lines["name"][i])) == "python"
    )
    first, last = int(trace.line_offsets[python]), int(trace.line_offsets[python + 1])
    event = first + int(np.argmax(end[first:last] - start[first:last]))
    length = int(end[event] - start[event])
    frame = open_viewer(
        page,
        server,
        only="python",
        start_ps=str(int(start[event]) - length),
        end_ps=str(int(end[event]) + length),
    )
    stage, row = stage_of(frame).bounding_box(), frame.locator(".tv-section .tv-track").first.bounding_box()
    page.mouse.dblclick(stage["x"] + stage["width"] / 2, row["y"] + 10)
    expect_state(page, event=str(event))
    view = view_of(page)
    assert view[0] == pytest.approx(max(0, start[event] - 0.25 * length), abs=2)
    assert view[1] - view[0] == pytest.approx(1.5 * length, rel=1e-6)
    page.keyboard.press("Escape")
    drag(page, (stage["x"] + 100, stage["y"] + 12), (stage["x"] + 500, stage["y"] + 12))
    marked = [int(part) for part in param(page, "mark").split("-")]
    ps_per_px = (view[1] - view[0]) / stage["width"]
    assert marked[0] == pytest.approx(view[0] + 100 * ps_per_px, abs=7 * ps_per_px)
    assert marked[1] == pytest.approx(view[0] + 500 * ps_per_px, abs=7 * ps_per_px)


def test_a_click_with_the_zoom_tool_halves_and_alt_doubles(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, **WINDOW)
    x, y = middle(frame)
    page.keyboard.press("3")
    page.mouse.click(x, y)
    assert span(page) == pytest.approx(SPAN_PS / 2)
    page.wait_for_timeout(600)
    page.keyboard.down("Alt")
    page.mouse.click(x + 40, y)
    page.keyboard.up("Alt")
    assert span(page) == pytest.approx(SPAN_PS)


def test_escape_goes_back_step_by_step(page: Page, server: Server, trace: Trace) -> None:
    _, child, _ = nested(trace)
    frame = open_viewer(
        page, server, event=str(child), mark="300000000000-310000000000", q="shuffle", **WINDOW
    )
    page.keyboard.press("4")
    expect(stage_of(frame)).to_have_attribute("data-tool", "measure")
    expect(frame.get_by_role("tab")).to_have_count(2)
    for gone in ("mark", "event", "q"):
        assert gone in state_of(page)
        page.keyboard.press("Escape")
        page.wait_for_function(
            "(name) => !new URLSearchParams(location.hash.slice(1)).has(name)", arg=f"p.profile.{gone}"
        )
    expect(stage_of(frame)).to_have_attribute("data-tool", "measure")
    page.keyboard.press("Escape")
    expect(stage_of(frame)).to_have_attribute("data-tool", "pan")
    assert view_of(page) == (300e9, 400e9)


def value_of(details: Any, name: str) -> Any:
    """The value next to a name in the drawer."""
    return details.locator("dt", has_text=re.compile(f"^{name}$")).locator("xpath=following-sibling::dd[1]")


def test_an_event_shows_its_self_time_and_its_ancestors(page: Page, server: Server, trace: Trace) -> None:
    start, end = bounds(trace)
    parent, _, line = nested(trace)
    last = int(trace.line_offsets[line + 1])
    # Its direct children: within it, and not within the child before.
    self_ps, reached = int(end[parent] - start[parent]), int(start[parent])
    n_children = 0
    for event in range(parent + 1, last):
        if start[event] >= end[parent]:
            break
        if start[event] >= reached:
            self_ps -= int(end[event] - start[event])
            reached = int(end[event])
            n_children += 1
    assert n_children > 0
    frame = open_viewer(page, server, event=str(parent))
    details = frame.get_by_role("complementary", name="Selected event")
    expect(value_of(details, "Start")).to_have_attribute("title", f"{int(start[parent]):,} ps")
    expect(value_of(details, "Duration")).to_have_attribute(
        "title", f"{int(end[parent] - start[parent]):,} ps"
    )
    expect(value_of(details, "Self time")).to_have_attribute("title", f"{self_ps:,} ps")
    expect(value_of(details, "Track")).to_contain_text(trace.strings.get(int(trace.lines["name"][line])))
    around = [
        event
        for event in range(int(trace.line_offsets[line]), parent)
        if start[event] <= start[parent] and end[event] >= end[parent]
    ]
    within = details.locator(".tv-goto li:not(.tv-flow) .muted")
    expect(within).to_have_count(len(around))


def test_totals_of_an_interval_are_those_of_the_trace(
    page: Page, server: Server, trace: Trace, tmp_path: Path
) -> None:
    first, last = 310_000_000_000, 350_000_000_000
    start, end = bounds(trace)
    is_inside = (start < last) & (end > first) | (start == end) & (start >= first) & (start < last)
    durations: dict[str, list[int]] = defaultdict(list)
    names = names_of(trace)
    for event in np.flatnonzero(is_inside).tolist():
        durations[names[event]].append(int(min(end[event], last) - max(start[event], first)))
    frame = open_viewer(page, server, mark=f"{first}-{last}", **WINDOW)
    expect(frame.locator(".tv-totals > p")).to_contain_text(f"{int(is_inside.sum()):,} events in all tracks")
    with page.expect_download() as saved:
        frame.locator(".tv-totals").get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "totals.csv")
    with (tmp_path / "totals.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    heads = rows[0]
    row_of = {row[heads.index("group")]: row for row in rows[1:]}
    assert row_of.keys() == durations.keys()
    for name, parts in durations.items():
        row = row_of[name]
        assert int(float(row[heads.index("n")])) == len(parts)
        assert int(float(row[heads.index("total_ps")])) == sum(parts)
        assert int(float(row[heads.index("max_ps")])) == max(parts)
        assert int(float(row[heads.index("min_ps")])) == min(parts)
    # The largest self time is first, and a click on a head sorts by it.
    self_times = [int(float(row[heads.index("self_ps")])) for row in rows[1:]]
    assert self_times == sorted(self_times, reverse=True)
    frame.locator(".tv-totals").get_by_role("columnheader", name="Total").click()
    most = max(durations, key=lambda name: sum(durations[name]))
    expect(frame.locator(".tv-totals [role=row], .tv-totals tr").nth(1)).to_contain_text(most)


def test_a_search_in_arguments_counts_matches_beyond_names(page: Page, server: Server, trace: Trace) -> None:
    text = "MKLcpu"
    names = names_of(trace)
    by_name = {event for event, name in enumerate(names) if text.lower() in name.lower()}
    by_argument = {
        event
        for event in range(trace.n_events)
        if any(text.lower() in str(value).lower() for _, value in trace.source.event_stats(trace, event))
    }
    assert len(by_argument - by_name) > 100
    frame = open_viewer(page, server, q=text)
    status = frame.locator(".tv-status")
    expect(status).to_have_text(f"{len(by_name):,}" if by_name else "No match")
    # A link from before the query language, then the same in the language.
    frame = open_viewer(page, server, q=text, qargs="1")
    expect(frame.locator(".tv-status")).to_have_text(f"{len(by_name | by_argument):,}")
    expect_state(page, q=f'any:"{text}"')
    frame.locator(".tv-status").click()
    expect(frame.locator(".tv-results-bar b")).to_contain_text(f"{len(by_name | by_argument):,} events · ")
