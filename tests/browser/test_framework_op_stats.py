"""A walk through the table of operations: its order, search and sort in the link, and the file that Export
saves.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.encode import encode_csv
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, state_of
from tests.golden_files import demo_runs

TOOL = get_tool("framework_op_stats")


def open_table(page: Page, server: Server, **state: str) -> Locator:
    """The table of operations of the Keras run."""
    page.goto(link(server.url, run=KERAS, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)
    return frame_of(page).get_by_role("grid", name="Operations")


def rows(table: Locator) -> list[str]:
    """Texts of the rows on screen."""
    return table.locator("tbody tr[data-at]").all_inner_texts()


def test_search_is_in_the_link_and_survives_a_reload(page: Page, server: Server) -> None:
    table = open_table(page, server)
    search = frame_of(page).get_by_role("searchbox", name="Search in Operations")
    search.fill("conv2d")
    expect(frame_of(page).locator(".table-tools .count")).to_contain_text(" of ")
    assert all("conv2d" in row.lower() for row in rows(table))
    page.wait_for_function("location.hash.includes('conv2d')")
    page.reload()
    expect_tool(page, TOOL.title)
    expect(frame_of(page).get_by_role("searchbox", name="Search in Operations")).to_have_value("conv2d")
    assert all("conv2d" in row.lower() for row in rows(table))


def test_sorting_is_one_step_of_history(page: Page, server: Server) -> None:
    table = open_table(page, server)
    before = rows(table)
    table.get_by_role("button", name=re.compile("^Occurrences")).click()
    expect(table.locator("th[aria-sort=descending]")).to_contain_text("Occurrences")
    page.go_back()
    expect(table.locator("th[aria-sort=descending]", has_text="Occurrences")).to_have_count(0)
    assert rows(table) == before


def test_idle_switch_is_in_the_link(page: Page, server: Server) -> None:
    open_table(page, server)
    frame_of(page).get_by_role("checkbox", name=TOOL.params[0].title).check()
    expect_state(page, idle="true")
    page.go_back()
    page.wait_for_function("!location.hash.includes('idle')")
    assert "idle" not in state_of(page)


def test_exported_csv_is_the_command_line_s(page: Page, server: Server, tmp_path: Path) -> None:
    open_table(page, server)
    frame_of(page).get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        frame_of(page).get_by_role("menuitem", name=re.compile("Operations as CSV")).click()
    saved = tmp_path / "ops.csv"
    download.value.save_as(saved)
    payload = TOOL.run(Session(str(demo_runs()["keras_slow_input"]), cache=False), None, {})
    assert saved.read_bytes() == encode_csv(payload, "ops")
    assert len(list(csv.DictReader(saved.open(encoding="utf-8")))) == payload.tables["ops"].n_rows
