"""A walk through the two pages on input: verdict, steps and hosts of one; pipelines, graph, drawer and calls of the other."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.encode import encode_csv
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.base import Payload
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, TWO_WORKERS, expect_state, expect_tool, frame_of, link, state_of
from tests.golden_files import demo_runs

INPUT = get_tool("input_pipeline_analyzer")
TF_DATA = get_tool("tf_data_bottleneck_analysis")


def payload_of(name: str, log: str = "keras_slow_input") -> Payload:
    """What the command line would show."""
    return get_tool(name).run(Session(str(demo_runs()[log]), cache=False), None, {})


def texts_of(payload: Payload, table: str, column: str) -> list[str | None]:
    """A column of words."""
    found = next(one for one in payload.tables[table].columns if one.name == column)
    return [None if code < 0 else found.strings[code] for code in found.values]


def open_page(page: Page, server: Server, tool: str, **state: str) -> None:
    """A page of the Keras run, or of the run in `state`."""
    page.goto(link(server.url, **({"run": KERAS, "tool": tool} | state)))
    expect_tool(page, get_tool(tool).title)


def stage_buttons(page: Page) -> Locator:
    """The boxes of the graph."""
    return frame_of(page).get_by_role("group", name=re.compile("^Pipeline graph")).get_by_role("button")


def drawer(page: Page) -> Locator:
    """The details of a stage."""
    return frame_of(page).get_by_role("complementary", name=re.compile("^Stage "))


def test_input_page_opens_with_the_verdict_and_shows_steps_host_and_operations(page: Page, server: Server) -> None:
    payload = payload_of(INPUT.name)
    open_page(page, server, INPUT.name)
    assert payload.verdict
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text(payload.verdict.text.replace("`", ""))
    expect(frame_of(page).get_by_label("Key numbers")).to_contain_text(payload.scalars["input_fraction"].title)
    expect(frame_of(page).locator(".chart canvas")).to_have_count(1)
    host_side = frame_of(page).get_by_role("grid", name=payload.tables["host_categories"].title)
    expect(host_side.locator("tbody tr")).not_to_have_count(0)
    operations = frame_of(page).get_by_role("grid", name=payload.tables["input_ops"].title)
    expect(operations.locator("tbody tr[data-at='0']")).to_contain_text(str(texts_of(payload, "input_ops", "operation")[0]))


def test_input_operations_are_sorted_and_searched_in_the_link(page: Page, server: Server) -> None:
    payload = payload_of(INPUT.name)
    open_page(page, server, INPUT.name)
    title = payload.tables["input_ops"].title
    operations = frame_of(page).get_by_role("grid", name=title)
    total = next(column for column in payload.tables["input_ops"].columns if column.name == "total_time_ps")
    operations.get_by_role("button", name=total.title, exact=True).click()
    expect_state(page, sort="-total_time_ps")
    frame_of(page).get_by_role("searchbox", name=f"Search in {title}").fill("iterator")
    expect_state(page, q="iterator")
    page.go_back()
    page.wait_for_function("!location.hash.includes('total_time_ps')")


def test_a_host_of_several_is_chosen_by_a_click(page: Page, server: Server) -> None:
    payload = payload_of(INPUT.name, "tf_two_workers")
    open_page(page, server, INPUT.name, run=TWO_WORKERS)
    worst = str(texts_of(payload, "hosts", "host")[0])
    hosts = frame_of(page).get_by_role("grid", name=payload.tables["hosts"].title)
    expect(hosts.locator("tbody tr[data-at='0']")).to_contain_text(worst)
    hosts.get_by_role("button", name=worst, exact=True).click()
    expect_state(page, hosts=worst)
    expect_tool(page, INPUT.title)
    expect(hosts).to_have_count(0)


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
    expect_state(page, rank="2")
    expect(frame_of(page).get_by_role("combobox", name="Call, slowest first")).to_have_value("2")
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
    drawer(page).get_by_role("button", name="Show this stretch in the trace viewer").click()
    expect_state(page, tool="trace_viewer")
    assert {"start_ps", "end_ps"} <= state_of(page).keys()
    page.go_back()
    expect_tool(page, TF_DATA.title)
    expect(drawer(page)).to_be_visible()


def test_a_pipeline_that_is_gone_says_so_and_offers_the_way_out(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TF_DATA.name, pipeline="Host:999"))
    expect(frame_of(page).get_by_role("alert")).to_contain_text("Host:999")
    frame_of(page).get_by_role("button", name="Show what opens by itself").click()
    expect(stage_buttons(page).first).to_be_visible()
    assert "pipeline" not in state_of(page)


def test_exported_pipelines_are_the_command_line_s(page: Page, server: Server) -> None:
    open_page(page, server, TF_DATA.name)
    payload = payload_of(TF_DATA.name)
    frame_of(page).get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        frame_of(page).get_by_role("menuitem", name=re.compile(f"^{re.escape(payload.tables['pipelines'].title)} as CSV")).click()
    assert download.value.path().read_bytes() == encode_csv(payload, "pipelines")


def test_pages_scroll_only_downwards_in_narrow_and_wide_windows(page: Page, server: Server) -> None:
    for width in (1024, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        for tool in (INPUT.name, TF_DATA.name):
            open_page(page, server, tool)
            main = frame_of(page).locator("main")
            assert main.evaluate("main => main.scrollWidth - main.clientWidth") <= 0, (tool, width)
