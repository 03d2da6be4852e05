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
from tests.browser.test_trace_viewer_walk import nested
from tests.browser.walking import expect_state, state_of

__all__ = ["trace"]  # the fixture

STEP_PX = 6


def three_events(page: Page, frame: Any, names: list[str]) -> list[tuple[str, tuple[float, float]]]:
    """Three boxes of different names on the timeline: the name in the tooltip, and the point."""
    box, found = stage_of(frame).bounding_box(), dict[str, tuple[float, float]]()
    tip = frame.locator(".tv-tip b").first
    for y in range(60, int(box["height"]), STEP_PX):
        for share in (0.2, 0.5, 0.8):
            at = box["x"] + share * box["width"], box["y"] + y
            page.mouse.move(*at)
            page.wait_for_timeout(30)
            text = (tip.text_content() or "") if tip.count() else ""
            if text in names and text not in found:
                found[text] = at
            if len(found) == 3:
                return list(found.items())
    pytest.fail(f"only {found}")


def click(page: Page, at: tuple[float, float], key: str = "") -> None:
    """A click, with a key held."""
    if key:
        page.keyboard.down(key)
    page.mouse.click(*at)
    if key:
        page.keyboard.up(key)


def test_events_are_added_counted_linked_and_removed(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server, start_ps="0", end_ps="55863587000")
    found = three_events(page, frame, names_of(trace))
    names = [name for name, _ in found]
    first, second, third = (at for _, at in found)
    duration = trace.events["duration_ps"]
    click(page, first)
    click(page, second, "Control")
    tab = frame.get_by_role("tab", name="Selection")
    expect(tab).to_have_text("Selection · 2 events")
    click(page, third, "Control")
    expect(tab).to_have_text("Selection · 3 events")
    page.wait_for_function("/\\.events=\\d+\\.\\d+\\.\\d+/.test(location.hash)")
    events = [int(part) for part in param(page, "events").split(".")]
    assert [names_of(trace)[event] for event in events] == names
    total = format_time(int(duration[events].sum()))
    panel = frame.locator(".tv-totals")
    expect(panel).to_contain_text(f"3 events · {total} in total")
    expect(panel.get_by_role("grid")).to_contain_text(names[2])
    page.reload()
    expect(frame.get_by_role("tab", name="Selection")).to_have_text("Selection · 3 events")
    expect(frame.locator(".tv-totals")).to_contain_text(f"3 events · {total} in total")
    click(page, second, "Control")
    expect(tab).to_have_text("Selection · 2 events")
    expect_state(page, events=f"{events[0]}.{events[2]}")
    click(page, first)
    expect(tab).to_have_count(0)
    expect(frame.get_by_role("tab", name="Event")).to_have_count(1)
    page.wait_for_function("!location.hash.includes('events=')")


def test_the_keyboard_selects_several_events_too(page: Page, server: Server, trace: Trace) -> None:
    parent, child, _ = nested(trace)
    frame = open_viewer(page, server, event=str(parent))
    expect(frame.get_by_role("tab", name="Event")).to_have_count(1)
    page.keyboard.press("x")
    tab = frame.get_by_role("tab", name="Selection")
    expect(tab).to_have_text("Selection · 1 event")
    page.keyboard.press("ArrowDown")
    expect_state(page, event=str(child))
    page.keyboard.press("x")
    expect(tab).to_have_text("Selection · 2 events")
    expect_state(page, events=f"{parent}.{child}")
    page.keyboard.press("x")
    expect(tab).to_have_text("Selection · 1 event")
    page.keyboard.press("Escape")
    expect(tab).to_have_count(0)
    assert "event" in state_of(page)
