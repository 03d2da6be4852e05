"""A walk through the kernels of a synthetic run on GPUs: groups, filters in the link, the way to the
timeline; and a run without GPUs.
"""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link
from tests.synthetic_devices import KERNELS

TOOL = get_tool("kernel_stats")
RUN = "gpu/synthetic"


def open_table(page: Page, server: Server, **state: str) -> Locator:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)
    return frame_of(page).get_by_role("grid").first


def test_rows_verdict_and_pies(page: Page, server: Server) -> None:
    table = open_table(page, server)
    expect(frame_of(page).get_by_role("region", name="Verdict")).to_contain_text(
        "triton_poi_fused_add_0 takes the most time: 840 µs"
    )
    expect(table.locator("tbody tr[data-at]")).to_have_count(len(KERNELS))
    expect(frame_of(page).locator(".donut")).to_have_count(2)
    expect(frame_of(page).locator(".donut").last).to_contain_text("cuBLAS")


def test_a_column_without_room_is_left_out_until_it_is_chosen(page: Page, server: Server) -> None:
    first = open_table(page, server).locator("tbody tr[data-at]").first
    expect(first).to_contain_text("840")
    expect(first).not_to_contain_text("Triton")
    frame_of(page).get_by_role("button", name="Columns (").click()
    frame_of(page).get_by_role("group", name="Columns to show").get_by_text("Library").click()
    expect(first).to_contain_text("Triton")
    page.reload()
    reloaded = frame_of(page).get_by_role("grid", name="Kernels").locator("tbody tr[data-at]").first
    expect(reloaded).to_contain_text("Triton", timeout=30_000)


def test_groups_are_in_the_link_and_lead_to_their_launches(page: Page, server: Server) -> None:
    open_table(page, server)
    frame_of(page).get_by_role("group", name="Group by").get_by_role("button", name="Library").click()
    expect_state(page, by="library")
    table = frame_of(page).get_by_role("grid", name="By library")
    expect(table.locator("tbody tr[data-at]")).to_have_count(3)
    table.get_by_text("TensorFlow / Eigen").click()
    expect_state(page, **{"f.library": "=TensorFlow / Eigen"})
    expect(frame_of(page).get_by_role("grid", name="Kernels").locator("tbody tr[data-at]")).to_have_count(2)
    page.go_back()
    expect(frame_of(page).get_by_role("grid", name="By library")).to_be_visible()


def test_a_longest_launch_is_shown_on_the_timeline(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})  # a narrow table leaves out the longest launch
    table = open_table(page, server, q="ampere")
    table.get_by_role("button", name=re.compile("^120")).click()
    expect_tool(page, "Trace viewer")
    expect_state(page, tool="trace_viewer", start_ps="2000000", end_ps="362000000")


def test_a_run_without_gpus_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("The trace has no GPU")
    expect(frame_of(page).locator("main")).to_contain_text("Capture while the job computes on a GPU")
