"""Counters, launches and arrows in a real browser: the page shows the values that were written to
the file.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.test_trace_viewer_hands import stage_of
from tests.browser.walking import expect_state, frame_of, heading, link

RUN = "lines/gpu"


def test_counters_show_their_scale_and_their_value_under_the_pointer(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer"))
    frame = frame_of(page)
    expect(heading(page)).to_have_text("Trace viewer")
    active = frame.locator(".tv-track", has=frame.locator('[data-tip^="SM Active (%) · 2 samples"]'))
    expect(active.locator(".tv-scale small")).to_have_text(["62.5%", "0"])
    balance = frame.locator(".tv-track", has=frame.locator('[data-tip^="Balance · 2 samples"]'))
    expect(balance.locator(".tv-scale small")).to_have_text(["3", "-4"])
    expect(frame.locator(".tv-section-head").first).to_contain_text("4 samples")
    stage, row = stage_of(frame).bounding_box(), active.bounding_box()
    assert stage is not None
    assert row is not None
    for share, value in ((0.25, "20.0"), (0.75, "62.5")):
        page.mouse.move(stage["x"] + share * stage["width"], row["y"] + row["height"] / 2)
        tip = frame.locator(".tv-tip")
        expect(tip).to_contain_text("SM Active (%)")
        expect(tip).to_contain_text(re.compile(rf"{value}%"))
        expect(tip).to_contain_text(re.compile(r"20.0% to 62.5% in the whole trace"))


def test_launch_and_kernel_lead_to_each_other(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer", event="0"))  # the first kernel
    details = frame_of(page).locator(".tv-details")
    expect(details.locator("h2")).to_have_text("gemm")
    launch = details.locator(".tv-flow").get_by_role("button", name="← cudaLaunchKernel")
    expect(details.locator(".tv-flow")).to_contain_text(
        re.compile(r"kernel launch · python · 300\sµs before")
    )
    launch.click()
    expect(details.locator("h2")).to_have_text("cudaLaunchKernel")
    details.locator(".tv-flow").get_by_role("button", name="→ gemm").click()
    expect(details.locator("h2")).to_have_text("gemm")
    expect_state(page, event="0")


def test_launches_of_a_step_are_shown(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool="trace_viewer", q="Launch Stats for train 1"))
    frame = frame_of(page)
    names = frame.locator(".tv-section").first.locator(".tv-track .tv-name")
    expect(names).to_have_text(["Steps", "Launch Stats", "Stream #7(Compute)", "SM Active (%)", "Balance"])
    frame.get_by_role("combobox", name="Find events").press("Enter")
    details = frame.locator(".tv-details")
    expect(details.locator("h2")).to_have_text("Launch Stats for train 1")
    expect(details).to_contain_text(re.compile(r"num_launches\s*1"))
    expect(details).to_contain_text(re.compile(r"avg_launch_time_us\s*50\.0\sµs"))
    expect(details).to_contain_text(re.compile(r"avg_launch_latency_us\s*250\sµs"))
