"""The memory of a PyTorch job: values missing from its trace are marked unknown and not drawn; memory that
its allocator reserves is.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.input_pages import open_page
from tests.browser.walking import frame_of


def test_a_leak_is_reported_and_unknown_series_are_not_drawn(page: Page, server: Server) -> None:
    open_page(page, server, "memory_profile", run="pytorch/cpu")
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text("rises by 256 KiB per step")
    expect(frame.get_by_label("Verdict")).to_contain_text("aten::zeros")
    expect(frame.get_by_label("Key numbers")).not_to_contain_text("—")
    history = frame.get_by_role("region", name="Memory in use")
    expect(history).to_contain_text("Heap")
    for name in ("Stack", "Free", "Fragmentation", "Reserved"):
        expect(history).not_to_contain_text(name)


def test_what_the_allocator_holds_is_drawn(page: Page, server: Server) -> None:
    open_page(page, server, "memory_profile", run="pytorch/gpu")
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text(
        "cuda:0 peaks at 2.00 MiB, 25.0% of the 8.00 MiB of chip memory"
    )
    history = frame.get_by_role("region", name="Memory in use")
    for name in ("Heap", "Free", "Reserved by the allocator", "Fragmentation"):
        expect(history).to_contain_text(name)
    box = frame.locator(".tw-plot").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    expect(frame.locator(".chart-tip")).to_contain_text("Reserved by the allocator")
    expect(frame.locator(".chart-tip")).to_contain_text("aten::mm")
