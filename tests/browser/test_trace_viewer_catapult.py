"""Chrome traces with the format's edge cases, each opened as a run: what the page draws and what it reports
as not drawn.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.made_runs import CATAPULT
from tests.browser.walking import frame_of, heading, link

pytestmark = pytest.mark.skipif(not CATAPULT.is_dir(), reason="TPUPROF_CORPUS is not set")


@pytest.mark.parametrize(
    ("run", "n_events", "tracks", "says"),
    [
        (
            "async_begin_end",
            "22 events",
            ["A", "B", "b", "D", "S", "thread 1", "E", "F"],
            "ends without a begin: 1",
        ),
        ("nestable_async", "11 events", ["REQUEST_BAR", "REQUEST_FOO"], "ends without a begin: 1"),
        (
            "nestable_async_annotation",
            "11 events",
            ["REQUEST_BAR", "REQUEST_FOO"],
            "traceAnnotations are not shown",
        ),
        ("instance_counters", "2 events", ["thread 53", "counter[123]", "counter[b]"], ""),
        ("main_thread_has_unclosed_slices", "1,684 events", ["CrBrowserMain", "PAC thread #0"], ""),
        ("flow", "1,625 events", ["thread 11", "thread 19"], "not on an event: 171"),
        ("gpu_state_trace", "1 event", ["gpu::State"], ""),
        ("fuchsia_trace", "67,047 events", ["thread 18685"], "systemTraceEvents are not shown"),
    ],
)
def test_a_file_is_drawn(
    page: Page, server: Server, run: str, n_events: str, tracks: list[str], says: str
) -> None:
    page.goto(link(server.url, run=f"catapult/{run}", tool="trace_viewer"))
    frame = frame_of(page)
    expect(heading(page)).to_have_text("Trace viewer")
    expect(frame.locator(".tv-whole")).to_contain_text(re.compile(rf"{n_events}$"))
    for name in tracks:
        expect(frame.locator(f'.tv-track .tv-name[data-tip^="{name} · "]').first).to_be_visible()
    if says:
        expect(frame.locator("main")).to_contain_text(says)
    else:
        expect(frame.locator("main").get_by_text(re.compile("Warning"))).to_have_count(0)


def test_another_format_is_refused_in_words(page: Page, server: Server) -> None:
    page.goto(link(server.url, run="catapult/google_cloud_trace", tool="trace_viewer"))
    main = frame_of(page).locator("main")
    expect(main).to_contain_text("is JSON without the traceEvents of a Chrome trace")
    expect(main).to_contain_text("Google Cloud Trace, are not supported")
