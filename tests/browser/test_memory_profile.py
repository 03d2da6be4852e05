"""A walk through the memory of the Keras run and of two workers: numbers, zoom, another moment, and memories
side by side.
"""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.tools import get_tool
from tb_tpuprof.units import format_bytes
from tests.browser.conftest import Server
from tests.browser.input_pages import assert_scrolls_only_downwards, open_page, payload_of, texts_of
from tests.browser.walking import TWO_WORKERS, expect_state, expect_tool, frame_of, state_of

TOOL = get_tool("memory_profile")


def history(page: Page) -> Locator:
    history: Locator = frame_of(page).locator(".tw-plot")
    expect(history.locator("canvas")).to_be_visible()
    return history


def test_numbers_are_the_command_line_s(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name)
    payload = payload_of(TOOL.name)
    peak = format_bytes(float(payload.scalars["peak_bytes"].value or 0)).split()[0]
    expect(frame_of(page).get_by_label("Key numbers").first).to_contain_text(peak)
    expect(frame_of(page).get_by_role("grid", name="In use at the peak")).to_contain_text(
        texts_of(payload, "active", "op")[0] or "–"
    )
    floor = next(column for column in payload.tables["floor"].columns if column.name == "floor_bytes")
    assert len(floor.values)
    assert not floor.values.any()
    expect(frame_of(page).get_by_role("region", name="Minimum in use per step")).to_contain_text(
        "no step leaves memory behind"
    )


def test_dragging_zooms_with_a_new_request(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name)
    box = history(page).bounding_box()
    assert box
    plot = box["width"] - 64 - 52
    for share, act in ((0.5, page.mouse.down), (0.75, page.mouse.up)):
        page.mouse.move(box["x"] + 64 + share * plot, box["y"] + 100, steps=4)
        act()
    page.wait_for_function("location.hash.includes('start_ps')")
    expect_tool(page, TOOL.title)
    state, end = state_of(page), float(payload_of(TOOL.name).scalars["trace_duration_ps"].value or 0)
    assert abs(float(state["start_ps"]) / end - 0.5) < 0.01
    assert abs(float(state["end_ps"]) / end - 0.75) < 0.01
    inside = n_events_within(state)
    expect(frame_of(page).get_by_role("region", name="Memory in use")).to_contain_text(f"{inside:,} events")
    frame_of(page).get_by_role("button", name="Show all").click()
    page.wait_for_function("!location.hash.includes('start_ps')")


def n_events_within(state: dict[str, str]) -> int:
    from tb_tpuprof.session import Session
    from tests.golden_files import demo_runs

    session = Session(str(demo_runs()["keras_slow_input"]), cache=False)
    payload = TOOL.run(session, None, {"start_ps": state["start_ps"], "end_ps": state["end_ps"]})
    return int(payload.scalars["n_events_in_window"].value or 0)


def test_a_click_shows_another_moment_and_back(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name)
    box = history(page).bounding_box()
    assert box
    page.mouse.click(box["x"] + 64 + 0.9 * (box["width"] - 116), box["y"] + 100)
    page.wait_for_function("location.hash.includes('at_ps')")
    expect(frame_of(page).get_by_role("heading", name=re.compile(r"^In use at \d"))).to_be_visible()
    frame_of(page).get_by_role("button", name="Back to the peak").click()
    expect(frame_of(page).get_by_role("heading", name=re.compile("^In use at the peak"))).to_be_visible()


def test_an_allocation_leads_to_the_timeline(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name)
    table = frame_of(page).get_by_role("grid", name="In use at the peak")
    table.locator("tbody .text-link").first.click()
    expect_tool(page, "Trace viewer")
    assert {"event", "start_ps", "end_ps"} <= set(state_of(page))


def test_memories_of_all_hosts_are_side_by_side(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=TWO_WORKERS)
    small = frame_of(page).locator(".mp-small")
    expect(small).to_have_count(2)
    small.nth(1).click()
    page.wait_for_function("location.hash.includes('memory=')")
    expect_tool(page, TOOL.title)
    expect(small.nth(1)).to_have_attribute("aria-pressed", "true")
    expect_state(page, run=TWO_WORKERS)


def test_floors_above_nothing_are_drawn(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=TWO_WORKERS)
    floor = frame_of(page).get_by_role("region", name="Minimum in use per step")
    expect(floor).to_contain_text("does not rise steadily")
    expect(floor.locator("canvas")).to_be_visible()


def test_the_page_scrolls_only_downwards(page: Page, server: Server) -> None:
    assert_scrolls_only_downwards(page, server, TOOL.name)
