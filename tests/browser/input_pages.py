"""Shared by the walks through the pages on input."""

from __future__ import annotations

from playwright.sync_api import Page

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.browser.conftest import Server
from tests.browser.walking import KERAS, expect_tool, frame_of, link
from tests.golden_files import demo_runs


def payload_of(name: str, log: str = "keras_slow_input") -> Payload:
    """What the command line would show."""
    return get_tool(name).run(Session(str(demo_runs()[log]), cache=False), None, {})


def texts_of(payload: Payload, table: str, column: str) -> list[str | None]:
    """A column of words."""
    match = next(one for one in payload.tables[table].columns if one.name == column)
    return [None if code < 0 else match.strings[code] for code in match.values]


def open_page(page: Page, server: Server, tool: str, **state: str) -> None:
    """A page of the Keras run, or of the run in `state`."""
    page.goto(link(server.url, **({"run": KERAS, "tool": tool} | state)))
    expect_tool(page, get_tool(tool).title)


def assert_scrolls_only_downwards(page: Page, server: Server, tool: str) -> None:
    """No sideways scroll of the page in narrow and wide windows."""
    for width in (1024, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        open_page(page, server, tool)
        main = frame_of(page).locator("main")
        assert main.evaluate("main => main.scrollWidth - main.clientWidth") <= 0, width
