"""A walk through the op profile: open and close, search, the flame, an operation's card, all in the link."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of

TOOL = get_tool("op_profile")
JAX = run_of("jax_train")


def open_page(page: Page, server: Server, **state: str) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)


def test_nodes_open_and_close(page: Page, server: Server) -> None:
    open_page(page, server)
    tree = frame_of(page).get_by_role("treegrid")
    expect(tree.locator("tr[data-row]").first).to_contain_text("jit_")
    before = tree.locator("tr[data-row]").count()
    tree.get_by_role("button", name=re.compile("^Close jit_")).first.click()
    expect(tree.locator("tr[data-row][aria-level='2']")).to_have_count(0)
    assert tree.locator("tr[data-row]").count() < before


def test_an_operation_s_card_is_in_the_link(page: Page, server: Server) -> None:
    open_page(page, server)
    op = frame_of(page).get_by_role("treegrid").locator("button.text-link").first
    name = op.inner_text()
    op.click()
    expect_state(page, op=name)
    card = frame_of(page).get_by_role("complementary", name=f"Operation {name}")
    expect(card).to_contain_text(f"%{name} = ")
    expect(card.get_by_role("grid", name="Shapes")).to_be_visible()
    card.get_by_role("button", name="Timeline").click()
    expect_tool(page, "Trace viewer")
    page.go_back()
    expect(frame_of(page).get_by_role("complementary", name=f"Operation {name}")).to_be_visible()


def test_search_and_flame(page: Page, server: Server) -> None:
    open_page(page, server)
    frame_of(page).get_by_role("searchbox", name="Search in the op profile").fill("fusion")
    expect_state(page, q="fusion")
    expect(frame_of(page).get_by_role("treegrid").locator("button.text-link").first).to_contain_text("fusion")
    frame_of(page).get_by_role("group", name="View").get_by_role("button", name="Flame").click()
    expect_state(page, view="flame")
    box = frame_of(page).locator(".op-box").nth(1)
    name = box.inner_text()
    box.click()
    expect(frame_of(page).get_by_role("navigation", name="Zoomed into")).to_contain_text(name)


def test_a_run_without_compiled_operations_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("XLA compiled")


def test_the_treemap_and_the_inside_of_a_fusion(page: Page, server: Server) -> None:
    open_page(page, server, view="treemap")
    treemap = frame_of(page).get_by_role("group", name="Treemap")
    fusion = treemap.get_by_role("button", name=re.compile("_fusion")).first
    name = fusion.get_attribute("aria-label")
    fusion.click()
    expect_state(page, op=str(name))
    frame_of(page).get_by_role("group", name="View").get_by_role("button", name="Tree", exact=True).click()
    tree = frame_of(page).get_by_role("treegrid")
    tree.get_by_role("button", name=f"Open {name}", exact=True).click()
    expect(tree.locator("tr.op-estimate").first).to_contain_text("\u2248")


def test_ways_from_an_operation_land_on_it(page: Page, server: Server) -> None:
    open_page(page, server)
    op = frame_of(page).get_by_role("treegrid").locator("button.text-link").first
    name = op.inner_text()
    op.click()
    card = frame_of(page).get_by_role("complementary", name=f"Operation {name}")
    card.locator(".op-links").get_by_role("button", name="Graph", exact=True).click()
    expect_tool(page, "Graph viewer")
    expect(frame_of(page).locator(".gv-node.center .name")).to_have_text(re.compile(re.escape(name[:10])))
    page.go_back()
    for button, title in (("HLO stats", "HLO stats"), ("Roofline", "Roofline model")):
        card.locator(".op-links").get_by_role("button", name=button, exact=True).click()
        expect_tool(page, title)
        expect(card).to_contain_text(f"%{name} = ")
        page.go_back()
    card.locator(".op-links").get_by_role("button", name="Memory", exact=True).click()
    expect_tool(page, "Memory viewer")
    expect_state(page, op=name)
    page.go_back()
    card.locator(".op-links").get_by_role("button", name="Timeline", exact=True).click()
    expect_tool(page, "Trace viewer")
    expect(frame_of(page).get_by_role("complementary", name="Selected event")).to_contain_text(name)


def test_the_children_that_make_up_most_of_the_time(page: Page, server: Server) -> None:
    open_page(page, server)
    tree = frame_of(page).get_by_role("treegrid")
    before = tree.locator("tr[data-row]").count()
    frame_of(page).get_by_role("checkbox", name="Top 90%").check()
    expect_state(page, cover="90")
    expect(tree.locator("tr.op-rest").first).to_contain_text("not shown")
    assert tree.locator("tr[data-row]").count() < before
    page.go_back()
    expect(tree.locator("tr[data-row]")).to_have_count(before)
