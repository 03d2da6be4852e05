"""The page around the tools, in TensorBoard: where it opens, what the address keeps, the theme, and that logs
stay untouched.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.tools import all_tools
from tests.browser.conftest import Server
from tests.browser.walking import (
    KERAS,
    TWO_WORKERS,
    choose_run,
    expect_state,
    expect_tool,
    frame_of,
    heading,
    link,
    open_tool,
    run_of,
    state_of,
    tree,
)
from tests.golden_files import demo_runs

pytestmark = pytest.mark.tensorboard
TITLES = {tool.name: tool.title for tool in all_tools()}
LISTED = [tool for tool in all_tools() if not tool.only_for]


def test_the_tab_opens_on_the_first_tool_of_the_newest_run(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#profile")
    expect_tool(page, TITLES["overview_page"])
    expect(frame_of(page).get_by_label("Verdict")).to_be_visible()
    expect_state(page, tool="overview_page")
    assert TITLES["overview_page"] in page.title()


def test_the_tab_is_found_by_clicking_in_a_logdir_with_scalars(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_role("tab", name="Profile").click()
    expect_tool(page, TITLES["overview_page"])
    assert state_of(page)["tab"] == "profile"


def test_choices_are_in_the_address_and_back_undoes_one_at_a_time(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLES["overview_page"])
    open_tool(page, TITLES["framework_op_stats"])
    expect_state(page, run=KERAS, tool="framework_op_stats")
    expect_tool(page, TITLES["framework_op_stats"])
    choose_run(page, TWO_WORKERS)
    expect_state(page, run=TWO_WORKERS, tool="framework_op_stats")
    frame_of(page).get_by_role("button", name="Only worker-1").dispatch_event("click")
    expect_state(page, run=TWO_WORKERS, hosts="worker-1")

    page.go_back()
    expect_state(page, run=TWO_WORKERS, tool="framework_op_stats")
    assert "hosts" not in state_of(page)
    page.go_back()
    expect_state(page, run=KERAS, tool="framework_op_stats")
    page.go_back()
    expect_state(page, run=KERAS, tool="overview_page")
    expect_tool(page, TITLES["overview_page"])
    page.go_forward()
    expect_state(page, run=KERAS, tool="framework_op_stats")
    expect_tool(page, TITLES["framework_op_stats"])


def test_reload_and_pasted_links_keep_the_view(page: Page, server: Server) -> None:
    address = link(server.url, run=TWO_WORKERS, tool="framework_op_stats", hosts="worker-1")
    page.goto(address)
    expect_tool(page, TITLES["framework_op_stats"])
    page.reload()
    expect_tool(page, TITLES["framework_op_stats"])
    expect_state(page, run=TWO_WORKERS, tool="framework_op_stats", hosts="worker-1")
    hosts = frame_of(page).get_by_role("region", name="Hosts")
    expect(hosts.get_by_role("checkbox", name="worker-1")).to_be_checked()
    expect(hosts.get_by_role("checkbox", name="worker-0")).not_to_be_checked()


def test_theme_follows_tensorboard_as_it_is_switched(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, TITLES["overview_page"])

    def background() -> list[int]:
        return [
            int(part)
            for part in frame_of(page)
            .locator("body")
            .evaluate("b => getComputedStyle(b).backgroundColor.match(/\\d+/g).slice(0, 3)")
        ]

    shades = {}
    for theme in ("light", "dark", "light"):
        page.get_by_role("button", name="Menu for changing light or dark theme").click()
        page.get_by_role("menuitemradio", name=theme).or_(
            page.get_by_role("menuitem", name=theme)
        ).first.click()
        root = frame_of(page).locator("html")
        expect(root).to_have_class("dark") if theme == "dark" else expect(root).not_to_have_class("dark")
        shades[theme] = sum(background())
    assert shades["dark"] < 200 < 600 < shades["light"]


@pytest.mark.parametrize(("state", "text"), [
    ({"run": "gone/2020_01_01", "tool": "overview_page"}, 'There is no run "gone/2020_01_01".'),
    ({"run": "../../etc", "tool": "overview_page"}, 'There is no run "../../etc".'),
    ({"run": KERAS, "tool": "no_such_tool"}, 'There is no tool "no_such_tool".'),
    ({"run": KERAS, "tool": "overview_page", "hosts": "nobody"}, 'This run has no host "nobody".'),
])  # fmt: skip
def test_a_link_to_a_missing_page_says_so_and_offers_existing_ones(
    page: Page, server: Server, state: dict[str, str], text: str
) -> None:
    page.goto(link(server.url, **state))
    alert = frame_of(page).get_by_role("alert")
    expect(alert).to_contain_text(text)
    alert.get_by_role("listitem").get_by_role("button").first.click()
    expect(heading(page)).to_be_visible()
    expect(frame_of(page).get_by_role("alert")).to_have_count(0)


def test_a_run_deleted_while_open_says_so_and_others_stay_usable(page: Page, server: Server) -> None:
    doomed = server.logdir / "doomed"
    shutil.copytree(server.logdir / "jax_predict", doomed)
    try:
        page.goto(link(server.url, run="doomed/requests", tool="trace_viewer"))
        expect_tool(page, TITLES["trace_viewer"])
    finally:
        shutil.rmtree(doomed)
    open_tool(page, TITLES["framework_op_stats"])
    expect(frame_of(page).get_by_role("alert")).to_be_visible()
    choose_run(page, KERAS)
    expect_tool(page, TITLES["framework_op_stats"])


def test_keys_are_listed(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="trace_viewer"))
    expect_tool(page, TITLES["trace_viewer"])
    frame_of(page).get_by_role("button", name="Help").click()
    panel = frame_of(page).get_by_role("complementary", name="Help")
    panel.get_by_role("tab", name="Keys").click()
    expect(panel).to_contain_text("Zoom in and out")


def test_no_horizontal_scroll_bar_at_1024_px(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    for tool in LISTED:
        page.goto(link(server.url, run=KERAS, tool=tool.name))
        expect_tool(page, tool.title)
        width, room = frame_of(page).locator("html").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert width <= room, tool.name


def test_visiting_every_page_leaves_the_logdir_as_it_was(page: Page, server: Server) -> None:
    before = tree(server.logdir)
    names = {run["run"] for run in page.request.get(f"{server.url}/data/plugin/profile/runs").json()["runs"]}
    runs = {run_of(log) for log in demo_runs()}
    assert len(runs) == 4
    assert runs < names
    for run in sorted(runs):
        for tool in LISTED:
            page.goto(link(server.url, run=run, tool=tool.name))
            expect(frame_of(page).locator("main")).to_be_visible()
            expect(heading(page)).to_have_text(tool.title)
            expect(frame_of(page).locator("[aria-busy=true]")).to_have_count(0)
        page.reload()
    assert tree(server.logdir) == before
    assert Path(server.logdir).is_dir()
