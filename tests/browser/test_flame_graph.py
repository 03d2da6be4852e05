"""A walk through the flame graph: choosing, zooming, searching and comparing, with the mouse and with keys,
all in the link.
"""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of, state_of

TOOL = get_tool("flame_graph")
JAX = run_of("jax_train")
MAKE_BATCH = "$capture_jax_train.py:62 make_batch"


def open_page(page: Page, server: Server, run: str = JAX, **state: str) -> None:
    page.goto(link(server.url, run=run, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)


def test_a_function_is_chosen_and_found_on_the_timeline(page: Page, server: Server) -> None:
    open_page(page, server)
    tree = frame_of(page).get_by_role("tree", name="Calls of python")
    tree.get_by_role("treeitem", name=re.compile(r"^make_batch\s+capture_jax_train\.py:62")).click()
    expect_state(page, function=MAKE_BATCH)
    panel = frame_of(page).get_by_role("complementary", name="Chosen function")
    expect(panel).to_contain_text("capture_jax_train.py:62")
    expect(panel).to_contain_text("Your code")
    panel.get_by_role("button", name="make_example").last.click()
    expect(panel.get_by_role("heading", level=2)).to_contain_text("make_example")
    page.go_back()
    expect(panel.get_by_role("heading", level=2)).to_contain_text("make_batch")
    panel.get_by_role("button", name=re.compile("^Call 1 of ")).click()
    expect_tool(page, "Trace viewer")
    expect(frame_of(page).get_by_text("make_batch").first).to_be_visible()
    assert int(state_of(page)["end_ps"]) > int(state_of(page)["start_ps"])


def test_keys_move_zoom_and_choose(page: Page, server: Server) -> None:
    open_page(page, server)
    tree = frame_of(page).get_by_role("tree", name="Calls of python")
    first = tree.get_by_role("treeitem").first
    first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    focused = frame_of(page).locator(":focus")
    expect(focused).to_have_attribute("aria-level", "4")
    page.keyboard.press("Enter")
    expect(frame_of(page).get_by_role("button", name="Zoom out of make_batch")).to_be_visible()
    assert "zoom" in state_of(page)
    page.keyboard.press("Escape")
    expect(frame_of(page).get_by_role("button", name=re.compile("^Zoom out"))).to_have_count(0)
    page.keyboard.press(" ")
    expect_state(page, function=MAKE_BATCH)
    page.keyboard.press("ArrowUp")
    expect(focused).to_have_attribute("aria-level", "3")


def test_search_dims_what_does_not_match(page: Page, server: Server) -> None:
    open_page(page, server)
    frame_of(page).get_by_role("searchbox", name="Search functions").fill("make_example")
    expect_state(page, q="make_example")
    expect(frame_of(page).get_by_text(re.compile(r"^1 match, "))).to_be_visible()
    boxes = frame_of(page).locator(".fg-box")
    expect(frame_of(page).locator(".fg-box:not(.dim)")).to_have_count(1)
    assert boxes.count() > 5


def test_steps_are_shown_in_order_and_compared(page: Page, server: Server) -> None:
    open_page(page, server)
    frame_of(page).get_by_role("group", name="Steps").get_by_role("button", name="Slowest").click()
    expect_state(page, steps="slowest")
    expect(frame_of(page).get_by_text(re.compile(r"^Shown: 1 step of "))).to_be_visible()
    frame_of(page).get_by_role("button", name="In time order").click()
    expect_state(page, order="time")
    expect(frame_of(page).locator(".fg-box").first).to_be_visible()
    frame_of(page).get_by_role("button", name="Merged").click()
    frame_of(page).get_by_role("combobox", name="Compare with").select_option("median")
    expect_state(page, against="median")
    expect(frame_of(page).get_by_text("Boxes are as wide as both together")).to_be_visible()
    expect(frame_of(page).locator(".fg-box.fg-more").first).to_be_visible()


def test_scopes_threads_and_files(page: Page, server: Server) -> None:
    open_page(page, server)
    frame_of(page).get_by_role("group", name="Tree").get_by_role("button", name="Scopes").click()
    expect_state(page, mode="scopes")
    expect(frame_of(page).get_by_role("treeitem", name=re.compile("^jit_train_step")).first).to_be_visible()
    page.go_back()
    frame_of(page).get_by_role("button", name="Threads: ").click()
    frame_of(page).get_by_role("checkbox", name=re.compile("^tf_XLAEigen")).click()
    expect(frame_of(page).get_by_role("tree", name="Calls of tf_XLAEigen")).to_be_visible()
    page.keyboard.press("Escape")
    frame_of(page).get_by_role("button", name="Save stacks for other programs").click()
    with page.expect_download() as download:
        frame_of(page).get_by_role("menuitem", name=re.compile("^speedscope")).click()
    assert download.value.suggested_filename.endswith("_flame_graph.speedscope.json")
    assert len(json.loads(download.value.path().read_text("utf-8"))["profiles"]) == 2


def test_a_run_without_python_calls_says_how_to_record_them(page: Page, server: Server) -> None:
    open_page(page, server, KERAS)
    verdict = frame_of(page).get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("tpuprof capture --python_tracer_level 1")
