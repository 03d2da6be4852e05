"""The pod viewer of a slice of 64 chips: the torus, and a channel chosen from its table."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import expect_state, expect_tool, frame_of, link, state_of
from tests.synthetic_torus import LATENCY_US

TOOL = get_tool("pod_viewer")
CUBE = "pods/cube"


def test_a_row_draws_its_channel_on_the_torus_and_shows_its_card(page: Page, server: Server) -> None:
    """Chip 39 of the late host sends to chip 36 over the x wrap link; the planted latency is 94 µs."""
    page.goto(link(server.url, run=CUBE, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    expect(frame.get_by_role("region", name="Topology")).to_contain_text("4 × 4 × 4 torus of TPU v4 chips")
    table = frame.get_by_role("grid", name="Channels")
    table.scroll_into_view_if_needed()
    frame.get_by_role("region", name="Channels").get_by_role("searchbox").fill("x wrap")
    row = table.get_by_role("row").filter(has=page.get_by_role("gridcell", name="chip 39", exact=True))
    expect(row).to_have_count(1)
    row.get_by_text("chip 39").click()
    card = frame.get_by_role("complementary", name="Channel")
    for text in (
        "Channel 1",
        "mean of all steps",
        "chip 39 at (3, 1, 2), synthetic-9",
        "chip 36 at (0, 1, 2), synthetic-8",
        "x wrap, 1 hop",
        "of 50.0 GB/s",
        f"{LATENCY_US + 39 % 7}.0 µs",
        "collective-permute-start.10",
        "collective-permute-done.11",
    ):
        expect(card).to_contain_text(text)
    steps = frame.locator(".pod-channel-steps")
    expect(steps).to_contain_text("6 steps")
    page.wait_for_url(re.compile(r"channel=\d+"))
    chosen = state_of(page)["channel"]
    # The link alone shows it again; in a step its numbers are those of the step.
    page.goto("about:blank")
    page.goto(link(server.url, run=CUBE, tool=TOOL.name, channel=chosen, step="0"))
    expect(card).to_contain_text("step 0")
    expect(card).to_contain_text("chip 39 at (3, 1, 2)")
    expect(frame.get_by_role("region", name="Channels")).to_contain_text("in step 0")
    card.get_by_role("button", name="collective-permute-start.10").click()
    expect_tool(page, get_tool("trace_viewer").title)
    expect_state(page, hosts="synthetic-9", q="collective-permute-start.10")


def test_the_torus_draws_the_route_of_the_channel(page: Page, server: Server) -> None:
    """The canvas above the cells has the accent's color only with a channel."""
    counts = []
    for channel in ("", "0"):
        page.goto("about:blank")
        page.goto(link(server.url, run=CUBE, tool=TOOL.name, **({"channel": channel} if channel else {})))
        expect_tool(page, TOOL.title)
        canvas = frame_of(page).locator(".pod-map canvas[role=img]")
        expect(canvas).to_be_visible()
        expect(canvas).to_have_attribute("aria-label", re.compile("of 64 cores"))
        page.wait_for_timeout(300)
        counts.append(
            canvas.evaluate(
                "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => "
                "i % 4 === 3 && v)"
                ".length"
            )
        )
    assert counts[0] == 0
    assert counts[1] > 100


def test_send_delay_is_a_measure_of_the_map(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=CUBE, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    frame.get_by_label("Color").select_option("send_delay")
    expect_state(page, measure="send_delay")
    expect(frame.locator(".pod-map canvas[role=img]")).to_have_attribute(
        "aria-label", re.compile("Send delay of 64 cores: 0.s to ")
    )
    expect(frame.get_by_role("grid", name="Channels")).to_be_visible()
