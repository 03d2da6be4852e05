"""A walk through the compiled operations of a JAX run on CPU and of a synthetic TPU: pies, filters in the
link, a run without any.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of

TOOL = get_tool("hlo_stats")
JAX = run_of("jax_train")
TPU = "tpu/synthetic"


def test_rows_of_a_tpu_with_what_binds_them(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=TPU, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    table = frame_of(page).get_by_role("grid", name="Operations")
    expect(table.locator("tbody tr[data-at]")).to_have_count(4)
    expect(table.locator("tbody tr[data-at]").first).to_contain_text("HBM")
    expect(table.locator("tbody tr[data-at]").first).to_contain_text("convolution fusion")
    expect(frame_of(page).get_by_role("region", name="Verdict")).to_contain_text(
        "fusion.2 (convolution fusion) takes the most time: 6.00 ms"
    )


def test_a_search_is_in_the_link(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name, **{"f.category": "=loop fusion"}))
    expect_tool(page, TOOL.title)
    expect(frame_of(page).locator(".share-bar").first).to_contain_text("loop fusion")
    rows = frame_of(page).get_by_role("grid", name="Operations").locator("tbody tr[data-at]")
    assert all("loop fusion" in text for text in rows.all_inner_texts())
    frame_of(page).get_by_role("searchbox", name="Search in Operations").fill("fusion")
    expect_state(page, q="fusion")


def test_a_run_without_compiled_operations_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("XLA compiled")


def test_a_name_opens_the_operation_s_card_next_to_the_table(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=JAX, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    table = frame_of(page).get_by_role("grid", name="Operations")
    name = table.locator("tbody .text-link").first
    op = name.inner_text()
    name.click()
    expect_state(page, op=op)
    card = frame_of(page).get_by_role("complementary", name=f"Operation {op}")
    expect(card).to_contain_text(f"%{op} = ")
    expect(table.locator("tbody tr[aria-selected=true]")).to_contain_text(op)
    card.locator(".op-links").get_by_role("button", name="Op profile").click()
    expect_tool(page, "Op profile")
    expect(card).to_contain_text(f"%{op} = ")
