"""A walk through the trace viewer: it draws, zooms and moves by mouse and by key, and shows an
event's details.
"""

from __future__ import annotations

import io
import itertools

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server
from tests.browser.walking import KERAS, TWO_WORKERS, expect_state, expect_tool, frame_of, link, state_of

TITLE = "Trace viewer"
# Above it is the ruler.
RULER_PX = 40
# Channels further apart than this are a color, not a gray.
COLOURED = 30


@pytest.fixture
def stage(page: Page, server: Server) -> Locator:
    """The timeline of the Keras run, focused."""
    page.goto(link(server.url, run=KERAS, tool="trace_viewer"))
    expect_tool(page, TITLE)
    stage = frame_of(page).get_by_role("application")
    expect(frame_of(page).locator(".tv-whole")).to_contain_text("36,436 events")
    stage.focus()
    return stage


def window(page: Page) -> tuple[float, float]:
    """Start and end in the address, once they are there."""
    page.wait_for_function("location.hash.includes('end_ps')")
    state = state_of(page)
    return float(state["start_ps"]), float(state["end_ps"])


def pixels(stage: Locator) -> npt.NDArray[np.int16]:
    """The drawing as rows of pixels of red, green and blue."""
    return np.asarray(Image.open(io.BytesIO(stage.screenshot())).convert("RGB")).astype(np.int16)


@pytest.mark.tensorboard
def test_it_draws(page: Page, stage: Locator) -> None:
    page.wait_for_timeout(300)
    assert len(np.unique(pixels(stage).reshape(-1, 3), axis=0)) > 30


def test_keys_zoom_and_move_and_show_the_whole(page: Page, stage: Locator) -> None:
    stage.press("w", delay=400)
    start, end = window(page)
    page.wait_for_timeout(500)
    start, end = window(page)
    stage.press("d", delay=400)
    page.wait_for_function(
        "(start) => Number(new URLSearchParams(location.hash.slice(1)).get('p.profile.start_ps')) > start",
        arg=start,
    )
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


def details_of(page: Page) -> Locator:
    """The drawer with the selected event."""
    return frame_of(page).get_by_role("complementary", name="Selected event")


def longest_box(stage: Locator) -> tuple[float, float]:
    """A point of the drawing within the longest run of one color that is not gray."""
    picture = pixels(stage)
    is_colored = (picture.max(axis=2) - picture.min(axis=2) > COLOURED)[RULER_PX:]
    best = (0, 0.0, 0.0)
    for y, row in enumerate(is_colored, RULER_PX):
        ends = np.flatnonzero((picture[y, 1:] != picture[y, :-1]).any(axis=1) | (row[1:] != row[:-1])) + 1
        bounds = np.concatenate([[0], ends, [len(row)]])
        runs = [(int(b - a), (a + b) / 2, float(y)) for a, b in itertools.pairwise(bounds) if row[a]]
        best = max([best, *runs])
    return best[1:]


def test_a_click_selects_and_the_link_keeps_the_event(page: Page, stage: Locator) -> None:
    page.wait_for_timeout(300)
    x, y = longest_box(stage)
    stage.click(position={"x": x, "y": y})
    expect(details_of(page)).to_contain_text("Duration")
    page.wait_for_function("location.hash.includes('p.profile.event=')")
    event, name = state_of(page)["event"], details_of(page).get_by_role("heading", level=2).inner_text()
    page.reload()
    expect(details_of(page).get_by_role("heading", level=2)).to_have_text(name)
    assert state_of(page)["event"] == event


def test_arrow_keys_go_to_neighbours_and_escape_deselects(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="trace_viewer", start_ps="0", end_ps="200000000", event="0"))
    expect(details_of(page)).to_be_visible()
    stage = frame_of(page).get_by_role("application")
    stage.focus()
    stage.press("ArrowRight")
    page.wait_for_function(
        "!['', '0', null].includes(new URLSearchParams(location.hash.slice(1)).get('p.profile.event'))"
    )
    stage.press("Escape")
    expect(details_of(page)).to_have_count(0)
    page.wait_for_function("!location.hash.includes('p.profile.event')")


def test_a_link_opens_on_its_window(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="trace_viewer", start_ps="20000000000", end_ps="40000000000"))
    expect_tool(page, TITLE)
    expect(frame_of(page).locator(".tv-whole")).to_contain_text("20.0 ms of")


def test_hosts_come_and_go(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=TWO_WORKERS, tool="trace_viewer"))
    expect_tool(page, TITLE)
    frame = frame_of(page)
    expect(frame.locator(".tv-whole")).to_contain_text("28,992 events")
    expect(frame.locator(".tv-section")).to_have_count(2)
    frame.get_by_role("checkbox", name="worker-0").uncheck()
    expect_state(page, hosts="worker-1")
    expect(frame.locator(".tv-whole")).to_contain_text("6,479 events")
    frame.get_by_role("checkbox", name="worker-0").check()
    expect(frame.locator(".tv-whole")).to_contain_text("28,992 events")
