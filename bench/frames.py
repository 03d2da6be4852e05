"""Measure the trace viewer's work per frame in a real Chromium: scripted zoom, pan and scroll over a large
run.

python -m bench.frames [--run synthetic_10m] [--renderer canvas2d|webgl] [--seconds 4] [--gpu]

TensorBoard serves the run; Chromium opens it, and through DevTools' tracing tells what the page's main thread
did: each task of the main thread between two frames is added up, and what an animation frame's callback alone
took stands beside it. Then the same gestures are made once more in a new page, untimed, and each frame's
picture is looked at: reading pixels back is work of the main thread that no user's page does. A frame counts
as blank where no pixel of the timeline has a color. The last line is JSON for the table of results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.bench import GENERATED
from bench.serving import served
from bench.traces import Run, demo_runs

PAGE_PX = {"width": 1440, "height": 900}
# Only the categories that show when the main thread was busy: more would slow it down.
CATEGORIES = "toplevel,devtools.timeline,blink.user_timing"
TARGET_MS = 8.0
FRAME_US = 1e6 / 60
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Hands as a user's: held keys and a wheel, one after the other, each for its share of the time.
GESTURES = ("w", "d", "a", "wheel in", "wheel out", "scroll", "s")

# In each frame: how long the callback took, and, while `isLooking`, whether the canvas of boxes shows
# anything.
PROBE = """
() => {
  const frame = document.querySelector('iframe').contentWindow;
  const probe = (frame.tpuprofProbe = { callbacks: [], isLooking: false, nLookedAt: 0, nBlank: 0 });
  const isWebgl = frame.document.querySelector('.tv-stage').dataset.renderer === 'webgl';
  const request = frame.requestAnimationFrame.bind(frame);
  frame.requestAnimationFrame = (callback) => request((now) => {
    const from = frame.performance.now();
    callback(now);
    if (!probe.isLooking) probe.callbacks.push(frame.performance.now() - from);
    // WebGL's picture is gone from its canvas once it is shown: what it drew cannot be looked at from here.
    else if (!isWebgl) look();
  });
  const small = frame.document.createElement('canvas');
  small.width = 256; small.height = 128;
  const context = small.getContext('2d', { willReadFrequently: true });
  const look = () => {
    const canvases = frame.document.querySelectorAll('.tv-stage canvas');
    context.clearRect(0, 0, 256, 128);
    for (const canvas of canvases) context.drawImage(canvas, 0, 0, 256, 128);
    const { data } = context.getImageData(0, 0, 256, 128);
    let isBlank = true;
    for (let i = 0; i < data.length && isBlank; i += 4) {
      const [low, high] = [Math.min(data[i], data[i + 1], data[i + 2]), Math.max(data[i], data[i + 1], data[i + 2])];
      if (high - low > 25) isBlank = false;
    }
    probe.nLookedAt++;
    if (isBlank) probe.nBlank++;
  };
}
"""
FOUND = "() => document.querySelector('iframe').contentWindow.tpuprofProbe"
LOOK = "() => { document.querySelector('iframe').contentWindow.tpuprofProbe.isLooking = true; }"


def find_run(name: str) -> Run:
    """A demo run or a generated one by its name."""
    if name in GENERATED:
        return GENERATED[name]()
    return next(run for run in demo_runs() if run.name == name)


def drive(page: Any, seconds: float) -> None:
    """Zoom, pan and scroll by hand, `seconds` each."""
    box = page.frame_locator("iframe:visible").locator(".tv-stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
    for gesture in GESTURES:
        if len(gesture) == 1:
            page.keyboard.down(gesture)
            page.wait_for_timeout(seconds * 1000 * 0.6)
            page.keyboard.up(gesture)
            page.wait_for_timeout(seconds * 1000 * 0.4)
            continue
        page.keyboard.down("Alt") if gesture == "scroll" else None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            page.mouse.wheel(0, {"wheel in": -120, "wheel out": 120, "scroll": 60}[gesture])
            page.wait_for_timeout(30)
        page.keyboard.up("Alt") if gesture == "scroll" else None


def _main_starts(events: list[dict[str, Any]]) -> tuple[tuple[int, int], list[float]]:
    """(process, thread) of the renderer's main thread, and when its animation frames began, in microseconds;
    none: no times.
    """
    frames = [event for event in events if event["name"] == "FireAnimationFrame" and event["ph"] == "X"]
    by_thread: dict[tuple[int, int], list[float]] = {}
    for event in frames:
        by_thread.setdefault((event["pid"], event["tid"]), []).append(event["ts"])
    main = max(by_thread, key=lambda key: len(by_thread[key]), default=(-1, -1))
    return main, sorted(by_thread.get(main, []))


def main_tasks(events: list[dict[str, Any]]) -> list[tuple[float, float, float]]:
    """Tasks of the renderer's main thread in order: (start, duration, work), in microseconds.

    A task has no parent: for some tasks the trace has only their contents.
    """
    main, _ = _main_starts(events)
    own_tasks = sorted(
        (e["ts"], -e.get("dur", 0), e.get("tdur", e.get("dur", 0)))
        for e in events
        if (e["pid"], e["tid"]) == main and e["ph"] == "X"
    )
    tasks: list[tuple[float, float, float]] = []
    end = 0.0
    for start, minus_duration, work in own_tasks:
        if start >= end:
            # Processor time where the trace has it: a busy machine makes wall time of every task.
            tasks.append((start, -minus_duration, work))
            end = start - minus_duration
    return tasks


def frame_works(events: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of the renderer's main thread in each frame: its tasks from one animation frame to the
    next, added up.
    """
    _, starts = _main_starts(events)
    if not starts:
        return []
    works = [0.0] * len(starts)
    task_index = 0
    for begin, duration, work in main_tasks(events):
        # A task belongs to the last frame that had begun before its end: the frame's own callback lies within
        # its task.
        while task_index + 1 < len(starts) and starts[task_index + 1] <= begin + duration:
            task_index += 1
        # Work long after the last frame, while nothing moves, belongs to no frame.
        if begin + duration >= starts[task_index] and begin < starts[task_index] + FRAME_US:
            works[task_index] += work / 1000
    return works


def percentile(values: list[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def opened(browser: Any, url: str, run: Run, renderer: str) -> Any:
    """A page that remembers nothing of another, once it shows the run."""
    page = browser.new_page(viewport=PAGE_PX)
    page.goto(
        f"{url}/#profile&p.profile.run=bench%2F{run.name}&p.profile.tool=trace_viewer&p.profile.renderer={renderer}"
    )
    page.frame_locator("iframe:visible").locator(".tv-whole").wait_for(timeout=120_000)
    return page


def measure(url: str, run: Run, renderer: str, seconds: float, has_gpu: bool) -> dict[str, float | str | int]:
    """Open the run, drive it, and say what its frames took."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("TPUPROF_CHROMIUM") or next(
        path for name in CHROMIUM if (path := shutil.which(name))
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *([] if has_gpu else ["--disable-gpu"])]
        )
        started = time.monotonic()
        page = opened(browser, url, run, renderer)
        first_ms = (time.monotonic() - started) * 1000
        page.wait_for_timeout(2000)
        page.evaluate(PROBE)
        browser.start_tracing(page=page, categories=CATEGORIES.split(","))
        drive(page, seconds)
        trace = json.loads(browser.stop_tracing())
        callbacks = page.evaluate(FOUND)["callbacks"]
        kind = page.frame_locator("iframe:visible").locator(".tv-stage").get_attribute("data-renderer")
        page.close()
        page = opened(browser, url, run, renderer)
        page.wait_for_timeout(2000)
        page.evaluate(PROBE)
        page.evaluate(LOOK)
        drive(page, seconds)
        looked = page.evaluate(FOUND)
        browser.close()
    works = frame_works(trace["traceEvents"])
    return {
        "run": run.name,
        "renderer": kind,
        "first_picture_ms": round(first_ms),
        "n_frames": len(works),
        "frame_p50_ms": round(percentile(works, 0.50), 2),
        "frame_p95_ms": round(percentile(works, 0.95), 2),
        "frame_max_ms": round(max(works, default=float("nan")), 2),
        "callback_p95_ms": round(percentile(callbacks, 0.95), 2),
        "n_looked_at": looked["nLookedAt"],
        "n_blank": looked["nBlank"],
    }


def main() -> None:
    """Run the requested measurement; fails if the target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--run", default="synthetic_10m", help="a demo log's folder or " + ", ".join(GENERATED)
    )
    parser.add_argument("--renderer", choices=("canvas2d", "webgl"), default="canvas2d")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="of each of the " + str(len(GESTURES)) + " gestures"
    )
    parser.add_argument("--gpu", action="store_true", help="let Chromium use the machine's GPU")
    arguments = parser.parse_args()
    run = find_run(arguments.run)
    with served(run) as url:
        result = measure(url, run, arguments.renderer, arguments.seconds, arguments.gpu)
    p95, n_blank = float(result["frame_p95_ms"]), result["n_blank"]
    met = p95 <= TARGET_MS and n_blank == 0
    print(
        f"main thread per frame: p95 {p95} ms of at most {TARGET_MS} ms, {n_blank} blank frames: "
        f"{'met' if met else 'NOT met'}"
    )
    print(json.dumps(result))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
