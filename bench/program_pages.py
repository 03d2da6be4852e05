"""Measure the pages of compiled programs in a real Chromium, on a program of 200,000 instructions: opening
them and working with them.

python -m bench.program_pages [--page roofline_model] [--seconds 3] [--gpu]

Each page is opened by a click in the list of tools, its answer not yet known to the browser, but the file
read by the server. Told are the time from the click, and from the arrival of the answer, to all that the page
draws; the longest task of the main thread while loading; then for each thing that hands do there, the main
thread's work in each frame in which there was any, and the longest task. Tasks are DevTools', their processor
time, as in `bench.frames`. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.frames import CATEGORIES, CHROMIUM, PAGE_PX, frame_works, main_tasks, percentile
from bench.serving import served
from bench.traces import program_run

FRAME_MS, TASK_MS, CONTENT_MS = 16.0, 100.0, 1500.0
# Frames in which the page had nothing to do say nothing of those in which it had.
IDLE_MS = 1.0
TIMEOUT_MS = 30_000
HOME = "overview_page"
LETTER_MS = 90
GRID = '[role=grid][aria-label="Operations"] tbody tr[data-at]'
TABLE = '.table-scroll:has([role=grid][aria-label="Operations"])'

Hands = Callable[[Any, Any, float], None]


@dataclass(frozen=True)
class ToolPage:
    """A tool's page: the element that shows once it is complete, and the gestures on it, in order."""

    complete: tuple[str, ...]
    hands: tuple[tuple[str, Hands], ...]


def _box(frame: Any, selector: str) -> dict[str, float]:
    place = frame.locator(selector).first
    place.evaluate("element => element.scrollIntoView({ block: 'center' })")
    box: dict[str, float] = place.bounding_box()
    return box


def scrolled(selector: str) -> Hands:
    """The wheel turned over it, down and up again."""

    def hands(page: Any, frame: Any, seconds: float) -> None:
        box = _box(frame, selector)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + min(box["height"], 300) / 2)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            page.mouse.wheel(0, 120 if end - time.monotonic() > seconds * 0.4 else -120)
            page.wait_for_timeout(30)

    return hands


def pointed(selector: str, zooms: bool = False) -> Hands:
    """The pointer led over it in waves; `zooms`: with Ctrl held and the wheel turned in and out."""

    def hands(page: Any, frame: Any, seconds: float) -> None:
        box = _box(frame, selector)
        page.keyboard.down("Control") if zooms else None
        end, n_moves = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            n_moves += 1
            x, y = 0.5 - 0.42 * math.cos(n_moves / 40), 0.5 + 0.4 * math.sin(n_moves / 17)
            page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
            if zooms and n_moves % 5 == 0:
                page.mouse.wheel(0, -120 if end - time.monotonic() > seconds / 2 else 120)
            page.wait_for_timeout(10)
        page.keyboard.up("Control") if zooms else None

    return hands


def dragged(selector: str) -> Hands:
    """Taken hold of and moved to and fro."""

    def hands(page: Any, frame: Any, seconds: float) -> None:
        box = _box(frame, selector)
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.3, y)
        page.mouse.down()
        end, n_moves = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            n_moves += 1
            page.mouse.move(
                box["x"] + box["width"] * (0.5 - 0.4 * math.cos(n_moves / 40)),
                y + box["height"] * 0.2 * math.sin(n_moves / 20),
            )
            page.wait_for_timeout(10)
        page.mouse.up()

    return hands


def typed(label: str, text: str) -> Hands:
    """A text typed letter by letter, looked at, and taken back."""

    def hands(page: Any, frame: Any, _seconds: float) -> None:
        field = frame.get_by_label(label, exact=True)
        field.click()
        page.keyboard.type(text, delay=LETTER_MS)
        page.wait_for_timeout(500)
        for _ in text:
            page.keyboard.press("Backspace")
            page.wait_for_timeout(LETTER_MS)

    return hands


def clicked(*selectors: str, then_ms: int = 350) -> Hands:
    """One click after the other, each with its time."""

    def hands(page: Any, frame: Any, _seconds: float) -> None:
        for selector in selectors:
            frame.locator(selector).first.click()
            page.wait_for_timeout(then_ms)

    return hands


def chosen(label: str, *values: str) -> Hands:
    """One choice of a list after the other."""

    def hands(page: Any, frame: Any, _seconds: float) -> None:
        for value in values:
            frame.get_by_label(re.compile(f"^{label}")).first.select_option(value)
            page.wait_for_timeout(500)

    return hands


def walked(page: Any, frame: Any, _seconds: float) -> None:
    """From instruction to instruction by double click."""
    for _ in range(4):
        frame.locator(".graph-buttons [aria-label='All of the graph']").click()
        frame.locator("[data-node]").last.dblclick()
        page.wait_for_timeout(900)


def sorts(*titles: str) -> Hands:
    """Titles of the table of operations clicked."""
    return clicked(
        *(f'[role=grid][aria-label="Operations"] th button:text-is("{title}")' for title in titles)
    )


PAGES = {
    "op_profile": ToolPage(
        (".op-tree tbody tr",),
        (
            (
                "expand",
                clicked(*[".op-toggle[aria-expanded=true] >> nth=1", ".op-toggle[aria-expanded=false]"] * 2),
            ),
            ("slider", dragged("input[type=range]")),
            ("search", typed("Search in the op profile", "layer_1 add")),
            (
                "sort",
                clicked(
                    *(
                        f'.op-tree th button:has-text("{title}")'
                        for title in ("Name", "Occurrences", "Average", "Time")
                    )
                ),
            ),
            ("scroll", scrolled(".table-scroll")),
            ("flame", clicked('button:text-is("Flame")')),
            ("flame hover", pointed(".op-flame")),
            ("treemap", clicked('button:text-is("Treemap")')),
            ("treemap hover", pointed(".op-treemap")),
            ("treemap zoom", clicked(".op-tile.frame >> nth=2", ".op-path button")),
            ("groups", clicked('button:text-is("Category")', 'button:text-is("Framework")')),
        ),
    ),
    "hlo_stats": ToolPage(
        (".donuts svg, .donuts canvas", GRID),
        (
            ("scroll", scrolled(TABLE)),
            ("sort", sorts("Self time", "Operation", "Framework op", "Average self time")),
            ("search", typed("Search in Operations", "layer_17 add")),
            ("filters", clicked('button:text-is("Filters")')),
            ("filter", typed("Filter Operation", "fusion.1")),
            ("filter a number", typed("Filter Self time", "> 1.5 us")),
            ("hover donuts", pointed(".donuts")),
            ("card", clicked(f"{GRID} >> nth=3", f"{GRID} >> nth=5", then_ms=900)),
        ),
    ),
    "roofline_model": ToolPage(
        (".chart canvas", GRID),
        (
            ("hover points", pointed(".chart canvas")),
            ("scroll", scrolled(TABLE)),
            ("sort", sorts("Self time", "Operation", "FLOP rate")),
            ("search", typed("Search in Operations", "fusion.1")),
            ("category", chosen("Category", "add", "copy", "")),
            ("kinds", clicked('button:text-is("Program and steps")', 'button:text-is("All")')),
            ("card", clicked(f"{GRID} >> nth=3", f"{GRID} >> nth=5", then_ms=900)),
        ),
    ),
    "memory_viewer": ToolPage(
        (".mv-order canvas", "[role=grid] tbody tr[data-at]"),
        (
            ("hover strips", pointed(".mv-strip canvas")),
            ("hover timeline", pointed(".mv-order canvas >> nth=0")),
            ("hover map", pointed(".mv-order canvas >> nth=1")),
            ("zoom map", pointed(".mv-order canvas >> nth=1", zooms=True)),
            ("drag map", dragged(".mv-order canvas >> nth=1")),
            ("all steps", clicked('[aria-label="All steps"]', then_ms=900)),
            ("scroll", scrolled("main")),
        ),
    ),
    "graph_viewer": ToolPage(
        ("[data-node]", '[role=grid][aria-label="Hottest instructions"] tbody tr[data-at]'),
        (
            ("pan", dragged(".gv-frame-box")),
            ("zoom", pointed(".gv-frame-box", zooms=True)),
            ("walk", walked),
            ("hops", chosen("Hops", "8", "3")),
            ("find", typed("Find an instruction", "fusion.1")),
            ("text", clicked('button:text-is("Text")', then_ms=1500)),
            ("scroll the text", scrolled(".gv-text")),
        ),
    ),
}

# Notes the click on a tool, and looks in each frame whether all of the page is there; its ticking also makes
# each frame known.
WATCH = """
(complete) => {
  const frame = document.querySelector('iframe').contentWindow;
  const state = (frame.tpuprofOpened = { clickedMs: 0, completeMs: 0 });
  const look = () => {
    if (state.clickedMs && !state.completeMs) {
      const isThere = complete.every((one) => frame.document.querySelector(one));
      if (isThere && !frame.document.querySelector('.tool-page[aria-busy=true]')) state.completeMs = Date.now();
    }
    frame.requestAnimationFrame(look);
  };
  frame.document.addEventListener('click', () => { state.clickedMs ||= Date.now(); }, { capture: true, once: true });
  frame.requestAnimationFrame(look);
}
"""
OPENED = "() => document.querySelector('iframe').contentWindow.tpuprofOpened"
IS_COMPLETE = "() => document.querySelector('iframe').contentWindow.tpuprofOpened.completeMs > 0"


def _traced(browser: Any, page: Any, act: Callable[[], None]) -> list[dict[str, Any]]:
    browser.start_tracing(page=page, categories=CATEGORIES.split(","))
    act()
    page.wait_for_timeout(400)
    events: list[dict[str, Any]] = json.loads(browser.stop_tracing())["traceEvents"]
    return events


def worked(events: list[dict[str, Any]]) -> dict[str, float]:
    """Frames with work in them: how many, the 95th percentile of their work, and the longest task, in
    milliseconds.
    """
    works = [work for work in frame_works(events) if work >= IDLE_MS]
    return {
        "n": len(works),
        "p95_ms": round(percentile(works, 0.95), 1) if works else 0.0,
        "task_ms": round(max((work for _, _, work in main_tasks(events)), default=0.0) / 1000, 1),
    }


def opened(browser: Any, page: Any, url: str, run: str, tool: str) -> dict[str, float]:
    """Open the tool with a click; returns the time."""
    page.goto(f"{url}/#profile&p.profile.run={run.replace('/', '%2F')}&p.profile.tool={HOME}")
    frame = page.frame_locator("iframe:visible")
    link = frame.locator(f'nav[aria-label=Tools] a[href*="tool={tool}"]')
    link.wait_for(timeout=TIMEOUT_MS)
    frame.locator(".tool-page, .message").first.wait_for(timeout=TIMEOUT_MS)
    page.wait_for_timeout(2000)
    arrived: list[float] = []

    def finished(request: Any) -> None:
        if f"/data/{tool}?" in request.url:
            arrived.append(request.timing["startTime"] + request.timing["responseEnd"])

    page.on("requestfinished", finished)
    page.evaluate(WATCH, list(PAGES[tool].complete))

    def act() -> None:
        link.click()
        page.wait_for_function(IS_COMPLETE, timeout=TIMEOUT_MS)
        page.wait_for_timeout(1000)

    events = _traced(browser, page, act)
    page.remove_listener("requestfinished", finished)
    times = page.evaluate(OPENED)
    return {
        "click_ms": round(times["completeMs"] - times["clickedMs"]),
        "answer_ms": round(times["completeMs"] - max(at for at in arrived if at <= times["completeMs"])),
        "task_ms": worked(events)["task_ms"],
    }


def measure(
    url: str, run: str, tools: list[str], seconds: float, has_gpu: bool
) -> dict[str, dict[str, dict[str, float]]]:
    """Open each page and use it; returns times by tool and gesture, `open` first."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("TPUPROF_CHROMIUM") or next(
        path for name in CHROMIUM if (path := shutil.which(name))
    )
    results: dict[str, dict[str, dict[str, float]]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *([] if has_gpu else ["--disable-gpu"])]
        )
        for tool in tools:
            # Once before it counts: the server has read the file then, and the browser compiled the code.
            for is_counted in (False, True):
                page = browser.new_page(viewport=PAGE_PX)
                page.set_default_timeout(TIMEOUT_MS)
                results[tool] = {"open": opened(browser, page, url, run, tool)}
                if is_counted:
                    frame = page.frame_locator("iframe:visible")
                    for name, hands in PAGES[tool].hands:
                        results[tool][name] = worked(
                            _traced(browser, page, partial(hands, page, frame, seconds))
                        )
                        print(tool, name, results[tool][name], flush=True)
                page.close()
        browser.close()
    return results


def missed(results: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """The targets that were not met, in words."""
    lines = []
    for tool, did in results.items():
        for name, numbers in did.items():
            for key, most in (("p95_ms", FRAME_MS), ("task_ms", TASK_MS), ("answer_ms", CONTENT_MS)):
                if numbers.get(key, 0) > most:
                    lines.append(f"{tool}, {name}: {key} {numbers[key]} of at most {most:g}")
    return lines


def main() -> None:
    """Measure; fails where a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--page", action="append", choices=list(PAGES), help="only this one; may be given more than once"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each thing that hands do for a while")
    parser.add_argument("--gpu", action="store_true", help="let Chromium use the machine's GPU")
    parser.add_argument("--url", default="", help="a TensorBoard that runs already, with --run")
    parser.add_argument("--run", default="", help="its run")
    arguments = parser.parse_args()
    run = program_run()
    with nullcontext(arguments.url) if arguments.url else served(run) as url:
        results = measure(
            url,
            arguments.run or f"bench/{run.name}",
            arguments.page or list(PAGES),
            arguments.seconds,
            arguments.gpu,
        )
    for tool, did in results.items():
        print(f"{tool}: {did['open']}")
    lines = missed(results)
    print("\n".join(["NOT met:", *lines]) if lines else "every target met")
    print(json.dumps(results))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
