"""The pod viewer of a pod of TPUs: the card of a core, with its links and its group."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import expect_state, expect_tool, frame_of, link

TOOL = get_tool("pod_viewer")


def test_the_card_of_a_core_on_a_pod_shows_its_place_parts_and_links(page: Page, server: Server) -> None:
    """16 cores on 4 hosts; core 5 passes 1 MiB to core 6 and gets as much from core 4. Between hosts the last
    core stays.
    """
    page.set_viewport_size({"width": 1920, "height": 1080})  # narrower tables leave out the column of groups
    page.goto(link(server.url, run="pods/pod", tool=TOOL.name, core="5", collective="0"))
    expect_tool(page, TOOL.title)
    card = frame_of(page).get_by_role("complementary", name="Core")
    expect(card).to_contain_text("synthetic-pod-1 TPU:1")
    expect(card).to_contain_text("0 of the host, 2 of the pod")
    for text in (
        "High-FLOPS compute",
        "Collectives: waiting",
        "2 links",
        "to synthetic-pod-1 TPU:2",
        "from synthetic-pod-1 TPU:0",
        "1.00 MiB · 40.0 µs · 26.2 GB/s",
        "collective-permute.4",
    ):
        expect(card).to_contain_text(text)
    table = frame_of(page).get_by_role("grid", name="Collectives")
    table.scroll_into_view_if_needed()
    groups = "{0,1,2,3,4,5,6,7} {8,9,10,11,12,13,14,15}"
    expect(table.locator(f"td[data-tip='{groups}']")).to_have_count(1)
    canvas = frame_of(page).locator(".pod-map canvas[role=img]")
    canvas.hover(position={"x": 20, "y": 20})
    expect(card).to_contain_text("synthetic-pod-0 TPU:0")
    box = canvas.bounding_box()
    assert box
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    expect(card).to_contain_text("synthetic-pod-0 TPU:0")
    page.mouse.move(2, 2)
    expect(card).to_contain_text("synthetic-pod-1 TPU:1")


def test_a_step_is_that_of_the_channels_and_a_bar_chooses_another(page: Page, server: Server) -> None:
    """The card, the table and the bars are of the step in the link."""
    page.goto(link(server.url, run="pods/pod", tool=TOOL.name, channel="0", step="2"))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    card = frame.get_by_role("complementary", name="Channel")
    expect(card).to_contain_text("step 2")
    expect(frame.get_by_role("region", name="Channels")).to_contain_text("in step 2")
    bars = frame.locator(".pod-channel-steps")
    bars.scroll_into_view_if_needed()
    expect(bars).to_contain_text("Latency")
    canvas = bars.locator("canvas").first
    expect(canvas).to_be_visible()
    box = canvas.bounding_box()
    assert box
    canvas.click(position={"x": 0.1 * box["width"], "y": 0.5 * box["height"]})
    expect_state(page, channel="0", step="0")
    expect(card).to_contain_text("step 0")
    frame.get_by_role("button", name="Mean of all").click()
    expect_state(page, channel="0")
    expect(card).to_contain_text("mean of all steps")
