"""A walk through the trace viewer: it draws, zooms and moves by hand and by key, and tells an event's details."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server
from tests.browser.walking import KERAS, TWO_WORKERS, expect_state, expect_tool, frame_of, link, state_of

TITLE = "Trace viewer"


@pytest.fixture
def stage(page: Page, server: Server) -> Locator:
    """The timeline of the Keras run, focused."""
    page.goto(link(server.url, run=KERAS, tool="trace_viewer"))
    expect_tool(page, TITLE)
    stage = frame_of(page).get_by_role("application")
    expect(frame_of(page).locator(".tv-bar")).to_contain_text("36,436 events")
    stage.focus()
    return stage


def window(page: Page) -> tuple[float, float]:
    """Start and end in the address, once they are there."""
    page.wait_for_function("location.hash.includes('end_ps')")
    state = state_of(page)
    return float(state["start_ps"]), float(state["end_ps"])


def test_it_draws(page: Page, stage: Locator) -> None:
    page.wait_for_timeout(300)
    shot = stage.screenshot()
    import io

    from PIL import Image

    colors = Image.open(io.BytesIO(shot)).convert("RGB").getcolors(1 << 24)
    assert colors is not None
    assert len(colors) > 30


def test_keys_zoom_and_move_and_show_the_whole(page: Page, stage: Locator) -> None:
    stage.press("w", delay=400)
    start, end = window(page)
    page.wait_for_timeout(500)
    start, end = window(page)
    stage.press("d", delay=400)
    page.wait_for_function("(start) => Number(new URLSearchParams(location.hash.slice(1)).get('p.profile.start_ps')) > start", arg=start)
    page.wait_for_timeout(500)
    moved, moved_end = window(page)
    assert moved_end - moved == pytest.approx(end - start, rel=0.01)
    stage.press("0")
    page.wait_for_function("!location.hash.includes('start_ps')")


def test_wheel_zooms_at_the_pointer(page: Page, stage: Locator) -> None:
    box = stage.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    for _ in range(4):
        page.mouse.wheel(0, -240)
    start, end = window(page)
    assert start > 0
    assert end > start


def test_selecting_by_keys_tells_details_and_is_in_the_link(page: Page, stage: Locator) -> None:
    stage.press("ArrowRight")
    details = frame_of(page).get_by_role("complementary", name="Selected event")
    expect(details).to_be_visible()
    expect(details).to_contain_text("Duration")
    page.wait_for_function("location.hash.includes('p.profile.event=')")
    event, name = state_of(page)["event"], details.get_by_role("heading", level=2).inner_text()
    page.reload()
    expect(frame_of(page).get_by_role("complementary", name="Selected event").get_by_role("heading", level=2)).to_have_text(name)
    assert state_of(page)["event"] == event
    frame_of(page).get_by_role("application").press("Escape")
    expect(frame_of(page).get_by_role("complementary", name="Selected event")).to_have_count(0)


def test_a_link_opens_on_its_window(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="trace_viewer", start_ps="20000000000", end_ps="40000000000"))
    expect_tool(page, TITLE)
    expect(frame_of(page).locator(".tv-bar")).to_contain_text("20 ms of")


def test_hosts_one_at_a_time(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=TWO_WORKERS, tool="trace_viewer"))
    expect_tool(page, TITLE)
    frame_of(page).get_by_role("radio", name="worker-1").check()
    expect_state(page, hosts="worker-1")
    expect(frame_of(page).locator(".tv-bar")).to_contain_text("6,479 events")
