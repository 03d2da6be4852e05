"""Several events selected one click at a time in a real browser: their totals, held against the trace; the
link, and how the selection ends.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time
from tests.browser.conftest import Server
from tests.browser.test_trace_viewer_hands import names_of, open_viewer, param, stage_of, trace
from tests.browser.walking import expect_state, state_of

__all__ = ["trace"]  # the fixture

STEP_PX = 6


def nested_triple(trace: Trace) -> tuple[int, int, int]:
    """An event with two different ones within it, all of them drawn as boxes of their own in its window."""
    start, duration = (trace.events[name] for name in ("start_ps", "duration_ps"))
    names = names_of(trace)
    first, last = (int(trace.line_offsets[i]) for i in (0, 1))
    for parent in range(first, last):
        end = start[parent] + duration[parent]
        inside = [
            row
            for row in range(parent + 1, min(parent + 40, last))
            if start[row] + duration[row] <= end and duration[row] * 12 > duration[parent] > 0
        ]
        if len(inside) > 1 and len({names[row] for row in (parent, *inside[:2])}) == 3:
            return parent, inside[0], inside[1]
    pytest.fail("no such events")


def points(page: Page, frame: Any, names: list[str]) -> dict[str, tuple[float, float]]:
    """For each name a point of the timeline whose tooltip begins with it."""
    box, found = stage_of(frame).bounding_box(), {}
    tip = frame.locator(".tv-tip b").first
    for y in range(60, int(box["height"]), STEP_PX):
        for share in (0.2, 0.35, 0.5, 0.65, 0.8):
            at = box["x"] + share * box["width"], box["y"] + y
            page.mouse.move(*at)
            page.wait_for_timeout(20)
            text = tip.text_content() if tip.count() else ""
            if text in names and text not in found:
                found[text] = at
        if len(found) == len(names):
            return found
    pytest.fail(f"found {found} of {names}")


def click(page: Page, at: tuple[float, float], key: str = "") -> None:
    """A click, with a key held."""
    if key:
        page.keyboard.down(key)
    page.mouse.click(*at)
    if key:
        page.keyboard.up(key)


def test_events_are_added_counted_linked_and_removed(page: Page, server: Server, trace: Trace) -> None:
    chosen = nested_triple(trace)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    window = {
        "start_ps": str(int(start[chosen[0]])),
        "end_ps": str(int(start[chosen[0]] + duration[chosen[0]])),
    }
    frame = open_viewer(page, server, **window)
    names = [names_of(trace)[row] for row in chosen]
    at = points(page, frame, names)
    click(page, at[names[0]])
    click(page, at[names[1]], "Control")
    tab = frame.get_by_role("tab", name="Selection")
    expect(tab).to_have_text("Selection · 2 events")
    click(page, at[names[2]], "Control")
    expect(tab).to_have_text("Selection · 3 events")
    events = [int(part) for part in param(page, "events").split(".")]
    assert [names_of(trace)[event] for event in events] == names
    total = format_time(int(duration[events].sum()))
    panel = frame.locator(".tv-totals")
    expect(panel).to_contain_text(f"3 events · {total} in total")
    expect(panel.get_by_role("grid")).to_contain_text(names[2])
    page.reload()
    expect(frame.get_by_role("tab", name="Selection")).to_have_text("Selection · 3 events")
    expect(frame.locator(".tv-totals")).to_contain_text(f"3 events · {total} in total")
    click(page, at[names[1]], "Control")
    expect(tab).to_have_text("Selection · 2 events")
    expect_state(page, events=f"{events[0]}.{events[2]}")
    click(page, at[names[0]])
    expect(tab).to_have_count(0)
    expect(frame.get_by_role("tab", name="Event")).to_have_count(1)
    page.wait_for_function("!location.hash.includes('events=')")


def test_the_keyboard_selects_several_events_too(page: Page, server: Server, trace: Trace) -> None:
    parent, child, _ = nested_triple(trace)
    frame = open_viewer(page, server, event=str(parent))
    expect(frame.get_by_role("tab", name="Event")).to_have_count(1)
    page.keyboard.press("x")
    tab = frame.get_by_role("tab", name="Selection")
    expect(tab).to_have_text("Selection · 1 event")
    page.keyboard.press("ArrowDown")
    expect_state(page, event=str(child))
    page.keyboard.press("x")
    expect(tab).to_have_text("Selection · 2 events")
    assert param(page, "events") == f"{parent}.{child}"
    page.keyboard.press("x")
    expect(tab).to_have_text("Selection · 1 event")
    page.keyboard.press("Escape")
    expect(tab).to_have_count(0)
    assert "event" in state_of(page)
