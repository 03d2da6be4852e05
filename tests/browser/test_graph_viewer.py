"""A walk through the graph of a compiled program: details, walking and back, opened fusions, search, the
text, files.
"""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of, state_of
from tests.golden_files import demo_runs
from tests.payload_columns import table

TOOL = get_tool("graph_viewer")
RUN = run_of("jax_train")
PAYLOAD = TOOL.run(Session(str(demo_runs()["jax_train"]), cache=False), None, {})
HOTTEST = str(table(PAYLOAD, "chosen")["op"][0])
SECOND = str(table(PAYLOAD, "hot")["name"][1])


def open_graph(page: Page, server: Server, **state: str) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)
    expect(frame_of(page).locator(".gv-node.center")).to_have_count(1)


def test_the_hottest_instruction_its_details_and_its_neighbours(page: Page, server: Server) -> None:
    open_graph(page, server)
    frame = frame_of(page)
    expect(frame.get_by_role("region", name="Verdict")).to_contain_text("The most expensive instruction of")
    nodes = table(PAYLOAD, "nodes")
    expect(frame.locator(".gv-node")).to_have_count(len(nodes["name"]))
    expect(frame.locator(".gv-link")).to_have_count(PAYLOAD.tables["edges"].n_rows)
    frame.locator(".gv-node.center").click()
    expect_state(page, node=HOTTEST)
    expect(frame.get_by_role("complementary", name=f"Instruction {HOTTEST}")).to_contain_text(
        str(nodes["shape"][nodes["name"].index(HOTTEST)])
    )
    page.keyboard.press("Escape")
    expect(frame.get_by_role("complementary", name=re.compile("^Instruction"))).to_have_count(0)


def test_a_walk_is_a_step_of_history(page: Page, server: Server) -> None:
    open_graph(page, server)
    frame_of(page).get_by_role("grid", name="Hottest instructions").locator("tbody tr[data-at]").nth(
        1
    ).click()
    expect_state(page, op=SECOND)
    expect(frame_of(page).get_by_role("heading", name=f"Around {SECOND}")).to_be_visible()
    page.go_back()
    expect(frame_of(page).get_by_role("heading", name=f"Around {HOTTEST}")).to_be_visible()


def test_fusions_open_and_the_choice_is_in_the_link(page: Page, server: Server) -> None:
    open_graph(page, server)
    before = frame_of(page).locator(".gv-node").count()
    frame_of(page).get_by_role("checkbox", name="Open fusions").check()
    expect_state(page, fusions="opened")
    expect(frame_of(page).locator(".gv-frame").first).to_be_attached()
    assert frame_of(page).locator(".gv-node").count() > before


def test_search_walks_and_the_text_shows_the_same_instruction(page: Page, server: Server) -> None:
    open_graph(page, server)
    frame = frame_of(page)
    frame.get_by_role("searchbox", name="Find an instruction").fill(SECOND)
    frame.get_by_role("option", name=re.compile(f"^{re.escape(SECOND)}")).first.click()
    expect_state(page, op=SECOND)
    frame.get_by_role("group", name="Show as").get_by_role("button", name="Text", exact=True).click()
    expect_state(page, shown="short")
    expect(frame.get_by_role("region", name="Text of the program").locator(".marked")).to_contain_text(
        f"{SECOND} = "
    )
    expect(frame.get_by_role("region", name="Text of the program").locator(".marked")).to_be_in_viewport()


def test_files_are_saved(page: Page, server: Server, tmp_path: Path) -> None:
    open_graph(page, server)
    for item, ending in (("The program as proto", ".pb"), ("This graph as DOT", ".dot")):
        frame_of(page).get_by_role("button", name="Save the program or the graph").click()
        with page.expect_download() as download:
            frame_of(page).get_by_role("menuitem", name=re.compile(f"^{item}")).click()
        assert download.value.suggested_filename.endswith(ending)
        saved = tmp_path / f"saved{ending}"
        download.value.save_as(saved)
        form = {".pb": "proto", ".dot": "dot"}[ending]
        program = str(table(PAYLOAD, "chosen")["program"][0])
        params = {"program": program, "op": HOTTEST}
        assert saved.read_bytes() == b"".join(
            TOOL.file(Session(str(demo_runs()["jax_train"]), cache=False), None, params, form)[1]
        )


def test_a_run_without_programs_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("No HLO of compiled programs")
    assert state_of(page)["tool"] == TOOL.name


def test_arrow_keys_walk_the_graph(page: Page, server: Server) -> None:
    open_graph(page, server)
    frame = frame_of(page)
    middle = frame.locator(".gv-node.center")
    middle.focus()
    expect(middle).to_be_focused()
    middle.press("ArrowUp")
    focused = frame.locator(".gv-node:focus")
    expect(focused).to_have_count(1)
    expect(frame.locator(".gv-node.center:focus")).to_have_count(0)
    name = focused.locator(".name").text_content()
    focused.press("Shift+Enter")
    expect_state(page, op=name)
