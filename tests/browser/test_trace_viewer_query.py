"""The trace viewer's query line in a browser: completed, counted, listed, walked, grouped, and kept in the
link. Numbers are compared with the trace itself.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.browser.conftest import Server
from tests.browser.walking import expect_state, frame_of, link, run_of
from tests.golden_files import demo_runs

LOG = "jax_train"


@pytest.fixture(scope="module")
def trace() -> Trace:
    session = Session(str(demo_runs()[LOG]), cache=False)
    return session.trace(session.hosts[0])


def open_viewer(page: Page, server: Server, **state: str) -> Any:
    page.goto(link(server.url, run=run_of(LOG), tool="trace_viewer", **state))
    frame = frame_of(page)
    expect(frame.locator(".tv[aria-busy=false] .tv-stage")).to_be_visible()
    return frame


def names_of(trace: Trace) -> list[str]:
    return [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]


def test_a_query_is_completed_counted_listed_and_walked(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    duration = trace.events["duration_ps"]
    found = [i for i, name in enumerate(names) if "dot" in name and duration[i] > 10_000_000]
    frame = open_viewer(page, server)
    page.keyboard.press("/")
    line = frame.get_by_role("combobox", name="Find events")
    expect(line).to_be_focused()
    page.keyboard.type("sel")
    expect(frame.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(line).to_have_value("self>")
    line.fill("")
    page.keyboard.type("du")
    expect(frame.get_by_role("option", selected=True)).to_contain_text("dur>")
    page.keyboard.press("Tab")
    page.keyboard.type("10us name:dot")
    expect(line).to_have_value("dur>10us name:dot")
    status = frame.locator(".tv-status")
    expect(status).to_have_text(f"{len(found):,}")
    expect_state(page, q="dur>10us name:dot")
    page.keyboard.press("Enter")
    by_time = sorted(found, key=lambda event: (int(trace.events["start_ps"][event]), event))
    expect_state(page, event=str(by_time[0]))
    status.click()
    expect(frame.locator(".tv-results-bar b")).to_contain_text(f"{len(found)} events · ")
    rows = frame.get_by_role("grid", name="Slices").locator("tbody tr[aria-rowindex]")
    expect(rows.first).to_have_attribute("aria-selected", "true")
    rows.nth(2).click()
    expect_state(page, event=str(by_time[2]), list="slices")
    expect(rows.nth(2)).to_have_attribute("aria-selected", "true")


def test_groups_pivot_lead_to_the_longest_and_narrow_the_query(
    page: Page, server: Server, trace: Trace
) -> None:
    names = names_of(trace)
    counts = Counter(name for name in names if "dot" in name)
    frame = open_viewer(page, server, q="name:dot", list="name")
    table = frame.get_by_role("grid", name="Totals by name")
    expect(table.locator("tbody tr[aria-rowindex]")).to_have_count(len(counts))
    duration = trace.events["duration_ps"]
    totals = {name: sum(int(duration[i]) for i, each in enumerate(names) if each == name) for name in counts}
    first = max(totals, key=lambda name: totals[name])
    row = table.locator("tbody tr[aria-rowindex]").first
    expect(row).to_contain_text(first)
    table.focus()
    page.keyboard.press("Enter")
    slices = frame.get_by_role("table", name=f"Events of {first}, longest first")
    of_first = sorted((i for i, name in enumerate(names) if name == first), key=lambda i: -int(duration[i]))
    expect(slices.locator("tbody tr")).to_have_count(min(len(of_first), 20))
    expect_state(page, open=first)
    slices.locator("tbody button").first.click()
    expect_state(page, event=str(of_first[0]))
    expect(slices.locator("tbody tr").first).to_have_attribute("aria-current", "true")
    page.go_back()
    page.go_back()
    expect(slices).to_have_count(0)
    row.locator("td").last.click()
    expect(slices).to_be_visible()
    row.hover()
    row.get_by_role("button", name="only").click()
    expect(frame.locator(".tv-status")).to_have_text(re.compile(rf"\b{counts[first]:,}\b"))
    expect_state(page, q=f"name:dot name={first}", list="slices")
    frame.locator(".tv-results-bar").get_by_label("Group by").select_option("step")
    expect(frame.get_by_role("grid", name="Totals by step")).to_be_visible()
    expect_state(page, list="step")


def test_find_them_all_finds_all_and_only_these(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    event = names.index("dot.1")
    frame = open_viewer(page, server, event=str(event))
    frame.get_by_role("button", name="Find them all").click()
    n = names.count("dot.1")
    expect(frame.locator(".tv-status")).to_have_text(re.compile(rf"^{n:,}( · |$)"))
    expect(frame.locator(".tv-results-bar b")).to_contain_text(f"{n} events · ")
    expect_state(page, q='name="dot.1"')


def test_an_error_says_where_and_what_to_do(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    page.keyboard.press("/")
    page.keyboard.type("dur>abc")
    expect(frame.locator(".tv-suggest-error")).to_contain_text("at character 5")
    expect(frame.locator(".tv-suggest-error")).to_contain_text("Write a time such as dur>1ms")
    expect(frame.locator(".tv-status")).to_have_text("Not a query")
    expect(frame.get_by_role("combobox", name="Find events")).to_have_attribute("aria-invalid", "true")


def test_a_tracks_totals_and_the_utilization_of_all(page: Page, server: Server, trace: Trace) -> None:
    frame = open_viewer(page, server)
    frame.get_by_role("button", name="python", exact=True).hover()
    frame.get_by_role("button", name="Totals of python").first.click()
    line = trace.line_names.index("python")
    n = int(np.diff(trace.line_offsets)[line])
    expect(frame.locator(".tv-totals > p")).to_contain_text(f"{n:,} events in 1 track")
    frame.locator(".tv-totals").get_by_label("Group by").select_option("thread")
    rows = frame.get_by_role("grid", name="Totals by thread").locator("tbody tr[aria-rowindex]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("python")
    frame.locator(".tv-totals").get_by_label("Group by").select_option("busy")
    expect(frame.get_by_role("grid", name="Utilization")).to_contain_text("python")


def test_colors_lie_below_the_text_and_mark_the_error(page: Page, server: Server) -> None:
    frame = open_viewer(page, server)
    line = frame.get_by_role("combobox", name="Find events")
    page.keyboard.press("/")
    page.keyboard.type("dur>1us (name:dot OR track:pyth")
    line.press("Home")
    line.press("End")
    page.keyboard.type("on)")
    expect(line).to_have_value("dur>1us (name:dot OR track:python)")
    colored = frame.locator(".tv-colored")
    expect(colored).to_have_text("dur>1us (name:dot OR track:python)")
    expect(colored.locator(".tv-token-field")).to_have_text(["dur", "name", "track"])
    expect(colored.locator(".tv-token-joint")).to_have_text(["(", "OR", ")"])
    expect(colored).to_have_attribute("aria-hidden", "true")
    # The same places as the field's own text: font, size and padding agree, also when it scrolls.
    same = """(layer) => {
        const [a, b] = [layer, layer.nextElementSibling].map((element) => getComputedStyle(element));
        return ['fontFamily', 'fontSize', 'letterSpacing', 'lineHeight', 'paddingLeft', 'borderLeftWidth']
            .filter((name) => a[name] !== b[name]);
    }"""
    assert colored.evaluate(same) == []
    page.keyboard.type(" name:" + "x" * 200)
    expect(colored).to_have_text("dur>1us (name:dot OR track:python) name:" + "x" * 200)
    scrolled = "(layer) => [layer.scrollLeft, layer.nextElementSibling.scrollLeft]"
    layer_px, field_px = colored.evaluate(scrolled)
    assert field_px > 0
    assert abs(layer_px - field_px) <= 1
    line.fill("name:dot dur>abc")
    expect(colored.locator(".is-wrong")).to_have_text("abc")


def test_or_counts_what_one_of_the_conditions_matches(page: Page, server: Server, trace: Trace) -> None:
    names = names_of(trace)
    duration = trace.events["duration_ps"]
    n = sum(("dot" in name or "fusion" in name) and int(duration[i]) > 10**6 for i, name in enumerate(names))
    frame = open_viewer(page, server, q="dur>1us (name:dot | name:fusion)")
    expect(frame.locator(".tv-status")).to_have_text(f"{n:,}")


def test_a_slow_query_shows_what_it_waits_for_and_can_be_cancelled(
    page: Page, server: Server, trace: Trace
) -> None:
    held: list[Any] = []
    page.route(re.compile(r"/data/trace_viewer/slices.*any"), lambda route: held.append(route))
    frame = open_viewer(page, server)
    page.keyboard.press("/")
    page.keyboard.type("any:dot")
    slow = frame.locator(".tv-slow")
    expect(slow).to_contain_text("Reading arguments, 1 s")
    slow.get_by_role("button", name="Cancel").click()
    expect(slow).to_have_count(0)
    expect(frame.locator(".tv-status")).to_have_text("Stopped")
    page.unroute_all()
    frame.get_by_role("combobox", name="Find events").press("Enter")
    expect(frame.locator(".tv-status")).to_have_text(re.compile(r"^1 of "))


def test_the_keys_of_the_totals_are_in_the_link_and_back_restores_them(page: Page, server: Server) -> None:
    frame = open_viewer(page, server, mark="1000000-90000000000", by="track")
    choice = frame.locator(".tv-totals").get_by_label("Group by")
    expect(choice).to_have_value("track")
    choice.select_option("step")
    expect(frame.get_by_role("grid", name="Totals by step")).to_be_visible()
    expect_state(page, by="step")
    page.go_back()
    expect(choice).to_have_value("track")
    expect(frame.get_by_role("grid", name="Totals by track")).to_be_visible()
