"""A walk through the overview: the verdict, the numbers of the command line, and the ways on to other tools."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of
from tests.golden_files import demo_runs

TITLE = get_tool("overview_page").title


def test_it_opens_with_the_verdict_and_shows_the_payload_s_numbers(page: Page, server: Server) -> None:
    payload = get_tool("overview_page").run(Session(str(demo_runs()["keras_slow_input"]), cache=False), None, {})
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLE)
    assert payload.verdict
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text(payload.verdict.text)
    tiles = frame_of(page).get_by_label("Key numbers")
    expect(tiles).to_contain_text(payload.scalars["step_time_avg_ps"].title)
    expect(frame_of(page).get_by_role("grid", name="Where a step goes")).to_contain_text("Input")
    expect(frame_of(page).get_by_role("region", name="Run environment")).to_be_visible()


def test_an_operation_leads_to_its_row_in_one_step_of_history(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLE)
    operation = frame_of(page).get_by_role("grid", name="Top 10 operations").locator("tbody button").first
    name = operation.inner_text()
    operation.click()
    expect_tool(page, get_tool("framework_op_stats").title)
    expect_state(page, tool="framework_op_stats")
    expect(frame_of(page).get_by_role("grid", name="Operations").locator("tbody tr[data-at='0']")).to_contain_text(name)
    page.go_back()
    expect_tool(page, TITLE)


@pytest.mark.parametrize("log", sorted(demo_runs()))
def test_first_view_of_each_run_takes_a_second_or_so(page: Page, server: Server, log: str) -> None:
    page.goto(link(server.url, run=run_of(log), tool="overview_page"))
    expect(frame_of(page).get_by_label("Verdict")).to_be_visible(timeout=5_000)
