"""A walk through the communication page of a job whose cores overlap it: numbers, a step and a device
drawn.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.input_pages import open_page
from tests.browser.walking import expect_state, expect_tool, frame_of

TOOL = get_tool("communication")
RUN = "comm/async"


def test_it_opens_with_what_exposed_communication_costs(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=RUN)
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text("Exposed communication costs 260 µs (26.0%)")
    expect(frame.get_by_label("Key numbers")).to_contain_text("260")
    table = frame.get_by_role("grid", name="Operations that move data")
    expect(table.get_by_role("row").nth(1)).to_contain_text("190 µs")
    picture = frame.get_by_role("img", name="Step 3 on h0 TPU:0")
    expect(picture).to_be_visible()
    assert picture.locator("rect.box.compute").count() == 2
    assert picture.locator("rect.box.partly").count() == 2
    assert picture.locator("rect.box.exposed").count() == 4


def test_a_device_and_a_step_are_in_the_link(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=RUN)
    frame = frame_of(page)
    choices = frame.locator(".comm-choices select")
    choices.nth(0).select_option(label="h1 TPU:0")
    expect_state(page, device="2")
    choices.nth(1).select_option(label="5")
    expect_state(page, device="2", step="5")
    picture = frame.get_by_role("img", name="Step 5 on h1 TPU:0")
    expect(picture).to_contain_text("collective-permute.9")


def test_an_operation_leads_to_the_trace_viewer(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=RUN)
    table = frame_of(page).get_by_role("grid", name="Operations that move data")
    table.get_by_role("row").nth(1).click()
    expect_tool(page, "Trace viewer")
    expect_state(page, q=r'name~"^%?all-reduce(-start|-done)?\.41(\s|$)"')
    expect(frame_of(page).locator("body")).to_contain_text("24 ")


def test_it_scrolls_only_downwards(page: Page, server: Server) -> None:
    for width in (1024, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        open_page(page, server, TOOL.name, run=RUN)
        main = frame_of(page).locator("main")
        assert main.evaluate("main => main.scrollWidth - main.clientWidth") <= 0, width
