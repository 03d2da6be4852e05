"""What every walk relies on: requests to other origins are noticed and lead nowhere, and a browser that keeps
its cache remembers nothing else.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Error, Page, expect

from tests.browser.conftest import Server, Watch
from tests.browser.walking import link

REMEMBER = """() => { localStorage.setItem('x', '1');
    sessionStorage.setItem('x', '1'); document.cookie = 'x=1';
  return new Promise((done) => { indexedDB.open('x').onsuccess = done; }).then(() => 0); }"""
REMEMBERED = """async () => [localStorage.length, sessionStorage.length, document.cookie,
  (await indexedDB.databases()).length]"""


def test_other_origins_are_noticed_and_out_of_reach(page: Page, server: Server, watch: Watch) -> None:
    page.goto(f"{server.url}/data/plugins_listing")
    for address in ("http://192.0.2.1/a", "http://example.com/b", "https://example.com/c"):
        assert page.evaluate(f"fetch('{address}', {{mode: 'no-cors'}}).then(() => 1, () => 0)") == 0
    with pytest.raises(Error, match="ERR_PROXY_CONNECTION_FAILED"):
        page.goto("http://example.com/d")
    assert sorted(url[-1] for url in watch.foreign) == ["a", "b", "c", "d"]
    watch.foreign.clear()


def test_errors_thrown_in_the_page_are_noticed(page: Page, server: Server, watch: Watch) -> None:
    page.goto(link(server.url))
    with page.expect_event("pageerror"):
        page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    assert watch.errors == ["thrown"]
    watch.errors.clear()


@pytest.mark.parametrize("walk", [1, 2])
def test_the_next_walk_finds_nothing_of_the_one_before(page: Page, server: Server, walk: int) -> None:
    page.goto(f"{server.url}/data/plugins_listing")
    assert page.evaluate(REMEMBERED) == [0, 0, "", 0], walk
    page.evaluate(REMEMBER)
    assert page.evaluate(REMEMBERED) == [1, 1, "x=1", 1]
    expect(page.locator("body")).to_be_visible()
