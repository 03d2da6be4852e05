"""The column of names, pinned tracks, tracks without events, instants and long traces in a real browser."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.made_runs import LONG_HOURS
from tests.browser.test_trace_viewer_hands import stage_of
from tests.browser.walking import KERAS, expect_state, frame_of, link, run_of

JAX = run_of("jax_train")
EDGES = "made/edges"
LONG = "made/long"


def opened(page: Page, server: Server, **state: str) -> Any:
    """The trace viewer's frame, once it is ready."""
    page.goto(link(server.url, tool="trace_viewer", **state))
    frame = frame_of(page)
    expect(frame.locator(".tv")).to_have_attribute("aria-busy", "false")
    return frame


def pixels(frame: Any) -> Any:
    """The stage as an image: height, width, RGB."""
    image = Image.open(BytesIO(stage_of(frame).screenshot()))
    return np.asarray(image.convert("RGB"), np.int64)


def test_a_tall_pinned_track_leaves_half_of_the_view_and_scrolls_by_itself(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 620})
    frame = opened(page, server, run=JAX)
    name = frame.locator('.tv-section .tv-track .tv-name[data-tip^="python · "]')
    name.hover()
    frame.get_by_role("button", name="Pin python").click()
    pinned, stage = frame.locator(".tv-pinned"), stage_of(frame)
    expect(pinned).to_be_visible()
    bottom = pinned.bounding_box()["y"] + pinned.bounding_box()["height"]
    middle = stage.bounding_box()["y"] + stage.bounding_box()["height"] / 2
    assert bottom <= middle + 1
    assert pinned.evaluate("(e) => e.scrollHeight - e.clientHeight") > 20
    before = pixels(frame)
    x, y = stage.bounding_box()["x"] + 300, bottom - 20
    page.mouse.move(x, y)
    page.keyboard.down("Alt")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Alt")
    page.wait_for_timeout(400)
    assert pinned.evaluate("(e) => e.scrollTop") > 20
    edge = int(bottom - stage.bounding_box()["y"])
    after = pixels(frame)
    assert (before[60 : edge - 2] != after[60 : edge - 2]).any()
    assert (before[edge + 2 :, 60:] == after[edge + 2 :, 60:]).all()
    # The others scroll under it: no head of a section covers the pinned rows.
    frame.locator(".tv-scroller").evaluate("(e) => { e.scrollTop = 1e6; }")
    page.wait_for_timeout(300)
    for head in frame.locator(".tv-section-head").all():
        assert head.bounding_box()["y"] >= bottom - 1


def test_names_differ_in_a_narrow_column_and_are_whole_in_a_wide_one(page: Page, server: Server) -> None:
    frame = opened(page, server, run=JAX)
    handle = frame.get_by_role("separator", name="Width of the names")
    handle.focus()
    handle.press("Home")
    expect(handle).to_have_attribute("aria-valuenow", "120")
    names = frame.locator(".tv-section .tv-track .tv-name > span")
    full = frame.locator(".tv-section .tv-track .tv-name").evaluate_all(
        "(all) => all.map((name) => name.getAttribute('aria-label'))"
    )
    short = names.all_inner_texts()
    assert any("…" in text for text in short)
    assert len(set(short)) == len(set(full))
    assert names.evaluate_all("(all) => all.every((e) => e.scrollWidth <= e.clientWidth + 1)")
    handle.press("Enter")
    assert names.all_inner_texts() == full
    width = handle.get_attribute("aria-valuenow")
    left = stage_of(frame).bounding_box()["x"]
    page.reload()
    expect(frame_of(page).locator(".tv")).to_have_attribute("aria-busy", "false")
    handle = frame_of(page).get_by_role("separator", name="Width of the names")
    expect(handle).to_have_attribute("aria-valuenow", str(width))
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] - 40, box["y"] + 200, steps=4)
    page.mouse.up()
    assert stage_of(frame_of(page)).bounding_box()["x"] < left - 20


def test_the_last_instant_is_drawn_and_found(page: Page, server: Server) -> None:
    for renderer in ("canvas2d", "webgl"):
        frame = opened(page, server, run=EDGES, renderer=renderer)
        page.wait_for_timeout(300)
        row = frame.locator('.tv-track .tv-name[data-tip^="thread 2 · "]').bounding_box()
        stage = stage_of(frame).bounding_box()
        middle = int(row["y"] - stage["y"] + 9)
        image = pixels(frame)
        ground = image[middle, image.shape[1] // 2]
        assert (image[middle, -4:] != ground).any(axis=1).any(), renderer
        page.mouse.move(stage["x"] + stage["width"] - 4, stage["y"] + middle)
        expect(frame.locator(".tv-tip")).to_contain_text("last")


def test_a_trace_of_many_hours_can_be_zoomed_at_its_end(page: Page, server: Server) -> None:
    frame = opened(page, server, run=LONG)
    expect(frame.locator(".tv-whole")).to_contain_text(re.compile(r"3\.33\sh"))
    last_ps = int((LONG_HOURS * 3600 - 5) * 10**12)
    frame = opened(page, server, run=LONG, start_ps=str(last_ps), end_ps=str(last_ps + 4 * 10**12))
    for _ in range(3):
        page.keyboard.press("+")
        page.wait_for_timeout(300)
    expect(frame.locator(".tv-refusal")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(frame.locator(".tv-details h2")).to_have_text(re.compile(r"^work \d$"))


def test_down_goes_to_the_first_event_within_however_far_the_picture_is_zoomed_out(
    page: Page, server: Server
) -> None:
    frame = opened(page, server, run=JAX, start_ps="0", end_ps="180000000000", event="14329")
    expect(frame.locator(".tv-details h2")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect_state(page, event="14330")


def test_tracks_without_events_are_hidden_by_link_and_by_key(page: Page, server: Server) -> None:
    frame = opened(page, server, run=KERAS)
    n_all = frame.locator(".tv-section .tv-track").count()
    page.keyboard.press("t")
    expect(frame.get_by_label("Only tracks named")).to_be_focused()
    page.keyboard.type("python")
    expect_state(page, only="python")
    frame.get_by_label("Hide tracks without events in the window").check()
    expect_state(page, empty="hide")
    frame = opened(page, server, run=KERAS, empty="hide", start_ps="0", end_ps="1000")
    expect(frame.get_by_role("button", name="Tracks", exact=True)).to_have_text(re.compile(r"\d+ of \d+"))
    assert 0 < frame.locator(".tv-section .tv-track").count() < n_all


def test_a_click_on_the_row_of_steps_marks_the_step(page: Page, server: Server) -> None:
    frame = opened(page, server, run=JAX)
    expect(frame.locator(".tv-corner")).to_contain_text("Step")
    box = stage_of(frame).bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + 8)
    expect(frame.locator(".tv-tabs")).to_contain_text(re.compile(r"Interval · 6\.99\sms"))
    expect_state(page, mark="42315320000-49305814000")


def test_a_drawn_box_outlives_the_key_that_marks(page: Page, server: Server) -> None:
    mark = "40000000000-60000000000@0"
    frame = opened(page, server, run=JAX, mark=mark)
    page.mouse.move(stage_of(frame).bounding_box()["x"] + 300, stage_of(frame).bounding_box()["y"] + 100)
    page.keyboard.press("m")
    page.wait_for_timeout(300)
    expect_state(page, mark=mark)


def test_tools_are_listed_while_the_run_is_being_read(page: Page, server: Server) -> None:
    page.route(re.compile(r"/profile/tools\?"), lambda _route: None)
    page.goto(link(server.url, run=JAX, tool="trace_viewer"))
    frame = frame_of(page)
    tools = frame.get_by_role("navigation", name="Tools")
    expect(tools.get_by_role("link", name="Kernel stats")).to_be_visible()
    tools.get_by_role("link", name="Op profile").click()
    expect_state(page, tool="op_profile")


def test_the_picture_saved_has_the_complete_names(page: Page, server: Server, tmp_path: Path) -> None:
    frame = opened(page, server, run=JAX)
    widths = []
    for key in ("Home", "Enter"):
        frame.get_by_role("separator", name="Width of the names").press(key)
        page.wait_for_timeout(300)
        with page.expect_download() as download:
            frame.get_by_role("button", name="Save the view").click()
            frame.get_by_role("menuitem", name="This view as PNG").click()
        path = tmp_path / f"{key}.png"
        download.value.save_as(path)
        image = Image.open(path)
        widths.append(image.width - round(stage_of(frame).bounding_box()["width"]))
    assert widths[0] == widths[1] > 200
