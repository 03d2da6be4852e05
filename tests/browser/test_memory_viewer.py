"""A walk through the memory of a compiled program: verdict, the charts, zoom and a kept buffer in the link,
another program.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, state_of

TOOL = get_tool("memory_viewer")
RUN = "programs/synthetic"


def open_viewer(page: Page, server: Server, **state: str) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)


def test_the_peak_its_buffers_and_their_details(page: Page, server: Server) -> None:
    open_viewer(page, server)
    frame = frame_of(page)
    expect(frame.get_by_role("region", name="Verdict")).to_contain_text("needs 12.7 KiB of HBM at its peak")
    expect(
        frame.get_by_role("img", name=re.compile(r"over 1,399 steps, peak 12\.7.KiB at step 11"))
    ).to_be_visible()
    expect(frame.get_by_role("complementary", name="Buffer add.7")).to_contain_text("jit(f)/layer_6")
    strip = frame.get_by_role("img", name="In program order, parameters first: 2 buffers")
    strip.hover(position={"x": 10, "y": 20})
    expect(frame.get_by_role("complementary", name="Buffer add.6")).to_contain_text("5.86 KiB")
    strip.click(position={"x": 10, "y": 20})
    expect_state(page, buffer="5")


def test_a_drag_over_the_map_zooms_and_all_brings_it_back(page: Page, server: Server) -> None:
    open_viewer(page, server)
    chart = frame_of(page).get_by_role("img", name=re.compile("Allocation map"))
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 104, steps=4)
    page.mouse.up()
    page.wait_for_function("location.hash.includes('first_step')")
    first, last = int(state_of(page)["first_step"]), int(state_of(page)["last_step"])
    assert 250 < first < 450
    assert 550 < last < 750
    frame_of(page).get_by_role("button", name="All steps").click()
    page.wait_for_function("!location.hash.includes('first_step')")


def test_programs_are_chosen_and_the_table_follows(page: Page, server: Server) -> None:
    open_viewer(page, server)
    frame_of(page).get_by_role("combobox", name=re.compile("^Program")).select_option("jit_short(6)")
    expect_state(page, program="jit_short(6)")
    expect(frame_of(page).get_by_role("region", name="Verdict")).to_contain_text("jit_short(6)")
    rows = frame_of(page).get_by_role("grid", name="Buffers at the peak").locator("tbody tr[data-at]")
    expect(rows).to_have_count(2)
    rows.first.click()
    expect_state(page, buffer="2")


def test_a_run_without_programs_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("No HLO of compiled programs")
