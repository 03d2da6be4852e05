"""Requests of the trace viewer on a slow server: before the list of tools, ahead of the user, never in vain,
never blank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.session import Session
from tests.browser.conftest import Server
from tests.browser.test_trace_viewer_hands import TITLE, middle, span, stage_of
from tests.browser.walking import KERAS, choose_run, expect_tool, frame_of, link, run_of, state_of
from tests.golden_files import demo_runs

JAX = run_of("jax_train")

# In our own frame: every request is recorded, and delayed as long as TensorBoard's window says. Without a
# worker the page sends its requests itself, where they can be recorded.
SLOW_SERVER = """
(() => {
  if (window === window.top) return;
  delete window.Worker;
  const asked = (window.top.asked ??= []);
  const fetchNow = window.fetch.bind(window);
  const kindOf = (url) => {
    const last = new URL(url, location.href).pathname.split('/').at(-1);
    return last === 'trace_viewer' ? 'window' : last;
  };
  window.fetch = async (url, options = {}) => {
    const one = { url: String(url), kind: kindOf(url), atMs: performance.now(), isOver: false, isGivenUp: false };
    asked.push(one);
    options.signal?.addEventListener('abort', () => { one.isGivenUp = !one.isOver; });
    const delayMs = window.top.delayMs?.[one.kind] ?? 0;
    try {
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      return await fetchNow(url, options);
    } finally {
      one.isOver = true;
    }
  };
})()
"""


@pytest.fixture
def slow(page: Page) -> Callable[..., None]:
    """Sets how long each kind of answer takes from now on."""
    page.add_init_script(SLOW_SERVER)

    def set_delays(**delay_ms: int) -> None:
        page.evaluate("(delayMs) => { window.delayMs = delayMs; }", delay_ms)

    return set_delays


def asked(page: Page, kind: str) -> list[dict[str, Any]]:
    """The questions of one kind so far, with their parameters."""
    requests = page.evaluate("(kind) => (window.asked ?? []).filter((one) => one.kind === kind)", kind)
    return [one | {"params": dict(parse_qsl(urlsplit(one["url"]).query))} for one in requests]


def test_the_first_picture_does_not_wait_for_the_list_of_tools(
    page: Page, server: Server, slow: Callable[..., None]
) -> None:
    page.goto(link(server.url, run=JAX, tool="trace_viewer"))
    expect(frame_of(page).locator(".tv-whole")).to_contain_text("35,477 events")
    slow(tools=1500)
    before = len(asked(page, "window"))
    choose_run(page, KERAS)
    page.wait_for_timeout(600)
    ahead = [one for one in asked(page, "window")[before:] if one["params"]["run"] == KERAS]
    assert len(ahead) == 1, "the whole trace is requested while the list of tools is still to come"
    assert ahead[0]["isOver"]
    expect(frame_of(page).locator(".tv-whole")).to_contain_text("36,436 events")
    whole = [
        one
        for one in asked(page, "window")[before:]
        if "start_ps" not in one["params"] and one["params"]["run"] == KERAS
    ]
    assert len(whole) == 1, "the prefetched answer is drawn: no second request"
    assert int(whole[0]["params"]["width_px"]) == pytest.approx(
        stage_of(frame_of(page)).bounding_box()["width"], abs=1
    )


def test_a_link_requests_tools_and_picture_in_parallel(
    page: Page, server: Server, slow: Callable[..., None]
) -> None:
    page.add_init_script("window.delayMs = { tools: 1200 };")
    page.goto(link(server.url, run=KERAS, tool="trace_viewer"))
    page.wait_for_function("() => window.asked?.some(({ kind, isOver }) => kind === 'window' && isOver)")
    tools = asked(page, "tools")
    assert tools
    assert not tools[0]["isOver"]
    expect(frame_of(page).locator(".tv-whole")).to_contain_text("36,436 events")
    assert len([one for one in asked(page, "window") if "start_ps" not in one["params"]]) == 1


# In each frame: the share of the row's pixels that have a color, in the visible canvas.
LOOK = """
([top, height]) => {
  const frame = document.querySelector('iframe').contentWindow;
  const looks = (frame.looks = []);
  const small = frame.document.createElement('canvas');
  const look = () => {
    const canvas = frame.document.querySelector('.tv-stage canvas');
    small.width = canvas.width; small.height = 1;
    const context = small.getContext('2d', { willReadFrequently: true });
    const ratio = canvas.height / canvas.clientHeight;
    context.drawImage(canvas, 0, Math.round((top + height / 2) * ratio), canvas.width, 1, 0, 0, canvas.width, 1);
    const { data } = context.getImageData(0, 0, canvas.width, 1);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [low, high] = [Math.min(data[i], data[i + 1], data[i + 2]), Math.max(data[i], data[i + 1], data[i + 2])];
      if (high - low > 25) n++;
    }
    looks.push(n / canvas.width);
    if (frame.looks === looks) frame.requestAnimationFrame(look);
  };
  frame.requestAnimationFrame(look);
}
"""


def longest_outermost() -> tuple[str, int, int]:
    """Line, start and end of the longest event of the JAX run on the top row of its line."""
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    trace = session.trace(session.hosts[0])
    event = int(np.argmax(trace.events["duration_ps"]))
    line = int(np.searchsorted(trace.line_offsets, event, "right")) - 1
    start = int(trace.events["start_ps"][event])
    before = slice(int(trace.line_offsets[line]), event)
    assert not (trace.events["start_ps"][before] + trace.events["duration_ps"][before] > start).any()
    return (
        trace.strings.get(int(trace.lines["name"][line])),
        start,
        start + int(trace.events["duration_ps"][event]),
    )


def test_no_frame_is_blank_where_events_are(page: Page, server: Server, slow: Callable[..., None]) -> None:
    name, start, end = longest_outermost()
    length = end - start
    page.goto(
        link(
            server.url, run=JAX, tool="trace_viewer", renderer="canvas2d", only=name,
            start_ps=str(start + length // 4), end_ps=str(end - length // 4),
        )
    )  # fmt: skip
    expect_tool(page, TITLE)
    frame = frame_of(page)
    expect(frame.locator(".tv-section .tv-track")).to_have_count(1)
    slow(window=700)
    row, stage = frame.locator(".tv-section .tv-track").bounding_box(), stage_of(frame).bounding_box()
    page.mouse.move(*middle(frame))
    page.mouse.move(stage["x"] + stage["width"] / 2, stage["y"] + 100)
    page.wait_for_timeout(300)
    page.evaluate(LOOK, [row["y"] - stage["y"] + 3, 17])
    # Zooms and pans faster than answers come, within the event: it covers every pixel of its row.
    for _ in range(12):
        page.mouse.wheel(0, -240)
        page.wait_for_timeout(40)
    for key in ("d", "a", "w", "s"):
        page.keyboard.press(key, delay=260)
    page.wait_for_timeout(1600)
    looks = page.evaluate(
        "() => { const f = document.querySelector('iframe').contentWindow; const l = f.looks; f.looks = "
        "null; return l; }"
    )
    assert start < float(state_of(page)["start_ps"])
    assert float(state_of(page)["end_ps"]) < end
    assert len(looks) > 40
    assert len(asked(page, "window")) > 2, "the script must outrun the answers"
    # The picture is that of a full row in every single frame; a label's letters take a little of it.
    assert min(looks) > 0.8, f"{sum(share < 0.8 for share in looks)} of {len(looks)} frames show a gap"


def test_requests_that_are_no_longer_needed_are_cancelled(
    page: Page, server: Server, slow: Callable[..., None]
) -> None:
    page.goto(
        link(server.url, run=KERAS, tool="trace_viewer", start_ps="200000000000", end_ps="220000000000")
    )
    expect_tool(page, TITLE)
    page.wait_for_timeout(800)
    slow(window=1500)
    first = len(asked(page, "window"))
    for start in (40, 420, 90):
        box = frame_of(page).locator(".tv-minimap canvas").bounding_box()
        page.mouse.click(box["x"] + box["width"] * start / 600, box["y"] + 18)
        page.wait_for_timeout(250)
    page.wait_for_timeout(300)
    later = asked(page, "window")[first:]
    assert len(later) >= 3
    assert all(one["isGivenUp"] for one in later[:-1]), "only the last place is waited for"
    assert not later[-1]["isGivenUp"]
    start_ps, end_ps = (float(state_of(page)[name]) for name in ("start_ps", "end_ps"))
    assert float(later[-1]["params"]["start_ps"]) <= start_ps
    assert float(later[-1]["params"]["end_ps"]) >= end_ps


def test_neighbours_are_there_before_they_are_looked_at(
    page: Page, server: Server, slow: Callable[..., None]
) -> None:
    page.goto(
        link(
            server.url,
            run=KERAS,
            tool="trace_viewer",
            renderer="canvas2d",
            start_ps="300000000000",
            end_ps="320000000000",
        )
    )
    expect_tool(page, TITLE)
    frame = frame_of(page)
    page.mouse.move(2, 2)
    page.wait_for_timeout(2500)
    ahead = [
        (float(one["params"]["start_ps"]), float(one["params"]["end_ps"]))
        for one in asked(page, "window")
        if "start_ps" in one["params"]
    ]
    assert any(start <= 340e9 and end >= 355e9 for start, end in ahead), "what comes after the next window"
    assert any(start <= 265e9 and end >= 280e9 for start, end in ahead), "what comes before the last one"
    assert any(start >= 295e9 and end <= 325e9 for start, end in ahead), "closer"
    slow(window=60_000)
    page.keyboard.press("d", delay=700)
    assert span(page) == pytest.approx(20e9, rel=1e-6)
    assert 310e9 < float(state_of(page)["start_ps"]) < 340e9
    expect(frame.locator(".tv-busy")).to_have_count(0)
    # Farther than anybody could have fetched ahead: now it waits.
    box = frame.locator(".tv-minimap canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 18)
    expect(frame.locator(".tv-busy")).to_have_count(1)
