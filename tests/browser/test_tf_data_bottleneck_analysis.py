"""A walk through the tf.data page: pipelines, graph, drawer, calls and links."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.encode import encode_csv
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.input_pages import assert_scrolls_only_downwards, open_page, payload_of
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, state_of

TF_DATA = get_tool("tf_data_bottleneck_analysis")


def stage_buttons(page: Page) -> Locator:
    """The boxes of the graph."""
    return frame_of(page).get_by_role("group", name=re.compile("^Pipeline graph")).get_by_role("button")


def drawer(page: Page) -> Locator:
    """The details of a stage."""
    return frame_of(page).get_by_role("complementary", name=re.compile("^Stage "))


def test_graph_shows_the_bottleneck_in_words_and_its_details_at_the_right(page: Page, server: Server) -> None:
    payload = payload_of(TF_DATA.name)
    open_page(page, server, TF_DATA.name)
    assert payload.verdict
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text(payload.verdict.text.replace("`", ""))
    stages = stage_buttons(page)
    expect(stages).to_have_count(payload.tables["nodes"].n_rows)
    bottleneck = stages.and_(frame_of(page).get_by_role("button", name=re.compile("bottleneck$")))
    expect(bottleneck).to_have_count(1)
    expect(bottleneck).to_contain_text("bottleneck")
    bottleneck.click()
    expect(drawer(page)).to_contain_text("Self time")
    assert "stage" in state_of(page)
    page.reload()
    expect(drawer(page)).to_be_visible()
    drawer(page).get_by_role("button", name="Close the details").press("Escape")
    expect(drawer(page)).to_have_count(0)
    page.wait_for_function("!location.hash.includes('stage')")


def test_graph_is_walked_and_zoomed_by_keyboard(page: Page, server: Server) -> None:
    open_page(page, server, TF_DATA.name)
    stages = stage_buttons(page)
    root = stages.first
    root.focus()
    root.press("ArrowDown")
    focused = frame_of(page).locator("[data-stage]:focus")
    expect(focused).to_have_count(1)
    assert focused.get_attribute("data-stage") != root.get_attribute("data-stage")
    content = frame_of(page).locator(".graph-content")
    before = content.get_attribute("transform")
    focused.press("+")
    expect(content).not_to_have_attribute("transform", str(before))
    page.wait_for_function("location.hash.includes('profile.view=')")
    focused.press("Enter")
    expect(drawer(page)).to_be_visible()


def test_calls_and_pipelines_are_chosen_in_the_link(page: Page, server: Server) -> None:
    payload = payload_of(TF_DATA.name)
    open_page(page, server, TF_DATA.name)
    assert payload.tables["executions"].n_rows > 1
    frame_of(page).get_by_role("button", name="Faster call").click()
    # The page opens on a call of median length.
    rank = str(int(payload_of(TF_DATA.name).scalars["typical_rank"].value or 0) + 1)
    expect_state(page, rank=rank)
    expect(frame_of(page).get_by_role("combobox", name="Call, slowest first")).to_have_value(rank)
    page.go_back()
    page.wait_for_function("!location.hash.includes('rank')")
    pipelines = frame_of(page).get_by_role("grid", name=payload.tables["pipelines"].title)
    expect(pipelines.locator("tbody tr[aria-selected=true]")).to_have_count(1)
    last = pipelines.locator("tbody tr").last
    last.get_by_role("button").click()
    page.wait_for_function("location.hash.includes('profile.pipeline=')")
    expect(last).to_have_attribute("aria-selected", "true")


def test_a_stage_leads_to_its_stretch_in_the_trace_viewer(page: Page, server: Server) -> None:
    open_page(page, server, TF_DATA.name, stage="0")
    drawer(page).get_by_role("button", name="Show this interval in the trace viewer").click()
    expect_state(page, tool="trace_viewer")
    assert {"start_ps", "end_ps"} <= state_of(page).keys()
    page.go_back()
    expect_tool(page, TF_DATA.title)
    expect(drawer(page)).to_be_visible()


def test_a_pipeline_that_is_gone_says_so_and_offers_the_way_out(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TF_DATA.name, pipeline="Host:999"))
    expect(frame_of(page).get_by_role("alert")).to_contain_text("Host:999")
    frame_of(page).get_by_role("button", name="Show the default view").click()
    expect(stage_buttons(page).first).to_be_visible()
    assert "pipeline" not in state_of(page)


def test_exported_pipelines_are_the_command_line_s(page: Page, server: Server) -> None:
    open_page(page, server, TF_DATA.name)
    payload = payload_of(TF_DATA.name)
    frame_of(page).get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        frame_of(page).get_by_role(
            "menuitem", name=re.compile(f"^{re.escape(payload.tables['pipelines'].title)} as CSV")
        ).click()
    assert download.value.path().read_bytes() == encode_csv(payload, "pipelines")


def test_page_scrolls_only_downwards(page: Page, server: Server) -> None:
    assert_scrolls_only_downwards(page, server, TF_DATA.name)
