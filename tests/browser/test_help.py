"""Help next to the page: what it answers, definitions, keys and documents; tooltips of tiles and headings."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.tools import all_tools
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_tool, frame_of, heading, link

OVERVIEW = "Overview"


def open_help(page: Page) -> Locator:
    """Press `?` on the page, and wait for the panel."""
    frame_of(page).locator("main header h1").click()
    page.keyboard.press("?")
    panel = frame_of(page).get_by_role("complementary", name="Help")
    expect(panel.get_by_role("tab", name="This page")).to_be_focused()
    return panel


def test_question_mark_explains_the_page(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, OVERVIEW)
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url))
    panel = open_help(page)
    expect(panel).to_contain_text("How the job spent its time, what limits it, and where to look next.")
    number = panel.locator(".help-number", has_text="Average step time").first
    expect(number).to_contain_text("Σ step time ÷ number of steps")
    panel.get_by_role("button", name="All about Overview").click()
    expect(panel).to_contain_text("A step is what a training loop repeats.")
    panel.get_by_role("button", name="Input pipeline").first.click()
    expect(panel).to_contain_text("Does the job wait for its input")
    panel.get_by_role("button", name="← Back").click()
    panel.get_by_role("button", name="Glossary").click()
    expect(panel).to_contain_text("copy-done")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    assert all(url.startswith((server.url, "blob:", "data:")) for url in foreign)


def test_a_second_tab_lists_the_keys_and_the_key_closes_help(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, OVERVIEW)
    panel = open_help(page)
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_role("tab", name="Keys")).to_be_focused()
    expect(panel).to_contain_text("Search in the table")
    page.keyboard.press("?")
    expect(panel).to_have_count(0)


def test_tiles_headings_and_columns_explain_themselves_by_keyboard(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, OVERVIEW)
    frame = frame_of(page)
    tip = frame.get_by_role("tooltip")
    tile = frame.locator(".tile", has_text="Waiting for input").locator("dd").first
    tile.focus()
    expect(tip).to_contain_text("Share of the steps in which the program waits for its next batch")
    expect(tip.locator("code")).to_contain_text("÷")
    expect(tile).to_have_attribute("aria-describedby", "tooltip")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    frame.locator("h2 .explained", has_text="Step time breakdown").focus()
    expect(tip).to_contain_text("How the time of all steps is shared among its parts.")
    frame.get_by_role("button", name="Self time").first.focus()
    expect(tip).to_contain_text("operations nested inside")


def test_every_heading_and_tile_of_every_page_has_a_sentence(page: Page, server: Server) -> None:
    lacking = []
    for tool in (tool for tool in all_tools() if not tool.only_for):
        page.goto(link(server.url, run=KERAS, tool=tool.name))
        expect(heading(page)).to_have_text(tool.title)
        if frame_of(page).locator("main .message").count():
            continue
        expect_tool(page, tool.title)
        lacking += [
            f"{tool.name}: {text}"
            for text in frame_of(page).locator(".section > h2:not(:has(.explained))").all_inner_texts()
        ]
        lacking += [
            f"{tool.name}: {text}"
            for text in frame_of(page).locator(".tile:not([data-tip])").all_inner_texts()
        ]
    assert lacking == []


def test_a_wrong_run_is_explained_in_one_line_with_details_folded(page: Page, server: Server) -> None:
    run = server.logdir / "broken_help" / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(b"\xff" * 500)
    page.goto(link(server.url, run="broken_help/run", tool="overview_page"))
    frame = frame_of(page)
    alert = frame.get_by_role("alert")
    expect(alert.get_by_role("heading")).to_contain_text("host.xplane.pb is ")
    expect(alert.get_by_role("heading")).not_to_contain_text("/")
    expect(alert.locator("details")).not_to_have_attribute("open", "")
    tips = frame.locator("nav a.off").evaluate_all("all => all.map(e => e.dataset.tip)")
    about_files = [tip for tip in tips if "cannot be read" in tip]
    assert len(about_files) > 3
    assert set(about_files) == {"the run's files cannot be read.\nThe page says why."}
