"""A walk through the requests of a synthetic model server: tiles, charts, models, the way to the timeline;
and a run without requests.
"""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link
from tests.synthetic_serving import serving

TOOL = get_tool("inference_profile")
RUN = "serving/synthetic"


def opened(page: Page, server: Server, **state: str) -> Locator:
    page.goto(link(server.url, run=RUN, tool=TOOL.name, **state))
    expect_tool(page, TOOL.title)
    return frame_of(page).locator("main")


def tile(main: Locator, title: str) -> Locator:
    return main.locator(".tile").filter(has_text=title)


def test_verdict_tiles_and_charts(page: Page, server: Server) -> None:
    main = opened(page, server)
    expect(main.get_by_role("region", name="Verdict")).to_contain_text("Limited by batching")
    expect(tile(main, "Requests").first).to_contain_text("1,200")
    expect(tile(main, "Padding")).to_contain_text("batch slots")
    histogram = main.get_by_role("img", name=re.compile("^Latency: p50 "))
    expect(histogram.locator(".mark")).to_have_count(6)
    assert histogram.locator(".bar").count() > 10
    sizes = {batch.size for batch in serving().batches}
    expect(main.get_by_role("img", name=re.compile("^Batch size: ")).locator(".size")).to_have_count(
        len(sizes)
    )
    expect(
        main.get_by_role("grid", name="Where a request’s time goes").locator("tbody tr[data-at]")
    ).to_have_count(8)


def test_a_model_is_chosen_in_the_link(page: Page, server: Server) -> None:
    main = opened(page, server)
    n = sum(request.model == "embed:1" for request in serving().requests)
    main.get_by_role("group", name="Model").get_by_role("button", name=re.compile("^embed")).click()
    expect_state(page, model="embed:1")
    expect(tile(main, "Requests").first).to_contain_text(f"{n:,}")
    slowest = max(
        (request for request in serving().requests if request.model == "embed:1"),
        key=lambda request: request.end - request.start,
    )
    number = serving().requests.index(slowest) + 1
    first = main.get_by_role("grid", name="Requests").locator("tbody tr[data-at]").first
    expect(first).to_contain_text(f"#{number}")
    page.go_back()
    expect(tile(main, "Requests").first).to_contain_text("1,200")


def test_the_slowest_request_leads_to_the_timeline(page: Page, server: Server) -> None:
    main = opened(page, server)
    slowest = max(serving().requests, key=lambda request: request.end - request.start)
    around = -(-(slowest.end - slowest.start) * 10**6 // 10)
    first = main.get_by_role("grid", name="Requests").locator("tbody tr[data-at]").first
    first.get_by_role("button", name=re.compile("^#")).click()
    expect_tool(page, "Trace viewer")
    expect_state(
        page,
        tool="trace_viewer",
        start_ps=str(max(0, slowest.start * 10**6 - around)),
        end_ps=str(slowest.end * 10**6 + around),
    )


def test_requests_are_searched_and_sorted_in_the_link(page: Page, server: Server) -> None:
    main = opened(page, server, **{"requests.sort": "request", "requests.q": "chat"})
    rows = main.get_by_role("grid", name="Requests").locator("tbody tr[data-at]")
    first = next(i for i, request in enumerate(serving().requests, 1) if request.model.startswith("chat"))
    expect(rows.first).to_contain_text(f"#{first}")


def test_a_run_without_requests_says_why(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool=TOOL.name))
    main = frame_of(page).locator("main")
    expect(main).to_contain_text("No event in the trace marks a request")
    expect(main).to_contain_text("StepTraceAnnotation")
