"""Every mouse action and key of the trace viewer in a real browser, and the page's texts compared with the
trace's own numbers.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, state_of
from tests.golden_files import demo_runs

TITLE = "Trace viewer"


@pytest.fixture(scope="module")
def trace() -> Trace:
    """The Keras run as the session reads it."""
    session = Session(str(demo_runs()["keras_slow_input"]), cache=False)
    return session.trace(session.hosts[0])


def names_of(trace: Trace) -> list[str]:
    """The name of each event of the file."""
    texts = [trace.strings.get(int(i)) for i in trace.event_names]
    return [texts[i] for i in trace.events["metadata"].tolist()]


def open_viewer(page: Page, server: Server, **state: str) -> Any:
    """The viewer on the Keras run, with no click into it."""
    page.goto(link(server.url, run=KERAS, tool="trace_viewer", **state))
    expect_tool(page, TITLE)
    frame = frame_of(page)
    expect(frame.locator(".tv-whole")).to_contain_text("36,436 events")
    return frame


def param(page: Page, name: str) -> str:
    """A parameter of the address, once it is there."""
    page.wait_for_function(
        "(name) => new URLSearchParams(location.hash.slice(1)).get(name)", arg=f"p.profile.{name}"
    )
    return state_of(page)[name]


def span(page: Page) -> float:
    """How long the window is, once the address has it and is at rest."""
    param(page, "end_ps")
    page.evaluate(
        "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => "
        "requestAnimationFrame(done)), 600))"
    )
    return float(state_of(page)["end_ps"]) - float(state_of(page)["start_ps"])


def stage_of(frame: Any) -> Locator:
    """The timeline itself."""
    return frame.locator(".tv-stage")


def middle(frame: Any) -> tuple[float, float]:
    """A point in the middle of the timeline."""
    box = stage_of(frame).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 3


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press, move, let go."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
    page.mouse.move(*end, steps=3)
    page.mouse.up()


def test_keys_work_without_a_click(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server)
    page.keyboard.press("w", delay=300)
    assert span(page) < trace.duration_ps
    page.keyboard.press("0")
    page.wait_for_function("!location.hash.includes('start_ps')")
    for key, tool in (("1", "select"), ("3", "zoom"), ("4", "measure"), ("2", "pan")):
        page.keyboard.press(key)
        expect(stage_of(frame)).to_have_attribute("data-tool", tool)
        expect(frame.get_by_role("radio", name=tool, exact=False)).to_have_attribute("aria-checked", "true")
    page.keyboard.press("/")
    expect(frame.get_by_role("combobox", name="Find events")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    panel = frame.get_by_role("complementary", name="Help")
    panel.get_by_role("tab", name="Keys").click()
    expect(panel).to_contain_text("previous match")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_wheel_pinch_and_touchpad(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, start_ps="20000000000", end_ps="40000000000")
    page.mouse.move(*middle(frame))
    page.mouse.wheel(0, -120)
    zoomed = span(page)
    assert zoomed < 20e9
    page.wait_for_timeout(400)
    page.mouse.wheel(37, 0)  # two fingers: small and uneven
    page.wait_for_timeout(700)
    assert span(page) == pytest.approx(zoomed, rel=1e-6)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -11)
    page.keyboard.up("Control")
    assert span(page) < zoomed
    page.wait_for_timeout(400)
    scroller = frame.locator(".tv-scroller")
    page.set_viewport_size({"width": 1280, "height": 420})
    page.mouse.move(*middle(frame))
    page.wait_for_timeout(300)
    page.mouse.wheel(0, 41)
    page.wait_for_timeout(300)
    assert scroller.evaluate("(element) => element.scrollTop") > 0


def test_drags_of_the_tools(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server, start_ps="20000000000", end_ps="40000000000")
    x, y = middle(frame)
    width = stage_of(frame).bounding_box()["width"]
    drag(page, (x, y), (x - 100, y))
    span(page)
    start = float(state_of(page)["start_ps"])
    assert start == pytest.approx(20e9 + 100 / width * 20e9, rel=0.01)
    page.keyboard.down("Shift")
    drag(page, (x - 150, y), (x + 150, y))
    page.keyboard.up("Shift")
    first, last = (int(part) for part in param(page, "mark").split("-"))
    assert last - first == pytest.approx(300 / width * 20e9, rel=0.1)
    expect(frame.get_by_role("tab")).to_contain_text("Interval")
    begin, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    inside = (begin < last) & (end > first) | (trace.events["duration_ps"] == 0) & (begin >= first) & (
        begin < last
    )
    expect(frame.locator(".tv-totals > p")).to_contain_text(f"{int(inside.sum()):,} events")
    page.keyboard.press("f")
    assert span(page) == pytest.approx((last - first) * 1.1, rel=0.01)
    page.keyboard.press("Escape")
    expect(frame.locator(".tv-drawer")).to_have_count(0)
    page.keyboard.press("3")
    before = span(page)
    drag(page, (x - 100, y), (x + 100, y))
    assert span(page) == pytest.approx(before * 200 / width, rel=0.02)
    page.keyboard.press("1")
    drag(page, (x - 100, y), (x + 100, y + 12))
    assert re.fullmatch(r"\d+-\d+@[\d.]+(:\d+-\d+)?", param(page, "mark"))


def test_an_event_shows_the_traces_own_numbers(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    event = names.index("IteratorGetNextOp::DoCompute")
    frame = open_viewer(page, server, event=str(event))
    details = frame.get_by_role("complementary", name="Selected event")
    same = np.array([name == names[event] for name in names])
    expect(details).to_contain_text(f"All {int(same.sum()):,} events of this name")
    exact = f"{int(trace.events['duration_ps'][event]):,} ps"
    expect(details.locator(f'dd[title="{exact}"]').first).to_be_visible()
    total = f"{int(trace.events['duration_ps'][same].sum()):,} ps"
    expect(details.locator(f'dd[title="{total}"]').first).to_be_visible()
    page.keyboard.press("m")
    start, end = (int(part) for part in param(page, "mark").split("-"))
    assert start == int(trace.events["start_ps"][event])
    assert end - start == int(trace.events["duration_ps"][event])
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    assert span(page) == pytest.approx(1.5 * (end - start), rel=0.01)


def test_arrows_walk_every_event_of_a_row(page: Page, server: Server, trace: Trace) -> None:
    line = int(np.argmax(trace.lines["n_events"]))
    first = int(trace.line_offsets[line])
    last = int(trace.line_offsets[line + 1])
    end = trace.events["start_ps"] + trace.events["duration_ps"]
    # The outermost events of the line: each begins after all before it have ended.
    outer = [first]
    for event in range(first + 1, last):
        if trace.events["start_ps"][event] >= end[outer[-1]]:
            outer.append(event)
        if len(outer) == 5:
            break
    open_viewer(page, server, event=str(outer[0]))
    for event in outer[1:]:
        page.keyboard.press("ArrowRight")
        expect_state(page, event=str(event))
    page.keyboard.press("ArrowLeft")
    expect_state(page, event=str(outer[-2]))


def test_search_counts_all_and_walks(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    matches = [event for event, name in enumerate(names) if "map" in name.lower()]
    text = "MAP"
    frame = open_viewer(page, server)
    page.keyboard.press("/")
    expect(frame.get_by_role("combobox", name="Find events")).to_be_focused()
    page.keyboard.type(text)
    status = frame.locator(".tv-status")
    expect(status).to_have_text(f"{len(matches):,}")
    page.keyboard.press("Enter")
    expect(status).to_have_text(f"1 of {len(matches):,}")
    by_time = sorted(matches, key=lambda event: (int(trace.events["start_ps"][event]), event))
    expect_state(page, event=str(by_time[0]), q=text)
    page.keyboard.press("Enter")
    expect_state(page, event=str(by_time[1]))
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    expect_state(page, event=str(by_time[-1]))
    status.click()
    expect(frame.locator(".tv-results-bar b")).to_contain_text(f"{len(matches):,} events · ")
    expect(frame.get_by_role("grid", name="Slices")).to_be_visible()
    # `/` focuses the search for events: the tables of the drawer do not show the key
    of_tables = frame.locator(".table-tools").get_by_role("searchbox")
    assert {field.get_attribute("placeholder") for field in of_tables.all()} == {"Search"}


def test_no_letter_is_lost_on_a_slow_machine(page: Page, server: Server) -> None:
    """Typed text goes into the URL and comes back from there late: that must not undo later typing."""
    frame = open_viewer(page, server)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 12})
    page.keyboard.press("/")
    box = frame.get_by_role("combobox", name="Find events")
    expect(box).to_be_focused()
    page.keyboard.type("ParallelMapV2", delay=60)
    expect_state(page, q="ParallelMapV2")
    expect(box).to_have_value("ParallelMapV2")


def test_tracks_hide_pin_filter_and_come_back(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    python = frame.get_by_role("button", name="python", exact=True)
    python.hover()
    frame.get_by_role("button", name="Pin python").first.click()
    pinned = frame.get_by_role("group", name="Pinned tracks")
    expect(pinned).to_contain_text("python")
    track = param(page, "pin")
    frame.get_by_role("button", name="Hide python").first.click()
    expect(pinned).to_have_count(0)
    expect_state(page, hide=track)
    frame.get_by_role("button", name="Tracks", exact=True).click()
    frame.get_by_role("searchbox", name="Only tracks named").fill("no such track")
    expect(frame.locator(".tv-none")).to_contain_text("No track has")
    frame.get_by_role("button", name="Reset").click()
    page.wait_for_function("!location.hash.includes('.hide=')")
    frame.get_by_role("combobox", name="Rows of each track").select_option("1")
    expect_state(page, depths="1")
    page.reload()
    expect_tool(page, TITLE)
    assert state_of(page)["depths"] == "1"


def test_the_minimap_moves_the_window(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server, start_ps="20000000000", end_ps="40000000000")
    box = frame.locator(".tv-minimap canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + 10)
    page.wait_for_function("!location.hash.includes('start_ps=20000000000&')")
    length = span(page)
    assert length == pytest.approx(20e9, rel=1e-3)
    middle_ps = float(state_of(page)["start_ps"]) + length / 2
    assert middle_ps == pytest.approx(0.75 * trace.duration_ps, rel=0.01)


def test_the_view_is_saved_as_a_picture(page: Page, server: Server, tmp_path: Path) -> None:
    frame = open_viewer(page, server)
    frame.get_by_role("button", name="Save the view").click()
    with page.expect_download() as picture:
        frame.get_by_role("menuitem", name="This view as PNG").click()
    picture.value.save_as(tmp_path / "view.png")
    assert (tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")


def test_the_run_is_saved_for_perfetto(page: Page, server: Server, tmp_path: Path, trace: Trace) -> None:
    frame = open_viewer(page, server)
    frame.get_by_role("button", name="Save the view").click()
    frame.get_by_role("menuitem", name=re.compile("^Open in Perfetto")).click()
    expect(frame.get_by_role("dialog")).to_contain_text("This page and its server send the file nowhere")
    with page.expect_download() as saved:
        frame.get_by_role("button", name="Save the whole run").click()
    saved.value.save_as(tmp_path / "trace")
    raw = (tmp_path / "trace").read_bytes()
    export = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    assert sum(event["ph"] in "Xbi" for event in export["traceEvents"]) == trace.n_events


def test_the_window_is_saved_as_a_chrome_trace(
    page: Page, server: Server, tmp_path: Path, trace: Trace
) -> None:
    frame = open_viewer(page, server, start_ps="20000000000", end_ps="40000000000")
    frame.get_by_role("button", name="Save the view").click()
    with page.expect_download() as saved:
        frame.get_by_role("menuitem", name="This window as Chrome trace JSON").click()
    assert saved.value.suggested_filename.endswith("_window.trace.json.gz")
    saved.value.save_as(tmp_path / "trace.gz")
    export = json.loads(gzip.decompress((tmp_path / "trace.gz").read_bytes()))
    start = trace.events["start_ps"]
    inside = (start < 40e9) & (start + np.maximum(trace.events["duration_ps"], 1) > 20e9)
    assert sum(event["ph"] in "Xbi" for event in export["traceEvents"]) == int(inside.sum()) > 0


@pytest.mark.parametrize("renderer", ["webgl", "canvas2d"])
def test_both_renderers_draw(page: Page, server: Server, renderer: str) -> None:
    frame = open_viewer(page, server, renderer=renderer)
    if stage_of(frame).get_attribute("data-renderer") != renderer:
        pytest.skip("this Chromium has no WebGL2")
    page.wait_for_timeout(500)
    assert len(stage_of(frame).screenshot()) > 8000
