"""A walk through the roofline: chart and tables, filters in the link, an operation's card; a run without
compiled operations.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of

TOOL = get_tool("roofline_model")
JAX = run_of("jax_train")
ONE_POINT = re.compile(r"data is as follows: [\d.]+, [\d.]+\. $")  # the chart's own words


def test_filters_choose_points_and_rows(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    chart = frame_of(page).locator(".chart [role=img]")
    expect(chart).to_be_visible()
    before = chart.get_attribute("aria-label")
    frame_of(page).get_by_label("Category").select_option("dot")
    expect_state(page, **{"f.category": "=dot"})
    expect(chart).not_to_have_attribute("aria-label", str(before))
    rows = frame_of(page).get_by_role("grid", name="Operations").locator("tbody tr[data-at]")
    assert all("dot" in text for text in rows.all_inner_texts())


def test_a_step_s_point_alone(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name, show="steps"))
    expect_tool(page, TOOL.title)
    chart, select = (
        frame_of(page).locator(".chart [role=img]"),
        frame_of(page).locator(".rl-tools label", has_text=re.compile("^Step")).locator("select"),
    )
    expect(chart).not_to_have_attribute("aria-label", ONE_POINT)
    select.select_option("Average")
    expect_state(page, step="Average")
    expect(chart).to_have_attribute("aria-label", ONE_POINT)
    frame_of(page).get_by_role("grid", name="Program and steps").locator("tbody tr[data-at]").last.click()
    expect(select).to_have_value(re.compile(r"\d$"))
    expect(chart).to_have_attribute("aria-label", ONE_POINT)
    select.select_option("")
    expect(chart).not_to_have_attribute("aria-label", ONE_POINT)


def test_a_row_shows_its_operation(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    frame_of(page).get_by_role("grid", name="Operations").get_by_text("dot.1").first.click()
    expect_state(page, op="dot.1")
    expect(frame_of(page).get_by_role("complementary", name="Operation dot.1")).to_contain_text("%dot.1 = ")
    expect(frame_of(page).get_by_role("grid", name="Program and steps")).to_contain_text("Average")


def test_a_run_without_compiled_operations_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("XLA compiled")
