"""What a walk through the pages needs: opening them, and looking at TensorBoard's window and our frame within
it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.golden_files import DEMO_LOGS, demo_runs

expect.set_options(timeout=15_000)

PLUGIN = "profile"


def run_of(log: str) -> str:
    """The run's name in a demo log, as the server reports it: the folder above `plugins`, a slash,
    the session.
    """
    folder, _, session = demo_runs()[log].relative_to(DEMO_LOGS).as_posix().partition("/plugins/profile/")
    return f"{folder}/{session}"


KERAS = run_of("keras_slow_input")
TWO_WORKERS = run_of("tf_two_workers")


def link(url: str, **state: str) -> str:
    """The address of a view: `link(server.url, run=…, tool=…)`."""
    pairs = "".join(f"&p.{PLUGIN}.{name}={quote(value, safe='')}" for name, value in state.items())
    return f"{url}/#{PLUGIN}{pairs}"


def state_of(page: Page) -> dict[str, str]:
    """The view in the address; with the tab's name under `tab`."""
    fragment = urlsplit(page.url).fragment
    tab, _, rest = fragment.partition("&")
    prefix = f"p.{PLUGIN}."
    return {"tab": tab} | {
        name.removeprefix(prefix): value for name, value in parse_qsl(rest) if name.startswith(prefix)
    }


def frame_of(page: Page) -> Any:
    """Our document within TensorBoard's."""
    return page.frame_locator("iframe:visible")


def heading(page: Page) -> Locator:
    """The tool's title at the top of its page."""
    return frame_of(page).locator("main header h1")


def expect_tool(page: Page, title: str) -> None:
    """Wait until a tool's page is shown and nothing is loading any more."""
    expect(heading(page)).to_have_text(title)
    expect(frame_of(page).locator("[aria-busy=true]")).to_have_count(0)


def expect_state(page: Page, **expected: str) -> None:
    """Wait until the address has the given parts of the view."""
    for name, value in expected.items():
        page.wait_for_function(
            "([name, value]) => new URLSearchParams(location.hash.slice(1)).get(name) === value",
            arg=[f"p.{PLUGIN}.{name}", value],
        )
    assert state_of(page)["tab"] == PLUGIN


def open_tool(page: Page, title: str) -> None:
    """Click a tool in the side bar."""
    frame_of(page).get_by_role("navigation", name="Tools").get_by_role(
        "link", name=re.compile(f"^{re.escape(title)}")
    ).click()


def choose_run(page: Page, run: str) -> None:
    """Choose a run in the side bar's list."""
    frame_of(page).get_by_role("button", name=re.compile("Choose another")).click()
    frame_of(page).get_by_role("option").filter(has_text=run).click()


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every path below a folder with its time and content."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }
