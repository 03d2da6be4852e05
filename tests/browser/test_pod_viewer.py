"""A walk through the pod viewer of two workers: the straggler, the map, the step slider, a core's card."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.input_pages import assert_scrolls_only_downwards, open_page, payload_of, texts_of
from tests.browser.walking import TWO_WORKERS, expect_state, frame_of

TOOL = get_tool("pod_viewer")


def test_the_straggler_is_the_command_line_s(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=TWO_WORKERS)
    payload = payload_of(TOOL.name, "tf_two_workers")
    slow = texts_of(payload, "stragglers", "straggler")
    assert slow == ["worker-1"]
    expect(frame_of(page).get_by_role("grid", name="Stragglers")).to_contain_text("worker-1")
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text("worker-1")


def test_a_click_keeps_a_core_and_the_slider_chooses_a_step(page: Page, server: Server) -> None:
    open_page(page, server, TOOL.name, run=TWO_WORKERS)
    frame = frame_of(page)
    canvas = frame.locator(".pod-map canvas[role=img]")
    expect(canvas).to_be_visible()
    canvas.click(position={"x": 20, "y": 20})
    expect_state(page, core="0")
    card = frame.get_by_role("complementary", name="Core")
    expect(card).to_contain_text("worker-0")
    expect(card).to_contain_text("Infeed and input")
    slider = frame.get_by_role("slider", name="Step")
    slider.fill("4")
    expect_state(page, core="0", step="4")
    payload = payload_of(TOOL.name, "tf_two_workers")
    name = texts_of(payload, "steps", "step")[4]
    expect(card).to_contain_text(f"step {name}")
    expect(frame.get_by_role("region", name=f"Cores in step {name}")).to_be_visible()
    frame.get_by_role("button", name="Mean of all").click()
    expect(card).to_contain_text("mean of all steps")


def test_it_scrolls_only_downwards(page: Page, server: Server) -> None:
    assert_scrolls_only_downwards(page, server, TOOL.name)
