"""A walk through the memory snapshot of a PyTorch job: its history, another moment, another device."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.input_pages import open_page
from tests.browser.walking import frame_of, state_of
from tests.ingest.torch_allocator import MIB, Allocator, snapshot_of, train

RUN = "allocator"


@pytest.fixture(scope="module")
def run(server: Server) -> Iterator[str]:
    """Two devices, of which the smaller one runs out of memory."""
    devices = [Allocator(0, 2**40), Allocator(1, 24 * MIB)]
    train(devices[0], 40, 1, batch_bytes=40 * MIB)
    train(devices[1], 60, 2)
    folder = server.logdir / RUN
    folder.mkdir()
    (folder / "step_snapshot.pickle").write_bytes(pickle.dumps(snapshot_of(devices)))
    yield RUN
    shutil.rmtree(folder)


def test_history_moment_and_device(page: Page, server: Server, run: str) -> None:
    open_page(page, server, "memory_snapshot", run=run)
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text("GPU 1 ran out of memory")
    history = frame.get_by_role("region", name="Memory of GPU 1")
    for name in ("In use", "Waiting for a stream", "Held by the allocator"):
        expect(history).to_contain_text(name)
    plot = frame.locator(".tw-plot")
    expect(plot.locator("canvas")).to_be_visible()
    expect(frame.get_by_role("region", name="Out of memory")).to_be_visible()
    expect(frame.get_by_role("region", name="In use at the peak, by place")).to_contain_text(
        "forward /app/model.py"
    )
    box = plot.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    expect(frame.locator(".chart-tip")).to_contain_text("Held by the allocator")
    plot.click(position={"x": box["width"] / 2, "y": 150})
    # The region's name follows the moment; blocks in use when saved have one of their own.
    moment = frame.get_by_role("region", name=re.compile(r"^In use at .*, by place$"))
    expect(moment).to_contain_text("In use at 3.8")
    assert 3e9 < float(state_of(page)["at_ps"]) < 5e9
    moment.get_by_role("button", name="Back to the peak").click()
    expect(moment).to_contain_text("In use at the peak")
    frame.get_by_role("combobox", name="Device").select_option("GPU 0")
    expect(frame.get_by_role("region", name="Memory of GPU 0")).to_be_visible()
    expect(frame.get_by_label("Verdict")).to_contain_text("GPU 1 also ran out of memory")
    assert state_of(page)["device"] == "GPU 0"
    frame.get_by_role("button", name="Zoom in").click()
    expect(frame.get_by_role("button", name="Show all")).to_be_enabled()
    assert int(state_of(page)["start_ps"]) > 0


def test_a_snapshot_without_a_history_has_no_chart(page: Page, server: Server) -> None:
    folder = server.logdir / "plain_snapshot"
    folder.mkdir()
    allocator = Allocator(0, 2**40)
    train(allocator, 3, 1)
    content = {**snapshot_of([allocator]), "device_traces": []}
    (folder / "step_snapshot.pickle").write_bytes(pickle.dumps(content))
    open_page(page, server, "memory_snapshot", run="plain_snapshot")
    frame = frame_of(page)
    expect(frame.get_by_role("region", name="In use when saved, by place")).to_be_visible()
    expect(frame.locator(".tw-plot")).to_have_count(0)
    shutil.rmtree(folder)
