"""A walk through the overview: the verdict, the numbers of the command line, and the ways on to
other tools.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of, state_of
from tests.golden_files import demo_runs

JAX = run_of("jax_train")
TITLE = get_tool("overview_page").title


@pytest.mark.tensorboard
def test_it_opens_with_the_verdict_and_shows_the_payload_s_numbers(page: Page, server: Server) -> None:
    payload = get_tool("overview_page").run(
        Session(str(demo_runs()["keras_slow_input"]), cache=False), None, {}
    )
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLE)
    assert payload.verdict
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text(payload.verdict.text.replace("`", ""))
    tiles = frame_of(page).get_by_label("Key numbers")
    expect(tiles).to_contain_text(payload.scalars["step_time_avg_ps"].title)
    expect(frame_of(page).get_by_role("grid", name="Step time breakdown")).to_contain_text("Input")
    expect(frame_of(page).get_by_role("region", name="Run environment")).to_be_visible()


def test_an_operation_leads_to_its_row_in_one_step_of_history(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLE)
    operation = frame_of(page).get_by_role("grid", name="Top 10 operations").locator("tbody button").first
    name = operation.inner_text().lstrip("…")  # the beginning may be left out
    operation.click()
    expect_tool(page, get_tool("framework_op_stats").title)
    expect_state(page, tool="framework_op_stats")
    expect(
        frame_of(page).get_by_role("grid", name="Operations").locator("tbody tr[data-at='0']")
    ).to_contain_text(name)
    page.go_back()
    expect_tool(page, TITLE)


def test_a_finding_opens_by_keyboard_and_leads_to_its_evidence(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool="overview_page"))
    expect_tool(page, TITLE)
    section = frame_of(page).get_by_role("region", name="Findings")
    expect(section.get_by_role("list", name="Causes")).to_contain_text("Compute")
    finding = section.get_by_role("button", name="Input")
    expect(finding).to_have_attribute("aria-expanded", "false")
    finding.press("Enter")
    expect_state(page, finding="1")
    opened = section.get_by_role("group", name="Input: why and what to do")
    expect(opened).to_contain_text("Prepare batches ahead")
    opened.get_by_role("button", name="Copy: Example for input").click()
    expect(opened.get_by_role("status")).to_have_text("Code copied")
    section.get_by_role("grid", name="Findings").press("Enter")
    expect(opened).to_have_count(0)
    finding.click()
    opened.get_by_role("button", name="Show it on the timeline").click()
    expect_tool(page, get_tool("trace_viewer").title)
    assert {"start_ps", "end_ps"} <= set(state_of(page))


def test_a_healthy_run_has_no_empty_table(page: Page, server: Server) -> None:
    def without_findings(route: Route) -> None:
        payload = route.fetch().json()
        table = payload["tables"]["findings"]
        empty = [{**column, "codes": [], "values": []} for column in table["columns"]]
        payload["tables"]["findings"] = {**table, "columns": empty, "n_rows": 0}
        share = next(column for column in payload["tables"]["causes"]["columns"] if column["name"] == "share")
        share["values"] = [0.99] + [0.002] * (len(share["values"]) - 1)
        route.fulfill(json=payload)

    page.route(re.compile("/data/overview_page"), without_findings)
    page.goto(link(server.url, run=JAX, tool="overview_page"))
    expect_tool(page, TITLE)
    section = frame_of(page).get_by_role("region", name="Findings")
    expect(section).to_contain_text("No cause other than computing takes 3% or more of the step.")
    expect(section.get_by_role("grid")).to_have_count(0)


def test_one_step_is_explained_from_the_link_the_chart_and_the_list(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool="overview_page", step="13"))
    expect_tool(page, TITLE)
    verdict, chip = (
        frame_of(page).get_by_label("Verdict"),
        frame_of(page).get_by_text("Step train 13", exact=True),
    )
    expect(chip).to_be_visible()
    expect(verdict).to_contain_text("Step train 13 took 12.3\u00a0ms, 71.1% longer than the median")
    frame_of(page).get_by_role("button", name="all steps").click()
    expect(verdict).to_contain_text("each step waits")
    expect(chip).to_have_count(0)
    assert "step" not in state_of(page)
    chart = frame_of(page).get_by_role("region", name="Steps").locator("canvas")
    chart.wait_for()
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] / 2, "y": 60})
    expect(verdict).to_contain_text(re.compile("^Step train (9|10) took"))
    assert re.fullmatch("train (9|10)", state_of(page)["step"])
    page.keyboard.press("Escape")
    expect(verdict).to_contain_text("each step waits")
    frame_of(page).get_by_label("Explain one step").select_option("train 7")
    expect_state(page, step="train 7")
    expect(verdict).to_contain_text("Step train 7 took")
    page.go_back()
    expect(verdict).to_contain_text("each step waits")


def test_the_verdict_leads_to_the_step_that_stands_out(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool="overview_page"))
    expect_tool(page, TITLE)
    frame_of(page).get_by_role("button", name="See why step train 13 took").click()
    expect_state(page, step="train 13")
    expect(frame_of(page).get_by_text("Step train 13", exact=True)).to_be_visible()


@pytest.mark.parametrize("log", sorted(demo_runs()))
def test_first_view_of_each_run_takes_a_second_or_so(page: Page, server: Server, log: str) -> None:
    page.goto(link(server.url, run=run_of(log), tool="overview_page"))
    expect(frame_of(page).get_by_label("Verdict")).to_be_visible(timeout=5_000)
