"""Runs of several hosts: progress of reading, and hosts whose files cannot be read."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from tb_tpuprof.tools import all_tools
from tests.browser.conftest import Server
from tests.browser.walking import expect_tool, frame_of, link

READING = {
    "host": "worker-41",
    "n_hosts": 256,
    "n_done": 64,
    "size_bytes": 2**32,
    "done_bytes": 2**30,
    "seconds": 2.0,
}
TITLES = {tool.name: tool.title for tool in all_tools()}


@pytest.mark.slow
def test_while_the_answer_is_awaited_the_page_says_how_far_reading_is(page: Page, server: Server) -> None:
    held: list[Route] = []
    page.route("**/data/overview_page?*", lambda route: held.append(route))
    page.route("**/progress?*", lambda route: route.fulfill(json={"reading": READING}))
    page.goto(link(server.url, run="hosts/run", tool="overview_page"))
    loading = frame_of(page).locator(".loading")
    expect(loading).to_contain_text("64 of 256 hosts")
    expect(loading).to_contain_text("worker-41")
    expect(loading.get_by_role("progressbar")).to_have_js_property("value", 0.25)
    for route in held:
        route.continue_()
    expect_tool(page, TITLES["overview_page"])
    expect(frame_of(page).get_by_label("Verdict")).to_be_visible()
    expect(frame_of(page).get_by_role("progressbar")).to_have_count(0)


def test_the_server_s_own_answer_is_understood(page: Page, server: Server) -> None:
    answer = page.request.get(f"{server.url}/data/plugin/profile/progress?run=hosts%2Frun")
    assert json.loads(answer.text()) == {"reading": None}


@pytest.mark.parametrize(
    "tool", ["overview_page", "input_pipeline_analyzer", "trace_viewer", "framework_op_stats"]
)
def test_a_host_that_cannot_be_read_is_named_on_the_page(page: Page, server: Server, tool: str) -> None:
    page.goto(link(server.url, run="hosts/run", tool=tool))
    expect_tool(page, TITLES[tool])
    expect(frame_of(page).get_by_text(re.compile("of 3 hosts could not be read")).first).to_be_visible()


def test_a_host_that_cannot_be_read_is_unticked_and_marked(page: Page, server: Server) -> None:
    page.goto(link(server.url, run="hosts/run", tool="overview_page"))
    expect_tool(page, TITLES["overview_page"])
    hosts = frame_of(page).get_by_role("region", name="Hosts")
    bad = hosts.locator(".host.bad")
    expect(bad).to_contain_text("w-2")
    expect(bad.get_by_role("checkbox")).not_to_be_checked()
    expect(bad.get_by_role("checkbox")).to_be_disabled()
    bad.locator("[tabindex]").focus()
    expect(frame_of(page).get_by_role("tooltip")).to_contain_text("w-2")
    message = frame_of(page).locator(".diagnostics summary")
    assert message.evaluate("e => e.scrollWidth <= e.clientWidth"), "the sentence is cut off"
    expect(frame_of(page).get_by_text("hosts could not be read")).to_have_count(1)


def test_of_hosts_in_a_link_those_that_are_left_are_shown(page: Page, server: Server) -> None:
    page.goto(link(server.url, run="hosts/run", tool="overview_page", hosts="w-0,w-9"))
    expect(frame_of(page).get_by_text("w-9 is not in this run").first).to_be_visible()
