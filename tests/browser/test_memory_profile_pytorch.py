"""The memory of a PyTorch job: what its trace does not tell is said to be unknown and not drawn; what its
allocator holds is.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, start_tensorboard
from tests.browser.input_pages import open_page
from tests.browser.walking import frame_of

CAPTURED = Path(__file__).parent.parent / "data" / "kineto" / "memory.pt.trace.json.gz"
GPU = {"Device Type": 1, "Device Id": 0, "Total Reserved": 4 * 2**20}


def gpu_job() -> bytes:
    """A GPU's memory that fills and empties."""
    where = {"pid": 1, "tid": 1}
    events: list[dict[str, object]] = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 999, **where, "args": {}}
    ]
    for i in range(20):
        level = 2**20 * (1 + i % 2)
        args = {**GPU, "Bytes": 2**20 if i % 2 else -(2**20), "Total Allocated": level, "Addr": 1}
        events.append({"ph": "i", "s": "t", "name": "[memory]", "ts": 10 * i, **where, "args": args})
    devices = [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 8 * 2**20}]
    return gzip.compress(json.dumps({"deviceProperties": devices, "traceEvents": events}).encode())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """TensorBoard on the captured job, and on a drawn one with a GPU."""
    scratch: Path = tmp_path_factory.mktemp("pytorch")
    for run in ("cpu", "gpu"):
        (scratch / "logs" / "plugins" / "profile" / run).mkdir(parents=True)
    shutil.copyfile(CAPTURED, scratch / "logs" / "plugins" / "profile" / "cpu" / "host.pt.trace.json.gz")
    (scratch / "logs" / "plugins" / "profile" / "gpu" / "host.pt.trace.json.gz").write_bytes(gpu_job())
    started = start_tensorboard(scratch / "logs", scratch)
    yield started
    started.process.terminate()
    started.process.wait(20)


def test_a_leak_is_told_and_what_is_unknown_is_not_drawn(page: Page, server: Server) -> None:
    open_page(page, server, "memory_profile", run="cpu")
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text("rises by 256 KiB per step")
    expect(frame.get_by_label("Verdict")).to_contain_text("aten::zeros")
    expect(frame.get_by_label("Key numbers").first).to_contain_text("the trace does not tell")
    history = frame.get_by_role("region", name="Memory in use")
    expect(history).to_contain_text("Heap")
    for name in ("Stack", "Free", "Fragmentation", "Held"):
        expect(history).not_to_contain_text(name)


def test_what_the_allocator_holds_is_drawn(page: Page, server: Server) -> None:
    open_page(page, server, "memory_profile", run="gpu")
    frame = frame_of(page)
    expect(frame.get_by_label("Verdict")).to_contain_text(
        "cuda:0 holds 2.00 MiB at its peak, 25.0 % of the 8.00 MiB of chip memory"
    )
    history = frame.get_by_role("region", name="Memory in use")
    for name in ("Heap", "Free", "Held by the allocator", "Fragmentation"):
        expect(history).to_contain_text(name)
    box = frame.locator(".mp-history").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    expect(frame.locator(".chart-tip")).to_contain_text("Held by the allocator")
    expect(frame.locator(".chart-tip")).to_contain_text("aten::mm")
