"""Measure how long it takes in a real Chromium from the click on a run to the complete picture of its trace.

python -m bench.picture [--run jax_cpu --run synthetic_10m] [--rounds 3] [--gpu] [--output bench/picture.md]

TensorBoard serves the run beside a small demo run, whose trace is open; then the other run is chosen by a
click in the list of runs. The picture is complete when the page tells the run's length and its canvas shows
colors. Cold is the first click after the start of TensorBoard with an empty cache of columns (the file
itself may be in the system's memory); warm is a click on the same run after a look at the small one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from statistics import median
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.bench import GENERATED
from bench.frames import CHROMIUM, PAGE_PX, find_run
from bench.serving import served
from bench.traces import JAX_CPU, SYNTHETIC, Run

SMALL = "jax_train"
TIMEOUT_MS = 120_000
# Seconds from the click to the complete picture, cold and warm, that the project promises.
TARGETS_S = {JAX_CPU: (1.0, None), SYNTHETIC: (2.5, 0.5)}

# Waits for the click, then looks at each frame: is the run's name in the header, its length beside the
# minimap, the canvas colored?
WATCH = """
(run) => {
  const frame = document.querySelector('iframe').contentWindow;
  const state = (frame.tpuprofPicture = { clickedMs: 0, doneMs: 0 });
  const small = frame.document.createElement('canvas');
  small.width = 256; small.height = 128;
  const context = small.getContext('2d', { willReadFrequently: true });
  const isColoured = () => {
    context.clearRect(0, 0, 256, 128);
    for (const canvas of frame.document.querySelectorAll('.tv-stage canvas')) context.drawImage(canvas, 0, 0, 256, 128);
    const { data } = context.getImageData(0, 0, 256, 128);
    for (let i = 0; i < data.length; i += 4) {
      const [low, high] = [Math.min(data[i], data[i + 1], data[i + 2]), Math.max(data[i], data[i + 1], data[i + 2])];
      if (high - low > 25) return true;
    }
    return false;
  };
  const before = frame.document.querySelector('.tv-whole')?.textContent;
  const look = () => {
    const whole = frame.document.querySelector('.tv-whole')?.textContent;
    if (whole && whole !== before && frame.document.querySelector('button.run').textContent.includes(run) && isColoured()) {
      state.doneMs = frame.performance.now();
    } else frame.requestAnimationFrame(look);
  };
  const clicked = (event) => {
    if (!event.target.closest('[role=option]')) return;
    frame.document.removeEventListener('click', clicked, true);
    state.clickedMs = frame.performance.now();
    frame.requestAnimationFrame(look);
  };
  frame.document.addEventListener('click', clicked, true);
}
"""
IS_DONE = "() => document.querySelector('iframe').contentWindow.tpuprofPicture.doneMs > 0"
TOOK_MS = (
    "() => { const { clickedMs, doneMs } = "
    "document.querySelector('iframe').contentWindow.tpuprofPicture; return doneMs - clickedMs; }"
)


def choose(page: Any, run: str) -> float:
    """Click the run in the list of runs; seconds until its picture is complete."""
    frame = page.frame_locator("iframe:visible")
    frame.locator("button.run").click()
    page.evaluate(WATCH, run)
    frame.locator("#run-options [role=option]").filter(has_text=run).click()
    page.wait_for_function(IS_DONE, timeout=TIMEOUT_MS)
    return float(page.evaluate(TOOK_MS)) / 1000


def measure(run: Run, has_gpu: bool) -> tuple[float, float]:
    """(cold, warm) seconds of one start of TensorBoard."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("TPUPROF_CHROMIUM") or next(
        path for name in CHROMIUM if (path := shutil.which(name))
    )
    with served(find_run(SMALL), run) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *([] if has_gpu else ["--disable-gpu"])]
        )
        page = browser.new_page(viewport=PAGE_PX)
        page.goto(
            f"{url}/#profile&p.profile.run=bench%2F{SMALL}&p.profile.tool=trace_viewer&p.profile.renderer=canvas2d"
        )
        page.frame_locator("iframe:visible").locator(".tv-whole").wait_for(timeout=TIMEOUT_MS)
        page.wait_for_timeout(1000)
        cold = choose(page, run.name)
        page.wait_for_timeout(3000)  # prefetched and cached data must not speed up the next click
        choose(page, SMALL)
        page.wait_for_timeout(1000)
        warm = choose(page, run.name)
        browser.close()
    return cold, warm


def report(rows: list[tuple[str, float, float]]) -> str:
    """The results as a Markdown table with the targets."""
    lines = [
        "# From the click to the complete picture",
        "",
        "Medians; TensorBoard and Chromium on the same machine. `python -m bench.picture` writes this file.",
        "",
        "| run | | target | figure | met |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, *measurements in rows:
        for title, seconds, target in zip(
            ("cold", "warm"), measurements, TARGETS_S.get(name, (None, None)), strict=True
        ):
            promise, met = (
                (f"≤ {target:g} s", "yes" if seconds <= target else "**no**") if target else ("–", "–")
            )
            lines.append(f"| {name} | {title} | {promise} | {seconds:.2f} s | {met} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the requested measurements; fails if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="append", help="a demo log's folder or " + ", ".join(GENERATED))
    parser.add_argument("--rounds", type=int, default=3, help="starts of TensorBoard; the median counts")
    parser.add_argument("--gpu", action="store_true", help="let Chromium use the machine's GPU")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "picture.md")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.run or list(TARGETS_S):
        run = find_run(name)
        samples = [measure(run, arguments.gpu) for _ in range(arguments.rounds)]
        print(name, samples, flush=True)
        rows.append((name, median(cold for cold, _ in samples), median(warm for _, warm in samples)))
    text = report(rows)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(1 if "**no**" in text else 0)


if __name__ == "__main__":
    main()
