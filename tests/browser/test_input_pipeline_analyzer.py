"""A walk through the input pipeline's page: verdict, steps, host, operations, and choosing a host."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.input_pages import assert_scrolls_only_downwards, open_page, payload_of, texts_of
from tests.browser.walking import TWO_WORKERS, expect_state, expect_tool, frame_of

INPUT = get_tool("input_pipeline_analyzer")


def test_input_page_opens_with_the_verdict_and_shows_steps_host_and_operations(
    page: Page, server: Server
) -> None:
    payload = payload_of(INPUT.name)
    open_page(page, server, INPUT.name)
    assert payload.verdict
    expect(frame_of(page).get_by_label("Verdict")).to_contain_text(payload.verdict.text.replace("`", ""))
    expect(frame_of(page).get_by_label("Key numbers")).to_contain_text(
        payload.scalars["input_fraction"].title
    )
    expect(frame_of(page).locator(".chart canvas")).to_have_count(1)
    host_side = frame_of(page).get_by_role("grid", name=payload.tables["host_categories"].title)
    expect(host_side.locator("tbody tr")).not_to_have_count(0)
    operations = frame_of(page).get_by_role("grid", name=payload.tables["input_ops"].title)
    expect(operations.locator("tbody tr[data-at='0']")).to_contain_text(
        str(texts_of(payload, "input_ops", "operation")[0])
    )


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


def test_page_scrolls_only_downwards(page: Page, server: Server) -> None:
    assert_scrolls_only_downwards(page, server, INPUT.name)
