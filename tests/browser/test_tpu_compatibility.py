"""A walk through a graph's scopes: the tree opens and closes, a scope chooses its operations, all in the
link; and a run without one.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, run_of

TOOL = get_tool("tpu_compatibility")
RUN = KERAS.replace("keras_slow_input", "graphs", 1)  # with a SavedModel beside it


def test_scopes_lead_to_their_operations(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words"))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    expect(frame.get_by_role("region", name="Verdict")).to_contain_text(
        "4 operations of 25 in words cannot run on a TPU"
    )
    rows = frame.get_by_role("grid", name="Incompatible operations").locator("tbody tr[data-at]")
    expect(rows).to_have_count(4)
    tree = frame.get_by_role("tree", name="Scopes")
    tree.get_by_role("button", name="None_Lookup", exact=True).click()
    expect_state(page, scope="__inference___call___190:lookup/None_Lookup")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("LookupTableFindV2")
    page.go_back()
    expect(rows).to_have_count(4)


def test_the_tree_opens_and_hides(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words"))
    expect_tool(page, TOOL.title)
    tree = frame_of(page).get_by_role("tree", name="Scopes")
    expect(tree.get_by_role("button", name="network", exact=True)).to_be_visible()
    expect(tree.get_by_role("button", name="embed", exact=True)).to_have_count(0)
    tree.get_by_role("treeitem").filter(has_text="network").get_by_role("button", name="Open").click()
    expect(tree.get_by_role("button", name="embed", exact=True)).to_be_visible()
    frame_of(page).get_by_role("group", name="Show").get_by_role("button", name="Incompatible only").click()
    expect_state(page, tree="invalid")
    expect(tree.get_by_role("button", name="network", exact=True)).to_have_count(0)


def test_another_graph_is_chosen_in_the_link(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name))
    expect_tool(page, TOOL.title)
    choice = frame_of(page).get_by_role("combobox", name="Graph")
    choice.select_option("words")
    expect_state(page, graph="words")
    expect(frame_of(page).get_by_role("region", name="Verdict")).to_contain_text("in words")


def test_a_run_without_a_graph_says_what_to_do(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=run_of("jax_predict"), tool=TOOL.name))
    expect(frame_of(page).locator("main")).to_contain_text("he run's folder contains no TensorFlow graph")
    expect(frame_of(page).locator("main")).to_contain_text("tf.summary.graph")


def test_boxes_open_and_close_in_the_link(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words"))
    expect_tool(page, TOOL.title)
    region = frame_of(page).get_by_role("region", name="Graph", exact=True)
    panel = region.get_by_role("complementary", name="Summary")
    expect(panel).to_contain_text("84.0%")
    call = region.get_by_role("button", name="__inference___call___190, ✗ 2 of 10 operations")
    was_open = call.get_attribute("aria-expanded") == "true"
    box = region.get_by_role("button", name="lookup, ✗ 2 of 2 operations")
    if not was_open:
        expect(box).to_have_count(0)
        call.focus()
        call.press("Enter")
    expect(box).to_have_count(1)
    call.focus()
    call.press("Enter")
    expect(box).to_have_count(0)
    page.go_back()
    expect(box).to_have_count(1)


def test_a_scope_of_the_tree_opens_in_the_drawing(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words"))
    expect_tool(page, TOOL.title)
    region = frame_of(page).get_by_role("region", name="Graph", exact=True)
    tree = frame_of(page).get_by_role("tree", name="Scopes")
    call = region.get_by_role("button", name="__inference___call___190, ✗ 2 of 10 operations")
    functions = region.get_by_role("button", name="(functions)")
    functions.focus()
    functions.press("Enter")
    expect(call).to_have_count(0)
    tree.get_by_role("button", name="None_Lookup", exact=True).click()
    scope = region.get_by_role("button", name="None_Lookup, ✗ 1 of 1 operation")
    expect(scope).to_have_attribute("aria-expanded", "true")
    expect(scope).to_have_class("td-frame bad chosen")
    expect(call).to_have_attribute("aria-expanded", "true")
    page.go_back()
    expect(call).to_have_count(0)


def test_an_operation_s_remedy_is_in_the_panel(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words"))
    region = frame_of(page).get_by_role("region", name="Graph", exact=True)
    region.get_by_role("button", name="hash_table, ✗ HashTableV2").click()
    expect_state(page, node="hash_table")
    panel = region.get_by_role("complementary", name="Summary")
    expect(panel).to_contain_text("no kernel for TPUs")
    expect(panel).to_contain_text("Dataset.map")


def test_an_operation_shows_its_attributes(page: Page, server: Server) -> None:
    boxes = ".".join(f"{row}o" for row in range(30))
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words", boxes=boxes))
    expect_tool(page, TOOL.title)
    frame = frame_of(page)
    frame.get_by_label("network/score/MatMul, ✓ MatMul", exact=True).dispatch_event("click")
    expect_state(page, node="network/score/MatMul")
    summary = frame.get_by_role("complementary", name="Summary")
    expect(summary.get_by_role("region", name="Attributes")).to_contain_text("transpose_b")
    expect(summary.get_by_role("region", name="Inputs")).to_contain_text("network/embed/Gather:output:0")


def test_a_link_to_an_operation_opens_the_drawing_at_it(page: Page, server: Server) -> None:
    """With all scopes open, the graph is too wide to be legible as a whole in a narrow window."""
    page.set_viewport_size({"width": 1280, "height": 1000})
    boxes = ".".join(f"{row}o" for row in range(30))
    node = "network/score/MatMul"
    page.goto(link(server.url, run=RUN, tool=TOOL.name, graph="words", boxes=boxes, node=node))
    expect_tool(page, TOOL.title)
    drawing = frame_of(page).locator(".td-box")
    chosen = frame_of(page).get_by_label(f"{node}, ✓ MatMul", exact=True)
    chosen.wait_for()
    frame, box = drawing.bounding_box(), chosen.bounding_box()
    assert frame
    assert box
    assert frame["x"] <= box["x"]
    assert box["x"] + box["width"] <= frame["x"] + frame["width"]
    assert frame["y"] <= box["y"]
    assert box["y"] + box["height"] <= frame["y"] + frame["height"]
