"""More input of the trace viewer in a real browser: order of tracks, nesting, flows, touch, boxes, links, an
empty window.
"""

from __future__ import annotations

import json
import re
import urllib.request
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.trace.trace import Trace
from tests.browser.conftest import Server
from tests.browser.test_trace_viewer_hands import (
    TITLE,
    drag,
    middle,
    names_of,
    open_viewer,
    param,
    span,
    stage_of,
    trace,
)
from tests.browser.walking import KERAS, expect_state, expect_tool, frame_of, link, state_of

__all__ = ["trace"]  # the fixture


def track_names(frame: Any) -> list[str]:
    """The names in the column, in order."""
    titles = frame.locator(".tv-section .tv-track .tv-name").evaluate_all(
        "(names) => names.map((name) => name.dataset.tip)"
    )
    return [title.partition(" · ")[0] for title in titles]


def asked(server: Server, question: str = "", **params: str) -> dict[str, Any]:
    """The server's own answer to a question of the page, or to the page's own."""
    path = f"trace_viewer/{question}".rstrip("/")
    query = "&".join(
        f"{name}={quote(value, safe='')}"
        for name, value in {"run": KERAS, "format": "json", **params}.items()
    )
    with urllib.request.urlopen(
        f"{server.url}/data/plugin/profile/data/{path}?{query}", timeout=30
    ) as answer:
        payload: dict[str, Any] = json.load(answer)
    return payload


def column(answer: dict[str, Any], table: str, name: str) -> list[Any]:
    """A column of a table of such an answer."""
    match = next(each for each in answer["tables"][table]["columns"] if each["name"] == name)
    if "codes" in match:
        return [None if code < 0 else match["strings"][code] for code in match["codes"]]
    return list(match["values"])


def nested(trace: Trace) -> tuple[int, int, int]:
    """An event of the trace that contains others of its line, its first child, and that one's next sibling or
    itself.
    """
    begin, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    for line in range(len(trace.line_offsets) - 1):
        first, last = int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])
        for event in range(first, last - 2):
            child = event + 1
            if (
                begin[event] < begin[child]
                and end[child] < end[event]
                and trace.events["duration_ps"][child] > 10_000_000
            ):
                return event, child, line
    raise AssertionError("no event of the trace lies within another")


def test_tracks_are_moved_by_dragging_and_by_keys(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    before = track_names(frame)
    first, third = frame.locator(".tv-track").nth(0), frame.locator(".tv-track").nth(2)
    grip, target = first.locator(".tv-name").bounding_box(), third.bounding_box()
    drag(page, (grip["x"] + 30, grip["y"] + 8), (grip["x"] + 30, target["y"] + target["height"] - 4))
    assert re.fullmatch(r"\d+:\d+", param(page, "move"))
    moved = [before[1], before[2], before[0], *before[3:]]
    expect(frame.locator(".tv-section .tv-track .tv-name").nth(2)).to_contain_text(before[0])
    assert track_names(frame) == moved
    frame.locator(".tv-section .tv-track .tv-name").nth(2).focus()
    page.keyboard.press("Alt+ArrowUp")
    expect(frame.locator(".tv-section .tv-track .tv-name").nth(1)).to_contain_text(before[0])
    expect(frame.locator(".tv-section .tv-track .tv-name").nth(1)).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    expect(frame.locator(".tv-section .tv-track .tv-name").nth(2)).to_contain_text(before[0])
    page.wait_for_timeout(500)
    page.reload()
    expect_tool(page, TITLE)
    assert track_names(frame) == moved


def test_up_and_down_go_to_parent_and_child(page: Page, server: Server, trace: Trace) -> None:
    parent, child, _ = nested(trace)
    frame = open_viewer(page, server, event=str(parent))
    expect(frame.get_by_role("complementary", name="Selected event")).to_contain_text(names_of(trace)[parent])
    page.keyboard.press("ArrowDown")
    expect_state(page, event=str(child))
    page.keyboard.press("ArrowUp")
    expect_state(page, event=str(parent))


def test_flow_neighbours_lead_there_and_back(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    for event in np.flatnonzero([name == "IteratorGetNextOp::DoCompute" for name in names])[:20].tolist():
        flows = asked(server, "event", event=str(event))
        if flows["tables"].get("flows", {}).get("n_rows"):
            break
    else:
        pytest.fail("no such event has a flow")
    other, direction = int(column(flows, "flows", "event")[0]), column(flows, "flows", "direction")[0]
    frame = open_viewer(page, server, event=str(event))
    links = frame.locator(".tv-flow button")
    expect(links.first).to_have_text(f"{'←' if direction == 'in' else '→'} {names[other]}")
    links.first.click()
    expect_state(page, event=str(other))
    back = (
        frame.locator(".tv-flow button")
        .filter(has_text="→" if direction == "in" else "←")
        .filter(has_text=names[event])
    )
    expect(back.first).to_be_visible()


def test_n_walks_the_matches(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    matches = [event for event, name in enumerate(names) if "shuffle" in name.lower()]
    by_time = sorted(matches, key=lambda event: (int(trace.events["start_ps"][event]), event))
    open_viewer(page, server, q="shuffle")
    expect(frame_of(page).locator(".tv-status")).to_have_text(f"{len(matches):,}")
    page.keyboard.press("n")
    expect_state(page, event=str(by_time[0]))
    page.keyboard.press("n")
    expect_state(page, event=str(by_time[1]))
    page.keyboard.press("Shift+N")
    expect_state(page, event=str(by_time[0]))


def test_two_fingers_zoom_and_one_pans(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, start_ps="200000000000", end_ps="600000000000")
    x, y = middle(frame)
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, *points: tuple[float, float]) -> None:
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": px, "y": py, "id": i} for i, (px, py) in enumerate(points)]},
        )

    fingers("touchStart", (x - 50, y), (x + 50, y))
    for reach in (60, 80, 100):
        fingers("touchMove", (x - reach, y), (x + reach, y))
    fingers("touchEnd")
    zoomed = span(page)
    assert zoomed == pytest.approx(200e9, rel=0.05)
    start = float(state_of(page)["start_ps"])
    width = stage_of(frame).bounding_box()["width"]
    fingers("touchStart", (x, y))
    for by in (20, 60, 100):
        fingers("touchMove", (x - by, y))
    fingers("touchEnd")
    assert span(page) == pytest.approx(zoomed, rel=1e-6)
    assert float(state_of(page)["start_ps"]) - start == pytest.approx(100 / width * zoomed, rel=0.25)


def test_a_box_adds_up_its_tracks(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server, start_ps="200000000000", end_ps="600000000000")
    page.keyboard.press("1")
    rows = frame.locator(".tv-section .tv-track")
    listed = asked(server, width_px="100")
    derived = column(listed, "tracks", "is_derived")
    place = next(i for i in range(1, len(derived)) if not (derived[i] or derived[i + 1]))
    second, third = rows.nth(place).bounding_box(), rows.nth(place + 1).bounding_box()
    x, _ = middle(frame)
    drag(page, (x - 200, second["y"] + 4), (x + 100, third["y"] + third["height"] - 6))
    mark = re.fullmatch(r"(\d+)-(\d+)@([\d.]+)", param(page, "mark"))
    assert mark
    first, last, tracks = int(mark[1]), int(mark[2]), mark[3].split(".")
    assert len(tracks) == 2
    named = dict(zip(column(listed, "tracks", "track"), column(listed, "tracks", "n_events"), strict=True))
    sizes = sorted(int(named[int(each)]) for each in tracks)
    # Tracks are the file's lines; these two are identified by their numbers of events.
    lines = [
        line for line in range(len(trace.line_offsets) - 1) if int(np.diff(trace.line_offsets)[line]) in sizes
    ]
    assert sorted(int(np.diff(trace.line_offsets)[line]) for line in lines) == sizes
    inside = 0
    for line in lines:
        of_line = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        begin, length = trace.events["start_ps"][of_line], trace.events["duration_ps"][of_line]
        inside += int(
            (
                (begin < last) & (begin + length > first) | (length == 0) & (begin >= first) & (begin < last)
            ).sum()
        )
    expect(frame.locator(".tv-totals > p")).to_contain_text(f"{inside:,} events in 2 tracks")


def test_the_minimaps_handles_resize_the_window(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server, start_ps="400000000000", end_ps="600000000000")
    box = frame.locator(".tv-minimap canvas").bounding_box()
    position = {
        name: box["x"] + box["width"] * float(state_of(page)[name]) / trace.duration_ps
        for name in ("start_ps", "end_ps")
    }
    middle_y = box["y"] + box["height"] / 2
    drag(page, (position["end_ps"], middle_y), (position["end_ps"] + box["width"] / 10, middle_y))
    assert span(page) == pytest.approx(200e9 + trace.duration_ps / 10, rel=0.03)
    assert float(state_of(page)["start_ps"]) == pytest.approx(400e9, rel=1e-3)
    drag(page, (position["start_ps"], middle_y), (position["start_ps"] - box["width"] / 10, middle_y))
    assert span(page) == pytest.approx(200e9 + trace.duration_ps / 5, rel=0.03)


def test_sections_and_tracks_fold(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    n_tracks = len(track_names(frame))
    section = frame.locator(".tv-section-head .tv-name")
    section.click()
    expect(section).to_have_attribute("aria-expanded", "false")
    expect(frame.locator(".tv-section .tv-track")).to_have_count(0)
    expect_state(page, fold=param(page, "fold"))
    section.click()
    expect(frame.locator(".tv-section .tv-track")).to_have_count(n_tracks)
    python = frame.locator(".tv-section .tv-track").first
    tall = python.bounding_box()["height"]
    python.locator(".tv-name").click()
    page.wait_for_function("location.hash.includes('.fold=')")
    assert python.bounding_box()["height"] < tall / 3
    page.keyboard.press("Enter")
    page.wait_for_function("!location.hash.includes('.fold=')")
    frame.get_by_role("button", name="Tracks", exact=True).click()
    frame.get_by_role("combobox", name="Rows of each track").select_option("2")
    expect_state(page, depths="2")
    assert python.bounding_box()["height"] == pytest.approx(2 * 18 + 6, abs=1)


def pixels_of(png: bytes) -> tuple[int, int, set[bytes]]:
    """Width, height and the different lines of a picture."""
    width, height = (int.from_bytes(png[offset : offset + 4], "big") for offset in (16, 20))
    offset, data = 8, b""
    while offset < len(png):
        size, kind = int.from_bytes(png[offset : offset + 4], "big"), png[offset + 4 : offset + 8]
        data += png[offset + 8 : offset + 8 + size] if kind == b"IDAT" else b""
        offset += 12 + size
    raw = zlib.decompress(data)
    stride = len(raw) // height
    return width, height, {raw[row * stride : (row + 1) * stride] for row in range(height)}


def test_the_picture_shows_the_screen(page: Page, server: Server, tmp_path: Path) -> None:
    frame = open_viewer(page, server)
    frame.get_by_role("button", name="Save the view").click()
    with page.expect_download() as saved:
        frame.get_by_role("menuitem", name="This view as PNG").click()
    saved.value.save_as(tmp_path / "view.png")
    width, height, lines = pixels_of((tmp_path / "view.png").read_bytes())
    stage = stage_of(frame).bounding_box()
    assert width > stage["width"]
    assert height >= stage["height"]
    assert len(lines) > 100  # rows of boxes, names and a ruler: an empty picture has a handful


def test_a_link_with_only_an_event_goes_there(page: Page, server: Server, trace: Trace) -> None:
    event, child, _ = nested(trace)
    frame = open_viewer(page, server, event=str(child))
    start, length = int(trace.events["start_ps"][child]), int(trace.events["duration_ps"][child])
    assert span(page) == pytest.approx(1.5 * length, rel=0.01)
    assert float(state_of(page)["start_ps"]) == pytest.approx(max(0, start - 0.25 * length), abs=2)
    expect(frame.get_by_role("complementary", name="Selected event")).to_contain_text(names_of(trace)[child])
    page.reload()
    expect_tool(page, TITLE)
    expect_state(page, event=str(child))
    assert span(page) == pytest.approx(1.5 * length, rel=0.01)
    assert event != child


@pytest.mark.tensorboard
def test_back_returns_to_the_tool_before_and_forward_to_the_view(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    expect_tool(page, "Overview")
    frame_of(page).get_by_role("navigation", name="Tools").get_by_role(
        "link", name=re.compile("^Trace viewer")
    ).click()
    expect_tool(page, TITLE)
    stage_of(frame_of(page)).focus()
    page.keyboard.press("w", delay=400)
    length = span(page)
    page.go_back()
    expect_tool(page, "Overview")
    page.go_forward()
    expect_tool(page, TITLE)
    assert span(page) == pytest.approx(length, rel=1e-6)


def test_an_empty_window_says_where_events_are(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server)
    python = next(
        i
        for i in range(len(trace.line_offsets) - 1)
        if trace.strings.get(int(trace.lines["name"][i])) == "python"
    )
    of_line = slice(int(trace.line_offsets[python]), int(trace.line_offsets[python + 1]))
    begins = trace.events["start_ps"][of_line].astype(np.int64)
    stops = begins + trace.events["duration_ps"][of_line].astype(np.int64)
    ends = np.maximum.accumulate(stops)
    gaps = begins[1:] - ends[:-1]
    gap = int(np.argmax(gaps))
    assert gaps[gap] > 100_000
    start, end = int(ends[gap]) + int(gaps[gap]) // 4, int(begins[gap + 1]) - int(gaps[gap]) // 2
    page.goto("about:blank")
    frame = open_viewer(page, server, only="python", start_ps=str(start), end_ps=str(end))
    hint = frame.locator(".tv-elsewhere button")
    expect(hint).to_contain_text(
        re.compile("Nothing here; the nearest events are (.* (earlier|later)|close by)")
    )
    hint.click()
    expect(frame.locator(".tv-elsewhere")).to_have_count(0)
    page.wait_for_timeout(600)
    moved = float(state_of(page)["start_ps"]), float(state_of(page)["end_ps"])
    assert moved[1] - moved[0] == pytest.approx(end - start, rel=0.01)
    assert bool(((begins <= moved[1]) & (stops >= moved[0])).any())


def test_the_keyboard_reaches_everything_in_order(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    frame.get_by_role("radio", name="Select").focus()
    reached: list[str] = []
    for _ in range(24):
        reached.append(
            frame.locator(":focus").evaluate("(e) => e.getAttribute('aria-label') || e.textContent.trim()")
        )
        page.keyboard.press("Tab")
    labels = ["Select", "Find events", "Zoom out", "Tracks", "Save the view"]
    places = [next(i for i, name in enumerate(reached) if name.startswith(each)) for each in labels]
    assert places == sorted(places)
    assert any(name.startswith("Timeline") for name in reached)
    assert all(reached)


@pytest.mark.tensorboard
def test_back_undoes_leaps_and_nothing_else(page: Page, server: Server, trace: Trace) -> None:
    event, child, _ = nested(trace)
    frame = open_viewer(page, server, start_ps="200000000000", end_ps="600000000000")
    page.mouse.move(*middle(frame))
    page.mouse.wheel(0, -240)
    zoomed = span(page)
    entries = page.evaluate("history.length")
    start = float(state_of(page)["start_ps"])
    page.keyboard.press("0")
    page.wait_for_function("!location.hash.includes('start_ps')")
    assert page.evaluate("history.length") == entries + 1, (
        "zooming makes no entries, leaping to the whole trace one"
    )
    page.go_back()
    page.wait_for_function("location.hash.includes('start_ps')")
    assert span(page) == pytest.approx(zoomed, rel=1e-6)
    assert float(state_of(page)["start_ps"]) == start
    page.go_forward()
    expect(frame.locator(".tv-whole b")).to_have_text(re.compile("ms|s"))
    page.wait_for_function("!location.hash.includes('start_ps')")
    page.goto("about:blank")
    frame = open_viewer(page, server, event=str(child))
    page.wait_for_timeout(600)
    state = state_of(page)
    frame.locator(".tv-goto button").filter(has_text=names_of(trace)[event]).first.click()
    expect_state(page, event=str(event))
    page.wait_for_timeout(600)
    page.go_back()
    expect_state(page, event=str(child))
    page.wait_for_timeout(600)
    assert state_of(page) == state


def test_a_links_window_is_kept_if_its_event_is_elsewhere(page: Page, server: Server, trace: Trace) -> None:
    _, child, _ = nested(trace)
    assert (
        int(trace.events["start_ps"][child]) > 2_000_000_000
        or int(trace.events["start_ps"][child]) < 1_000_000_000
    )
    frame = open_viewer(page, server, event=str(child), start_ps="1000000000", end_ps="2000000000")
    expect(frame.get_by_role("complementary", name="Selected event")).to_contain_text(names_of(trace)[child])
    page.wait_for_timeout(600)
    assert (state_of(page)["start_ps"], state_of(page)["end_ps"]) == ("1000000000", "2000000000")


def test_the_tooltip_follows_moving_boxes_under_a_resting_pointer(
    page: Page, server: Server, trace: Trace
) -> None:
    """Keys move another event under it."""
    python = next(
        i
        for i in range(len(trace.line_offsets) - 1)
        if trace.strings.get(int(trace.lines["name"][i])) == "python"
    )
    of_line = slice(int(trace.line_offsets[python]), int(trace.line_offsets[python + 1]))
    begin, names = trace.events["start_ps"][of_line].astype(np.int64), names_of(trace)[of_line]
    end = begin + trace.events["duration_ps"][of_line].astype(np.int64)
    is_top = np.append(True, begin[1:] >= np.maximum.accumulate(end)[:-1])

    def named_at(ps: float) -> str | None:
        events = np.flatnonzero(is_top & (begin <= ps) & (end > ps))
        return names[int(events[0])] if len(events) else None

    longest = int(np.argmax(np.where(is_top, end - begin, 0)))
    length = int(end[longest] - begin[longest])
    start = int(begin[longest]) - length
    frame = open_viewer(page, server, only="python", start_ps=str(start), end_ps=str(start + 4 * length))
    stage = stage_of(frame).bounding_box()
    row = frame.locator(".tv-section .tv-track").first.bounding_box()
    page.mouse.move(stage["x"] + stage["width"] * 3 / 8, row["y"] + 10)
    tip = frame.locator(".tv-tip b")
    expect(tip).to_contain_text(names[longest])
    shown_names = {tip.inner_text()}
    for _ in range(6):
        page.keyboard.press("a" if start > trace.duration_ps / 2 else "d")
        span(page)
        view = float(state_of(page)["start_ps"]), float(state_of(page)["end_ps"])
        expected_name = named_at(view[0] + 3 / 8 * (view[1] - view[0]))
        expect(tip).to_contain_text([expected_name] if expected_name else [])
        shown_names |= set(tip.all_inner_texts())
    assert len(shown_names) > 1
