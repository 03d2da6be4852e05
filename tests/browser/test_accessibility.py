"""Every page of runs of several kinds, examined by axe-core in both themes; the Tab key's way to the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.walking import KERAS, TWO_WORKERS, frame_of, link

AXE = Path(__file__).resolve().parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
# TensorFlow on CPUs with input, several hosts, TPUs with programs, GPUs without, PyTorch.
RUNS = (KERAS, TWO_WORKERS, "tpu/synthetic", "gpu/synthetic", "pytorch/gpu")
THEMES = ("light", "dark")


def _frame(page: Page) -> Any:
    """Our document, where scripts can be run."""
    return next(
        frame for frame in page.frames if "/data/plugin/" in frame.url or frame.name or frame.parent_frame
    )


def _loaded(page: Page, title: str) -> None:
    expect(frame_of(page).locator("main header h1")).to_have_text(title)
    expect(frame_of(page).locator("[aria-busy=true]")).to_have_count(0)


def _is_abbreviated(html: str) -> bool:
    """Whether an element shows a shortened name and has the whole one as its label: boxes of graphs and flame
    graphs, tracks.
    """
    return html.startswith(("<g ", '<div role="treeitem"')) or 'class="tv-name"' in html


def _violations(page: Page) -> list[str]:
    """What axe-core objects to, one line per rule and element."""
    frame = _frame(page)
    if not frame.evaluate("Boolean(window.axe)"):
        frame.evaluate(AXE.read_text("utf-8"))
    found = frame.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]}"
        for one in found
        for node in one["nodes"]
        if not (one["id"] == "label-content-name-mismatch" and _is_abbreviated(node["html"]))
    ][:20]


def _switch(page: Page, theme: str) -> None:
    """As TensorBoard's button does, with which a page changes nothing but its colors."""
    page.evaluate("isDark => document.body.classList.toggle('dark-mode', isDark)", theme == "dark")
    _frame(page).wait_for_function(
        "isDark => document.documentElement.classList.contains('dark') === isDark", arg=theme == "dark"
    )


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_no_page_has_a_violation(page: Page, server: Server, run: str) -> None:
    if not AXE.is_file():
        pytest.skip("NO PAGE WAS EXAMINED: axe-core is not installed; run make build")
    page.goto(server.url)
    tools = page.request.get(f"{server.url}/data/plugin/profile/tools", params={"run": run}).json()["tools"]
    objections = {}
    for tool in tools:
        # Within the window, so that TensorBoard does not start again for each page.
        page.evaluate("url => location.replace(url)", link(server.url, run=run, tool=tool["name"]))
        _loaded(page, tool["title"])
        for theme in THEMES:
            _switch(page, theme)
            if found := _violations(page):
                objections[f"{tool['name']}, {theme}"] = found
    assert not objections, "\n".join(
        f"{tool}: {text}" for tool, found in objections.items() for text in found
    )


def test_tab_skips_the_sidebar_and_stops_once_at_tools_without_data(page: Page, server: Server) -> None:
    page.goto(link(server.url, run=KERAS, tool="overview_page"))
    _loaded(page, "Overview")
    frame = frame_of(page)
    expect(frame.locator("nav a.off")).not_to_have_count(0)
    assert frame.locator("nav a.off").count() > 1
    assert frame.locator("nav a.off:not([tabindex='-1'])").count() == 1
    frame.locator("nav a.off").first.focus()
    page.keyboard.press("ArrowDown")
    focused = "document.activeElement.closest('nav a') !== null"
    assert _frame(page).evaluate(focused)
    skip = frame.get_by_role("button", name="Skip to the page")
    skip.focus()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(frame.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert _frame(page).evaluate("document.activeElement.closest('main') !== null")
