"""A walk through the transfers of three hosts between slices: verdict, table, queries, timeline."""

from __future__ import annotations

import gzip
import json

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.megascale_stats.queries import QUERIES
from tests.browser.conftest import Server
from tests.browser.walking import expect_state, expect_tool, frame_of, link

TOOL = get_tool("megascale_stats")
RUN = "dcn/run"


def test_the_costliest_rendezvous_comes_first_and_leads_to_the_timeline(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text("61.9% of their time, 65.6% of it in permute.3")
    table = frame.get_by_role("grid", name="Rendezvous")
    row = table.get_by_role("row").nth(1)
    for text in ("permute.3", "800 µs", "ONE_TO_ONE", "977 KiB"):
        expect(row).to_contain_text(text)
    expect(table.get_by_role("row").nth(2)).to_contain_text("40.7 GB/s")
    expect(frame.get_by_role("grid", name="Messages between slices")).to_contain_text("8.79 KiB")
    row.get_by_role("button", name="permute.3").click()
    expect_tool(page, get_tool("trace_viewer").title)
    expect_state(page, q="recv-done.3")


def test_queries_can_be_copied_with_their_questions(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    section = frame_of(page).get_by_role("region", name="Queries for Perfetto")
    expect(section.locator("summary")).to_have_text([query.question for query in QUERIES])
    section.get_by_text(QUERIES[1].question).click()
    expect(section.locator("details[open] pre")).to_contain_text("ORDER BY s.dur DESC LIMIT 50")
    with page.expect_download() as saving:
        section.get_by_role("button", name="Save for Perfetto").click()
    assert saving.value.suggested_filename == "dcn_run_dcn.trace.json.gz"
    written = json.loads(gzip.decompress(saving.value.path().read_bytes()))
    assert sum(event["ph"] == "X" for event in written["traceEvents"]) == 9


def test_a_run_on_one_slice_says_so(page: Page, server: Server) -> None:
    page.goto(link(server.url, run="pods/cube", tool=TOOL.name))
    frame = frame_of(page)
    expect(frame.get_by_role("heading", name="the job ran on one slice")).to_be_visible()
    expect(frame.get_by_text("Capture a multislice job")).to_be_visible()
