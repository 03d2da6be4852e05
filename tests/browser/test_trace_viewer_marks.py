"""Marks, comparison, chains and files of a selection in a real browser, each against the trace's numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.analysis.timeline.flows import flows
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.browser.conftest import Server, Watch
from tests.browser.test_trace_viewer_hands import open_viewer, param, stage_of
from tests.browser.walking import KERAS, expect_state, frame_of, link, run_of, state_of
from tests.golden_files import demo_runs
from tests.tools.trace_viewer.questions import rows

PERFETTO_PAGE = """<title>waiting</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  else {
    const { title, fileName, buffer } = event.data.perfetto;
    const [a, b] = new Uint8Array(buffer);
    document.title = [title, fileName, a === 0x1f && b === 0x8b].join(" ");
  }
});
</script>"""


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(str(demo_runs()["keras_slow_input"]), cache=False)


def steps_of(session: Session) -> list[dict[str, Any]]:
    return rows(get_tool("trace_viewer").run(session, None, {}, ""), "steps")


def mark_text(step: dict[str, Any]) -> str:
    return f"{step['start_ps']:.0f}-{step['start_ps'] + step['duration_ps']:.0f}"


def test_a_mark_is_named_by_typing_kept_in_link_and_browser_and_deleted(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, start_ps="100000000000", end_ps="300000000000")
    page.keyboard.press("Shift+M")
    name = frame.get_by_label("Name of mark A")
    expect(name).to_be_focused()
    page.keyboard.type("two, three; four")
    page.keyboard.press("Enter")
    expect_state(page, marks="100000000000-300000000000,two%2C%20three%3B%20four")
    tag = frame.locator(".tv-mark")
    expect(tag).to_contain_text("two, three; four")
    # The same run without marks in its link: the browser has kept them.
    page.goto("about:blank")
    frame = open_viewer(page, server)
    tag = frame.locator(".tv-mark")
    label = "Mark A, two, three; four: 200\u00a0ms from 100.000000 ms"
    expect(tag).to_have_attribute("aria-label", label)
    tag.click()
    expect_state(page, mark="100000000000-300000000000")
    tag.focus()
    page.keyboard.press("Delete")
    expect(frame.locator(".tv-mark")).to_have_count(0)
    page.goto("about:blank")
    frame = open_viewer(page, server)
    expect(frame.locator(".tv-mark")).to_have_count(0)


def test_two_steps_are_compared_and_drawn_below_each_other(
    page: Page, server: Server, session: Session
) -> None:
    first, second = steps_of(session)[1], steps_of(session)[3]
    frame = open_viewer(page, server, marks=f"{mark_text(first)};{mark_text(second)}")
    page.keyboard.press("c")
    expect_state(page, compare="AB")
    answer = get_tool("trace_viewer").run(
        session,
        None,
        {
            "a_start_ps": first["start_ps"],
            "a_end_ps": first["start_ps"] + first["duration_ps"],
            "b_start_ps": second["start_ps"],
            "b_end_ps": second["start_ps"] + second["duration_ps"],
        },
        "compare",
    )
    largest = rows(answer, "compared")[0]
    table = frame.locator(".tv-compare tbody")
    expect(table.locator("tr").first).to_contain_text(largest["name"][:8])
    page.keyboard.press("v")
    expect_state(page, compare="AB.beside")
    expect(frame.locator(".tv-beside .tv-stage canvas").first).to_be_visible()
    # Both begin at the same pixel: the edges of A above and of B below.
    edges = frame.locator(".tv-mark-edges")
    expect(edges).to_have_count(2)
    begins = [edges.nth(i).locator("i").first for i in (0, 1)]
    expect(begins[0]).to_be_visible()
    expect(begins[1]).to_be_visible()
    lefts = [begin.bounding_box()["x"] for begin in begins]
    assert abs(lefts[0] - lefts[1]) <= 1
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(frame_of(page).locator(".tv-beside")).to_contain_text("starts aligned")


def test_the_chain_of_an_event_is_listed_and_walked(page: Page, server: Server) -> None:
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    arrows = flows(session.trace(session.hosts[0]))
    event = int(arrows.target[len(arrows.target) // 2])
    tool = get_tool("trace_viewer")
    chain = rows(tool.run(session, None, {"event": event}, "chain"), "chain")
    arrow = max(
        arrows.into(event),
        key=lambda row: session.trace(session.hosts[0]).events["start_ps"][arrows.source[row]],
    )
    cause = int(arrows.source[arrow])
    page.goto(link(server.url, run=run_of("jax_train"), tool="trace_viewer", event=str(event)))
    frame = frame_of(page)
    listed = frame.locator(".tv-chain")
    expect(listed.locator(".is-own")).to_contain_text(next(r["name"] for r in chain if r["side"] == "event"))
    expect(listed).to_contain_text(next(r["name"] for r in chain if r["event"] == cause))
    stage_of(frame).focus()
    page.keyboard.press("[")
    expect_state(page, event=str(cause))


def test_a_box_is_saved_as_csv(page: Page, server: Server, session: Session, tmp_path: Path) -> None:
    step = steps_of(session)[2]
    begin, end = (int(step["start_ps"]), int(step["start_ps"] + step["duration_ps"]))
    frame = open_viewer(page, server, mark=f"{begin}-{end}@0")
    frame.get_by_role("button", name="Save the view").click()
    with page.expect_download() as download:
        frame.get_by_role("menuitem", name="The marked events as CSV").click()
    path = tmp_path / "events.csv"
    download.value.save_as(path)
    trace = session.trace(session.hosts[0])
    last = int(trace.line_offsets[1])
    start, duration = (trace.events[name][:last] for name in ("start_ps", "duration_ps"))
    inside = (start < end) & (start + duration.clip(1) > begin)
    with path.open() as file:
        saved = [(int(row["start_ps"]), int(row["duration_ps"])) for row in csv.DictReader(file)]
    assert sorted(saved) == sorted(zip(start[inside].tolist(), duration[inside].tolist(), strict=True))
    assert len(saved) > 3


def test_perfetto_gets_the_window_only_after_a_click_that_says_so(
    page: Page, server: Server, watch: Watch
) -> None:
    asked: list[str] = []
    watch.others.add("https://ui.perfetto.dev")

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(body=PERFETTO_PAGE, content_type="text/html")

    page.context.route("https://ui.perfetto.dev/**", answer)
    frame = open_viewer(page, server, start_ps="100000000000", end_ps="200000000000")
    frame.get_by_role("button", name="Save the view").click()
    frame.get_by_role("menuitem", name="Open in Perfetto").click()
    expect(frame.get_by_role("dialog")).to_contain_text("This opens another site, ui.perfetto.dev")
    assert asked == []
    with page.context.expect_page() as opened:
        frame.get_by_role("button", name="Open the window in Perfetto").click()
    perfetto = opened.value
    perfetto.wait_for_function("document.title.includes('true')")
    assert perfetto.title() == f"{KERAS} {KERAS.replace('/', '_')}_window.trace.json.gz true"
    expect(frame.get_by_text("Opening Perfetto")).to_have_count(0)
    assert len(asked) == 1
    assert param(page, "start_ps") == state_of(page)["start_ps"]
